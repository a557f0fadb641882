"""The error for a row whose key another row has, in PostgreSQL's words: people search for them, and
programs read the constraint's name from them.
"""

from __future__ import annotations

from collections.abc import Sequence

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Index
from leasehold.model.errors import DuplicateKey
from leasehold.model.keys import Key
from leasehold.rows.duplicated_keys import show_value
from leasehold.sql.expressions.key_types import key_types
from leasehold.values.types import Type


def primary_key_exists(descriptor: Descriptor, key: Key) -> DuplicateKey:
    """Returns the error for a primary key that is taken; `key` in storage form."""
    names = ", ".join(column.name for column in descriptor.key_columns)
    kinds = [column.type for column in descriptor.key_columns]
    return _duplicate(descriptor, descriptor.key_constraint, names, kinds, key)


def unique_key_exists(descriptor: Descriptor, index: Index, values: Key) -> DuplicateKey:
    """Returns the error for a key of a unique index that is taken."""
    names = ", ".join(descriptor.key_words(index))
    kinds = key_types(descriptor, index)
    return _duplicate(descriptor, index.name, names, kinds, values)


def primary_key_duplicated(descriptor: Descriptor, key: Key) -> DuplicateKey:
    """Returns the error for rows that are there and have one key, of a table that gets it for its
    primary key."""
    names = ", ".join(column.name for column in descriptor.key_columns)
    pairs = zip(descriptor.key_columns, key, strict=True)
    values = ", ".join(show_value(column.type, value) for column, value in pairs)
    return DuplicateKey(
        f'could not create unique index "{descriptor.key_constraint}"',
        detail=f"Key ({names})=({values}) is duplicated.",
        table=descriptor.name,
        constraint=descriptor.key_constraint,
        key=list(key),
    )


def _duplicate(
    descriptor: Descriptor, constraint: str, names: str, kinds: Sequence[Type], key: Key
) -> DuplicateKey:
    values = ", ".join(show_value(kind, value) for kind, value in zip(kinds, key, strict=True))
    return DuplicateKey(
        f'duplicate key value violates unique constraint "{constraint}"',
        detail=f"Key ({names})=({values}) already exists.",
        table=descriptor.name,
        constraint=constraint,
        key=list(key),
    )
