"""Scopes: which column a name means, from the innermost query outwards, as PostgreSQL resolves
it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from leasehold.catalog.namespaces import qualified
from leasehold.model.errors import (
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


@dataclass(slots=True)
class Names:
    """What FROM brings: each table's own columns, and what a bare name or * may mean (a column of
    USING stands there once). `relations_said`: what a table is, as requests call it, by the name
    that it has here; a name with a schema means that one."""

    tables: list[tuple[str, Columns]] = field(default_factory=list)
    columns: Columns = field(default_factory=list)
    hidden: list[tuple[str, Columns]] = field(default_factory=list)
    """What * does not mean, and what any column of that name comes before: tableoid."""
    relations_said: dict[str, str] = field(default_factory=dict)

    @property
    def relations(self) -> frozenset[int]:
        """Return the relations whose columns the tables have."""
        columns = (bound for _, columns in self.tables for _, bound in columns)
        return frozenset().union(*map(relations_in, columns))

    def beside(self, other: Names, at: int) -> Names:
        """Both. Raises DuplicateAlias."""
        mine = {alias for alias, _ in self.tables}
        for alias, _ in other.tables:
            if alias in mine:
                raise DuplicateAlias(
                    f"table name {alias!r} specified more than once", position=at, table=alias
                )
        return Names(
            self.tables + other.tables,
            self.columns + other.columns,
            self.hidden + other.hidden,
            self.relations_said | other.relations_said,
        )

    def is_named(self, alias: str, table: tuple[str, ...]) -> bool:
        """Return whether a table that is called so here is the one that is named, maybe behind its
        schema."""
        if alias != table[-1]:
            return False
        return len(table) == 1 or self.relations_said.get(alias) == qualified(*table)

    def as_nullable(self) -> Names:
        """Return the names of a side of an outer join that may be missing."""
        tables = [(alias, _nullable(columns)) for alias, columns in self.tables]
        hidden = []
        for alias, columns in self.hidden:
            there = _always_there(dict(self.tables)[alias])
            if there is not None:
                columns = [(name, _or_null(bound, there)) for name, bound in columns]
            if not any(isinstance(bound, Value) for _, bound in columns):
                hidden.append((alias, columns))
        return Names(tables, _nullable(self.columns), hidden, self.relations_said)


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
    where; `groupings` are those of this level, and where their arguments stand; `siblings` are the
    names that a LATERAL query would see."""

    parent: Scope | None = None
    names: Names = field(default_factory=Names)
    ctes: dict[str, KnownCte] = field(default_factory=dict)
    mentions: list[tuple[Field, int]] = field(default_factory=list)
    groupings: list[tuple[Grouping, tuple[int, ...]]] = field(default_factory=list)
    correlated: bool = False
    siblings: Names | None = None

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
            if scope.siblings is not None and _found(scope.siblings, parts, at) is not None:
                raise FeatureNotSupported(
                    "a LATERAL query that uses columns of the tables before it is not supported",
                    position=at,
                )
            passed.append(scope)
            scope = scope.parent
        name = ".".join(parts)
        if len(parts) > 1:
            raise UnknownTable(
                f"missing FROM-clause entry for table {parts[-2]!r}", position=at, table=parts[-2]
            )
        scope = self
        while scope is not None:
            if any(alias == name for alias, _ in scope.names.tables):
                raise FeatureNotSupported(
                    f"{name!r} as a whole row is not supported: name its columns", position=at
                )
            scope = scope.parent
        raise UnknownColumn(f"column {name!r} does not exist", position=at, column=name)

    def star(self, node: Star) -> Columns:
        """Return the columns that * or table.* means. Raises UnknownTable."""
        if not node.table:
            return self.names.columns
        for name, columns in self.names.tables:
            if self.names.is_named(name, node.table):
                return columns
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
            found = [bound for _, columns in names.hidden for n, bound in columns if n == parts[0]]
            if len(found) > 1:
                raise AmbiguousColumn(
                    f"column reference {parts[0]!r} is ambiguous", position=at, column=parts[0]
                )
        return found[0] if found else None
    *table, column = parts
    for alias, columns in names.tables:
        if names.is_named(alias, tuple(table)):
            found = [bound for name, bound in columns if name == column]
            if not found:
                of = (columns for name, columns in names.hidden if name == alias)
                found = [bound for columns in of for name, bound in columns if name == column]
            if len(found) > 1:
                raise AmbiguousColumn(
                    f"column reference {column!r} is ambiguous", position=at, column=column
                )
            if not found:
                raise UnknownColumn(
                    f"column {alias}.{column} does not exist", position=at, column=column
                )
            return found[0]
    return None
