"""Stories of updates computed at commit, in which one rule decides whether harm is done."""

from __future__ import annotations

from collections.abc import Callable

from leasehold.model.errors import Refused
from tests.isolation.said import added, id_is
from tests.isolation.sql_stage import SqlScene
from tests.simulation.harm import demand

LARGEST = 9_223_372_036_854_775_807


def ending(work: Callable[[], object]) -> str:
    """ "": it has committed; else its SQLSTATE."""
    try:
        work()
    except Refused as error:
        return error.sqlstate
    return ""


def what_was_made_of_a_row_is_written_down(scene: SqlScene) -> None:
    """The entry of a log says what its transaction has made of the row."""
    scene.ask("r1", "create table log (n bigint primary key, seen bigint)")
    (one,) = scene.sessions(1)
    one.update(added(5), id_is(1))
    one.ask("insert into log select 1, value from test where id = 1")
    scene.ask("r2", "update test set value = value + 100 where id = 1")
    one.commit()
    seen = scene.ask("r1", "select seen from log")[0][0]
    made = scene.rows()[1]
    demand(seen == made, "T2", f"its log says that it has made {seen} of a row, which is {made}")


def a_value_is_computed_of_what_was_made_of_a_row(scene: SqlScene) -> None:
    """The second statement is none that the master may compute: it has come to a constant."""
    (one,) = scene.sessions(1)
    one.update(added(5), id_is(1))
    one.ask("update test set value = value + length('a') where id = 1")
    scene.ask("r2", "update test set value = value + 100 where id = 1")
    one.commit()
    value = scene.rows()[1]
    demand(value == 116, "T2", f"10, and 5, 1 and 100 more, are {value}: an update is lost")


def two_are_told_what_a_counter_stands_at(scene: SqlScene) -> None:
    """Each counts it up, is shown what it stands at, and takes that number for its own."""
    sessions = scene.sessions(2)
    for session in sessions:
        session.update(added(1), id_is(1))
    numbers = [session.get(1) for session in sessions]
    taken = [n for n, s in zip(numbers, sessions, strict=True) if not ending(s.commit)]
    demand(len(set(taken)) == len(taken), "T2", f"of one counter two have the number {taken[0]}")


def two_updates_that_do_not_see_each_other(scene: SqlScene) -> None:
    """The second was computed of what was committed, and not of what the first had made of it."""
    (one,) = scene.sessions(1)
    one.update(added(1), id_is(1))
    one.ask("update test set value = value * 2 where id = 1")
    one.commit()
    value = scene.rows()[1]
    demand(value == 20, "T2", f"twice the 10 that was committed is {value}: own writes were seen")


def a_row_is_gone_that_was_told_to_be_updated(scene: SqlScene) -> None:
    """The client was told UPDATE 1, and ships the goods."""
    scene.ask("r1", "create table shipped (n bigint primary key)")
    (one,) = scene.sessions(1)
    told = one.update(added(-1), id_is(1))
    one.ask("insert into shipped values (1)")
    scene.ask("r2", "delete from test where id = 1")
    assert told == 1
    ended = ending(one.commit)
    demand(ended == "40001", "T2", "the client was told UPDATE 1, and UPDATE 0 was committed")


def an_error_is_told_of_a_row_that_changes(scene: SqlScene) -> None:
    """The client took another path after it, on the same row."""
    (one,) = scene.sessions(1)
    one.ask("savepoint s")
    error = ending(lambda: one.ask("select 100 / (value - 10) from test where id = 1"))
    one.ask("rollback to s")
    one.update(added(5), id_is(1))
    scene.ask("r2", "update test set value = 50 where id = 1")
    assert error == "22012"
    ended = ending(one.commit)
    demand(ended == "40001", "T2", "told 22012, of a row on which nothing fails, the client's path")


def a_sum_was_told_that_overflows_by_now(scene: SqlScene) -> None:
    """UPDATE 1 was told: only constraints and verify errors may wait for COMMIT (T4)."""
    (one,) = scene.sessions(1)
    assert one.update(added(5), id_is(1)) == 1
    scene.ask("r2", f"update test set value = {LARGEST} where id = 1")
    ended = ending(one.commit)
    demand(ended == "40001", "T4", f"COMMIT ends with {ended} of a statement told UPDATE 1")
