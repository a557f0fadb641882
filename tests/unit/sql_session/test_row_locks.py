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
    one.ask("delete from study; delete from trial; delete from wide")
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
