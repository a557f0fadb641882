"""Goal: an UPDATE of one row that is a transaction by itself and is computed at commit sends what
its transaction would have sent, and becomes that transaction wherever one is needed.

Method: sessions on a whole database in this process, in a hurry as the listener's loop is; answers
come when the test says so. What is sent is compared with what the same session sends without hurry.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import (
    CheckViolation,
    GaveUp,
    LeaseholdError,
    NotNullViolation,
    OutOfRange,
)
from leasehold.model.records.requests import (
    ANY_GENID,
    ChangeRequest,
    Expression,
    OnConflict,
    Outcome,
)
from leasehold.pgwire.session import Status, WouldBlock
from leasehold.replica.serving_node import SqlNode
from leasehold.sql_session.commit import COMMIT_TIMEOUT_S
from leasehold.sql_session.commit_time_update import CommitTimeUpdate
from leasehold.transaction.block import ReadOnlyTransaction
from tests.support.sql_session.held_answers import HeldAnswers
from tests.support.sql_session.sql_client import SqlClient, ends

KEYS = count(1)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("single")))
    dev.wait_ready()
    client = SqlClient(dev)
    client.ask(
        """create table t (id int primary key, n int not null, s smallint, price numeric(6, 2),
        note text, short varchar(5))"""
    )
    client.ask("insert into t select g, g, 1, 1.5, 'x', 'y' from generate_series(1, 200) g")
    client.ask(
        """create table twice (id int primary key, n int, two int generated always as (n * 2)
        stored)"""
    )
    client.ask("insert into twice (id, n) values (1, 1)")
    client.ask("create table bounded (id int primary key, n int, constraint few check (n < 50))")
    client.ask("insert into bounded select g, 1 from generate_series(1, 200) g")
    client.session.close()
    yield dev
    dev.close()


@pytest.fixture
def answers(database: DevDatabase, monkeypatch: pytest.MonkeyPatch) -> HeldAnswers:
    return HeldAnswers(database, monkeypatch)


class Hurried:
    """A client whose statements run in a hurry, and as far as that goes. `key`: of a row that is
    nobody else's."""

    def __init__(self, database: DevDatabase, answers: HeldAnswers) -> None:
        self.client = SqlClient(database)
        self.session = self.client.session
        self.answers = answers
        self.key = next(KEYS)

    def run(self, text: str, *, prepared: bool = False) -> list[Any]:
        """Raises WouldBlock."""
        (statement,) = self.session.statements(text)
        if not prepared:
            self.prepare(text)
        self.session.hurried = True
        try:
            return self.client.run(self.session.prepare(statement, ()), portion=9)
        finally:
            self.session.hurried = False

    def at_leisure(self, text: str) -> list[Any]:
        (statement,) = self.session.statements(text)
        return self.client.run(self.session.prepare(statement, ()))

    def goes(self, text: str) -> list[Any]:
        """As the wire has it: what would wait is run elsewhere."""
        try:
            return self.run(text)
        except WouldBlock:
            return self.at_leisure(text)

    def prepare(self, text: str) -> None:
        """So that its plan is known: the first of a text is nobody's in a hurry."""
        (statement,) = self.session.statements(text)
        plan = self.session._state.plan_of
        with self.client.node.single_read().snapshot() as snapshot:
            plan(statement.text, snapshot.newest, ())

    def ends(self) -> None:
        """In a hurry. Raises WouldBlock until its answer is there."""
        self.session.hurried = True
        try:
            ends(self.session)
        finally:
            self.session.hurried = False

    def sends(self, *, hurried: bool) -> ChangeRequest:
        """What the batch asks for. It is answered, and its end is waited for."""
        if hurried:
            with pytest.raises(WouldBlock) as waits:
                self.ends()
            assert waits.value.begun
            assert len(self.answers.waiting) == 1
            request = self.answers.waiting[0][0]
            self.answers.give()
            self.ends()
            return request
        asked: list[ChangeRequest] = []
        node = type(self.client.node)
        submit = node.submit

        def noted(one: SqlNode, request: ChangeRequest, timeout_s: float) -> Outcome:
            asked.append(request)
            return submit(one, request, timeout_s)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(node, "submit", noted)
            self.session.end_batch()
        (request,) = asked
        return request

    def row(self, columns: str = "n") -> Any:
        return self.client.ask(f"select {columns} from t where id = {self.key}")[0]

    @property
    def is_single(self) -> bool:
        return isinstance(self.session._transactions._current, CommitTimeUpdate)


@pytest.fixture
def hurried(database: DevDatabase, answers: HeldAnswers) -> Iterator[Hurried]:
    made = Hurried(database, answers)
    yield made
    made.session.close()


def without_id(request: ChangeRequest) -> ChangeRequest:
    return request._replace(id=b"")


@pytest.mark.parametrize("level", ["default", "read committed"])
@pytest.mark.parametrize(
    ("text", "single"),
    [
        ("update t set n = n + 1 where id = {}", True),
        ("update t set n = n * 2 - 1, s = s + 1::smallint where id = {}", True),
        ("update t set s = s + null::smallint, n = - n where id = {}", True),
        ("update t set n = n + 1 where {} = id", True),
        ("update t set n = 5 where id = {}", False),
        ("update t set n = n + 1 where id = {} and n > 0", False),
        ("update t set n = n + 1 where id = {} returning n", False),
        ("update t set price = price + 1.25 where id = {}", False),
        ("update t set note = note || 'more' where id = {}", False),
    ],
)
def test_what_is_sent_is_what_its_transaction_would_send(
    hurried: Hurried, level: str, text: str, single: bool
) -> None:
    text = text.format(hurried.key)
    hurried.client.ask(f"set leasehold.isolation = '{level}'")
    hurried.goes(text)
    assert hurried.is_single is single
    alone = hurried.sends(hurried=single)
    hurried.at_leisure(text)
    assert not hurried.is_single
    wanted = hurried.sends(hurried=False)
    assert hurried.client.tags[-2:] == ["UPDATE 1", "UPDATE 1"]
    if single:
        assert without_id(alone) == without_id(wanted)
        (operation,) = alone.operations
        assert operation.expect == ANY_GENID
        assert all(isinstance(value, Expression) for value in operation.values.values())


def test_it_is_committed_when_its_answer_is_there(hurried: Hurried) -> None:
    hurried.run(f"update t set n = n + 100 where id = {hurried.key}")
    assert hurried.is_single
    for _ in range(3):
        with pytest.raises(WouldBlock) as waits:
            hurried.ends()
        assert waits.value.begun
        assert waits.value.timeout_s == COMMIT_TIMEOUT_S
    assert len(hurried.answers.waiting) == 1, "it is sent once"
    assert hurried.answers.give().lsn
    hurried.ends()
    assert hurried.session.status is Status.IDLE
    assert hurried.row() == (hurried.key + 100,)


def test_others_may_have_changed_the_row_meanwhile(hurried: Hurried, database: DevDatabase) -> None:
    hurried.run(f"update t set n = n + 100 where id = {hurried.key}")
    beside = {"table": "t", "op": "update", "key": [hurried.key], "values": {"n": 1_000}}
    assert database.ask(beside).committed
    hurried.sends(hurried=True)
    assert hurried.row() == (1_100,)


@pytest.mark.parametrize("held", [False, True])
def test_what_the_master_refuses_is_an_error(hurried: Hurried, held: bool) -> None:
    """A CHECK is looked at by the master alone: its refusal is final, and was not told before."""
    hurried.run(f"update bounded set n = n + 100 where id = {hurried.key}")
    assert hurried.is_single
    hurried.session.answer_held = held
    with pytest.raises(WouldBlock):
        hurried.ends()
    assert hurried.answers.give().final
    with pytest.raises(CheckViolation, match="violates check 'few'"):
        hurried.ends()
    hurried.session.fail()
    assert hurried.session.status is Status.IDLE
    assert hurried.client.ask(f"select n from bounded where id = {hurried.key}") == [(1,)]


def test_t2_it_runs_again_as_the_transaction_that_it_would_have_been(
    hurried: Hurried, database: DevDatabase
) -> None:
    """Its table has another version by then (D5): the request is refused, the statement is not."""
    hurried.run(f"update t set n = n + 100 where id = {hurried.key}")
    with pytest.raises(WouldBlock):
        hurried.ends()
    SqlClient(database).ask(f"alter table t add column c{hurried.key} int")
    assert not hurried.answers.give().lsn
    with pytest.raises(WouldBlock) as waits:
        hurried.ends()
    assert waits.value.begun
    assert waits.value.until is None, "a worker goes on with it"
    ends(hurried.session)
    assert hurried.row() == (hurried.key + 100,)


def test_t2_a_replay_does_not_contradict_what_was_told(
    hurried: Hurried, database: DevDatabase
) -> None:
    """UPDATE 1 was: the row has gone, so it can't be again."""
    hurried.run(f"update t set n = n + 1 where id = {hurried.key}")
    with pytest.raises(WouldBlock):
        hurried.ends()
    assert database.ask({"table": "t", "op": "delete", "key": [hurried.key]}).committed
    assert not hurried.answers.give().lsn
    with pytest.raises(WouldBlock):
        hurried.ends()
    with pytest.raises(GaveUp):
        ends(hurried.session)
    hurried.session.fail()


@pytest.mark.parametrize("level", ["default", "read committed"])
def test_the_next_statement_of_its_batch_is_of_the_same_transaction(
    hurried: Hurried, level: str
) -> None:
    hurried.client.ask(f"set leasehold.isolation = '{level}'")
    key, other = hurried.key, next(KEYS)
    texts = [f"update t set n = n + 10 where id = {k}" for k in (key, other, key)]
    for text in texts:
        hurried.goes(text)
    seen = hurried.at_leisure(f"select n from t where id = {key}")
    assert seen == [(key,) if level == "default" else (key + 20,)]
    assert not hurried.is_single
    request = hurried.sends(hurried=False)
    assert [operation.key for operation in request.operations] == [(key,), (other,), (key,)]


def test_a_batch_that_fails_forgets_it(hurried: Hurried) -> None:
    hurried.run(f"update t set n = n + 10 where id = {hurried.key}")
    hurried.session.fail()
    hurried.ends()
    assert not hurried.answers.waiting
    assert hurried.row() == (hurried.key,)


def test_begin_goes_on_with_it(hurried: Hurried) -> None:
    hurried.run(f"update t set n = n + 10 where id = {hurried.key}")
    hurried.client.ask("begin")
    assert hurried.session.status is Status.BLOCK
    assert hurried.row() == (hurried.key + 10,)
    hurried.client.ask("rollback")
    assert hurried.row() == (hurried.key,)


def test_settings_of_the_same_batch_count(hurried: Hurried) -> None:
    """Who wants no replay gets none: the row is to be the one that was seen."""
    hurried.run(f"update t set n = n + 10 where id = {hurried.key}")
    assert hurried.is_single
    hurried.at_leisure("set verifyretry off")
    request = hurried.sends(hurried=True)
    assert request.on_conflict is OnConflict.FAIL
    assert request.operations[0].expect != ANY_GENID
    assert hurried.row() == (hurried.key + 10,)


@pytest.mark.parametrize(
    "setting",
    [
        "set verifyretry off",
        "set leasehold.isolation = 'snapshot'",
        "set leasehold.isolation = 'serializable'",
    ],
)
def test_where_it_is_not_to_be_computed_at_commit_it_has_a_transaction(
    hurried: Hurried, setting: str
) -> None:
    text = f"update t set n = n + 10 where id = {hurried.key}"
    hurried.client.ask(setting)
    hurried.goes(text)
    assert not hurried.is_single
    hurried.session.fail()


def test_a_block_has_a_transaction(hurried: Hurried) -> None:
    hurried.client.ask("begin")
    hurried.goes(f"update t set n = n + 10 where id = {hurried.key}")
    assert not hurried.is_single
    hurried.client.ask("rollback")


def fails(hurried: Hurried, text: str) -> type[LeaseholdError]:
    with pytest.raises(LeaseholdError) as error:
        hurried.goes(text)
    assert not hurried.is_single
    hurried.session.fail()
    return type(error.value)


def test_errors_come_at_the_statement(hurried: Hurried) -> None:
    key = hurried.key
    by_text: dict[str, type[LeaseholdError]] = {
        f"update t set n = n + 2147483647 where id = {key}": OutOfRange,
        f"update t set n = n + null where id = {key}": NotNullViolation,
    }
    for text, wanted in by_text.items():
        assert fails(hurried, text) is wanted
    hurried.client.ask("set default_transaction_read_only = on")
    assert fails(hurried, f"update t set n = n + 1 where id = {key}") is ReadOnlyTransaction
    assert hurried.row() == (key,)


@pytest.mark.parametrize(
    "text",
    [
        "update t set n = n + 1 where id = 100000",
        "update twice set n = n + 1 where id = 1",
    ],
)
def test_what_is_no_such_update_has_a_transaction(hurried: Hurried, text: str) -> None:
    """No row; a column that follows from the one that changes."""
    hurried.goes(text.format(hurried.key))
    assert not hurried.is_single
    hurried.session.fail()


def test_c2_without_coherence_it_waits_elsewhere(
    hurried: Hurried, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"update t set n = n + 1 where id = {hurried.key}"
    hurried.prepare(text)
    node = type(hurried.client.node)
    with monkeypatch.context() as patched:
        patched.setattr(node, "coherent", property(lambda self: False))
        with pytest.raises(WouldBlock):
            hurried.run(text, prepared=True)
