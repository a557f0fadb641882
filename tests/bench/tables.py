"""Group tables: what a database of so many tables costs: CREATE TABLE beside writers, commands,
an embedded replica, a cluster at rest, memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

from infra.process_table import PROC
from leasehold.adapters.os.clock import boottime_ns
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.replica.replica import open_replica
from tests.bench.bench_settings import BenchSettings
from tests.bench.commands import TIMEOUT_S, command_ms
from tests.bench.cpu import cpu_times, spent_s
from tests.bench.figure import Figure, percentile
from tests.bench.pacing import Span, Write, due_between
from tests.bench.stand import BenchFailure, Stand, replicants, say, stand

TENTH: Final = 10
JOBS_A_TABLE: Final = 2.5
IN_FLIGHT: Final = 100
CREATED: Final = 30
WRITES_PER_S: Final = 200
WRITTEN_ROWS: Final = 100
QUIET_S: Final = 5.0
IDLE_S: Final = 10.0
JOBS_TIMEOUT_S: Final = 1_800.0
COMMANDS: Final = ("status", "jobs", "versions", "leases")
METRICS: Final = (
    *("create_table_p50", "create_table_p99", "tables_write_p99_ratio"),
    *(f"{command}_took" for command in COMMANDS),
    *("connect_took", "idle_cpu"),
)
PER_TABLE: Final = ("table_memory_nodes", "table_memory_broker")


def sizes_of(settings: BenchSettings) -> tuple[int, int]:
    return settings.tables // TENTH, settings.tables


def measure(settings: BenchSettings) -> Iterator[Figure]:
    names = ["m1", *replicants(settings.replicants), "changefeed"]
    with stand(names, settings.warm_up) as where:
        where.submit({"sql": "CREATE TABLE w (id bigint PRIMARY KEY, n bigint)"})
        for key in range(WRITTEN_ROWS):
            where.submit({"table": "w", "op": "insert", "key": [key], "values": {"n": 0}})
        there = jobs = 0
        memory: list[tuple[int, int, int]] = []
        for size in sizes_of(settings):
            _make_tables(where, there, size)
            _run_jobs(where, size, jobs, int(size * JOBS_A_TABLE))
            there, jobs = size, int(size * JOBS_A_TABLE)
            yield from _created(where, size)
            for command in COMMANDS:
                yield Figure(f"{command}_took_{size}", command_ms(where, command), "ms")
            yield Figure(f"connect_took_{size}", _connect_ms(where, size), "ms")
            yield Figure(f"idle_cpu_{size}", _idle_cores(where, names), "cores")
            memory.append((size, _kilobytes(where, names), _kilobytes(where, ["kafka"])))
        (few, *before), (many, *after) = memory
        for name, old, new in zip(PER_TABLE, before, after, strict=True):
            yield Figure(name, (new - old) / (many - few), "kB")


def _make_tables(where: Stand, first: int, end: int) -> None:
    say(f"making tables up to {end:,}")
    _all_of(
        where,
        [
            f"CREATE TABLE t{n} (id bigint PRIMARY KEY, a text, b text, n bigint NOT NULL)"
            for n in range(first, end)
        ],
    )


def _run_jobs(where: Stand, tables: int, first: int, end: int) -> None:
    """Run quick changes of all tables, side by side, which no store is altered for: what ended jobs
    cost is asked, and SQLite reads its whole schema again for each column. Raises BenchFailure."""
    say(f"running jobs up to {end:,}")
    with ClusterWatch(where.settings) as watch:
        for begin in range(first, end, tables):
            some = range(begin, min(end, begin + tables))
            _all_of(where, [f"ALTER TABLE t{n % tables} ALTER a SET DEFAULT 'a{n}'" for n in some])
            known = some.stop
            if not watch.wait_for(lambda seen, n=known: _ended(seen) >= n, JOBS_TIMEOUT_S):  # type: ignore[misc]
                raise BenchFailure(f"{known:,} jobs did not end in {JOBS_TIMEOUT_S:g} s")


def _ended(view: ClusterView) -> int:
    return sum(1 for job in view.jobs.values() if job.status.ended)


def _all_of(where: Stand, statements: Sequence[str]) -> None:
    """Submit schema statements, many at once. Raises BenchFailure for a refusal."""
    for begin in range(0, len(statements), IN_FLIGHT):
        some = statements[begin : begin + IN_FLIGHT]
        pending = [where.producer.submit({"sql": sql}) for sql in some]
        for sql, each in zip(some, pending, strict=True):
            outcome = each.result(TIMEOUT_S)
            if not outcome.lsn:
                raise BenchFailure(f"{sql} was refused: {outcome.message}")


def _created(where: Stand, size: int) -> Iterator[Figure]:
    """Tables made one after the other, beside writes to another one."""
    writer = where.child("writer", "steady_writer", "w", WRITTEN_ROWS, WRITES_PER_S)
    writer.wait_ready()
    alone = _quiet()
    took = []
    begin_ns = boottime_ns()
    for number in range(CREATED):
        sql = f"CREATE TABLE c{size}_{number} (id bigint PRIMARY KEY, a text, n bigint NOT NULL)"
        asked = time.perf_counter()
        where.submit({"sql": sql})
        took.append((time.perf_counter() - asked) * 1e3)
    beside = Span(begin_ns, boottime_ns())
    after = _quiet()
    writes = [Write(*each) for each in writer.answer(stop=True)]
    quiet = [*due_between(writes, *alone), *due_between(writes, *after)]
    ratio = percentile(due_between(writes, *beside), 0.99) / percentile(quiet, 0.99)
    yield Figure(f"create_table_p50_{size}", percentile(took, 0.5), "ms")
    yield Figure(f"create_table_p99_{size}", percentile(took, 0.99), "ms")
    yield Figure(f"tables_write_p99_ratio_{size}", ratio, "times")


def _quiet() -> Span:
    begin_ns = boottime_ns()
    time.sleep(QUIET_S)
    return Span(begin_ns, boottime_ns())


def _connect_ms(where: Stand, size: int) -> float:
    """From nothing to an embedded replica that answers, the copy of the rows included."""
    begin = time.perf_counter()
    with open_replica(where.named(f"bench-connect-{size}")):
        return (time.perf_counter() - begin) * 1e3


def _idle_cores(where: Stand, names: Sequence[str]) -> float:
    """Processor time of the whole cluster while nobody asks anything of it."""
    of = ["kafka", "redis", *names]
    time.sleep(QUIET_S)
    before, begin = cpu_times(where.cluster, of), time.monotonic()
    time.sleep(IDLE_S)
    after, lasted = cpu_times(where.cluster, of), time.monotonic() - begin
    spent = {name: spent_s(before[name], after[name]) / lasted for name in of}
    say("cores at rest: " + ", ".join(f"{name} {cores:.3f}" for name, cores in spent.items()))
    return sum(spent.values())


def _kilobytes(where: Stand, names: Sequence[str]) -> int:
    """Memory that these processes have to themselves and in files, as the kernel counts it."""
    found = 0
    for name in names:
        record = where.cluster.processes.find(name)
        assert record is not None, f"{name} runs"
        lines = (PROC / str(record.identity.pid) / "status").read_text().splitlines()
        found += next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    return found
