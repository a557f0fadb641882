"""Goal: updates that are computed of the very row that they change conflict with nobody, where
nothing else of their transaction rests on that row; and where something does, a replay says what is
true (transaction/DESIGN.md, "Computed at commit").

Method: sessions on two replicants in virtual time; what is committed is compared with the same
transactions one after the other. LEASEHOLD_SEED replays a history.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from leasehold.model.errors import Refused
from leasehold.transaction.isolation import Level
from tests.isolation.at_commit_stories import ending
from tests.isolation.said import added, id_is
from tests.isolation.sql_stage import SQL_NODES, SqlScene
from tests.isolation.sql_told import SqlTold
from tests.isolation.test_sql_comdb2 import Make, code_of, replays, scene
from tests.models.summary import Tell

__all__ = ["scene"]

SEED: Final = int(os.environ.get("LEASEHOLD_SEED", "1"))
NEWEST: Final = [Level.DEFAULT, Level.READ_COMMITTED]
AT_ONCE: Final = 8
TRANSACTIONS: Final = 40
"""Of a history; each adds a bit of its own."""


def with_log(stands: SqlScene) -> SqlScene:
    stands.ask("r1", "create table log (n bigint primary key, seen bigint)")
    return stands


def log(stands: SqlScene) -> list[tuple[int, int]]:
    return stands.ask("r1", "select n, seen from log order by n")


@pytest.mark.parametrize("level", NEWEST)
def test_all_count_one_row_up_and_nobody_runs_again(level: Level, scene: Make) -> None:
    stands = scene(level)
    sessions = stands.sessions(AT_ONCE)
    for number, session in enumerate(sessions):
        assert session.update(added(1 << number), id_is(1)) == 1
    for session in sessions:
        assert replays(stands, session.commit) == 0
    assert stands.rows() == {1: 10 + (1 << AT_ONCE) - 1, 2: 20}


@pytest.mark.parametrize("level", NEWEST)
def test_transfers_pass_each_other(level: Level, scene: Make) -> None:
    stands = scene(level)
    sessions = stands.sessions(4)
    for number, session in enumerate(sessions):
        here, there = (1, 2) if number % 2 else (2, 1)
        session.update(added(-number), id_is(here))
        session.update(added(number), id_is(there))
    for session in sessions:
        assert replays(stands, session.commit) == 0
    assert stands.rows() == {1: 10 - 1 + 2 - 3, 2: 20 + 1 - 2 + 3}


TPCB: Final = (
    "update pgbench_accounts set abalance = abalance + {0} where aid = {1}",
    "select abalance from pgbench_accounts where aid = {1}",
    "update pgbench_tellers set tbalance = tbalance + {0} where tid = 1",
    "update pgbench_branches set bbalance = bbalance + {0} where bid = 1",
    "insert into pgbench_history values (1, 1, {1}, {0}, current_timestamp)",
)


@pytest.mark.parametrize("level", NEWEST)
def test_pgbench_runs_nothing_again(level: Level, scene: Make) -> None:
    stands = scene(level)
    for name, key, balance in (("accounts", "aid", "a"), ("tellers", "tid", "t")):
        stands.ask(
            "r1", f"create table pgbench_{name} ({key} int primary key, {balance}balance int)"
        )
        stands.ask("r1", f"insert into pgbench_{name} select n, 0 from generate_series(1, 9) n")
    stands.ask("r1", "create table pgbench_branches (bid int primary key, bbalance int)")
    stands.ask("r1", "insert into pgbench_branches values (1, 0)")
    columns = "tid int, bid int, aid int, delta int, mtime timestamp"
    stands.ask("r1", f"create table pgbench_history ({columns})")
    sessions = stands.sessions(AT_ONCE)
    # Whoever is shown the account that he has changed has it for himself: what was told holds.
    accounts = AT_ONCE if level is Level.READ_COMMITTED else 3
    for text in TPCB:
        for number, session in enumerate(sessions, 1):
            session.ask(text.format(100 - 30 * number, number % accounts + 1))
    assert [replays(stands, session.commit) for session in sessions] == [0] * AT_ONCE
    wanted = sum(100 - 30 * number for number in range(1, AT_ONCE + 1))
    for column, table in (("abalance", "accounts"), ("tbalance", "tellers"), ("delta", "history")):
        assert stands.ask("r2", f"select sum({column}) from pgbench_{table}") == [(wanted,)]
    assert stands.ask("r2", "select bbalance from pgbench_branches") == [(wanted,)]


UPDATE: Final = "update test set value = value + 5 where id = 1"
OTHERS: Final = "update test set value = value + 100"

BESIDE: Final = [
    "select value from test where id = 2",
    "insert into log values (1, 1)",
    "insert into test values (3, 30)",
    "update test set value = 5 where id = 2",
    "update test set value = value + 1 where id = 2",
    "insert into log select 1, value from test where id = 2",
]


@pytest.mark.parametrize("level", NEWEST)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_what_reads_other_rows_leaves_it_computed(level: Level, first: bool, scene: Make) -> None:
    """Behind the update its row keeps others from what is read then, where that is a promise."""
    for text in BESIDE:
        again = not first and level is Level.READ_COMMITTED and text in BESIDE_READS
        stands = with_log(scene(level))
        (one,) = stands.sessions(1)
        for said in (text, UPDATE) if first else (UPDATE, text):
            one.ask(said)
        stands.ask("r2", f"{OTHERS} where id = 1")
        assert replays(stands, one.commit) == again, text
        assert stands.rows()[1] == 115


BESIDE_READS: Final = (BESIDE[0], BESIDE[-1])
RESTS_ON_IT: Final = [
    "insert into log select 1, value from test where id = 1",
    "insert into log select 1, count(*) from test where value > 110",
    "insert into log values (1, (select value from test where id = 1))",
    "insert into log values (1, 1) returning (select count(*) from test)",
    "insert into test values (1, 0) on conflict (id) do update set value = test.value * 3",
    "update test set value = 7 where id = 1",
    "update test set value = value * 2 where id = 1 and value > 0",
    "update test set value = value * 2",
    "update test set value = (select max(value) from test) where id = 2",
    "update test t set value = t.value + u.value from test u where t.id = 2 and u.id = 1",
    "delete from test where id = 2 and exists (select from test where value > 110)",
    "delete from test where value > 1000",
    "delete from test where id = 1",
    "selectv value from test where id = 1",
    "select value from test where id = 1 for update",
]


def ended(stands: SqlScene, texts: tuple[str, ...], *, between: bool) -> Any:
    """What is there after the texts in one transaction, and the change of another one while it runs
    or before it; or the SQLSTATE."""
    if not between:
        stands.ask("r2", f"{OTHERS} where id = 1")
    (one,) = stands.sessions(1)
    try:
        for text in texts:
            one.ask(text)
        if between:
            stands.ask("r2", f"{OTHERS} where id = 1")
        one.commit()
    except Refused as error:
        return error.sqlstate
    return stands.rows(), log(stands)


@pytest.mark.parametrize("level", NEWEST)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("text", RESTS_ON_IT)
def test_what_rests_on_the_row_runs_again(
    text: str, first: bool, level: Level, scene: Make
) -> None:
    texts = (text, UPDATE) if first else (UPDATE, text)
    one_by_one = ended(with_log(scene(level)), texts, between=False)
    interleaved = with_log(scene(level))
    found: list[Any] = []
    again = replays(interleaved, lambda: found.append(ended(interleaved, texts, between=True)))
    assert found[0] in ("40001", one_by_one)
    assert again or isinstance(found[0], str)


def test_it_goes_on_from_an_earlier_update_of_the_row(scene: Make) -> None:
    stands = scene(Level.READ_COMMITTED)
    (one,) = stands.sessions(1)
    one.ask("update test set value = value + 1 where id = 1")
    one.ask("update test set value = value * 2 where id = 1")
    stands.ask("r2", f"{OTHERS} where id = 1")
    assert replays(stands, one.commit) == 0
    assert stands.rows()[1] == 222


def test_who_does_not_see_his_own_writes_does_not_go_on_from_them(scene: Make) -> None:
    stands = scene(Level.DEFAULT)
    (one,) = stands.sessions(1)
    one.ask("update test set value = value + 1 where id = 1")
    one.ask("update test set value = value * 2 where id = 1")
    stands.ask("r2", f"{OTHERS} where id = 1")
    assert replays(stands, one.commit) == 1
    assert stands.rows()[1] == 220


def test_a_row_of_its_own_is_as_it_has_made_it(scene: Make) -> None:
    stands = scene(Level.READ_COMMITTED)
    (one,) = stands.sessions(1)
    one.ask("insert into test values (3, 30)")
    one.ask("update test set value = value + 1 where id = 3")
    one.ask("delete from test where id = 2; insert into test values (2, 50)")
    one.ask("update test set value = value + 1 where id = 2")
    one.commit()
    assert stands.rows() == {1: 10, 2: 51, 3: 31}


SAVED: Final[list[tuple[tuple[str, ...], int, int]]] = [
    (("savepoint s", UPDATE, "rollback to s", UPDATE), 0, 115),
    ((UPDATE, "savepoint s", UPDATE, "rollback to s", UPDATE), 0, 120),
    ((UPDATE, "savepoint s", "delete from test", "rollback to s"), 1, 115),
    ((UPDATE, "savepoint s", "select 1 / 0", "rollback to s"), 1, 115),
]


@pytest.mark.parametrize(("texts", "again", "value"), SAVED)
def test_what_was_taken_back(texts: tuple[str, ...], again: int, value: int, scene: Make) -> None:
    stands = scene(Level.READ_COMMITTED)
    (one,) = stands.sessions(1)
    for text in texts:
        if "/ 0" in text:
            assert code_of(partial(one.ask, text)) == "22012"
        else:
            one.ask(text)
    stands.ask("r2", f"{OTHERS} where id = 1")
    assert replays(stands, one.commit) == again
    assert stands.rows() == {1: value, 2: 20}


OTHERWISE: Final = [
    ("delete from test where id = 1", "40001"),  # UPDATE 1 was told
    ("update test set value = 9223372036854775807 where id = 1", "40001"),  # as was no 22003
    ("update test set value = 999 where id = 1", "23514"),  # which may wait for COMMIT (T4)
]


@pytest.mark.parametrize(("others", "code"), OTHERWISE)
@pytest.mark.parametrize("level", NEWEST)
def test_where_it_can_not_be_done_on_the_newest_row(
    level: Level, others: str, code: str, scene: Make
) -> None:
    stands = scene(level)
    if code == "23514":
        stands.ask("r1", "alter table test add constraint c check (value < 1000)")
    (one,) = stands.sessions(1)
    one.put(2, 21)
    assert one.update(added(5), id_is(1)) == 1
    stands.ask("r2", others)
    before = stands.rows()
    assert code_of(one.commit) == code
    assert stands.rows() == before, "nothing of it was applied"


CONSTRAINTS: Final = [
    ("h (id int primary key, a int)", "create index on h ((100 / a))", "22012"),
    ("h (id int primary key, a int, check (100 / a > 0))", "", "22012"),
    ("h (id int primary key, a int)", "create index on h (a) where 100 / a > 0", "22012"),
    ("h (id int primary key, a int, check (a > 0))", "", "23514"),
]


@pytest.mark.parametrize("block", [True, False], ids=["block", "alone"])
@pytest.mark.parametrize(("table", "more", "code"), CONSTRAINTS)
def test_what_no_replay_would_find_out_ends_it(
    table: str, more: str, code: str, block: bool, scene: Make
) -> None:
    """Checks and entries of indexes are the master's: his word is final, and not told as 40001. In
    a block another one's update is what breaks them: its own would be told at its statement."""
    stands = scene(Level.READ_COMMITTED)
    stands.ask("r1", f"create table {table}")
    stands.ask("r1", more or "select 1")
    stands.ask("r1", f"insert into h values (1, {2 if block else 1})")
    one = stands.session("r2")
    found: list[str] = []

    def run() -> None:
        if block:
            one.begin()
            one.ask("update h set a = a - 1 where id = 1")
            stands.ask("r1", "update h set a = 1 where id = 1")
        text = "commit" if block else "update h set a = a - 1 where id = 1"
        found.append(code_of(lambda: one.ask(text)))

    assert replays(stands, run) == 0
    assert found == [code]


GENERATED: Final = "h (id int primary key, a int, g int generated always as (100 / a) stored)"


def test_a_generated_column_that_can_not_be_computed_by_now_runs_again(scene: Make) -> None:
    stands = scene(Level.READ_COMMITTED)
    stands.ask("r1", f"create table {GENERATED}")
    stands.ask("r1", "insert into h (id, a) values (1, 2)")
    (one,) = stands.sessions(1)
    one.ask("update h set a = a - 1 where id = 1")
    stands.ask("r2", "update h set a = 1 where id = 1")
    found: list[str] = []
    assert replays(stands, lambda: found.append(code_of(one.commit))) == 1
    assert found == ["40001"]


@pytest.mark.parametrize("level", [Level.SNAPSHOT, Level.SERIALIZABLE, Level.LINEARIZABLE])
def test_at_a_level_of_one_moment_the_row_is_the_one_that_was_seen(
    level: Level, scene: Make
) -> None:
    stands = scene(level)
    (one,) = stands.sessions(1)
    one.update(added(5), id_is(1))
    stands.ask("r2", f"{OTHERS} where id = 1")
    if level is Level.SNAPSHOT:
        assert code_of(one.commit) == "40001"
        return
    assert replays(stands, one.commit) == 1
    assert stands.rows()[1] == 115


def test_generated_columns_and_unique_ones_are_of_the_newest_row(scene: Make) -> None:
    stands = scene(Level.READ_COMMITTED)
    columns = "id int primary key, a int unique, twice int generated always as (a * 2) stored"
    stands.ask("r1", f"create table g ({columns}, note text)")
    stands.ask("r1", "insert into g (id, a, note) values (1, 1, 'x'), (2, 7, 'y')")
    sessions = stands.sessions(3)
    for session in sessions:
        session.ask("update g set a = a + 3, note = note || 'z' where id = 1")
    assert sum(replays(stands, session.commit) for session in sessions[:1]) == 0
    assert code_of(sessions[1].commit) == "23505"
    stands.ask("r1", "delete from g where id = 2")
    assert replays(stands, sessions[2].commit) == 0
    assert stands.ask("r2", "select * from g") == [(1, 7, 14, "xzz")]


@pytest.mark.parametrize("between", ["rename column value to worth", "add column more int"])
def test_it_means_the_columns_of_its_own_version(between: str, scene: Make) -> None:
    """A version that was pinned before the change; others write under the next one already."""
    stands = scene(Level.READ_COMMITTED)
    (one,) = stands.sessions(1)
    one.update(added(5), id_is(1))
    stands.ask("r2", f"set leasehold.wait_for_jobs = off; alter table test {between}")
    stands.stage.passing(300)
    name = "worth" if "worth" in between else "value"
    stands.ask("r2", f"update test set {name} = {name} + 100 where id = 1")
    assert replays(stands, one.commit) == 0
    assert stands.ask("r2", f"select {name} from test where id = 1") == [(115,)]


# ------------------------------------------------------------------ histories


@pytest.fixture
def history(tmp_path: Path) -> Iterator[Callable[[int, Level], SqlScene]]:
    made: list[SqlScene] = []

    def make(seed: int, level: Level) -> SqlScene:
        made.append(with_log(SqlScene(tmp_path / f"{seed}", level.value)))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
def test_what_was_seen_is_what_was_committed(
    seed: int, history: Callable[[int, Level], SqlScene], tell: Tell
) -> None:
    """Each transaction adds a bit of its own to a row; some write down what that has made of it, or
    are shown it. What they wrote or saw says who had committed before them: of two, one has all of
    the other. Who was shown what others have overtaken, of it or behind it, does not commit."""
    stands = history(seed, Level.READ_COMMITTED)
    stands.ask("r1", "update test set value = 0")
    chance = random.Random(seed)

    committed: list[int] = []
    shown: list[tuple[int, int]] = []
    looked: set[int] = set()

    def run() -> None:
        waiting = list(range(TRANSACTIONS))
        running: list[tuple[int, SqlTold, list[str]]] = []
        told: dict[int, int] = {}
        while waiting or running:
            if waiting and len(running) < 4:
                node, number = chance.choice(SQL_NODES), waiting.pop(0)
                running.append((number, stands.session(node).begin(), texts(chance, number)))
            number, session, left = chance.choice(running)
            if left:
                text = left.pop(0)
                rows = session.ask(text).rows
                if text.startswith("select"):
                    looked.add(number)
                if text == SHOWN:
                    told[number] = int(dict(rows)[1])
                continue
            running.remove((number, session, left))
            code = ending(session.commit)
            assert code in ("", "40001")
            assert not code or number in looked, "nobody else is refused"
            if not code:
                committed.append(number)
                shown.extend((number, told[number]) for _ in range(number in told))

    again = replays(stands, run)
    assert len(committed) > TRANSACTIONS // 2
    for number, value in [*log(stands), *shown]:
        assert value >> number & 1, "its own bit"
    seen = sorted({value for _, value in [*log(stands), *shown]})
    for one, other in pairwise(seen):
        assert one & other == one, (seed, seen)
    assert stands.rows()[1] == sum(1 << number for number in committed), "no update is lost"
    written = len(log(stands))
    tell(
        f"seed {seed}: {len(committed)} of {TRANSACTIONS} commit, {written} written down,"
        f" {len(shown)} shown, {again} replays"
    )


SHOWN: Final = "select id, value from test"


def texts(chance: random.Random, number: int) -> list[str]:
    made = [f"update test set value = value + {1 << number} where id = 1"]
    beside = [f"update test set value = value + {number} where id = 2"]
    beside += [SHOWN] if chance.random() < 0.3 else ["select count(*) from log"]
    made += chance.sample(beside, chance.randrange(3))
    if chance.random() < 0.4:
        made.append(f"insert into log select {number}, value from test where id = 1")
    return made
