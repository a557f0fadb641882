"""Another primary key on real Kafka, Redis and Spark, while writers write.

Nobody's write is lost or refused, whichever key it names; a subscriber and both example services go
over with the name; the table that had it is gone in the end.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica, Subscriber, open_replica
from leasehold.adapters.os.clock import unix_us
from leasehold.admin.report import report
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.job import Status
from leasehold.events.rows import RowEvent
from leasehold.model.errors import MalformedRequest
from leasehold.replica.write_set import WriteSet
from leasehold.settings.client import ClientSettings
from tests.integration.cluster.changes import NODES
from tests.support.cluster.system_cluster import assert_consistent, settings_of, until
from tests.support.cluster.system_followers import EXAMPLES, Follower, following
from tests.support.cluster.system_jobs import begin, ended
from tests.support.cluster.system_load import made_tables, settled

ROWS = 300
KEYS = range(5)
CHANGE = "ALTER TABLE keyed DROP CONSTRAINT keyed_pkey, ADD PRIMARY KEY (k)"


@pytest.fixture(scope="module", autouse=True)
def table(producer: ChangeProducer) -> None:
    sql = "CREATE TABLE keyed (id bigint PRIMARY KEY, k bigint, n int NOT NULL, tag text)"
    index = "; CREATE INDEX keyed_tag ON keyed (tag)"
    rows = [
        {
            "table": "keyed",
            "op": "insert",
            "key": {"id": key},
            "values": {"k": key, "n": 0, "tag": f"tag {key % 7}"},
        }
        for key in range(ROWS)
    ]
    made_tables(producer, sql + index, rows)


class Writer(threading.Thread):
    """Adds one to a row again and again, by whatever key its table has now."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(name="writer")
        self._replica = replica
        self._ending = threading.Event()
        self.counts = dict.fromkeys(KEYS, 0)
        self.by_new_key = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        turn = 0
        try:
            while not self._ending.wait(0.01):
                key = KEYS[turn % len(KEYS)]
                turn += 1
                done = self._replica.transact(partial(self._add, key), label="adds one")
                self.counts[key] += 1
                self.by_new_key += done.value == "k"
        except BaseException as error:  # noqa: BLE001 - told by `stop`
            self.error = error

    def _add(self, key: int, tx: WriteSet) -> str:
        name = "id"
        try:
            row = tx.get("keyed", {"id": key})
        except MalformedRequest:
            name = "k"
            row = tx.get("keyed", {"k": key})
        assert row is not None, key
        tx.update("keyed", {name: key}, {"n": row["n"] + 1})
        return name

    def stop(self) -> None:
        self._ending.set()
        self.join()
        assert self.error is None, self.error


def has_spoken(watch: ClusterWatch, part: str) -> bool:
    return report(watch.view, unix_us())[part] is not None


def has_told(service: Follower, expected: dict[int, int]) -> bool:
    """`expected`: id → n, of the newest image of each id."""
    told = {each["row"]["id"]: each["row"]["n"] for each in service.rows}
    return expected.items() <= told.items()


def test_the_rows_go_over_and_everybody_with_them(
    cluster: LocalCluster,
    settings: ClientSettings,
    watch: ClusterWatch,
    producer: ChangeProducer,
    replica: Replica,
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        subscriber = stack.enter_context(Subscriber(settings_of(cluster, "follower"), ["keyed"]))
        services = [
            stack.enter_context(following(cluster, example, "keyed", tmp_path / example))
            for example in EXAMPLES
        ]
        seen: dict[int, int] = {}

        def polled() -> bool:
            for each in subscriber.poll(0.1):
                if isinstance(each, RowEvent) and each.values is not None:
                    seen[each.values["id"]] = each.values["n"]
            return len(seen) == ROWS

        until(polled, "all rows of the table of before")
        for each in services:
            until(partial(has_told, each, dict.fromkeys(range(ROWS), 0)), "rows told by an example")
        writer = Writer(replica)
        writer.start()
        try:
            twice = {"table": "keyed", "op": "update", "key": {"id": 9}, "values": {"k": 8}}
            assert settled(producer.submit(twice)).lsn
            job = ended(watch, begin(producer, CHANGE), Status.FAILED)
            assert sorted(key for _, _, key, _ in job.findings) == [(8,), (9,)]
            mended = {**twice, "values": {"k": 9}}
            assert settled(producer.submit(mended)).lsn
            job = ended(watch, begin(producer, CHANGE))
            until(lambda: writer.by_new_key > 10 or writer.error is not None, "writes by k")
        finally:
            writer.stop()
        old, new = job.tables
        replica.wait_coherent()
        table = next(t for t in replica.tables() if "keyed" in t.names)
        assert (table.table_id, table.former, table.mirror) == (new, old, 0)
        assert [c.name for c in table.key_columns] == ["k"]
        assert table.version == job.versions[new]
        rows = {row["k"]: row for row in replica.scan("keyed")}
        assert {key: rows[key]["n"] for key in KEYS} == writer.counts
        assert len(rows) == ROWS
        assert len(list(replica.get_by("keyed_tag", "tag 3"))) == len(range(3, ROWS, 7))
        last = {
            "table": "keyed",
            "op": "update",
            "key": {"k": 200},
            "values": {"n": 77, "id": 2_000},
        }
        outcome = settled(producer.submit(last))
        assert outcome.lsn, outcome

        def caught_up() -> bool:
            polled()
            return seen.get(2_000) == 77 and all(seen[k] == n for k, n in writer.counts.items())

        until(caught_up, "the rows of the table that has the name now")
        expected = {row["id"]: row["n"] for row in replica.scan("keyed")}
        for each in services:
            until(partial(has_told, each, expected), "the same rows told by an example")
            versions = [told["version"] for told in each.told if "changed" in told]
            assert versions[-1] == table.version
        # Both say that they are at work, whether or not somebody needs them.
        for part in ("spark", "changefeed"):
            until(partial(has_spoken, watch, part), f"the word of {part}")
            assert not report(watch.view, unix_us())[part]["silent"]
    assert_consistent(cluster, NODES)


def test_a_replica_of_that_table_alone_goes_on_with_its_store(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer
) -> None:
    """The rows are in a table of another id then, which no copy is needed for."""
    row = {"table": "held", "op": "insert", "key": {"a": 3}, "values": {"b": 30}}
    made_tables(producer, "CREATE TABLE held (a bigint PRIMARY KEY, b bigint NOT NULL)", [row])
    settings = settings_of(cluster, "part")
    with open_replica(settings, tables=["held"]) as part:
        first = part.store.path.stat().st_ino
        change = "ALTER TABLE held DROP CONSTRAINT held_pkey, ADD PRIMARY KEY (b)"
        ended(watch, begin(producer, change))
        until(lambda: len(part.part.table_ids()) == 2, "the table that has the rows now")
    update = {"table": "held", "op": "update", "key": {"b": 30}, "values": {"a": 33}}
    assert settled(producer.submit(update)).lsn
    with open_replica(settings, tables=["held"]) as part:
        assert part.store.path.stat().st_ino == first
        assert part.get("held", 30) == {"a": 33, "b": 30}


HEAP = "ALTER TABLE heap ADD COLUMN id bigserial PRIMARY KEY"


def test_a_new_column_becomes_the_key_while_rows_come(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, replica: Replica
) -> None:
    """Rows of before are numbered, and those that come meanwhile, whoever knows of the column; once
    it is the key a request names rows by it."""
    insert = {"table": "heap", "op": "insert"}
    rows = [{**insert, "values": {"tag": f"tag {n}"}} for n in range(ROWS)]
    made_tables(producer, "CREATE TABLE heap (tag text)", rows)
    job, tags = begin(producer, HEAP), [f"tag {n}" for n in range(ROWS)]

    def add(**key: int) -> None:
        tag = f"later {len(tags)}"
        fields = {**insert, "values": {"tag": tag}, **({"key": key} if key else {})}
        outcome = settled(producer.submit(fields))
        assert outcome.lsn, outcome
        tags.append(tag)

    while (known := watch.view.jobs.get(job)) is None or not known.job.status.ended:
        add()
    meanwhile = len(tags) - ROWS
    assert meanwhile > 5
    ended(watch, job)
    for number in range(5):
        add()
        add(id=1_000_000 + number)
    update = {"table": "heap", "op": "update", "key": {"id": 1_000_000}, "values": {"tag": "mine"}}
    outcome = settled(producer.submit(update))
    assert outcome.lsn, outcome
    replica.wait_applied(outcome.lsn)
    replica.wait_coherent()
    found = list(replica.scan("heap"))
    assert sum(row["tag"] == "mine" for row in found) == 1
    ids = [row["id"] for row in found]
    assert len({*ids}) == len(ids) == len(tags)
    assert sum(number >= 1_000_000 for number in ids) == 5
    twice = {**insert, "key": {"id": ids[1]}, "values": {}, "on_conflict": "fail"}
    assert settled(producer.submit(twice)).code == "23505"
    assert_consistent(cluster, NODES)
