"""PostgreSQL's casts: which type becomes which, how, and in which context.

*implicit* casts are made anywhere without being asked for, *assignment* ones when a value is put
into a column, *explicit* ones by CAST alone. A type's length, precision and scale are applied after
the change of the type: an explicit cast cuts a text that is too long, an assignment refuses it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

from leasehold.catalog.elements import CommitContext
from leasehold.model.budget import charge_each
from leasehold.model.errors import FeatureNotSupported, InvalidArgument, OutOfRange
from leasehold.sql.functions import networks
from leasehold.sql.functions.casts import catalog_casts
from leasehold.sql.functions.dates.times import ASSIGNED, CASTS, STABLE_CASTS, ZONED_CASTS
from leasehold.sql.functions.function import (
    DOUBLE,
    NUMERIC,
    REAL,
    Function,
    is_integer,
    is_text,
    make_zoned,
    unchanged,
)
from leasehold.sql.functions.numbers.arithmetic import check_range
from leasehold.sql.functions.resolution import is_implicit
from leasehold.values import jsonb
from leasehold.values.arrays import collect, elements_of
from leasehold.values.arrays import stored_form as array_form
from leasehold.values.catalog_types import REGISTERED, SYSTEM_TYPES
from leasehold.values.date_text import day_in_range
from leasehold.values.dates import day_at, midnight_of, round_second
from leasehold.values.declared import NUMBERS
from leasehold.values.doubles import over_floats
from leasehold.values.interval import round_span, span_of
from leasehold.values.interval import stored_form as span_form
from leasehold.values.numeric import EXACT, decimal_of, fit_number, stored_form
from leasehold.values.numeric import text_of as numeric_text
from leasehold.values.singles import DIGITS_SURE, single_of, single_of_exact
from leasehold.values.storage import to_storage
from leasehold.values.text_io import from_text, reads_zone, shows_zone, to_text
from leasehold.values.time_zone import InZone, at_zone, local_of
from leasehold.values.times import round_time, round_zoned
from leasehold.values.types import (
    FLOATS,
    INTEGER_BITS,
    TIMED,
    Type,
    array_of,
    element_of,
    is_same_enum,
    plain_type,
)

Context: TypeAlias = Literal["implicit", "assignment", "explicit"]
Convert: TypeAlias = Callable[..., Any]

_DIGITS_OF_DOUBLE: Final = 15
_CAST_WORK: Final = 300
"""Of an element of an array that is cast."""
_DATETIMES: Final = frozenset({"date", "timestamp", "timestamptz"})


def make_cast(source: Type | None, target: Type, context: Context) -> Function | None:
    """Return a cast, None where there is none, or not in this context. `source` None is an open
    constant, whose text the cast's compute takes."""
    element = element_of(target)
    given = None if source is None else element_of(source)
    if element is not None and element.name in REGISTERED and given is None:
        return _names_cast(source, target, element, context)
    if source is None:
        taken = (Type("text"),)
        if target.name in REGISTERED:
            change = catalog_casts.changed(taken[0], target)
            assert change is not None
            return Function("cast", taken, target, change, volatility="stable")
        if reads_zone(target):
            return make_zoned("cast", taken, target, _read_in_zone(target))
        return Function("cast", taken, target, _of_constant(target, context))
    if element is not None:
        return _array_cast(source, target, element, context)
    if not _allowed(source, target, context):
        return None
    change = _changed(source, target)
    if change is None:
        return None
    fit = _fitted(source, target, context)
    if catalog_casts.is_stable(source, target) or (source.name, target.name) in STABLE_CASTS:
        return Function("cast", (source,), target, _told(change, fit), volatility="stable")
    if _asks_zone(source, target):
        return make_zoned("cast", (source,), target, _told(change, fit))
    return Function("cast", (source,), target, _after(change, fit))


def _names_cast(
    source: Type | None, target: Type, element: Type, context: Context
) -> Function | None:
    """Return the cast of `{int,bigint}` to an array of what these names are of, which asks the
    catalog for each."""
    if source is not None and (context != "explicit" or not is_text(source)):
        return None
    texts = array_of(Type("text"))
    cast = _array_cast(texts, target, element, "explicit")
    assert cast is not None, "a name is of something, or refused"

    def found(at: CommitContext, text: str) -> Any:
        return cast.compute(at, from_text(texts, text))

    taken = Type("text") if source is None else source
    return Function("cast", (taken,), target, found, volatility="stable")


def _array_cast(source: Type, target: Type, element: Type, context: Context) -> Function | None:
    """Return the cast to an array of `element`: of another array element by element, or of a
    text."""
    given = element_of(source)
    if given is None:
        if context != "explicit" or not is_text(source):
            return None
        if reads_zone(target):
            return make_zoned("cast", (source,), target, _read_in_zone(target))
        return Function("cast", (source,), target, lambda text: from_text(target, text))
    cast = make_cast(given, element, context)
    if cast is None:
        return None
    one = cast.compute
    if cast.volatility != "immutable" and not cast.zoned:
        # It asks the catalog for the name of each.
        def named(context: CommitContext, stored: str) -> str:
            return array_form(
                collect(None if v is None else one(context, v) for v in _each(stored))
            )

        return Function("cast", (source,), target, named, volatility="stable")
    if cast.zoned:

        def each(zone: ZoneInfo, stored: str) -> str:
            at = InZone(zone)
            return array_form(collect(None if v is None else one(at, v) for v in _each(stored)))

        return make_zoned("cast", (source,), target, each)
    if one is unchanged:
        return Function("cast", (source,), target, unchanged)

    def convert(stored: str) -> str:
        return array_form(collect(None if v is None else one(v) for v in _each(stored)))

    return Function("cast", (source,), target, convert)


def _each(stored: str) -> Iterable[Any]:
    return charge_each(elements_of(stored), _CAST_WORK)


def _after(change: Convert, fit: Convert | None) -> Convert:
    if fit is None:
        return change
    return fit if change is unchanged else lambda value: fit(change(value))


def _told(change: Convert, fit: Convert | None) -> Convert:
    """Return `change`, then `fit`, for a change that asks the catalog or takes the session's time
    zone."""
    if fit is None:
        return change
    return lambda asked, value: fit(change(asked, value))


def _asks_zone(source: Type, target: Type) -> bool:
    """Return whether `_changed` of these types is a function of the session's time zone, too."""
    pair = (source.name, target.name)
    if is_text(source) and reads_zone(target):
        return True
    shown = source.name != target.name and (shows_zone(source) or shows_zone(target))
    return pair in ZONED_CASTS or (shown and pair not in CASTS)


def _read_in_zone(target: Type) -> Convert:
    return lambda zone, text: from_text(target, text, zone)


def _of_constant(target: Type, context: Context) -> Convert:
    if context == "explicit" and is_text(target) and target.length is not None:
        open_end = Type("text")
        fit = _fitted(open_end, target, context)
        assert fit is not None
        return lambda text: fit(from_text(open_end, text))
    return lambda text: from_text(target, text)


def _allowed(source: Type, target: Type, context: Context) -> bool:
    """Return whether the context allows the cast, by names; a context allows what the ones before
    it do."""
    if is_implicit(source, target):
        return True
    of_system = catalog_casts.allowed(source, target, context)
    if of_system is not None:
        return of_system
    if context == "implicit":
        return False
    names = {source.name, target.name}
    if names <= NUMBERS or is_text(target):
        return True
    if source.name in ("timestamp", "timestamptz") and names <= _DATETIMES:
        return True
    if (source.name, target.name) in ASSIGNED or names in ({"json", "jsonb"}, {"inet", "cidr"}):
        return True
    return context == "explicit"


def _changed(source: Type, target: Type) -> Convert | None:
    """The change of the type, without length or precision; None where there is none."""
    if source.name == target.name:
        return unchanged if is_same_enum(source, target) else None
    if {source.name, target.name} & SYSTEM_TYPES:
        return catalog_casts.changed(source, target)
    if is_text(target):
        if is_text(source):
            return (lambda value: value.rstrip(" ")) if target.name == "char" else unchanged
        return _to_text(source, target)
    if is_text(source) and reads_zone(target):
        return _read_in_zone(target)
    if is_text(source):
        plain = plain_type(target)
        return lambda value: from_text(plain, value)
    if source.name in NUMBERS and target.name in NUMBERS:
        return _number(source, target)
    if source.name == "jsonb" and target.name != "json":
        return _of_json(target)
    pair = (source.name, target.name)
    if pair in networks.CASTS:
        return networks.CASTS[pair]
    return _OTHERS.get(pair) or CASTS.get(pair) or ZONED_CASTS.get(pair) or STABLE_CASTS.get(pair)


def _to_text(source: Type, target: Type) -> Convert:
    if source.name in ("uuid", "json", "jsonb") and target.name != "char":
        return unchanged
    if shows_zone(source):
        return lambda zone, value: to_text(source, value, zone)
    if target.name == "char":
        return lambda value: to_text(source, value).rstrip(" ")
    return lambda value: to_text(source, value)


_OTHERS: Final[dict[tuple[str, str], Convert]] = {
    ("json", "jsonb"): jsonb.stored_form,
    ("jsonb", "json"): unchanged,
    ("boolean", "integer"): unchanged,
    ("integer", "boolean"): lambda value: int(value != 0),
    ("date", "timestamp"): midnight_of,
    ("date", "timestamptz"): lambda zone, value: at_zone(midnight_of(value), zone),
    ("timestamp", "date"): lambda value: day_in_range(day_at(value)),
    ("timestamptz", "date"): lambda zone, value: day_in_range(day_at(local_of(value, zone))),
    ("timestamptz", "timestamp"): lambda zone, value: local_of(value, zone),
    ("timestamp", "timestamptz"): lambda zone, value: at_zone(value, zone),
}


# ------------------------------------------------------------------ numbers


def _number(source: Type, target: Type) -> Convert:
    if is_integer(source):
        if is_integer(target):
            wide = INTEGER_BITS[target.name] >= INTEGER_BITS[source.name]
            return unchanged if wide else check_range(target, unchanged)
        if target == DOUBLE:
            return float
        return single_of_exact if target == REAL else _numeric_of_integer
    if source.name in FLOATS:
        if is_integer(target):
            return over_floats(check_range(target, lambda value: _rint(value, target)))
        if target.name == NUMERIC.name:
            digits = DIGITS_SURE if source == REAL else _DIGITS_OF_DOUBLE
            return over_floats(lambda value: stored_form(decimal_of_float(value, digits)))
        return unchanged if target == DOUBLE else over_floats(_real_of_double)
    if is_integer(target):
        return check_range(target, lambda value: _nearest(value, target))
    return over_floats(real_of_numeric if target == REAL else double_of_numeric)


def _numeric_of_integer(value: int) -> str:
    return stored_form(Decimal(value))


def _rint(value: float, kind: Type) -> int:
    """Return a whole number, half to even. Raises OutOfRange for what is not finite."""
    if not math.isfinite(value):
        raise OutOfRange(f"{kind} out of range")
    return round(value)


def _nearest(value: str, kind: Type) -> int:
    """Return a whole number, half away from zero. Raises FeatureNotSupported for what is not
    finite, OutOfRange for more than 20 digits."""
    number = decimal_of(value)
    if not number.is_finite():
        raise FeatureNotSupported(f"cannot convert {numeric_text(value)} to {kind}")
    if number.adjusted() > 20:
        raise OutOfRange(f"{kind} out of range")
    return int(number.to_integral_value(ROUND_HALF_UP, context=EXACT))


def decimal_of_float(value: float, digits: int) -> Decimal:
    """Return a float as a decimal of the digits that are sure: PostgreSQL takes no more."""
    return Decimal(f"{value:.{digits}g}") if math.isfinite(value) else Decimal(value)


def _real_of_double(value: float) -> float:
    return single_of(value) if math.isfinite(value) else value


def real_of_numeric(value: str) -> float:
    """Raises as `double_of_numeric`."""
    number = decimal_of(value)
    if not number.is_finite():
        return float(number)
    try:
        return single_of_exact(number)
    except OutOfRange as error:
        words = f'"{numeric_text(value):.80}" is out of range for type real'
        raise OutOfRange(words) from error


def double_of_numeric(value: str) -> float:
    """Raises OutOfRange (22003) where the number is too large or too small."""
    number = decimal_of(value)
    made = float(number)
    vanished = made == 0.0 and bool(number)
    if (math.isinf(made) and number.is_finite()) or vanished:
        raise OutOfRange(f'"{numeric_text(value):.80}" is out of range for type double precision')
    return made


# ------------------------------------------------------------------ jsonb


def _of_json(target: Type) -> Convert | None:
    if target.name == "boolean":
        return lambda value: int(_json_part(value, bool, target))
    if target.name not in NUMBERS:
        return None
    exact = Type("numeric")
    change = unchanged if target.name == "numeric" else _number(exact, Type(target.name))

    def convert(value: str) -> Any:
        return change(stored_form(_json_part(value, Decimal, target)))

    return convert


def _json_part(stored: str, wanted: type, target: Type) -> Any:
    value = jsonb.value_of(stored)
    if not isinstance(value, wanted):
        raise InvalidArgument(f"cannot cast jsonb {jsonb.kind_of(value)} to type {target}")
    return value


# ------------------------------------------------------------------ length and precision


def _fitted(source: Type, target: Type, context: Context) -> Convert | None:
    if source.enum is not None and target.enum is not None:
        # Of two versions of an enum type the one may have a label more.
        return None if target.enum.holds_all_of(source.enum) else target.enum.fitting
    if target.length is not None and is_text(target):
        if source.name == target.name and (source.length or target.length + 1) <= target.length:
            return None
        return _cut(target) if context == "explicit" else to_storage(target)
    if target.length is not None and target.name in TIMED:
        if source.name == target.name and (source.length or target.length + 1) <= target.length:
            return None
        digits, rounded = target.length, _ROUNDED[target.name]
        return lambda value: rounded(value, digits)
    if target.precision is not None:
        if source == target:
            return None
        precision, scale = target.precision, target.scale
        return lambda value: stored_form(fit_number(decimal_of(value), precision, scale))
    return None


def _round_interval(value: str, digits: int) -> str:
    return span_form(round_span(span_of(value), digits))


_ROUNDED: Final[dict[str, Convert]] = {
    "timestamp": round_second,
    "timestamptz": round_second,
    "time": round_time,
    "timetz": round_zoned,
    "interval": _round_interval,
}


def _cut(target: Type) -> Convert:
    length = target.length
    if target.name == "char":
        return lambda value: value[:length].rstrip(" ")
    return lambda value: value[:length]
