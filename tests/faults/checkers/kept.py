"""Judges values of which one client alone has written each once: what was acknowledged is there in
the end. PURE.

What reverts them: a writer under an older version that does not see their column (T0), a fill that
comes when its job is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from tests.faults.workload.history import Op, Told

SHOWN_MAX: Final = 5


class Cell(NamedTuple):
    """One value of a row of a table."""

    table: str
    column: str
    row: int


def judge_kept(ops: Iterable[Op], final: Mapping[str, Mapping[Cell, Any]]) -> list[str]:
    """Return what contradicts; `final`: what each node shows in the end."""
    wanted = {cell: op.value["value"] for op in ops for cell in cells_of(op)}
    found = []
    for node, cells in final.items():
        for cell, value in wanted.items():
            if cell not in cells:
                found.append(f"{node} does not show row {cell.row} of {cell.table}.{cell.column}")
            elif cells[cell] != value:
                words = f"row {cell.row} of {cell.table}.{cell.column} is {cells[cell]!r} on {node}"
                found.append(f"{words}, {value!r} was acknowledged")
    return [f"kept: {words}" for words in found[:SHOWN_MAX]]


def cells_of(op: Op) -> list[Cell]:
    """Return the values that an operation has surely written."""
    if op.kind != "kept" or op.told is not Told.YES:
        return []
    return [Cell(op.value["table"], op.value["column"], row) for row in op.value["ids"]]
