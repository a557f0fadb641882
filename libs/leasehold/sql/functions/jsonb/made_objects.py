"""json and jsonb that are made of arrays, or of json without its nulls; and jsonb_set_lax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.model.budget import charge_each
from leasehold.model.errors import InvalidArgument, InvalidSubscript, NullNotAllowed
from leasehold.sql.functions.function import BOOLEAN, JSON, JSONB, TEXT, Function
from leasehold.sql.functions.jsonb.functions import set_path, without_path
from leasehold.sql.functions.jsonb.values import json_text_of
from leasehold.sql.functions.polymorphic import Family, Kinds, in_zones, within_limit
from leasehold.values.arrays import collect, elements_of
from leasehold.values.json_text import Part, readable_part, unquoted
from leasehold.values.jsonb import text_of
from leasehold.values.types import Type, array_of, element_of

_TEXTS: Final = array_of(TEXT)
_PAIR_WORK: Final = 150
_TREATMENTS: Final = ("raise_exception", "use_json_null", "delete_key", "return_target")

Pairs = list[tuple[str, str | None]]


# ------------------------------------------------------------------ objects of texts


def _pairs(names: Sequence[Any], values: Sequence[Any]) -> Pairs:
    if None in names:
        raise NullNotAllowed("null value not allowed for object key")
    return [*charge_each(list(zip(names, values, strict=True)), _PAIR_WORK)]


def _pairs_in_turn(stored: str) -> Pairs:
    found = elements_of(stored)
    if len(found) % 2:
        raise InvalidSubscript("array must have even number of elements")
    return _pairs(found[::2], found[1::2])


def _pairs_of_two(names: str, values: str) -> Pairs:
    own, others = elements_of(names), elements_of(values)
    if len(own) != len(others):
        raise InvalidSubscript("mismatched array dimensions")
    return _pairs(own, others)


def _json_of_pairs(pairs: Pairs) -> str:
    """Return json in which each pair is, also of names that come several times."""
    shown = [f"{text_of(name)} : {text_of(value)}" for name, value in pairs]
    return within_limit(f"{{{', '.join(shown)}}}")


def _jsonb_of_pairs(pairs: Pairs) -> str:
    return text_of(dict(pairs))


def _over(make: Callable[[Pairs], str], pairs: Callable[..., Pairs]) -> Callable[..., str]:
    return lambda *stored: make(pairs(*stored))


# ------------------------------------------------------------------ json without nulls


def _stripped(stored: str) -> str:
    return _without_nulls(readable_part(stored))


def _without_nulls(part: Part) -> str:
    """Return the text of a part, without blanks, and without members of objects that are null."""
    if part.kind == "string":
        return text_of(unquoted(part.raw))
    if part.kind not in ("object", "array"):
        return part.raw
    written: list[str] = []
    if part.kind == "array":
        for each in part.parts:
            written.append(_without_nulls(each))  # noqa: PERF401 - a level of calls less
        return f"[{','.join(written)}]"
    for name, each in zip(part.names, part.parts, strict=True):
        if each.kind != "null":
            written.append(f"{text_of(unquoted(name))}:{_without_nulls(each)}")
    return f"{{{','.join(written)}}}"


# ------------------------------------------------------------------ arrays


def _array_to_json(pretty: bool, kinds: Kinds, zone: ZoneInfo) -> Function | None:
    kind = kinds[0] if len(kinds) == 1 + pretty else None
    element = None if kind is None else element_of(kind)
    if kind is None or element is None or (pretty and kinds[1] not in (None, BOOLEAN)):
        return None
    whole, one = json_text_of(kind, zone), json_text_of(element, zone)

    def compute(stored: str, in_lines: int = 0) -> str:
        if not in_lines:
            return within_limit(whole(stored))
        values = charge_each(elements_of(stored), _PAIR_WORK)
        shown = collect("null" if value is None else one(value) for value in values)
        return within_limit(f"[{f',{chr(10)} '.join(shown)}]")

    arguments: tuple[Type, ...] = (kind, BOOLEAN) if pretty else (kind,)
    return Function("array_to_json", arguments, JSON, compute)


_ONE: Final = in_zones(partial(_array_to_json, False))
_IN_LINES: Final = in_zones(partial(_array_to_json, True))


def _any_array_to_json(kinds: Kinds) -> Function | None:
    return _ONE(kinds) or _IN_LINES(kinds)


# ------------------------------------------------------------------ jsonb_set_lax


def _set_lax(
    stored: str | None,
    path: str | None,
    new: str | None,
    create: int | None = 1,
    treatment: str | None = "use_json_null",
) -> str | None:
    if stored is None or path is None or create is None:
        return None
    if treatment is None:
        raise _no_treatment()
    steps = tuple(elements_of(path))
    if new is not None:
        return set_path(stored, steps, new, create)
    if treatment == "raise_exception":
        raise NullNotAllowed("JSON value must not be null")
    if treatment == "use_json_null":
        return set_path(stored, steps, "null", create)
    if treatment == "delete_key":
        return without_path(stored, steps)
    if treatment == "return_target":
        return stored
    raise _no_treatment()


def _no_treatment() -> InvalidArgument:
    *some, last = [f'"{each}"' for each in sorted(_TREATMENTS)]
    return InvalidArgument(f"null_value_treatment must be {', '.join(some)}, or {last}")


FUNCTIONS: Final[tuple[Function, ...]] = (
    *(
        Function(name, arguments, kind, _over(make, pairs))
        for name, kind, make in (
            ("json_object", JSON, _json_of_pairs),
            ("jsonb_object", JSONB, _jsonb_of_pairs),
        )
        for arguments, pairs in (((_TEXTS,), _pairs_in_turn), ((_TEXTS, _TEXTS), _pairs_of_two))
    ),
    Function("json_strip_nulls", (JSON,), JSON, _stripped),
    *(
        Function(
            "jsonb_set_lax",
            (JSONB, _TEXTS, JSONB, BOOLEAN, TEXT)[:count],
            JSONB,
            _set_lax,
            strict=False,
        )
        for count in (3, 4, 5)
    ),
)
FAMILIES: Final[dict[str, Family]] = {"array_to_json": _any_array_to_json}
