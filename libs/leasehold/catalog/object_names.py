"""Names that a statement leaves out, made as PostgreSQL makes them (`makeObjectName` and
`ChooseRelationName` of its backend/commands/indexcmds.c).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import count
from typing import Final

NAME_BYTES_MAX: Final = 63
PRIMARY_KEY_LABEL: Final = "pkey"


def object_name(table: str, parts: str, label: str) -> str:
    """Return `table_parts_label`, without `parts` if it is empty: at most NAME_BYTES_MAX bytes of
    UTF-8. Where that is too long the longer one of `table` and `parts` loses its end, so that both
    can be told."""
    first, second = table.encode(), parts.encode()
    room = NAME_BYTES_MAX - len(label.encode()) - 1 - bool(parts)
    while len(first) + len(second) > room:
        if len(first) > len(second):
            first = first[:-1]
        else:
            second = second[:-1]
    kept = [each.decode(errors="ignore") for each in (first, second)]
    return "_".join((*(kept if parts else kept[:1]), label))


def free_object_name(table: str, parts: str, label: str, taken: Collection[str]) -> str:
    """Return `object_name`, with a number behind the label where the name is in `taken`."""
    name = object_name(table, parts, label)
    numbers = count(1)
    while name in taken:
        name = object_name(table, parts, f"{label}{next(numbers)}")
    return name


def distinct_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of which a repeated one has a number, b and b1, as in PostgreSQL's names."""
    found: dict[str, None] = {}
    for name in names:
        number, called = 0, name
        while called in found:
            number += 1
            called = f"{name}{number}"
        found[called] = None
    return tuple(found)


def joined_names(names: Iterable[str]) -> str:
    """Return the columns' part of a name; of many columns no more than a name can hold."""
    joined = ""
    for name in names:
        joined = f"{joined}_{name}" if joined else name
        if len(joined.encode()) > NAME_BYTES_MAX:
            break
    return joined


def primary_key_name(table: str) -> str:
    """Return the name of a primary key that was given none."""
    return object_name(table, "", PRIMARY_KEY_LABEL)
