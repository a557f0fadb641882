"""Processor time of the processes of a stand: what work costs, whatever else runs here."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from infra.local_cluster import LocalCluster

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
# Of what follows the command's name in /proc/<pid>/stat (proc(5): fields 4, 14 to 17, 22).
PARENT_FIELD: Final = 1
OWN_TIME_FIELDS: Final = slice(11, 13)
ENDED_TIME_FIELDS: Final = slice(13, 15)
START_FIELD: Final = 19
COMPILER: Final = "C2 Compiler"
"""The first letters of its threads' names, of which Linux keeps fifteen."""


class ProcessId(NamedTuple):
    pid: int
    start: int
    """In ticks since boot: a pid comes again."""


class ProcessTime(NamedTuple):
    """User and system time so far, in ticks."""

    parent: int
    own: int
    ended: int
    """Of children that have ended and were waited for, with all below them."""


Tree: TypeAlias = Mapping[ProcessId, ProcessTime]
"""A process and all below it: Spark is a driver, a JVM and its Python workers."""


def cpu_times(cluster: LocalCluster, names: Iterable[str]) -> dict[str, Tree]:
    """Of each of the cluster's processes that runs, what it and all below it took so far."""
    records = {name: cluster.processes.find(name) for name in names}
    pids = {name: record.identity.pid for name, record in records.items() if record is not None}
    trees = tree_times(pids.values())
    return {name: trees[pid] for name, pid in pids.items() if pid in trees}


def tree_times(pids: Iterable[int]) -> dict[int, Tree]:
    """What each process that runs, and all below it, took so far: one look at all of them."""
    times: dict[int, tuple[ProcessId, ProcessTime]] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*"):
        _, fields = _stat(path)
        if not fields:
            continue
        pid, parent = int(path.name), int(fields[PARENT_FIELD])
        own, ended = _ticks(fields, OWN_TIME_FIELDS), _ticks(fields, ENDED_TIME_FIELDS)
        times[pid] = ProcessId(pid, int(fields[START_FIELD])), ProcessTime(parent, own, ended)
        children[parent].append(pid)

    def below(pid: int) -> Iterator[tuple[ProcessId, ProcessTime]]:
        yield times[pid]
        for child in children[pid]:
            yield from below(child)

    return {pid: dict(below(pid)) for pid in pids if pid in times}


def spent_s(before: Tree, after: Tree) -> float:
    """Seconds of processor time between two looks at one tree. Of a process that ended in between
    what its parent was told counts; of one that nobody waited for (PySpark's workers: their daemon
    ignores SIGCHLD) what it took since the first look is missing."""
    survivors = {process.pid for process in before if process in after}
    parents = {process.pid: time.parent for process, time in before.items()}
    known: dict[int, int] = defaultdict(int)
    for process, time in before.items():
        if process not in after:
            told = time.parent
            while told not in survivors and told in parents:
                told = parents[told]
            known[told] += time.own + time.ended
    nothing = ProcessTime(0, 0, 0)
    ticks = 0
    for process, time in after.items():
        then = before.get(process, nothing)
        ticks += time.own - then.own
        ticks += max(0, time.ended - then.ended - known[process.pid])
    return ticks / TICKS_PER_S


def compiler_seconds(cluster: LocalCluster) -> float:
    """Processor time so far of the broker's optimising compiler; 0 where no broker runs."""
    record = cluster.processes.find("kafka")
    if record is None:
        return 0.0
    threads = map(_stat, Path(f"/proc/{record.identity.pid}/task").glob("*"))
    own = (_ticks(fields, OWN_TIME_FIELDS) for name, fields in threads if COMPILER in name)
    return sum(own) / TICKS_PER_S


def _stat(path: Path) -> tuple[str, list[str]]:
    """Name and the fields behind it of the process or thread there; nothing of one that ended."""
    try:
        # The name in parentheses may hold blanks: fields are counted from behind it.
        name, _, fields = (path / "stat").read_text().rpartition(")")
    except OSError:
        return "", []
    return name, fields.split()


def _ticks(fields: list[str], which: slice) -> int:
    return sum(map(int, fields[which]))


def per_unit(before: Mapping[str, Tree], after: Mapping[str, Tree], units: float) -> str:
    """Words: µs of processor time per unit of work, by process and in all."""
    spent = {name: spent_s(before[name], after[name]) for name in before.keys() & after.keys()}
    words = [f"{name} {spent[name] / units * 1e6:.1f}" for name in sorted(spent)]
    return ", ".join([*words, f"in all {sum(spent.values()) / units * 1e6:.1f}"])
