"""Goal: a row that is locked (SELECT … FOR UPDATE) keeps transactions apart that lock it, too, also
where none of them changes it.

Method: two sessions on two nodes, statement by statement; what PostgreSQL does by letting the
second one wait is 40001 here, or a replay that comes to the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.records.requests import ChangeRequest, OperationKind
from leasehold.sql_session import statement_log
from tests.support.sql_session.sql_client import SqlClient, database_with

LEVELS: Final = ("default", "read committed", "snapshot", "serializable", "linearizable")
NEWEST: Final = LEVELS[:2]
STRENGTHS: Final = ("for update", "for no key update", "for share", "for key share")
LOCK: Final = "select name from study where id = 1 for update"
TAKE: Final = (
    "insert into trial select 1, id, 1 from study where id in"
    " (select id from study order by id limit 1 for update skip locked)"
)
NEXT: Final = "select coalesce(max(number), 0) + 1 from trial where study = 1"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    with database_with(
        tmp_path_factory,
        "create table study (id int primary key, name text)",
        "create table trial (id int primary key, study int, number int)",
        "create table wide (id int primary key, a int, b int)",
        "alter table wide add lock w covering (b)",
        "create table part (id int primary key, trial int references trial)",
    ) as made:
        yield made


@pytest.fixture
def two(database: DevDatabase) -> Iterator[tuple[SqlClient, SqlClient]]:
    one, other = SqlClient(database), SqlClient(database, "r2")
    one.ask("insert into study values (1, 'a'), (2, 'b')")
    one.ask("insert into wide values (1, 0, 0)")
    yield one, other
    assert not database.check().differences
    for each in (one, other):
        each.session.fail()
        each.ask("rollback")
    one.ask("delete from part; delete from study; delete from trial; delete from wide")
    for each in (one, other):
        each.session.close()


def begin(client: SqlClient, level: str = "read committed") -> None:
    client.ask(f"set leasehold.isolation = '{level}'; begin")


def take_number(client: SqlClient, trial: int, number: int) -> None:
    """Insert what the client has read, as an application does."""
    client.ask(f"insert into trial values ({trial}, 1, {number})")


@pytest.mark.parametrize("strength", STRENGTHS)
@pytest.mark.parametrize("level", LEVELS)
def test_two_that_lock_one_row_and_change_others_do_not_both_commit(
    two: tuple[SqlClient, SqlClient], level: str, strength: str
) -> None:
    """Each takes the next number of a study."""
    one, other = two
    lock = LOCK.replace("for update", strength)
    for each in two:
        begin(each, level)
        assert each.ask(lock) == [("a",)]
        assert each.ask(NEXT) == [(1,)]
    take_number(one, 1, 1)
    take_number(other, 2, 1)
    one.ask("commit")
    assert other.code("commit") == "40001"
    assert one.ask("select number from trial") == [(1,)]


@pytest.mark.parametrize("level", LEVELS)
def test_one_after_the_other_both_commit(two: tuple[SqlClient, SqlClient], level: str) -> None:
    for number, each in enumerate((*two, *two), 1):
        begin(each, level)
        each.ask(LOCK)
        assert each.ask(NEXT) == [(number,)]
        take_number(each, number, number)
        each.ask("commit")


@pytest.mark.parametrize("level", NEWEST)
def test_a_replay_that_comes_to_the_same_commits(
    two: tuple[SqlClient, SqlClient], level: str
) -> None:
    """What was read behind the lock has not changed, or the statement that writes reads it."""
    one, other = two
    for each in two:
        begin(each, level)
        each.ask(LOCK)
    take_number(one, 1, 1)
    assert other.ask("select count(*) from trial where study = 2") == [(0,)]
    other.ask(f"insert into trial values (2, 1, ({NEXT}))")
    one.ask("commit")
    other.ask("commit")
    assert one.ask("select number from trial order by 1") == [(1,), (2,)]


def test_a_portal_and_a_cursor_behind_the_lock_are_compared(
    two: tuple[SqlClient, SqlClient],
) -> None:
    one, other = two
    begin(other)
    other.ask(LOCK)
    assert other.ask("declare c cursor for select number from trial; fetch all from c") == []
    take_number(other, 2, 1)
    begin(one)
    one.ask(LOCK)
    take_number(one, 1, 1)
    one.ask("commit")
    assert other.code("commit") == "40001"


OTHERS: Final = {
    "update study set name = name where id = 1": "40001",
    "update study set name = 'c' where id = 1": "40001",
    "delete from study where id = 1": "40001",
    "update study set id = 3 where id = 1": "40001",
    "update study set name = 'c' where id = 2": "00000",
}


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("level", NEWEST)
def test_who_changes_the_row_collides_as_before(
    two: tuple[SqlClient, SqlClient], level: str, others: str
) -> None:
    one, other = two
    begin(one, level)
    one.ask("set local verifyretry = off")
    one.ask(LOCK)
    take_number(one, 1, 1)
    other.ask(others)
    assert one.code("commit") == OTHERS[others]


def test_who_changes_the_row_meets_who_has_locked_it(two: tuple[SqlClient, SqlClient]) -> None:
    """The one that comes second may run again, which comes to the same here."""
    one, other = two
    begin(one)
    one.ask(LOCK)
    take_number(one, 1, 1)
    other.ask("begin; set local verifyretry = off; update study set name = 'c' where id = 1")
    one.ask("commit")
    assert other.code("commit") == "40001"


def requests_of(client: SqlClient, monkeypatch: pytest.MonkeyPatch) -> list[ChangeRequest]:
    sent: list[ChangeRequest] = []
    node = type(client.node)
    for name in ("send", "submit"):
        kept = getattr(node, name)

        def seen(self: Any, request: ChangeRequest, *more: Any, kept: Any = kept) -> Any:
            sent.append(request)
            return kept(self, request, *more)

        monkeypatch.setattr(node, name, seen)
    return sent


@pytest.mark.parametrize(
    ("texts", "locked"),
    [
        ((LOCK, "insert into trial values (1, 1, 1)"), 1),
        ((LOCK, LOCK, "insert into trial values (1, 1, 1)"), 1),
        (("select 1 from study for update", "insert into trial values (1, 1, 1)"), 2),
        (("select 1 from study for update limit 1", "insert into trial values (1, 1, 1)"), 1),
        (("selectv name from study", "insert into trial values (1, 1, 1)"), 0),
        ((LOCK, "update study set name = 'c' where id = 1"), 0),
        ((LOCK, "delete from study where id = 1"), 0),
        (("update study set name = 'c' where id = 1", LOCK), 0),
        (("insert into study values (5, 'e')", "select 1 from study where id = 5 for update"), 0),
        (
            (
                "insert into trial values (1, 1, 1)",
                "select 1 from study s left join trial t on t.study = s.id for update of s",
            ),
            2,
        ),
        (("insert into trial values (1, 2, 1)", "select 1 from study for update nowait"), 2),
        (
            (TAKE,),
            1,
        ),
        (("savepoint s", LOCK, "rollback to s", "insert into trial values (1, 1, 1)"), 1),
        (("create temp table x (id int primary key)", "insert into x values (1)"), None),
        (
            (
                "create temp table y (id int primary key)",
                "insert into y values (1)",
                "select 1 from y for update",
                "insert into trial values (1, 1, 1)",
            ),
            0,
        ),
        ((LOCK, "select count(*) from trial"), None),
        ((LOCK, LOCK), None),
    ],
)
def test_a_lock_is_one_small_operation_of_the_request(
    two: tuple[SqlClient, SqlClient],
    texts: tuple[str, ...],
    locked: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of rows that are written anyway it is none; who writes nothing asks nothing (None)."""
    one, _ = two
    begin(one)
    sent = requests_of(one, monkeypatch)
    for text in texts:
        one.ask(text)
    one.ask("commit")
    if locked is None:
        assert not sent
        return
    (request,) = sent
    updates = [o for o in request.operations if o.kind is OperationKind.UPDATE and not o.values]
    assert len(updates) == locked


def test_a_lock_changes_no_value(two: tuple[SqlClient, SqlClient]) -> None:
    one, _ = two
    before = one.ask("select * from study order by id")
    begin(one)
    one.ask("select 1 from study for update")
    take_number(one, 1, 1)
    one.ask("commit")
    assert one.tags == ["COMMIT"]
    assert one.ask("select * from study order by id") == before


# ------------------------------------------------------------------ who writes nothing


@pytest.mark.parametrize("level", NEWEST)
def test_who_only_reads_under_a_lock_reads_one_moment(
    two: tuple[SqlClient, SqlClient], level: str
) -> None:
    """In PostgreSQL the second one would wait until the first one has read both."""
    one, other = two
    take_number(one, 1, 1)
    take_number(one, 2, 1)
    begin(one, level)
    one.ask(LOCK)
    assert one.ask("select number from trial where id = 1") == [(1,)]
    begin(other, level)
    other.ask(LOCK)
    other.ask("update trial set number = 2")
    other.ask("commit")
    assert one.ask("select number from trial where id = 2") == [(2,)]
    assert one.code("commit") == "40001"


@pytest.mark.parametrize("level", LEVELS)
def test_who_has_read_the_same_again_commits(two: tuple[SqlClient, SqlClient], level: str) -> None:
    one, other = two
    begin(one, level)
    one.ask(LOCK)
    begin(other, level)
    other.ask(LOCK)
    other.ask("insert into trial values (7, 2, 7)")
    other.ask("commit")
    assert one.ask("select count(*) from trial where study = 1") == [(0,)]
    one.ask("commit")


def test_one_statement_is_of_one_moment(two: tuple[SqlClient, SqlClient]) -> None:
    one, other = two
    begin(one)
    one.ask(LOCK)
    other.ask("update study set name = 'c' where id = 1")
    one.ask("commit")


# ------------------------------------------------------------------ rows that are changed

CHANGES: Final = (
    "update study set name = name || 'x' where id = 1",
    "update study set name = 'x' where id = 1",
    "update study set name = 'x' where name >= 'a' and id < 2",
    "update study set name = 'x' where id = 1 returning id",
    "insert into study values (1, 'z') on conflict (id) do update set name = excluded.name",
    "delete from study where id = 2",
    "with w as (update study set name = 'x' where id = 1 returning id) select * from w",
)
"""Each keeps others from the row, in PostgreSQL by waiting."""
SHOWS: Final = (
    NEXT,
    "with w as (select number from trial) select coalesce(max(number), 0) + 1 from w",
    f"insert into trial select 100 + ({NEXT}), 1, 0 returning id - 100",
    f"update study set name = name where id = 2 and ({NEXT}) = 1",
)


@pytest.mark.parametrize("level", LEVELS[1:])
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_shown_behind_a_changed_row_is_so_at_commit(
    two: tuple[SqlClient, SqlClient], change: str, level: str
) -> None:
    """Each takes the next number of a study, behind a change of one row."""
    one, other = two
    for each in two:
        begin(each, level)
        each.ask(change)
        assert each.ask(NEXT) == [(1,)]
    take_number(one, 1, 1)
    take_number(other, 2, 1)
    one.ask("commit")
    assert other.code("commit") == "40001"
    assert one.ask("select number from trial") == [(1,)]


@pytest.mark.parametrize("show", SHOWS)
def test_so_is_what_writes_rest_on_and_cursors_give(
    two: tuple[SqlClient, SqlClient], show: str
) -> None:
    one, other = two
    for each, trial in ((one, 1), (other, 2)):
        begin(each)
        each.ask(CHANGES[0])
        each.ask(show)
        take_number(each, trial, 1)
    one.ask("commit")
    assert other.code("commit") == "40001"


def test_a_number_that_a_write_computes_behind_it_is_computed_anew(
    two: tuple[SqlClient, SqlClient],
) -> None:
    """The master computes the update; what the INSERT has found it is not to guess."""
    one, other = two
    for each, trial in ((one, 1), (other, 2)):
        begin(each)
        each.ask(CHANGES[0])
        each.ask(f"insert into trial values ({trial}, 1, ({NEXT}))")
    one.ask("commit")
    other.ask("commit")
    assert one.ask("select number from trial order by 1") == [(1,), (2,)]
    assert one.ask("select name from study where id = 1") == [("axx",)]


def test_a_declared_cursor_behind_it_is_compared(two: tuple[SqlClient, SqlClient]) -> None:
    one, other = two
    for each, trial in ((one, 1), (other, 2)):
        begin(each)
        each.ask(CHANGES[0])
        assert each.ask("declare c cursor for select number from trial; fetch all from c") == []
        take_number(each, trial, 1)
    one.ask("commit")
    assert other.code("commit") == "40001"


BEHIND: Final = (
    (CHANGES[0], "select 1", "select current_date", "select count(*) from pg_class"),
    (CHANGES[0], "explain select * from trial"),
    (CHANGES[0], "insert into trial values (2, 2, 2)"),
    (CHANGES[0], "update trial set number = 5 where id = 7"),
    (CHANGES[0], "insert into trial values (7, 2, 9) on conflict (id) do update set number = 9"),
    (NEXT, CHANGES[0]),
    ("insert into trial values (2, 2, 2)", CHANGES[0]),
)


@pytest.mark.parametrize("texts", BEHIND)
def test_a_change_behind_which_nothing_is_shown_collides_with_nobody(
    two: tuple[SqlClient, SqlClient], texts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    take_number(one, 7, 3)
    begin(other)
    for text in texts:
        other.ask(text)
    one.ask(CHANGES[0])
    sent = requests_of(other, monkeypatch)
    other.ask("commit")
    assert len(sent) == 1
    assert one.ask("select name from study where id = 1") == [("axx",)]


NOT_FOUND: Final = (
    "update trial set number = 5 where id = 8",
    "update trial set number = number + 5 where id = 8",
    "delete from trial where number > 7",
    "insert into trial values (7, 1, 1) on conflict do nothing",
)


@pytest.mark.parametrize("text", NOT_FOUND)
def test_a_write_that_finds_no_row_behind_it_rests_on_that(
    two: tuple[SqlClient, SqlClient], text: str
) -> None:
    """Who changes the row first changes what it would find."""
    one, other = two
    take_number(one, 7, 3)
    begin(other)
    other.ask(CHANGES[0])
    other.ask(text)
    begin(one)
    one.ask(CHANGES[0])
    one.ask("update trial set number = 9 where id = 7; insert into trial values (8, 2, 2)")
    one.ask("update trial set id = 9 where id = 7")
    one.ask("commit")
    assert other.code("commit") == "40001"


@pytest.mark.parametrize("lock", [CHANGES[0], CHANGES[1], LOCK])
def test_what_was_read_behind_a_row_that_stands_may_be_otherwise_by_now(
    two: tuple[SqlClient, SqlClient], lock: str
) -> None:
    """It runs again because of another row, which PostgreSQL would wait for later."""
    one, other = two
    begin(other)
    other.ask(lock)
    assert other.ask("select count(*) from trial") == [(0,)]
    other.ask("update study set name = 'y' where id = 2")
    take_number(one, 1, 1)
    one.ask("update study set name = name where id = 2")
    other.ask("commit")
    assert one.ask("select name from study where id = 2") == [("y",)]


TOLD_AT_ONCE: Final = ("read committed", "snapshot", "serializable", "linearizable")
KEY: Final = "insert into trial values (7, 1, 1)"
HELD: Final = (CHANGES[0], CHANGES[1], LOCK, "delete from study where id = 1")
IN_THE_WAY: Final = {
    "a key that was not there": ("update trial set number = 9 where id = 7", (KEY,), KEY),
    "a row that was there": (
        "select number from trial where id = 5",
        ("delete from trial where id = 5",),
        "insert into part values (1, 5)",
    ),
}


@pytest.mark.parametrize("name", IN_THE_WAY)
@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("level", TOLD_AT_ONCE)
def test_what_contradicts_an_answer_behind_a_held_row_is_told_as_40001(
    two: tuple[SqlClient, SqlClient], level: str, held: str, name: str
) -> None:
    """Who has changed the held row before would have been waited for: an error of the statement
    would say that the client has asked for what it was told is not there."""
    told, others, text = IN_THE_WAY[name]
    one, other = two
    take_number(one, 5, 1)
    begin(other, level)
    other.ask(held)
    other.ask(told)
    one.ask("begin; update study set name = 'z' where id = 1")
    for each in others:
        one.ask(each)
    one.ask("commit")
    other.ask("savepoint s")
    if level != "read committed" and text == KEY:  # a key that its moment has not: left to COMMIT
        other.ask(text)
        assert other.code("commit") == "40001"
        return
    assert other.code(text) == "40001"
    other.ask("rollback to s")
    if held != LOCK:  # with nothing written it comes before the other one
        assert other.code("commit") == "40001"


def test_an_error_stands_that_contradicts_no_answer(two: tuple[SqlClient, SqlClient]) -> None:
    """Nobody has changed the held row, or nothing was told behind it that would be otherwise now:
    a savepoint catches it, and the rest is committed."""
    one, other = two
    for told, others in (
        ("update trial set number = 9 where id = 7", "select 1"),
        ("update trial set number = 9 where id = 8", "update study set name = 'z' where id = 1"),
    ):
        begin(other)
        other.ask(CHANGES[1])
        other.ask(told)
        one.ask(f"begin; {others}; {KEY}; commit")
        other.ask("savepoint s")
        assert other.code(KEY) == "23505"
        other.ask("rollback to s; insert into trial values (6, 1, 1); commit")
        assert one.ask("select id from trial order by 1") == [(6,), (7,)]
        one.ask("delete from trial")


def test_rows_of_temporary_and_of_new_tables_keep_nobody_away(
    two: tuple[SqlClient, SqlClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    begin(other)
    other.ask("create temp table x (id int primary key, n int)")
    other.ask("insert into x values (1, 1) on conflict (id) do update set n = 2")
    other.ask("update x set n = n + 1")
    assert other.ask("select count(*) from trial") == [(0,)]
    other.ask("update study set name = 'y' where id = 2")
    take_number(one, 1, 1)
    one.ask("update study set name = name where id = 2")
    other.ask("commit; drop table x")
    assert one.ask("select name from study where id = 2") == [("y",)]


def test_what_was_shown_too_often_is_not_run_again(
    two: tuple[SqlClient, SqlClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    monkeypatch.setattr(statement_log, "SHOWN_MAX", 3)
    for meets in (False, True):
        begin(other)
        other.ask(CHANGES[1])
        for _ in range(5):
            assert other.ask("select count(*) from trial") == [(0,)]
        if meets:
            one.ask(CHANGES[0])
        assert other.code("commit") == ("40001" if meets else "00000")


# ------------------------------------------------------------------ several locks of a row

OF_LOCKS: Final = {
    "update wide set a = a + 1 where id = 1": "40001",
    "update wide set b = b + 1 where id = 1": "40001",
    "begin; select 1 from wide for share; insert into trial values (9, 9, 9); commit": "40001",
}


@pytest.mark.parametrize("others", OF_LOCKS)
@pytest.mark.parametrize(
    "texts",
    [
        ("select 1 from wide for update",),
        ("select 1 from wide for update", "update wide set a = 7 where id = 1"),
    ],
)
def test_a_row_of_several_locks_is_locked_whole(
    two: tuple[SqlClient, SqlClient], texts: tuple[str, ...], others: str
) -> None:
    """Whichever comes first, the other one is refused."""
    one, other = two
    for first in (True, False):
        begin(one)
        one.ask("set local verifyretry = off")
        for text in texts:
            one.ask(text)
        take_number(one, 1 + first, 1)
        if first:
            other.ask(others)
            assert one.code("commit") == OF_LOCKS[others]
            one.ask("rollback; delete from trial")
            continue
        said = others.removeprefix("begin; ").removesuffix("; commit")
        other.ask(f"begin; set local verifyretry = off; {said.replace('+ 1', '* 2 + id')}")
        one.ask("commit")
        assert other.code("commit") == "40001"


def test_an_own_row_of_several_locks_is_locked_whole(two: tuple[SqlClient, SqlClient]) -> None:
    """It was changed under one of them before."""
    one, other = two
    for each, column in ((one, "a"), (other, "b")):
        begin(each)
        each.ask("set local verifyretry = off")
        each.ask(f"update wide set {column} = 7 where id = 1")
        each.ask("select 1 from wide for update")
    one.ask("commit")
    assert other.code("commit") == "40001"


# ------------------------------------------------------------------ what else the block does

BESIDE: Final = [
    ("truncate own",),
    ("drop table own",),
    ("alter table own add column more int default 5",),
    ("alter table own rename to owned",),
    ("update own set id = 9 where id = 1",),
    ("delete from own where id = 1", "insert into own values (1, 2)"),
    ("delete from own where id = 1", "insert into own values (2, 2)"),
]


@pytest.mark.parametrize("texts", BESIDE)
def test_a_block_goes_on_with_what_it_has_locked(
    database: DevDatabase, texts: tuple[str, ...]
) -> None:
    one = SqlClient(database)
    with closing(one.session):
        one.ask("create table own (id int primary key, n int not null)")
        one.ask("insert into own values (1, 1)")
        begin(one)
        one.ask("select 1 from own where id = 1 for update")
        for text in texts:
            one.ask(text)
        one.ask("commit; drop table if exists own, owned")
    assert not database.check().differences
