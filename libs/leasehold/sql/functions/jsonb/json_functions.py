"""Functions and operators over json, whose parts come out as they were said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from leasehold.model.budget import charge_each
from leasehold.model.errors import InvalidArgument
from leasehold.sql.functions.function import INTEGER, JSON, TEXT, Function
from leasehold.sql.functions.jsonb.functions import Steps, by_array, index_of_step, path_of
from leasehold.values.json_text import Part, part_of, readable_part, unquoted

_ELEMENT_WORK: Final = 60


def member(part: Part, name: str) -> Part | None:
    """Return the value of a name, of several the last one."""
    if part.kind != "object":
        return None
    for own, value in zip(reversed(part.names), reversed(part.parts), strict=True):
        if unquoted(own) == name:
            return value
    return None


def element(part: Part, number: int) -> Part | None:
    """Return an element, from the end where the number is below 0."""
    inside = part.kind == "array" and -len(part.parts) <= number < len(part.parts)
    return part.parts[number] if inside else None


def _at_path(part: Part, path: str | Steps) -> Part | None:
    found: Part | None = part
    for step in path_of(path):
        if step is None or found is None:
            return None
        if found.kind == "object":
            found = member(found, step)
        else:
            number = index_of_step(step)
            found = None if number is None else element(found, number)
    return found


def raw_of(part: Part | None) -> str | None:
    return None if part is None else part.raw


def text_of_part(part: Part | None) -> str | None:
    """A string without quotes; null is NULL."""
    if part is None or part.kind == "null":
        return None
    return unquoted(part.raw) if part.kind == "string" else part.raw


def _found(
    find: Callable[[Part, Any], Part | None], show: Callable[[Part | None], str | None]
) -> Callable[[str, Any], str | None]:
    return lambda stored, what: show(find(readable_part(stored), what))


def _length(stored: str) -> int:
    part = part_of(stored)
    if part.kind == "object":
        raise InvalidArgument("cannot get array length of a non-array")
    if part.kind != "array":
        raise InvalidArgument("cannot get array length of a scalar")
    return len(part.parts)


def elements(stored: str, name: str) -> list[Part]:
    """Return the elements of an array. Raises InvalidArgument, in which the function is `name`."""
    part = readable_part(stored)
    if part.kind == "object":
        raise InvalidArgument(f"cannot call {name} on a non-array")
    if part.kind != "array":
        raise InvalidArgument(f"cannot call {name} on a scalar")
    return list(charge_each(part.parts, _ELEMENT_WORK))


def entries(stored: str, name: str) -> tuple[list[str], list[Part]]:
    """Return names and values of an object. Raises InvalidArgument, in which the function is
    `name`."""
    part = readable_part(stored)
    if part.kind != "object":
        what = "an array" if part.kind == "array" and name.endswith("keys") else "a non-object"
        what = "a scalar" if part.kind != "array" and name.endswith("keys") else what
        raise InvalidArgument(f"cannot call {name} on {what}")
    names = [unquoted(each) for each in charge_each(part.names, _ELEMENT_WORK)]
    return names, list(part.parts)


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("json_typeof", (JSON,), TEXT, lambda stored: part_of(stored).kind),
    Function("json_array_length", (JSON,), INTEGER, _length),
)
_BY_PATHS: Final = (
    Function("#>", (JSON, TEXT), JSON, _found(_at_path, raw_of)),
    Function("#>>", (JSON, TEXT), TEXT, _found(_at_path, text_of_part)),
)
OPERATORS: Final[tuple[Function, ...]] = (
    Function("->", (JSON, TEXT), JSON, _found(member, raw_of)),
    Function("->", (JSON, INTEGER), JSON, _found(element, raw_of)),
    Function("->>", (JSON, TEXT), TEXT, _found(member, text_of_part)),
    Function("->>", (JSON, INTEGER), TEXT, _found(element, text_of_part)),
    *(each for made in _BY_PATHS for each in (made, by_array(made))),
)
