"""Judges schema changes: what was acknowledged is there, with all rows, and nodes agree. PURE.

A change that was refused, or of which nobody was told, may have been carried out or not; its table
is not looked at here, but by `leasehold check`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tests.faults.workload.history import Op, Told
from tests.matrix.definition import TABLE

FAILED: Final = "failed"
Shapes = Mapping[str, Sequence[str]]
"""By `schema.table`: the table in words (`tests/matrix/shape.py`)."""


def judge_changes(
    ops: Iterable[Op], shapes: Shapes, counts: Mapping[str, Mapping[str, int]]
) -> list[str]:
    """Return what contradicts. `counts`: of each node, by `schema.table`, how many rows it has."""
    found = []
    for op in ops:
        if op.kind != "change" or op.told is not Told.YES:
            continue
        table, item, after = table_of(op), op.value["item"], op.value["after"]
        if op.value["ends"] == FAILED:
            found.append(f"{item}: rows break it, and it was acknowledged")
            continue
        shown = list(shapes.get(table, ()))
        if shown != list(after):
            found.append(f"{item}: acknowledged, and the table is {shown}, not {list(after)}")
        if not after:
            continue
        for node, its in counts.items():
            if its.get(table) != op.value["rows"]:
                had = op.value["rows"]
                found.append(f"{item}: {node} has {its.get(table)} rows of {table}, not {had}")
    return [f"change: {words}" for words in found]


def table_of(op: Op) -> str:
    """Return the name of the table that a change is about, as it is called afterwards."""
    after = op.value["after"]
    name = after[0].removeprefix("table ") if after else TABLE
    return f"{op.value['schema']}.{name}"


def count_changes(ops: Iterable[Op]) -> Counter[tuple[str, str]]:
    """Return how often each item was carried out, by its name and what was told: "yes", "unknown",
    or the SQLSTATE of its refusal, with a word where its tables could not be made."""
    told: Counter[tuple[str, str]] = Counter()
    for op in ops:
        said = op.code if op.told is Told.NO else op.told.value
        if op.kind == "change":
            told[op.value["item"], said] += 1
        elif op.kind == "menu" and op.told is not Told.YES:
            told[op.value["item"], f"tables {said}"] += 1
    return told
