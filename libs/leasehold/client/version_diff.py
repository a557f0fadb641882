"""What changed between two versions of a descriptor, for people and programs. PURE."""

from __future__ import annotations

from typing import Any, NamedTuple

from leasehold.schema.descriptor import Column, Descriptor, Index
from leasehold.schema.states import State
from leasehold.schema.types import to_json


class ElementChange(NamedTuple):
    """One element that is not as it was. `before` is ABSENT for one that is new, `after` for one
    that is gone. `detail` is its definition, e.g. ``text not null default 'none'``."""

    kind: str  # table | column | index | check
    name: str
    before: State
    after: State
    detail: str

    def __str__(self) -> str:
        named = f"{self.kind} {self.name}"
        if self.before is self.after:
            return f"{named}: now {self.detail}"
        if self.before is State.ABSENT:
            return f"{named} added, {self.after.label} ({self.detail})"
        if self.after is State.ABSENT:
            return f"{named} is gone (was {self.before.label})"
        return f"{named}: {self.before.label} → {self.after.label}"

    def to_json(self) -> dict[str, str]:
        return {
            "kind": self.kind,
            "name": self.name,
            "before": self.before.label,
            "after": self.after.label,
            "detail": self.detail,
        }


def diff(before: Descriptor | None, after: Descriptor) -> tuple[ElementChange, ...]:
    """Changes from one version to another of the same table, in order of element ids.

    Without `before` every element of `after` is new. Versions need not follow each other: a
    reader of the compacted topic may have missed some.
    """
    assert before is None or before.table_id == after.table_id, "versions of one table"
    old = _elements(before)
    new = _elements(after)
    changes = []
    for element_id in sorted(old.keys() | new.keys()):
        if element_id == 0 and before is None:
            continue  # a new table's elements say it all
        was, is_now = old.get(element_id), new.get(element_id)
        if was == is_now:
            continue
        shown = is_now or was
        assert shown is not None
        changes.append(
            ElementChange(
                shown[0],
                shown[1],
                was[2] if was else State.ABSENT,
                is_now[2] if is_now else State.ABSENT,
                shown[3],
            )
        )
    return tuple(changes)


def column_words(column: Column) -> str:
    """``integer not null default 0``: the definition as a person would write it."""
    words = [str(column.type)]
    if not column.nullable:
        words.append("not null")
    elif column.not_null_enforced:
        words.append("not null on new writes")
    if column.default is not None:
        words.append(f"default {_literal(to_json(column.type, column.default))}")
    if column.alias:
        words.append(f"also named {column.alias}")
    return " ".join(words)


def index_words(descriptor: Descriptor, index: Index) -> str:
    """``unique on (origin, dest)``."""
    columns = ", ".join(descriptor.by_id[e].name for e in index.columns if e in descriptor.by_id)
    unique = "unique on new writes " if index.unique_enforced else ""
    unique = "unique " if index.unique else unique
    also = f" also named {index.alias}" if index.alias else ""
    return f"{unique}on ({columns}){also}"


def table_words(descriptor: Descriptor) -> str:
    also = f", also named {descriptor.alias}" if descriptor.alias else ""
    return f"named {descriptor.name}{also}"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _elements(descriptor: Descriptor | None) -> dict[int, tuple[str, str, State, str]]:
    if descriptor is None:
        return {}
    found = {0: ("table", descriptor.name, descriptor.state, table_words(descriptor))}
    for column in descriptor.columns:
        words = column_words(column)
        found[column.element_id] = ("column", column.name, column.state, words)
    for index in descriptor.indexes:
        found[index.element_id] = (
            "index",
            index.name,
            index.state,
            index_words(descriptor, index),
        )
    for check in descriptor.checks:
        found[check.element_id] = ("check", check.name, check.state, f"({check.expression})")
    return found
