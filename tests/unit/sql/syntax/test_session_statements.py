"""A client's text → what its session is asked to do."""

from __future__ import annotations

import pytest

from leasehold.model.errors import Refused
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.session.text import read_text
from leasehold.sql.syntax.cursor_movement import Direction, Movement
from leasehold.sql.syntax.session_statements import (
    Begin,
    CloseCursor,
    Commit,
    CopyIn,
    CopyOptions,
    CopyOut,
    Deallocate,
    DeclareCursor,
    Discard,
    Fetch,
    Listen,
    Modes,
    NothingToDo,
    Notify,
    Release,
    Reset,
    Rollback,
    RollbackTo,
    RowStatement,
    Savepoint,
    SchemaStatement,
    Set,
    SetModes,
    Show,
    Unlisten,
)

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD

MEANINGS = [
    ("SELECT 1", RowStatement("select")),
    ("(values (1))", RowStatement("(")),
    ("explain select 1", RowStatement("explain")),
    ("begin", Begin(Modes())),
    (
        "BEGIN TRANSACTION ISOLATION LEVEL Repeatable Read, READ ONLY",
        Begin(Modes("repeatable read", read_only=True)),
    ),
    (
        "start transaction read write not deferrable",
        Begin(Modes(None, read_only=False, deferrable=False), "START TRANSACTION"),
    ),
    ("END", Commit()),
    ("commit and no chain", Commit()),
    ("commit work and chain", Commit(chain=True)),
    ("ABORT", Rollback()),
    ("rollback to savepoint a", RollbackTo("a")),
    ('savepoint "A b"', Savepoint("A b")),
    ("release a", Release("a")),
    ("set transaction isolation level serializable", SetModes(Modes("serializable"), ever=False)),
    (
        "set session characteristics as transaction read only",
        SetModes(Modes(read_only=True), ever=True),
    ),
    ("SET TIME ZONE 'UTC'", Set("timezone", "UTC")),
    ("set time zone local", Set("timezone", None)),
    ("set local Statement_Timeout = '2s'", Set("statement_timeout", "2s", local=True)),
    ("set session application_name to x", Set("application_name", "x")),
    ("set extra_float_digits = -3", Set("extra_float_digits", "-3")),
    ('set search_path to "$user", public', Set("search_path", '"$user", public')),
    ("set names 'utf8'", Set("client_encoding", "utf8")),
    ('set role "Odd ""one"', Set("role", 'Odd "one')),
    ("set role ann", Set("role", "ann")),
    ("SET LOCAL ROLE None", Set("role", "none", local=True)),
    ("set session authorization 'ann'", Set("session_authorization", "ann")),
    ("set session authorization default", Set("session_authorization", None)),
    ("reset role", Reset("role")),
    ("SET VERIFYRETRY OFF", Set("leasehold.verifyretry", "off")),
    ("set leasehold.isolation = 'default'", Set("leasehold.isolation", "default")),
    ("reset all", Reset(None)),
    ("reset TimeZone", Reset("timezone")),
    ("show transaction isolation level", Show("transaction_isolation")),
    ("show all", Show(None)),
    ("discard all", Discard("all")),
    ("deallocate prepare all", Deallocate(None)),
    ("deallocate _pg3_1", Deallocate("_pg3_1")),
    ("close all", CloseCursor(None)),
    ('close "All"', CloseCursor("All")),
    ("declare c cursor for select 1", DeclareCursor("c", 21, "select")),
    (
        "declare c binary insensitive no scroll cursor with hold for (values (1))",
        DeclareCursor("c", 60, "(", binary=True, insensitive=True, scrolls=False, hold=True),
    ),
    (
        "declare c asensitive scroll cursor without hold for table t",
        DeclareCursor("c", 52, "table", scrolls=True),
    ),
    ("fetch c", Fetch("c", Movement(FORWARD, 1), moves=False)),
    ("fetch from c", Fetch("c", Movement(FORWARD, 1), moves=False)),
    ("fetch next", Fetch("next", Movement(FORWARD, 1), moves=False)),
    ("fetch next in c", Fetch("c", Movement(FORWARD, 1), moves=False)),
    ("fetch prior c", Fetch("c", Movement(BACKWARD, 1), moves=False)),
    ("fetch first c", Fetch("c", Movement(Direction.ABSOLUTE, 1), moves=False)),
    ("fetch last from c", Fetch("c", Movement(Direction.ABSOLUTE, -1), moves=False)),
    ("fetch absolute -3 c", Fetch("c", Movement(Direction.ABSOLUTE, -3), moves=False)),
    ("fetch relative +3 c", Fetch("c", Movement(Direction.RELATIVE, 3), moves=False)),
    ("fetch -3 in c", Fetch("c", Movement(FORWARD, -3), moves=False)),
    ("fetch all c", Fetch("c", Movement(FORWARD, None), moves=False)),
    ("fetch forward c", Fetch("c", Movement(FORWARD, 1), moves=False)),
    ("fetch forward 7 from c", Fetch("c", Movement(FORWARD, 7), moves=False)),
    ("move backward all in c", Fetch("c", Movement(BACKWARD, None), moves=True)),
    ("move backward from c", Fetch("c", Movement(BACKWARD, 1), moves=True)),
    ("listen a", Listen("a")),
    ("unlisten a", Unlisten("a")),
    ("unlisten *", Unlisten(None)),
    ("notify a", Notify("a", "")),
    ("notify a, 'x'", Notify("a", "x")),
    ("vacuum (verbose, analyze) a, public.b (c)", NothingToDo("VACUUM")),
    ("analyze pgbench_branches", NothingToDo("ANALYZE")),
    ("copy t from stdin", CopyIn("t", 6, None, CopyOptions())),
    (
        "copy t (a, b) from stdin csv header",
        CopyIn("t", 6, (("a", 9), ("b", 12)), CopyOptions(csv=True, header=True)),
    ),
    ("copy public.t from stdin with (freeze on)", CopyIn("t", 13, None, CopyOptions())),
    (
        "copy t from stdin (format csv, delimiter ';', null '-')",
        CopyIn("t", 6, None, CopyOptions(csv=True, delimiter=";", null="-")),
    ),
    (
        "copy t from stdin (format csv, header match, force_null (a, b), force_not_null (c))",
        CopyIn(
            "t",
            6,
            None,
            CopyOptions(
                csv=True,
                header=True,
                header_matches=True,
                force_null=(("a", 58), ("b", 61)),
                force_not_null=(("c", 81),),
            ),
        ),
    ),
    (
        "copy t from stdin csv force not null a, b force null c",
        CopyIn(
            "t",
            6,
            None,
            CopyOptions(csv=True, force_null=(("c", 54),), force_not_null=(("a", 38), ("b", 41))),
        ),
    ),
    ("copy t from stdin binary", CopyIn("t", 6, None, CopyOptions(binary=True))),
    (
        "copy t (a) to stdout with (format csv, force_quote (a))",
        CopyOut("t", 6, (("a", 9),), CopyOptions(csv=True, force_quote=(("a", 53),))),
    ),
    (
        "copy (select (1), ')' from t) to stdout csv header force quote *",
        CopyOut("", 6, None, CopyOptions(csv=True, header=True, force_quote=None), (6, 28)),
    ),
    (
        "copy (values (1)) to stdout (format 'binary')",
        CopyOut("", 6, None, CopyOptions(binary=True), (6, 16)),
    ),
]


@pytest.mark.parametrize("options", ["", "(reads) "])
def test_explain_of_declare_is_of_a_query_that_stands_where_it_stood(options: str) -> None:
    text = f"select 2; explain {options}declare c scroll cursor for select 1"
    _, statement = read_text(text)
    begin = len(f"explain {options}declare c scroll cursor for ")
    cursor = DeclareCursor("c", begin, "select", scrolls=True)
    assert statement.meaning == RowStatement("explain", cursor)
    assert statement.text == f"explain {options}".ljust(begin) + "select 1"


@pytest.mark.parametrize(("text", "meaning"), MEANINGS, ids=[text for text, _ in MEANINGS])
def test_what_a_statement_says(text: str, meaning: object) -> None:
    (statement,) = read_text(f"{text} ;")
    assert statement.meaning == meaning
    assert statement.text == text


def test_statements_are_told_apart_where_semicolons_are_no_part_of_one() -> None:
    text = "select ';' -- ;\n, 1; ; /* ; */ create table t (a int primary key);commit"
    found = read_text(text)
    assert [type(s.meaning) for s in found] == [RowStatement, SchemaStatement, Commit]
    for statement in found:
        assert text[statement.offset :].startswith(statement.text)
    assert read_text(" ; -- nothing\n") == ()


def test_places_in_a_schema_change_count_in_its_own_text() -> None:
    """It goes to the master alone; what is refused at once is told of the client's text."""
    change = "alter table t drop a, add check (a > 1)"
    _, statement = read_text(f"begin; {change}")
    assert statement.meaning == SchemaStatement(parse_ddl(change))
    with pytest.raises(Refused) as caught:
        read_text(f"begin; {change}, add b money")
    assert caught.value.detail["position"] == len("begin; , add b ") + len(change) + 1


REFUSALS = [
    ("selec 1", "42601", 1),
    ("select 1; selec 2", "42601", 11),
    ("select 1; select from where", "42601", 23),  # found before the first has run
    ("select 1; create table t (a money)", "0A000", 29),
    ("begin isolation level chaos", "42601", 23),
    ("begin as of timestamp 'x'", "22007", 23),
    ("commit prepared 'x'", "0A000", 8),
    ("lock table t", "0A000", 1),
    ("lock table t in row share mode", "0A000", 1),
    ("select 1; lock table t", "0A000", 11),
    ("prepare p as drop table t", "42601", 14),
    ("declare c cursor for update t set a = 1", "42601", 22),
    ("declare c cursor with hold select 1", "42601", 28),
    ("declare c fast cursor for select 1", "42601", 11),
    ("declare c no cursor for select 1", "42601", 14),
    ("fetch", "42601", 6),
    ("copy t to stdout (format csv, header match)", "0A000", 31),
    ("copy t from stdin (header maybe)", "42601", 20),
    ("copy t to stdout (format csv, force_null (a))", "0A000", 31),
    ("copy t from stdin (format csv, force_null *)", "22023", 32),
    ("copy t from stdin (format csv, force_null (a), force_null (b))", "42601", 48),
    ("fetch 2147483648 c", "42601", 7),
    ("fetch absolute c", "42601", 16),
    ("fetch forward all", "42601", 18),
    ("move next from c 1", "42601", 18),
    ("copy t to '/tmp/x'", "0A000", 11),
    ("copy (delete from t returning a) to stdout", "0A000", 7),
    ("copy (select 1 to stdout", "42601", 16),
    ("copy t from stdin (format csv, force_quote (a))", "0A000", 32),
    ("copy t from '/etc/passwd'", "0A000", 13),
    ("savepoint", "42601", 10),
    ("rollback to", "42601", 12),
    ("commit nonsense", "42601", 8),
    ("'text'", "42601", 1),
    ("_read", "42601", 1),
]


@pytest.mark.parametrize(("text", "code", "position"), REFUSALS, ids=[r[0] for r in REFUSALS])
def test_what_is_refused_and_where(text: str, code: str, position: int) -> None:
    with pytest.raises(Refused) as caught:
        read_text(text)
    assert (caught.value.sqlstate, caught.value.detail.get("position")) == (code, position)
