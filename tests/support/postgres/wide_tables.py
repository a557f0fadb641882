"""Tables and values that the random statements of `wide_cases.py` are about, and the pieces that
its families are made of."""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

KINDS: Final = {
    "c_small": "smallint",
    "c_int": "integer",
    "c_big": "bigint",
    "c_num": "numeric",
    "c_fix": "numeric(8,2)",
    "c_real": "double precision",
    "c_text": "text",
    "c_var": "varchar(8)",
    "c_bool": "boolean",
    "c_bytes": "bytea",
    "c_date": "date",
    "c_ts": "timestamp",
    "c_tz": "timestamptz",
    "c_uuid": "uuid",
    "c_json": "jsonb",
}
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "smallint": ("0", "1", "-1", "7", "32767", "-32768"),
    "integer": ("0", "1", "-1", "2", "3", "10", "2147483647", "-2147483648"),
    "bigint": ("0", "1", "-1", "5", "9223372036854775807", "-9223372036854775808", "4294967296"),
    "numeric": (
        *("0", "1.5", "1.50", "-2.25", "1e10", "0.001", "123456789.987654321", "-0.5", "2.5"),
        *("NaN", "3"),
    ),
    "numeric(8,2)": ("0", "1.5", "-2.25", "999999.99", "-0.01", "2.5", "3.00"),
    "double precision": ("0", "1.5", "-2.25", "1e100", "-1e-5", "0.1", "3", "2.5", "NaN"),
    "text": (
        *(
            "",
            "a",
            "b",
            "abc",
            "Abc",
            "aBC",
            "a%b",
            "a_b",
            "a\\b",
            "éa",
            "日本語",
            "ß",
            "  x ",
            "10",
        ),
        *("-3", "2024-02-29", "true", "zzz", "ab ab", "😀a"),
    ),
    "varchar(8)": ("", "a", "B", "abc", "aab", "éé", "x  ", "100"),
    "boolean": ("true", "false"),
    "bytea": ("\\x", "\\x00", "\\x616263", "\\xff00ff", "\\x61"),
    "date": ("2024-02-29", "2023-12-31", "1999-01-01", "2024-01-31", "0001-01-01", "2000-02-29"),
    "timestamp": (
        *("2024-02-29 12:30:45.123456", "1999-12-31 23:59:59", "2024-01-31 00:00:00"),
        *("2024-03-31 02:30:00", "0044-03-15 10:00:00"),
    ),
    "timestamptz": (
        *("2024-02-29 12:30:45.5+00", "1999-12-31 23:59:59+00", "2024-03-31 01:30:00+00"),
        *("2024-10-27 01:30:00+02",),
    ),
    "uuid": (
        *("00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ),
    "jsonb": (
        *('{"a": 1, "b": [1, 2, {"c": null}]}', "[]", "{}", '"text"', "1.50", "null", "true"),
        *('[1, "a", null, 2]', '{"a": {"b": "x"}}', '{"b": 2, "a": 1.0}', '["a", "b"]'),
    ),
    "interval": (
        "1 day",
        "1 mon",
        "-1 mon",
        "1 year 2 mons 3 days 04:05:06.789",
        "36:00",
        "-2 hours",
    ),
}
NUMBERS: Final = ("smallint", "integer", "bigint", "numeric", "double precision")
BARE: Final = {"numeric(8,2)": "numeric", "varchar(8)": "text"}


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Statement(NamedTuple):
    """`ordered`: the order of its rows is whole. `writes`: it is taken back afterwards."""

    text: str
    ordered: bool = False
    writes: bool = False


class Schema(NamedTuple):
    ddl: tuple[str, ...]
    rows: tuple[str, ...]


def schema(random: Random) -> Schema:
    """Tables t (all types), u (a few) and n (integers, all NOT NULL)."""
    columns = ", ".join(f"{name} {kind}" for name, kind in KINDS.items())
    ddl = [
        f"create table t (id integer primary key, {columns})",
        "create table u (k integer primary key, g integer, v integer, w text, d date, q numeric)",
        (
            "create table n (a integer not null, b integer not null, s text not null,"
            " primary key (a, b))"
        ),
        "create table w (id integer primary key, a integer unique, b text, c numeric(6,2), d date)",
    ]
    for number, name in enumerate(random.sample([*KINDS][:-1], 4)):
        if name != "c_bytes":
            ddl.append(f"create index t{number} on t ({name})")
    if random.random() < 0.5:
        ddl.append("create index ug on u (g, v)")
    rows = []
    for number in range(random.randint(6, 14)):
        made = [
            "NULL" if random.random() < 0.2 else quoted(random.choice(VALUES[kind]))
            for kind in KINDS.values()
        ]
        rows.append(f"insert into t values ({number}, {', '.join(made)})")
    for number in range(random.randint(5, 16)):
        made = [
            str(number),
            str(random.randint(0, 3)) if random.random() < 0.9 else "NULL",
            str(random.randint(-3, 5)) if random.random() < 0.85 else "NULL",
            quoted(random.choice(("a", "b", "B", "é", "ab", ""))),
            quoted(random.choice(VALUES["date"])) if random.random() < 0.8 else "NULL",
            random.choice(("1.5", "1.50", "0", "-2", "NULL", "3.25")),
        ]
        rows.append(f"insert into u values ({', '.join(made)})")
    for a in range(4):
        made = [f"{a}, {b}, {quoted(random.choice('xyz'))}" for b in random.sample(range(4), 2)]
        rows += [f"insert into n values ({row})" for row in made]
    for number in range(random.randint(3, 7)):
        c, d = random.choice(("1.25", "NULL", "0")), quoted(random.choice(VALUES["date"]))
        b = quoted(random.choice("xyz"))
        rows.append(f"insert into w values ({number}, {number * 10}, {b}, {c}, {d})")
    return Schema(tuple(ddl), tuple(rows))


class Pieces:
    """What families of statements are made of; for the same seed the same."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def _one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def _column(self, *kinds: str) -> str:
        fitting = [n for n, k in KINDS.items() if not kinds or k in kinds or BARE.get(k) in kinds]
        return self.random.choice(fitting)

    def _literal(self, kind: str, bare: float = 0.0) -> str:
        text = quoted(self.random.choice(VALUES[kind]))
        if self.random.random() < 0.06:
            text = "NULL"
        return text if self.random.random() < bare else f"{text}::{kind}"

    def _value(self, kind: str) -> str:
        """Of a column of t, or a constant."""
        names = [n for n, k in KINDS.items() if k == kind or BARE.get(k) == kind]
        if names and self.random.random() < 0.6:
            return self.random.choice(names)
        return self._literal(kind)

    def _number(self, depth: int = 1) -> str:
        if depth <= 0 or self.random.random() < 0.5:
            return self._value(self._one(*NUMBERS))
        sign = self._one("+", "-", "*", "/", "%")
        return f"({self._number(depth - 1)} {sign} {self._number(depth - 1)})"

    def condition(self) -> str:
        one = self._one
        column = self._column()
        kind = KINDS[column]
        bare = BARE.get(kind, kind)
        sign = one("=", "<>", "<", "<=", ">", ">=")
        return one(
            f"{column} is null",
            f"{column} is not null",
            f"{column} {sign} {self._literal(kind, 0.7)}",
            f"{column} in ({self._literal(kind, 0.7)}, {self._literal(kind, 0.7)})",
            f"{column} not in ({self._literal(kind, 0.7)}, {self._literal(kind, 0.7)})",
            f"{column} between {self._literal(kind, 0.7)} and {self._literal(kind, 0.7)}",
            f"{column} is distinct from {self._literal(kind, 0.7)}",
            f"{column} {sign} {self._value(bare)}",
            f"not (c_bool and {column} is null)",
            f"c_int {sign} {self._number()}",
            f"{column} = any(array[{self._literal(kind)}, {self._literal(kind)}])",
        )
