"""Judges transactions that look at the same row more than once: it has as many columns each time,
since they have one version of its table to their end (D8). PURE."""

from __future__ import annotations

from collections.abc import Iterable

from tests.faults.workload.history import Op, Told


def judge_stays(ops: Iterable[Op]) -> list[str]:
    """Return what contradicts."""
    return [
        f"stays: {op.client} saw a row of {op.value['table']} with {op.value['widths']} columns in"
        " one transaction"
        for op in ops
        if op.kind == "stay" and op.told is Told.YES and len(set(op.value["widths"])) > 1
    ]
