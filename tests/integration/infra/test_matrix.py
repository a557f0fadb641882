"""A few cells of the matrix of schema changes (tests/matrix) on real Kafka, Redis and Spark.

The item's own file says what is foreseen. A job is held before its point of no return, where every
write's outcome is known exactly; what breaks, breaks while it is on its way there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Status
from leasehold.model.records.requests import Outcome
from tests.matrix.definition import Definition, Write, read
from tests.matrix.rows import Accepted, rows_after
from tests.matrix.shape import content_of, shape_of
from tests.matrix.world import OK
from tests.support.cluster.system_cluster import (
    assert_consistent,
    running,
    seen,
)
from tests.support.cluster.system_jobs import await_job, begin, control, ended
from tests.support.cluster.system_load import settled

pytestmark = pytest.mark.long("the matrix on real parts; `make matrix` walks all of it in process")

NODES = ("m1", "m2", "r1")
SERVICES = (*NODES, "changefeed", "spark")
ENVIRON = {**os.environ, "LEASEHOLD_SESSION_TTL_MS": "3000"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with running(tmp_path_factory.mktemp("matrix"), SERVICES, ENVIRON) as made:
        yield made


def accepted(producer: ChangeProducer, fields: dict[str, Any]) -> Outcome:
    outcome = settled(producer.submit(fields))
    assert outcome.lsn, outcome
    return outcome


def newest(watch: ClusterWatch) -> Descriptor:
    """The table that is being changed: the last one made."""
    return watch.view.tables[max(watch.view.tables)].descriptor


class Case:
    """Table m of an item, from its making to its end; `was` is its descriptor before the job."""

    def __init__(
        self, item: str, watch: ClusterWatch, producer: ChangeProducer, replica: Replica
    ) -> None:
        self.definition: Definition = read(item)
        self.watch, self.producer, self.replica = watch, producer, replica
        self.accepted: list[Accepted] = []
        accepted(producer, {"sql": self.definition.table})
        rows = [
            {"table": "m", "op": "insert", "key": {"id": row["id"]}, "values": _values(row)}
            for row in self.definition.rows
        ]
        last = accepted(producer, {"transaction": rows})
        seen(watch, _is_m, "table m")
        replica.wait_applied(last.lsn)
        self.was = newest(watch)

    def begun(self) -> int:
        """The job, told to wait before its point."""
        job = begin(self.producer, self.definition.statement)
        control(self.producer, job, "set", postpone=1)
        return job

    def held(self, job: int) -> None:
        await_job(self.watch, job, lambda job: job.postponed, "its point of no return")

    def write(self, write: Write, shift: int, version: int | None, foreseen: str) -> None:
        outcome = settled(self.producer.submit(write.fields(shift, version)))
        met = OK if outcome.lsn else outcome.code
        assert met == foreseen, (write.name, outcome)
        if outcome.lsn:
            self.accepted.append(Accepted(write, shift, self.definition.point))
            self.replica.wait_applied(outcome.lsn)

    def written(self) -> None:
        """Every write at the point: unpinned, and for the version before, which is fenced off."""
        point = self.definition.point
        for write in self.definition.writes:
            if not write.stale:
                self.write(write, 0, None, write.foreseen(point))
            elif point:
                foreseen = write.foreseen(point)
                self.write(write, 0, self.was.version + point - 1, foreseen)

    def end(self, job: int, status: Status = Status.SUCCEEDED) -> None:
        found = ended(self.watch, job, status)
        succeeded = status is Status.SUCCEEDED
        version = self.was.version + len(found.steps)
        seen(self.watch, lambda _: newest(self.watch).version >= version, f"version {version}")
        if succeeded:
            assert shape_of(newest(self.watch)) == self.definition.after
        else:
            assert content_of(newest(self.watch)) == content_of(self.was)
        self.replica.wait_coherent()
        expected = rows_after(self.definition, self.accepted, succeeded=succeeded)
        shown = {row.pop("id"): row for row in map(dict, self.replica.scan("m"))}
        assert shown.keys() == expected.keys()
        for key, row in shown.items():
            assert row == {name: expected[key].get(name) for name in row}, key
        # It stays, for the last look at every node.
        ended(self.watch, begin(self.producer, f"ALTER TABLE m RENAME TO {self.definition.name}"))


def _values(row: Any) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "id"}


def _is_m(view: ClusterView) -> bool:
    return bool(view.tables) and view.tables[max(view.tables)].descriptor.names == ("m",)


@pytest.fixture
def case(watch: ClusterWatch, producer: ChangeProducer, replica: Replica) -> Callable[[str], Case]:
    return lambda item: Case(item, watch, producer, replica)


# ---------------------------------------------------------------- cells


def test_a_column_is_added_while_spark_is_killed(
    cluster: LocalCluster, case: Callable[[str], Case]
) -> None:
    """57, 61: add_column_not_null_default × Spark crashes × rows at the point."""
    added = case("add_column_not_null_default")
    job = added.begun()
    cluster.kill("spark")
    cluster.start("spark")
    added.held(job)
    added.written()
    control(added.producer, job, "set", postpone=0)
    added.end(job)


def test_a_type_is_changed_while_redis_restarts_and_the_replicant_dies(
    cluster: LocalCluster, case: Callable[[str], Case]
) -> None:
    """61: alter_type_using × Redis restarts, a replicant crashes × rows at the point."""
    changed = case("alter_type_using")
    job = changed.begun()
    cluster.kill("redis")
    cluster.start("redis")
    cluster.kill("r1")
    cluster.start("r1")
    changed.held(job)
    changed.written()
    control(changed.producer, job, "set", postpone=0)
    changed.end(job)


def test_a_unique_index_is_cancelled_at_its_point(case: Callable[[str], Case]) -> None:
    """60, 69: create_unique_index × rows, a duplicate × cancel; then it is as before."""
    made = case("create_unique_index")
    job = made.begun()
    made.held(job)
    made.written()
    for spoiler in made.definition.spoilers:
        made.write(spoiler, 0, None, spoiler.foreseen(made.definition.point))
    control(made.producer, job, "cancel")
    made.end(job, Status.CANCELLED)


def test_several_actions_while_the_master_dies(
    cluster: LocalCluster, case: Callable[[str], Case]
) -> None:
    """61, 62, 75: several_actions × the master crashes × rows at the point."""
    changed = case("several_actions")
    job = changed.begun()
    cluster.kill("m1")
    changed.held(job)
    changed.written()
    cluster.start("m1")
    control(changed.producer, job, "set", postpone=0)
    changed.end(job)


def test_every_node_is_consistent(cluster: LocalCluster) -> None:
    assert_consistent(cluster, NODES)
