"""Element kinds for the claims: a table with one element of each kind in each of its states, and
every store of few rows that there can be, sensible or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, combinations_with_replacement, product
from typing import Any, Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import State
from tests.schema_change.changes import TABLE, A, B, Change, Domain, changed, standing
from tests.schema_change.chunks import backfill
from tests.schema_change.menu import CHECK, INDEX, UNIQUE, with_c
from tests.schema_change.versions import Version, version_of
from tests.schema_change.world import Row, make_row, without
from tests.support.descriptors import with_state

ABSENT, DELETE_ONLY, WRITE_ONLY, PUBLIC = State
E: Final = 4  # element id of what is added; NOT NULL is one of column a


@dataclass(frozen=True, eq=False)
class Kind:
    """`at`: the versions with the element in each state. `optional`: rows can do without it;
    `constraint`: it has no pairs, so no state for deleting them. `up`, `down`: as planned."""

    name: str
    at: Mapping[State, Version]
    domain: Domain
    up: Change
    down: Change
    optional: bool = False
    constraint: bool = False
    rows: int = 1

    def __str__(self) -> str:
        return self.name

    @property
    def states(self) -> tuple[State, ...]:
        return tuple(self.at)

    @cached_property
    def stores(self) -> tuple[tuple[Row, ...], ...]:
        """All that the pairs and entries of the rows can be. Rows are alike."""
        return tuple(combinations_with_replacement(sorted(set(self._rows()), key=repr), self.rows))

    def _rows(self) -> Iterator[Row]:
        element = self.at[PUBLIC].descriptor.element(E)
        values = (None, 0, 1) if "a" in self.domain else (0,)
        extra: list[dict[int, Any]] = [{}]
        entries: list[set[tuple[int, tuple[Any, ...]]]] = [set()]
        if isinstance(element, Column):
            extra += [{E: 7}, {E: 8}]
        if isinstance(element, Index):
            known = [(E, (value,)) for value in values]
            sizes = range(len(known) + 1 if self.rows == 1 else 2)
            entries = [set(some) for n in sizes for some in combinations(known, n)]
        for value, more, of in product(values, extra, entries):
            yield make_row(True, {A: value, B: 0, **more}, of)
            yield make_row(False, more, of)
            yield make_row(False, {A: value}, ())

    def reorganised(self, rows: tuple[Row, ...], state: State) -> tuple[Row, ...]:
        """What one reorganisation makes of the rows before the element may be in `state`."""
        if state is ABSENT and not self.constraint:
            return tuple(without(row, {E}) for row in rows)
        writing = self.at.get(WRITE_ONLY)
        if state is PUBLIC and writing is not None and not self.constraint and not self.optional:
            unfilled = writing.descriptor.element(E)
            if isinstance(unfilled, Column):
                columns = [replace(c, filled=False) for c in writing.descriptor.columns]
                writing = version_of(replace(writing.descriptor, columns=tuple(columns)))
            return tuple(backfill(row, writing, E) for row in rows)
        return rows


def in_states(final: Descriptor, *states: State) -> dict[State, Version]:
    return {state: version_of(with_state(final, E, state)) for state in states}


def column_kind(name: str, definition: str, values: tuple[Any, ...], optional: bool) -> Kind:
    final = standing(with_c(definition))
    at = in_states(final, *State)
    column = final.column("c")
    if column.nullable and column.default is not None:
        # The last step before public: what it lacks is a NULL.
        filled = [replace(c, filled=c.element_id == E) for c in at[WRITE_ONLY].descriptor.columns]
        at[WRITE_ONLY] = version_of(replace(at[WRITE_ONLY].descriptor, columns=tuple(filled)))
    domain = {"c": values}
    return Kind(
        name,
        at,
        domain,
        changed(f"ALTER TABLE t ADD COLUMN c {definition}", domain=domain),
        changed("ALTER TABLE t DROP COLUMN c", with_c(definition), domain=domain),
        optional=optional,
    )


def unique_kind() -> Kind:
    """Uniqueness of an index that has all its entries: a constraint of its own."""
    final = standing(TABLE, UNIQUE)
    index = final.index("i")
    assert index is not None
    loose = replace(index, unique=False)
    at = {
        ABSENT: loose,
        WRITE_ONLY: replace(loose, unique_enforced=True),
        PUBLIC: index,
    }
    versions = {s: version_of(replace(final, indexes=(made,))) for s, made in at.items()}
    domain = {"a": (0, 1, None)}
    up, down = (
        changed(UNIQUE, domain=domain),
        changed("DROP INDEX i", TABLE, UNIQUE, domain=domain),
    )
    return Kind("UNIQUE", versions, domain, up, down, constraint=True, rows=2)


def check_kind() -> Kind:
    final = standing(TABLE, CHECK)
    domain = {"a": (0, 1, None)}
    up = changed(CHECK, domain=domain)
    down = changed("ALTER TABLE t DROP CONSTRAINT k", TABLE, CHECK, domain=domain)
    at = in_states(final, ABSENT, WRITE_ONLY, PUBLIC)
    return Kind("CHECK", at, domain, up, down, constraint=True)


def not_null_kind() -> Kind:
    strict = TABLE.replace("a integer", "a integer NOT NULL")
    base = standing(TABLE)
    enforced = [replace(c, not_null_enforced=c.name == "a") for c in base.columns]
    at = {
        ABSENT: version_of(base),
        WRITE_ONLY: version_of(replace(base, columns=tuple(enforced))),
        PUBLIC: version_of(standing(strict)),
    }
    domain = {"a": (0, None)}
    up = changed("ALTER TABLE t ALTER COLUMN a SET NOT NULL", domain=domain)
    down = changed("ALTER TABLE t ALTER COLUMN a DROP NOT NULL", strict, domain=domain)
    return Kind("NOT NULL", at, domain, up, down, constraint=True)


def index_kind() -> Kind:
    domain = {"a": (0, 1, None)}
    down = changed("DROP INDEX i", TABLE, INDEX, domain=domain)
    at = in_states(standing(TABLE, INDEX), *State)
    return Kind("index", at, domain, changed(INDEX, domain=domain), down)


INDEX_KIND: Final = index_kind()
REQUIRED: Final = column_kind("required column", "integer NOT NULL DEFAULT 7", (8,), False)
DEFAULTED: Final = column_kind(
    "nullable column with default", "integer DEFAULT 7", (None, 8), False
)
OPTIONAL: Final = column_kind("optional column", "integer", (None, 8), True)
CONSTRAINTS: Final = [unique_kind(), check_kind(), not_null_kind()]
NEEDED: Final = [INDEX_KIND, REQUIRED, DEFAULTED]
WITH_PAIRS: Final = [*NEEDED, OPTIONAL]
KINDS: Final = [*WITH_PAIRS, *CONSTRAINTS]
