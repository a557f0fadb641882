"""Group step: from a published descriptor to the fence, with so many agents holding leases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from infra.demo.changes import steps_of
from leasehold.adapters.redis.ledger import RedisLedger
from leasehold.lease.commands import Snapshot
from leasehold.lease.replies import SnapshotReport
from tests.bench.bench_settings import BenchSettings
from tests.bench.child import Child
from tests.bench.figure import Figure, percentile
from tests.bench.jobs_reader import Ended
from tests.bench.stand import BenchFailure, Stand, say, stand

AGENTS: Final = (3, 10, 100)
AGENTS_PER_PROCESS_MAX: Final = 25
CHANGES: Final = 7
JOB_TIMEOUT_S: Final = 120.0
HELD_TIMEOUT_S: Final = 60.0
LOOK_AGAIN_S: Final = 0.1
END_TO_END_AGENTS: Final = 10


def measure(settings: BenchSettings) -> Iterator[Figure]:
    """Agents are added, never taken away: a session that ended would have to run out first."""
    with stand(["m1", "r1", "changefeed", "spark"], settings.warm_up) as where:
        where.submit({"sql": "CREATE TABLE t (id bigint PRIMARY KEY, n bigint)"})
        present = 0
        for agents in AGENTS:
            add_agents(where, present, agents, AGENTS_PER_PROCESS_MAX)
            present = agents
            # The first one is the warm-up.
            ended = [change(where, agents, number) for number in range(CHANGES + 1)][1:]
            yield from _steps(agents, ended)
            if agents == END_TO_END_AGENTS:
                took = [one.took_ms for one in ended]
                yield Figure("add_column_e2e", percentile(took, 0.5), "ms")
                yield Figure("empty_index_e2e", _empty_indexes(where), "ms")


def _steps(agents: int, ended: list[Ended]) -> Iterator[Figure]:
    drains = [drain for one in ended for _, _, drain in steps_of(one.job)]
    say(f"{agents} agents: {', '.join(f'{drain:.1f}' for drain in drains)} ms")
    yield Figure(f"step_p50_{agents}", percentile(drains, 0.5), "ms")
    yield Figure(f"step_p99_{agents}", percentile(drains, 0.99), "ms")


def _empty_indexes(where: Stand) -> float:
    """A whole CREATE INDEX on an empty table, Spark's backfill of no rows included."""
    took = []
    for number in range(CHANGES + 1):
        ended = where.change(f"CREATE INDEX t_n_{number} ON t (n)", JOB_TIMEOUT_S)
        took.append(ended.took_ms)
    return percentile(took[1:], 0.5)


def add_agents(where: Stand, present: int, wanted: int, per_process_max: int) -> list[Child]:
    """Start processes with agents on table t, until there are so many; return them when each of
    their agents holds a lease."""
    say(f"{wanted - present} more agents")
    hosts = []
    while present < wanted:
        count = min(per_process_max, wanted - present)
        hosts.append(where.child(f"agents{present}", "agent_host", "t", count))
        present += count
    for host in hosts:
        host.wait_ready()
    return hosts


def wait_held(where: Stand, agents: int) -> None:
    """Until so many agents and the replicant hold a lease on the newest version of the table made
    last, and on no other. A lease that nobody has used since the step before is given up in a step
    and asked for again some time later: without this wait, most steps would have nobody to wait
    for, and be measured as too short."""
    give_up = time.monotonic() + HELD_TIMEOUT_S
    ledger = RedisLedger(where.settings.redis, where.settings.cluster.database)
    with closing(ledger):
        while time.monotonic() < give_up:
            reply = ledger.call(Snapshot())
            assert isinstance(reply, SnapshotReport), reply
            table = reply.tables[-1]
            if table.leases == ((table.current, agents + 1),):
                return
            time.sleep(LOOK_AGAIN_S)
    raise BenchFailure(f"{agents} agents do not all hold a lease after {HELD_TIMEOUT_S:g} s")


def change(where: Stand, agents: int, number: int) -> Ended:
    """Add a column to table t while all agents hold a lease on it."""
    wait_held(where, agents)
    return where.change(f"ALTER TABLE t ADD COLUMN c{agents}_{number} text", JOB_TIMEOUT_S)
