"""Judges list-append transactions, each level by itself. PURE.

The cycles are found by `tests/isolation/cycles.py`, which knows lists and edges and nothing of the
product. Beside cycles: a read that began after an append was acknowledged shows it, at any level
and on any replica (C1); at linearizable the order of real time holds between all transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tests.faults.workload.history import Op, Told
from tests.isolation.cycles import Transaction, anomalies

MAY: Final[Mapping[str, frozenset[str]]] = {
    "default": frozenset({"G-single", "G2-item"}),
    "read committed": frozenset({"G-single", "G2-item"}),
    "snapshot": frozenset({"G2-item"}),
    "serializable": frozenset(),
    "linearizable": frozenset(),
}
"""What a level does not prevent (docs/concepts/isolation.md)."""
NEVER: Final = 1 << 62
Lists = Mapping[int, tuple[int, ...]]


def judge_appends(ops: Iterable[Op], final: Lists) -> list[str]:
    """Return what contradicts the promises; `final`: what each list holds in the end."""
    by_level: dict[str, list[Op]] = {}
    for op in ops:
        if op.kind == "append":
            by_level.setdefault(op.value["level"], []).append(op)
    found: list[str] = []
    for level, its in by_level.items():
        lists = {number: values for number, values in final.items() if _is_of(number, its)}
        found += [f"list-append, {level}: {words}" for words in _judge(level, its, lists)]
    return found


def _is_of(number: int, ops: Sequence[Op]) -> bool:
    return any(step[1] == number for op in ops for step in op.value["steps"])


def _judge(level: str, ops: Sequence[Op], final: Lists) -> list[str]:
    history = [_transaction(number, op, final) for number, op in enumerate(ops)]
    writers = {value for t in history for _, value in t.appends}
    strange = {v for values in final.values() for v in values} - writers
    strange |= {v for t in history for _, seen in t.reads for v in seen} - writers
    if strange:
        return [f"values that nobody appended: {sorted(strange)[:5]}"]
    shown = anomalies(history, final, real_time=level == "linearizable")
    found = [f"{name} was seen" for name in sorted(shown - MAY[level])]
    return found + list(_outdated(history, ops))


def _transaction(number: int, op: Op, final: Lists) -> Transaction:
    """An unknown outcome is known by what is there in the end; of who only read nothing was said,
    so what it read is not judged."""
    told = Transaction(number, begun=op.begun_ns, ended=op.ended_ns or NEVER)
    for what, key, value in op.value["steps"]:
        if what == "append":
            told.appends.append((key, value))
        elif op.told is Told.YES:
            told.reads.append((key, tuple(value)))
    there = any(value in final.get(key, ()) for key, value in told.appends)
    told.committed = op.told is Told.YES or (op.told is Told.UNKNOWN and there)
    if op.told is not Told.YES:
        told.ended = NEVER
    return told


def _outdated(history: Sequence[Transaction], ops: Sequence[Op]) -> Iterable[str]:
    """C1: nothing that was acknowledged before a transaction began is missing in what it read."""
    answered: dict[int, list[tuple[int, int]]] = {}
    for t in history:
        if t.committed and t.ended != NEVER:
            for key, value in t.appends:
                answered.setdefault(key, []).append((t.ended, value))
    for t in history:
        for key, seen in t.reads:
            missed = [v for ended, v in answered.get(key, ()) if ended < t.begun and v not in seen]
            if missed:
                yield f"{ops[t.number].client} read list {key} without {missed[:5]}, acknowledged"
