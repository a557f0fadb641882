"""Group step: from a published descriptor to the fence, with so many agents holding leases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from infra.demo.changes import steps_of
from tests.bench.bench_settings import BenchSettings
from tests.bench.figure import Figure, percentile
from tests.bench.jobs_reader import Ended
from tests.bench.stand import Stand, say, stand

AGENTS: Final = (3, 10, 100)
AGENTS_PER_PROCESS_MAX: Final = 25
CHANGES: Final = 7
JOB_TIMEOUT_S: Final = 120.0
END_TO_END_AGENTS: Final = 10


def measure(settings: BenchSettings) -> Iterator[Figure]:
    """Agents are added, never taken away: a session that ended would have to run out first."""
    del settings
    with stand(["m1", "r1", "changefeed"]) as where:
        where.submit({"sql": "CREATE TABLE t (id bigint PRIMARY KEY, n bigint)"})
        present = 0
        for agents in AGENTS:
            _add(where, present, agents)
            present = agents
            ended = list(_changes(where, agents))
            drains = [drain for one in ended for _, _, drain in steps_of(one.job)]
            say(f"{agents} agents: {', '.join(f'{drain:.1f}' for drain in drains)} ms")
            yield Figure(f"step_p50_{agents}", percentile(drains, 0.5), "ms")
            if agents == END_TO_END_AGENTS:
                took = [one.took_ms for one in ended]
                yield Figure("add_column_e2e", percentile(took, 0.5), "ms")


def _add(where: Stand, present: int, wanted: int) -> None:
    say(f"{wanted - present} more agents")
    hosts = []
    while present < wanted:
        count = min(AGENTS_PER_PROCESS_MAX, wanted - present)
        hosts.append(where.child(f"agents{present}", "agent_host", "t", count))
        present += count
    for host in hosts:
        host.wait_ready()


def _changes(where: Stand, agents: int) -> Iterator[Ended]:
    """The first change is the warm-up."""
    for number in range(CHANGES + 1):
        sql = f"ALTER TABLE t ADD COLUMN c{agents}_{number} text"
        ended = where.change(sql, JOB_TIMEOUT_S)
        if number:
            yield ended
