"""The public part of a table in words, as CREATE TABLE would say it (scenario 64)."""

from __future__ import annotations

from typing import Any, Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.names import named_indexes
from leasehold.catalog.states import State


def shape_of(table: Descriptor) -> tuple[str, ...]:
    """Columns, named indexes, checks and locks that are public; a check that is NOT VALID too."""
    names = {c.element_id: c.name for c in table.columns}

    def listed(columns: tuple[int, ...]) -> str:
        return ", ".join(names[element_id] for element_id in columns)

    if table.state is not State.PUBLIC:
        return ()
    words = [f"table {table.name}"]
    words += [_column(c) for c in table.columns if c.state is State.PUBLIC and not c.hidden]
    for index in named_indexes(table):
        if index.state is State.PUBLIC:
            unique = "unique " if index.unique else ""
            words.append(f"{unique}index {index.name} ({', '.join(table.key_words(index))})")
            words[-1] += f" include ({listed(index.included)})" if index.included else ""
            words[-1] += " nulls not distinct" if index.equal_nulls else ""
            words[-1] += f" where {index.predicate}" if index.predicate else ""
    for check in table.checks:
        late = "" if check.state is State.PUBLIC else " not valid"
        words.append(f"check {check.name} ({check.expression}){late}")
    for key in table.foreign_keys:
        if key.state is State.PUBLIC:
            words.append(f"foreign key {key.name} ({listed(key.columns)})")
            said = (("on delete", key.on_delete), ("on update", key.on_update))
            words[-1] += "".join(f" {event} {a}" for event, a in said if a != "no action")
    for lock in table.row_locks:
        if lock.state is State.PUBLIC:
            covered = tuple(c.element_id for c in table.columns if lock.element_id in c.locks)
            words.append(f"lock {lock.name} ({listed(covered)})")
    return tuple(words)


def _column(column: Column) -> str:
    null = "" if column.nullable else " not null"
    default = "" if column.default is None else f" default {column.default}"
    if column.default_expression:
        default = f" default {column.default_expression}"
    made = f" generated as ({column.derived.expression})" if column.derived else ""
    return f"{column.name} {column.type}{null}{default}{made}"


_OTHERS: Final = ("index", "unique index", "check", "foreign key", "lock")


def columns_of(shape: tuple[str, ...]) -> frozenset[str]:
    """The names of the columns in such words."""
    others = tuple(f"{other} " for other in ("table", *_OTHERS))
    return frozenset(w.split()[0] for w in shape if not w.startswith(others))


def others_of(shape: tuple[str, ...]) -> frozenset[str]:
    """The names of the rest, but for the table."""
    words = ((w, o) for w in shape for o in _OTHERS if w.startswith(f"{o} "))
    return frozenset(w.removeprefix(f"{o} ").split()[0] for w, o in words)


_NUMBERS = ("version", "next_element_id", "modified_us", "since_lsn")


def content_of(table: Descriptor) -> dict[str, Any]:
    """A descriptor without what counts up: equal before a job and after it was rolled back."""
    body = table.to_wire()
    return {k: v for k, v in body.items() if k not in _NUMBERS}
