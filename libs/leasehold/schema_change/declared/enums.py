"""Enum types of a plan: made and given labels before columns are of them, dropped behind all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leasehold.catalog.definitions import quoted
from leasehold.model.errors import FeatureNotSupported
from leasehold.schema_change.declared.situation import Said, Situation
from leasehold.schema_change.declared.wording import text_literal


def rename_enums(s: Situation) -> Iterator[Said]:
    """Rename types that a hint says have another name."""
    for (kind, _, name), old in s.wanted.renamed.items():
        if kind == "type" and old in s.now.enums and name not in s.now.enums:
            yield Said(f"ALTER TYPE {quoted(old)} RENAME TO {quoted(name)}")


def create_enums(s: Situation) -> Iterator[Said]:
    """Make types that are not there."""
    for name, labels in s.target.enums.items():
        if name not in s.now.enums:
            listed = ", ".join(map(text_literal, labels))
            yield Said(f"CREATE TYPE {quoted(name)} AS ENUM ({listed})")


def add_labels(s: Situation) -> Iterator[Said]:
    """Give types the labels that are wanted beside those that they have.

    Raises FeatureNotSupported for labels that are to go, or in another order: values that rows have
    would be others, or none."""
    for name, wanted in s.target.enums.items():
        there = list(s.now.enums.get(name, wanted))
        _refuse_others(name, there, wanted)
        for number, label in enumerate(wanted):
            if number < len(there) and there[number] == label:
                continue
            place = f" BEFORE {text_literal(there[number])}" if number < len(there) else ""
            there.insert(number, label)
            yield Said(f"ALTER TYPE {quoted(name)} ADD VALUE {text_literal(label)}{place}")


def _refuse_others(name: str, there: Sequence[str], wanted: Sequence[str]) -> None:
    gone = [label for label in there if label not in wanted]
    if gone:
        raise FeatureNotSupported(
            f"type {quoted(name)} has the label {text_literal(gone[0])}, which is not wanted: a"
            " label can't be taken away",
            hint="Keep it; or rename it first: ALTER TYPE … RENAME VALUE … TO …; or let the columns"
            " be of another type.",
        )
    if [label for label in wanted if label in there] != list(there):
        raise FeatureNotSupported(
            f"type {quoted(name)} has its labels in another order, which no statement changes",
            hint="Say them in the order that they have, or let the columns be of another type.",
        )


def drop_enums(s: Situation) -> Iterator[Said]:
    """Drop types that are not wanted."""
    for name in s.now.enums:
        if name not in s.target.enums:
            yield Said(f"DROP TYPE {quoted(name)}", f"type {name}")
