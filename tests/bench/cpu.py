"""Processor time of the processes of a stand: what a transaction costs, whatever else runs here."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from infra.local_cluster import LocalCluster

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
USER_FIELD: Final = 11  # of what follows the command's name in /proc/<pid>/stat (proc(5): 14, 15)


def cpu_seconds(cluster: LocalCluster, names: Iterable[str]) -> dict[str, float]:
    """User and system time so far of each process that runs."""
    found = {}
    for name in names:
        record = cluster.processes.find(name)
        if record is not None:
            stat = Path(f"/proc/{record.identity.pid}/stat").read_text()
            # The name in parentheses may hold blanks: fields are counted from behind it.
            fields = stat.rpartition(")")[2].split()
            ticks = int(fields[USER_FIELD]) + int(fields[USER_FIELD + 1])
            found[name] = ticks / TICKS_PER_S
    return found


def per_unit(before: dict[str, float], after: dict[str, float], units: float) -> str:
    """Words: µs of processor time per unit of work, by process."""
    spent = {name: after[name] - before[name] for name in before.keys() & after.keys()}
    return ", ".join(f"{name} {spent[name] / units * 1e6:.0f}" for name in sorted(spent))
