"""d ⊨ S: does a key-value store hold exactly what a descriptor says? The seven conditions.

Source: F1's definition of consistency, as restated in the project's schema-change design. Broken
1, 3, 5 or 7 is an *orphan anomaly* (something is there that must not be), 2, 4 or 6 an *integrity
anomaly* (something is missing, or a constraint does not hold). Models call this after every
transition; tests and checkers of stores call it on what a store holds at one log position.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from typing import Any, Final, NamedTuple, TypeAlias

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ForeignKey
from leasehold.catalog.states import READABLE, WRITTEN, State
from leasehold.model.keys import Key
from leasehold.rows import index_entries as entries
from leasehold.rows.check_constraints import condition_of, explain_violation
from leasehold.rows.generated import explain_difference, is_relied_on, value_of
from leasehold.values.storage import is_kept

ORPHAN_CONDITIONS: Final = frozenset({1, 3, 5, 7})
INTEGRITY_CONDITIONS: Final = frozenset({2, 4, 6})


Parents: TypeAlias = Callable[[ForeignKey], Set[Key]]


class KeyValueData(NamedTuple):
    """One table as pairs. A pair whose value would be NULL is not there.

    `exists`: primary keys of rows; `columns`: (primary key, element id) → storage value, columns
    outside the primary key; `entries`: (index id, `entries.Entry`, primary key), NULL as None;
    `physical`: element ids that have storage of their own, be it empty (columns, entry tables).
    """

    exists: Set[Key]
    columns: Mapping[tuple[Key, int], Any]
    entries: Set[tuple[int, Key, Key]]
    physical: Set[int] = frozenset()


class Violation(NamedTuple):
    """`condition` is 1 to 7; element 0 stands for the row or table itself."""

    condition: int
    element_id: int
    key: Key
    words: str

    @property
    def anomaly(self) -> str:
        return "orphan" if self.condition in ORPHAN_CONDITIONS else "integrity"


def violations(
    data: KeyValueData,
    descriptor: Descriptor,
    dead: Set[int] = frozenset(),
    parents: Parents | None = None,
) -> tuple[Violation, ...]:
    """Every breach of d ⊨ S, by condition, element and key; empty when the data is consistent.

    `parents` gives the values that a foreign key may refer to; without it none is looked at.

    `dead` are element ids that the log has declared dead: their pairs wait for the history
    horizon on purpose, so they are skipped, by id and not wholesale — but never where this very
    version still writes or reads the element, for whose users it is not dead at all.
    """
    dead = {e for e in dead if _state_of(descriptor, e) not in WRITTEN}
    if descriptor.state is State.ABSENT:
        return _leftovers_of_absent(data, dead)
    images: dict[Key, dict[int, Any]] = {key: {} for key in data.exists}
    found: list[Violation] = []
    for (key, element_id), value in data.columns.items():
        if element_id in dead:
            continue
        if key in images:
            images[key][element_id] = value
        found.extend(_pair(descriptor, key, element_id, value, exists=key in images))
    found.extend(_required(descriptor, images))
    # A primary-key column's value stands in the key itself.
    rows = {
        key: {**image, **dict(zip(descriptor.primary_key, key, strict=True))}
        for key, image in images.items()
    }
    found.extend(_derived(descriptor, rows))
    found.extend(_entries(data, descriptor, rows, dead))
    found.extend(_computable(descriptor, rows))
    found.extend(_unique(descriptor, rows))
    found.extend(_checks(descriptor, rows))
    if parents is not None:
        found.extend(_references(descriptor, rows, parents))
    found.extend(_physical(data, descriptor, dead))
    return tuple(sorted(found, key=lambda v: (v.condition, v.element_id, repr(v.key))))


def find_unheld(
    data: KeyValueData, newest: Descriptor, elements: Collection[int]
) -> tuple[Violation, ...]:
    """Return the values of these columns that the narrower type lacks which they are to have:
    condition 6, once they have it."""
    held = {c.element_id: c for c in newest.columns if c.narrow is not None}
    pairs = dict(data.columns)
    pairs |= {
        ((*k,), e): v for k in data.exists for e, v in zip(newest.primary_key, k, strict=True)
    }
    return tuple(
        Violation(6, e, key, f"column {held[e].name!r}: {value!r} is no {held[e].narrow}")
        for (key, e), value in sorted(pairs.items(), key=repr)
        if e in held and e in elements and not is_kept(held[e].written_type, value)
    )


def _state_of(descriptor: Descriptor, element_id: int) -> State:
    element = descriptor.element(element_id)
    return State.ABSENT if element is None else element.state


def _leftovers_of_absent(data: KeyValueData, dead: Set[int]) -> tuple[Violation, ...]:
    found = [Violation(7, 0, key, "a row of a table that is absent") for key in data.exists]
    found += [
        Violation(1, element_id, key, "a column pair of a table that is absent")
        for key, element_id in data.columns
        if element_id not in dead
    ]
    found += [
        Violation(3, index_id, key, "an entry of a table that is absent")
        for index_id, _, key in data.entries
        if index_id not in dead
    ]
    return tuple(found)


def _pair(
    descriptor: Descriptor, key: Key, element_id: int, value: Any, *, exists: bool
) -> list[Violation]:
    """Condition 1, and 7 for a pair that can have no meaning."""
    column = descriptor.by_id.get(element_id)
    name = f"column {element_id}" if column is None else f"column {column.name!r}"
    found: list[Violation] = []
    if column is None:
        words = f"{name} is not in version {descriptor.version}, yet the row has a pair of it"
        found.append(Violation(1, element_id, key, words))
    if not exists:
        words = f"{name} has a pair, yet the row does not exist"
        found.append(Violation(1, element_id, key, words))
    if value is None:
        words = f"{name} has a pair that holds NULL, which only its absence may stand for"
        found.append(Violation(7, element_id, key, words))
    elif element_id in descriptor.primary_key:
        expected = key[descriptor.primary_key.index(element_id)]
        if value != expected:
            words = f"{name} says {value!r} where the primary key says {expected!r}"
            found.append(Violation(7, element_id, key, words))
    return found


def _required(descriptor: Descriptor, images: Mapping[Key, Mapping[int, Any]]) -> list[Violation]:
    """Condition 2: every public row has all its public required columns.

    A nullable column with a default was filled for old rows when it became public; afterwards a
    writer may set it to NULL, so only NOT NULL is required of what is public.
    """
    if descriptor.state not in READABLE:
        return []
    needed = [
        column
        for column in descriptor.columns
        if column.state in READABLE
        and not column.nullable
        and column.element_id not in descriptor.primary_key
    ]
    return [
        Violation(
            2,
            column.element_id,
            key,
            f"the row lacks its pair of column {column.name!r}, public and required",
        )
        for key, image in images.items()
        for column in needed
        if column.element_id not in image
    ]


def _derived(descriptor: Descriptor, rows: Mapping[Key, Mapping[int, Any]]) -> list[Violation]:
    """Condition 2 for a column that follows from others: each row has its value."""
    found: list[Violation] = []
    for column in descriptor.columns:
        if not is_relied_on(column):
            continue
        compute = value_of(descriptor, column)
        for key, row in rows.items():
            why = explain_difference(compute, row, column.element_id)
            if why:
                words = f"column {column.name!r}, computed from others: {why}"
                found.append(Violation(2, column.element_id, key, words))
    return found


def _entries(
    data: KeyValueData,
    descriptor: Descriptor,
    rows: Mapping[Key, Mapping[int, Any]],
    dead: Set[int],
) -> list[Violation]:
    """Conditions 3 (known index), 5 (agrees with a row) and 4 (none is missing)."""
    indexes = {index.element_id: index for index in descriptor.indexes}
    implied: dict[int, dict[Key, Key | None]] = {}
    for each in descriptor.indexes:
        entry_of = entries.entry_of(descriptor, each)
        implied[each.element_id] = {key: entry_of(row) for key, row in rows.items()}
    found: list[Violation] = []
    for index_id, values, key in data.entries:
        if index_id in dead:
            continue
        index = indexes.get(index_id)
        if index is None:
            words = f"index {index_id} is not in version {descriptor.version}, yet has an entry"
            found.append(Violation(3, index_id, key, words))
        elif key not in rows:
            words = f"index {index.name!r} has entry {values!r}, yet the row does not exist"
            found.append(Violation(5, index_id, key, words))
        elif implied[index_id][key] != values:
            words = (
                f"index {index.name!r} has entry {values!r}, yet the row implies "
                f"{implied[index_id][key] or 'none'!r}"
            )
            found.append(Violation(5, index_id, key, words))
    for index in descriptor.indexes:
        if index.state not in READABLE:
            continue
        for key, wanted in implied[index.element_id].items():
            if wanted is not None and (index.element_id, wanted, key) not in data.entries:
                words = f"index {index.name!r}, public, lacks its entry {wanted!r}"
                found.append(Violation(4, index.element_id, key, words))
    return found


def _computable(descriptor: Descriptor, rows: Mapping[Key, Mapping[int, Any]]) -> list[Violation]:
    """Condition 6: a public index is a constraint, too: each row's entry can be computed."""
    found: list[Violation] = []
    for index in descriptor.indexes:
        if index.state not in READABLE or not index.computed:
            continue
        exact = entries.exact_entry(descriptor, index)
        for key, row in rows.items():
            why = entries.explain_failure(exact, row)
            if why:
                words = f"index {index.name!r}: {why}"
                found.append(Violation(6, index.element_id, key, words))
    return found


def _unique(descriptor: Descriptor, rows: Mapping[Key, Mapping[int, Any]]) -> list[Violation]:
    """Condition 6: a public unique index has no two rows with equal keys; NULLs are equal where it
    says so."""
    found: list[Violation] = []
    for index in descriptor.indexes:
        if not index.unique or index.state not in READABLE:
            continue
        first: dict[Key, Key] = {}
        entry_of = entries.entry_of(descriptor, index)
        for key in sorted(rows, key=repr):
            values = entries.key_of(index, entry_of(rows[key]))
            if values is None or not index.can_collide(values):
                continue
            other = first.setdefault(values, key)
            if other != key:
                words = f"unique index {index.name!r}: {values!r} is also in row {other!r}"
                found.append(Violation(6, index.element_id, key, words))
    return found


def _checks(descriptor: Descriptor, rows: Mapping[Key, Mapping[int, Any]]) -> list[Violation]:
    """Condition 6: no row makes a public check false; NULL is not false."""
    found: list[Violation] = []
    for check in descriptor.checks:
        if check.state not in READABLE:
            continue
        holds = condition_of(descriptor, check)
        for key, row in rows.items():
            why = explain_violation(holds, row)
            if why:
                words = f"check {check.name!r}: {why}"
                found.append(Violation(6, check.element_id, key, words))
    return found


def _references(
    descriptor: Descriptor, rows: Mapping[Key, Mapping[int, Any]], parents: Parents
) -> list[Violation]:
    """Condition 6: every reference without a NULL has its row; MATCH FULL has NULLs alone."""
    found: list[Violation] = []
    for foreign in descriptor.foreign_keys:
        if foreign.state not in READABLE:
            continue
        there = parents(foreign)
        for key, row in rows.items():
            values = tuple(row.get(column) for column in foreign.columns)
            if None not in values and values not in there:
                words = f"foreign key {foreign.name!r}: {values!r} is not there"
                found.append(Violation(6, foreign.element_id, key, words))
            if foreign.is_mixed(row):
                words = f"foreign key {foreign.name!r}: {values!r} is NULL in parts"
                found.append(Violation(6, foreign.element_id, key, words))
    return found


def _physical(data: KeyValueData, descriptor: Descriptor, dead: Set[int]) -> list[Violation]:
    """Condition 7: no storage is kept for an element that is neither in S nor dead."""
    return [
        Violation(7, element_id, (), f"element {element_id} has storage, yet is in no version")
        for element_id in sorted(data.physical)
        if element_id not in dead and descriptor.element(element_id) is None
    ]
