"""Descriptor: one version of one table's schema, its elements and their states."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from leasehold.model.errors import UnknownColumn
from leasehold.schema.elements import (
    Check,
    Column,
    Element,
    Index,
    check_from_wire,
    check_to_wire,
    column_from_wire,
    column_to_wire,
    index_from_wire,
    index_to_wire,
    state_of,
)
from leasehold.schema.states import READABLE, WRITTEN, State

__all__ = [
    "CHECKS_MAX",
    "COLUMNS_MAX",
    "DEFAULT_LOCK",
    "INDEXES_MAX",
    "NAME_BYTES_MAX",
    "Check",
    "Column",
    "Descriptor",
    "Element",
    "Index",
    "check_from_wire",
    "check_to_wire",
    "column_from_wire",
    "column_to_wire",
    "from_wire",
    "index_from_wire",
    "index_to_wire",
]

DEFAULT_LOCK: Final = 0  # covers every column until ALTER TABLE … ADD LOCK exists
COLUMNS_MAX: Final = 1_000
INDEXES_MAX: Final = 64
CHECKS_MAX: Final = 64
NAME_BYTES_MAX: Final = 63


@dataclass(frozen=True)
class Descriptor:
    """Version `version` of table `table_id`. Immutable; elements in order of their ids.

    `modified_us` is the commit time that published it (the seed's ModificationTime), 0 before.
    `next_element_id` only grows, over all versions: element ids are never used again.
    """

    table_id: int
    name: str
    version: int
    columns: tuple[Column, ...]
    primary_key: tuple[int, ...]
    indexes: tuple[Index, ...] = ()
    next_element_id: int = 1
    modified_us: int = 0
    state: State = State.PUBLIC
    locks: tuple[int, ...] = field(default=(DEFAULT_LOCK,))
    checks: tuple[Check, ...] = ()
    alias: str = ""

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """Public columns by name: what a query or a writer at this version may name."""
        return {c.name: c for c in self.columns if c.state in READABLE}

    @cached_property
    def by_alias(self) -> dict[str, Column]:
        """Public columns by the name they had before a rename that is not over yet."""
        return {c.alias: c for c in self.columns if c.alias and c.state in READABLE}

    @cached_property
    def enforced_checks(self) -> tuple[Check, ...]:
        return tuple(c for c in self.checks if c.state in WRITTEN)

    @cached_property
    def enforced_uniques(self) -> tuple[Index, ...]:
        return tuple(i for i in self.indexes if i.refuses_duplicates and i.state in WRITTEN)

    @property
    def names(self) -> tuple[str, ...]:
        """What the table may be called at this version; nothing when it is not public."""
        if self.state not in READABLE:
            return ()
        return (self.name, self.alias) if self.alias else (self.name,)

    @cached_property
    def by_id(self) -> dict[int, Column]:
        return {c.element_id: c for c in self.columns}

    @cached_property
    def public_ids(self) -> frozenset[int]:
        return frozenset(c.element_id for c in self.columns if c.state in READABLE)

    @cached_property
    def written(self) -> tuple[Column, ...]:
        """Columns whose pair an insert at this version writes."""
        return tuple(c for c in self.columns if c.state in WRITTEN)

    @cached_property
    def key_columns(self) -> tuple[Column, ...]:
        return tuple(self.by_id[e] for e in self.primary_key)

    def column(self, name: str) -> Column:
        """A public column. Raises UnknownColumn (an element that is not public does not exist)."""
        found = self.by_name.get(name) or self.by_alias.get(name)
        if found is None:
            raise UnknownColumn(
                f"column {name!r} does not exist in table {self.name!r} at version {self.version}",
                table=self.name,
                column=name,
            )
        return found

    def index(self, name: str) -> Index | None:
        """By its name or the one before a rename that is not over yet."""
        return next((i for i in self.indexes if name in (i.name, i.alias)), None)

    def check(self, name: str) -> Check | None:
        return next((c for c in self.checks if c.name == name), None)

    @property
    def elements(self) -> tuple[Element, ...]:
        return (*self.columns, *self.indexes, *self.checks)

    def element(self, element_id: int) -> Element | None:
        return next((e for e in self.elements if e.element_id == element_id), None)

    def with_state(self, element_id: int, state: State) -> Descriptor:
        """The next version, with one element in another state (ABSENT takes it out)."""
        assert self.element(element_id) is not None, element_id

        def moved(elements: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(
                replace(e, state=state) if e.element_id == element_id else e
                for e in elements
                if e.element_id != element_id or state is not State.ABSENT
            )

        return replace(
            self,
            version=self.version + 1,
            columns=moved(self.columns),
            indexes=moved(self.indexes),
            checks=moved(self.checks),
            modified_us=0,
        )

    def to_wire(self) -> dict[str, Any]:
        """Plain data for the log, version events and the store; `from_wire` reads it back."""
        return {
            "id": self.table_id,
            "name": self.name,
            "version": self.version,
            "state": self.state.label,
            "modified_us": self.modified_us,
            "next_element_id": self.next_element_id,
            "primary_key": list(self.primary_key),
            "locks": list(self.locks),
            "columns": [column_to_wire(c) for c in self.columns],
            "indexes": [index_to_wire(i) for i in self.indexes],
            "checks": [check_to_wire(c) for c in self.checks],
            "alias": self.alias,
        }


def from_wire(body: dict[str, Any]) -> Descriptor:
    """The Descriptor of `to_wire`'s plain data. Unknown fields are ignored (newer writers)."""
    return Descriptor(
        table_id=body["id"],
        name=body["name"],
        version=body["version"],
        state=state_of(body["state"]),
        modified_us=body["modified_us"],
        next_element_id=body["next_element_id"],
        primary_key=tuple(body["primary_key"]),
        locks=tuple(body["locks"]),
        columns=tuple(column_from_wire(c) for c in body["columns"]),
        indexes=tuple(index_from_wire(i) for i in body["indexes"]),
        checks=tuple(check_from_wire(c) for c in body.get("checks", ())),
        alias=body.get("alias", ""),
    )
