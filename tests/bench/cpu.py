"""Processor time of the processes of a stand: what work costs, whatever else runs here."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from infra.kafka import warm_up
from infra.local_cluster import LocalCluster
from infra.process_table import Identity, ProcessEntry, all_entries

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")

Tree: TypeAlias = Mapping[Identity, ProcessEntry]
"""A process and all below it: Spark is a driver, a JVM and its Python workers."""


def cpu_times(cluster: LocalCluster, names: Iterable[str]) -> dict[str, Tree]:
    """Of each of the cluster's processes that runs, what it and all below it took so far."""
    records = {name: cluster.processes.find(name) for name in names}
    pids = {name: record.identity.pid for name, record in records.items() if record is not None}
    trees = tree_times(pids.values())
    return {name: trees[pid] for name, pid in pids.items() if pid in trees}


def tree_times(pids: Iterable[int]) -> dict[int, Tree]:
    """What each process that runs, and all below it, took so far: one look at all of them."""
    entries: dict[int, ProcessEntry] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for entry in all_entries():
        entries[entry.identity.pid] = entry
        children[entry.parent].append(entry.identity.pid)

    def below(pid: int) -> Iterator[ProcessEntry]:
        yield entries[pid]
        for child in children[pid]:
            yield from below(child)

    return {pid: {each.identity: each for each in below(pid)} for pid in pids if pid in entries}


def spent_s(before: Tree, after: Tree) -> float:
    """Seconds of processor time between two looks at one tree. Of a process that ended in between
    what its parent was told counts; of one that nobody waited for (PySpark's workers: their daemon
    ignores SIGCHLD) what it took since the first look is missing."""
    survivors = {process.pid for process in before if process in after}
    parents = {process.pid: entry.parent for process, entry in before.items()}
    known: dict[int, int] = defaultdict(int)
    for process, entry in before.items():
        if process not in after:
            told = entry.parent
            while told not in survivors and told in parents:
                told = parents[told]
            known[told] += entry.own_ticks + entry.ended_ticks
    ticks = 0
    for process, entry in after.items():
        then = before.get(process)
        own, ended = (then.own_ticks, then.ended_ticks) if then is not None else (0, 0)
        ticks += entry.own_ticks - own
        ticks += max(0, entry.ended_ticks - ended - known[process.pid])
    return ticks / TICKS_PER_S


def compiler_seconds(cluster: LocalCluster) -> float:
    """Processor time so far of the broker's optimising compiler; 0 where no broker runs."""
    record = cluster.processes.find("kafka")
    return 0.0 if record is None else warm_up.compiler_seconds(record.identity.pid)


def per_unit(before: Mapping[str, Tree], after: Mapping[str, Tree], units: float) -> str:
    """Words: µs of processor time per unit of work, by process and in all."""
    spent = {name: spent_s(before[name], after[name]) for name in before.keys() & after.keys()}
    words = [f"{name} {spent[name] / units * 1e6:.1f}" for name in sorted(spent)]
    return ", ".join([*words, f"in all {sum(spent.values()) / units * 1e6:.1f}"])
