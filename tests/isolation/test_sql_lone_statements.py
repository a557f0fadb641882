"""Goal: a statement that is a transaction by itself runs again freely as long as its client was not
told what it came to (T2): it ends as if it had come later, with that count or that error, and not
in 40001. What was told already holds, or is 40001.

Method: conversations of the wire on two replicants in virtual time; what others commit comes
between the statement and its commit.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from leasehold.dbapi.connection import Connection
from leasehold.model.records.requests import ChangeRequest, Outcome
from leasehold.pgwire.conversation import Conversation
from leasehold.pgwire.limits import Limits
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession
from tests.isolation.sql_stage import SqlStage, StageNode
from tests.support.pgwire.wire_words import FLUSH, SYNC, bind, execute, parse, query, said

SEED: Final = int(os.environ.get("LEASEHOLD_SEED", "1"))
MAKE: Final = (
    "create table k (id bigint primary key, u text unique, n bigint check (n < 100));"
    " insert into k values (1, 'a', 1), (2, 'b', 2)"
)
INSERT: Final = "insert into k values (7, 'x', 0)"
NOTHING: Final = f"{INSERT} on conflict do nothing"


class Wire:
    """A client of a stage's node."""

    def __init__(self, stage: SqlStage, node: str) -> None:
        self.session = SqlSession(stage.sql_node(node), Plans(), user="me")
        self._said: list[bytes] = []
        defects: list[Exception] = []
        self._conversation = Conversation(self.session, self._said.append, Limits(), defects.append)
        self._conversation.begin(7, b"key!")

    def send(self, *messages: bytes) -> list[str]:
        self._said.clear()
        for message in messages:
            assert self._conversation.receive(message) is None
        return [word for word in said(b"".join(self._said)) if word[0] in "CEDZ"]

    def close(self) -> None:
        self._conversation.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[SqlStage]:
    made = SqlStage(tmp_path)
    made.ask_sql("r1", MAKE)
    yield made
    made.close()


@pytest.fixture
def wire(stage: SqlStage) -> Iterator[Wire]:
    made = Wire(stage, "r2")
    yield made
    made.close()


FRESH: Final = f"{INSERT} on conflict"
CASES: Final = [
    (f"{FRESH} do nothing", INSERT, "C(INSERT 0 0)"),
    (f"{INSERT}, (8, 'y', 0) on conflict (u) do nothing", INSERT, "C(INSERT 0 1)"),
    (f"{FRESH} (u) do update set n = 9", INSERT, "C(INSERT 0 1)"),
    (f"{FRESH} (id) do update set n = 9 where k.n = 5", INSERT, "C(INSERT 0 0)"),
    (f"{FRESH} (id) do update set n = 1 / k.n", INSERT, "E(22012)"),
    ("update k set n = n + 1", "delete from k where id = 1", "C(UPDATE 1)"),
    ("update k set n = n + 1 where id = 1", "delete from k", "C(UPDATE 0)"),
    ("update k set n = n + 1 where id = 1", "update k set n = 99", "E(23514)"),
    ("delete from k where n > 0", "update k set n = 0", "C(DELETE 0)"),
    ("insert into k select 9, 'z', max(n) from k", "delete from k", "C(INSERT 0 1)"),
]
LEVELS: Final = ["read committed", "default", "serializable"]


def then_others(stage: SqlStage, patch: pytest.MonkeyPatch, text: str) -> None:
    """They are asked for `text` right before the next request is sent."""
    submit, left = StageNode.submit, [text]

    def submitted(
        node: StageNode,
        request: ChangeRequest,
        timeout_s: float,
        stopped: Callable[[], bool] | None = None,
    ) -> Outcome:
        if left:
            stage.ask_sql("r1", left.pop())
        return submit(node, request, timeout_s, stopped)

    patch.setattr(StageNode, "submit", submitted)


@pytest.mark.parametrize(("text", "others", "word"), CASES)
def test_by_prepared_statement(
    wire: Wire, stage: SqlStage, text: str, others: str, word: str
) -> None:
    assert wire.send(parse(text), bind(), execute()) == []
    stage.ask_sql("r1", others)
    *_, found, ready = wire.send(SYNC)
    assert (found, ready) == (word, "Z(I)")
    assert wire.send(parse("delete from k where false"), bind(), execute(), SYNC) == AFTER
    assert wire.send(query("delete from k where false")) == AFTER, "the next tag is its own"


AFTER: Final = ["C(DELETE 0)", "Z(I)"]


@pytest.mark.parametrize(("text", "others", "word"), CASES)
def test_by_text(
    wire: Wire,
    stage: SqlStage,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    others: str,
    word: str,
) -> None:
    then_others(stage, monkeypatch, others)
    assert wire.send(query(text)) == [word, "Z(I)"]
    assert wire.send(query("delete from k where false")) == AFTER


@pytest.mark.parametrize("level", LEVELS)
def test_whatever_others_commit_the_rows_are_as_if_it_had_come_later(
    wire: Wire, stage: SqlStage, level: str
) -> None:
    wire.send(query(f"set leasehold.isolation = '{level}'"))
    for text, others, _ in CASES:
        if "max" in text and level != "serializable":
            continue  # what it has only read is of its own moment there
        stage.ask_sql("r1", "delete from k")
        stage.ask_sql("r1", "insert into k values (1, 'a', 1), (2, 'b', 2)")
        wire.send(parse(text), bind(), execute())
        stage.ask_sql("r1", others)
        code = wire.send(SYNC)[-2]
        found = stage.ask_sql("r2", "select * from k order by id")
        stage.ask_sql("r1", "delete from k")
        stage.ask_sql("r1", "insert into k values (1, 'a', 1), (2, 'b', 2)")
        stage.ask_sql("r1", others)
        later = wire.send(query(text))[-2]
        assert code == later, text
        assert found == stage.ask_sql("r2", "select * from k order by id"), text


TOLD: Final = [
    (parse(NOTHING), bind(), execute(), FLUSH),
    (parse("select 1"), bind(), execute(), parse(NOTHING), bind(), execute()),
    (parse(NOTHING), bind(), execute(), parse("select 1"), bind(), execute("", 1)),
    (parse(f"{NOTHING} returning id"), bind(), execute()),
    (query("begin"), parse(NOTHING), bind(), execute()),
]


@pytest.mark.parametrize("messages", TOLD)
def test_what_was_told_or_is_not_all_holds(
    wire: Wire, stage: SqlStage, messages: tuple[bytes, ...]
) -> None:
    wire.send(*messages)
    stage.ask_sql("r1", INSERT)
    in_block = messages[0] == query("begin")
    *_, found, ready = wire.send(query("commit") if in_block else SYNC)
    assert (found, ready) == ("E(40001)", "Z(I)")


@pytest.mark.parametrize("text", [f"{NOTHING}; select 1", f"select 1; {NOTHING}"])
def test_a_text_of_several_is_not_alone(
    wire: Wire, stage: SqlStage, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    then_others(stage, monkeypatch, INSERT)
    assert wire.send(query(text))[-2:] == ["E(40001)", "Z(I)"]


def test_a_connection_of_python_is_told_the_count(
    stage: SqlStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = SqlSession(stage.sql_node("r2"), Plans(), user="me")
    connection = Connection(session, lambda: None, autocommit=True)
    then_others(stage, monkeypatch, INSERT)
    assert connection.execute(NOTHING).rowcount == 0
    assert connection.execute("update k set n = n + 1 where id = 7").rowcount == 1
    connection.close()


def test_a_snapshot_never_runs_again(wire: Wire, stage: SqlStage) -> None:
    wire.send(query("set leasehold.isolation = 'snapshot'"))
    wire.send(parse(NOTHING), bind(), execute())
    stage.ask_sql("r1", INSERT)
    assert wire.send(SYNC)[-2:] == ["E(40001)", "Z(I)"]


def test_the_request_has_one_final_outcome(wire: Wire, stage: SqlStage) -> None:
    """L5: where nothing is left to be done, or the statement fails, that it was given up is
    decided, too."""
    for text in (NOTHING, f"{FRESH} (id) do update set n = 1 / k.n"):
        stage.ask_sql("r1", "delete from k where id = 7")
        wire.send(parse(text), bind(), execute())
        stage.ask_sql("r1", INSERT)
        wire.send(SYNC)
        name, outcomes = list(stage.results.items())[-1]
        assert [o.final for o in outcomes] == [False, True], name


KEYS: Final = 3
ROUNDS: Final = 12
COUNTED: Final = [
    "insert into k values ({0}, 'u{0}', 1) on conflict (id) do update set n = k.n + 1",
    "insert into k values ({0}, 'u{0}', 1) on conflict (u) do update set n = k.n + excluded.n",
]
ELSE: Final = [
    "insert into k values ({0}, 'u{0}', 0) on conflict do nothing",
    "insert into k select {0}, 'u' || {0}, 0 on conflict (u) do nothing",
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("seed", range(SEED, SEED + 2))
def test_of_many_beside_each_other_each_is_done(stage: SqlStage, seed: int, level: str) -> None:
    """Goal: what PostgreSQL promises of INSERT … ON CONFLICT: a row is inserted, or found, and
    never an error. LEASEHOLD_SEED replays an order."""
    chance = random.Random(f"{seed} {level}")
    wires = [Wire(stage, f"r{1 + n % 2}") for n in range(5)]
    stage.ask_sql("r1", "delete from k")
    counted = Counter[int]()
    for wire in wires:
        wire.send(query(f"set leasehold.isolation = '{level}'"))
    for _ in range(ROUNDS):
        stage.ask_sql("r1", "delete from k where n = 0")
        for wire in wires:
            key, counts = chance.randrange(KEYS), chance.random() < 0.4
            text = chance.choice(COUNTED if counts else ELSE).format(key)
            wire.send(parse(text), bind(), execute())
            counted[key] += counts
        for wire in chance.sample(wires, len(wires)):
            assert wire.send(SYNC)[-2] in ("C(INSERT 0 1)", "C(INSERT 0 0)"), seed
    for wire in wires:
        wire.close()
    found = dict(stage.ask_sql("r2", "select id, n from k where n > 0"))
    assert found == +counted, (seed, level)
