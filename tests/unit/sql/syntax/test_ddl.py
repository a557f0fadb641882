"""DDL as a whole: EXPLAIN, what is no schema change, limits, and that no text does any harm."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidArgument,
    OutOfRange,
    Refused,
    SyntaxInvalid,
    TooComplex,
)
from leasehold.sql.ddl.schema_statements import (
    STATEMENT_BYTES_MAX,
    STATEMENTS_MAX,
    parse_ddl,
    parse_statements,
)
from leasehold.sql.syntax.statements import (
    AlterTable,
    ColumnDefinition,
    CreateTable,
    DropIndex,
    DropTable,
    Explain,
    RenameColumn,
    TableNamed,
    Truncate,
)
from leasehold.sql.syntax.words import RESERVED
from leasehold.values.types import Type
from tests.support.sql.refusal import Refusal, check_refusal


@pytest.mark.parametrize("asked", ["explain", "EXPLAIN (DDL)", "explain (ddl, ddl)"])
def test_explain_wraps_the_change(asked: str) -> None:
    sql = f"{asked} drop table if exists t"
    assert parse_ddl(sql) == Explain(DropTable("t", True, len(sql)))


@pytest.mark.parametrize(
    ("sql", "made"),
    [
        ("truncate t", Truncate((TableNamed("t", 10),))),
        ("truncate table t", Truncate((TableNamed("t", 16),))),
        ("TRUNCATE only T, public.u", Truncate((TableNamed("t", 15), TableNamed("u", 18)))),
        ("truncate t restart identity restrict", Truncate((TableNamed("t", 10),), restart=True)),
        ("truncate t continue identity", Truncate((TableNamed("t", 10),))),
        ("truncate t cascade", Truncate((TableNamed("t", 10),), cascade=True)),
        (
            "truncate t, u restart identity cascade",
            Truncate((TableNamed("t", 10), TableNamed("u", 13)), restart=True, cascade=True),
        ),
        ('truncate "table"', Truncate((TableNamed("table", 10),))),
    ],
)
def test_truncate(sql: str, made: Truncate) -> None:
    assert parse_ddl(sql) == made
    assert parse_ddl(f"{sql};") == made


REFUSED: list[Refusal] = [
    # not a schema change, or none that is known
    ("vacuum t", FeatureNotSupported, 1),
    ("reindex index i", FeatureNotSupported, 1),
    ("select 1", FeatureNotSupported, 1),
    ("insert into t values (1)", FeatureNotSupported, 1),
    ("truncate", SyntaxInvalid, 9),
    ("truncate table", SyntaxInvalid, 15),
    ("truncate t u", SyntaxInvalid, 12),
    ("truncate t,", SyntaxInvalid, 12),
    ("truncate t restart", SyntaxInvalid, 19),
    ("truncate t restart identity continue identity", SyntaxInvalid, 29),
    ("truncate pg_catalog.t", FeatureNotSupported, 10),
    ("create materialized view v as select 1", FeatureNotSupported, 8),
    ("create view v as select 1 with local check option", FeatureNotSupported, 27),
    ("create view v with (check_option = local) as select 1", FeatureNotSupported, 21),
    ("create view v with (other) as select 1", InvalidArgument, 21),
    ("create view v with (security_barrier = 2) as select 1", InvalidArgument, 21),
    ("create view v with (security_barrier, security_barrier) as select 1", InvalidArgument, 39),
    ("create recursive view v (a) as select 1", FeatureNotSupported, 8),
    ("create sequence s cycle no cycle", SyntaxInvalid, 25),
    ("drop language l", FeatureNotSupported, 1),
    ("drop cast (a as b)", FeatureNotSupported, 1),
    ("comment on language l is 'x'", FeatureNotSupported, 12),
    ("create schema s create table t (a int)", FeatureNotSupported, 30),
    ("alter sequence s", SyntaxInvalid, 17),
    ("alter sequence s increment 2 increment 3", SyntaxInvalid, 30),
    ("alter sequence s minvalue 2 no minvalue", SyntaxInvalid, 29),
    ("alter sequence s owned by none cache 2 owned by none", SyntaxInvalid, 40),
    ("alter sequence s as text", InvalidArgument, 21),
    ("alter sequence s owned by t", SyntaxInvalid, 27),
    ("create sequence s owned by pg_catalog.t.a", FeatureNotSupported, 28),
    ("create tabl t", SyntaxInvalid, 8),
    ("create", SyntaxInvalid, 7),
    ("drop", SyntaxInvalid, 5),
    ("'create' table t", SyntaxInvalid, 1),
    ('"create" table t', SyntaxInvalid, 1),
    # EXPLAIN
    ("explain", SyntaxInvalid, 8),
    ("explain select 1", FeatureNotSupported, 9),
    ("explain explain drop table t", SyntaxInvalid, 9),
    ("explain analyze drop table t", FeatureNotSupported, 9),
    ("explain verbose drop table t", FeatureNotSupported, 9),
    ("explain (analyze) drop table t", FeatureNotSupported, 10),
    ("explain (ddl, analyze) drop table t", FeatureNotSupported, 15),
    ("explain (ddl off) drop table t", FeatureNotSupported, 14),
    ("explain (format json) drop table t", FeatureNotSupported, 10),
    ("explain () drop table t", SyntaxInvalid, 10),
    ("explain (ddl drop table t", SyntaxInvalid, 19),
    # not one statement
    ("", SyntaxInvalid, 1),
    (" ; ", SyntaxInvalid, 1),
    ("-- nothing", SyntaxInvalid, 1),
    ("drop table t; drop table u", SyntaxInvalid, 13),
    ("drop table t t", SyntaxInvalid, 14),
    ("create table t (a int,, b int)", SyntaxInvalid, 23),
    ("create table t (a int primary key,)", SyntaxInvalid, 35),
    ("create table t (a int primary key", SyntaxInvalid, 34),
    ("create table t (a int primary key))", SyntaxInvalid, 35),
    ("create table t (a int primary key default 'x)", SyntaxInvalid, 43),
    ("drop table t /* open", SyntaxInvalid, 14),
    ("drop table a\x00b", SyntaxInvalid, 13),
    ("drop table \ud800", SyntaxInvalid, 12),
    # words of other dialects, and an operator that stands before nothing in PostgreSQL
    ("drop table `t`", SyntaxInvalid, 12),
    ("drop table [t]", SyntaxInvalid, 12),
    ("create table t (a boolean primary key, check (!a))", FeatureNotSupported, 47),
]


@pytest.mark.parametrize("refusal", REFUSED)
def test_refused(refusal: Refusal) -> None:
    check_refusal(*refusal)


NAMED: list[tuple[str, str]] = [
    ("alter table t add foreign key (a) references u on update set null (a)", "ON DELETE actions"),
    ("alter table t add foreign key (a, b) references u match partial", "MATCH PARTIAL"),
    ("alter table t add a int generated always as (1) virtual", "VIRTUAL"),
    ("alter table t add a int generated always as (1)", "say STORED"),
    ("create table t (a int generated always as identity (owned by t.a))", "is owned by that"),
    ("alter table t alter a set expression as (1)", "SET EXPRESSION"),
    ("drop index concurrently i cascade", "CONCURRENTLY does not support CASCADE"),
    ("create index i on t (a) include (lower(b))", "INCLUDE"),
    ('create index i on t (a collate "de")', "collation 'de'"),
    ("alter table t add a timestamptz default clock_timestamp()", "'clock_timestamp' can't"),
    ("explain analyze drop table t", "EXPLAIN takes no 'ANALYZE'"),
    ("explain (verbose) drop table t", "EXPLAIN takes no 'VERBOSE'"),
]


@pytest.mark.parametrize(("sql", "words"), NAMED)
def test_what_is_not_built_is_named(sql: str, words: str) -> None:
    with pytest.raises(FeatureNotSupported) as caught:
        parse_ddl(sql)
    assert words in caught.value.message


def test_several_statements_each_with_its_own_text() -> None:
    text = " drop table t; ;\n DROP INDEX i -- last\n;"
    first, second = parse_statements(text)
    assert (first.statement, first.sql) == (DropTable("t", False, 13), "drop table t")
    assert (second.statement, second.sql) == (DropIndex("i", False, 30), "DROP INDEX i")


@pytest.mark.parametrize(
    ("sql", "error", "position"),
    [
        ("drop table t; drop tabl u", SyntaxInvalid, 20),
        ("drop table t; vacuum", FeatureNotSupported, 15),
        (";;", SyntaxInvalid, 1),
        ("drop table t;" * (STATEMENTS_MAX + 1), OutOfRange, 13 * STATEMENTS_MAX + 1),
    ],
)
def test_several_statements_refused_where_it_stands(
    sql: str, error: type[Refused], position: int
) -> None:
    with pytest.raises(error) as caught:
        parse_statements(sql)
    assert caught.value.detail["position"] == position


# ------------------------------------------------------------------ names


def test_identifiers_fold_unless_quoted() -> None:
    assert parse_ddl('CREATE TABLE "T" (Id INT PRIMARY KEY, "Mixed Case" int)') == CreateTable(
        "T",
        (
            ColumnDefinition("id", Type("integer"), False, None, 19),
            ColumnDefinition("Mixed Case", Type("integer"), True, None, 39),
        ),
        ("id",),
    )


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@settings(max_examples=300)
@given(names, names)
def test_a_quoted_name_is_read_as_it_is(old: str, new: str) -> None:
    spelled = ['"' + name.replace('"', '""') + '"' for name in (old, new)]
    try:
        statement = parse_ddl(f"alter table t rename {spelled[0]} to {spelled[1]}")
    except OutOfRange:
        assert max(len(name.encode()) for name in (old, new)) > 63
        return
    assert isinstance(statement, AlterTable)
    assert statement.actions == (RenameColumn(old, new, 15),)


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_need_quotes(word: str) -> None:
    with pytest.raises(SyntaxInvalid) as caught:
        parse_ddl(f"drop table {word} restrict")
    assert caught.value.detail["position"] == 12
    assert parse_ddl(f'drop index "{word}"') == DropIndex(word, False, 12)


@pytest.mark.parametrize("word", ["lock", "key", "index", "type", "data", "covering", "explain"])
def test_other_words_are_names(word: str) -> None:
    assert parse_ddl(f"drop table {word}") == DropTable(word, False, 12)


def test_position_counts_characters_over_lines() -> None:
    with pytest.raises(FeatureNotSupported) as caught:
        parse_ddl("-- é\ncreate table t (\n  a int primary key,\n  b money\n)")
    assert caught.value.detail["position"] == 48


# ------------------------------------------------------------------ limits


def test_limits() -> None:
    long = "create table t (a int primary key, b text default '" + "x" * STATEMENT_BYTES_MAX + "')"
    with pytest.raises(OutOfRange, match="bytes"):
        parse_ddl(long)
    many = ", ".join(f"c{n} int" for n in range(1_001))
    with pytest.raises(OutOfRange, match="at most 1000"):
        parse_ddl(f"create table t ({many}, primary key (c0))")
    with pytest.raises(OutOfRange, match="at most 1000 actions"):
        parse_ddl("alter table t " + ", ".join(f"drop c{n}" for n in range(1_001)))
    with pytest.raises(OutOfRange, match="at most 32"):
        parse_ddl(f"alter table t add unique ({', '.join(f'c{n}' for n in range(33))})")
    chain = "1" + " + 1" * 5_000
    with pytest.raises(TooComplex, match="deep"):
        parse_ddl(f"create table t (a int primary key default {chain})")
    wide = "a in (" + ", ".join("1" for _ in range(3_000)) + ")"
    with pytest.raises(OutOfRange, match="4096 bytes"):
        parse_ddl(f"alter table t add check ({wide})")


# ------------------------------------------------------------------ no text does harm

BEGINNINGS = (
    "",
    "create ",
    "create table t (",
    "alter table t ",
    "alter table t add check (",
    "drop ",
)
WORDS = (
    *("create", "table", "index", "alter", "add", "column", "t", "a", "b", "int", "primary"),
    *("key", "(", ")", ",", ";", "default", "1", "'x'", "not", "null", "on", "if", "exists"),
    *("unique", "-", "::", "text", "as", "select", "drop", "rename", "to", "set", "constraint"),
    *("check", "valid", "validate", "lock", "covering", "explain", "ddl", "analyze", "only"),
    *("restrict", "cascade", "concurrently", "foreign", "references", "generated", "include"),
    *(
        "type",
        "using",
        "data",
        "truncate",
        "case",
        "when",
        "then",
        "end",
        "'",
        '"',
        '"Q q"',
        "e'x'",
        "$$",
        "--",
        "/*",
    ),
    *("now()", "upper('a')", "cast(", "varchar(", "=", ">", "||", ".", "public", "$1", "{", "["),
)


@pytest.mark.parametrize("text", ["create default on", "CREATE DEFAULT ON t (id int)"])
def test_a_defect_of_the_parser_is_a_refusal(text: str) -> None:
    """Found by the test below: a TypeError inside the parser."""
    with pytest.raises(Refused):
        parse_ddl(text)


@settings(max_examples=1_000)
@given(st.sampled_from(BEGINNINGS), st.lists(st.sampled_from(WORDS), max_size=16))
def test_any_words_are_parsed_or_refused_never_worse(beginning: str, words: list[str]) -> None:
    with suppress(Refused):
        parse_ddl(beginning + " ".join(words))


@settings(max_examples=300)
@given(st.sampled_from(BEGINNINGS), st.text(max_size=40))
def test_any_text_is_parsed_or_refused_never_worse(beginning: str, text: str) -> None:
    with suppress(Refused):
        parse_ddl(beginning + text)
