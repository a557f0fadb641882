"""What the catalogue computes is total: over any values it gives a value or a refusal.

Nodes compute expressions while they apply the log, so a function that fails otherwise on one row
would be met by each of them. `SEED=7 CALLS=2000 pytest …` looks elsewhere and further (CALLS: of
each function). What a result may be is asked, too: no NaN as a float, no lone surrogate, no
integer beyond its type, nothing longer than a row or a query may have.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, product
from random import Random
from typing import Any, Final

import pytest

from leasehold.model.errors import Refused
from leasehold.sql.functions.arrays import set_returning
from leasehold.sql.functions.arrays.array import FAMILIES as ARRAY_FAMILIES
from leasehold.sql.functions.arrays.array import OPERATOR_FAMILIES
from leasehold.sql.functions.function import Function, fix_to_utc
from leasehold.sql.functions.polymorphic import FAMILIES
from leasehold.sql.functions.registry import (
    ALL_FUNCTIONS,
    ALL_OPERATORS,
    FUNCTION_NAMES,
    cast_for,
    function_for,
    operator_for,
)
from leasehold.sql.functions.texts.text import MADE_CHARACTERS_MAX
from leasehold.values.arrays import CHARACTERS_MAX, elements_of
from leasehold.values.arrays import stored_form as array_form
from leasehold.values.dates import DAY_LEAST, DAY_MOST, INFINITE_WORDS, is_infinite
from leasehold.values.jsonb import is_stored_form
from leasehold.values.numeric import decimal_of
from leasehold.values.numeric import stored_form as number_form
from leasehold.values.singles import is_single
from leasehold.values.storage import to_storage
from leasehold.values.types import (
    DATES_AND_TIMESTAMPS,
    FLOATS,
    KNOWN,
    TEXT_BYTES_MAX,
    Type,
    array_of,
    element_of,
)
from tests.models.summary import Tell

SEED: Final = int(os.environ.get("SEED", "1"))
CALLS: Final = int(os.environ.get("CALLS", "16"))
"""Of each function: with all of them a few seconds."""
MANY_CALLS: Final = 1_000
"""By shares four million calls of all of them together."""

LARGE_NUMERICS: Final = ("9" * 131_072, "-" + "9" * 4_400, "0." + "1" * 16_383, "1e131071")
NUMERICS: Final = (
    *("NaN", "Infinity", "-Infinity", "0", "-0.00", "1", "-1", "0.5", "2147483648"),
    *("9223372036854775808", "-9223372036854775809", "1e60", "-1e-60", "123456.789", "1e-300"),
)

DEEP: Final = '[{"a": ' * 60 + "1.50" + "}]" * 60
TEXTS: Final = (
    *("", " ", "a", "é", "\U0001d538", "a\nb", "'", '"', "\\", "%", "%s", "%1$s", "_", "a%b"),
    *("x" * 40_000, "9" * 5_000, "-" + "9" * 400, "é" * 2_000, "NaN", "infinity", "-infinity"),
    *("1e999999999", "0x1f", "1_000", "٣", "null", "{}", "{1,NULL}", "{{1},{2}}", '["a", 1]'),
    *(
        DEEP,
        "{a,b}",
        "a{" + "9" * 5_000 + "}",
        "0001-01-01",
        "9999-12-31 23:59:59.999999+14",
        "10000-01-01",
    ),
    *("1 year 2 mons", "9223372036854775807 years", "P1Y", "epoch", "now", "UTC", "Europe/Berlin"),
    *("day", "century", "YYYY-MM-DD", "HH24:MI:SS.US TZ", "FMMonth", "hex", "base64", "escape"),
    *("%" + "9" * 5_000 + "$s", "%2147483647s", "%-999999999999s", "\\x", "\\xgg", "(", "[a", "a{"),
    *("(a)(b)?", "$.a", "UTF8", "00000000-0000-0000-0000-000000000000", "g", "\\1", "0" * 300),
)
JSONS: Final = (
    *("null", "true", "0", '""', "[]", "{}", "[[]]", '{"a": 1, "b": [null, "x"]}', "1.50"),
    *("9" * 5_000, "0." + "0" * 16_000 + "1", "-1", DEEP, '"é"', '{"": {"": []}}'),
    *("[1, 2.0, 3]", '[{"a": 1e300}]', '"' + "x" * 5_000 + '"'),
)
SCALARS: Final[dict[str, Sequence[Any]]] = {
    "smallint": (0, 1, -1, 7, -(1 << 15), (1 << 15) - 1),
    "integer": (0, 1, -1, 2, 7, 1_000, -(1 << 31), (1 << 31) - 1),
    "bigint": (0, 1, -1, 3, 62, 1 << 31, -(1 << 63), (1 << 63) - 1),
    "numeric": (*NUMERICS, *LARGE_NUMERICS),
    "double precision": (
        *(0.0, -0.0, 1.0, -1.5, 0.5, 1e308, -1e308, 5e-324, 9.3e18, -1e15, 1e300),
        *(float("inf"), float("-inf"), float("nan")),
    ),
    "real": (
        *(0.0, -0.0, 1.0, -1.5, 0.5, 3.4028234663852886e38, -1e38, 1.401298464324817e-45, -1e15),
        *(float("inf"), float("-inf"), float("nan")),
    ),
    "inet": ("0.0.0.0/0", "255.255.255.255", "::/0", "::ffff:1.2.3.4/96", "ffff::ffff/128"),
    "cidr": ("0.0.0.0/0", "255.255.255.255/32", "::/0", "::1/128", "10.0.0.0/8"),
    "time": ("00:00:00", "24:00:00", "23:59:59.999999", "10:20:30.5"),
    "timetz": ("00:00:00+15:59:59", "24:00:00-15:59:59", "23:59:59.999999+00", "10:20:30-03:30"),
    "text": TEXTS,
    "varchar": TEXTS,
    "char": TEXTS,
    "boolean": (True, False),
    "bytea": (b"", b"\x00", b"\xff" * 3, b"a" * 5_000, bytes(range(256))),
    "date": ("0001-01-01", "9999-12-31", "1970-01-01", "2024-02-29", *INFINITE_WORDS),
    "timestamp": (
        *("0001-01-01T00:00:00", "9999-12-31T23:59:59.999999", "1969-12-31T23:59:59.5"),
        *INFINITE_WORDS,
    ),
    "timestamptz": (
        *("0001-01-02T00:00:00Z", "9999-12-30T23:59:59.999999Z", "2024-03-31T01:30Z"),
        *INFINITE_WORDS,
    ),
    "interval": (
        *("0", "1 day", "-1 mon", "178000000 years", "-178000000 years", "2000000000 days"),
        *("2562047788 hours", "1.5 years -3 days 04:05:06.789"),
    ),
    "uuid": ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    "jsonb": JSONS,
    "json": JSONS,
    "name": TEXTS[:20],
    "oid": (0, 1, 25, (1 << 32) - 1),
    '"char"': ("", "a"),
}


def values_of(kind: Type) -> list[Any]:
    """Storage values of a type, NULL among them."""
    element = element_of(kind)
    if element is not None:
        found = [v for v in values_of(element) if v is None or not _is_long(v)]
        lists = [[], [None], found[:1], found[-1:], found, found * 3, [*reversed(found)]]
        return [None, *map(array_form, lists)]
    outside = SCALARS.get(kind.name)
    if outside is None:  # of the system catalog, as numbers or names
        return [None, 0, 25, (1 << 31) - 1, "x"]
    if kind.name not in KNOWN:
        return [None, *outside]
    store = to_storage(kind)
    return [None, *map(store, outside)]


DAY_US: Final = 86_400_000_000
LIMITS: Final = {
    "smallint": (-(1 << 15), (1 << 15) - 1),
    "integer": (-(1 << 31), (1 << 31) - 1),
    "bigint": (-(1 << 63), (1 << 63) - 1),
    "boolean": (0, 1),
    "date": (DAY_LEAST, DAY_MOST),
    "timestamp": (DAY_LEAST * DAY_US, (DAY_MOST + 1) * DAY_US - 1),
    "time": (0, DAY_US),
    "timestamptz": (DAY_LEAST * DAY_US, (DAY_MOST + 1) * DAY_US - 1),
}


def _is_long(value: Any) -> bool:
    return isinstance(value, str | bytes) and len(value) > 300


def givens(function: Function, random: Random, calls: int) -> Iterator[tuple[Any, ...]]:
    """Arguments: all combinations where they are few, else some of them."""
    kinds = function.arguments
    if function.variadic:
        kinds = (*kinds, *kinds[-1:] * 2)
    columns = [values_of(kind) for kind in kinds]
    number = 1
    for column in columns:
        number *= len(column)
    if number <= calls:
        yield from product(*columns)
        return
    for _ in range(calls):
        yield tuple(random.choice(column) for column in columns)


def failures(functions: Sequence[Function], random: Random, calls: int) -> Iterator[str]:
    for function in functions:
        for given in givens(function, random, calls):
            if function.strict and None in given:
                continue
            try:
                made = function.compute(*given)
            except Refused:
                continue
            except Exception as error:  # noqa: BLE001 - which of them is what is looked for
                shown = ", ".join(repr(value)[:60] for value in given)
                yield f"{function} of ({shown}): {type(error).__name__}: {str(error)[:80]}"
            else:
                why = why_no_value(function.result, made)
                if why:
                    yield f"{function} of {given!r:.100}: {why}"


def why_no_value(kind: Type, value: Any) -> str:
    """Return why a result is no storage value of its type, "" where it is one."""
    if value is None:
        return ""
    if kind.name in LIMITS:
        least, most = LIMITS[kind.name]
        whole = type(value) in (int, bool) and least <= value <= most
        whole |= kind.name in DATES_AND_TIMESTAMPS and type(value) is int and is_infinite(value)
        return "" if whole else f"{value!r:.60} is no {kind}"
    if kind.name in FLOATS:
        double = value == "NaN" or (type(value) in (float, int) and value == value)
        if double and kind.name == "real" and value != "NaN":
            double = is_single(value)
        return "" if double else f"{value!r:.60} is no {kind}'s storage value"
    if isinstance(value, str):
        limit = CHARACTERS_MAX if element_of(kind) is not None else MADE_CHARACTERS_MAX
        if len(value) > limit:
            return f"a text of {len(value)} characters"
        try:
            value.encode()
        except UnicodeEncodeError:
            return "a lone surrogate"
    if kind.name == "numeric":
        return "" if number_form(decimal_of(value)) == value else f"{value!r:.60} is not stored so"
    if kind.name == "jsonb":
        short = len(value) < 10_000
        good = is_stored_form(value) if short else len(value) <= TEXT_BYTES_MAX
        return "" if good else f"{value!r:.60} is no stored jsonb"
    element = element_of(kind)
    if element is not None:
        return next(filter(None, (why_no_value(element, v) for v in elements_of(value)[:100])), "")
    return ""


def immutable(functions: Sequence[Function]) -> list[Function]:
    """Those that what is kept may have: a zoned one as in UTC."""
    return [f for f in map(fix_to_utc, functions) if f.volatility == "immutable"]


def families() -> list[Function]:
    """Functions that are made for the types of a call."""
    kinds = [*map(Type, KNOWN), *(array_of(Type(name)) for name in KNOWN)]
    text = Type("text")
    tries: list[Callable[[], Function]] = []
    for kind in kinds:
        one = element_of(kind) or kind
        given = ((kind,), (kind, kind), (kind, one), (one, kind), (text, kind), (kind, text, text))
        for name in sorted({*FAMILIES, *ARRAY_FAMILIES} & FUNCTION_NAMES):
            tries += [partial(function_for, name, kinds) for kinds in given]
        for sign in sorted({*OPERATOR_FAMILIES, "||"}):
            pairs = ((kind, kind), (kind, text), (text, kind))
            tries += [partial(operator_for, sign, left, right) for left, right in pairs]
    return _made(tries)


def casts() -> list[Function]:
    kinds = [*map(Type, KNOWN), *(array_of(Type(name)) for name in KNOWN)]
    narrow = [Type("varchar", 3), Type("char", 3), Type("numeric", None, 5, 2)]
    found = [cast_for(a, b, "explicit") for a in (None, *kinds) for b in (*kinds, *narrow)]
    return [cast for cast in found if cast is not None]


def _made(tries: Sequence[Callable[[], Function]]) -> list[Function]:
    found = []
    for each in tries:
        try:
            found.append(each())
        except Refused:
            continue
    return found


GROUPS: Final = pytest.mark.parametrize(
    ("what", "functions", "share"),
    [
        ("functions", immutable(ALL_FUNCTIONS), 4),
        ("operators", immutable(ALL_OPERATORS), 4),
        ("families", immutable(families()), 1),
        ("casts", immutable(casts()), 2),
        ("sets", immutable(set_returning.FUNCTIONS), 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)


def check(what: str, functions: Sequence[Function], calls: int, tell: Tell) -> None:
    tell(f"extreme values: SEED={SEED}, {calls} calls of each of {len(functions)} {what}")
    assert functions
    random = Random(f"{SEED} {what}")
    found = list(islice(failures(functions, random, calls), 30))
    assert not found, "\n".join(found)


@GROUPS
def test_any_values_give_a_value_or_a_refusal(
    what: str, functions: Sequence[Function], share: int, tell: Tell
) -> None:
    """No function of the catalogue fails with anything but a Refused."""
    check(what, functions, share * CALLS, tell)


@pytest.mark.long("four million calls take minutes")
@GROUPS
def test_four_million_calls_give_a_value_or_a_refusal(
    what: str, functions: Sequence[Function], share: int, tell: Tell
) -> None:
    """The same a hundred times as often; another SEED looks at another place."""
    check(what, functions, share * MANY_CALLS, tell)
