"""The entry that a row has in an index: the values of its key, then those of included columns.

In the key stands what a value is ordered and compared by: of a numeric its sort key.

Of a partial index only rows that make the predicate true have one; where key or predicate can't be
computed (1/a with a = 0) there is none, and `explain_failure` says why. Every node computes entries
from its own rows, so what is compiled here must give the same value on each, now and later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import EXPRESSION, Index
from leasehold.catalog.states import DELETED
from leasehold.model.errors import Refused
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.sql.expressions.expression import (
    compile_condition,
    compile_expression,
    make_total,
    type_of_expression,
)
from leasehold.sql.expressions.key_types import key_types
from leasehold.values.types import Type, sort_key_of, words_of

Entry: TypeAlias = Key
EntryOf: TypeAlias = Callable[[Image], Entry | None]
_KEPT_MAX: Final = 4_096
_kept: dict[tuple[int, int], tuple[Descriptor, tuple[tuple[Index, EntryOf], ...]]] = {}


def exact_entry(descriptor: Descriptor, index: Index) -> EntryOf:
    """Return a function from a row's image to its entry, None where the predicate is not true.

    Compile once per descriptor; the function raises a Refused where an expression meets a value it
    can't take, and for whatever else goes wrong inside. The columns that the index names may not be
    public yet, or no longer.
    """
    columns = (*index.columns, *index.included)
    if not _is_computed(descriptor, index):
        return lambda image: tuple(map(image.get, columns))
    there = descriptor.by_id
    seen = descriptor.showing(index.mentioned)
    texts = iter(index.expressions)
    parts: list[Callable[[Image], Any]] = []
    for column in index.columns:
        if column == EXPRESSION:
            text = next(texts)
            parts.append(_keyed(compile_expression(text, seen), type_of_expression(text, seen)))
        else:
            kind = there[column].type if column in there else None
            parts.append(_keyed(_pair(column), kind))
    parts += map(_pair, index.included)
    holds = compile_condition(index.predicate, seen) if index.predicate else None

    def entry(image: Image) -> Entry | None:
        if holds is not None and holds(image) != 1:
            return None
        return tuple([part(image) for part in parts])

    return make_total(f"the entry of index {index.name}", entry)


def _is_computed(descriptor: Descriptor, index: Index) -> bool:
    """Return whether there is more to an entry than values of the row as they are."""
    if index.computed:
        return True
    there = descriptor.by_id
    return any(c in there and sort_key_of(there[c].type) for c in index.columns)


def _pair(column: int) -> Callable[[Image], Any]:
    return lambda image: image.get(column)


def _keyed(value: Callable[[Image], Any], kind: Type | None) -> Callable[[Image], Any]:
    key = None if kind is None else sort_key_of(kind)
    if key is None:
        return value

    def keyed(image: Image) -> Any:
        found = value(image)
        return None if found is None else key(found)

    return keyed


def entry_of(descriptor: Descriptor, index: Index) -> EntryOf:
    """Return a function as `exact_entry` does, but a row whose entry can't be computed has none:
    for all who meet rows that writers could make before the index was there.

    ⚠ It raises nothing, here or when called: nodes apply the log with it. Of a text that can't be
    compiled here no row has an entry.
    """
    try:
        exact = exact_entry(descriptor, index)
    except Refused:
        return lambda image: None
    if not _is_computed(descriptor, index):
        return exact

    def entry(image: Image) -> Entry | None:
        try:
            return exact(image)
        except Refused:
            return None

    return entry


def explain_failure(exact: EntryOf, image: Image) -> str:
    """Return why a row can't have the entry that `exact_entry` computes, "" when nothing is in the
    way."""
    try:
        exact(image)
    except Refused as error:
        return f"its entry can't be computed on the row: {error.message}"
    return ""


def entries_kept(descriptor: Descriptor) -> tuple[tuple[Index, EntryOf], ...]:
    """Return the indexes whose entries an operation under `descriptor` touches, each with
    `entry_of`; kept as long as that very descriptor is in use."""
    name = descriptor.table_id, descriptor.version
    found = _kept.get(name)
    if found is None or found[0] is not descriptor:
        if len(_kept) >= _KEPT_MAX:
            _kept.clear()
        made = tuple((i, entry_of(descriptor, i)) for i in descriptor.indexes if i.state in DELETED)
        found = _kept[name] = (descriptor, made)
    return found[1]


def key_of(index: Index, entry: Entry | None) -> Key | None:
    """Return the part of an entry that is ordered, looked up and unique."""
    return None if entry is None else entry[: len(index.columns)]


def key_shown(descriptor: Descriptor, index: Index, key: Key) -> str:
    """Return the values of a key for people."""
    kinds = key_types(descriptor, index)
    return ", ".join(words_of(kind, value) for kind, value in zip(kinds, key, strict=True))
