"""Isolation levels on real processes: two replicas in this one, a master and a replicant beside.

Goal: what the in-memory system shows holds on Kafka and SQLite too. Method: two threads, each with
a replica of its own, meet inside their transactions, so that both have read before one commits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica, open_replica
from leasehold.model.errors import Refused, SnapshotTooOld
from leasehold.replica.replica import Transacted
from leasehold.replica.write_set import WriteSet
from tests.support.cluster.system_cluster import settings_of

WAIT_S = 60
Work = Callable[[WriteSet], Any]
STRICT = ("serializable", "linearizable")


@pytest.fixture(scope="module")
def replicas(cluster: LocalCluster) -> Iterator[tuple[Replica, Replica]]:
    with (
        open_replica(settings_of(cluster, "left")) as left,
        open_replica(settings_of(cluster, "right")) as right,
    ):
        yield left, right


@pytest.fixture(scope="module")
def producer(cluster: LocalCluster) -> Iterator[ChangeProducer]:
    with ChangeProducer(settings_of(cluster, "producer")) as made:
        yield made


@pytest.fixture
def test(request: pytest.FixtureRequest, producer: ChangeProducer) -> str:
    """A table of its own with (1, 10) and (2, 20)."""
    name = "t_" + "".join(c if c.isalnum() else "_" for c in request.node.name.lower())[:50]
    made = {"sql": f"CREATE TABLE {name} (id bigint PRIMARY KEY, value bigint)"}
    rows = [
        {"table": name, "op": "insert", "key": [key], "values": {"value": value}}
        for key, value in ((1, 10), (2, 20))
    ]
    assert producer.submit({**made, "transaction": rows}).result().lsn
    return name


class Meeting:
    """Both threads come here in their first run, after they have read."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2)
        self._met = threading.local()

    def come(self) -> None:
        if not getattr(self._met, "once", False):
            self._met.once = True
            self._barrier.wait(WAIT_S)


def together(replicas: tuple[Replica, Replica], level: str, *works: Work) -> list[Any]:
    """Each work's Transacted, or the Refused it ended with."""

    def run(replica: Replica, work: Work) -> Transacted[Any] | Refused:
        try:
            return replica.transact(work, isolation=level)
        except Refused as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(run, r, w) for r, w in zip(replicas, works, strict=True)]
        return [future.result(WAIT_S) for future in futures]


def skew(table: str, meeting: Meeting, key: int) -> Work:
    """Reads both rows, writes one: their sum may not fall below 0."""

    def work(tx: WriteSet) -> int:
        total: int = sum(row["value"] for row in tx.scan(table))
        meeting.come()
        if total >= 30:
            tx.update(table, key, {"value": -30 + total})
        return total

    return work


def values(replica: Replica, table: str) -> dict[int, int]:
    replica.wait_coherent()
    return {row["id"]: row["value"] for row in replica.scan(table)}


@pytest.mark.parametrize("level", ["read committed", "snapshot", *STRICT])
def test_g2_item_write_skew(level: str, replicas: tuple[Replica, Replica], test: str) -> None:
    meeting = Meeting()
    ended = together(replicas, level, skew(test, meeting, 1), skew(test, meeting, 2))
    assert all(isinstance(each, Transacted) for each in ended), ended
    seen = sorted(each.value for each in ended)
    if level in STRICT:
        assert sorted(each.attempts for each in ended) == [1, 2], "one of them ran again"
        assert seen != [30, 30], "and saw what the other has written"
    else:
        assert seen == [30, 30], "both have written what rests on the other's old row"


def test_p4_lost_update(replicas: tuple[Replica, Replica], test: str) -> None:
    meeting = Meeting()

    def add(tx: WriteSet) -> None:
        row = tx.get(test, 1)
        assert row is not None
        meeting.come()
        tx.update(test, 1, {"value": row["value"] + 1})

    ended = together(replicas, "snapshot", add, add)
    refused = [each for each in ended if isinstance(each, Refused)]
    assert [error.sqlstate for error in refused] == ["40001"]
    assert values(replicas[0], test) == values(replicas[1], test) == {1: 11, 2: 20}


@pytest.mark.parametrize("level", STRICT)
def test_g2_phantom_in_a_range(level: str, replicas: tuple[Replica, Replica], test: str) -> None:
    meeting = Meeting()

    def backfill(key: int) -> Work:
        def work(tx: WriteSet) -> int:
            found = len(list(tx.scan(test, 100, 200)))
            meeting.come()
            if not found:
                tx.insert(test, key, {"value": 1})
            return found

        return work

    ended = together(replicas, level, backfill(101), backfill(102))
    assert sorted(each.value for each in ended) == [0, 1]
    assert len(values(replicas[0], test)) == 3


def test_a_snapshot_reads_one_moment_while_others_write(
    replicas: tuple[Replica, Replica], test: str
) -> None:
    left, right = replicas

    def look(tx: WriteSet) -> list[dict[str, Any]]:
        first = list(tx.scan(test))
        right.transact(lambda other: other.update(test, 1, {"value": 99}))
        right.transact(lambda other: other.delete(test, 2))
        assert list(tx.scan(test)) == first
        return [row for row in (tx.get(test, 1), tx.get(test, 2)) if row is not None]

    for level in ("snapshot", "serializable"):
        right.transact(lambda tx: tx.update(test, 1, {"value": 10}))
        shown = left.transact(look, isolation=level).value
        assert [row["value"] for row in shown][:1] == [10]
        if level == "snapshot":
            assert [row["value"] for row in shown] == [10, 20]
    assert values(left, test) == {1: 99}


def test_as_of_a_time_and_an_lsn(replicas: tuple[Replica, Replica], test: str) -> None:
    left, right = replicas
    lsn = right.transact(lambda tx: tx.update(test, 1, {"value": 11})).lsn
    left.wait_applied(lsn)
    then = datetime.now(UTC)
    after = right.transact(lambda tx: tx.update(test, 1, {"value": 12})).lsn
    left.wait_applied(after)
    for snapshot_lsn in (lsn, then):
        row = left.transact(lambda tx: tx.get(test, 1), as_of=snapshot_lsn).value
        assert row == {"id": 1, "value": 11}
    with pytest.raises(SnapshotTooOld):
        left.transact(lambda tx: tx.get(test, 1), as_of=datetime(2020, 1, 1, tzinfo=UTC))


def test_linearizable_reads_what_was_answered_just_before(
    replicas: tuple[Replica, Replica], test: str
) -> None:
    left, right = replicas
    for number in range(30):
        left.transact(lambda tx, n=number: tx.update(test, 1, {"value": n}))  # type: ignore[misc]
        row = right.transact(lambda tx: tx.get(test, 1), isolation="linearizable").value
        assert row == {"id": 1, "value": number}


def test_verify_retry_off_and_selectv(replicas: tuple[Replica, Replica], test: str) -> None:
    left, right = replicas
    runs: list[int] = []

    def work(tx: WriteSet) -> None:
        runs.append(len(runs))
        assert tx.get(test, 1, selectv=True) is not None
        if len(runs) in (1, 2):
            right.transact(lambda other: other.update(test, 1, {"value": 50 + len(runs)}))
        tx.update(test, 2, {"value": 22})

    with pytest.raises(Refused) as error:
        left.transact(work, verify_retry=False)
    assert error.value.sqlstate == "40001"
    assert len(runs) == 1
    assert left.transact(work).attempts == 2
    assert values(left, test)[2] == 22
