"""DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (…): another key for a table that has rows and users.

A row's key is its identity: where it lies in a store, what entries, images, chunks and requests
name. So the rows go over to another table that has the same columns and the other key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidDefinition,
    UnknownColumn,
)
from leasehold.schema.descriptor import DEFAULT_LOCK, Descriptor
from leasehold.schema.elements import HIDDEN_NAME, Column, ForeignKey, Index
from leasehold.schema.making import made_index
from leasehold.schema.names import PRIMARY_KEY_SUFFIX, constraint_names, free_name
from leasehold.schema.references import References, index_over
from leasehold.schema.tracks import Track, another_key
from leasehold.schema.types import Type, why_no_key
from leasehold.sql.parse import placed
from leasehold.sql.statements import Action, AddPrimaryKey, DropConstraint

HIDDEN_TYPE: Final = Type("uuid")


def hidden_column(element_id: int) -> Column:
    """The key of a table that has no PRIMARY KEY (T7)."""
    return Column(element_id, HIDDEN_NAME, HIDDEN_TYPE, nullable=False, hidden=True)


def asked_key(table: Descriptor, actions: Sequence[Action]) -> AddPrimaryKey | None:
    """What the actions ask for if they are about the primary key.

    Raises InvalidDefinition (42P16) for a second key beside the one there is,
    FeatureNotSupported for a table without any, and for other actions beside.
    """
    name = table.name + PRIMARY_KEY_SUFFIX
    added = [action for action in actions if isinstance(action, AddPrimaryKey)]
    dropped = [a for a in actions if isinstance(a, DropConstraint) and a.name == name]
    named = table.hidden_key or table.index(name) or table.check(name)
    if not added and (not dropped or named):
        return None
    if not added:
        raise FeatureNotSupported(
            f"constraint {name!r} is the primary key, and a table has one: add the other key in the"
            f" same statement, DROP CONSTRAINT {name}, ADD PRIMARY KEY (…)",
            constraint=name,
            position=dropped[0].position,
        )
    if len(added) > 1 and table.hidden_key:
        raise InvalidDefinition(
            f"table {table.name!r} can have one primary key",
            table=table.name,
            position=added[-1].position,
        )
    if len(added) > 1 or (not dropped and not table.hidden_key):
        raise InvalidDefinition(
            f"table {table.name!r} can have one primary key: drop the one there is in the same"
            f" statement, DROP CONSTRAINT {name}, ADD PRIMARY KEY (…)",
            table=table.name,
            position=added[-1].position,
        )
    if len(actions) > (1 if table.hidden_key else 2):
        way = "" if table.hidden_key else f" DROP CONSTRAINT {name},"
        raise FeatureNotSupported(
            f"a primary key is changed by a statement of its own: ALTER TABLE …{way} ADD PRIMARY"
            " KEY (…), and nothing else",
            position=added[0].position,
        )
    return added[0]


def key_columns(table: Descriptor, key: AddPrimaryKey) -> tuple[Column, ...]:
    """Raises UnknownColumn, InvalidDefinition (42P16), FeatureNotSupported."""
    found = []
    for name in key.columns:
        try:
            column = table.column(name)
        except UnknownColumn as error:
            raise placed(error, key.position) from error
        where = {"column": column.name, "position": key.position}
        if column.derived is not None:
            raise InvalidDefinition(
                f"column {name!r} is generated, which a column of a primary key can't be", **where
            )
        if words := why_no_key(column.type):
            raise FeatureNotSupported(
                f"column {name!r} can't be in the PRIMARY KEY: {words}", **where
            )
        if column.locks != (DEFAULT_LOCK,):
            raise FeatureNotSupported(
                f"column {name!r} is under a lock of its own, and a key is under none: drop the"
                " lock first",
                **where,
            )
        found.append(column)
    return tuple(found)


def refuse_referred(references: References, table: Descriptor, position: int) -> None:
    """Raises FeatureNotSupported where foreign keys refer to the table, its own too."""
    for child, key in references():
        raise FeatureNotSupported(
            f"foreign key {key.name!r} of table {child.name!r} refers to table {table.name!r},"
            " whose primary key can't be changed under it yet: drop the foreign key, change the"
            " key, and add it again",
            table=table.name,
            position=position,
        )


def key_tracks(
    table: Descriptor, columns: tuple[Column, ...], other_id: int, taken: set[str]
) -> list[Track]:
    """The ways of both tables. Raises FeatureNotSupported for a type that can't be a key,
    OutOfRange (limits). `taken`: names of relations."""
    name = free_name(table.name, PRIMARY_KEY_SUFFIX, taken | constraint_names(table))
    index = made_index(table, name, columns, table.next_element_id)
    nullable = [column for column in columns if column.nullable]
    other = _under_key(table, columns, other_id, taken | {name})
    return another_key(table, other, index, nullable)


def _under_key(
    table: Descriptor, columns: tuple[Column, ...], other_id: int, taken: set[str]
) -> Descriptor:
    """The same table with another key. Elements keep their ids, so that a row has one image in
    both; new ones get ids that neither has had."""
    key = tuple(column.element_id for column in columns)
    shown = tuple(
        replace(c, nullable=False, not_null_enforced=False) if c.element_id in key else c
        for c in (_still_hidden(c) if c.hidden else c for c in table.columns)
    )
    other = replace(
        table,
        table_id=other_id,
        columns=shown,
        primary_key=key,
        next_element_id=table.next_element_id + 1,
        twin=table.table_id,
        former=table.table_id,
        modified_us=0,
        since_lsn=0,
    )
    for foreign in table.foreign_keys:
        other = _with_index(other, foreign, taken)
    return other


def _still_hidden(column: Column) -> Column:
    """Rows that are inserted under the new key have one in the old table, too, while that is
    written."""
    return replace(column, default_expression="gen_random_uuid()")


def _with_index(table: Descriptor, foreign: ForeignKey, taken: set[str]) -> Descriptor:
    """A foreign key whose rows were found by the old primary key has an index from now on."""
    if foreign.index:
        return table
    columns = tuple(table.by_id[element_id] for element_id in foreign.columns)
    indexes: Iterable[Index] = table.indexes
    found = index_over(table, columns)
    if found is None:
        stem = "_".join((table.name, *(column.name for column in columns)))
        name = free_name(stem, "_idx", taken)
        taken.add(name)
        made = replace(made_index(table, name, columns, table.next_element_id), implied=True)
        found, indexes = made.element_id, (*table.indexes, made)
    keys = (
        replace(k, index=found) if k.element_id == foreign.element_id else k
        for k in table.foreign_keys
    )
    next_id = max(table.next_element_id, found + 1)
    return replace(table, indexes=tuple(indexes), foreign_keys=tuple(keys), next_element_id=next_id)
