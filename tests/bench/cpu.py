"""Processor time of the processes of a stand: what work costs, whatever else runs here."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from infra.local_cluster import LocalCluster

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
# Of what follows the command's name in /proc/<pid>/stat (proc(5): fields 4, 14 to 17).
PARENT_FIELD: Final = 1
FIRST_TIME_FIELD: Final = 11
OWN_TIME_FIELDS: Final = 2
TIME_FIELDS: Final = 4
"""User and system time of the process, then of those of its children that have ended."""
COMPILER: Final = "C2 Compiler"
"""The first letters of its threads' names, of which Linux keeps fifteen."""


def cpu_seconds(cluster: LocalCluster, names: Iterable[str]) -> dict[str, float]:
    """User and system time so far of each process that runs, with all processes below it: Spark
    is a driver, a JVM and its Python workers."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*"):
        _, fields = _stat(path)
        if not fields:
            continue
        ticks[int(path.name)] = _ticks(fields, TIME_FIELDS)
        children[int(fields[PARENT_FIELD])].append(int(path.name))

    def of_tree(pid: int) -> int:
        return ticks.get(pid, 0) + sum(map(of_tree, children[pid]))

    found = {}
    for name in names:
        record = cluster.processes.find(name)
        if record is not None:
            found[name] = of_tree(record.identity.pid) / TICKS_PER_S
    return found


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


def _ticks(fields: list[str], count: int) -> int:
    return sum(map(int, fields[FIRST_TIME_FIELD : FIRST_TIME_FIELD + count]))


def per_unit(before: dict[str, float], after: dict[str, float], units: float) -> str:
    """Words: µs of processor time per unit of work, by process and in all."""
    spent = {name: after[name] - before[name] for name in before.keys() & after.keys()}
    words = [f"{name} {spent[name] / units * 1e6:.1f}" for name in sorted(spent)]
    return ", ".join([*words, f"in all {sum(spent.values()) / units * 1e6:.1f}"])
