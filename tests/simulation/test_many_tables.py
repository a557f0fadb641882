"""What a change of one table costs does not grow with the number of tables that there are, or of
jobs that have ended, and hardly with those that run beside it: counted in calls of this program's
functions and of SQLite, by all nodes of a cluster with real stores, not in time."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import leasehold
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.job import job_from_wire
from leasehold.in_process.bus import Message, Scheduler
from leasehold.in_process.cluster import ClusterShape, MemoryCluster
from leasehold.model.records.log import JobWrite
from leasehold.model.records.requests import Outcome

SOURCE: Final = str(Path(leasehold.__file__).parent)
NOT_COUNTED: Final = ("in_process", "lease/ledger")
"""Stands for Kafka and Redis: the ledger of the models checks all of itself at each call."""
FEW: Final = 20
MANY: Final = 200
ENDED: Final = 500
GROWTH_MAX: Final = 1.15
"""Names and numbers get a digit longer, dictionaries resize."""
BESIDE: Final = 60
BESIDE_GROWTH_MAX: Final = 1.3
"""The plan of a statement, and Spark's choice of runs, look at each job that runs."""
SEC: Final = 1_000_000_000
MS: Final = 1_000_000


class Calls:
    """Counts calls while it is counting."""

    def __init__(self) -> None:
        self.by_place: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return sum(self.by_place.values())

    @contextmanager
    def counting(self) -> Iterator[None]:
        before = sys.getprofile()
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "c_call") or not code.co_filename.startswith(SOURCE):
            return
        place = code.co_filename.removeprefix(SOURCE).lstrip("/")
        if not place.startswith(NOT_COUNTED):
            self.by_place[f"{place}:{code.co_name}"] += 1


class Cluster:
    """A master and a replicant with stores on disk; a changefeed and Spark's part."""

    def __init__(self, folder: Path) -> None:
        self.scheduler = Scheduler(SEC, 1_700_000_000_000_000)
        self.stores: dict[str, SqliteStore] = {}
        self._folder = folder
        self.cluster = MemoryCluster(
            self.scheduler,
            random.Random(1),
            ClusterShape(candidates=1, replicants=1, subscribers=0),
            open_store=self._open_store,
        )
        self._codec = MessagePackCodec()
        self._outcomes: dict[bytes, Outcome] = {}
        self.ended: set[int] = set()
        self.cluster.bus.on_append = self._appended
        self.cluster.start()
        self.until(lambda: self.cluster.master() is not None)
        self.until(lambda: all(node.reads() for node in self.cluster.replicants()))

    def _open_store(self, name: str) -> SqliteStore:
        assert name not in self.stores, "no node crashes here"
        self.stores[name] = SqliteStore(self._folder / name / "store.db")
        return self.stores[name]

    def close(self) -> None:
        for store in self.stores.values():
            store.close()

    def _appended(self, topic: str, partition: int, message: Message) -> None:
        topics = self.cluster.topics
        if message.value is None:
            return
        if topic == topics.results.name:
            for result in self._codec.decode(message.value).results:
                self._outcomes[result.request_id] = result.outcome
        elif topic == topics.jobs.name and message.key.startswith(b"job/"):
            job = job_from_wire(self._codec.decode(message.value).body)
            if job.status.ended:
                self.ended.add(job.job_id)

    def until(self, reached: Callable[[], bool], limit_ms: int = 60_000) -> None:
        end_ns = self.scheduler.now().mono_ns + limit_ms * MS
        while not reached():
            assert self.scheduler.now().mono_ns < end_ns, "that takes too long"
            self.passing(1)

    def passing(self, virtual_ms: int) -> None:
        self.scheduler.run_until(self.scheduler.now().mono_ns + virtual_ms * MS)

    def ask(self, fields: dict[str, Any]) -> Outcome:
        asked = self.cluster.submit({"reply_to": 0, **fields})
        self.until(lambda: asked in self._outcomes)
        outcome = self._outcomes[asked]
        assert outcome.lsn, outcome
        return outcome

    def make_tables(self, first: int, end: int, prefix: str = "t") -> None:
        for number in range(first, end):
            columns = "id bigint primary key, a text, n bigint not null unique"
            self.ask({"sql": f"create table {prefix}{number} ({columns})"})

    def run_job(self, sql: str) -> None:
        job = self.ask({"sql": sql}).answer["job"]
        self.until(lambda: job in self.ended)

    def run_jobs(self, count: int, column: str) -> None:
        """Change as many tables at once."""
        sql = [f"alter table t{number} add column {column} bigint" for number in range(count)]
        asked = [self.cluster.submit({"reply_to": 0, "sql": each}) for each in sql]
        self.until(lambda: self._outcomes.keys() >= set(asked))
        jobs = {self._outcomes[each].answer["job"] for each in asked}
        self.until(lambda: jobs <= self.ended)

    def put_ended_jobs(self, count: int) -> None:
        """Have nodes know of so many jobs that have ended, as if the log had told of them: copies
        of one that has."""
        master = self.cluster.master()
        assert master is not None
        assert master.node is not None
        like = next(job for job in master.node.catalog.jobs.values() if job.status.ended)
        for node in self.cluster.nodes.values():
            assert node.node is not None
            for number in range(1_000, 1_000 + count):
                job = replace(like, job_id=number)
                node.node.catalog.apply(JobWrite(number, job.to_wire()), 0, 0)
        self.make_tables(0, 1, "behind")  # who follows the catalog takes them now

    def read_all(self) -> None:
        """Look at the catalog as a reader of each replicant does."""
        for node in self.cluster.replicants():
            with self.stores[node.settings.name].open_snapshot() as snapshot:
                assert snapshot.catalog.newest


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


def create(cluster: Cluster, mark: str) -> None:
    cluster.make_tables(0, 3, mark)


def change(cluster: Cluster, mark: str) -> None:
    cluster.run_job(f"alter table t3 add column {mark} bigint")


def drop(cluster: Cluster, mark: str) -> None:
    cluster.run_job(f"drop table {mark}1")


def write(cluster: Cluster, mark: str) -> None:
    for number in range(150):  # old images, and what is dead, are looked for every 64 records
        op = {"table": f"{mark}0", "op": "upsert", "key": {"id": 1}, "values": {"n": number}}
        cluster.ask(op)


def rest(cluster: Cluster, mark: str) -> None:
    cluster.passing(5_000)


WORK: Final[dict[str, Callable[[Cluster, str], None]]] = {
    each.__name__: each for each in (create, change, drop, write, rest)
}


def count(cluster: Cluster, mark: str) -> dict[str, Calls]:
    """Return the calls of each kind of work, up to when the cluster is at rest again."""
    found = {}
    cluster.passing(5_000)
    cluster.read_all()
    for name, work in WORK.items():
        calls = found[name] = Calls()
        with calls.counting():
            work(cluster, mark)
            cluster.read_all()
            cluster.passing(500)
    return found


def test_what_a_table_costs_does_not_grow_with_their_number(cluster: Cluster) -> None:
    cluster.make_tables(0, FEW)
    count(cluster, "warm")
    few = count(cluster, "few")
    cluster.make_tables(FEW, MANY)
    cluster.put_ended_jobs(ENDED)
    many = count(cluster, "many")
    for name, calls in many.items():
        grown = calls.by_place - few[name].by_place
        words = f"{name}: {few[name].total:,} → {calls.total:,}; {grown.most_common(8)}"
        assert calls.total <= GROWTH_MAX * few[name].total, words


def test_what_a_job_costs_hardly_grows_with_those_beside_it(cluster: Cluster) -> None:
    few = BESIDE // 10
    cluster.make_tables(0, BESIDE)
    cluster.run_jobs(few, "warm")
    found = {}
    for count in (few, BESIDE):
        cluster.passing(5_000)
        with (calls := Calls()).counting():
            cluster.run_jobs(count, f"beside_{count}")
        found[count] = Counter({place: n // count for place, n in calls.by_place.items()})
    grown = found[BESIDE] - found[few]
    words = f"{found[few].total():,} → {found[BESIDE].total():,}; {grown.most_common(8)}"
    assert found[BESIDE].total() <= BESIDE_GROWTH_MAX * found[few].total(), words
