"""Goal: no number of a sequence is given twice, and one that was told stays (T2, T8), whatever
nodes, masters, requests and transactions go through; gaps there may be.

Method: random histories of sessions on two replicants and of change requests that leave the column
out, in virtual time: transactions that are rolled back, or run again since others have changed
their rows; requests that come twice; masters that crash with what they have not told; replicants
that crash with what they have taken. Then each rule is turned off, and the harm is there.
LEASEHOLD_SEED replays a history.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from leasehold.model.errors import Refused
from leasehold.transaction.isolation import ISOLATION, Level
from tests.isolation.rule_off import harm_shown
from tests.isolation.sequence_value_stories import (
    a_told_number_stays_in_a_replay,
    crash,
    numbers_from_before_a_restart_are_not_given,
)
from tests.isolation.sql_stage import SQL_NODES, SqlScene, SqlStage
from tests.isolation.sql_told import BEGIN
from tests.models.mutants import client, transaction
from tests.models.mutants.client import SequenceValueRules
from tests.models.mutants.transaction import VerifyRules
from tests.models.summary import AddLine, Tell
from tests.models.switches import switches_off
from tests.simulation.harm import demand
from tests.support.sql_session.sql_client import SqlClient

SEED: Final = int(os.environ.get("LEASEHOLD_SEED", "1"))
HISTORIES: Final = 6
STEPS: Final = 220
SEEING_OWN: Final = [level for level in Level if ISOLATION[level].own_writes]


class Open(NamedTuple):
    """A transaction that goes on; `told`: (row's name, its number)."""

    client: SqlClient
    node: str
    told: list[tuple[str, int]]


class History:
    def __init__(self, folder: Path, seed: int) -> None:
        self.stage = SqlStage(folder)
        self.stage.repeats = 0.25
        self.rng = random.Random(seed)
        self.open: list[Open] = []
        self.given: list[int] = []
        self.committed: dict[str, int] = {}
        self.unsure: dict[str, int] = {}
        self.asked: list[bytes] = []
        self.names = 0
        self.crashes = 0
        self.replays = 0
        self.once("create table numbered (id bigserial primary key, v text unique)")
        self.once("create table busy (k int primary key, n int); insert into busy values (1, 0)")

    def once(self, text: str, node: str = "r1") -> list[Any]:
        return self.stage.ask_sql(node, text)

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def step(self) -> None:
        chance = self.rng.random()
        if chance < 0.02:
            self.crash_master()
        elif chance < 0.035:
            self.crash_replicant(self.rng.choice(SQL_NODES))
        elif chance < 0.2:
            fields = {"table": "numbered", "op": "insert", "values": {"v": self.name()}}
            self.asked.append(self.stage.ask(fields))
        elif chance < 0.4 or not self.open:
            self.begin()
        else:
            self.go_on(self.rng.choice(self.open))

    def begin(self) -> None:
        node = self.rng.choice(SQL_NODES)
        client = SqlClient(self.stage, node)
        try:
            client.ask(BEGIN[self.rng.choice(SEEING_OWN)])
        except Refused:
            client.session.close()
            return
        self.open.append(Open(client, node, []))

    def go_on(self, one: Open) -> None:
        what = self.rng.choice(("insert", "insert", "busy", "end"))
        try:
            if what == "insert":
                self.insert(one)
            elif what == "busy":
                more = "(select max(n) from busy) + 1"
                one.client.ask(f"update busy set n = {more} where k = 1")
            else:
                self.end(one)
        except Refused as error:
            demand(error.sqlstate != "23505", "T8", "a number came twice")
            self.leave(one)

    def insert(self, one: Open) -> None:
        names = [self.name() for _ in range(self.rng.choice((1, 1, 3, 40)))]
        rows = ", ".join(f"('{name}')" for name in names)
        found = one.client.ask(f"insert into numbered (v) values {rows} returning v, id")
        one.told.extend(found)
        self.given += [number for _, number in found]

    def end(self, one: Open) -> None:
        if self.rng.random() < 0.2:
            one.client.ask("rollback")
            self.leave(one)
            return
        before = sum(map(len, self.stage.results.values()))
        one.client.ask("commit")
        self.replays += sum(map(len, self.stage.results.values())) > before + 1
        self.committed |= dict(one.told)
        self.leave(one)

    def leave(self, one: Open) -> None:
        self.open.remove(one)
        one.client.session.close()

    def crash_master(self) -> None:
        master = self.stage.master
        if master is None:
            return
        master.crash()
        self.crashes += 1
        self.stage.until(lambda: self.stage.master not in (None, master), "another", "L1", 60_000)
        self.stage.restart(master.settings.name)

    def crash_replicant(self, name: str) -> None:
        for one in [each for each in self.open if each.node == name]:
            self.leave(one)
        crash(self.stage, name)
        self.crashes += 1

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
        for one in list(self.open):
            self.leave(one)
        for asked in self.asked:
            assert self.stage.answer(asked).lsn, "a row without a number gets one"
        self.stage.passing(500)

    def check(self) -> None:
        rows = [self.once("select v, id from numbered", node) for node in SQL_NODES]
        assert sorted(rows[0]) == sorted(rows[1]), "T8: the same on every node"
        kept = dict(rows[0])
        assert len(self.given) == len(set(self.given)), "T8: a number was told twice"
        for name, number in self.committed.items():
            assert kept.pop(name) == number, "T2: a number that was told stays"
        # What is left was asked for without SQL.
        assert len(kept) == len(self.asked)
        assert not set(kept.values()) & set(self.given), "T8"


def test_no_number_is_given_twice(tmp_path: Path, tell: Tell) -> None:
    given = committed = crashes = repeated = replays = 0
    for number in range(HISTORIES):
        history = History(tmp_path / str(number), SEED * 1_000 + number)
        try:
            history.run()
            history.check()
        finally:
            history.stage.close()
        given += len(history.given)
        committed += len(history.committed)
        crashes += history.crashes
        repeated += history.stage.repeated
        replays += history.replays
    assert min(committed, crashes, repeated, replays) > 0, "the histories have something to say"
    tell(
        f"numbers of sequences: {HISTORIES} histories, {given} told, {committed} committed,"
        f" {replays} commits that ran again, {repeated} requests twice, {crashes} crashes (seed"
        f" {SEED})"
    )


# ------------------------------------------------------------------ rules turned off


class Case(NamedTuple):
    invariant: str
    story: Callable[[SqlScene], None]
    rules: SequenceValueRules | VerifyRules


OFF: Final = [
    Case("T2", a_told_number_stays_in_a_replay, SequenceValueRules(drawn_is_drawn_again=False)),
    Case(
        "T8",
        numbers_from_before_a_restart_are_not_given,
        SequenceValueRules(epochs_are_looked_at=False),
    ),
    Case(
        "T8",
        numbers_from_before_a_restart_are_not_given,
        VerifyRules(setting_begins_an_epoch=False),
    ),
]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[], SqlScene]]:
    made: list[SqlScene] = []

    def scene() -> SqlScene:
        made.append(SqlScene(tmp_path / str(len(made)), Level.READ_COMMITTED.value))
        made[-1].stage.sequence_values.clear()
        return made[-1]

    yield scene
    for each in made:
        each.close()


def words(case: Case) -> str:
    return switches_off(case.rules)


@pytest.mark.parametrize("case", OFF, ids=words)
def test_harm_with_the_rule_off(case: Case, make: Any, model_line: AddLine) -> None:
    def run() -> None:
        with client.broken(case.rules), transaction.broken(case.rules):
            case.story(make())

    model_line(harm_shown(case.invariant, words(case), case.story, run))


@pytest.mark.parametrize("case", OFF[:2], ids=lambda c: c.story.__name__)
def test_no_harm_with_every_rule(case: Case, make: Any) -> None:
    case.story(make())
