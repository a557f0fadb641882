"""Whoever waits for the master can be told to end, by CancelRequest and by statement_timeout: at
once, and without a word that would be false of what was sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Lock, Thread
from typing import Any

import pytest

from leasehold.client.pending import Pending, RequestStatus
from leasehold.dev.database import DevDatabase
from leasehold.dev.node import DevNode
from leasehold.model.errors import LeaseholdError, QueryCanceled
from leasehold.model.records.requests import ChangeRequest, OnConflict, Outcome
from leasehold.pgwire.wire_errors import Canceled
from leasehold.sql_session import commit
from tests.support.sql_session.sql_client import SqlClient, database_with

USER = "canceling statement due to user request"
TIMEOUT = "canceling statement due to statement timeout"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    with database_with(
        tmp_path_factory,
        "create table t (id int primary key, a int); create sequence s",
        "insert into t values (1, 1), (2, 2)",
    ) as made:
        yield made


@pytest.fixture
def other(database: DevDatabase) -> Iterator[SqlClient]:
    made = SqlClient(database)
    yield made
    made.session.close()


class Unanswered:
    """The master gets each request and answers none."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.sent: list[ChangeRequest] = []
        self.waits = Event()

        def submit(
            node: DevNode,
            request: ChangeRequest,
            timeout_s: float,
            stopped: Callable[[], bool] | None = None,
        ) -> Outcome:
            self.sent.append(request)
            self.waits.set()
            assert stopped is not None, "it can't be ended"
            if not node.wait(stopped, timeout_s):
                raise AssertionError("nobody has ended it")
            raise QueryCanceled("told to end")

        patch.setattr(DevNode, "submit", submit)


def ended(client: SqlClient, text: str, waits: Event) -> LeaseholdError:
    """What the statement is answered with when it is cancelled while it waits."""
    caught: list[LeaseholdError] = []

    def run() -> None:
        try:
            client.ask(text)
        except LeaseholdError as error:
            caught.append(error)

    thread = Thread(target=run)
    thread.start()
    assert waits.wait(30)
    client.session.cancel(Canceled(USER))
    thread.join()
    (error,) = caught
    return error


ASKED = ["create table u (id int)", "alter table t add b int", "select setval('s', 7)"]


@pytest.mark.parametrize("text", ASKED)
def test_who_cancels_is_told_that_it_may_be_done(
    client: SqlClient, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    if "setval" in text:
        client.ask("select nextval('s')")  # its numbers are there
    with monkeypatch.context() as patch:
        unanswered = Unanswered(patch)
        submit = client.node.sequence_values._submit
        client.node.sequence_values._submit = client.node.submit
        try:
            error = ended(client, text, unanswered.waits)
            assert (error.sqlstate, error.message, error.definite) == ("57014", USER, False)
            assert "may be" in str(error.detail["detail"])
            client.ask("set statement_timeout = 50")
            with pytest.raises(LeaseholdError, match=TIMEOUT) as caught:
                client.ask(text)
            assert (caught.value.sqlstate, caught.value.definite) == ("57014", False)
            assert "may be" in str(caught.value.detail["detail"])
        finally:
            client.node.sequence_values._submit = submit
        assert len(unanswered.sent) == 2
    client.ask("reset statement_timeout")
    assert client.ask("select 1") == [(1,)]


def test_a_plan_alone_was_never_under_way(
    client: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        error = ended(client, "explain (ddl) drop table t", Unanswered(patch).waits)
    assert (error.sqlstate, error.message, error.definite) == ("57014", USER, True)


def test_an_answer_that_is_there_is_given() -> None:
    """It is known then what became of the request, whoever does not want to know."""
    outcome = Outcome(1, 7, 0, 0, final=True)
    pending = Pending(b"r" * 16, "", b"", OnConflict.FAIL, 1, Lock(), lambda _: None)
    pending.settle(RequestStatus.COMMITTED, outcome)
    assert pending.result_unless(lambda: True, 30.0) is outcome


@pytest.mark.parametrize("within", [True, False])
def test_a_replay_is_cancelled(
    client: SqlClient, other: SqlClient, monkeypatch: pytest.MonkeyPatch, within: bool
) -> None:
    """While a statement runs again, or between two. It was 40001, which clients answer by trying
    again. Nothing of it is committed."""
    client.ask("begin isolation level serializable; insert into t values (9, 9)")
    client.ask("select count(*) from generate_series(1, (select a from t where id = 1))")
    other.ask(f"update t set a = {1_000_000_000 if within else 0} where id = 1")
    done = commit.rerun_step
    ran: list[str] = []

    def cancelled(*given: Any) -> Any:
        ran.append(given[1].asked.text.split()[0])
        if ran == ["insert", "select"] and within:
            client.session.cancel(Canceled(USER))
        found = done(*given)
        if not within:
            client.session.cancel(Canceled(USER))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(commit, "rerun_step", cancelled)
        with pytest.raises(LeaseholdError, match=USER) as caught:
            client.ask("commit")
    assert caught.value.sqlstate == "57014"
    assert ran == ["insert", "select"][: 1 + within]
    assert client.status().name == "IDLE"
    assert other.ask("select id from t order by id") == [(1,), (2,)]
    other.ask("update t set a = 1 where id = 1")
