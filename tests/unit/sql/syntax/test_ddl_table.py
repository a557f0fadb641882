"""CREATE TABLE and DROP TABLE: columns, types, constraints."""

from __future__ import annotations

import pytest

from leasehold.catalog.elements import OnChange
from leasehold.model.errors import (
    DivisionByZero,
    DuplicateColumn,
    FeatureNotSupported,
    InvalidArgument,
    InvalidDefinition,
    InvalidObject,
    InvalidText,
    OutOfRange,
    Refused,
    SyntaxInvalid,
    TooLong,
    UnknownColumn,
    UnknownFunction,
    UnknownObject,
    UnknownTable,
    WrongType,
)
from leasehold.model.ids import ENUMS_FROM
from leasehold.sql.ddl.schema_statements import STATEMENTS_MAX, parse_ddl, parse_statements
from leasehold.sql.syntax.enum_names import EnumNames, no_enums
from leasehold.sql.syntax.statements import (
    CheckDefinition,
    ColumnDefinition,
    CreateTable,
    DropTable,
    ForeignKeyDefinition,
    UniqueDefinition,
)
from leasehold.values.enums import Enumeration, make_labels
from leasehold.values.types import Type, parse_type
from tests.support.sql.refusal import Refusal, check_refusal


def created(sql: str) -> CreateTable:
    statement = parse_ddl(sql)
    assert isinstance(statement, CreateTable)
    return statement


def test_create_table() -> None:
    sql = (
        "CREATE TABLE IF NOT EXISTS Flights (id bigint, leg smallint, gate varchar(4) NOT NULL"
        " DEFAULT 'A1', seats int DEFAULT -5 NULL, PRIMARY KEY (id, leg));"
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


@pytest.mark.parametrize(
    "said",
    [
        "fillfactor=100",
        "fillfactor = 70, autovacuum_enabled = off",
        "toast.autovacuum_vacuum_scale_factor = 0.2, user_catalog_table",
        "autovacuum_vacuum_cost_delay = -1, log_autovacuum_min_duration='5'",
    ],
)
def test_storage_parameters_have_no_effect(said: str) -> None:
    plain = "create table t (a int primary key)"
    assert created(f"{plain} with ({said})") == created(plain)


def test_several_tables_are_dropped_by_as_many_statements() -> None:
    sql = "drop table if exists a, public.b, c restrict; truncate d"
    said = parse_statements(sql)
    dropped = [each.statement for each in said[:3]]
    assert [one.name for one in dropped if isinstance(one, DropTable)] == ["a", "b", "c"]
    assert all(one.if_exists for one in dropped if isinstance(one, DropTable))
    assert {each.sql for each in said[:3]} == {"drop table if exists a, public.b, c restrict"}
    assert [one.beside for one in dropped if isinstance(one, DropTable)] == [
        ("b", "c"),
        ("a", "c"),
        ("a", "b"),
    ]
    with pytest.raises(OutOfRange):
        parse_statements(f"drop table {', '.join(f't{n}' for n in range(STATEMENTS_MAX + 1))}")


def test_a_table_may_have_no_primary_key() -> None:
    assert created("create table t (a int, b text unique)").primary_key == ()


def test_constraints_stand_in_their_order_and_with_their_columns() -> None:
    sql = (
        "create table public.t (a int primary key constraint one unique check (A > 0),"
        " constraint two check (a < b /* both */ and T.b <> 7), b int unique,"
        ' constraint three unique ("B c", a), unique (b, a), "B c" int constraint four'
        ' check ("B c" = 1 or a = 2))'
    )

    def place(word: str, nth: int = 0) -> int:
        start = -1
        for _ in range(nth + 1):
            start = sql.index(word, start + 1)
        return start + 1

    uniques = (
        UniqueDefinition(("a",), "one", place("unique")),
        UniqueDefinition(("b",), None, place("unique", 1)),
        UniqueDefinition(("B c", "a"), "three", place("unique", 2)),
        UniqueDefinition(("b", "a"), None, place("unique", 3)),
    )
    checks = (
        CheckDefinition("a > 0", None, False, place("check")),
        CheckDefinition("a < b and b <> 7", "two", False, place("check", 1)),
        CheckDefinition('"B c" = 1 or a = 2', "four", False, place("check", 2)),
    )
    table = created(sql)
    assert table.uniques == uniques
    assert table.checks == checks
    assert [column.unique for column in table.columns] == [uniques[0], uniques[1], None]
    assert [column.checks for column in table.columns] == [checks[:1], (), checks[2:]]
    assert [column.nullable for column in table.columns] == [False, True, True]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("drop table t", DropTable("t", False, 12)),
        ("drop table t cascade", DropTable("t", False, 12, cascade=True)),
        ("drop table if exists public.t restrict;", DropTable("t", True, 22)),
        ('DROP TABLE "T t"', DropTable("T t", False, 12)),
    ],
)
def test_drop_table(sql: str, expected: DropTable) -> None:
    assert parse_ddl(sql) == expected


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("int2", Type("smallint")),
        ("int", Type("integer")),
        ("INT8", Type("bigint")),
        ("double precision", Type("double precision")),
        ("double /* 64 bits */ precision", Type("double precision")),
        ("float", Type("double precision")),
        ("float8", Type("double precision")),
        ("text", Type("text")),
        ("varchar", Type("varchar")),
        ("character varying(7)", Type("varchar", 7)),
        ("char", Type("char", 1)),
        ("character(7)", Type("char", 7)),
        ("numeric", Type("numeric")),
        ("decimal(7)", Type("numeric", None, 7, 0)),
        ("numeric(7, 2)", Type("numeric", None, 7, 2)),
        ("numeric(3,-2)", Type("numeric", None, 3, -2)),
        ("jsonb", Type("jsonb")),
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
    assert created(f"create table t (a {written}, b int primary key)").columns[0].type == kind


COLUMN = "create table t (a int primary key, b "
TABLE = "create table t (a int primary key, "
KEY_OF_IT = (FeatureNotSupported, 55)
REFUSED: list[Refusal] = [
    # CREATE TABLE
    ("create table t as select 1", FeatureNotSupported, 16),
    ("create table t of u", FeatureNotSupported, 16),
    ("create table t partition of u default", FeatureNotSupported, 16),
    ("create unlogged table t (a int primary key)", FeatureNotSupported, 1),
    ("create temp table public.t (a int primary key)", InvalidDefinition, 19),
    ("create table t (a int primary key) on commit drop", InvalidDefinition, 36),
    ("create or replace table t (a int primary key)", SyntaxInvalid, 19),
    ("create table t (a int primary key) with (fill=10)", InvalidArgument, 42),
    ("create table t (a int primary key) with (toasted.fillfactor=10)", InvalidArgument, 42),
    ("create table t (a int primary key) with (fillfactor=)", SyntaxInvalid, 53),
    ("create table t (a int primary key) with (fillfactor=10", SyntaxInvalid, 55),
    ("create table t (a int primary key) partition by range (a)", FeatureNotSupported, 36),
    ("create table t (a int primary key) inherits (u)", FeatureNotSupported, 36),
    ("create table t (a int primary key) tablespace x", FeatureNotSupported, 36),
    ("create table t (a int primary key) as select 1", SyntaxInvalid, 36),
    ("create table t ()", FeatureNotSupported, 16),
    ("create table pg_catalog.t (a int primary key)", FeatureNotSupported, 14),
    ("create table a.b.t (a int primary key)", FeatureNotSupported, 14),
    ("create table t", SyntaxInvalid, 15),
    ("create table (a int primary key)", SyntaxInvalid, 14),
    ("create table if exists t (a int primary key)", SyntaxInvalid, 17),
    ("create table t (primary key (a)", SyntaxInvalid, 32),
    # columns
    (COLUMN + "serial default 1)", SyntaxInvalid, 38),
    (COLUMN + "serial null)", SyntaxInvalid, 38),
    (COLUMN + "serial generated always as identity)", SyntaxInvalid, 45),
    (COLUMN + "money)", FeatureNotSupported, 38),
    (COLUMN + "xml)", FeatureNotSupported, 38),
    (COLUMN + "interval day to second)", FeatureNotSupported, 38),
    (COLUMN + "numeric(0))", InvalidArgument, 38),
    (COLUMN + "numeric(1001, 2))", InvalidArgument, 38),
    (COLUMN + "numeric(5, 1001))", InvalidArgument, 38),
    (COLUMN + "numeric(5, 2, 1))", FeatureNotSupported, 38),
    (COLUMN + "jsonb(5))", FeatureNotSupported, 38),
    ("create table t (a numeric primary key)", FeatureNotSupported, 27),
    ("create table t (a jsonb primary key)", FeatureNotSupported, 25),
    (COLUMN + "int[][])", FeatureNotSupported, 38),
    (COLUMN + "money[])", FeatureNotSupported, 38),
    (COLUMN + "varchar(0)[])", InvalidArgument, 38),
    (COLUMN + "varbinary(3))", SyntaxInvalid, 38),
    (COLUMN + "int(4))", SyntaxInvalid, 41),
    (COLUMN + "real(4))", SyntaxInvalid, 42),
    (COLUMN + "date(3))", FeatureNotSupported, 38),
    (COLUMN + "varchar(0))", InvalidArgument, 38),
    (COLUMN + "varchar(x))", SyntaxInvalid, 46),
    (COLUMN + "varchar(1.5))", SyntaxInvalid, 46),
    (COLUMN + ")", SyntaxInvalid, 38),
    (COLUMN + "not null)", SyntaxInvalid, 38),
    (COLUMN + "7)", SyntaxInvalid, 38),
    (COLUMN + "int first)", SyntaxInvalid, 42),
    (COLUMN + "int unsigned)", SyntaxInvalid, 42),
    (COLUMN + "int auto_increment)", SyntaxInvalid, 42),
    (COLUMN + "int comment 'x')", SyntaxInvalid, 42),
    (COLUMN + "int not)", SyntaxInvalid, 45),
    (COLUMN + "int not null not null)", SyntaxInvalid, 51),
    (COLUMN + "int null not null)", SyntaxInvalid, 47),
    (COLUMN + "int unique unique)", SyntaxInvalid, 49),
    (COLUMN + "int default 1 default 2)", SyntaxInvalid, 52),
    (COLUMN + "int constraint c)", SyntaxInvalid, 54),
    (COLUMN + "int constraint unique)", SyntaxInvalid, 53),
    (COLUMN + "int references u references v)", SyntaxInvalid, 55),
    (COLUMN + "int constraint c references u on update set default (b))", FeatureNotSupported, 68),
    (COLUMN + "text generated always as identity)", InvalidArgument, 43),
    (COLUMN + "int generated always as identity (cycle cycle))", SyntaxInvalid, 78),
    (COLUMN + "int generated always as (a + 1) virtual)", FeatureNotSupported, 70),
    (COLUMN + "int generated always as (a + 1))", FeatureNotSupported, 69),
    (COLUMN + "int generated always as (u.b) stored)", UnknownTable, 63),
    (COLUMN + "int generated always as (1 + 1) stored default 3)", SyntaxInvalid, 63),
    (COLUMN + "int default null generated always as (1 + 1) stored)", SyntaxInvalid, 76),
    (COLUMN + "int generated always as (1) stored generated always as", SyntaxInvalid, 92),
    (COLUMN + "int generated always (1) stored)", SyntaxInvalid, 59),
    (COLUMN + "timestamptz generated always as (now()) stored)", InvalidObject, 71),
    (COLUMN + "timestamptz generated always as (current_timestamp) stored)", InvalidObject, 71),
    ("create table t (a int generated always as (1) stored primary key)", FeatureNotSupported, 54),
    ("create table t (a int generated always as (1) stored, primary key (a))", *KEY_OF_IT),
    (COLUMN + 'text collate "de")', FeatureNotSupported, 43),
    (COLUMN + "text default 'x' collate \"de\")", FeatureNotSupported, 55),
    (COLUMN + "text storage plain)", FeatureNotSupported, 43),
    (COLUMN + "int not null not deferrable)", FeatureNotSupported, 51),
    (COLUMN + "int unique not deferrable initially deferred)", FeatureNotSupported, 49),
    (COLUMN + "int check (b > 1) no inherit)", FeatureNotSupported, 56),
    (COLUMN + "int check (b > 1) not enforced)", FeatureNotSupported, 56),
    (COLUMN + "int check (b > 1) not valid)", SyntaxInvalid, 60),
    ("create table t (a int null primary key)", SyntaxInvalid, 17),
    ("create table t (a primary key)", SyntaxInvalid, 19),
    ("create table t (table int primary key)", SyntaxInvalid, 17),
    # the table's constraints
    (TABLE + "primary key (a))", InvalidDefinition, 36),
    (TABLE + "constraint k primary key (a))", InvalidDefinition, 49),
    (TABLE + "foreign key (b) references b)", UnknownColumn, 36),
    (TABLE + "foreign key (a) references b not valid)", FeatureNotSupported, 36),
    (TABLE + "exclude using gist (a with =))", FeatureNotSupported, 36),
    (TABLE + "constraint e exclude (a with =))", FeatureNotSupported, 49),
    (TABLE + "constraint c int)", SyntaxInvalid, 49),
    (TABLE + "unique (b))", UnknownColumn, 36),
    (TABLE + "unique (a, a))", DuplicateColumn, 43),
    (TABLE + "unique ())", SyntaxInvalid, 44),
    (TABLE + "unique (lower(a)))", SyntaxInvalid, 49),
    (TABLE + "unique (a, a) include (a))", DuplicateColumn, 43),
    (TABLE + "b int, primary key (b) include (a))", InvalidDefinition, 43),
    (TABLE + "unique (a) with (fillfactor=10))", FeatureNotSupported, 47),
    (TABLE + "unique (a) using index tablespace x)", FeatureNotSupported, 47),
    (TABLE + "unique (a) not valid)", FeatureNotSupported, 47),
    (TABLE + "check (a > 1) not valid)", FeatureNotSupported, 36),
    (TABLE + "check (a >))", SyntaxInvalid, 46),
    (TABLE + "check ())", SyntaxInvalid, 43),
    (TABLE + "check a > 1)", SyntaxInvalid, 42),
    (TABLE + "check (a > 1, a > 2))", SyntaxInvalid, 48),
    (TABLE + "check (a not null))", SyntaxInvalid, 45),
    (TABLE + "check (select 1))", SyntaxInvalid, 43),
    (TABLE + "check (u.a > 1))", UnknownTable, 43),
    (TABLE + "check (now() > a))", FeatureNotSupported, 43),
    (TABLE + "check (len(a) > 1))", UnknownFunction, 43),
    ("create table t (a int, primary key (a) include (b))", UnknownColumn, 24),
    ("create table t (a int, primary key (b))", UnknownColumn, 24),
    ("create table t (a int, primary key (a, a))", DuplicateColumn, 36),
    ("create table t (a int, primary key (a) deferrable)", FeatureNotSupported, 40),
    # defaults
    (COLUMN + "int default)", SyntaxInvalid, 49),
    (COLUMN + "int default not null)", SyntaxInvalid, 50),
    (COLUMN + "int default now())", WrongType, 50),
    (COLUMN + "int default 1 + lastval())", FeatureNotSupported, 50),
    (COLUMN + "uuid default uuidv7())", FeatureNotSupported, 51),
    (
        COLUMN + "date default nullif(current_date, now()::date))",
        FeatureNotSupported,
        51,
    ),
    (COLUMN + "text default nextval('s'))", FeatureNotSupported, 51),
    (COLUMN + "int default nextval('s') + 1)", FeatureNotSupported, 50),
    (COLUMN + "int default a)", FeatureNotSupported, 50),
    (COLUMN + "int default (select 1))", FeatureNotSupported, 50),
    (COLUMN + "int default '3x')", InvalidText, 50),
    (COLUMN + "int default 99999999999)", OutOfRange, 50),
    (COLUMN + "int default true)", WrongType, 50),
    (COLUMN + "int default 1 / 0)", DivisionByZero, 50),
    (COLUMN + "boolean default 1)", WrongType, 54),
    (COLUMN + "varchar(2) default 'abc')", TooLong, 57),
    # DROP TABLE
    ("drop table pg_catalog.t", FeatureNotSupported, 12),
    ("drop table", SyntaxInvalid, 11),
    ("drop table if not exists t", SyntaxInvalid, 15),
    ("drop table 't'", SyntaxInvalid, 12),
    ("drop table t purge", SyntaxInvalid, 14),
    # limits
    (f"create table {'x' * 64} (a int primary key)", OutOfRange, 14),
    (f"create table t ({'é' * 32} int primary key)", OutOfRange, 17),
    ('create table "" (a int primary key)', SyntaxInvalid, 14),
]


@pytest.mark.parametrize("refusal", REFUSED)
def test_refused(refusal: Refusal) -> None:
    check_refusal(*refusal)


def test_foreign_keys() -> None:
    said = parse_ddl(
        "create table t (a int primary key references u, b int, constraint f foreign key (b, a)"
        " references public.v (x, y) match simple on delete no action on update restrict)"
    )
    assert isinstance(said, CreateTable)
    assert said.foreign_keys == (
        ForeignKeyDefinition(("a",), "u", position=35),
        ForeignKeyDefinition(
            ("b", "a"), "v", ("x", "y"), "f", position=69, on_update=OnChange.RESTRICT
        ),
    )


ON_CHANGE = [
    ("", "no action", "no action"),
    ("on delete cascade", "cascade", "no action"),
    ("on update set null on delete set default", "set default", "set null"),
    ("match full on delete set null on update cascade", "set null", "cascade"),
    ("on delete restrict deferrable initially deferred", "restrict", "no action"),
    ("deferrable initially deferred not null", "no action", "no action"),
]


@pytest.mark.parametrize(("words", "on_delete", "on_update"), ON_CHANGE)
def test_what_becomes_of_rows_that_refer(words: str, on_delete: str, on_update: str) -> None:
    said = parse_ddl(f"create table t (a int primary key, b int references u {words} unique)")
    assert isinstance(said, CreateTable)
    (key,) = said.foreign_keys
    assert (key.on_delete, key.on_update) == (on_delete, on_update)
    assert (key.deferrable == "deferred") == ("deferrable" in words)
    assert said.uniques


def test_several_columns_that_refer() -> None:
    said = parse_ddl(
        "create table t (a int primary key, b int, foreign key (a, b) references u match full"
        " on update cascade on delete set default (b, a))"
    )
    assert isinstance(said, CreateTable)
    (key,) = said.foreign_keys
    assert (key.full, key.delete_sets, key.on_update) == (True, ("b", "a"), "cascade")
    assert not key.deferrable
    said = parse_ddl(
        "create table t (a int primary key, foreign key (a) references u initially deferred)"
    )
    assert isinstance(said, CreateTable)
    assert said.foreign_keys[0].deferrable == "deferred"


@pytest.mark.parametrize(("text", "code"), [("float(0)", "22023"), ("float(54)", "22023")])
def test_a_float_of_a_number_of_bits(text: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_type(text)
    assert caught.value.sqlstate == code
    assert parse_type("float(1)") == parse_type("float(24)") == parse_type("float4")
    assert parse_type("float(25)") == parse_type("float(53)") == parse_type("float8")


def test_who_knows_the_enum_types_refuses_other_names() -> None:
    """Goal: a name that is no type's is refused by whoever knows all types, where it stands."""
    mood = Enumeration(ENUMS_FROM + 1, "mood", make_labels(["sad"]))
    for said in ("string", "double", '"int"', "public.nothing", "mood[], c glad"):
        enums = EnumNames({"mood": mood}.get, lambda name: ENUMS_FROM + 2)
        with pytest.raises(UnknownObject) as caught:
            parse_statements(f"{COLUMN}{said})", enums=enums)
        assert caught.value.detail["position"] == (48 if "glad" in said else 38), said


def test_statements_know_the_types_that_those_before_make() -> None:
    texts = (
        "create type mood as enum ('sad', 'ok')",
        "alter type mood add value 'happy'",
        "alter type mood rename value 'ok' to 'fine'",
        "alter type mood rename to feeling",
        "create table t (a feeling default 'fine', check (a <> 'sad'::feeling))",
        "drop type feeling",
    )
    enums = EnumNames(no_enums, lambda name: ENUMS_FROM + 7)
    said = parse_statements("; ".join(texts), enums=enums)
    table = said[4].statement
    assert isinstance(table, CreateTable)
    enum = table.columns[0].type.enum
    assert enum is not None
    assert [label.text for label in enum.labels] == ["sad", "fine", "happy"]
    assert table.columns[0].default == enum.place_of("fine")
    assert table.checks[0].expression == f"a <> 'sad'::\"{enum.kept_name}\""
    assert enums.find("feeling") is None


@pytest.mark.parametrize(
    ("words", "deferrable"),
    [
        ("", ""),
        ("not deferrable initially immediate", ""),
        ("deferrable", "immediate"),
        ("deferrable initially immediate", "immediate"),
        ("initially deferred", "deferred"),
        ("initially deferred deferrable", "deferred"),
    ],
)
def test_a_constraint_says_when_it_is_looked_at(words: str, deferrable: str) -> None:
    for text in (f"a int references u {words}", f"a int, foreign key (a) references u {words}"):
        said = parse_ddl(f"create table t ({text})")
        assert isinstance(said, CreateTable)
        assert said.foreign_keys[0].deferrable == deferrable, text
    for text in (f"a int unique {words}, b int", f"a int, b int, unique (a) include (b) {words}"):
        said = parse_ddl(f"create table t ({text})")
        assert isinstance(said, CreateTable)
        assert said.uniques[0].deferrable == deferrable, text
