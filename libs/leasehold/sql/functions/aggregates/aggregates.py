"""Aggregates as plain data: a state, what each row does to it, and what comes of it.

All but `count` give NULL of no rows; NULLs are passed over (`strict`), but for the JSON ones.
DISTINCT, FILTER and ORDER BY are the caller's; a state is never shared.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from leasehold.model.errors import (
    InvalidArgument,
    OutOfRange,
    TooLong,
    UnknownFunction,
)
from leasehold.sql.functions.dates.arithmetic import span_divided, sum_spans
from leasehold.sql.functions.function import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    CHAR,
    DATE,
    DOUBLE,
    INET,
    INTEGER,
    INTEGERS,
    INTERVAL,
    JSON,
    JSONB,
    NUMERIC,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TIMETZ,
    Function,
    unchanged,
)
from leasehold.sql.functions.jsonb.values import json_of, json_text_of
from leasehold.sql.functions.numbers.arithmetic import (
    DISPLAY_SCALE_MAX,
    check_finite,
    check_range,
    division_scale,
    in_real,
    numeric_quotient,
    quotient,
)
from leasehold.sql.functions.numbers.digits import charge_product, charge_quotient
from leasehold.sql.functions.numbers.powers import root_at
from leasehold.sql.functions.resolution import kind_name, resolve
from leasehold.sql.functions.texts.text import MADE_CHARACTERS_MAX, too_long
from leasehold.values import arrays, jsonb
from leasehold.values.doubles import Stored, number_of, over_floats
from leasehold.values.doubles import stored_form as stored_double
from leasehold.values.interval import Span, span_of, stored_form
from leasehold.values.numeric import EXACT, decimal_of, digits_in
from leasehold.values.numeric import stored_form as stored_numeric
from leasehold.values.text_io import shown_text
from leasehold.values.types import Type, array_of, element_of, order_key_of

State = Any


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """An aggregate: `start` makes a state, `step(state, *arguments)` gives the next one, which it
    may change in place, and `finish` makes the result of the last one. `strict`: rows with a NULL
    among the arguments are passed over. `keeps_rows`: its state grows with each row."""

    name: str
    arguments: tuple[Type, ...]
    result: Type
    start: Callable[[], State]
    step: Callable[..., State]
    finish: Callable[[State], Any]
    strict: bool = True
    keeps_rows: bool = False


def _none() -> None:
    return None


def _folded(
    name: str,
    kind: Type,
    result: Type,
    combine: Callable[[Any, Any], Any],
    finish: Callable[[Any], Any] = unchanged,
    read: Callable[[Any], Any] = unchanged,
) -> Aggregate:
    """Return an aggregate that combines what `read` makes of each value, NULL of no rows."""

    def step(state: State, value: Any) -> State:
        return read(value) if state is None else combine(state, read(value))

    def finished(state: State) -> Any:
        return None if state is None else finish(state)

    last = unchanged if finish is unchanged else finished
    return Aggregate(name, (kind,), result, _none, step, last)


# ------------------------------------------------------------------ counts and sums


def _sum(kind: Type, result: Type) -> Aggregate:
    if kind == DOUBLE:
        return _folded("sum", kind, result, over_floats(check_finite(operator.add)))
    if kind == REAL:
        return _folded("sum", kind, result, over_floats(in_real(check_finite(operator.add))))
    if result == BIGINT:
        return _folded("sum", kind, result, operator.add, check_range(BIGINT, unchanged))
    if kind == INTERVAL:
        return _folded("sum", kind, kind, sum_spans, stored_form, span_of)
    read = decimal_of if kind == NUMERIC else Decimal
    return _folded("sum", kind, NUMERIC, EXACT.add, stored_numeric, read)


# ------------------------------------------------------------------ averages and spreads


class _Sums:
    """The sums of values and of their squares."""

    __slots__ = ("count", "squares", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = Decimal(0)
        self.squares = Decimal(0)


def _digits(number: Decimal) -> int:
    return len(number.as_tuple().digits)


def _averaged(total: Decimal, count: Decimal) -> Decimal:
    charge_quotient(total, count, _digits(count), DISPLAY_SCALE_MAX)
    return numeric_quotient(total, count)


def _exact_average(kind: Type) -> Aggregate:
    read = decimal_of if kind == NUMERIC else Decimal

    def step(state: _Sums, value: Any) -> _Sums:
        state.count += 1
        state.total = EXACT.add(state.total, read(value))
        return state

    def finish(state: _Sums) -> str | None:
        if not state.count:
            return None
        return stored_numeric(_averaged(state.total, Decimal(state.count)))

    return Aggregate("avg", (kind,), NUMERIC, _Sums, step, finish)


def _exact_spread(name: str, kind: Type) -> Aggregate:
    read = decimal_of if kind == NUMERIC else Decimal
    sample = not name.endswith("_pop")
    root = name.startswith("stddev")

    def step(state: _Sums, value: Any) -> _Sums:
        number = read(value)
        if not isinstance(value, int):
            charge_product(2 * digits_in(value, number))
        state.count += 1
        state.total = EXACT.add(state.total, number)
        state.squares = EXACT.add(state.squares, EXACT.multiply(number, number))
        return state

    def finish(state: _Sums) -> str | None:
        count = Decimal(state.count)
        if state.count < (2 if sample else 1):
            return None
        if not state.squares.is_finite():
            return stored_numeric(Decimal("NaN"))
        charge_product(2 * _digits(state.total))
        total = EXACT.multiply(state.total, state.total)
        above = EXACT.subtract(EXACT.multiply(count, state.squares), total)
        if above <= 0:
            return stored_numeric(Decimal(0))
        by = EXACT.multiply(count, count - 1 if sample else count)
        scale = division_scale(above, by)
        charge_quotient(above, by, _digits(by), scale)
        made = quotient(above, by, scale)
        return stored_numeric(root_at(made, scale) if root else made)

    return Aggregate(name, (kind,), NUMERIC, _Sums, step, finish)


class _Moments:
    """Youngs and Cramer: the count, the sum and the squared distances, for doubles."""

    __slots__ = ("count", "distances", "total")

    def __init__(self) -> None:
        self.count = 0.0
        self.total = 0.0
        self.distances = 0.0


def _more_moments(state: _Moments, stored: Stored) -> _Moments:
    value = number_of(stored)
    count = state.count + 1.0
    total = state.total + value
    if state.count > 0.0:
        gap = value * count - total
        state.distances += gap * gap / (count * state.count)
    elif not math.isfinite(value):
        state.distances = math.nan
    if math.isinf(total) or math.isinf(state.distances):
        if math.isfinite(value) and math.isfinite(state.total):
            raise OutOfRange("value out of range: overflow")
        state.distances = math.nan
    state.count, state.total = count, total
    return state


def _double_average(state: _Moments) -> Stored | None:
    return stored_double(state.total / state.count) if state.count else None


def _float_spread(name: str, kind: Type) -> Aggregate:
    sample = not name.endswith("_pop")
    root = name.startswith("stddev")

    def finish(state: _Moments) -> Stored | None:
        if state.count < (2.0 if sample else 1.0):
            return None
        made = state.distances / (state.count - 1.0 if sample else state.count)
        return stored_double(math.sqrt(made) if root else made)

    return Aggregate(name, (kind,), DOUBLE, _Moments, _more_moments, finish)


class _SpanSums:
    __slots__ = ("count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = Span(0, 0, 0)


def _more_spans(state: _SpanSums, stored: str) -> _SpanSums:
    state.count += 1
    state.total = sum_spans(state.total, span_of(stored))
    return state


def _span_average(state: _SpanSums) -> str | None:
    return span_divided(stored_form(state.total), float(state.count)) if state.count else None


# ------------------------------------------------------------------ extremes, booleans, bits


def _is_own_extreme(kind: Type) -> bool:
    """Return whether the least value is one of this very type: an array, a label, or a char(n),
    whose length says how many blanks it is shown with."""
    return element_of(kind) is not None or kind.enum is not None or kind.name == "char"


def _extreme(name: str, kind: Type) -> Aggregate:
    key = order_key_of(kind) or unchanged
    bigger = name == "max"

    def step(state: Any, value: Any) -> Any:
        if state is None or key(value) == key(state):
            return value  # of equal ones the last
        return value if (key(value) > key(state)) == bigger else state

    return Aggregate(name, (kind,), kind, _none, step, unchanged)


# ------------------------------------------------------------------ texts and JSON


def _more_text(state: list[Any] | None, value: Any, by: Any) -> list[Any] | None:
    """What stands before the first one is dropped, whatever it is."""
    if value is None:
        return state
    if state is None:
        return [value]
    if by is not None:
        state.append(by)
    state.append(value)
    return state


def _joined_text(state: list[str] | None) -> str | None:
    if state is None:
        return None
    if sum(map(len, state)) > MADE_CHARACTERS_MAX:
        raise too_long(MADE_CHARACTERS_MAX)
    return "".join(state)


def _joined_bytes(state: list[bytes] | None) -> bytes | None:
    if state is None:
        return None
    if sum(map(len, state)) > MADE_CHARACTERS_MAX:
        raise TooLong(f"there would be more than {MADE_CHARACTERS_MAX} bytes")
    return b"".join(state)


class _Listed(list[Any]):
    """What is listed. `numbers`: the digits of long ones for JSON, which a short text may say."""

    numbers = 0


def _listed(
    name: str,
    kind: Type,
    result: Type,
    make: Callable[[Any], Any],
    finish: Callable[[list[Any]], str],
) -> Aggregate:
    """Return an aggregate that lists what `make` makes of values, None for NULL; NULL of no
    rows."""

    def step(state: _Listed | None, value: Any) -> _Listed:
        made = _Listed() if state is None else state
        made.append(None if value is None else make(value))
        made.numbers = jsonb.count_number(made.numbers, made[-1])
        return made

    def finished(state: list[Any] | None) -> str | None:
        return None if state is None else finish(state)

    return Aggregate(name, (kind,), result, _none, step, finished, strict=False, keeps_rows=True)


def array_query(kind: Type) -> Aggregate:
    """ARRAY(SELECT …): an empty array of no rows."""
    return Aggregate(
        "array",
        (kind,),
        array_of(kind),
        list,
        _one_more_of,
        arrays.stored_form,
        strict=False,
        keeps_rows=True,
    )


def _one_more_of(state: list[Any], value: Any) -> list[Any]:
    state.append(value)
    return state


def _named(name_kind: Type | None, kind: Type | None) -> Aggregate:
    names, known = name_kind or TEXT, kind or TEXT
    make = json_of(known)

    def step(state: dict[str, Any] | None, name: Any, value: Any) -> dict[str, Any]:
        if name is None:
            raise InvalidArgument("field name must not be null")
        made = {} if state is None else state
        made[shown_text(names, name)] = None if value is None else make(value)
        return made

    def finish(state: dict[str, Any] | None) -> str | None:
        return None if state is None else jsonb.text_of(state)

    return Aggregate(
        "jsonb_object_agg",
        (names, known),
        JSONB,
        _none,
        step,
        finish,
        strict=False,
        keeps_rows=True,
    )


def _json_list(written: list[Any]) -> str:
    return _json_within(f"[{', '.join('null' if each is None else each for each in written)}]")


def _json_within(text: str) -> str:
    if len(text) > MADE_CHARACTERS_MAX:
        raise too_long(MADE_CHARACTERS_MAX)
    return text


def _json_named(name_kind: Type | None, kind: Type | None) -> Aggregate:
    """Return json_object_agg, whose members come in the order of the rows, repeated ones too."""
    names, known = name_kind or TEXT, kind or TEXT
    make = json_text_of(known)

    def step(state: _Listed | None, name: Any, value: Any) -> _Listed:
        if name is None:
            raise InvalidArgument("field name must not be null")
        made = _Listed() if state is None else state
        shown = jsonb.text_of(shown_text(names, name))
        made.append(f"{shown} : {'null' if value is None else make(value)}")
        return made

    def finish(state: list[Any] | None) -> str | None:
        return None if state is None else _json_within(f"{{ {', '.join(state)} }}")

    return Aggregate(
        "json_object_agg",
        (names, known),
        JSON,
        _none,
        step,
        finish,
        strict=False,
        keeps_rows=True,
    )


# ------------------------------------------------------------------ the table

_BITS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "bit_and": operator.and_,
    "bit_or": operator.or_,
    "bit_xor": operator.xor,
}
_SPREADS: Final = ("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")
_EXTREMES: Final = (
    *INTEGERS,
    *(
        NUMERIC,
        REAL,
        DOUBLE,
        TEXT,
        CHAR,
        DATE,
        TIME,
        TIMETZ,
        TIMESTAMP,
        TIMESTAMPTZ,
        INTERVAL,
        INET,
    ),
)
_TABLE: Final = (
    _sum(SMALLINT, BIGINT),
    _sum(INTEGER, BIGINT),
    _sum(BIGINT, NUMERIC),
    _sum(NUMERIC, NUMERIC),
    _sum(REAL, REAL),
    _sum(DOUBLE, DOUBLE),
    _sum(INTERVAL, INTERVAL),
    *(_exact_average(kind) for kind in (*INTEGERS, NUMERIC)),
    *(
        Aggregate("avg", (kind,), DOUBLE, _Moments, _more_moments, _double_average)
        for kind in (REAL, DOUBLE)
    ),
    Aggregate("avg", (INTERVAL,), INTERVAL, _SpanSums, _more_spans, _span_average),
    *(_exact_spread(name, kind) for name in _SPREADS for kind in (*INTEGERS, NUMERIC)),
    *(_float_spread(name, kind) for name in _SPREADS for kind in (REAL, DOUBLE)),
    *(_extreme(name, kind) for name in ("min", "max") for kind in _EXTREMES),
    *(_folded(name, BOOLEAN, BOOLEAN, operator.and_) for name in ("bool_and", "every")),
    _folded("bool_or", BOOLEAN, BOOLEAN, operator.or_),
    *(_folded(name, k, k, combine) for name, combine in _BITS.items() for k in INTEGERS),
    Aggregate(
        "string_agg",
        (TEXT, TEXT),
        TEXT,
        _none,
        _more_text,
        _joined_text,
        strict=False,
        keeps_rows=True,
    ),
    Aggregate(
        "string_agg",
        (BYTEA, BYTEA),
        BYTEA,
        _none,
        _more_text,
        _joined_bytes,
        strict=False,
        keeps_rows=True,
    ),
)
AGGREGATE_NAMES: Final = frozenset(
    {a.name for a in _TABLE}
    | {"array_agg", "count", "jsonb_agg", "jsonb_object_agg"}
    | {"json_agg", "json_object_agg"}
)


def aggregate_of(name: str, kinds: Sequence[Type | None]) -> Aggregate:
    """Return the aggregate of that name over values of these types, None for open ones; `count` of
    no argument counts rows. Raises UnknownFunction, AmbiguousFunction, FeatureNotSupported."""
    if name == "count" and len(kinds) <= 1:
        known = tuple(kind or TEXT for kind in kinds)
        return Aggregate("count", known, BIGINT, lambda: 0, lambda state, *_: state + 1, unchanged)
    if name == "array_agg" and len(kinds) == 1:
        known_kind = kinds[0] or TEXT
        if element_of(known_kind):
            arrays.refuse_dimensions()
        array = array_of(known_kind)
        return _listed(name, known_kind, array, unchanged, arrays.stored_form)
    if name == "jsonb_agg" and len(kinds) == 1:
        known_kind = kinds[0] or TEXT
        return _listed(name, known_kind, JSONB, json_of(known_kind), jsonb.text_of)
    if name == "json_agg" and len(kinds) == 1:
        known_kind = kinds[0] or TEXT
        return _listed(name, known_kind, JSON, json_text_of(known_kind), _json_list)
    if name == "json_object_agg" and len(kinds) == 2:
        return _json_named(*kinds)
    if name == "jsonb_object_agg" and len(kinds) == 2:
        return _named(*kinds)
    kind = kinds[0] if len(kinds) == 1 else None
    if name in ("min", "max") and kind is not None and _is_own_extreme(kind):
        return _extreme(name, kind)
    found = resolve([_BY_SHAPE[a] for a in _TABLE if a.name == name], kinds)
    if found is None:
        signature = f"{name}({', '.join(map(kind_name, kinds))})"
        raise UnknownFunction(f"aggregate {signature} does not exist")
    return _OF_SHAPE[found]


_BY_SHAPE: Final = {a: Function(a.name, a.arguments, a.result, a.step) for a in _TABLE}
_OF_SHAPE: Final = {function: a for a, function in _BY_SHAPE.items()}
