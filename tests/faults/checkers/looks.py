"""Judges reads of the counter at any node: none that began after an addition was acknowledged lacks
it (C1), and none shows one that nobody has asked for yet. PURE.

Additions are one each, and each is answered or asked again, so a read is judged by counting. There
are many more of these reads than transactions: what lasts for a part of a second is seen by them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

from tests.faults.workload.history import Op, Told

SHOWN_MAX: Final = 5


def judge_looks(ops: Iterable[Op]) -> list[str]:
    """Return what contradicts; the counter begins with 0, and nothing else is added to it."""
    history = list(ops)
    additions = [op for op in history if op.kind == "count" and op.told is not Told.NO]
    begun = sorted(op.begun_ns for op in additions)
    answered = sorted(op.ended_ns for op in additions if op.told is Told.YES)
    found = []
    for op in history:
        if op.kind != "look" or op.told is not Told.YES:
            continue
        shown = -1 if op.value["n"] is None else op.value["n"]
        least, most = bisect_left(answered, op.begun_ns), bisect_right(begun, op.ended_ns)
        where = op.value["node"]
        if shown < least:
            found.append(f"{where} showed {shown} of {least} acknowledged additions")
        elif shown > most:
            found.append(f"{where} showed {shown} additions, {most} had been asked for")
    return [f"looks: {words}" for words in found[:SHOWN_MAX]]
