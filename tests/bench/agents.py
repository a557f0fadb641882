"""Group agents: a step of a schema change with a thousand agents that hold leases, in few
processes; and the processor time that it takes, since the rest is for the machine's hour to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from infra.demo.changes import steps_of
from tests.bench.bench_settings import BenchSettings
from tests.bench.child import Child
from tests.bench.cpu import Tree, cpu_times, spent_s, tree_times
from tests.bench.figure import Figure, percentile
from tests.bench.stand import Stand, say, stand
from tests.bench.step import CHANGES, add_agents, change

PER_PROCESS_MAX: Final = 100
SERVICES: Final = ("m1", "r1", "changefeed")
METRICS: Final = ("agents_step_p50", "agents_step_p99", "agents_step_cpu")


def measure(settings: BenchSettings) -> Iterator[Figure]:
    """Processor time is of all processes from change to change, so with what agents do besides:
    they renew their sessions, and ask for the leases that they had given up."""
    with stand(SERVICES, settings.warm_up) as where:
        where.submit({"sql": "CREATE TABLE t (id bigint PRIMARY KEY, n bigint)"})
        hosts = add_agents(where, 0, settings.agents, PER_PROCESS_MAX)
        change(where, settings.agents, 0)
        before = _times(where, hosts)
        ended = [change(where, settings.agents, number) for number in range(1, CHANGES + 1)]
        after = _times(where, hosts)
        drains = [drain for one in ended for _, _, drain in steps_of(one.job)]
        say(f"{settings.agents} agents: {', '.join(f'{drain:.1f}' for drain in drains)} ms")
        spent = {name: spent_s(before[name], after[name]) / len(drains) * 1e3 for name in before}
        say("ms of processor time a step: " + ", ".join(f"{n} {ms:.1f}" for n, ms in spent.items()))
        yield Figure("agents_step_p50", percentile(drains, 0.5), "ms")
        yield Figure("agents_step_p99", percentile(drains, 0.99), "ms")
        yield Figure("agents_step_cpu", sum(spent.values()), "ms")


def _times(where: Stand, hosts: list[Child]) -> Mapping[str, Tree]:
    """Processor time so far of the cluster's processes, and of all agents' together."""
    trees = tree_times(host.pid for host in hosts)
    together = {process: entry for tree in trees.values() for process, entry in tree.items()}
    return {**cpu_times(where.cluster, ("kafka", "redis", *SERVICES)), "agents": together}
