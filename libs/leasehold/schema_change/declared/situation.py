"""The situation of a plan: the schema as the statements so far leave it, beside the one that is
wanted, and which elements of the two are one and the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import LeaseholdError
from leasehold.schema_change.declared.canonical_text import canonical_expression
from leasehold.schema_change.declared.in_memory import run_request
from leasehold.schema_change.declared.shapes import (
    ForeignKeyShape,
    Shape,
    TableShape,
    sequences_of,
    shape_of,
    tables_of,
)
from leasehold.schema_change.declared.wanted import Wanted
from leasehold.schema_change.declared.wording import alter_text

T = TypeVar("T")
EQUAL: Final = "two rows with the same {} fail it"


class Said(NamedTuple):
    """A statement of a plan. `loses`: what is lost by it for good, "" = nothing; `may_fail`: which
    rows fail it, "" = none can; `note`: what else is to be known."""

    sql: str
    loses: str = ""
    may_fail: str = ""
    note: str = ""


class Matched(NamedTuple):
    """Elements of one kind, by their names. `renamed`: old names by the new ones of what is the
    same otherwise, in an order in which each new name is free."""

    renamed: Mapping[str, str]
    dropped: frozenset[str]
    added: tuple[str, ...]


class Situation:
    """A schema beside the one that is wanted. What it tells is of `catalog` alone: after each
    statement there is another one."""

    def __init__(self, catalog: Catalog, wanted: Wanted, zone: str = "") -> None:
        self.catalog = catalog
        self.wanted = wanted
        self.zone = zone
        self._works: dict[tuple[str, ...], bool] = {}

    @cached_property
    def now(self) -> Shape:
        """The schema that there is."""
        return shape_of(self.catalog)

    @cached_property
    def target(self) -> Shape:
        """The schema that is wanted."""
        return shape_of(self.wanted.catalog)

    @cached_property
    def tables(self) -> dict[str, Descriptor]:
        """The tables there are."""
        return tables_of(self.catalog)

    @cached_property
    def wanted_tables(self) -> dict[str, Descriptor]:
        """The tables that are wanted."""
        return tables_of(self.wanted.catalog)

    @cached_property
    def wanted_sequences(self) -> dict[str, Descriptor]:
        """The sequences that are wanted."""
        return sequences_of(self.wanted.catalog)

    def both(self) -> Iterator[tuple[str, TableShape, TableShape]]:
        """Yield name, shape and wanted shape of each table that is there and wanted."""
        for name, wanted in self.target.tables.items():
            if name in self.now.tables:
                yield name, self.now.tables[name], wanted

    @cached_property
    def doomed_tables(self) -> frozenset[str]:
        """The tables that are not wanted."""
        return frozenset(self.now.tables.keys() - self.target.tables.keys())

    def works(self, *statements: str) -> bool:
        """Return whether these requests, one after the other, would be accepted."""
        known = self._works.get(statements)
        if known is None:
            known = self._works[statements] = self._try(statements)
        return known

    def _try(self, statements: tuple[str, ...]) -> bool:
        catalog = self.catalog
        try:
            for text in statements:
                catalog = run_request(catalog, text, self.zone).catalog
        except LeaseholdError:
            return False
        return True

    # ------------------------------------------------------------ elements of a table

    def indexes(self, table: str) -> Matched:
        """Return which indexes, UNIQUE constraints among them, are kept, renamed, dropped, made."""
        now, wanted = self.now.tables[table], self.target.tables[table]
        over = {c for t, c in self.rebuilt if t == table}
        there = self.tables[table]
        going = {
            index.name
            for index in there.named_indexes
            if not over.isdisjoint(there.by_id[each].name for each in index.over)
        }
        return match_elements(now.indexes, wanted.indexes, going)

    def checks(self, table: str) -> Matched:
        """Return which CHECK constraints are kept, renamed, dropped, made."""
        now, wanted = self.now.tables[table], self.target.tables[table]
        over = {c for t, c in self.rebuilt if t == table}
        there = self.tables[table]
        going = {
            check.name
            for check in there.checks
            if not over.isdisjoint(there.by_id[each].name for each in check.columns)
        }
        return match_elements(_valid(now.checks), _valid(wanted.checks), going)

    def foreign_keys(self, table: str) -> Matched:
        """Return which foreign keys are kept, renamed, dropped, made."""
        now, wanted = self.now.tables[table], self.target.tables[table]
        going = {name for name, key in now.foreign_keys.items() if self._loses_ground(table, key)}
        return match_elements(_valid(now.foreign_keys), _valid(wanted.foreign_keys), going)

    def _loses_ground(self, table: str, key: ForeignKeyShape) -> bool:
        """Say whether what a foreign key rests on goes, be it to come again."""
        own = any((table, column) in self.rebuilt for column in key.columns)
        referred = any((key.parent, column) in self.rebuilt for column in key.parent_columns)
        if own or referred or key.parent not in self.target.tables:
            return own or referred
        parent, wanted = self.now.tables[key.parent], self.target.tables[key.parent]
        columns = sorted(key.parent_columns)
        if sorted(parent.key) == columns and sorted(wanted.key) != columns:
            return self.key_kept_unique(key.parent) is None
        if sorted(parent.key) == columns:
            return False
        matched = match_elements(parent.indexes, wanted.indexes, ())
        left = (i for name, i in parent.indexes.items() if name not in matched.dropped)
        keys = [sorted(each.keys) for each in left if each.unique and not each.predicate]
        return sorted(_plain_keys(columns)) not in keys

    def key_kept_unique(self, table: str) -> str | None:
        """Return the UNIQUE constraint that is wanted over the columns of a key that is another one
        then."""
        now, wanted = self.now.tables[table], self.target.tables[table]
        keys = sorted(_plain_keys(now.key))
        for name, index in wanted.indexes.items():
            if index.constraint and sorted(index.keys) == keys and name not in now.indexes:
                return name
        return None

    # ------------------------------------------------------------ columns

    @cached_property
    def rebuilt(self) -> frozenset[tuple[str, str]]:
        """The columns, by table, over which nothing can stay while they change: those that go, that
        are made again, and those of which another type needs everything over them gone."""
        return frozenset({*self.dropped_columns, *self.made_again, *self.hard})

    @cached_property
    def dropped_columns(self) -> frozenset[tuple[str, str]]:
        """The columns that are not wanted, of tables that are."""
        return frozenset(
            (table, column)
            for table, now, wanted in self.both()
            for column in now.columns.keys() - wanted.columns.keys()
        )

    @cached_property
    def made_again(self) -> frozenset[tuple[str, str]]:
        """The columns that are dropped and added: what they are computed from changes."""
        found = set()
        for table, now, wanted in self.both():
            for name, column in now.columns.items():
                other = wanted.columns.get(name)
                if other is None or not other.generated:
                    continue
                same = column.generated == other.generated and column.zone == other.zone
                sources = self._sources(table, name)
                hard = any((table, source) in self.hard for source in sources)
                if not same or column.type != other.type or hard:
                    found.add((table, name))
        return frozenset(found)

    def _sources(self, table: str, column: str) -> list[str]:
        there = self.tables[table]
        derived = there.by_name[column].derived
        return [] if derived is None else [there.by_id[each].name for each in derived.sources]

    @cached_property
    def retyped(self) -> dict[tuple[str, str], str]:
        """The statements that give columns, by table, another type."""
        found = {}
        for table, now, wanted in self.both():
            for name, column in wanted.columns.items():
                before = now.columns.get(name)
                if before is None or before.type == column.type or column.generated:
                    continue
                using = self.wanted.using.get((table, name))
                more = f" USING {using}" if using else ""
                action = f"ALTER COLUMN {quoted(name)} TYPE {column.type}{more}"
                found[table, name] = alter_text(table, action)
        return found

    @cached_property
    def hard(self) -> frozenset[tuple[str, str]]:
        """The columns, by table, whose other type needs everything over them gone before."""
        return frozenset(
            place
            for place, text in self.retyped.items()
            if not self.works(text) and not self.works(self.drop_default(*place), text)
        )

    def drop_default(self, table: str, column: str) -> str:
        """Return the statement that drops a column's default."""
        return alter_text(table, f"ALTER COLUMN {quoted(column)} DROP DEFAULT")


def match_elements(now: Mapping[str, T], wanted: Mapping[str, T], going: Any = ()) -> Matched:
    """Return what becomes of elements of one kind. `going`: those that can't stay."""
    kept = {name for name, one in wanted.items() if now.get(name) == one and name not in going}
    left = [name for name in now if name not in kept]
    renamed: dict[str, str] = {}
    for name in wanted:
        if name not in kept:
            same = (old for old in left if old not in going and now[old] == wanted[name])
            old = next(same, None)
            if old is not None:
                renamed[name] = old
                left.remove(old)
    renamed = _in_order(renamed)
    gone = (name for name in now if name not in kept and name not in renamed.values())
    added = (name for name in wanted if name not in kept and name not in renamed)
    return Matched(renamed, frozenset(gone), tuple(added))


def _in_order(renamed: Mapping[str, str]) -> dict[str, str]:
    """Return renames in an order in which each new name is free; without those that go in a
    circle."""
    left, found = dict(renamed), {}
    while left:
        free = [new for new in left if new not in left.values()]
        if not free:
            break
        for new in free:
            found[new] = left.pop(new)
    return found


def _valid(elements: Mapping[str, T]) -> dict[str, T]:
    """Return constraints as if rows that were there held them: that is not what they say."""
    return {name: one._replace(valid=True) for name, one in elements.items()}  # type: ignore[attr-defined]


def _plain_keys(columns: Any) -> list[str]:
    return [canonical_expression(quoted(column)) for column in columns]
