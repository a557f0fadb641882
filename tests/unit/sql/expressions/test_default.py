"""DEFAULT: any constant expression gives a storage value; nothing else is a default."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import (
    DivisionByZero,
    FeatureNotSupported,
    InvalidText,
    LeaseholdError,
    OutOfRange,
    SyntaxInvalid,
    TooLong,
    UnknownFunction,
    WrongType,
)
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.expressions.default import Default, compile_default, default_of_text, is_random
from leasehold.sql.syntax.statements import (
    AlterTable,
    CreateTable,
    SetDefault,
)
from leasehold.values.types import parse_type

DEFAULTS: list[tuple[str, str, Any]] = [
    ("int", "3", 3),
    ("int", "-3", -3),
    ("int", "- -3", 3),
    ("int", "'3'", 3),
    ("int", "(3)", 3),
    ("int", "1 + 1", 2),
    ("int", "2 * (3 - 1) % 3", 1),
    ("int", "1.5", 2),
    ("int", "cast('3' as int)", 3),
    ("int", "3::bigint", 3),
    ("int", "length('abc')", 3),
    ("int", "case when 1 < 2 and not false then 7 else 8 end", 7),
    ("int", "coalesce(null, 4)", 4),
    ("bigint", "4::int", 4),
    ("bigint", "-9223372036854775808", -(1 << 63)),
    ("double precision", "1", 1.0),
    ("double precision", "-1.5", -1.5),
    ("double precision", "1e3", 1000.0),
    ("double precision", "1 / 2.0", 0.5),
    ("text", "'it''s'", "it's"),
    ("text", "'now()'", "now()"),
    ("text", "'5'", "5"),
    ("text", "'a' || 'b' || 1", "ab1"),
    ("text", "upper('a')", "A"),
    ("varchar(2)", "'ab'", "ab"),
    ("varchar(2)", "'abc'::varchar(2)", "ab"),
    ("boolean", "true", 1),
    ("boolean", "'no'", 0),
    ("boolean", "1 > 2", 0),
    ("boolean", "(not null)", None),
    ("date", "'2020-01-01'", 18262),
    ("date", "date '2020-01-01'", 18262),
    ("timestamp", "timestamp '1970-01-01 00:00:01'", 1_000_000),
    ("timestamptz", "'1970-01-01T01:00:00+01:00'", 0),
    ("double precision", "'nan'", "NaN"),
    ("double precision", "'inf'::double precision - 'inf'", "NaN"),
    ("uuid", "'00000000-0000-0000-0000-00000000000A'", "00000000-0000-0000-0000-00000000000a"),
    ("bytea", "'\\x01ff'", b"\x01\xff"),
    ("int", "null", None),
    ("int", "(null)", None),
    ("int", "null::int", None),
    ("int", "1 + null", None),
]


@pytest.mark.parametrize(("kind", "default", "stored"), DEFAULTS)
def test_value(kind: str, default: str, stored: Any) -> None:
    """The same in a new table and by SET DEFAULT, whatever may follow it."""
    values = [default_of_text(default, parse_type(kind)).value]
    for follows in ("", " not null", " null", " unique", " check (a is null)"):
        made = parse_ddl(f"create table t (k int primary key, a {kind} default {default}{follows})")
        assert isinstance(made, CreateTable)
        values.append(made.columns[1].default)
    changed = parse_ddl(f"alter table t alter a set default {default}, drop b")
    assert isinstance(changed, AlterTable)
    (action, _) = changed.actions
    assert isinstance(action, SetDefault)
    values.append(
        None if action.value is None else default_of_text(action.value, parse_type(kind)).value
    )
    assert {(value, type(value)) for value in values} == {(stored, type(stored))}


@pytest.mark.parametrize(
    ("kind", "default", "error"),
    [
        ("int", "now()", WrongType),
        ("date", "current_date + true", UnknownFunction),
        ("text", "session_user", FeatureNotSupported),
        ("text", "coalesce(null, current_user)", FeatureNotSupported),
        ("int", "other + 1", FeatureNotSupported),
        ("int", '"now"', FeatureNotSupported),
        ("int", "(select 1)", FeatureNotSupported),
        ("text", "ucase('a')", UnknownFunction),
        ("int", "$1", FeatureNotSupported),
        ("int", "1 +", SyntaxInvalid),
        ("int", "", SyntaxInvalid),
        ("int", "1, 2", SyntaxInvalid),
        ("int", "1 2", SyntaxInvalid),
        ("int", "1 / 0", DivisionByZero),
        ("int", "'3x'", InvalidText),
        ("smallint", "32768", OutOfRange),
        ("int", "2147483647 + 1", OutOfRange),
        ("varchar(2)", "'abc'", TooLong),
        ("boolean", "1", WrongType),
        ("int", "true", WrongType),
        ("int", "'3'::text", WrongType),
        ("date", "timestamp '2020-01-01 00:00:00' + 1", UnknownFunction),
    ],
)
def test_refused(kind: str, default: str, error: type[LeaseholdError]) -> None:
    with pytest.raises(error) as caught:
        default_of_text(default, parse_type(kind))
    assert type(caught.value) is error
    assert caught.value.message


def test_a_changing_value_is_called_so() -> None:
    with pytest.raises(FeatureNotSupported, match="'lastval' can't be in a default") as caught:
        default_of_text("1 + lastval()", parse_type("int"))
    assert caught.value.detail["position"] == 5


def test_a_long_constant() -> None:
    assert default_of_text("'" + "x" * 60_000 + "'", parse_type("text")).value == "x" * 60_000


CONTEXT = CommitContext(1_700_000_000_000_001, b"seed")
DECIDED: list[tuple[str, str, Any]] = [
    ("timestamptz", "now()", CONTEXT.now_us),
    ("timestamptz", "CURRENT_TIMESTAMP", CONTEXT.now_us),
    ("timestamptz", "(now())", CONTEXT.now_us),
    ("timestamp", "now()", CONTEXT.now_us),
    ("timestamp", "localtimestamp", CONTEXT.now_us),
    ("date", "current_date", 19_675),
    ("date", "now()::date", 19_675),
    ("text", "'on ' || current_date", "on 2023-11-14"),
    ("boolean", "current_date > '2020-01-01'", 1),
]


@pytest.mark.parametrize(("kind", "text", "value"), DECIDED)
def test_what_changes_from_call_to_call_is_kept_as_text(kind: str, text: str, value: Any) -> None:
    """The same moment gives the same value in every row, whoever computes it."""
    made = default_of_text(text, parse_type(kind))
    assert made == Default(None, text)
    compute = compile_default(made.expression, parse_type(kind))
    assert compute(CONTEXT, 1, 3, (1,)) == compute(CONTEXT, 2, 4, (2,)) == value
    assert compute(CommitContext(0, b""), 1, 3, (1,)) != value or kind == "boolean"
    assert not is_random(text)


def test_random_values_differ_by_row_column_table_call_and_seed() -> None:
    compute = compile_default("gen_random_uuid()", parse_type("uuid"))
    made = {
        compute(CommitContext(0, seed), table_id, element_id, key)
        for seed in (b"", b"a", b"b")
        for table_id in (1, 2)
        for element_id in (1, 2)
        for key in ((1,), (2,), ("1",), (1, 2))
    }
    assert len(made) == 3 * 2 * 2 * 4
    assert all(UUID(value).version == 4 and str(UUID(value)) == value for value in made)
    assert compute(CONTEXT, 1, 1, (1,)) == compute(CONTEXT, 1, 1, (1,)), (
        "the same row has the same value"
    )
    two = compile_default("gen_random_uuid() = gen_random_uuid()", parse_type("boolean"))
    assert two(CONTEXT, 1, 1, (1,)) == 0
    assert is_random("upper(gen_random_uuid()::text)")


def test_the_moment_is_no_column_of_other_expressions() -> None:
    for text in ("now() > a", "gen_random_uuid() = a"):
        with pytest.raises(FeatureNotSupported):
            parse_ddl(f"alter table t add check ({text})")
