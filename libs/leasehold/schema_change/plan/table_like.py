"""CREATE TABLE (LIKE other …): the columns of a table that is there, and what else of it a new one
is to have, as the statements that would say so themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, Index
from leasehold.catalog.names import relation_names
from leasehold.catalog.namespaces import bare, qualified
from leasehold.catalog.object_names import free_object_name, joined_names, primary_key_name
from leasehold.catalog.sequence import Options
from leasehold.catalog.sequence_ownership import refuse_sequence
from leasehold.catalog.states import State
from leasehold.model.errors import FeatureNotSupported, InvalidDefinition
from leasehold.schema_change.declared.wording import create_index_text
from leasehold.schema_change.plan.busy_tables import is_table
from leasehold.sql.ddl.columns import find_drawn_sequence
from leasehold.sql.ddl.create_table import complete_table
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.object_statements import Comment, ObjectKind, ObjectName
from leasehold.sql.syntax.statements import (
    Change,
    CheckDefinition,
    ColumnDefinition,
    CreateIndex,
    CreateTable,
    GeneratedDefinition,
    NumberingDefinition,
    TableLike,
    UniqueDefinition,
)
from leasehold.sql.system_catalog.oids import PRIMARY_KEY

_THERE: Final = frozenset({State.WRITE_ONLY, State.PUBLIC})
"""Of a CHECK that is enforced; the new table has no rows that could break it."""


@dataclass(frozen=True, slots=True)
class LikeTable:
    """A new table with all its columns, and what is said behind it: indexes, and comments."""

    table: CreateTable
    behind: tuple[Change, ...]


def expand_likes(made: CreateTable, catalog: Catalog, shared: Catalog | None = None) -> LikeTable:
    """Return the table that a statement with LIKE makes on `catalog`, where the tables are that it
    names, or among those that are `shared` with others. Raises UnknownTable, WrongObject for a
    sequence, and what such columns and constraints raise where they are said."""
    expanding = _Expanding(made, catalog, shared)
    columns: list[ColumnDefinition] = []
    for place in range(len(made.columns) + 1):
        for like in made.likes:
            if like.place == place:
                columns += expanding.columns(like)
        columns += made.columns[place : place + 1]
    table = replace(
        made,
        columns=tuple(columns),
        primary_key=expanding.primary_key,
        key_included=expanding.key_included,
        uniques=tuple(expanding.uniques),
        checks=tuple(expanding.checks),
        likes=(),
    )
    return LikeTable(
        complete_table(table, made.likes[0].position),
        (*expanding.indexes, *expanding.comments),
    )


class _Expanding:
    """What has been copied so far."""

    def __init__(self, made: CreateTable, catalog: Catalog, shared: Catalog | None) -> None:
        self._made = made
        self._own, self._shared = catalog, shared
        self._catalog = catalog
        self._taken = {*relation_names(catalog), made.name}
        self.primary_key = made.primary_key
        self.key_included = made.key_included
        self.uniques = list(made.uniques)
        self.checks = list(made.checks)
        self.indexes: list[CreateIndex] = []
        self.comments: list[Comment] = []

    def columns(self, like: TableLike) -> Iterator[ColumnDefinition]:
        """Yield the columns of a table, and keep what else is copied of it."""
        own = self._shared is None or is_table(self._own, like.table)
        self._catalog = self._own if own or self._shared is None else self._shared
        view = self._catalog.access.views_by_name.get(like.table)
        source = refuse_sequence(
            self._catalog.resolve(like.table) if view is None else view.relation, like.position
        )
        for column in source.by_name.values():
            yield self._column(like, column)
            self._comment(like, source, column.position, ObjectKind.COLUMN, column.name)
        if "constraints" in like.includes:
            for check in source.checks:
                if check.state in _THERE:
                    self._check(like, source, check)
        if "indexes" in like.includes and view is None:
            self._key(like, source)
            for index in source.indexes:
                if index.state is State.PUBLIC and not index.implied:
                    self._index(like, source, index)

    def _column(self, like: TableLike, column: Column) -> ColumnDefinition:
        made = ColumnDefinition(column.name, column.type, column.nullable, position=like.position)
        if column.generated and column.derived is not None:
            if "generated" not in like.includes:
                return made
            said = column.derived
            return replace(
                made, generated=GeneratedDefinition(said.expression, like.position, said.zone)
            )
        if column.identity:
            if "identity" not in like.includes:
                return made
            return replace(made, numbering=self._identity(like, column), nullable=False)
        if "defaults" not in like.includes:
            return made
        drawn = find_drawn_sequence(column.default_expression)
        if drawn is None:
            return replace(
                made,
                default=column.default,
                default_expression=column.default_expression,
                default_text=column.default_text,
            )
        if self._made.temporary:
            raise FeatureNotSupported(
                f"column {column.name!r}: a temporary table can't draw from sequence {drawn!r},"
                " which all sessions share: leave INCLUDING DEFAULTS out",
                position=like.position,
            )
        return replace(made, numbering=NumberingDefinition(named=drawn, position=like.position))

    def _identity(self, like: TableLike, column: Column) -> NumberingDefinition:
        sequence = self._catalog.newest(column.draws_from).sequence
        assert sequence is not None, column
        options = Options(
            sequence.type,
            sequence.start,
            sequence.increment,
            sequence.least,
            sequence.most,
            sequence.cache,
            sequence.cycles,
        )
        return NumberingDefinition(column.identity, options, position=like.position)

    def _check(self, like: TableLike, source: Descriptor, check: Check) -> None:
        name = qualified(self._made.schema, bare(source.schema, check.name))
        self.checks.append(
            CheckDefinition(check.expression, name, position=like.position, zone=check.zone)
        )
        self._comment(like, source, -check.element_id, ObjectKind.CONSTRAINT, name)

    def _key(self, like: TableLike, source: Descriptor) -> None:
        if source.hidden_key:
            return
        if self.primary_key:
            raise InvalidDefinition(
                f'multiple primary keys for table "{self._made.name}" are not allowed',
                position=like.position,
            )
        self.primary_key = tuple(column.name for column in source.key_columns)
        self.key_included = tuple(column.name for column in source.included_columns)
        name = self._made.key_name or primary_key_name(self._made.name)
        self._comment(like, source, -PRIMARY_KEY, ObjectKind.CONSTRAINT, name)

    def _index(self, like: TableLike, source: Descriptor, index: Index) -> None:
        if not index.constraint:
            said = parse_ddl(create_index_text(source, index))
            assert isinstance(said, CreateIndex), said
            name = self._free(said.parts_of_name, "idx")
            self.indexes.append(replace(said, table=self._made.name, name=name, named=True))
            self._comment(like, source, index.element_id, ObjectKind.INDEX, name)
            return
        columns, included = (
            tuple(source.by_id[each].name for each in part)
            for part in (index.columns, index.included)
        )
        name = self._free((*columns, *included), "key")
        self.uniques.append(
            UniqueDefinition(
                *(columns, name, like.position, index.equal_nulls, included, index.deferrable)
            )
        )
        self._comment(like, source, -index.element_id, ObjectKind.CONSTRAINT, name)

    def _free(self, parts: Collection[str], label: str) -> str:
        """Return a name that nothing has, as PostgreSQL makes it."""
        name = free_object_name(self._made.name, joined_names(parts), label, self._taken)
        self._taken.add(name)
        return name

    def _comment(
        self, like: TableLike, source: Descriptor, element_id: int, kind: ObjectKind, name: str
    ) -> None:
        text = self._catalog.access.comments.get((source.table_id, element_id))
        if text is not None and "comments" in like.includes:
            relation = "" if kind is ObjectKind.INDEX else self._made.name
            named = ObjectName(name, relation)
            self.comments.append(Comment(kind, named, like.position, text))
