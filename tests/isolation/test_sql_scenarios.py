"""Scenarios 23 to 29 in SQL sessions: what becomes of a COMMIT whose request is repeated, whose
master changes, or beside which there is rubbish on the topic. Each by its name; on real processes:
`tests/integration/cluster/replicants/test_system_writes.py`, `test_system_takeover.py`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.codec.request_bytes import JSON, MESSAGE_PACK
from leasehold.dev.database import DevDatabase
from leasehold.pgwire.conversation import Conversation
from leasehold.pgwire.limits import Limits
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session import commit as sql_commit
from leasehold.sql_session.session import SqlSession
from leasehold.transaction.isolation import Level
from tests.isolation.hermitage import committed
from tests.isolation.said import added, id_is
from tests.isolation.sql_stage import SqlScene
from tests.isolation.test_sql_comdb2 import LEVELS, Make, scene
from tests.models.summary import Tell
from tests.simulation.simulation import MS
from tests.support.pgwire.wire_words import error_of, query, said

__all__ = ["scene"]

SOME = [Level.READ_COMMITTED, Level.LINEARIZABLE]
"""What becomes of a request does not depend on the level that it was made at."""


class Sent:
    """The requests of a scene's sessions, as they went out."""

    def __init__(self, stands: SqlScene) -> None:
        self.bodies: list[tuple[str, bytes]] = []
        self._stage = stands.stage
        put = stands.stage.cluster.put

        def kept(content_type: str, body: bytes) -> int:
            self.bodies.append((content_type, body))
            return put(content_type, body)

        stands.stage.cluster.put = kept  # type: ignore[method-assign]

    def again(self) -> None:
        """All of them, and time for answers."""
        for kind, body in list(self.bodies):
            self._stage.cluster.put(kind, body)
        self._stage.passing(300)


def answers(stands: SqlScene) -> dict[bytes, set[tuple[Any, ...]]]:
    """What each request was told that was decided, however often."""
    return {
        name: {(o.lsn, o.code, o.rows_affected) for o in given if o.lsn or o.final}
        for name, given in stands.stage.results.items()
    }


def changed_master(stands: SqlScene) -> None:
    """It crashes, the other one takes over, and it comes back as a standby."""
    stage = stands.stage
    master = stage.master
    assert master is not None
    master.crash()
    stage.until(lambda: stage.master not in (None, master), "another master", virtual_ms=60_000)
    stage.restart(master.settings.name)


@pytest.mark.parametrize("level", LEVELS)
def test_23_duplicate_request_once(level: Level, scene: Make) -> None:
    """Every COMMIT's request comes twice or three times: at once, and when it is answered."""
    stands = scene(level)
    stands.stage.repeats = 1.0
    sent = Sent(stands)
    for number in range(6):
        one = stands.session(f"r{1 + number % 2}").begin()
        one.update(added(1), id_is(1))
        one.insert(10 + number, number)
        one.commit()
    lsn = stands.stage.reference.position.lsn
    sent.again()
    assert stands.stage.repeated >= 6
    assert stands.stage.reference.position.lsn == lsn, "no entry for a repeat"
    assert stands.rows() == {1: 16, 2: 20, **{10 + n: n for n in range(6)}}
    assert all(len(told) <= 1 for told in answers(stands).values()), "one answer each"


@pytest.mark.parametrize("level", SOME)
def test_24_duplicate_answer_keeps_rowcount(level: Level, scene: Make) -> None:
    """Two rows were changed; by now the condition holds for none, and a row is gone."""
    stands = scene(level)
    sent, before = Sent(stands), answers(stands)
    one = stands.session("r1").begin()
    assert one.ask("update test set value = value + 1 where value < 100").tag == "UPDATE 2"
    one.commit()
    told = answers(stands)
    (mine,) = told.keys() - before
    assert {rows for _, _, rows in told[mine]} == {2}
    stands.ask("r2", "delete from test where id = 1; update test set value = 500 where id = 2")
    # Not what a linearizable transaction has asked before it began: a barrier.
    sent.bodies = [each for each in sent.bodies if mine in each[1]]
    given = len(stands.stage.results[mine])
    sent.again()
    assert len(stands.stage.results[mine]) > given, "it is answered again"
    assert answers(stands)[mine] == told[mine]
    assert stands.rows() == {2: 500}, "and not done again"


@pytest.mark.parametrize("level", SOME)
def test_25_request_memory_survives_bounce(level: Level, scene: Make) -> None:
    """The master dies with the decision in the log and its answer not given; then the requests
    come once more, to the next master and, when that has changed, to the one after."""
    stands = scene(level)
    stage = stands.stage
    sent = Sent(stands)
    one = stands.session("r1").begin()
    one.update(added(1), id_is(1))
    master = stage.master
    assert master is not None
    stage.node("r2").isolate(stage.scheduler.now_ns + 400 * MS)  # so that the answer waits (C1)
    stage.scheduler.later(60 * MS, master.crash)
    one.commit()
    assert stage.master is not master, "another one has answered"
    stage.restart(master.settings.name)
    lsn = stage.reference.position.lsn
    for _ in range(2):
        sent.again()
        changed_master(stands)
    sent.again()
    assert stage.reference.position.lsn == lsn
    assert all(len(told) <= 1 for told in answers(stands).values())
    stage.until(lambda: len(stage.coherent()) == 2, "coherent replicants", virtual_ms=60_000)
    assert stands.rows() == {1: 11, 2: 20}


@pytest.mark.parametrize("level", SOME)
def test_26_committed_never_lost(level: Level, scene: Make) -> None:
    """Masters change again and again under sessions that insert and count; what was answered COMMIT
    is there once."""
    stands = scene(level)
    stage, chance = stands.stage, random.Random(level.value)
    acknowledged: list[int] = []
    for number in range(30):
        if number % 5 == 2:
            master = stage.master
            if master is not None:
                name, back_ms = master.settings.name, chance.choice((50, 900))
                stage.scheduler.later(chance.choice((0, 1, 3)) * MS, master.crash)
                stage.scheduler.later(back_ms * MS, lambda name=name: stage.restart(name))  # type: ignore[misc]
        one = stands.session(chance.choice(("r1", "r2"))).begin()
        one.insert(100 + number, number)
        one.update(added(1), id_is(1))
        if committed(one):
            acknowledged.append(number)
    stage.passing(2_000)
    stage.until(lambda: len(stage.coherent()) == 2, "coherent replicants", virtual_ms=60_000)
    rows = stands.rows()
    assert len(acknowledged) == 30
    assert {key for key in rows if key >= 100} == {100 + n for n in acknowledged}
    assert rows[1] == 10 + len(acknowledged), "each counted once"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[DevDatabase]:
    """In real time; with tables and nobody who keeps books of what is asked."""
    made = DevDatabase(tmp_path)
    made.wait_ready()
    yield made
    made.close()


class Wire:
    """A client's messages to a session of that database, without a socket."""

    def __init__(self, database: DevDatabase) -> None:
        self._spoken: list[bytes] = []
        session = SqlSession(database.sql_node(), Plans(), user="me")
        self.conversation = Conversation(session, self._spoken.append, Limits(), lambda _: None)

    def ask(self, text: str) -> bytes:
        self._spoken.clear()
        self.conversation.receive(query(text))
        return b"".join(self._spoken)


@pytest.fixture
def wire(database: DevDatabase) -> Iterator[Wire]:
    made = Wire(database)
    made.ask("create table t (id int primary key, n int); insert into t values (1, 0)")
    yield made
    made.conversation.close()


@pytest.mark.parametrize("block", [True, False], ids=["block", "alone"])
def test_27_not_durable_has_words(
    block: bool, database: DevDatabase, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """08007 with a sentence that says what to do. What was sent is decided when there is a master
    again, once."""
    text = "update t set n = n + 1 where id = 1"
    if block:
        wire.ask("begin")
        assert said(wire.ask(text)) == ["C(UPDATE 1)", "Z(T)"]
    with database.held():
        database.cluster.nodes["m1"].crash()
    with monkeypatch.context() as patch:
        patch.setattr(sql_commit, "COMMIT_TIMEOUT_S", 0.2)
        answer = wire.ask("commit" if block else text)
    assert said(answer) == ["E(08007)", "Z(I)"]
    words = error_of(answer)["M"]
    assert "may have been applied" in words
    assert "ask again" in words
    with database.held():
        database.cluster.nodes["m1"].start()
    database.wait_ready()
    assert said(wire.ask("update t set n = n where id = 1"))[0] == "C(UPDATE 1)", "behind it"
    assert said(wire.ask("select n from t"))[1] == "D(1)"


@pytest.mark.parametrize("level", SOME)
def test_28_old_master_fenced(level: Level, scene: Make) -> None:
    """A master is paused past its election with requests in its hands, and wakes: what it appends
    counts for nobody, and sessions go on with the next one (a fork would be a Harm)."""
    stands = scene(level)
    stage = stands.stage
    old = stage.master
    assert old is not None
    epoch = stage.reference.position.epoch
    one, two = stands.sessions(2)
    one.update(added(1), id_is(1))
    two.insert(3, 30)
    old.pause(stage.scheduler.now_ns + 5_000 * MS)
    one.commit()
    two.commit()
    new = stage.master
    assert new is not None
    assert new is not old
    stage.passing(6_000)
    assert stage.master is new, "waking up took the epoch from nobody"
    assert stage.reference.position.epoch == epoch + 1
    stage.until(lambda: len(stage.coherent()) == 2, "coherent replicants", virtual_ms=60_000)
    three = stands.session("r1").begin()
    three.update(added(1), id_is(1))
    three.commit()
    assert stands.rows() == {1: 12, 2: 20, 3: 30}


SPOILT: list[Callable[[bytes], bytes]] = [
    lambda _: b"",
    lambda body: body[: len(body) // 2],
    lambda body: body[:12] + bytes([body[12] ^ 64]) + body[13:],  # the version of the request's id
    lambda body: random.Random(1).randbytes(len(body)),
    lambda body: body + b"\0\0",
]


def test_29_garbage_proposal(database: DevDatabase, wire: Wire, tell: Tell) -> None:
    """Beside each request of a session its spoilt doubles: the master refuses them, stays master,
    and decides the true one."""
    put, master = database.cluster.put, database.cluster.master()
    spoilt = 0

    def surrounded(content_type: str, body: bytes) -> int:
        nonlocal spoilt
        for spoil in SPOILT:
            for kind in (MESSAGE_PACK, JSON, "text/plain"):
                put(kind, spoil(body))
                spoilt += 1
        offset = put(content_type, body)
        put(content_type, body[:-1])
        return offset

    database.cluster.put = surrounded  # type: ignore[method-assign]
    for number in range(1, 4):
        told = wire.ask(f"begin; update t set n = n + 1; insert into t values ({number * 10}, 0)")
        assert said(told)[-1] == "Z(T)"
        assert said(wire.ask("commit")) == ["C(COMMIT)", "Z(I)"]
    assert database.cluster.master() is master
    assert said(wire.ask("select id, n from t order by id"))[1:5] == [
        *("D(1,3)", "D(10,2)", "D(20,1)", "D(30,0)")
    ]
    tell(f"{spoilt} spoilt requests")
