"""Functions and operators over jsonb."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final

from leasehold.model.budget import charge_each
from leasehold.model.errors import InvalidArgument, InvalidText, NullNotAllowed
from leasehold.sql.functions.function import BOOLEAN, INTEGER, JSONB, TEXT, Function
from leasehold.sql.functions.texts.text import MADE_CHARACTERS_MAX, too_long
from leasehold.values.array_text import array_of_text
from leasehold.values.arrays import elements_of
from leasehold.values.jsonb import kind_of, text_of, value_of
from leasehold.values.jsonb_containment import contains
from leasehold.values.types import TEXT_BYTES_MAX, array_of

_ABSENT: Final = object()
_LINE_WORK: Final = 200


def _member(stored: str, name: str) -> Any:
    value = value_of(stored)
    return value.get(name, _ABSENT) if isinstance(value, dict) else _ABSENT


def _element(stored: str, number: int) -> Any:
    value = value_of(stored)
    if isinstance(value, dict):
        return _ABSENT
    listed = value if isinstance(value, list) else [value]  # a scalar is like a list of one here
    return listed[number] if -len(listed) <= number < len(listed) else _ABSENT


def _as_json(value: Any) -> str | None:
    return None if value is _ABSENT else text_of(value)


def text_of_value(value: Any) -> str | None:
    """A string without quotes; null is NULL."""
    if value is _ABSENT or value is None:
        return None
    return value if isinstance(value, str) else text_of(value)


def _shown(
    find: Callable[[str, Any], Any], show: Callable[[Any], str | None]
) -> Callable[[str, Any], str | None]:
    return lambda stored, name: show(find(stored, name))


_PATH_CHARACTERS_KEPT: Final = 1_000
"""A longer path is read each time: many long ones would be kept for nobody."""


Steps = tuple[str | None, ...]
"""What leads to a part of a document: a name, or a number from 0, in each step."""


def path_of(text: str | Steps) -> Steps:
    """Return the steps of '{a,1,"b c"}', PostgreSQL's text of an array of texts. Raises
    InvalidText."""
    if isinstance(text, tuple):
        return text
    return (_kept_path if len(text) <= _PATH_CHARACTERS_KEPT else _read_path)(text)


def _read_path(text: str) -> Steps:
    return tuple(elements_of(array_of_text(text, str)))


_kept_path = lru_cache(maxsize=1_024)(_read_path)


def by_array(made: Function) -> Function:
    """Return a function whose second argument is the text of a path, for a path that is an array of
    texts."""
    of_path = made.compute

    def compute(stored: Any, path: str, *more: Any) -> Any:
        return of_path(stored, tuple(elements_of(path)), *more)

    first, _, *rest = made.arguments
    return replace(made, arguments=(first, array_of(TEXT), *rest), compute=compute)


def index_of_step(step: str) -> int | None:
    """Return the whole number that a step of a path is, None where it is none."""
    try:
        return int(step) if len(step) < 12 and step.isascii() and "_" not in step else None
    except ValueError:
        return None


def _at_path(stored: str, path: str | Steps) -> Any:
    value = value_of(stored)
    for step in path_of(path):
        if step is None:
            return _ABSENT
        if isinstance(value, dict):
            value = value.get(step, _ABSENT)
        elif isinstance(value, list):
            number = index_of_step(step)
            inside = number is not None and -len(value) <= number < len(value)
            value = value[number] if inside and number is not None else _ABSENT
        else:
            return _ABSENT
        if value is _ABSENT:
            return _ABSENT
    return value


# ------------------------------------------------------------------ tests


def _contains(left: str, right: str) -> int:
    return int(contains(value_of(left), value_of(right)))


def _exists(stored: str, name: str) -> int:
    return int(name in _names_in(value_of(stored)))


def _any_exists(stored: str, names: str) -> int:
    there = _names_in(value_of(stored))
    return int(any(name in there for name in elements_of(names) if name is not None))


def _all_exist(stored: str, names: str) -> int:
    there = _names_in(value_of(stored))
    return int(all(name in there for name in elements_of(names) if name is not None))


def _names_in(value: Any) -> Collection[Any]:
    """Members of an object, strings of an array; a string by itself is like an array of one."""
    if isinstance(value, dict):
        return value
    listed = value if isinstance(value, list) else [value]
    return frozenset(each for each in listed if isinstance(each, str))


# ------------------------------------------------------------------ changes


def _joined(left: str, right: str) -> str:
    one, other = value_of(left), value_of(right)
    if isinstance(one, dict) and isinstance(other, dict):
        return text_of({**one, **other})
    first = one if isinstance(one, list) else [one]
    second = other if isinstance(other, list) else [other]
    return text_of([*first, *second])


def _without(stored: str, name: str) -> str:
    value = value_of(stored)
    if isinstance(value, dict):
        return text_of({n: each for n, each in value.items() if n != name})
    if isinstance(value, list):
        return text_of([each for each in value if not (isinstance(each, str) and each == name)])
    raise InvalidArgument("cannot delete from scalar")


def _without_names(stored: str, names: str) -> str:
    """Return an object without these names, or an array without these strings.

    ⚠ Not one name after the other: of many that would take time by the square."""
    value, left_out = value_of(stored), frozenset(elements_of(names))
    if isinstance(value, dict):
        return text_of({n: each for n, each in value.items() if n not in left_out})
    if isinstance(value, list):
        return text_of([v for v in value if not (isinstance(v, str) and v in left_out)])
    raise InvalidArgument("cannot delete from scalar")


def _without_element(stored: str, number: int) -> str:
    value = value_of(stored)
    if isinstance(value, dict):
        raise InvalidArgument("cannot delete from object using integer index")
    if not isinstance(value, list):
        raise InvalidArgument("cannot delete from scalar")
    if -len(value) <= number < len(value):
        del value[number]
    return text_of(value)


def without_path(stored: str, path: str | Steps) -> str:
    """Return what jsonb `#-` gives. Raises InvalidArgument, InvalidText."""
    value = value_of(stored)
    if not isinstance(value, dict | list):
        raise InvalidArgument("cannot delete path in scalar")
    steps = path_of(path)
    if not steps or not value:
        return stored
    holder, last = _place(value, steps)
    if isinstance(holder, dict):
        holder.pop(last, None)
    elif isinstance(holder, list):
        number = _position(last, len(steps))
        if -len(holder) <= number < len(holder):
            del holder[number]
    return text_of(value)


def _walked(value: Any, steps: tuple[str | None, ...]) -> Any:
    for index, step in enumerate(steps, start=1):
        if step is None:
            raise _null_step(index)
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list):
            number = _position(step, index)
            if not -len(value) <= number < len(value):
                return None
            value = value[number]
        else:
            return None
    return value


def _null_step(index: int) -> NullNotAllowed:
    return NullNotAllowed(f"path element at position {index} is null")


def _position(step: str, index: int) -> int:
    number = index_of_step(step)
    if number is None:
        raise InvalidText(f'path element at position {index} is not an integer: "{step:.40}"')
    return number


def _container(stored: str) -> Any:
    value = value_of(stored)
    if not isinstance(value, dict | list):
        raise InvalidArgument("cannot set path in scalar")
    return value


def _place(value: Any, steps: tuple[str | None, ...]) -> tuple[Any, str]:
    """Return what holds the end of a path that has one, None where there is nothing, and the path's
    last step. Raises NullNotAllowed for a step that is NULL, as far as the path leads."""
    holder, last = _walked(value, steps[:-1]), steps[-1]
    if last is None:
        if holder is not None:
            raise _null_step(len(steps))
        last = ""
    return holder, last


def set_path(stored: str, path: str | Steps, new: str, create: int = 1) -> str:
    """Return what jsonb_set gives. Raises InvalidArgument, InvalidText."""
    value, steps = _container(stored), path_of(path)
    if not steps or not (value or create):
        return stored
    holder, last = _place(value, steps)
    made = value_of(new)
    if isinstance(holder, dict) and (create or last in holder):
        holder[last] = made
    elif isinstance(holder, list):
        number = _position(last, len(steps))
        if -len(holder) <= number < len(holder):
            holder[number] = made
        elif create:
            holder.insert(0 if number < 0 else len(holder), made)
    return text_of(value)


def _inserted(stored: str, path: str | Steps, new: str, after: int = 0) -> str:
    value, steps = _container(stored), path_of(path)
    if not steps:
        return stored
    holder, last = _place(value, steps)
    if isinstance(holder, dict):
        if last in holder:
            raise InvalidArgument("cannot replace existing key")
        holder[last] = value_of(new)
    elif isinstance(holder, list):
        number = _position(last, len(steps))
        index = number if number >= 0 else max(len(holder) + number, -1)
        if index < 0:
            index = 0
        elif after and index < len(holder):
            index += 1
        holder.insert(min(index, len(holder)), value_of(new))
    return text_of(value)


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {n: _stripped(each) for n, each in value.items() if each is not None}
    return [_stripped(each) for each in value] if isinstance(value, list) else value


def _length(stored: str) -> int:
    value = value_of(stored)
    if isinstance(value, dict):
        raise InvalidArgument("cannot get array length of a non-array")
    if not isinstance(value, list):
        raise InvalidArgument("cannot get array length of a scalar")
    return len(value)


class _Lines:
    """The parts of a text of many lines, which is refused as soon as it is too long."""

    def __init__(self, most: int) -> None:
        self._parts: list[str] = []
        self._most = most
        self._size = 0

    def add(self, *parts: str) -> None:
        """Raises TooLong (22001)."""
        self._parts += parts
        self._size += sum(map(len, parts))
        if self._size > self._most:
            raise too_long(self._most)

    def text(self) -> str:
        return "".join(self._parts)


def _pretty(stored: str, *, most: int = TEXT_BYTES_MAX) -> str:
    """Return JSON with a line for each element, deeper ones further to the right: a short text of
    many levels may be gigabytes so."""
    lines = _Lines(most)
    _add_pretty(value_of(stored), lines, "")
    return lines.text()


def _add_pretty(value: Any, lines: _Lines, outer: str) -> None:
    if not isinstance(value, dict | list):
        lines.add(text_of(value))
        return
    inner = outer + "    "
    first, last = "{}" if isinstance(value, dict) else "[]"
    lines.add(first, "\n")
    if isinstance(value, dict):  # whose members stand in their order
        for number, (name, each) in enumerate(value.items()):
            lines.add(",\n" if number else "", inner, text_of(name), ": ")
            _add_pretty(each, lines, inner)
    else:
        for number, each in enumerate(charge_each(value, _LINE_WORK)):
            lines.add(",\n" if number else "", inner)
            _add_pretty(each, lines, inner)
    lines.add("\n" if value else "", outer, last)


_OF_PATHS: Final = (
    Function("jsonb_set", (JSONB, TEXT, JSONB), JSONB, set_path),
    Function("jsonb_set", (JSONB, TEXT, JSONB, BOOLEAN), JSONB, set_path),
    Function("jsonb_insert", (JSONB, TEXT, JSONB), JSONB, _inserted),
    Function("jsonb_insert", (JSONB, TEXT, JSONB, BOOLEAN), JSONB, _inserted),
)
"""A path may be text, which a quoted constant is: so it has always been kept."""
FUNCTIONS: Final[tuple[Function, ...]] = (
    *(each for made in _OF_PATHS for each in (made, by_array(made))),
    Function("jsonb_typeof", (JSONB,), TEXT, lambda stored: kind_of(value_of(stored))),
    Function("jsonb_array_length", (JSONB,), INTEGER, _length),
    Function("jsonb_strip_nulls", (JSONB,), JSONB, lambda s: text_of(_stripped(value_of(s)))),
    Function(
        "jsonb_pretty",
        (JSONB,),
        TEXT,
        _pretty,
        computes_more=partial(_pretty, most=MADE_CHARACTERS_MAX),
    ),
    Function("jsonb_exists", (JSONB, TEXT), BOOLEAN, _exists),
    Function("jsonb_contains", (JSONB, JSONB), BOOLEAN, _contains),
)

_BY_PATHS: Final = (
    Function("#>", (JSONB, TEXT), JSONB, _shown(_at_path, _as_json)),
    Function("#>>", (JSONB, TEXT), TEXT, _shown(_at_path, text_of_value)),
    Function("#-", (JSONB, TEXT), JSONB, without_path),
)
OPERATORS: Final[tuple[Function, ...]] = (
    *(each for made in _BY_PATHS for each in (made, by_array(made))),
    Function("->", (JSONB, TEXT), JSONB, _shown(_member, _as_json)),
    Function("->", (JSONB, INTEGER), JSONB, _shown(_element, _as_json)),
    Function("->>", (JSONB, TEXT), TEXT, _shown(_member, text_of_value)),
    Function("->>", (JSONB, INTEGER), TEXT, _shown(_element, text_of_value)),
    Function("@>", (JSONB, JSONB), BOOLEAN, _contains),
    Function("<@", (JSONB, JSONB), BOOLEAN, lambda left, right: _contains(right, left)),
    Function("?", (JSONB, TEXT), BOOLEAN, _exists),
    Function("?|", (JSONB, array_of(TEXT)), BOOLEAN, _any_exists),
    Function("?&", (JSONB, array_of(TEXT)), BOOLEAN, _all_exist),
    Function("||", (JSONB, JSONB), JSONB, _joined),
    Function("-", (JSONB, TEXT), JSONB, _without),
    Function("-", (JSONB, INTEGER), JSONB, _without_element),
    Function("-", (JSONB, array_of(TEXT)), JSONB, _without_names),
)
