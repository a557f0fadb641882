"""Random calls of the catalogue's functions, as SQL for PostgreSQL and as calls for ours."""

from __future__ import annotations

from random import Random
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from leasehold.model.errors import CannotCast, LeaseholdError
from leasehold.sql.functions import registry
from leasehold.sql.functions.function import Function
from leasehold.values.text_io import from_text, to_text
from leasehold.values.time_zone import UTC, InZone, NowInZone
from leasehold.values.types import Type, parse_type

POOLS: Final[dict[str, tuple[str, ...]]] = {
    "smallint": ("0", "1", "-1", "2", "7", "-7", "100", "32767", "-32768"),
    "integer": ("0", "1", "-1", "2", "3", "-5", "10", "31", "1000", "2147483647", "-2147483648"),
    "bigint": ("0", "1", "-1", "6", "12", "-100", "9223372036854775807", "-9223372036854775808"),
    "numeric": (
        *("0", "0.00", "1", "-1", "1.50", "-1.5", "2", "3", "10", "0.5", "0.0001", "123.456"),
        *("-99.995", "100", "12345678901234567890.123", "0.000000000000000000001", "1e20", "1e-10"),
        *("0.333", "7.77", "9999.99", "10000", "99999999", "1.1", "0.9", "-3", "NaN"),
        *("Infinity", "-Infinity", "2.718281828459045", "1e-30", "5e40"),
    ),
    "double precision": (
        *(
            "0",
            "1",
            "-1",
            "0.5",
            "2.5",
            "3.5",
            "-2.5",
            "0.1",
            "1e15",
            "123456.789",
            "1e-5",
            "1e300",
        ),
        *("-1e-300", "Infinity", "-Infinity", "NaN", "100", "1e14", "0.0001"),
    ),
    "real": (
        *(
            "0",
            "1",
            "-1",
            "0.5",
            "2.5",
            "0.1",
            "-3.7",
            "100",
            "123456",
            "1234567",
            "1e-5",
            "0.0001",
        ),
        *("1e30", "-1e-30", "3.4028235e38", "1e-45", "16777217", "Infinity", "-Infinity", "NaN"),
    ),
    "text": (
        *("", "a", "abc", "Hello World", "  pad ", "é", "abcabc", "A%b_c", "x'y", "12", "%", "_b%"),
        *("a.b.c", "größe", "1.5", "xyxy", "100", "ABC", " ", "\\", "a\\%b", "😀z"),
    ),
    "varchar": ("", "abc", "  x", "B"),
    "char": ("a", "ab ", ""),
    "boolean": ("true", "false"),
    "bytea": ("\\x", "\\x00ff", "\\x6162", "\\x5c7f80"),
    "date": ("2020-01-31", "2020-02-29", "1999-12-31", "2021-03-01", "0001-01-01", "9999-12-31"),
    "timestamp": (
        *("2020-01-31 10:20:30", "2020-02-29 23:59:59.999999", "1999-12-31 00:00:00"),
        *(
            "2000-01-01 12:00:00.5",
            "1970-01-01 00:00:00",
            "0044-03-15 01:02:03",
            "9999-12-31 23:00:00",
        ),
    ),
    "time": (
        *("00:00:00", "10:20:30", "23:59:59.999999", "24:00:00", "12:00:00.5", "01:02:03.123456"),
        *("10:20", "1020", "102030.25", "T04:05:06", "10:20 PM", "12:00 am", "allballs", "9:5:6"),
        *("10:20:30+02", "2020-01-31 10:20:30", "25:00:00", "23:59:60", "10:60:00", "noon"),
    ),
    "timetz": (
        *(
            "00:00:00+00",
            "10:20:30+02",
            "10:20:30-05:30",
            "24:00:00+00",
            "23:59:59.999999-15:59:59",
        ),
        *(
            "08:20:30+00",
            "12:00:00.5+15:59",
            "10:20:30Z",
            "10:20 PM +01",
            "04:05:06 PST",
            "allballs",
        ),
        *("2020-07-01 10:20:30 Europe/Berlin", "10:20:30+16", "10:20:30", "1:2:3.4567895+00"),
    ),
    "timestamptz": (
        *("2020-01-31 10:20:30+00", "2020-03-29 01:30:00+00", "1969-07-20 20:17:40.123+00"),
        *("2020-10-25 00:30:00+00", "2038-01-19 03:14:07+00"),
    ),
    "interval": (
        *("1 day", "1 mon", "-1 mon", "1 year 2 mons 3 days 04:05:06.789", "00:00:00", "36:00:00"),
        *("-1 day +02:03:04", "30 days", "1.5 hours", "100 years", "-3 mons 40 days", "23:59:59"),
    ),
    "uuid": ("00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "inet": (
        *("10.1.2.3", "10.1.2.3/8", "192.168.0.0/16", "0.0.0.0/0", "::1", "::ffff:1.2.3.4"),
        *("2001:db8::1/32", "fe80::/10", "10.1", "10.1/8", "10.0.0.256", "::1.2.3.4/127"),
        *("10.0.0.1/33", "::ffff:0:0", "1:0:0:2::3", "0.0.0.1", "::"),
    ),
    "cidr": (
        *("10", "10.1", "10.1.2.0/24", "192.168", "10.1.2.3/8", "224", "240", "172.16", "200.1"),
        *("2001:db8::/32", "::1", "10.1.2.3", "::/0", "0/0", "x", "224/4"),
    ),
    "json": (
        *('{"a": 1, "b" :[1, 2, {"c": null}], "a":"x" }', " [ ] ", "{}", '"te\\u00e9xt"', "1.50"),
        *('[1, "a", null, 1.0e2 ]', '{"a": {"b": {"c": 5}}, "x": "y"}', "null", '["a", "b"]'),
        *("[1,]", '{"a"}', "01", "tru", '"\\u0000"', "-0", "1e400", '{"a":1}x', ""),
    ),
    "jsonb": (
        *('{"a": 1, "b": [1, 2, {"c": null}]}', "[]", "{}", '"text"', "1.50", "null", "true"),
        *('[1, "a", null, 1.0]', '{"a": {"b": {"c": 5}}, "x": "y"}', "[1, 1.00, 2]", '["a", "b"]'),
    ),
}
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "extract": (
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "second",
        "dow",
        "isodow",
        "doy",
        "week",
        "quarter",
        "decade",
        "century",
        "millennium",
        "epoch",
        "milliseconds",
        "microseconds",
        "isoyear",
        "julian",
        "bogus",
        "timezone",
    ),
    "date_trunc": (
        "microseconds",
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "quarter",
        "year",
        "decade",
        "century",
        "millennium",
        "bogus",
        "dow",
    ),
    "encode": ("hex", "base64", "escape", "bogus"),
    "decode": ("hex", "base64", "escape"),
    "timezone": (
        *(
            "UTC",
            "Europe/Berlin",
            "America/New_York",
            "Nowhere/None",
            "Asia/Kolkata",
            "pst",
            "CEST",
        ),
        *("EST5EDT", "+02:00", "<-03>+3", "FOO-1", "CET-1CEST,M3.5.0,M10.5.0/3", "europe/london"),
    ),
    "to_char": (
        "YYYY-MM-DD HH24:MI:SS",
        "DD.MM.YY",
        "FMDay, FMDD. FMMonth YYYY",
        "Day Dy DY",
        "HH12:MI AM",
        "IYYY-IW-ID",
        "Q WW W CC J DDD D",
        "MS US",
        "MONTH Mon mon",
        "DDth",
        'YYYY"T"MM',
        "TZ",
        "tz OF TZH:TZM",
    ),
    "to_date": ("YYYY-MM-DD", "YYYYMMDD", "DD Mon YYYY"),
    "path": ("{a}", "{a,b}", "{b,2,c}", "{0}", "{-1}", "{}", "{x,y}"),
    "key": ("a", "b", "c", "x", "0"),
    "format": ("%s", "%s-%s", "%I is %L", "%%", "%2$s %1$s", "%5s|%-5s", "%d", "%s %s %s"),
}
NAMES: Final = {
    "varchar": "character varying",
    "char": "character",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "time": "time without time zone",
    "timetz": "time with time zone",
}
NAMES_IN_SQL: Final = {"char": "bpchar"}
SKIPPED: Final = frozenset(
    {
        *("random", "gen_random_uuid", "clock_timestamp"),
        # Of doubles the C library's last digit is its own.
        *("cbrt", "||/"),
        # Upper and lower case beyond ASCII depend on the server's locale.
        *("initcap",),
        "isfinite",
    }
)


class Argument(NamedTuple):
    """`kind` None: an open constant; `text` None: NULL."""

    kind: Type | None
    text: str | None

    @property
    def sql(self) -> str:
        if self.text is None:
            return "NULL" if self.kind is None else f"CAST(NULL AS {self.kind})"
        quoted = "'" + self.text.replace("'", "''") + "'"
        return (
            quoted
            if self.kind is None
            else f"CAST({quoted} AS {NAMES_IN_SQL.get(self.kind.name, self.kind)})"
        )


def kind_of(text: str) -> Type:
    """As `str(Type)` has it."""
    return Type(text) if text == "char" else parse_type(text)


class Case(NamedTuple):
    """`target`: a cast to it. `rows`: an aggregate over them."""

    name: str
    arguments: tuple[Argument, ...]
    is_operator: bool = False
    target: Type | None = None
    rows: tuple[tuple[Argument, ...], ...] = ()

    def to_json(self) -> list[Any]:
        """A line of the recorded table."""
        shown = [[[a.kind and str(a.kind), a.text] for a in row] for row in self.rows]
        given = [[a.kind and str(a.kind), a.text] for a in self.arguments]
        return [self.name, given, self.is_operator, self.target and str(self.target), shown]

    @property
    def sql(self) -> str:
        if self.target is not None:
            return f"CAST({self.arguments[0].sql} AS {self.target})"
        if self.rows:
            return _aggregate_sql(self)
        shown = [argument.sql for argument in self.arguments]
        if not self.is_operator:
            return f'pg_catalog."{self.name}"({", ".join(shown)})'
        sign = f"OPERATOR(pg_catalog.{self.name})"
        return f"({sign} {shown[0]})" if len(shown) == 1 else f"({shown[0]} {sign} {shown[1]})"


def case_of(line: list[Any]) -> Case:
    """What `Case.to_json` has written."""
    name, given, is_operator, target, rows = line

    def argument(kind: str | None, text: str | None) -> Argument:
        return Argument(None if kind is None else kind_of(kind), text)

    return Case(
        name,
        tuple(argument(*each) for each in given),
        is_operator,
        None if target is None else kind_of(target),
        tuple(tuple(argument(*each) for each in row) for row in rows),
    )


def ours(case: Case, zone: ZoneInfo = UTC) -> str:
    """As `PostgreSQL.answers` says it."""
    try:
        value, kind = evaluated(case, zone)
        shown = "NULL" if value is None else to_text(kind, value, zone)
    except LeaseholdError as error:
        return f"error:{error.sqlstate}:{error.message}"
    return f"value:{NAMES.get(kind.name, kind.name)}|{shown}"


def _aggregate_sql(case: Case) -> str:
    names = [f"a{number}" for number in range(len(case.rows[0]))]
    rows = ", ".join(f"({', '.join(a.sql for a in row)})" for row in case.rows)
    call = f"{case.name}({', '.join(names)})"
    return f"(SELECT {call} FROM (VALUES {rows}) AS given ({', '.join(names)}))"


_NOW_US: Final = 1_750_000_000_000_000


def _called(function: Function, zone: ZoneInfo, *values: Any) -> Any:
    if function.volatility == "immutable":
        return function.compute(*values)
    asked = InZone(zone) if function.zoned else NowInZone(_NOW_US, b"", zone)
    return function.compute(asked, *values)


def evaluated(case: Case, zone: ZoneInfo) -> tuple[Any, Type]:
    if case.rows:
        return _aggregated(case, zone)
    if case.target is not None:
        (argument,) = case.arguments
        cast = registry.cast_for(argument.kind, case.target, "explicit")
        if cast is None:
            raise CannotCast(f"cannot cast type {argument.kind} to {case.target}")
        if argument.text is None:
            return None, case.target
        value = argument.text
        value = from_text(argument.kind, value, zone) if argument.kind else value
        return _called(cast, zone, value), case.target
    kinds = [argument.kind for argument in case.arguments]
    if case.is_operator and len(kinds) == 2:
        function = registry.operator_for(case.name, *kinds)
    else:
        function = registry.function_for(case.name, kinds)
    values: list[Any] = []
    for argument, wanted in zip(case.arguments, function.arguments, strict=True):
        cast = registry.cast_for(argument.kind, wanted, "implicit")
        assert cast is not None, (case, function)
        if argument.text is None:
            values.append(None)
        elif argument.kind is None:
            values.append(_called(cast, zone, argument.text))
        else:
            values.append(_called(cast, zone, from_text(argument.kind, argument.text, zone)))
    if function.strict and None in values:
        return None, function.result
    return _called(function, zone, *values), function.result


def _aggregated(case: Case, zone: ZoneInfo) -> tuple[Any, Type]:
    found = registry.aggregate_for(case.name, tuple(a.kind for a in case.rows[0]))
    state = found.start()
    for row in case.rows:
        values = [
            None if a.text is None or a.kind is None else from_text(a.kind, a.text) for a in row
        ]
        casts = [
            registry.cast_for(a.kind, kind, "implicit")
            for a, kind in zip(row, found.arguments, strict=True)
        ]
        given = [
            None if value is None or cast is None else _called(cast, zone, value)
            for value, cast in zip(values, casts, strict=True)
        ]
        if not (found.strict and None in given):
            state = found.step(state, *given)
    return found.finish(state), found.result


TARGETS: Final = (
    *(Type(name) for name in POOLS if name != "char"),
    *(Type("varchar", 3), Type("numeric", None, 5, 2), Type("numeric", None, 3, -1)),
    *(Type("numeric", None, 2, 4),),
)
_AGGREGATES: Final = {
    **dict.fromkeys(
        ("sum", "avg"),
        ("smallint", "integer", "bigint", "numeric", "real", "double precision", "interval"),
    ),
    **dict.fromkeys(
        ("stddev", "stddev_pop", "variance", "var_pop"),
        ("smallint", "integer", "bigint", "numeric", "real", "double precision"),
    ),
    **dict.fromkeys(
        ("min", "max"),
        (
            "integer",
            "numeric",
            "real",
            "double precision",
            "text",
            "date",
            "time",
            "timetz",
            "timestamp",
            "interval",
        ),
    ),
    **dict.fromkeys(("bool_and", "bool_or", "every"), ("boolean",)),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), ("integer", "bigint")),
    **dict.fromkeys(
        ("count", "jsonb_agg", "json_agg"), tuple(name for name in POOLS if name != "char")
    ),
    "string_agg": ("text", "bytea"),
    "jsonb_object_agg": ("text", "integer"),
    "json_object_agg": ("text", "integer"),
}


def random_cast(random: Random) -> Case:
    name = random.choice([name for name in POOLS if name != "char"])
    kind = None if random.random() < 0.1 else Type(name)
    text = random.choice(POOLS[name])
    target = random.choice(TARGETS)
    return Case("cast", (_readable(Argument(kind, text)),), target=target)


def random_aggregate(random: Random) -> Case:
    name = random.choice(list(_AGGREGATES))
    kind = Type(random.choice(_AGGREGATES[name]))
    kinds = [kind]
    if name == "string_agg":
        kinds = [kind, kind]
    if name in ("jsonb_object_agg", "json_object_agg"):
        kinds = [kind, Type(random.choice(["numeric", "timestamp", "jsonb", "boolean"]))]
    rows = []
    for _ in range(random.randint(1, 6)):
        given = [
            Argument(k, None if random.random() < 0.15 else random.choice(POOLS[k.name]))
            for k in kinds
        ]
        if name.endswith("_object_agg") and given[0].text is None:
            given[0] = Argument(kind, "1")
        rows.append(tuple(given))
    return Case(name, (), rows=tuple(rows))


def functions() -> list[tuple[Function, bool]]:
    """Every function and operator that gives the same each time, and whether it is an operator."""
    tables = ((registry.ALL_FUNCTIONS, False), (registry.ALL_OPERATORS, True))
    return [
        (function, is_operator)
        for table, is_operator in tables
        for function in table
        if (function.volatility == "immutable" or function.zoned)
        and function.name not in SKIPPED
        and all(kind.name in POOLS for kind in function.arguments)
    ]


def random_case(random: Random, function: Function, *, is_operator: bool) -> Case:
    arguments = []
    for place, kind in enumerate(function.arguments):
        words = _words(function, place)
        if words is not None:
            arguments.append(Argument(None, random.choice(words)))
            continue
        text = random.choice(POOLS[kind.name])
        if random.random() < 0.04:
            arguments.append(Argument(kind, None))
        elif random.random() < 0.1:
            arguments.append(Argument(None, text))
        else:
            arguments.append(
                Argument(_near(random, kind), text)
                if random.random() < 0.15
                else Argument(kind, text)
            )
    return Case(function.name, tuple(_readable(a) for a in arguments), is_operator)


def _readable(argument: Argument) -> Argument:
    """A constant that its own type can't read says nothing about the function."""
    if argument.kind is None or argument.text is None:
        return argument
    try:
        from_text(argument.kind, argument.text)
    except LeaseholdError:
        return Argument(None, argument.text)
    return argument


def _near(random: Random, kind: Type) -> Type:
    near = {
        "bigint": ("integer", "smallint"),
        "numeric": ("integer", "bigint"),
        "double precision": ("numeric", "integer", "real"),
        "real": ("integer", "smallint"),
        "text": ("varchar",),
        "timestamp": ("date",),
        "timestamptz": ("timestamp", "date"),
    }
    return Type(random.choice(near.get(kind.name, (kind.name,))))


def _words(function: Function, place: int) -> tuple[str, ...] | None:
    name = function.name
    if name in ("extract", "date_part") and place == 0:
        return WORDS["extract"]
    if name == "date_trunc" and place == 0:
        return WORDS["date_trunc"]
    if name == "date_trunc" and place == 2:
        return WORDS["timezone"]
    if name in ("encode", "decode") and place == 1:
        return WORDS[name]
    if name == "timezone" and place == 0 and function.arguments[0].name == "text":
        return WORDS["timezone"]
    if name == "make_timestamptz" and place == 6:
        return WORDS["timezone"]
    if name == "to_char" and place == 1:
        return WORDS["to_char"]
    if name in ("to_date", "to_timestamp") and len(function.arguments) == 2:
        return (
            WORDS["to_date"] if place else ("2020-02-29", "20200131", "31 Jan 2020", "2020-13-01")
        )
    if name in ("#>", "#>>", "#-", "jsonb_set", "jsonb_insert") and place == 1:
        return WORDS["path"]
    if (
        name in ("->", "->>", "?", "-", "jsonb_exists")
        and function.arguments[0].name == "jsonb"
        and place == 1
    ):
        return WORDS["key"] if function.arguments[1].name == "text" else None
    return None
