"""Goal: a cursor tells what its transaction has committed, however often that ran again, and a
replay contradicts nothing that a client has fetched (T2).

Method: sessions on two replicants in virtual time. Another one changes rows between DECLARE and
COMMIT, so that COMMIT meets a verify error; masters crash before it, and while it is decided.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from leasehold.model.errors import Refused
from leasehold.transaction.isolation import ISOLATION, Level
from tests.isolation.sql_stage import SQL_NODES, SqlScene
from tests.isolation.sql_told import SqlTold
from tests.isolation.test_sql_comdb2 import Make, code_of, replays, scene
from tests.isolation.test_sql_scenarios import changed_master
from tests.models.summary import Tell
from tests.simulation.simulation import MS

__all__ = ["scene"]

REPLAYED: Final = [level for level in Level if ISOLATION[level].replays]
NEWEST: Final = [level for level in REPLAYED if not ISOLATION[level].one_snapshot]
HISTORIES: Final = 40
ORDERED: Final = "select id, value from test order by id"
OTHERS: Final = "update test set value = value + 100 where id = 2"
OWN: Final = "update test set value = (select 5 + value) where id = 2"
"""Not computed at commit: it meets a verify error."""


def five(stands: SqlScene) -> SqlScene:
    stands.ask("r1", "insert into test values (3, 30), (4, 40), (5, 50)")
    return stands


def test_with_hold_shows_what_was_committed(scene: Make) -> None:
    """And not what the attempt had found that was refused."""
    stands = five(scene(Level.READ_COMMITTED))
    one = stands.session("r1").begin()
    one.ask(OWN)
    one.ask(f"declare c scroll cursor with hold for {ORDERED}")
    assert one.ask("fetch c").rows == [(1, 10)]
    stands.ask("r2", OTHERS)
    assert replays(stands, one.commit) == 1
    assert one.ask("fetch all c").rows == [(2, 125), (3, 30), (4, 40), (5, 50)]
    assert one.ask("fetch absolute 2 c").rows == [(2, 125)]
    assert one.ask("select value from test where id = 2").rows == [(125,)]


def test_with_hold_is_not_beside_what_is_computed_at_commit(scene: Make) -> None:
    """Such an update meets no verify error: then nobody would read the cursor's rows anew."""
    stands = five(scene(Level.READ_COMMITTED))
    one = stands.session("r1").begin()
    one.ask("update test set value = value + 5 where id = 2")
    one.ask(f"declare c cursor with hold for {ORDERED}")
    stands.ask("r2", OTHERS)
    one.commit()
    assert one.ask("fetch 2 c").rows == [(1, 10), (2, 125)]


@pytest.mark.parametrize("ends", [False, True])
def test_rows_that_a_client_knows_of_a_held_cursor_stay(ends: bool, scene: Make) -> None:
    """More of them, fewer, others, or the same in another order: 40001, and no cursor is left."""
    for text in (
        "update test set value = 7 where id = 1",
        "delete from test where id = 1",
        "insert into test values (0, 0)",
        *(["insert into test values (6, 60)"] if ends else []),
    ):
        stands = five(scene(Level.READ_COMMITTED))
        one = stands.session("r1").begin()
        one.ask("update test set value = (select value) where id = 3")
        one.ask("declare c cursor with hold for select id, value from test")
        one.ask("move all c" if ends else "move 2 c")
        stands.ask("r2", f"{text}; update test set value = value where id = 3")
        stands.ask("r2", "update test set value = 31 where id = 3")
        assert code_of(one.commit) == "40001", text
        assert code_of(lambda one=one: one.ask("fetch c")) == "34000"  # type: ignore[misc]
        assert not stands.clients[-1].session._cursors.room.bytes_taken


def test_the_room_of_a_cursor_that_is_read_anew_is_given_back(scene: Make) -> None:
    stands = five(scene(Level.READ_COMMITTED))
    session = stands.session("r1")
    client = stands.clients[-1]
    session.ask("declare a cursor with hold for select * from generate_series(1, 2000)")
    before = client.session._cursors.room.bytes_taken
    session.begin()
    session.ask(OWN)
    for name in "bcd":
        session.ask(f"declare {name} cursor with hold for select id, value from test")
        session.ask("savepoint s")
    session.ask("close d; savepoint s; declare d cursor with hold for select 1; rollback to s")
    stands.ask("r2", OTHERS)
    assert replays(stands, session.commit) == 1
    assert dict(session.ask("fetch all b").rows)[2] == 125
    assert session.ask("fetch 2 a").rows == [(1,), (2,)]
    for name in "bc":
        session.ask(f"close {name}")
    assert client.session._cursors.room.bytes_taken == before
    session.ask("close a")
    assert client.session._cursors.room.bytes_taken == 0


def test_a_held_query_that_fails_in_the_replay_commits_nothing(scene: Make) -> None:
    stands = five(scene(Level.READ_COMMITTED))
    one = stands.session("r1").begin()
    one.ask(OWN)
    one.ask("declare c cursor with hold for select 1 / (value - 125) from test")
    stands.ask("r2", OTHERS)
    assert code_of(one.commit) == "40001"
    assert stands.rows()[2] == 120


def test_an_error_that_nobody_reached_is_no_answer(scene: Make) -> None:
    stands = five(scene(Level.READ_COMMITTED))
    one = stands.session("r1").begin()
    one.ask(OWN)
    one.ask("declare c cursor for select 1 / (4 - n) from generate_series(1, 9) as n")
    one.ask("fetch 2 c")
    stands.ask("r2", OTHERS)
    one.commit()
    assert stands.rows()[2] == 125


@pytest.mark.parametrize("level", NEWEST)
@pytest.mark.parametrize("way", ["fetch 2 c", "fetch 1 c", "fetch 4 c", "move 2 c"])
def test_t2_fetched_rows_are_answers_at_every_level(level: Level, way: str, scene: Make) -> None:
    """protocol.md, T2: FETCHed rows as far as the cursor went, unlike those of a plain SELECT."""
    stands = five(scene(level))
    one = stands.session("r1").begin()
    one.ask("update test set value = (select 5 + value) where id = 5")
    one.ask(f"declare c cursor for {ORDERED}")
    one.ask(way)
    stands.ask("r2", "update test set value = value + 100 where id in (2, 5)")
    if way == "fetch 1 c":
        assert replays(stands, one.commit) == 1
        assert stands.rows()[5] == 155
    else:
        assert code_of(one.commit) == "40001"
        assert stands.rows()[5] == 150


@pytest.mark.parametrize("level", REPLAYED)
@pytest.mark.parametrize("hold", ["", "with hold "])
@pytest.mark.parametrize("delay_ms", [0, 20, 60])
def test_the_master_changes_while_a_cursor_is_open(
    level: Level, hold: str, delay_ms: int, scene: Make
) -> None:
    """Before COMMIT, and while its request is on its way or decided and not told."""
    stands = five(scene(level))
    stage = stands.stage
    one = stands.session("r1").begin()
    one.ask(f"declare c scroll cursor {hold}for {ORDERED}")
    one.ask("fetch 3 c")
    master = stage.master
    assert master is not None
    if not delay_ms:
        changed_master(stands)
    assert one.ask("fetch backward c").rows == [(2, 20)]
    assert one.ask("update test set value = (select 99) where id = 2").rowcount == 1
    assert one.ask("fetch forward 2 c").rows == [(3, 30), (4, 40)]
    if delay_ms:
        stage.scheduler.later(delay_ms * MS, master.crash)
    one.commit()
    if delay_ms:
        stage.until(lambda: stage.master not in (None, master), "another", virtual_ms=60_000)
        stage.restart(master.settings.name)
    assert stands.rows() == {1: 10, 2: 99, 3: 30, 4: 40, 5: 50}
    if hold:
        assert one.ask("fetch all c").rows == [(5, 50)]
        assert one.ask("fetch absolute 2 c").rows == [(2, 20)], "it is of its DECLARE"
    else:
        assert code_of(partial(one.ask, "fetch c")) == "34000"


class History:
    """One transaction with a held cursor beside others' writes; what it was told is kept."""

    def __init__(self, stands: SqlScene, level: Level, rng: Random) -> None:
        self.stands, self.rng = stands, rng
        self.own = ISOLATION[level].own_writes
        self.one: SqlTold = stands.session(rng.choice(SQL_NODES)).begin()
        self.told: list[Any] = []

    def run(self) -> str:
        """The SQLSTATE of its end."""
        rng, one = self.rng, self.one
        writes = ["update test set value = (select value + 1) where id = {}", "fetched", "fetch"]
        one.ask(writes[0].format(rng.randint(1, 5)))
        one.ask("declare c cursor with hold for select id, value from test order by id")
        for _ in range(rng.randint(0, 4)):
            text = rng.choice(writes)
            if text == "fetch":
                self.told += one.ask(f"fetch {rng.randint(1, 2)} c").rows
            elif text != "fetched":
                one.ask(text.format(rng.randint(1, 5)))
            elif self.told and len(self.told) < 5:
                one.ask(writes[0].format(self.told[-1][0]))
        for _ in range(rng.randint(0, 2)):
            node, key = rng.choice(SQL_NODES), rng.randint(1, 5)
            self.stands.ask(node, f"update test set value = value + 100 where id = {key}")
        master = self.stands.stage.master
        crashes = rng.random() < 0.3 and master is not None
        if crashes:
            assert master is not None
            self.stands.stage.scheduler.later(rng.choice((1, 30, 80)) * MS, master.crash)
        try:
            one.commit()
            code = "00000"
        except Refused as error:
            code = error.sqlstate
        if crashes:
            assert master is not None
            stage = self.stands.stage
            stage.until(lambda: stage.master not in (None, master), "another", virtual_ms=60_000)
            stage.restart(master.settings.name)
        return code


def test_random_transactions_with_held_cursors(tmp_path: Path, tell: Tell) -> None:
    """What is fetched in all is one state of the table with the transaction's own writes as it had
    made them at DECLARE: no value that only a refused attempt had found, none from before and
    after COMMIT. Others add hundreds, it adds ones, so each value says which it is made of."""
    committed = refused = again = 0
    for seed in range(HISTORIES):
        rng = Random(seed)
        level = rng.choice(REPLAYED)
        stands = SqlScene(tmp_path / str(seed), level.value)
        try:
            five(stands)
            history = History(stands, level, rng)
            codes: list[str] = []
            ran = replays(stands, lambda h=history, c=codes: c.append(h.run()))  # type: ignore[misc]
            again += ran > 0
            if codes != ["00000"]:
                assert codes == ["40001"]
                refused += 1
                continue
            committed += 1
            seen = dict(history.told + history.one.ask("fetch all c").rows)
            now = stands.rows()
            if history.own:
                # Only this transaction's later writes lie between the cursor's rows and the table.
                for key, value in seen.items():
                    assert now[key] // 100 >= value // 100, (seed, level, seen, now)
                    written = now[key] % 10
                    assert value % 10 <= written, (seed, level, seen, now)
                    if value % 10:
                        assert now[key] // 100 == value // 100, (seed, level, seen, now)
        finally:
            stands.close()
    assert min(committed, refused, again) > 0
    ended = f"{committed} committed, {refused} refused, {again} ran again"
    tell(f"transactions with a held cursor: {ended}")
