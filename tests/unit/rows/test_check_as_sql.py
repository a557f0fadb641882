"""A CHECK that SQLite computes comes to what the compiled expression comes to, on every row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column
from leasehold.rows.check_as_sql import write_condition
from leasehold.sql.expressions.expression import compile_condition
from leasehold.values.types import Type

COLUMNS: Final = {
    "id": Type("bigint"),
    "s": Type("smallint"),
    "a": Type("integer"),
    "b": Type("bigint"),
    "t": Type("text"),
    "v": Type("varchar", length=9),
    "yes": Type("boolean"),
    "no": Type("boolean"),
    "c": Type("char", length=3),
    "n": Type("numeric"),
    "d": Type("date"),
    "f": Type("double precision"),
}
IDS: Final = {name: number for number, name in enumerate(COLUMNS, 1)}
TABLE: Final = Descriptor(
    1,
    "t",
    1,
    tuple(Column(IDS[name], name, kind, name != "id") for name, kind in COLUMNS.items()),
    (IDS["id"],),
)


def written(text: str, lacking: frozenset[str] = frozenset()) -> str | None:
    """`lacking`: columns that are not in the store."""
    absent = {IDS[name] for name in lacking}
    check = Check(90, "k", text, tuple(IDS.values()))
    return write_condition(TABLE, check, lambda e: "NULL" if e in absent else f"t.c{e}")


@pytest.fixture(scope="module")
def connection() -> Iterator[apsw.Connection]:
    made = apsw.Connection(":memory:")
    others = ", ".join(f"c{number}" for name, number in IDS.items() if name != "id")
    made.execute(f"CREATE TABLE t1 (c1 INTEGER PRIMARY KEY, {others})")
    yield made
    made.close()


# ------------------------------------------------------------------ what is known

NUMBERS = st.sampled_from(["s", "a", "b", "id"])
TEXTS = st.sampled_from(["t", "v"])
WHOLE = st.sampled_from(["0", "1", "-1", "7", "32767", "-2147483648", "9223372036854775807"])
WORDS = st.sampled_from(["''", "'a'", "'Z'", "'é'", "'a''b'", "'\U0001f600'", "'10'", "'ab '"])
SIGNS = st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="])
NOT = st.sampled_from(["", "NOT "])


def compared(columns: st.SearchStrategy[str], values: st.SearchStrategy[str]) -> Any:
    some = st.lists(values | columns, min_size=1, max_size=3).map(", ".join)
    return st.one_of(
        st.tuples(columns, SIGNS, values | columns).map(" ".join),
        st.tuples(columns, NOT, some).map(lambda p: f"{p[0]} {p[1]}IN ({p[2]})"),
        st.tuples(columns, NOT, values, values | columns).map(
            lambda p: f"{p[0]} {p[1]}BETWEEN {p[2]} AND {p[3]}"
        ),
    )


LEAVES = st.one_of(
    compared(NUMBERS, WHOLE),
    compared(TEXTS, WORDS),
    compared(st.sampled_from(["yes", "no"]), st.sampled_from(["true", "false"])),
    st.sampled_from(["yes", "no"]),
    st.tuples(st.sampled_from(list(COLUMNS)), NOT).map(lambda p: f"{p[0]} IS {p[1]}NULL"),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda one: f"NOT ({one})"),
        st.tuples(inner, st.sampled_from([" AND ", " OR "]), inner).map(
            lambda p: f"({p[0]}){p[1]}({p[2]})"
        ),
    ),
    max_leaves=6,
)
INTEGERS = st.sampled_from([0, 1, -1, 7, 32767]) | st.integers(-(1 << 15), (1 << 15) - 1)
STRINGS = st.sampled_from(["", "a", "Z", "é", "a'b", "\U0001f600", "10", "ab ", "\uffff"])
STORED: Final = {
    **dict.fromkeys(("s", "a"), INTEGERS),
    "b": INTEGERS | st.sampled_from([(1 << 63) - 1, -(1 << 63)]),
    **dict.fromkeys(("t", "v"), STRINGS | st.text(max_size=4).filter(lambda t: "\0" not in t)),
    **dict.fromkeys(("yes", "no"), st.sampled_from([0, 1])),
}
ROWS = st.fixed_dictionaries(
    {"id": INTEGERS, **{name: st.none() | values for name, values in STORED.items()}}
)


@settings(deadline=None, max_examples=300)
@given(text=CONDITIONS, rows=st.lists(ROWS, min_size=1, max_size=4))
def test_both_come_to_the_same(
    connection: apsw.Connection, text: str, rows: list[dict[str, Any]]
) -> None:
    condition = written(text)
    assert condition is not None, text
    compute = compile_condition(text, TABLE)
    names = ("id", *STORED)
    shown = ", ".join(f"c{IDS[name]}" for name in names)
    holes = ", ".join("?" * len(names))
    for row in rows:
        connection.execute("DELETE FROM t1")
        connection.execute(
            f"INSERT INTO t1 ({shown}) VALUES ({holes})", tuple(row[n] for n in names)
        )
        (found,) = connection.execute(f"SELECT {condition} FROM t1 AS t").fetchall()
        image = {IDS[name]: value for name, value in row.items() if value is not None}
        assert found == (compute(image),), (text, row)


def test_a_column_that_the_store_has_not_is_null(connection: apsw.Connection) -> None:
    condition = written("a IS NULL AND b > 1", frozenset({"a"}))
    connection.execute("DELETE FROM t1")
    connection.execute("INSERT INTO t1 (c1, c3, c4) VALUES (1, 5, 2)")
    assert connection.execute(f"SELECT {condition} FROM t1 AS t").get == 1


# ------------------------------------------------------------------ what is not


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a + 1 > 0",
            "abs(a) > 0",
            "10 / a > 1",
            "length(t) < 5",
            "t LIKE 'a%'",
            "t || 'x' = 'y'",
        ),
        *("a > 1.5", "a > 9223372036854775808", "a > '5'", "a IN (1, 2.5)", "a = NULL", "5 < a"),
        *("n > 1", "f > 1", "c = 'a'", "d > '2020-01-01'", "n IN (1)", "c BETWEEN 'a' AND 'b'"),
        *("t = 'a'::text", "t COLLATE \"C\" = 'a'", "v = c", "a = n", "yes = 'true'"),
        *("a BETWEEN SYMMETRIC 2 AND 1", "yes IS TRUE", "(a > 1) IS NULL", "a IS DISTINCT FROM 1"),
        *("true", "NOT (a > 1 AND n > 1)", "CASE WHEN yes THEN no END", "coalesce(yes, no)"),
    ],
)
def test_all_else_is_left_to_the_compiled_expression(text: str) -> None:
    assert written(text) is None


def test_nothing_of_the_text_becomes_sql() -> None:
    assert (
        written("t = 'x'' OR 1 = 1 --'") == "(t.c5 = CAST(x'7827204f522031203d2031202d2d' AS TEXT))"
    )
