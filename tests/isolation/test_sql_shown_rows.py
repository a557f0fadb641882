"""Goal: what a query has shown of rows that its own transaction has written is what is committed,
or COMMIT says that it is not (40001): UPDATE n = n + 1, SELECT n, COMMIT is a counter, as it is in
PostgreSQL, where the second session waits for the first one's row.

Method: sessions on two replicants in virtual time.
"""

from __future__ import annotations

from typing import Final

import pytest

from leasehold.transaction.isolation import Level
from tests.isolation.at_commit_stories import ending
from tests.isolation.sql_stage import SQL_NODES
from tests.isolation.test_sql_at_commit import NEWEST, OTHERS, UPDATE, with_log
from tests.isolation.test_sql_comdb2 import Make, code_of, replays, scene

__all__ = ["scene"]


@pytest.mark.parametrize("level", NEWEST)
def test_what_was_shown_before_the_update_was_of_its_own_moment(level: Level, scene: Make) -> None:
    """As in PostgreSQL, where it is no promise either."""
    for text in ("select value from test where id = 1", "select * from test"):
        stands = scene(level)
        (one,) = stands.sessions(1)
        one.ask(text)
        one.ask(UPDATE)
        stands.ask("r2", f"{OTHERS} where id = 1")
        assert replays(stands, one.commit) == 0
        assert stands.rows()[1] == 115


SHOWS: Final = [
    "select value from test where id = 1",
    "select * from test",
    "select id from test where value > 0",
    "select sum(value) from test where id between 1 and 5",
    "select 1 where exists (select from test where id = 1 and value > 12)",
    "select a.value from test a, test b where a.id = b.id - 1 and b.id = 2",
    "with w as (select * from test) select value from w where id = 1",
    "select value from test where id in (select n from log) or id = 1",
]
CHANGES: Final = [
    (UPDATE,),
    (UPDATE, UPDATE),
    ("update test set value = value + 5 where id < 2",),  # which is not computed at commit
    ("update test set value = value + 1 + (select count(*) from log) where id = 1",),
    ("update test set value = value + 5 where id = 1 returning id",),
]


@pytest.mark.parametrize("query", SHOWS)
def test_two_are_not_told_the_same_number(query: str, scene: Make) -> None:
    """Goal: UPDATE n = n + 1, SELECT n, COMMIT is a counter. What a query has shown of a row that
    its transaction has changed before is what is committed, or COMMIT says that it is not."""
    for changes in CHANGES:
        stands = with_log(scene(Level.READ_COMMITTED))
        one, two = stands.sessions(2)
        for text in (*changes, query):
            assert one.ask(text).rows == two.ask(text).rows
        one.commit()
        before = stands.rows()
        assert code_of(two.commit) == "40001", changes
        assert stands.rows() == before


def test_a_counter_tells_each_number_once(scene: Make) -> None:
    stands = scene(Level.READ_COMMITTED)
    told: list[int] = []
    while len(told) < 20:
        sessions = stands.sessions(4)
        for session in sessions:
            session.ask("update test set value = value + 1 where id = 1")
        numbers = [session.get(1) for session in sessions]
        told += [n for n, s in zip(numbers, sessions, strict=True) if not ending(s.commit)]
    assert told == list(range(11, 31))
    assert stands.rows()[1] == 30


def test_what_was_inserted_of_other_rows_is_as_it_was_shown(scene: Make) -> None:
    stands = scene(Level.READ_COMMITTED)
    stands.ask("r1", "create table sums (n bigint primary key, seen bigint)")
    for query, code in (("select * from sums", "40001"), ("select 1", "")):
        (one,) = stands.sessions(1)
        one.ask("insert into sums select 1, sum(value) from test")
        one.ask("update test set value = 7 where id = 2")
        one.ask(query)
        stands.ask("r2", OTHERS)
        assert ending(one.commit) == code
    (seen,) = stands.ask("r1", "select seen from sums")
    assert seen == (430,), "as of the replay, which nobody was told otherwise"


def test_what_was_deleted_is_not_there_as_it_was_shown(scene: Make) -> None:
    stands = scene(Level.READ_COMMITTED)
    (one,) = stands.sessions(1)
    one.ask("delete from test where value = 10")
    assert one.ask("select id from test").rows == [(2,)]
    stands.ask("r2", "update test set value = value where id = 1")
    assert replays(stands, one.commit) == 1, "the same row is gone, as was told"
    assert stands.rows() == {2: 20}


def test_other_rows_may_be_shown_otherwise_by_a_replay(scene: Make) -> None:
    """READ COMMITTED promises nothing of them: only of the transaction's own."""
    stands = scene(Level.READ_COMMITTED)
    stands.ask("r1", "insert into test values (3, 30)")
    (one,) = stands.sessions(1)
    one.ask(UPDATE)
    assert sorted(one.ask("select * from test").rows) == [(1, 15), (2, 20), (3, 30)]
    one.ask("update test set value = 7 where id = 2")
    stands.ask("r2", f"{OTHERS} where id > 1")
    assert replays(stands, one.commit) == 1
    assert stands.rows() == {1: 15, 2: 7, 3: 130}


def test_rows_of_another_part_of_the_key_are_shown_as_they_were(scene: Make) -> None:
    """What was changed keeps others from them, too: it runs again, and comes to the same."""
    stands = scene(Level.READ_COMMITTED)
    stands.ask("r1", "create table parts (a int, b int, n int, primary key (a, b))")
    stands.ask("r1", "insert into parts values (1, 1, 0), (2, 1, 0), (2, 2, 0)")
    for query, code in (("a = 1", ""), ("a = 2 and b = 2", ""), ("a = 2", "40001")):
        one, two = stands.sessions(2)
        for session in (one, two):
            session.ask("update parts set n = n + 1 where a = 2 and b = 1")
            session.ask(f"select * from parts where {query}")
        one.commit()
        found: list[str] = []
        again = replays(stands, lambda two=two, found=found: found.append(ending(two.commit)))  # type: ignore[misc]
        assert (found, again) == ([code], 1), query


def test_who_does_not_see_his_own_writes_is_shown_none(scene: Make) -> None:
    stands = scene(Level.DEFAULT)
    sessions = stands.sessions(3)
    for session in sessions:
        session.ask(UPDATE)
        assert session.get(1) == 10
    for session in sessions:
        assert replays(stands, session.commit) == 0
    assert stands.rows()[1] == 25


def test_what_was_shown_and_taken_back_was_shown(scene: Make) -> None:
    stands = scene(Level.READ_COMMITTED)
    for query, code in (("select value from test where id = 1", "40001"), ("select 1", "")):
        (one,) = stands.sessions(1)
        for text in ("savepoint s", UPDATE, query, "rollback to s"):
            one.ask(text)
        one.ask("update test set value = 7 where id = 2")
        stands.ask("r2", OTHERS)
        assert ending(one.commit) == code


def test_a_query_beside_it_in_one_text_is_shown_the_same(scene: Make) -> None:
    """The answers of a text are given one by one, before it commits."""
    stands = scene(Level.READ_COMMITTED)
    one, two = (stands.session(node) for node in SQL_NODES)
    one.begin()
    one.ask(UPDATE)
    assert two.ask(f"{UPDATE}; select value from test where id = 1").rows == [(15,)]
    one.commit()
    assert stands.rows()[1] == 20
