"""Scopes: which column a name means, from the innermost query outwards, as PostgreSQL resolves
it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from leasehold.catalog.namespaces import SEPARATOR, qualified
from leasehold.catalog.schema_names import PUBLIC
from leasehold.model.errors import (
    AmbiguousAlias,
    AmbiguousColumn,
    DuplicateAlias,
    FeatureNotSupported,
    UnknownColumn,
    UnknownTable,
)
from leasehold.sql.binding.bound_tree import Bound, Column, Field, Grouping, Native, Value
from leasehold.sql.binding.walk import relations_in
from leasehold.sql.functions.function import BOOLEAN
from leasehold.sql.syntax.tree import Star

Columns: TypeAlias = list[tuple[str, Bound]]


class KnownCte(NamedTuple):
    """A query of WITH; one that writes and `returns` nothing can't be read."""

    number: int
    columns: tuple[Column, ...]
    returns: bool = True


class NamedTable(NamedTuple):
    """A table of FROM by the name that it has here. `said`: what it is, as requests call it, ""
    where it is no table or the text gives it another name; a name with a schema means that one."""

    alias: str
    columns: Columns
    said: str = ""

    def is_called(self, table: tuple[str, ...]) -> bool:
        """Return whether it is the one that is named, maybe behind its schema."""
        if self.alias != table[-1]:
            return False
        if table[:-1] == (PUBLIC,):
            return SEPARATOR not in self.said
        return len(table) == 1 or self.said == qualified(*table)


@dataclass(slots=True)
class Names:
    """What FROM brings: each table's own columns, and what a bare name or * may mean (a column of
    USING stands there once). Two tables may have one name if the text names them behind schemas."""

    tables: list[NamedTable] = field(default_factory=list)
    columns: Columns = field(default_factory=list)
    hidden: list[NamedTable] = field(default_factory=list)
    """What * does not mean, and what any column of that name comes before: tableoid."""

    @property
    def relations(self) -> frozenset[int]:
        """Return the relations whose columns the tables have."""
        columns = (bound for table in self.tables for _, bound in table.columns)
        return frozenset().union(*map(relations_in, columns))

    def beside(self, other: Names, at: int) -> Names:
        """Both. Raises DuplicateAlias."""
        mine: dict[str, set[str]] = {}
        for table in self.tables:
            mine.setdefault(table.alias, set()).add(table.said)
        for alias, _, said in other.tables:
            others = mine.get(alias)
            if others is not None and (not said or said in others or "" in others):
                raise DuplicateAlias(
                    f"table name {alias!r} specified more than once", position=at, table=alias
                )
        return Names(
            self.tables + other.tables,
            self.columns + other.columns,
            self.hidden + other.hidden,
        )

    def find_table(self, name: tuple[str, ...], at: int) -> NamedTable | None:
        """Return the table that is called so, maybe behind its schema, None for none. Raises
        AmbiguousAlias."""
        found = [table for table in self.tables if table.is_called(name)]
        if len(found) > 1:
            raise AmbiguousAlias(
                f"table reference {name[-1]!r} is ambiguous", position=at, table=name[-1]
            )
        return found[0] if found else None

    def as_nullable(self) -> Names:
        """Return the names of a side of an outer join that may be missing."""
        tables = [table._replace(columns=_nullable(table.columns)) for table in self.tables]
        own = {(table.alias, table.said): table.columns for table in self.tables}
        hidden = []
        for alias, columns, said in self.hidden:
            there = _always_there(own[alias, said])
            if there is not None:
                columns = [(name, _or_null(bound, there)) for name, bound in columns]
            if not any(isinstance(bound, Value) for _, bound in columns):
                hidden.append(NamedTable(alias, columns, said))
        return Names(tables, _nullable(self.columns), hidden)


def _nullable(columns: Columns) -> Columns:
    return [
        (name, replace(bound, nullable=True) if isinstance(bound, Field) else bound)
        for name, bound in columns
    ]


def _always_there(columns: Columns) -> Field | None:
    """A column that is NULL only where there is no row."""
    return next((c for _, c in columns if isinstance(c, Field) and not c.nullable), None)


def _or_null(bound: Bound, there: Field) -> Bound:
    if not isinstance(bound, Value):
        return bound
    lacks = Native("is null", (there,), BOOLEAN)
    return Native("case", (lacks, Value(bound.kind, None), bound), bound.kind)


@dataclass(slots=True)
class Scope:
    """A level of a query. `mentions` are the fields that names outside of aggregates meant, and
    where; `groupings` are those of this level, and where their arguments stand."""

    parent: Scope | None = None
    names: Names = field(default_factory=Names)
    ctes: dict[str, KnownCte] = field(default_factory=dict)
    mentions: list[tuple[Field, int]] = field(default_factory=list)
    groupings: list[tuple[Grouping, tuple[int, ...]]] = field(default_factory=list)
    correlated: bool = False

    def cte(self, name: str) -> KnownCte | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.ctes:
                return scope.ctes[name]
            scope = scope.parent
        return None

    def resolve(self, parts: tuple[str, ...], at: int) -> tuple[Bound, Scope]:
        """Raises UnknownColumn, AmbiguousColumn, UnknownTable."""
        scope: Scope | None = self
        passed: list[Scope] = []
        while scope is not None:
            found = _found(scope.names, parts, at)
            if found is not None:
                for level in passed:
                    level.correlated = True
                return found, scope
            passed.append(scope)
            scope = scope.parent
        name = ".".join(parts)
        if len(parts) > 1:
            raise UnknownTable(
                f"missing FROM-clause entry for table {parts[-2]!r}", position=at, table=parts[-2]
            )
        scope = self
        while scope is not None:
            if any(table.alias == name for table in scope.names.tables):
                raise FeatureNotSupported(
                    f"{name!r} as a whole row is not supported: name its columns", position=at
                )
            scope = scope.parent
        raise UnknownColumn(f"column {name!r} does not exist", position=at, column=name)

    def star(self, node: Star) -> Columns:
        """Return the columns that * or table.* means. Raises UnknownTable, AmbiguousAlias."""
        if not node.table:
            return self.names.columns
        named = (PUBLIC, *node.table) if node.in_public else node.table
        found = self.names.find_table(named, node.at)
        if found is not None:
            return found.columns
        table = node.table[-1]
        raise UnknownTable(
            f"missing FROM-clause entry for table {table!r}", position=node.at, table=table
        )


def _found(names: Names, parts: tuple[str, ...], at: int) -> Bound | None:
    if len(parts) == 1:
        found = [bound for name, bound in names.columns if name == parts[0]]
        if len(found) > 1:
            raise AmbiguousColumn(
                f"column reference {parts[0]!r} is ambiguous", position=at, column=parts[0]
            )
        if not found:
            found = [bound for t in names.hidden for n, bound in t.columns if n == parts[0]]
            if len(found) > 1:
                raise AmbiguousColumn(
                    f"column reference {parts[0]!r} is ambiguous", position=at, column=parts[0]
                )
        return found[0] if found else None
    *table, column = parts
    of = names.find_table(tuple(table), at)
    if of is None:
        return None
    found = [bound for name, bound in of.columns if name == column]
    if not found:
        same = (t.columns for t in names.hidden if (t.alias, t.said) == (of.alias, of.said))
        found = [bound for columns in same for name, bound in columns if name == column]
    if len(found) > 1:
        raise AmbiguousColumn(
            f"column reference {column!r} is ambiguous", position=at, column=column
        )
    if not found:
        raise UnknownColumn(
            f"column {of.alias}.{column} does not exist", position=at, column=column
        )
    return found[0]
