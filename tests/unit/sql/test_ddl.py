"""DDL: what is understood; everything else is refused with a code, words and a position."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidText,
    OutOfRange,
    Refused,
    SyntaxInvalid,
    TooLong,
    UnknownColumn,
    WrongType,
)
from leasehold.schema.types import Type
from leasehold.sql.ddl import AddColumn, ColumnDefinition, CreateIndex, CreateTable, parse_ddl
from leasehold.sql.parse import STATEMENT_BYTES_MAX


def columns_of(sql: str) -> tuple[ColumnDefinition, ...]:
    statement = parse_ddl(sql)
    assert isinstance(statement, CreateTable)
    return statement.columns


def test_create_table() -> None:
    sql = (
        "CREATE TABLE IF NOT EXISTS Flights (id bigint, leg smallint, gate varchar(4) NOT NULL"
        " DEFAULT 'A1', seats int DEFAULT -5, PRIMARY KEY (id, leg));"
    )
    at = {name: sql.index(f"{name} ") + 1 for name in ("id", "leg", "gate", "seats")}
    assert parse_ddl(sql) == CreateTable(
        "flights",
        (
            ColumnDefinition("id", Type("bigint"), False, None, at["id"]),
            ColumnDefinition("leg", Type("smallint"), False, None, at["leg"]),
            ColumnDefinition("gate", Type("varchar", 4), False, "A1", at["gate"]),
            ColumnDefinition("seats", Type("integer"), True, -5, at["seats"]),
        ),
        ("id", "leg"),
        True,
    )


def test_create_index() -> None:
    assert parse_ddl(
        "create index concurrently if not exists i on public.t using btree (b, a)"
    ) == (CreateIndex("i", "t", ("b", "a"), True, True))


def test_index_name_is_derived_as_postgresql_does() -> None:
    assert parse_ddl("create index on t (a, b)") == (
        CreateIndex("t_a_b_idx", "t", ("a", "b"), False, False)
    )
    derived = parse_ddl(f"create index on {'t' * 40} ({'c' * 40})")
    assert isinstance(derived, CreateIndex)
    assert len(derived.name) == 63
    assert derived.name.endswith("_idx")


def test_add_column() -> None:
    assert parse_ddl("alter table t add column if not exists x int not null default 3") == (
        AddColumn("t", ColumnDefinition("x", Type("integer"), False, 3, 40), True)
    )
    assert parse_ddl("ALTER TABLE t ADD x int") == (
        AddColumn("t", ColumnDefinition("x", Type("integer"), True, None, 19), False)
    )


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("int2", Type("smallint")),
        ("int", Type("integer")),
        ("int8", Type("bigint")),
        ("double precision", Type("double precision")),
        ("float8", Type("double precision")),
        ("text", Type("text")),
        ("varchar", Type("varchar")),
        ("character varying(7)", Type("varchar", 7)),
        ("bool", Type("boolean")),
        ("bytea", Type("bytea")),
        ("date", Type("date")),
        ("timestamp", Type("timestamp")),
        ("timestamp without time zone", Type("timestamp")),
        ("timestamptz", Type("timestamptz")),
        ("timestamp with time zone", Type("timestamptz")),
        ("uuid", Type("uuid")),
    ],
)
def test_type(written: str, kind: Type) -> None:
    assert columns_of(f"create table t (a {written} primary key)")[0].type == kind


@pytest.mark.parametrize(
    ("kind", "default", "stored"),
    [
        ("int", "3", 3),
        ("int", "-3", -3),
        ("int", "'3'", 3),
        ("int", "(3)", 3),
        ("int", "cast('3' as int)", 3),
        ("bigint", "4::int", 4),
        ("double precision", "1", 1.0),
        ("double precision", "-1.5", -1.5),
        ("double precision", "1e3", 1000.0),
        ("double precision", "2::int", 2.0),
        ("text", "'it''s'", "it's"),
        ("text", "'5'", "5"),
        ("varchar(2)", "'ab'", "ab"),
        ("boolean", "true", 1),
        ("boolean", "'no'", 0),
        ("date", "'2020-01-01'", 18262),
        ("date", "date '2020-01-01'", 18262),
        ("timestamp", "timestamp '1970-01-01 00:00:01'", 1_000_000),
        ("timestamptz", "'1970-01-01T01:00:00+01:00'", 0),
        ("uuid", "'00000000-0000-0000-0000-00000000000A'", "00000000-0000-0000-0000-00000000000a"),
        ("bytea", "'\\x01ff'", b"\x01\xff"),
        ("int", "null", None),
        ("int", "null::int", None),
    ],
)
def test_default(kind: str, default: str, stored: Any) -> None:
    found = columns_of(f"create table t (k int primary key, a {kind} default {default})")[1].default
    assert (found, type(found)) == (stored, type(stored))


def test_identifiers_fold_unless_quoted() -> None:
    statement = parse_ddl('CREATE TABLE "T" (Id INT PRIMARY KEY, "Mixed Case" int)')
    assert isinstance(statement, CreateTable)
    assert statement.name == "T"
    assert [column.name for column in statement.columns] == ["id", "Mixed Case"]


def test_position_counts_characters_over_lines() -> None:
    with pytest.raises(FeatureNotSupported) as caught:
        parse_ddl("-- é\ncreate table t (\n  a int primary key,\n  b numeric\n)")
    assert caught.value.detail["position"] == 46


REFUSED: list[tuple[str, type[Refused], int]] = [
    # not a schema change, or none that is known
    ("drop table t", FeatureNotSupported, 1),
    ("vacuum t", FeatureNotSupported, 1),
    ("select 1", FeatureNotSupported, 1),
    ("insert into t values (1)", FeatureNotSupported, 1),
    ("create view v as select 1", FeatureNotSupported, 1),
    ("create sequence s", FeatureNotSupported, 1),
    # CREATE TABLE
    ("create table t as select 1", FeatureNotSupported, 14),
    ("create temp table t (a int primary key)", FeatureNotSupported, 19),
    ("create or replace table t (a int primary key)", FeatureNotSupported, 25),
    ("create table t (a int primary key) with (fillfactor=10)", FeatureNotSupported, 14),
    ("create table t (a int primary key) partition by range (a)", FeatureNotSupported, 14),
    ("create table t (like u)", FeatureNotSupported, 22),
    ("create table t (a int)", FeatureNotSupported, 14),
    ("create table s.t (a int primary key)", FeatureNotSupported, 14),
    ("create table a.b.t (a int primary key)", FeatureNotSupported, 14),
    ("create table t (a int primary key, unique (a))", FeatureNotSupported, 44),
    ("create table t (a int primary key, constraint c check (a > 1))", FeatureNotSupported, 47),
    ("create table t (a int, primary key (a) include (b))", FeatureNotSupported, 49),
    ("create table t (a int, primary key (b))", UnknownColumn, 14),
    ("create table t (a int primary key, primary key (a))", SyntaxInvalid, 14),
    ("create table t (a int, primary key (a, a))", SyntaxInvalid, 14),
    ("create table t", SyntaxInvalid, 14),
    # columns
    ("create table t (a serial primary key)", FeatureNotSupported, 17),
    ("create table t (a numeric primary key)", FeatureNotSupported, 17),
    ("create table t (a jsonb primary key)", FeatureNotSupported, 17),
    ("create table t (a int[] primary key)", FeatureNotSupported, 17),
    ("create table t (a char(3) primary key)", FeatureNotSupported, 17),
    ("create table t (a string primary key)", FeatureNotSupported, 17),
    ("create table t (a varbinary(3) primary key)", FeatureNotSupported, 17),
    ("create table t (a int(4) primary key)", FeatureNotSupported, 17),
    ("create table t (a float(4) primary key)", FeatureNotSupported, 17),
    ("create table t (a timestamp(3) primary key)", FeatureNotSupported, 17),
    ("create table t (a varchar(0) primary key)", FeatureNotSupported, 17),
    ("create table t (a int unique primary key)", FeatureNotSupported, 17),
    ("create table t (a int references u (b) primary key)", FeatureNotSupported, 17),
    ("create table t (a int check (a > 1) primary key)", FeatureNotSupported, 17),
    ("create table t (a int generated always as identity primary key)", FeatureNotSupported, 17),
    ('create table t (a text collate "C" primary key)', FeatureNotSupported, 17),
    ("create table t (a int null primary key)", SyntaxInvalid, 17),
    ("create table t (a int not null not null primary key)", SyntaxInvalid, 17),
    ("create table t (a primary key)", SyntaxInvalid, 17),
    # defaults
    ("create table t (a int primary key default now())", FeatureNotSupported, 17),
    ("create table t (a int primary key default 1 + 1)", FeatureNotSupported, 17),
    ("create table t (a text primary key default 'a' || 'b')", FeatureNotSupported, 17),
    ("create table t (a int primary key default '3x')", InvalidText, 17),
    ("create table t (a int primary key default 99999999999)", OutOfRange, 17),
    ("create table t (a int primary key default 1.5)", WrongType, 17),
    ("create table t (a text primary key default 5)", WrongType, 17),
    ("create table t (a boolean primary key default 1)", WrongType, 17),
    ("create table t (a int primary key default true)", WrongType, 17),
    ("create table t (a int primary key default 1::bigint)", WrongType, 17),
    ("create table t (a varchar(2) primary key default 'abc')", TooLong, 17),
    ("create table t (a double precision primary key default 'nan')", OutOfRange, 17),
    # CREATE INDEX
    ("create unique index i on t (a)", FeatureNotSupported, 21),
    ("create index i on t (a desc)", FeatureNotSupported, 22),
    ("create index i on t (a nulls first)", FeatureNotSupported, 22),
    ("create index i on t (lower(a))", FeatureNotSupported, 28),
    ("create index i on t (a) where a > 1", FeatureNotSupported, 14),
    ("create index i on t (a) include (b)", FeatureNotSupported, 14),
    ("create index i on t (a text_ops)", FeatureNotSupported, 22),
    ('create index i on t (a collate "C")', FeatureNotSupported, 22),
    ("create index i on t using hash (a)", FeatureNotSupported, 14),
    ("create index i on t (a) with (fillfactor = 10)", FeatureNotSupported, 22),
    ("create index i on t (a) tablespace x", FeatureNotSupported, 22),
    ("create index i on t (a, a)", FeatureNotSupported, 14),
    ("create index i on t", SyntaxInvalid, 14),
    ("create index i on t ()", SyntaxInvalid, 14),
    # ALTER TABLE
    ("alter table t drop column a", FeatureNotSupported, 27),
    ("alter table t rename to u", FeatureNotSupported, 25),
    ("alter table t add column a int, add column b int", FeatureNotSupported, 13),
    ("alter table t add column a int primary key", FeatureNotSupported, 26),
    ("alter table t add column a int first", FeatureNotSupported, 26),
    ("alter table if exists t add column a int", FeatureNotSupported, 23),
    ("alter table t add constraint c unique (a)", FeatureNotSupported, 30),
    # not one statement
    ("", SyntaxInvalid, 1),
    (" ; ", SyntaxInvalid, 1),
    ("create table t (a int primary key); drop table t", SyntaxInvalid, 35),
    ("create table t (a int,, b int)", SyntaxInvalid, 23),
    ("create table t (a int primary key,)", SyntaxInvalid, 35),
    ("create table t (a int primary key", SyntaxInvalid, 23),
    ("create table t (a int primary key default 'x)", SyntaxInvalid, 45),
    ("create tabl t", SyntaxInvalid, 1),
    ("alter table t add column", SyntaxInvalid, 1),
    # limits
    (f"create table {'x' * 64} (a int primary key)", OutOfRange, 14),
    (f"create table t ({'é' * 32} int primary key)", OutOfRange, 17),
]


@pytest.mark.parametrize(("sql", "error", "position"), REFUSED)
def test_refused(sql: str, error: type[Refused], position: int) -> None:
    with pytest.raises(Refused) as caught:
        parse_ddl(sql)
    assert type(caught.value) is error, caught.value
    assert caught.value.detail["position"] == position, caught.value
    assert len(caught.value.message) > 10


def test_limits() -> None:
    long = "create table t (a int primary key, b text default '" + "x" * STATEMENT_BYTES_MAX + "')"
    with pytest.raises(OutOfRange, match="bytes"):
        parse_ddl(long)
    many = ", ".join(f"c{n} int" for n in range(1_001))
    with pytest.raises(OutOfRange, match="at most 1000"):
        parse_ddl(f"create table t ({many}, primary key (c0))")
    deep = "(" * 100 + "1" + ")" * 100
    with pytest.raises(OutOfRange, match="deep"):
        parse_ddl(f"create table t (a int primary key default {deep})")
    chain = "1" + " + 1" * 5_000
    with pytest.raises(OutOfRange, match="deep"):
        parse_ddl(f"create table t (a int primary key default {chain})")


WORDS = (
    *("create", "table", "index", "alter", "add", "column", "t", "a", "b", "int", "primary"),
    *("key", "(", ")", ",", ";", "default", "1", "'x'", "not", "null", "on", "if", "exists"),
    *("unique", "-", "::", "text", "as", "select"),
)


@pytest.mark.parametrize("text", ["create default on", "CREATE DEFAULT ON t (id int)"])
def test_a_defect_of_the_parser_is_a_refusal(text: str) -> None:
    """Found by the test below: a TypeError inside the parser."""
    with pytest.raises(Refused):
        parse_ddl(text)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=16))
def test_any_words_are_parsed_or_refused_never_worse(words: list[str]) -> None:
    with suppress(Refused):
        parse_ddl("create " + " ".join(words))
