"""DEFAULT: any constant expression gives a storage value; nothing else is a default."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.model.errors import (
    DivisionByZero,
    FeatureNotSupported,
    InvalidText,
    LeaseholdError,
    OutOfRange,
    SyntaxInvalid,
    TooLong,
    WrongType,
)
from leasehold.schema.types import parse_type
from leasehold.sql.ddl import parse_ddl
from leasehold.sql.literal import default_value
from leasehold.sql.statements import AlterTable, CreateTable, SetDefault

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
    values = [default_value(default, parse_type(kind))]
    for follows in ("", " not null", " null", " unique", " check (a is null)"):
        made = parse_ddl(f"create table t (k int primary key, a {kind} default {default}{follows})")
        assert isinstance(made, CreateTable)
        values.append(made.columns[1].default)
    changed = parse_ddl(f"alter table t alter a set default {default}, drop b")
    assert isinstance(changed, AlterTable)
    (action, _) = changed.actions
    assert isinstance(action, SetDefault)
    values.append(None if action.value is None else default_value(action.value, parse_type(kind)))
    assert {(value, type(value)) for value in values} == {(stored, type(stored))}


@pytest.mark.parametrize(
    ("kind", "default", "error"),
    [
        ("int", "now()", FeatureNotSupported),
        ("int", "RANDOM()", FeatureNotSupported),
        ("uuid", "gen_random_uuid()", FeatureNotSupported),
        ("timestamptz", "current_timestamp", FeatureNotSupported),
        ("date", "current_date + 1", FeatureNotSupported),
        ("text", "session_user", FeatureNotSupported),
        ("text", "coalesce(null, current_user)", FeatureNotSupported),
        ("int", "other + 1", FeatureNotSupported),
        ("int", '"now"', FeatureNotSupported),
        ("int", "(select 1)", FeatureNotSupported),
        ("int", "pi()", FeatureNotSupported),
        ("text", "ucase('a')", FeatureNotSupported),
        ("int", "$1", FeatureNotSupported),
        ("bytea", "e'x'", FeatureNotSupported),
        ("int", "1 +", SyntaxInvalid),
        ("int", "", SyntaxInvalid),
        ("int", "1, 2", SyntaxInvalid),
        ("int", "1 2", SyntaxInvalid),
        ("int", "1 / 0", DivisionByZero),
        ("int", "'3x'", InvalidText),
        ("smallint", "32768", OutOfRange),
        ("int", "2147483647 + 1", OutOfRange),
        ("double precision", "'nan'", OutOfRange),
        ("varchar(2)", "'abc'", TooLong),
        ("text", "5", WrongType),
        ("boolean", "1", WrongType),
        ("int", "true", WrongType),
        ("int", "'3'::text", WrongType),
        ("date", "timestamp '2020-01-01 00:00:00' + 1", WrongType),
    ],
)
def test_refused(kind: str, default: str, error: type[LeaseholdError]) -> None:
    with pytest.raises(error) as caught:
        default_value(default, parse_type(kind))
    assert type(caught.value) is error
    assert caught.value.message


def test_a_changing_value_is_called_so() -> None:
    with pytest.raises(FeatureNotSupported, match="'now' gives another value each time") as caught:
        default_value("1 + now()", parse_type("int"))
    assert caught.value.detail["position"] == 5


def test_a_long_constant() -> None:
    assert default_value("'" + "x" * 60_000 + "'", parse_type("text")) == "x" * 60_000
