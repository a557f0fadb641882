"""Functions that give rows of one column: an array of them each, which FROM takes apart.

So one table of SQLite does for all of them, and several in one SELECT go side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo

from leasehold.model.budget import charge, charge_each
from leasehold.model.errors import InvalidArgument, MomentOutOfRange, RequestTooLarge
from leasehold.sql.functions.arrays.array import TEXTS, split_text
from leasehold.sql.functions.dates.arithmetic import plus, plus_in_zone
from leasehold.sql.functions.function import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Function,
    make_zoned,
    unchanged,
)
from leasehold.sql.functions.jsonb import json_functions
from leasehold.sql.functions.jsonb.functions import text_of_value
from leasehold.sql.functions.texts import regexp
from leasehold.sql.syntax.tree import EXPAND_ARRAY, FIELD_OF, RECORD_FIELDS
from leasehold.values.arrays import ELEMENTS_MAX, check_characters, elements_of, stored_form
from leasehold.values.catalog_types import REGCLASS
from leasehold.values.interval import Span, sort_key, span_of
from leasehold.values.interval import stored_form as interval_form
from leasehold.values.json_text import Part
from leasehold.values.jsonb import kind_of, text_of, value_of
from leasehold.values.numeric import EXACT, decimal_of
from leasehold.values.numeric import stored_form as numeric_form
from leasehold.values.types import INTEGER_BITS, Type, array_of, element_of, first_subscript

RECORD: Final = Type("record")
JSONS: Final = array_of(JSONB)
SERIES: Final = "generate_series"
N = TypeVar("N", int, Decimal)
_ROWS_AT_ONCE: Final = 256
_ROW_WORK: Final = 300
_ONE: Final = numeric_form(Decimal(1))


def unnest(kinds: Sequence[Type | None]) -> Function | None:
    if len(kinds) != 1 or kinds[0] is None or element_of(kinds[0]) is None:
        return None
    return Function("unnest", (kinds[0],), kinds[0], unchanged)


def _subscripts(kinds: Sequence[Type | None]) -> Function | None:
    kind = kinds[0] if len(kinds) in (2, 3) else None
    if kind is None or element_of(kind) is None:
        return None

    first = first_subscript(kind)

    def compute(stored: str, dimension: int, backwards: int = 0) -> str:
        count = len(elements_of(stored)) if dimension == 1 else 0
        places = range(first, first + count)
        return stored_form(list(reversed(places) if backwards else places))

    arguments = (kind, INTEGER, BOOLEAN)[: len(kinds)]
    return Function("generate_subscripts", arguments, array_of(INTEGER), compute)


def _expanded(kinds: Sequence[Type | None]) -> Function | None:
    """Return _pg_expandarray of an array of numbers: its elements with their numbers, from 1."""
    kind = kinds[0] if len(kinds) == 1 else None
    element = None if kind is None else element_of(kind)
    if kind is None or element is None or element.name not in (*INTEGER_BITS, "oid"):
        return None

    def compute(stored: str) -> str:
        found = charge_each(elements_of(stored), _ROW_WORK)
        return stored_form(
            [f"({'' if x is None else x},{n})" for n, x in enumerate(found, start=1)]
        )

    return Function(EXPAND_ARRAY, (kind,), array_of(RECORD), compute)


def _field(place: int) -> Callable[[str], int | None]:
    def compute(record: str) -> int | None:
        part = record[1:-1].split(",")[place]
        return int(part) if part else None

    return compute


FIELDS: Final[tuple[Function, ...]] = tuple(
    Function(f"{FIELD_OF}{name}", (RECORD,), BIGINT if name == "x" else INTEGER, _field(place))
    for place, name in enumerate(RECORD_FIELDS)
)
"""What stands behind the point in (record).x."""
FAMILIES: Final[dict[str, Callable[[Sequence[Type | None]], Function | None]]] = {
    "unnest": unnest,
    "generate_subscripts": _subscripts,
    EXPAND_ARRAY: _expanded,
}


def _series(start: int, stop: int, step: int = 1) -> str:
    if step == 0:
        raise InvalidArgument("step size cannot equal zero")
    found = range(start, stop + (1 if step > 0 else -1), step)
    if (stop - start) // step >= ELEMENTS_MAX:  # `len` knows 63 bits
        raise RequestTooLarge(
            f"generate_series beside a SELECT's columns gives at most {ELEMENTS_MAX} rows: write it"
            " in FROM"
        )
    return stored_form(list(found))


def _counted_on(start: N, stop: N, sign: int, more: Callable[[N], N]) -> list[N]:
    """Return the values from `start` as far as `stop`, which counts too; `sign` is that of the
    step. Raises InvalidArgument for a step of zero, RequestTooLarge."""
    if sign == 0:
        raise InvalidArgument("step size cannot equal zero")
    found: list[N] = []
    while start <= stop if sign > 0 else start >= stop:
        if len(found) == ELEMENTS_MAX:
            raise RequestTooLarge(
                f"generate_series of what is no integer gives at most {ELEMENTS_MAX} rows"
            )
        found.append(start)
        if not len(found) % _ROWS_AT_ONCE:
            charge(_ROWS_AT_ONCE * _ROW_WORK)
        try:
            start = more(start)
        except MomentOutOfRange:
            break
    return found


def _timestamps(start: int, stop: int, step: str) -> str:
    span = span_of(step)
    return stored_form(_counted_on(start, stop, _sign(step), lambda at: plus(at, span)))


def _timestamps_in_zone(zone: ZoneInfo, start: int, stop: int, step: str) -> str:
    span = span_of(step)
    found = _counted_on(start, stop, _sign(step), lambda at: plus_in_zone(zone, at, span))
    return stored_form(found)


def _sign(span: str) -> int:
    length, none = sort_key(span), sort_key(interval_form(Span(0, 0, 0)))
    return (length > none) - (length < none)


def _numerics(start: str, stop: str, step: str = _ONE) -> str:
    first, last, by = decimal_of(start), decimal_of(stop), decimal_of(step)
    for value, what in ((first, "start"), (last, "stop"), (by, "step size")):
        if not value.is_finite():
            shown = "NaN" if value.is_nan() else "infinity"
            raise InvalidArgument(f"{what} value cannot be {shown}")
    # A number as long as numeric may be has a megabyte a few of it.
    longest = max(len(start), len(stop), len(step), first.adjusted(), last.adjusted())
    size = 0

    def more(value: Decimal) -> Decimal:
        nonlocal size
        size += longest
        check_characters(size)
        return EXACT.add(value, by)

    found = charge_each(_counted_on(first, last, int(by.compare(0)), more), _ROW_WORK)
    return stored_form([numeric_form(value) for value in found])


def _json_elements(stored: str) -> list[Any]:
    value = value_of(stored)
    if not isinstance(value, list):
        kind = "an object" if isinstance(value, dict) else "a scalar"
        raise InvalidArgument(f"cannot extract elements from {kind}")
    return value


def _each_element(stored: str) -> Iterable[Any]:
    return charge_each(_json_elements(stored), _ROW_WORK)


def _json_parts(name: str, show: Callable[[Part], str | None], stored: str) -> str:
    return stored_form([show(part) for part in json_functions.elements(stored, name)])


def _json_keys(stored: str) -> str:
    value = value_of(stored)
    if not isinstance(value, dict):
        kind = "an array" if kind_of(value) == "array" else "a scalar"
        raise InvalidArgument(f"cannot call jsonb_object_keys on {kind}")
    return stored_form(list(value))


FUNCTIONS: Final[tuple[Function, ...]] = (
    *(
        Function(SERIES, (kind,) * count, array_of(kind), _series)
        for kind in (INTEGER, BIGINT)
        for count in (2, 3)
    ),
    *(Function(SERIES, (NUMERIC,) * n, array_of(NUMERIC), _numerics) for n in (2, 3)),
    Function(SERIES, (TIMESTAMP, TIMESTAMP, INTERVAL), array_of(TIMESTAMP), _timestamps),
    make_zoned(
        SERIES, (TIMESTAMPTZ, TIMESTAMPTZ, INTERVAL), array_of(TIMESTAMPTZ), _timestamps_in_zone
    ),
    Function("string_to_table", (TEXT, TEXT), TEXTS, split_text, strict=False),
    Function("string_to_table", (TEXT, TEXT, TEXT), TEXTS, split_text, strict=False),
    Function(
        "jsonb_array_elements",
        (JSONB,),
        JSONS,
        lambda stored: stored_form([text_of(v) for v in _each_element(stored)]),
    ),
    Function(
        "jsonb_array_elements_text",
        (JSONB,),
        TEXTS,
        lambda stored: stored_form([text_of_value(v) for v in _each_element(stored)]),
    ),
    Function("jsonb_object_keys", (JSONB,), TEXTS, _json_keys),
    *(
        Function(name, (JSON,), array_of(kind), partial(_json_parts, name, show))
        for name, kind, show in (
            ("json_array_elements", JSON, json_functions.raw_of),
            ("json_array_elements_text", TEXT, json_functions.text_of_part),
        )
    ),
    Function(
        "json_object_keys",
        (JSON,),
        TEXTS,
        lambda stored: stored_form(json_functions.entries(stored, "json_object_keys")[0]),
    ),
    *regexp.SETS,
    # No table is a part of another one.
    Function(
        "pg_partition_ancestors",
        (REGCLASS,),
        array_of(REGCLASS),
        lambda *_: stored_form([]),
        volatility="stable",
    ),
)


def _entries(stored: str, name: str) -> dict[str, Any]:
    value = value_of(stored)
    if not isinstance(value, dict):
        raise InvalidArgument(f"cannot call {name} on a non-object")
    return value


def _each(name: str, kind: Type, form: Callable[[Any], Any]) -> tuple[tuple[str, Function], ...]:
    """Return the columns of jsonb_each and its like."""

    def keys(stored: str) -> str:
        return stored_form(list(_entries(stored, name)))

    def values(stored: str) -> str:
        found = charge_each(list(_entries(stored, name).values()), _ROW_WORK)
        return stored_form([form(value) for value in found])

    return (
        ("key", Function(name, (JSONB,), TEXTS, keys)),
        ("value", Function(name, (JSONB,), array_of(kind), values)),
    )


def _each_of_json(
    name: str, kind: Type, show: Callable[[Part], str | None]
) -> tuple[tuple[str, Function], ...]:
    """Return the columns of json_each and json_each_text."""

    def keys(stored: str) -> str:
        return stored_form(json_functions.entries(stored, name)[0])

    def values(stored: str) -> str:
        return stored_form([show(part) for part in json_functions.entries(stored, name)[1]])

    return (
        ("key", Function(name, (JSON,), TEXTS, keys)),
        ("value", Function(name, (JSON,), array_of(kind), values)),
    )


SEVERAL_COLUMNS: Final[dict[str, tuple[tuple[str, Function], ...]]] = {
    "jsonb_each": _each("jsonb_each", JSONB, text_of),
    "jsonb_each_text": _each("jsonb_each_text", TEXT, text_of_value),
    "json_each": _each_of_json("json_each", JSON, json_functions.raw_of),
    "json_each_text": _each_of_json("json_each_text", TEXT, json_functions.text_of_part),
}
"""Functions of several columns, which are in FROM alone: the array that each of them is."""
WITHOUT_ROWS: Final[dict[str, tuple[Type, tuple[tuple[str, Type], ...]]]] = {
    "pg_partition_tree": (
        REGCLASS,
        (("relid", REGCLASS), ("parentrelid", REGCLASS), ("isleaf", BOOLEAN), ("level", INTEGER)),
    ),
    "pg_options_to_table": (TEXTS, (("option_name", TEXT), ("option_value", TEXT))),
}
"""Functions of the catalog in FROM that have nothing to tell here: their argument, their columns.
No table is a part of another one, and nothing has options of such a form."""
COLUMN_NAMES: Final = dict.fromkeys(
    (
        *("jsonb_array_elements", "jsonb_array_elements_text"),
        *("json_array_elements", "json_array_elements_text"),
    ),
    "value",
)
"""Of those whose one column has a name of its own."""
