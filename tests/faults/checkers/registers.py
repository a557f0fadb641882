"""Judges registers: is there an order of all operations on a key, each between its begin and its
end, in which every read shows the write before it? PURE.

The search of Wing and Gong with Lowe's memory of what was tried. Values are unique, so a state is
which operations have taken effect and which value stands. Two things keep it short where outcomes
are not known, or many reads overlap: a write that may have been, and that nobody has read, is left
out (an order with it is one without it, too); a read of the value that stands is taken at once (it
changes nothing, and who waits for less can do whatever he could before).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
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
        read = {op.value["value"] for op in its if op.kind == "read" and op.told is Told.YES}
        kept = [op for op in its if _counts(op, read)]
        words = _explain(kept)
        if words:
            found.append(f"register {key}: {words}")
    return found


def _counts(op: Op, read: Collection[int]) -> bool:
    may_have_been = op.kind == "write" and op.told is Told.UNKNOWN
    return op.told is Told.YES or (may_have_been and op.value["value"] in read)


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
        may_be_next = [n for n in left if ops[n].begun_ns <= first_end]
        reads = [n for n in may_be_next if ops[n].kind == "read"]
        shown = sum(1 << n for n in reads if ops[n].value["value"] == value)
        if shown:
            next_ones = [(done | shown, value)]
        else:
            writes = (n for n in may_be_next if ops[n].kind == "write")
            next_ones = [(done | 1 << n, ops[n].value["value"]) for n in writes]
        for after in next_ones:
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    told = [op for op in ops if op.told is Told.YES]
    near = told[min(longest, len(told) - 1)]
    return (
        f"no order explains its {len(ops)} operations; near {near.kind} of"
        f" {near.value['value']} by {near.client}, number {near.number}"
    )
