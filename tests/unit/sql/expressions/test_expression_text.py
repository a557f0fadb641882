"""Conditions, and the text of an expression: its canonical form, its columns, a new name in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.states import State
from leasehold.model.errors import (
    DivisionByZero,
    FeatureNotSupported,
    LeaseholdError,
    OutOfRange,
    Refused,
    SyntaxInvalid,
    UnknownColumn,
    UnknownFunction,
    UnknownTable,
    WrongType,
)
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.expressions.expression import (
    columns_of_expression,
    compile_condition,
    compile_expression,
    rename_column_in,
    without_table,
    written_name,
)
from leasehold.sql.syntax.kept import EXPRESSION_BYTES_MAX
from leasehold.sql.syntax.statements import (
    AddCheck,
    AlterTable,
)
from leasehold.sql.syntax.words import RESERVED
from leasehold.values.types import parse_type

KINDS = {"a": "integer", "b": "integer", "name": "text", "active": "boolean", "A b": "integer"}
TABLE = Descriptor(
    table_id=1,
    name="t",
    version=1,
    columns=(
        *(Column(n, name, parse_type(kind)) for n, (name, kind) in enumerate(KINDS.items(), 1)),
        Column(9, "hidden", parse_type("integer"), state=State.WRITE_ONLY),
    ),
    primary_key=(1,),
)
ROW: dict[int, Any] = {1: 7, 2: None, 3: "Ann", 4: 1, 5: 3}


def canonical(condition: str) -> str:
    statement = parse_ddl(f"alter table t add check ({condition})")
    assert isinstance(statement, AlterTable)
    (action,) = statement.actions
    assert isinstance(action, AddCheck)
    return action.check.expression


# ------------------------------------------------------------------ conditions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 5", 1),
        ("a > 7", 0),
        ("b > 5", None),
        ("a > 5 or b > 5", 1),
        ("a > 7 and b > 5", 0),
        ("active", 1),
        ("not active", 0),
        ('"A b" = 3 and t.a = 7', 1),
        ("name in ('Ann', 'Eve')", 1),
        ("true", 1),
        ("null", None),
        ("'yes'", 1),
        ("a between 1 and 9 and b is null", 1),
    ],
)
def test_condition(text: str, expected: int | None) -> None:
    value = compile_condition(text, TABLE)(ROW)
    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a", WrongType),
        ("a + 1", WrongType),
        ("name", WrongType),
        ("case when active then 1 end", WrongType),
        ("nothing > 1", UnknownColumn),
        ("hidden > 1", UnknownColumn),
        ("u.a > 1", FeatureNotSupported),
        ("now() is null", FeatureNotSupported),
        ("ucase(name) = 'A'", UnknownFunction),
        ("nvl(a, 1) = 1", UnknownFunction),
        ("a in (select 1)", FeatureNotSupported),
        ("a > 1, a > 2", SyntaxInvalid),
        ("a ==1", UnknownFunction),
        ("a <=> 1", UnknownFunction),
        ("!active", FeatureNotSupported),
        ("a not null", SyntaxInvalid),
        ("", SyntaxInvalid),
    ],
)
def test_condition_refused(text: str, error: type[LeaseholdError]) -> None:
    with pytest.raises(error) as caught:
        compile_condition(text, TABLE)
    assert type(caught.value) is error
    assert int(str(caught.value.detail["position"])) >= 1


def test_a_condition_raises_where_it_can_not_be_computed() -> None:
    holds = compile_condition("10 / a > 1", TABLE)
    assert holds({1: 2}) == 1
    with pytest.raises(DivisionByZero):
        holds({1: 0})


def test_a_condition_and_an_expression_of_one_text_are_kept_apart() -> None:
    assert compile_expression("a", TABLE)(ROW) == 7
    with pytest.raises(WrongType):
        compile_condition("a", TABLE)
    assert compile_condition("a > 1", TABLE) is compile_condition("a > 1", TABLE)


# ------------------------------------------------------------------ canonical text


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("A > 1", "a > 1"),
        ("  a  >\n 1 -- why\n and /* so */ B   IS NOT NULL ", "a > 1 and b is not null"),
        ("a>1", "a>1"),
        ("a/**/>1", "a >1"),
        ('"A b" > 1 and T."A b" < 3', '"A b" > 1 and "A b" < 3'),
        ("name <> 'It''s  -- TWO'", "name <> 'It''s  -- TWO'"),
        ('"t" . a = 1', "a = 1"),
        ("UPPER( Name )='X'", "upper( name )='X'"),
        ("CAST(a AS BigInt) > 1E3", "cast(a as bigint) > 1E3::numeric"),
        ("CASE WHEN a > 1 THEN TRUE END", "case when a > 1 then true end"),
    ],
)
def test_canonical(written: str, kept: str) -> None:
    assert canonical(written) == kept
    assert canonical(kept) == kept


parts = st.sampled_from(
    (
        *("a", "B", '"A b"', "t.a", "T.name", "'x''Y'", "1", "1.5", "null", "true", "(", ")", ","),
        *("+", "-", "*", "/", "||", "=", "<>", ">=", "and", "OR", "not", "is", "in", "between"),
        *(
            "upper(",
            "coalesce(",
            "case",
            "when",
            "then",
            "else",
            "end",
            "::int",
            "distinct",
            "from",
        ),
        *("/* c */", "-- c\n", "\n", "\t"),
    )
)


@settings(max_examples=800)
@given(st.lists(parts, min_size=1, max_size=10))
def test_canonical_text_means_the_same_and_stays(words: list[str]) -> None:
    """parse → text → parse: kept text is kept as it is, and compiles to the same or not at all."""
    written = " ".join(words)
    try:
        kept = canonical(written)
    except Refused:
        return
    assert canonical(kept) == kept
    assert outcome(kept) == outcome(written, kept=False)


def outcome(text: str, *, kept: bool = True) -> object:
    try:
        return compile_expression(text, TABLE, kept=kept)(ROW)
    except Refused as error:
        return error.sqlstate


# ------------------------------------------------------------------ columns


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a > b", {"a", "b"}),
        ("A > a", {"a"}),
        ('"A b" = t.a', {"A b", "a"}),
        ("upper(name) = 'a' and case when active then 1 end = 1", {"name", "active"}),
        ("a::int in (1, b)", {"a", "b"}),
        ("date '2020-01-01' is null", set()),
        ("'a' = \"b\"", {"b"}),
        ("true", set()),
        ("lock > 1 and load > 1 and show > 1 and call > 1", {"lock", "load", "show", "call"}),
    ],
)
def test_columns(text: str, columns: set[str]) -> None:
    assert columns_of_expression(text) == columns


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a > 1 and b > 1", "a", "c", "c > 1 and b > 1"),
        ("A > t.a", "a", "c", "c > t.c"),
        ('a = "a" and "A" = 1', "a", "A b", '"A b" = "A b" and "A" = 1'),
        ("a > 1", "b", "c", "a > 1"),
        ("upper(upper) = 'upper'", "upper", "name", "upper(name) = 'upper'"),
        ("a.a > 1", "a", "b", "a.b > 1"),
        ("a = 'a' /* a */", "a", "b", "b = 'a' /* a */"),
        ("case when a then a end", "a", "end", 'case when "end" then "end" end'),
        ("a > 1", "a", 'say "x"', '"say ""x""" > 1'),
        ("a > 1", "a", "Upper", '"Upper" > 1'),
        ("a > 1", "a", "if", "if > 1"),
        (
            "date > 1 and date '2020-01-01' is null",
            "date",
            "d",
            "d > 1 and date '2020-01-01' is null",
        ),
    ],
)
def test_rename(text: str, old: str, new: str, expected: str) -> None:
    assert rename_column_in(text, old, new) == expected


USES = (
    "old > 1 and (1 < old) and old is not null and old in (1, old) or not old = 3 and -old >"
    " coalesce(old, 1) and case when old = old then 1 end = 1 and old::int between old and old"
    " and old||old = '' and case old when old then old else old end = old"
)


@settings(max_examples=300)
@given(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
        st.sampled_from(
            (
                *sorted(RESERVED),
                *("if", "next", "interval", "date", "lock", "show", "explain", "xor", "glob"),
                *("rlike", "qualify", "replace", "row", "values", "rollback", "insert", "map"),
                *("name", "text", "time", "timestamp", "struct", "object", "escape", "div"),
            )
        ),
    ).filter(lambda name: len(name.encode()) <= 63 and name != "old")
)
def test_any_name_can_be_given_and_taken_back(new: str) -> None:
    renamed = rename_column_in(USES, "old", new)
    assert columns_of_expression(renamed) == {new}
    assert rename_column_in(renamed, new, "old") == USES


def test_a_name_is_quoted_only_where_it_must_be() -> None:
    for name in ("seats", "é_1$", "name", "date", "lock", "key", "type", "value", "comment", "if"):
        assert written_name(name) == name
    for name in ("Seats", "select", "user", "two words", "1st", "values", "a.b", "a--b"):
        assert written_name(name).startswith('"')


def test_renaming_keeps_the_limit() -> None:
    text = " or ".join(["a"] * 60)
    assert rename_column_in(text, "a", "b" * 60).count("b" * 60) == 60
    with pytest.raises(OutOfRange):
        rename_column_in("a in (" + ", ".join(["a"] * 1_000) + ")", "a", "b" * 60)
    assert EXPRESSION_BYTES_MAX == 4_096


def test_without_table() -> None:
    assert without_table('t.a > "t".b and c', "t") == "a > b and c"
    with pytest.raises(UnknownTable):
        without_table("t.a > u.b", "t")
