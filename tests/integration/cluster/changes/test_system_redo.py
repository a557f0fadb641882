"""False conflicts on real Kafka and Spark: rows that are right (again) fail no change.

Comdb2's `sc_redo_false_conflict` (scenario 68), and its counterpart where constraints are looked
through: what is mended before its slice is looked at.
"""

from __future__ import annotations

from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.job import Phase, Status
from leasehold.model.records.requests import Outcome
from leasehold.replica.write_set import WriteSet
from tests.integration.cluster.changes import NODES
from tests.support.cluster.system_cluster import assert_consistent, seen
from tests.support.cluster.system_jobs import at_full_speed, begin, ended, slowly
from tests.support.cluster.system_load import made_tables, settled

ROWS = 300
SLOW = 100
"""Rows per second: a pass takes some seconds, and one micro-batch holds every image."""
LATE = 2 * SLOW + 50
"""A row of the third slice: with a rate set none has more rows than a second's."""
TOO_MUCH = 20_000
BOUNDED = f"ALTER TABLE redone ADD CONSTRAINT bounded CHECK (n < {TOO_MUCH})"


@pytest.fixture(scope="module", autouse=True)
def table(producer: ChangeProducer) -> None:
    sql = "CREATE TABLE redone (id bigint PRIMARY KEY, n int)"
    rows = [change(key, "insert", key) for key in range(1, ROWS + 1)]
    # Nobody else has the value that is passed around.
    rows[99] = change(100, "insert", 10_000)
    made_tables(producer, sql, rows)


def change(key: int, op: str, value: int) -> dict[str, Any]:
    return {"table": "redone", "op": op, "key": {"id": key}, "values": {"n": value}}


def put(producer: ChangeProducer, key: int, value: int) -> Outcome:
    return settled(producer.submit({**change(key, "update", value), "on_conflict": "fail"}))


def in_the_middle(watch: ClusterWatch, job: int, phase: Phase) -> None:
    """Until Spark has read rows in that phase, and is held by the rate."""

    def met(view: ClusterView) -> bool:
        found, progress = view.jobs.get(job), view.progress.get(job)
        assert found is None or not found.job.status.ended, found
        return (
            found is not None
            and found.job.phase is phase
            and progress is not None
            and progress.run == found.job.run
            and progress.rows > 0
        )

    seen(watch, met, f"the middle of {phase.value}")


def test_sc_redo_false_conflict(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica
) -> None:
    """68. While the index is built a row goes 1 → 100 → 1, then another 2 → 100: no two rows were
    ever equal, and the change goes through."""
    job = slowly(producer, "CREATE UNIQUE INDEX redone_n ON redone (n)", SLOW)
    in_the_middle(watch, job, Phase.BACKFILLING)
    for key, value in ((1, 100), (1, 1), (2, 100)):
        assert put(producer, key, value).lsn
    at_full_speed(producer, job)
    found = ended(watch, job)
    assert (found.error, found.findings) == ("", ())
    replica.wait_coherent()
    assert [row["id"] for row in replica.get_by("redone_n", 100)] == [2]
    assert put(producer, 3, 100).code == "23505"


def begun_slowly(replica: Replica, producer: ChangeProducer, sql: str) -> int:
    """Begin a change that nobody has looked at a row for before its rate is set: a transaction
    holds the version before meanwhile."""

    def work(writes: WriteSet) -> int:
        writes.get("redone", 1)
        return slowly(producer, sql, SLOW)

    return replica.transact(work, verify_retry=False).value


def behind_the_first_slice(watch: ClusterWatch, job: int) -> None:
    """Until every node has looked at the first rows, and the rate holds the next slice up."""

    def met(view: ClusterView) -> bool:
        found = view.jobs.get(job)
        assert found is None or not found.job.status.ended, found
        return found is not None and found.job.phase is Phase.VERIFYING and found.job.looked > 0

    seen(watch, met, "the second slice")


def test_rows_that_are_mended_before_their_slice_fail_nothing(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica
) -> None:
    """Goal: two rows break a CHECK, both change while rows before them are looked at: the change
    goes through, and nobody but the nodes has read a row for it."""
    for key in (LATE, LATE + 1):
        assert put(producer, key, TOO_MUCH + key).lsn
    job = begun_slowly(replica, producer, BOUNDED)
    behind_the_first_slice(watch, job)
    for key in (6, LATE + 2):
        words = "new writes are checked already, wherever their slice is"
        assert put(producer, key, TOO_MUCH + key).code == "23514", words
    for key in (LATE, LATE + 1):
        assert put(producer, key, 500 + key).lsn
    at_full_speed(producer, job)
    found = ended(watch, job)
    assert (found.error, found.findings) == ("", ())
    assert "validating" not in {phase for _, phase, _ in found.marks}


def test_those_that_stay_fail_the_change_and_are_named(
    watch: ClusterWatch, producer: ChangeProducer, replica: Replica
) -> None:
    """Goal: of four rows that break it two are mended meanwhile; the job fails for the others
    alone, which it names, and leaves the table as it was."""
    ended(watch, begin(producer, "ALTER TABLE redone DROP CONSTRAINT bounded"))
    for key in range(LATE, LATE + 4):
        assert put(producer, key, TOO_MUCH + key).lsn
    job = begun_slowly(replica, producer, BOUNDED)
    behind_the_first_slice(watch, job)
    for key in (LATE + 2, LATE + 3):
        assert put(producer, key, 600 + key).lsn
    at_full_speed(producer, job)
    found = ended(watch, job, Status.FAILED)
    assert [key for _, _, key, _ in found.findings] == [(LATE,), (LATE + 1,)]
    words = f"2 rows break constraint bounded and perhaps more: row ({LATE},): check 'bounded': "
    assert found.error.startswith(words)
    assert found.code == "23514"
    assert not watch.view.tables[found.table_id].descriptor.checks


def test_every_node_is_consistent(cluster: LocalCluster) -> None:
    assert_consistent(cluster, NODES)
