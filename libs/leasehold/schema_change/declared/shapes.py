"""A schema in names alone: what of two catalogs can be compared, whatever their ids are.

Only what is public exists here, with constraints that are enforced and not validated yet. The order
of columns is no part of a shape: no statement changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.definitions import columns_of, default_meaning, index_keys
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import DEFAULT_LOCK, Check, Column, ForeignKey, Index
from leasehold.catalog.enum_types import as_called
from leasehold.catalog.sequence import Sequence
from leasehold.catalog.states import READABLE, WRITTEN, State
from leasehold.catalog.view import View
from leasehold.schema_change.declared.canonical_text import canonical_expression, canonical_query
from leasehold.sql.system_catalog.oids import PRIMARY_KEY


class ColumnShape(NamedTuple):
    """A column. `default` and `generated` are canonical expressions, "" = none; `identity` is "a",
    "d" or ""; `draws`: the sequence of its default, where it is no identity."""

    type: str
    nullable: bool
    default: str = ""
    generated: str = ""
    identity: str = ""
    draws: str = ""
    zone: str = ""


class IndexShape(NamedTuple):
    """An index, or a UNIQUE constraint (`constraint`)."""

    unique: bool
    constraint: bool
    keys: tuple[str, ...]
    orders: tuple[str, ...]
    included: tuple[str, ...]
    predicate: str
    equal_nulls: bool = False
    deferrable: str = ""


class CheckShape(NamedTuple):
    """A CHECK. `valid`: rows that were there hold it, too."""

    expression: str
    zone: str
    valid: bool


class ForeignKeyShape(NamedTuple):
    """A FOREIGN KEY, by the names of its columns and of those that it refers to."""

    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    on_delete: str
    on_update: str
    full: bool
    delete_sets: tuple[str, ...]
    valid: bool
    deferrable: str = ""


class TableShape(NamedTuple):
    """A table. `key`: the columns of its primary key, () = none, and `key_included` those that it
    includes; `locks`: the columns under each
    lock but the default one."""

    columns: Mapping[str, ColumnShape]
    key: tuple[str, ...]
    key_name: str
    key_included: tuple[str, ...]
    indexes: Mapping[str, IndexShape]
    checks: Mapping[str, CheckShape]
    foreign_keys: Mapping[str, ForeignKeyShape]
    locks: Mapping[str, frozenset[str]]


class SequenceShape(NamedTuple):
    """A sequence. `owner`: the column with which it goes, ("", "") = none; `identity`: it is that
    column's alone, and is made and altered by it."""

    options: Sequence
    owner: tuple[str, str]
    identity: bool


class ViewShape(NamedTuple):
    """A view: its query, and what its columns are called."""

    query: str
    columns: tuple[str, ...]


class CommentKey(NamedTuple):
    """What a comment is on. `kind` as COMMENT ON says it; `table` is that of a column or a
    constraint."""

    kind: str
    name: str
    table: str = ""


class Shape(NamedTuple):
    """A whole schema. `enums`: the labels of each enum type, in their order."""

    tables: Mapping[str, TableShape]
    sequences: Mapping[str, SequenceShape]
    views: Mapping[str, ViewShape]
    enums: Mapping[str, tuple[str, ...]]
    comments: Mapping[CommentKey, str]


def tables_of(catalog: Catalog) -> dict[str, Descriptor]:
    """Return the public tables by name, with enum types as they are called now."""
    enums = catalog.access.enums
    return {t.name: as_called(t, enums) for t in _public(catalog) if t.sequence is None}


def sequences_of(catalog: Catalog) -> dict[str, Descriptor]:
    """Return the public sequences by name."""
    return {t.name: t for t in _public(catalog) if t.sequence is not None}


def _public(catalog: Catalog) -> Iterable[Descriptor]:
    return (table for table in catalog.tables() if table.state in READABLE)


def shape_of(catalog: Catalog) -> Shape:
    """Return the schema of a catalog in names."""
    return Shape(
        {name: table_shape(table, catalog) for name, table in tables_of(catalog).items()},
        _sequence_shapes(catalog),
        {view.name: view_shape(view) for view in catalog.access.views.values()},
        {
            enum.name: tuple(label.text for label in enum.labels)
            for enum in catalog.access.enums.values()
        },
        _comments(catalog),
    )


def table_shape(table: Descriptor, catalog: Catalog) -> TableShape:
    """Return a table in names. `catalog` has what it refers to."""
    locks = {lock.name: lock.element_id for lock in table.row_locks if lock.state in READABLE}
    columns = columns_of(table)
    return TableShape(
        {column.name: _column_shape(column, catalog) for column in columns},
        () if table.hidden_key else _names(table, table.primary_key),
        "" if table.hidden_key else table.key_constraint,
        tuple(column.name for column in table.included_columns),
        {
            index.name: index_shape(table, index)
            for index in table.named_indexes
            if index.state in READABLE
        },
        {check.name: _check_shape(check) for check in table.checks if check.state in WRITTEN},
        {
            key.name: foreign_key_shape(table, key, catalog)
            for key in table.foreign_keys
            if key.state in WRITTEN
        },
        {
            name: frozenset(c.name for c in columns if c.locks[-1] == lock != DEFAULT_LOCK)
            for name, lock in locks.items()
        },
    )


def _column_shape(column: Column, catalog: Catalog) -> ColumnShape:
    text = default_meaning(column) or ""
    generated = column.derived is not None and column.generated
    draws = column.draws_from
    zone = column.derived.zone if column.derived is not None and generated else ""
    return ColumnShape(
        str(column.type),
        column.nullable,
        "" if generated or draws else canonical_expression(text),
        canonical_expression(text) if generated else "",
        column.identity,
        catalog.newest(draws).name if draws and not column.identity else "",
        zone,
    )


def index_shape(table: Descriptor, index: Index) -> IndexShape:
    """Return an index in names."""
    return IndexShape(
        index.unique,
        index.constraint,
        tuple(map(canonical_expression, index_keys(table, index))),
        index.orders if any(index.orders) else (),
        _names(table, index.included),
        canonical_expression(index.predicate),
        index.equal_nulls,
        index.deferrable,
    )


def _check_shape(check: Check) -> CheckShape:
    valid = check.state is State.PUBLIC
    return CheckShape(canonical_expression(check.expression), check.zone, valid)


def foreign_key_shape(table: Descriptor, key: ForeignKey, catalog: Catalog) -> ForeignKeyShape:
    """Return a foreign key in names."""
    parent = catalog.newest(key.parent)
    return ForeignKeyShape(
        _names(table, key.columns),
        parent.name,
        _names(parent, key.parent_columns),
        key.on_delete.value,
        key.on_update.value,
        key.full,
        _names(table, key.delete_sets),
        key.state is State.PUBLIC,
        key.deferral,
    )


def view_shape(view: View) -> ViewShape:
    """Return a view in names."""
    return ViewShape(canonical_query(view.text), tuple(column.name for column in view.columns))


def _sequence_shapes(catalog: Catalog) -> dict[str, SequenceShape]:
    owners: dict[int, tuple[str, str]] = {}
    identities: set[int] = set()
    for table in tables_of(catalog).values():
        for column in table.by_name.values():
            owners |= dict.fromkeys(column.own_sequences, (table.name, column.name))
            if column.identity:
                identities.add(column.draws_from)
    found = {}
    for name, sequence in sequences_of(catalog).items():
        assert sequence.sequence is not None, "it is one"
        owner = owners.get(sequence.table_id, ("", ""))
        options = sequence.sequence._replace(begins=None)
        found[name] = SequenceShape(options, owner, sequence.table_id in identities)
    return found


def _comments(catalog: Catalog) -> dict[CommentKey, str]:
    relations = {t.table_id: t for t in _public(catalog)}
    relations |= {view.table_id: view.relation for view in catalog.access.views.values()}
    found: dict[CommentKey, str] = {}
    for (object_id, element_id), text in catalog.access.comments.items():
        enum = catalog.access.enums.get(object_id)
        if enum is not None:
            found[CommentKey("TYPE", enum.name)] = text
            continue
        relation = relations.get(object_id)
        key = None if relation is None else _comment_key(relation, element_id, catalog)
        if key is not None:
            found[key] = text
    return found


def _comment_key(relation: Descriptor, element_id: int, catalog: Catalog) -> CommentKey | None:
    """Return what a comment is on; None: on what is gone."""
    if not element_id:
        is_view = relation.table_id in catalog.access.views
        kind = "VIEW" if is_view else "TABLE" if relation.sequence is None else "SEQUENCE"
        return CommentKey(kind, relation.name)
    if element_id < 0:
        named: dict[int, str] = {PRIMARY_KEY: relation.key_constraint}
        constraints: list[Check | ForeignKey] = [*relation.checks, *relation.foreign_keys]
        named |= {each.element_id: each.name for each in constraints}
        named |= {index.element_id: index.name for index in relation.named_indexes}
        name = named.get(-element_id)
        return None if name is None else CommentKey("CONSTRAINT", name, relation.name)
    places = {column.position: column.name for column in columns_of(relation)}
    if element_id in places:
        return CommentKey("COLUMN", places[element_id], relation.name)
    indexes = {PRIMARY_KEY: relation.key_constraint}
    indexes |= {index.element_id: index.name for index in relation.named_indexes}
    return CommentKey("INDEX", indexes[element_id]) if element_id in indexes else None


def _names(table: Descriptor, element_ids: Iterable[int]) -> tuple[str, ...]:
    return tuple(table.by_id[one].name for one in element_ids)
