"""The words that PostgreSQL's grammar does not have: read where they stand, and nowhere else.

Each text is parsed as a client's or a request's is; what stands behind our words is at its place.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from leasehold.model.errors import Refused
from leasehold.sql.ddl.schema_statements import parse_ddl, parse_statements
from leasehold.sql.session.text import read_text
from leasehold.sql.syntax.session_statements import Begin, Modes, SchemaStatement, Set, SetModes
from leasehold.sql.syntax.statements import (
    Action,
    AddColumn,
    AddLock,
    AlterTable,
    DropColumn,
    DropLock,
    DropTable,
    Explain,
)

JANUARY = datetime(2020, 1, 1, tzinfo=UTC)

ACTIONS = [
    ("add lock l covering (a, b)", [AddLock("l", ("a", "b"), 15)]),
    ('add LOCK "A b" Covering ("C")', [AddLock("A b", ("C",), 15)]),
    ("add lock covering covering (covering)", [AddLock("covering", ("covering",), 15)]),
    ("add /* lock x covering (a) */ lock l covering (a)", [AddLock("l", ("a",), 15)]),
    (
        "drop a, add lock l covering (a), drop lock if exists m cascade",
        [
            DropColumn("a", position=15),
            AddLock("l", ("a",), 23),
            DropLock("m", if_exists=True, position=48),
        ],
    ),
    ("drop lock lock", [DropLock("lock", position=15)]),
    ("drop lock", [DropColumn("lock", position=15)]),
    ("drop lock cascade", [DropColumn("lock", position=15, cascade=True)]),
    ("drop lock restrict", [DropColumn("lock", position=15)]),
    ('drop "lock"', [DropColumn("lock", position=15)]),
]


@pytest.mark.parametrize(("said", "actions"), ACTIONS, ids=[said for said, _ in ACTIONS])
def test_locks_of_a_table(said: str, actions: list[Action]) -> None:
    assert parse_ddl(f"alter table t {said}") == AlterTable("t", tuple(actions), False, 13)


@pytest.mark.parametrize("said", ["add lock int", "add column lock int", 'add "lock" int'])
def test_a_column_called_lock_is_one(said: str) -> None:
    made = parse_ddl(f"alter table t {said}")
    assert isinstance(made, AlterTable)
    (action,) = made.actions
    assert isinstance(action, AddColumn)
    assert action.column.name == "lock"


def test_a_table_may_be_called_as_our_words_are() -> None:
    for name in ("add", "drop", "lock", "covering", "explain", "isolation", "verifyretry"):
        made = parse_ddl(f"alter table {name} add lock l covering (a)")
        assert made == AlterTable(name, (AddLock("l", ("a",), len(name) + 14),), False, 13)


EXPLAINED = [
    "explain drop table t",
    "EXPLAIN (DDL) drop table t",
    "explain (ddl, ddl) drop table t",
]


@pytest.mark.parametrize("text", EXPLAINED)
def test_explain_of_a_change(text: str) -> None:
    said = parse_statements(f"drop table u; /* explain */ {text} ; drop table v")[1]
    assert said.sql == text
    assert said.statement == Explain(DropTable("t", False, len(text) + 28))
    (statement,) = read_text(text)
    assert statement.text == text
    assert isinstance(statement.meaning, SchemaStatement)
    assert statement.meaning.explains


MODES = [
    ("begin as of '2020-01-01'", Begin(Modes(as_of=JANUARY))),
    ("begin work as of timestamp '2020-01-01'", Begin(Modes(as_of=JANUARY))),
    ("begin as of lsn 7", Begin(Modes(as_of=7))),
    ("begin as of '7', read only", Begin(Modes(read_only=True, as_of=7))),
    ("begin read only as of 7", Begin(Modes(read_only=True, as_of=7))),
    (
        "start transaction isolation level snapshot, as of 7, not deferrable",
        Begin(Modes("snapshot", deferrable=False, as_of=7), "START TRANSACTION"),
    ),
    ("begin isolation level linearizable", Begin(Modes("linearizable"))),
    (
        "begin isolation level snapshot isolation level read committed",
        Begin(Modes("read committed")),
    ),
    (
        "begin isolation level read committed, isolation level snapshot",
        Begin(Modes("snapshot")),
    ),
    ("set transaction as of 7", SetModes(Modes(as_of=7), ever=False)),
    ("set local transaction as of 7", SetModes(Modes(as_of=7), ever=False)),
    ("set transaction isolation level default", SetModes(Modes("default"), ever=False)),
    (
        "set session characteristics as transaction isolation level snapshot, read only",
        SetModes(Modes("snapshot", read_only=True), ever=True),
    ),
    (
        "set session characteristics as transaction isolation level linearizable",
        SetModes(Modes("linearizable"), ever=True),
    ),
    ("set verifyretry off", Set("leasehold.verifyretry", "off")),
    ("set local verifyretry 3", Set("leasehold.verifyretry", "3", local=True)),
    ("set verifyretry = on", Set("leasehold.verifyretry", "on")),
    ("set verifyretry to default", Set("leasehold.verifyretry", None)),
    ("set isolation = 'as of 7'", Set("isolation", "as of 7")),
]


@pytest.mark.parametrize(("text", "meaning"), MODES, ids=[text for text, _ in MODES])
def test_modes_of_a_transaction_and_verifyretry(text: str, meaning: object) -> None:
    (statement,) = read_text(text)
    assert statement.meaning == meaning
    assert statement.text == text
    _, statement = read_text(f"begin as of 6; -- as of\n {text}")
    assert (statement.meaning, statement.text, statement.offset) == (meaning, text, 25)


REFUSED = [
    ("alter table t add lock l covering (a), add x", "42601", 45),
    ("alter table t add lock l covering (a), drop lock m, dorp b", "42601", 53),
    ("alter table t add lock select covering (a)", "42601", 24),
    ("alter table t add lock l covering ()", "42601", 36),
    ("alter table t add lock l covering (a, a)", "42701", 35),
    ("explain () drop table t", "42601", 10),
    ("explain (ddl) drop table t u", "42601", 28),
    ("explain (ddl) drop table t, u", "0A000", 15),
    ("begin as of 7 nonsense", "42601", 15),
    ("begin as of lsn", "42601", 7),
    ("begin as of -7", "42601", 7),
    ("begin isolation level snapshot nonsense", "42601", 32),
    ("set transaction as of 7 nonsense", "42601", 25),
    ("set transaction", "42601", 16),
    ("set verifyretry 1 2", "42601", 19),
    ("select as of 7", "42601", 8),
]


@pytest.mark.parametrize(("text", "code", "position"), REFUSED, ids=[one[0] for one in REFUSED])
def test_what_stands_behind_our_words_is_told_at_its_place(
    text: str, code: str, position: int
) -> None:
    with pytest.raises(Refused) as caught:
        read_text(text)
    assert (caught.value.sqlstate, caught.value.detail.get("position")) == (code, position)


@pytest.mark.parametrize("letter", ["\u017f", "\u212a", "\u0130", "\u0131"])
def test_letters_that_python_takes_for_others_make_no_word(letter: str) -> None:
    """In another case they are s, k and i, for Python's `re`."""
    for text in (f"{letter}electv 1", f"loc{letter}", f"begin {letter}solation"):
        assert _code(text) == "42601"


def _code(text: str) -> str:
    with pytest.raises(Refused) as caught:
        read_text(text)
    return caught.value.sqlstate
