"""Judges registers: is there an order of all operations on a key, each between its begin and its
end, in which every read shows the write before it? PURE.

The search of Wing and Gong with Lowe's memory of what was tried. Values are unique, so a state is
which operations have taken effect and which value stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tests.faults.workload.history import Op, Told

NEVER: Final = 1 << 62
STATES_MAX: Final = 2_000_000
"""Of one key: a history with more is given up, and said to be."""


def judge_registers(ops: Iterable[Op]) -> list[str]:
    """Return the keys whose history no order explains."""
    by_key: dict[int, list[Op]] = {}
    for op in ops:
        if op.kind in ("read", "write"):
            by_key.setdefault(op.value["key"], []).append(op)
    found = []
    for key, its in by_key.items():
        kept = [op for op in its if _counts(op)]
        words = _explain(kept)
        if words:
            found.append(f"register {key}: {words}")
    return found


def _counts(op: Op) -> bool:
    return op.told is Told.YES or (op.kind == "write" and op.told is Told.UNKNOWN)


def _explain(ops: Sequence[Op]) -> str:
    """Return "" when there is an order, else where the search came to its end."""
    ends = [op.ended_ns if op.told is Told.YES else NEVER for op in ops]
    all_told = sum(1 << n for n, op in enumerate(ops) if op.told is Told.YES)
    start = (0, 0)
    waiting, seen, longest = [start], {start}, 0
    while waiting:
        done, value = waiting.pop()
        if done & all_told == all_told:
            return ""
        longest = max(longest, (done & all_told).bit_count())
        if len(seen) > STATES_MAX:
            return f"given up after {STATES_MAX} states: fewer clients, or shorter rounds"
        # Whoever takes effect next began before each of the others ended.
        left = [n for n in range(len(ops)) if not done >> n & 1]
        first_end = min(ends[n] for n in left)
        for n in left:
            op = ops[n]
            if op.begun_ns > first_end:
                break  # they are in the order of their begins
            if op.kind == "read" and op.value["value"] != value:
                continue
            after = (done | 1 << n, op.value["value"])
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    told = [op for op in ops if op.told is Told.YES]
    near = told[min(longest, len(told) - 1)]
    return (
        f"no order explains its {len(ops)} operations; near {near.kind} of"
        f" {near.value['value']} by {near.client}, number {near.number}"
    )
