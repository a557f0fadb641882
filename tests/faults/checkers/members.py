"""Judges a set: what was inserted is there, on every node, once, under its number. PURE.

Each insert has a tag of its own and no unique constraint holds tags, so that one carried out twice
shows. The key is a number of a sequence, or one that its client gives to nobody else: so nothing
can be refused as a duplicate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tests.faults.workload.history import Op, Told

DUPLICATE_KEY: Final = "23505"
Rows = Sequence[tuple[int, str]]
"""(number, tag)."""


def judge_members(ops: Iterable[Op], final: Mapping[str, Rows]) -> list[str]:
    """Return what contradicts; `final`: the rows that each node shows in the end."""
    inserts = [op for op in ops if op.kind == "insert"]
    found = list(_numbers(inserts))
    for node, rows in final.items():
        found += [f"{words}, on {node}" for words in _rows(inserts, rows)]
    return [f"set: {words}" for words in found]


def _rows(inserts: Sequence[Op], rows: Rows) -> Iterable[str]:
    there = Counter(tag for _, tag in rows)
    told = {op.value["tag"]: op.told for op in inserts}
    lost = [tag for tag, what in told.items() if what is Told.YES and not there[tag]]
    refused = [tag for tag, what in told.items() if what is Told.NO and there[tag]]
    doubled = [tag for tag, count in there.items() if count > 1]
    strange = [tag for tag in there if tag not in told]
    for words, tags in (
        ("lost, though acknowledged", lost),
        ("there, though refused", refused),
        ("there twice", doubled),
        ("there, though nobody inserted it", strange),
    ):
        if tags:
            yield f"{words}: {len(tags)} ({', '.join(tags[:3])})"
    number_of = {tag: number for number, tag in rows}
    for op in inserts:
        number, tag = op.value.get("number"), op.value["tag"]
        if number is not None and op.told is Told.YES and number_of.get(tag, number) != number:
            yield f"{tag} was told number {number} and has {number_of[tag]}"


def _numbers(inserts: Sequence[Op]) -> Iterable[str]:
    """A sequence gives no number twice, whatever became of who drew it."""
    refused = [op.value["tag"] for op in inserts if op.code == DUPLICATE_KEY]
    if refused:
        yield f"its number was another's, too: {', '.join(refused[:5])}"
    drawn = Counter(op.value["number"] for op in inserts if op.value.get("number") is not None)
    twice = sorted(number for number, count in drawn.items() if count > 1)
    if twice:
        yield f"numbers given twice: {twice[:5]}"
