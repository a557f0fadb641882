"""What changed between two versions of a descriptor, for people and programs. PURE."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import find_kind
from leasehold.catalog.elements import (
    DEFAULT_LOCK,
    DEFAULT_LOCK_NAME,
    Check,
    Column,
    Element,
    ForeignKey,
    Index,
    Lock,
    OnChange,
)
from leasehold.catalog.sequence import Sequence
from leasehold.catalog.states import State
from leasehold.values.storage import to_json

_IDENTITY: Final = {"a": "always", "d": "by default"}
TABLE_ITSELF: Final = 0
"""Stands for an element id where the table's own name or state changed."""


class ElementChange(NamedTuple):
    """An element that is not as it was. `before` is ABSENT for one that is new, `after` for one
    that is gone. `detail` is its definition, e.g. ``text not null default 'none'``, `was` that
    before. `former_name` differs from `name` where it was renamed."""

    kind: str  # table | column | index | check | lock | foreign key
    element_id: int
    name: str
    before: State
    after: State
    detail: str
    was: str
    former_name: str

    def __str__(self) -> str:
        named = f"{self.kind} {self.name}"
        if self.before is State.ABSENT:
            return f"{named} added, {self.after.label} ({self.detail})"
        if self.after is State.ABSENT:
            return f"{named} is gone (was {self.before.label})"
        if self.name != self.former_name:
            named = f"{self.kind} {self.former_name} is now named {self.name}"
        words = []
        if self.before is not self.after:
            words.append(f"{self.before.label} → {self.after.label}")
        if self.detail != self.was:
            words.append(f"now {self.detail}")
        return f"{named}: {', '.join(words)}" if words else named

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.element_id,
            "kind": self.kind,
            "name": self.name,
            "former_name": self.former_name,
            "before": self.before.label,
            "after": self.after.label,
            "detail": self.detail,
            "was": self.was,
        }


class _Shown(NamedTuple):
    kind: str
    name: str
    state: State
    detail: str
    position: int


def diff(before: Descriptor | None, after: Descriptor) -> tuple[ElementChange, ...]:
    """Return changes from one version to another of the same table, in order of element ids, and
    where one column takes over from another side by side; also of one that took its place under
    another primary key.

    Without `before` every element of `after` is new. Versions need not follow each other: a reader
    of the compacted topic may have missed some, and may look back too.
    """
    if before is not None and before.table_id != after.table_id:
        # One took the other's place; elements kept their ids.
        assert before.table_id == after.former or after.table_id == before.former, "of one table"
    keyed = before is not None and _key_of(before) != _key_of(after)
    old = _elements(before, keyed=keyed)
    new = _elements(after, keyed=keyed)
    changes = []
    for element_id, known in sorted({**old, **new}.items(), key=lambda each: each[1].position):
        if element_id == TABLE_ITSELF and before is None:
            continue  # a new table's elements say it all
        was, is_now = old.get(element_id), new.get(element_id)
        if was == is_now:
            continue
        changes.append(
            ElementChange(
                known.kind,
                element_id,
                known.name,
                was.state if was else State.ABSENT,
                is_now.state if is_now else State.ABSENT,
                known.detail,
                was.detail if was else "",
                was.name if was else known.name,
            )
        )
    return tuple(changes)


def _key_of(table: Descriptor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return table.primary_key, table.key_included


def element_words(descriptor: Descriptor, element: Element) -> str:
    """Return an element's definition as a person would write it."""
    match element:
        case Column():
            return column_words(element) + _lock_words(descriptor, element)
        case Index():
            return index_words(descriptor, element)
        case Check():
            return f"({element.expression})"
        case Lock():
            return lock_words(descriptor, element)
        case ForeignKey():
            return foreign_key_words(descriptor, element)


def element_name(element: Element) -> str:
    """Return what people call an element."""
    hidden = isinstance(element, Column) and element.hidden
    return "(hidden key)" if hidden else element.name


def column_words(column: Column) -> str:
    """Return a column's definition as a person would write it: ``integer not null default 0``."""
    words = [str(column.type)]
    if column.narrow is not None:
        words.append(f"as {column.narrow} on new writes")
    if not column.nullable:
        words.append("not null")
    elif column.not_null_enforced:
        words.append("not null on new writes")
    if column.default is not None:
        words.append(f"default {_literal(to_json(column.type, column.default))}")
    elif column.identity:
        words.append(f"generated {_IDENTITY[column.identity]} as identity")
        words.append(f"({column.default_expression})")
    elif column.default_expression:
        words.append(f"default {column.default_expression}")
    if column.own_sequences:
        many = "sequences" if len(column.own_sequences) > 1 else "sequence"
        words.append(f"owns {many} {', '.join(map(str, column.own_sequences))}")
    if column.filled and column.state is State.WRITE_ONLY:
        words.append("in every row")
    words += _derived_words(column)
    if column.alias:
        words.append(f"also named {column.alias}")
    return " ".join(words)


def _derived_words(column: Column) -> list[str]:
    """Return what is said of a value that follows from others of its row."""
    derived = column.derived
    if derived is None:
        return []
    words = [f"generated always as ({derived.expression}) stored"]
    if not derived.generated:
        words = [f"computed as ({derived.expression}) while its type changes"]
    if not derived.strict:
        words.append("where it can be computed")
    if derived.loose:
        words.append("until its expression is dropped")
    return words


def index_words(descriptor: Descriptor, index: Index) -> str:
    """Return an index's definition: ``unique on (origin, lower(dest)) include (gate) where gate is
    not null``."""
    columns = ", ".join(descriptor.key_words(index))
    included = ", ".join(descriptor.by_id[e].name for e in index.included if e in descriptor.by_id)
    columns = f"({columns})" + (f" include ({included})" if included else "")
    columns += f" where {index.predicate}" if index.predicate else ""
    unique = "unique on new writes " if index.unique_enforced else ""
    unique = "unique " if index.unique else unique
    unique += "nulls not distinct " if index.equal_nulls else ""
    also = f" also named {index.alias}" if index.alias else ""
    return f"{unique}on {columns}{also}"


def foreign_key_words(descriptor: Descriptor, key: ForeignKey) -> str:
    """Return a foreign key's definition: ``(carrier) refers to table 3 on delete cascade``. A
    version knows of its own table alone."""
    columns = ", ".join(descriptor.by_id[e].name for e in key.columns if e in descriptor.by_id)
    sets = ", ".join(descriptor.by_id[e].name for e in key.delete_sets if e in descriptor.by_id)
    said = " match full" if key.full else ""
    if key.on_delete is not OnChange.NO_ACTION:
        said += f" on delete {key.on_delete}" + (f" ({sets})" if sets else "")
    if key.on_update is not OnChange.NO_ACTION:
        said += f" on update {key.on_update}"
    said += " deferred" if key.deferred else " deferrable" if key.deferrable else ""
    return f"({columns}) refers to table {key.parent}{said}"


def lock_words(descriptor: Descriptor, lock: Lock) -> str:
    """Return what a lock covers: ``covering (gate, belt)``."""
    covered = (c.name for c in descriptor.columns if lock.element_id in c.locks)
    return f"covering ({', '.join(covered)})"


def table_words(descriptor: Descriptor) -> str:
    words = f"also named {descriptor.alias}" if descriptor.alias else "one name"
    words += (
        f", the rows of table {descriptor.mirror} under another key" if descriptor.mirror else ""
    )
    if descriptor.sequence is None:
        return words
    numbers = sequence_words(descriptor.sequence)
    return f"{numbers}, {words}" if descriptor.alias else numbers


def sequence_words(sequence: Sequence) -> str:
    """Return a sequence's options: ``a sequence of integer from 1 by 5, minvalue 1, maxvalue 9,
    cycles``."""
    words = f"a sequence of {sequence.type} from {sequence.start} by {sequence.increment}"
    words += f", minvalue {sequence.least}, maxvalue {sequence.most}"
    words += f", cache {sequence.cache}" if sequence.cache > 1 else ""
    words += ", cycles" if sequence.cycles else ""
    return words + (f", goes on from {sequence.begins}" if sequence.begins is not None else "")


def _lock_words(descriptor: Descriptor, column: Column) -> str:
    if column.locks == (DEFAULT_LOCK,):
        return ""
    names = {lock.element_id: lock.name for lock in descriptor.row_locks}
    held = (names.get(lock, DEFAULT_LOCK_NAME) for lock in column.locks)
    return f" under lock {' and '.join(held)}"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _elements(descriptor: Descriptor | None, *, keyed: bool) -> dict[int, _Shown]:
    """Return the elements by id, as they are shown. `keyed`: the primary key is told, too."""
    if descriptor is None:
        return {}
    words = table_words(descriptor)
    if keyed and descriptor.hidden_key:
        words = "no primary key"
    elif keyed:
        words = f"primary key ({', '.join(c.name for c in descriptor.key_columns)})"
        included = ", ".join(c.name for c in descriptor.included_columns)
        words += f" include ({included})" if included else ""
    table = _Shown("table", descriptor.name, descriptor.state, words, TABLE_ITSELF)
    found = {TABLE_ITSELF: table}
    for element in descriptor.elements:
        words = element_words(descriptor, element)
        kind = find_kind(element).value
        position = element.position if isinstance(element, Column) else element.element_id
        found[element.element_id] = _Shown(
            kind, element_name(element), element.state, words, position
        )
    return found


def public_diff(version: int, changes: Iterable[ElementChange]) -> dict[str, Any]:
    """Return what changed since `version`: a sentence per element, and the same for programs."""
    changes = tuple(changes)
    return {
        "from": version,
        "words": [str(change) for change in changes],
        "changes": [change.to_json() for change in changes],
    }
