"""Stories of transactions in which one rule decides whether harm is done."""

from __future__ import annotations

from leasehold.transaction.replay_comparison import Answer, Told
from tests.isolation.hermitage import Scene, committed, g2_item
from tests.isolation.session import Session
from tests.simulation.harm import demand


def two_look_at_both_rows_and_each_writes_one() -> None:
    """T1: write skew."""
    prevented = g2_item(Scene("serializable"))
    demand(prevented, "T1", "write skew: each has written what rests on the other's old row")


def _sum(session: Session, low: int, high: int) -> int:
    total: int = session.run(
        lambda tx: Answer(Told.SELECTED, [sum(r["value"] for r in tx.scan("test", low, high))])
    )[0]
    return total


def two_find_a_range_empty_and_each_fills_it() -> None:
    """T1: a phantom. Neither has touched a row that the other one has seen."""
    scene = Scene("serializable")
    one, two = scene.sessions(2)
    assert _sum(one, 100, 200) == _sum(two, 100, 200) == 0
    one.insert(101, 1)
    two.insert(102, 1)
    assert committed(one)
    demand(not committed(two), "T1", "a phantom: a range that was found empty has two rows")


def a_row_goes_after_it_was_counted() -> None:
    """T1: what is in the range now was not written since; what was there is gone."""
    scene = Scene("serializable")
    one, two = scene.sessions(2)
    total = _sum(one, 1, 3)
    two.delete(lambda row: row["id"] == 2)
    assert committed(two)
    one.insert(50, total)
    demand(not committed(one), "T1", f"a sum of {total} was written, and a part of it is deleted")


def a_visited_row_changes() -> None:
    """T1: SELECTV at a level that verifies no reads."""
    scene = Scene("read committed")
    one, two = scene.sessions(2)
    seen = one.get(1, selectv=True)
    two.put(1, 99)
    assert committed(two)
    one.put(2, seen)
    demand(not committed(one), "T1", "a row that SELECTV has shown was not there any more")


def a_row_is_deleted_twice() -> None:
    """T2: the master recognises what no replay can help."""
    scene = Scene("default")
    stage = scene.stage
    delete = {"table": "t", "op": "delete", "key": {"id": 1}, "expect": stage.genid(1)}
    asked = stage.ask({"transaction": [delete, delete], "on_conflict": "replay"})
    stage.until(lambda: bool(stage.results.get(asked)), "an answer")
    outcome = stage.results[asked][0]
    demand(outcome.final, "T2", "what can never be committed is to be replayed")
    assert outcome.code == "40000", outcome


def the_last_money_is_spent_twice() -> None:
    """T2 ⚠ (races 11b): the client was told UPDATE 1, and ships the goods."""
    scene = Scene("read committed")
    one, two = scene.sessions(2)
    told = one.update(lambda row: row["value"] - 10, lambda r: r["id"] == 1 and r["value"] >= 10)
    two.put(1, 0)
    assert told == 1
    assert committed(two)
    ended = committed(one)
    demand(not ended, "T2", "the client was told UPDATE 1, and UPDATE 0 was committed")
