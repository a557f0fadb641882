"""Goal: INSERT … ON CONFLICT never ends in a duplicate of what it looks for. A row that came under
its key while it ran is a verify error: its statement runs again and finds it, or the answer is
40001 where what was told would not hold, or at a level of one moment.

Method: sessions on two replicants in virtual time, which ask for the same fresh keys beside each
other. LEASEHOLD_SEED replays an interleaving.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from leasehold.transaction.isolation import ISOLATION, Level
from tests.isolation.at_commit_stories import ending
from tests.isolation.sql_stage import SqlScene
from tests.isolation.test_sql_comdb2 import Make, code_of, replays, scene
from tests.models.mutants.transaction import VerifyRules, broken
from tests.models.summary import Tell

__all__ = ["scene"]

SEED: Final = int(os.environ.get("LEASEHOLD_SEED", "1"))
LEVELS: Final = list(Level)
TABLE: Final = (
    "create table k (id bigint primary key, u text constraint k_u unique, v text, n bigint,"
    " unique (u, v))"
)


class Case(NamedTuple):
    """`told`: does each replay come to what was told? `rows`: that are there after two of it."""

    text: str
    told: bool
    rows: list[tuple[Any, ...]]


ONE: Final = "insert into k values (7, 'x', 'y', 1)"
TWO: Final = "insert into k values (7, 'x', 'y', 1), (8, 'z', 'y', 1)"
SELECT: Final = "insert into k select n, 'x' || n, 'y', 1 from generate_series(7, 9) n"
ADDED: Final = "do update set n = k.n + 1"
CASES: Final = [
    Case(f"{ONE} on conflict (id) {ADDED}", True, [(7, 2)]),
    Case(f"{ONE} on conflict on constraint k_pkey {ADDED}", True, [(7, 2)]),
    Case(f"{ONE} on conflict (u) {ADDED}", True, [(7, 2)]),
    Case(f"{ONE} on conflict on constraint k_u {ADDED}", True, [(7, 2)]),
    Case(f"{ONE} on conflict (u, v) {ADDED}", True, [(7, 2)]),
    Case(f"{TWO} on conflict (u) {ADDED}", True, [(7, 2), (8, 2)]),
    Case(f"{SELECT} on conflict (id) {ADDED}", True, [(7, 2), (8, 2), (9, 2)]),
    Case(f"{SELECT} on conflict (u) {ADDED}", True, [(7, 2), (8, 2), (9, 2)]),
    Case(f"{ONE} on conflict (id) {ADDED} where k.n < 1", False, [(7, 1)]),
    Case(f"{ONE} on conflict (id) {ADDED} returning n", False, [(7, 1)]),
    Case(f"{ONE} on conflict do nothing", False, [(7, 1)]),
    Case(f"{ONE} on conflict (id) do nothing", False, [(7, 1)]),
    Case(f"{ONE} on conflict (u) do nothing", False, [(7, 1)]),
    Case(f"{TWO} on conflict do nothing", False, [(7, 1), (8, 1)]),
    Case(f"{SELECT} on conflict do nothing", False, [(7, 1), (8, 1), (9, 1)]),
]


def with_table(stands: SqlScene) -> SqlScene:
    stands.ask("r1", TABLE)
    return stands


def rows(stands: SqlScene) -> list[tuple[Any, ...]]:
    return stands.ask("r2", "select id, n from k order by id")


@pytest.mark.parametrize("level", LEVELS)
def test_two_of_one_fresh_key_in_blocks(level: Level, scene: Make) -> None:
    stands = with_table(scene(level))
    for text, told, twice in CASES:
        one, two = stands.sessions(2)
        assert one.ask(text).rowcount == two.ask(text).rowcount
        one.commit()
        found: list[str] = []
        again = replays(stands, lambda two=two, found=found: found.append(ending(two.commit)))  # type: ignore[misc]
        runs_again = ISOLATION[level].replays
        assert (found, again) == ([""] if told and runs_again else ["40001"], int(runs_again)), text
        once = [(key, 1) for key, _ in twice]
        assert rows(stands) == (twice if runs_again else once), text
        stands.ask("r1", "delete from k")


@pytest.mark.parametrize("level", LEVELS)
def test_the_arbiter_is_asked_before_a_duplicate_is_told(level: Level, scene: Make) -> None:
    """The same row, equal by its primary key and by another unique index, too, which nobody named:
    by the one that was named there is something to do, and no error."""
    for text in (f"{ONE} on conflict (u) {ADDED}", f"{ONE} on conflict (id) {ADDED}"):
        stands = with_table(scene(level))
        one, two = stands.sessions(2)
        one.ask(text)
        two.ask(text)
        one.commit()
        assert ending(two.commit) == ("" if ISOLATION[level].replays else "40001")


OTHERWISE: Final = [
    (ONE, "insert into k values (8, 'x', 'z', 5) on conflict (id) do nothing"),
    (ONE, "insert into k values (7, 'z', 'z', 5) on conflict (u) do nothing"),
    (ONE, "insert into k values (9, 'a', 'a', 5) on conflict do nothing; insert into k values (7)"),
]


@pytest.mark.parametrize("level", [Level.READ_COMMITTED, Level.SNAPSHOT])
@pytest.mark.parametrize(("others", "text"), OTHERWISE)
def test_a_duplicate_of_what_no_arbiter_looks_for_is_one(
    others: str, text: str, level: Level, scene: Make
) -> None:
    """As in PostgreSQL: only what ON CONFLICT names is no error."""
    stands = with_table(scene(level))
    (one,) = stands.sessions(1)
    for part in text.split("; "):
        one.ask(part)
    stands.ask("r2", others)
    assert code_of(one.commit) == "23505"
    assert rows(stands) == [(7, 1)]


def test_what_it_has_inserted_itself_is_in_no_other_ones_way(scene: Make) -> None:
    """Where own writes are not seen, a second upsert of the key inserts once more: no replay would
    make that a verify error of others."""
    stands = with_table(scene(Level.DEFAULT))
    (one,) = stands.sessions(1)
    for _ in range(2):
        one.ask(f"{ONE} on conflict (id) {ADDED}")
    found: list[str] = []
    assert replays(stands, lambda: found.append(code_of(one.commit))) == 0
    assert found == ["23505"]


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_changes_for_who_meets_nobody(level: Level, scene: Make) -> None:
    stands = with_table(scene(level))
    for case in CASES:
        for n in (1, 2):
            (one,) = stands.sessions(1)
            one.ask(case.text)
            assert replays(stands, one.commit) == 0, (case.text, n)
        stands.ask("r1", "delete from k")


def test_the_row_has_gone_again_before_the_commit(scene: Make) -> None:
    """What came and went is in nobody's way, at any level that looks at what is newest."""
    stands = with_table(scene(Level.READ_COMMITTED))
    (one,) = stands.sessions(1)
    one.ask(f"{ONE} on conflict do nothing")
    stands.ask("r2", ONE)
    stands.ask("r2", "delete from k")
    assert replays(stands, one.commit) == 0
    assert rows(stands) == [(7, 1)]


def test_what_was_taken_back_is_not_verified(scene: Make) -> None:
    stands = with_table(scene(Level.READ_COMMITTED))
    (one,) = stands.sessions(1)
    one.ask("savepoint s")
    one.ask(f"{ONE} on conflict do nothing")
    one.ask("rollback to s")
    one.ask("insert into k values (9, 'a', 'a', 5)")
    stands.ask("r2", ONE)
    assert replays(stands, one.commit) == 0
    assert rows(stands) == [(7, 1), (9, 5)]


def test_without_replays_it_is_40001_at_once(scene: Make) -> None:
    stands = with_table(scene(Level.READ_COMMITTED, verify_retry=False))
    one, two = stands.sessions(2)
    one.ask(f"{ONE} on conflict (u) {ADDED}")
    two.ask(f"{ONE} on conflict (u) {ADDED}")
    one.commit()
    found: list[str] = []
    assert replays(stands, lambda: found.append(code_of(two.commit))) == 0
    assert found == ["40001"]


OFF: Final = VerifyRules(arbiters_are_verified=False)


@pytest.mark.parametrize("arbiter", ["(id)", "(u)"])
def test_off_it_ends_in_a_duplicate(arbiter: str, tmp_path: Path) -> None:
    stands = with_table(SqlScene(tmp_path, "read committed"))
    one, two = stands.sessions(2)
    for session in (one, two):
        session.ask(f"{ONE} on conflict {arbiter} {ADDED}")
    with broken(OFF):
        one.commit()
        assert code_of(two.commit) == "23505"
    stands.close()


# ------------------------------------------------------------------ interleavings

SESSIONS: Final = 6
TRANSACTIONS: Final = 30
KEYS: Final = 3
COUNTED: Final = [
    "insert into k values ({0}, 'u{0}', 'v', 1) on conflict (id) do update set n = k.n + 1",
    "insert into k values ({0}, 'u{0}', 'v', 1) on conflict (u) do update set n = k.n + 1",
    "insert into k values ({0}, 'u{0}', 'v', 1) on conflict (u, v) do update set n = 1 + k.n",
    "insert into k select {0}, 'u' || {0}, 'v', 1 on conflict (id) do update set n = k.n + 1",
]
NOT_COUNTED: Final = [
    "insert into k values ({0}, 'u{0}', 'v', 0) on conflict do nothing",
    "insert into k values ({0}, 'u{0}', 'v', 0) on conflict (u) do nothing",
    "delete from k where id = {0} and n = 0",
]


class Crowd:
    """Sessions that each run one or two statements on a few keys, and commit; in any order."""

    def __init__(self, stands: SqlScene, chance: random.Random) -> None:
        self._chance = chance
        self._clients = [stands.session(f"r{1 + n % 2}") for n in range(SESSIONS)]
        self._open: dict[int, list[tuple[int, int]]] = {}  # (key, counts) of each statement
        self.counted = Counter[int]()
        self.ends = Counter[str]()

    def run(self) -> None:
        begun = 0
        while begun < TRANSACTIONS or self._open:
            number = self._chance.randrange(SESSIONS)
            if number in self._open:
                self._step(number)
            elif begun < TRANSACTIONS:
                self._clients[number].begin()
                self._open[number] = []
                begun += 1

    def _step(self, number: int) -> None:
        one, steps = self._clients[number], self._open[number]
        if len(steps) < 2 and (not steps or self._chance.random() < 0.5):
            key, counts = self._chance.randrange(KEYS), int(self._chance.random() < 0.6)
            steps.append((key, counts))
            one.ask(self._chance.choice(COUNTED if counts else NOT_COUNTED).format(key))
            return
        del self._open[number]
        code = ending(one.commit)
        self.ends[code] += 1
        if not code:
            for key, counts in steps:
                self.counted[key] += counts


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
def test_many_upsert_the_same_fresh_keys(seed: int, level: Level, scene: Make, tell: Tell) -> None:
    """Goal: whatever the order, none ends in a duplicate, and each that commits has counted."""
    stands = with_table(scene(level))
    crowd = Crowd(stands, random.Random(f"{seed} {level.value}"))
    crowd.run()
    tell(f"upserts, {level.value}, seed {seed}: {dict(crowd.ends)}")
    if level is Level.DEFAULT:  # a second statement of a transaction does not see the first one's
        assert crowd.ends.keys() <= {"", "40001", "23505", "40000"}
        return
    assert crowd.ends.keys() <= {"", "40001"}
    assert crowd.ends[""] > 0
    assert dict(rows(stands)).items() >= {k: n for k, n in crowd.counted.items() if n}.items()
    assert sum(n for _, n in rows(stands)) == crowd.counted.total()
