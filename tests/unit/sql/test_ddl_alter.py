"""ALTER TABLE: every action, alone and beside others."""

from __future__ import annotations

import pytest

from leasehold.model.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    InvalidText,
    OutOfRange,
    SyntaxInvalid,
    UnknownTable,
    WrongType,
)
from leasehold.schema.types import Type
from leasehold.sql.ddl import parse_ddl
from leasehold.sql.statements import (
    Action,
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddLock,
    AddPrimaryKey,
    AddUnique,
    AlterTable,
    AlterType,
    CheckDefinition,
    ColumnDefinition,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropLock,
    DropNotNull,
    ForeignKeyDefinition,
    GeneratedDefinition,
    RenameColumn,
    RenameConstraint,
    RenameTable,
    SetDefault,
    SetNotNull,
    UniqueDefinition,
    ValidateConstraint,
)
from tests.unit.sql.refusal import Refusal, check_refusal

INTEGER = Type("integer")
ACTIONS: list[tuple[str, Action]] = [
    ("add a int", AddColumn(ColumnDefinition("a", INTEGER, position=19))),
    ("add column a int", AddColumn(ColumnDefinition("a", INTEGER, position=26))),
    (
        "add column if not exists a int not null default 3",
        AddColumn(ColumnDefinition("a", INTEGER, False, 3, 40), True),
    ),
    (
        "add a int constraint u unique check (a > 1) constraint c check (t.A < 9)",
        AddColumn(
            ColumnDefinition(
                "a",
                INTEGER,
                position=19,
                unique=UniqueDefinition(("a",), "u", 38),
                checks=(
                    CheckDefinition("a > 1", None, False, 45),
                    CheckDefinition("a < 9", "c", False, 72),
                ),
            )
        ),
    ),
    ("drop a", DropColumn("a", False, 15)),
    ("drop column if exists a restrict", DropColumn("a", True, 15)),
    ("rename a to b", RenameColumn("a", "b", 15)),
    ('rename column "A a" to "to"', RenameColumn("A a", "to", 15)),
    ("rename to u", RenameTable("u", 15)),
    ("rename constraint a to b", RenameConstraint("a", "b", 15)),
    ("alter a set default 1 +  1", SetDefault("a", "1 + 1", 15)),
    ("alter column a set default UPPER('It''s' /* so */)", SetDefault("a", "upper('It''s' )", 15)),
    ("alter a set default null", SetDefault("a", None, 15)),
    ("alter a set default null::int", SetDefault("a", "null::int", 15)),
    ("alter a set default NOW()", SetDefault("a", "now()", 15)),
    ("alter a drop default", SetDefault("a", None, 15)),
    ("alter a drop expression", DropExpression("a", False, 15)),
    ("alter column a drop expression if exists", DropExpression("a", True, 15)),
    (
        "add a int generated always as (T.B /* so */ + 1) stored not null",
        AddColumn(
            ColumnDefinition(
                "a", INTEGER, False, position=19, generated=GeneratedDefinition("b + 1", 46)
            )
        ),
    ),
    (
        "add a timestamptz default now() not null",
        AddColumn(
            ColumnDefinition(
                "a", Type("timestamptz"), False, position=19, default_expression="now()"
            )
        ),
    ),
    ("alter a type bigint", AlterType("a", Type("bigint"), None, 15)),
    (
        "alter column a set data type varchar(5) using UPPER(t.B) || /* so */ 'x'",
        AlterType("a", Type("varchar", 5), "upper(b) || 'x'", 15),
    ),
    ("alter column a set not null", SetNotNull("a", 15)),
    ("alter a drop not null", DropNotNull("a", 15)),
    ("add unique (a, b)", AddUnique(UniqueDefinition(("a", "b"), None, 19))),
    ('add constraint "N" unique (a)', AddUnique(UniqueDefinition(("a",), "N", 34))),
    ("add primary key (a, b)", AddPrimaryKey(("a", "b"), 19)),
    ("add check (a > 1)", AddCheck(CheckDefinition("a > 1", None, False, 19))),
    ("add check (a > 1) not valid", AddCheck(CheckDefinition("a > 1", None, True, 19))),
    (
        'add constraint n check (public_t.a > 1 and "T" is not NULL)'.replace("public_t", "t"),
        AddCheck(CheckDefinition('a > 1 and "T" is not null', "n", False, 32)),
    ),
    ("validate constraint n", ValidateConstraint("n", 15)),
    ("drop constraint n", DropConstraint("n", False, 15)),
    ("drop constraint if exists n restrict", DropConstraint("n", True, 15)),
    ("drop constraint n cascade", DropConstraint("n", False, 15, cascade=True)),
    ("drop a cascade", DropColumn("a", False, 15, cascade=True)),
    ("drop column if exists a cascade", DropColumn("a", True, 15, cascade=True)),
    ("drop lock l cascade", DropLock("l", False, 15)),
    ("add lock l covering (a)", AddLock("l", ("a",), 15)),
    ('add lock "L l" covering (a, "B")', AddLock("L l", ("a", "B"), 15)),
    ("add lock text covering (a)", AddLock("text", ("a",), 15)),
    ("drop lock l", DropLock("l", False, 15)),
    ("drop lock if exists l restrict", DropLock("l", True, 15)),
    # a column may have the name of what else can be added or dropped
    ("add lock text", AddColumn(ColumnDefinition("lock", Type("text"), position=19))),
    ("add column lock int", AddColumn(ColumnDefinition("lock", INTEGER, position=26))),
    ("drop lock", DropColumn("lock", False, 15)),
    ("drop lock restrict", DropColumn("lock", False, 15)),
    ("drop column lock", DropColumn("lock", False, 15)),
]


@pytest.mark.parametrize(("action", "expected"), ACTIONS)
def test_action(action: str, expected: Action) -> None:
    assert parse_ddl(f"alter table t {action}") == AlterTable("t", (expected,), False, 13)


def test_several_actions_stand_in_their_order() -> None:
    several = [(sql, made) for sql, made in ACTIONS if not sql.startswith("rename")]
    statement = parse_ddl("alter table t " + ", ".join(sql for sql, _ in several))
    assert isinstance(statement, AlterTable)
    assert [type(action) for action in statement.actions] == [type(made) for _, made in several]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("if exists t", ("t", True, 23)),
        ("only t", ("t", False, 18)),
        ("if exists only public.t *", ("t", True, 28)),
        ('"T t"', ("T t", False, 13)),
    ],
)
def test_table(table: str, expected: tuple[str, bool, int]) -> None:
    statement = parse_ddl(f"ALTER TABLE {table} DROP a")
    assert isinstance(statement, AlterTable)
    assert (statement.table, statement.if_exists, statement.position) == expected


ALTER = "alter table t "
REFUSED: list[Refusal] = [
    ("alter table t", SyntaxInvalid, 14),
    ("alter table s.t drop a", FeatureNotSupported, 13),
    (ALTER + "drop a,", SyntaxInvalid, 22),
    (ALTER + "drop a drop b", SyntaxInvalid, 22),
    # RENAME
    (ALTER + "rename a to b, drop c", SyntaxInvalid, 28),
    (ALTER + "rename to u, rename a to b", SyntaxInvalid, 26),
    (ALTER + "drop c, rename a to b", SyntaxInvalid, 23),
    (ALTER + "rename a b", SyntaxInvalid, 24),
    (ALTER + "rename to s.u", SyntaxInvalid, 26),
    (ALTER + "rename constraint a", SyntaxInvalid, 34),
    (ALTER + "rename constraint a to b, drop c", SyntaxInvalid, 39),
    # ADD
    (ALTER + "add", SyntaxInvalid, 18),
    (ALTER + "add a", SyntaxInvalid, 20),
    (ALTER + "add a int first", SyntaxInvalid, 25),
    (ALTER + "add a int after b", SyntaxInvalid, 25),
    (ALTER + "add (a int)", SyntaxInvalid, 19),
    (ALTER + "add a int primary key", FeatureNotSupported, 25),
    (ALTER + "add a int references u match partial", FeatureNotSupported, 38),
    (ALTER + "add a int references u not valid", SyntaxInvalid, 38),
    (ALTER + "add a int references", SyntaxInvalid, 35),
    (ALTER + "add a int default 1 generated always as identity", SyntaxInvalid, 35),
    (ALTER + "add a serial null", SyntaxInvalid, 21),
    (ALTER + "add a int default now()", WrongType, 33),
    (ALTER + "add a int default 'x'", InvalidText, 33),
    (ALTER + "add foreign key (a)", SyntaxInvalid, 34),
    (ALTER + "add foreign key (a, a) references u", DuplicateColumn, 31),
    (ALTER + "add foreign key (a, b) references u match partial", FeatureNotSupported, 51),
    (ALTER + "add foreign key (a) references u on update set null (a)", FeatureNotSupported, 67),
    (ALTER + "add foreign key (a) references u on update delete", SyntaxInvalid, 58),
    (ALTER + "add foreign key (a) references u on delete cascade on delete", SyntaxInvalid, 66),
    (ALTER + "add foreign key (a) references u on delete", SyntaxInvalid, 57),
    (ALTER + "add foreign key (a) references u deferrable", FeatureNotSupported, 48),
    (ALTER + "add foreign key (a) references u initially deferred", FeatureNotSupported, 48),
    (ALTER + "add constraint n primary key (a)", FeatureNotSupported, 32),
    (ALTER + "add exclude using gist (a with =)", FeatureNotSupported, 19),
    (ALTER + "add unique (a, a)", DuplicateColumn, 26),
    (ALTER + "add unique using index i", FeatureNotSupported, 26),
    (ALTER + "add constraint u unique using index i", FeatureNotSupported, 39),
    (ALTER + "add unique (a) deferrable", FeatureNotSupported, 30),
    (ALTER + "add unique (a) not valid", FeatureNotSupported, 30),
    (ALTER + "add unique key (a)", SyntaxInvalid, 26),
    (ALTER + "add check (a >) not valid", SyntaxInvalid, 28),
    (ALTER + "add check (a > 1) not", SyntaxInvalid, 33),
    (ALTER + "add check (u.a > 1)", UnknownTable, 26),
    (ALTER + "add check (public.t.a > 1)", FeatureNotSupported, 26),
    (ALTER + "add check (a > 1) not valid no inherit", FeatureNotSupported, 43),
    (ALTER + "add index (a)", SyntaxInvalid, 25),
    # locks
    (ALTER + "add lock l", SyntaxInvalid, 25),
    (ALTER + "add lock l covering", SyntaxInvalid, 34),
    (ALTER + "add lock l covering ()", SyntaxInvalid, 36),
    (ALTER + "add lock l covering (a, a)", DuplicateColumn, 35),
    (ALTER + "add lock covering (a)", SyntaxInvalid, 33),
    # DROP
    (ALTER + "drop", SyntaxInvalid, 19),
    (ALTER + "drop constraint", SyntaxInvalid, 30),
    (ALTER + "drop primary key", SyntaxInvalid, 20),
    (ALTER + "drop if not exists a", SyntaxInvalid, 23),
    # ALTER COLUMN
    (ALTER + "alter a type", SyntaxInvalid, 27),
    (ALTER + "alter a type money", FeatureNotSupported, 28),
    (ALTER + 'alter a type text collate "C"', FeatureNotSupported, 33),
    (ALTER + "alter a type text using", SyntaxInvalid, 38),
    (ALTER + "alter a type text using (a", SyntaxInvalid, 41),
    (ALTER + "alter a type text using u.a", UnknownTable, 39),
    (ALTER + f"alter a type text using '{'x' * 4096}'", OutOfRange, 39),
    (ALTER + "alter a type text default 'x'", SyntaxInvalid, 33),
    (ALTER + "alter a set data text", SyntaxInvalid, 32),
    (ALTER + "alter a set default random()", FeatureNotSupported, 35),
    (ALTER + "alter a set default b + 1", FeatureNotSupported, 35),
    (ALTER + "alter a set default 1 +", SyntaxInvalid, 37),
    (ALTER + "alter a set default", SyntaxInvalid, 34),
    (ALTER + "alter a set default 1 not null", SyntaxInvalid, 37),
    (ALTER + "alter a set null", SyntaxInvalid, 23),
    (ALTER + "alter a set statistics 3", FeatureNotSupported, 23),
    (ALTER + "alter a add generated always as identity", FeatureNotSupported, 23),
    (ALTER + "alter constraint n deferrable", FeatureNotSupported, 15),
    (ALTER + "alter a", SyntaxInvalid, 22),
    # what else PostgreSQL knows, and what it does not
    (ALTER + "owner to me", FeatureNotSupported, 15),
    (ALTER + "set schema s", FeatureNotSupported, 15),
    (ALTER + "enable row level security", FeatureNotSupported, 15),
    (ALTER + "validate n", SyntaxInvalid, 24),
    (ALTER + "modify a int", SyntaxInvalid, 15),
]


@pytest.mark.parametrize("refusal", REFUSED)
def test_refused(refusal: Refusal) -> None:
    check_refusal(*refusal)


def test_add_foreign_key() -> None:
    said = parse_ddl(
        "alter table t add foreign key (a) references u not valid, add b int references v"
    )
    assert isinstance(said, AlterTable)
    first, second = said.actions
    assert first == AddForeignKey(ForeignKeyDefinition(("a",), "u", not_valid=True, position=19))
    assert isinstance(second, AddColumn)
    assert second.column.references == ForeignKeyDefinition(("b",), "v", position=69)
