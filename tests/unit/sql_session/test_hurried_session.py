"""Goal: on the thread that all clients share a session does what surely ends soon, and nothing
else; what it does not do there has not happened, and comes out the same when it is asked again.

Method: sessions on a whole database in this process; the one who asks is in a hurry, as the
listener's loop is.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.budget import LOOK_WORK, charge
from leasehold.model.errors import OutcomeUnknown, UnknownTable
from leasehold.pgwire.conversation import Conversation
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.session import Status, WouldBlock
from leasehold.pgwire.wire_errors import CachedResultChanged, Canceled
from leasehold.settings.sql_port import PgwireSettings
from leasehold.sql_session.commit import COMMIT_TIMEOUT_S
from leasehold.sql_session.listener import SqlListener
from leasehold.sql_session.running import BOUNDED_ROWS_MAX, NON_BLOCKING_CHARACTERS_MAX, Running
from tests.support.pgwire.wire_words import SYNC, bind, execute, parse, query, said
from tests.support.sql_session.held_answers import WAIT_S, HeldAnswers
from tests.support.sql_session.sql_client import SqlClient, database_with, ends

ROWS = 4 * BOUNDED_ROWS_MAX


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    with database_with(
        tmp_path_factory,
        "create table t (id int primary key, g int, note text)",
        f"insert into t select n, n / 10, 'note ' || n from generate_series(1, {ROWS}) n",
        "create index by_g on t (g)",
    ) as made:
        yield made


def hurried(client: SqlClient, text: str) -> list[Any]:
    """Its rows. Raises WouldBlock."""
    session = client.session
    session.hurried = True
    try:
        rows = []
        for statement in session.statements(text):
            rows = client.run(session.prepare(statement, ()), portion=10_000)
        ends(session)
        return rows
    finally:
        session.hurried = False


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "select gen_random_uuid() = gen_random_uuid()",
        "select note from t where id = 7",
        "select id + 1, note from t where id in (7, 8)",
        "select id from t where g = 7 order by id",
        "select t.note from t join t u on u.id = t.g where t.id = 20",
        "select count(*) from t where id between 5 and 8",
        "begin; select g from t where id = 3; commit",
        "show timezone",
        "insert into t (id) select 1 where false",
        "begin; insert into t values (9000, 1, 'one more'); rollback",
    ],
)
def test_what_is_found_by_key_is_done_at_once(client: SqlClient, text: str) -> None:
    wanted = client.ask(text)
    assert hurried(client, text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "select id from t order by id",
        "select count(*) from t",
        "select count(*) from t a, t b, t c where a.id = b.g",
        f"select id from t where id <= {BOUNDED_ROWS_MAX + 1} order by id",
        f"select count(u.g) from t join t u on u.id > t.id where t.id <= {ROWS}",
        "select repeat(note, 2) from t where id = 7",
        "select n from generate_series(1, 3) n",
        "with recursive n (i) as (select 1 union all select i + 1 from n) select i from n limit 3",
        "explain select 1",
        "select pg_cancel_backend(0)",
        "select gen_random_uuid(), current_setting('timezone')",
        f"select '{'long ' * 200}'",
        "update t set g = g where note = 'note 7'",
        f"update t set g = g where id < {ROWS}",
    ],
)
def test_what_may_take_long_is_left_to_others(client: SqlClient, text: str) -> None:
    session = client.session
    wanted = client.ask(text) if text.startswith(("select", "with", "explain")) else []
    session.prepare(session.statements(text)[0], ())  # its plan is known, then
    session.fail()
    with pytest.raises(WouldBlock):
        hurried(client, text)
    session.fail()
    if wanted and "random" not in text:
        assert client.ask(text) == wanted


def test_a_plan_that_takes_long_is_left_to_others(client: SqlClient) -> None:
    """A short one is made at once; the one after a long one is not tried again in between."""
    assert hurried(client, "select note as n from t where id = 8") == [("note 8",)]
    joins = " ".join(f"natural join t a{number}" for number in range(25))
    long = f"select a0.note from t {joins} where t.id = 8"
    assert len(long) <= NON_BLOCKING_CHARACTERS_MAX
    with pytest.raises(WouldBlock):
        hurried(client, long)
    with pytest.raises(WouldBlock):
        hurried(client, "select note as m from t where id = 8")
    assert client.ask(long) == [("note 8",)]
    with pytest.raises(WouldBlock):  # it was a long one again
        hurried(client, "select note as m from t where id = 8")
    assert client.ask("select note as k from t where id = 8") == [("note 8",)]
    assert hurried(client, "select note as l from t where id = 8") == [("note 8",)]


def test_a_plan_ends_with_a_cancel(client: SqlClient) -> None:
    """It could not be interrupted: five seconds for sixty tables that are joined naturally."""
    running = client.session._running
    running.begin(0.0)
    try:
        with running.planning("select 1"):
            charge(LOOK_WORK)
        running.cancel(Canceled("canceling statement due to user request"))
        with pytest.raises(Canceled), running.planning("select 1"):
            charge(LOOK_WORK)
    finally:
        running.end()


def test_schema_changes_and_copy_are_left_to_others(client: SqlClient) -> None:
    for text in ("create table u (id int primary key)", "copy t from stdin"):
        with pytest.raises(WouldBlock):
            hurried(client, text)


def test_a_read_waits_for_coherence_elsewhere(
    client: SqlClient, database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C2: it may be a moment until the node has its lease again."""
    text = "select note from t where id = 7"
    client.ask(text)
    node = database.sql_node("r1")
    with monkeypatch.context() as patched:
        patched.setattr(type(node), "coherent", property(lambda self: False))
        with pytest.raises(WouldBlock):
            hurried(client, text)
    assert hurried(client, text) == [("note 7",)]


def test_rows_after_the_first_portion_are_left_to_others(client: SqlClient) -> None:
    text = "select id from t where g = 7 order by id"
    wanted = client.ask(text)
    session = client.session
    (statement,) = session.statements(text)
    session.hurried = True
    portal = session.bind(session.prepare(statement, ()), ())
    with pytest.raises(WouldBlock):
        portal.fetch(2)
    session.hurried = False
    assert [*portal.fetch(2).rows, *portal.fetch(100).rows] == wanted
    portal.close()


def test_own_rows_are_seen_at_once(client: SqlClient) -> None:
    """The first one on a connection leaves making their table to others; what it held then is no
    later transaction's."""
    read = "select g from t where id = 70"
    session = client.session
    for turn, (key, seen) in enumerate([(70, 1_007), (70, 1_007), (71, 7)]):
        client.ask("begin")
        client.ask(f"update t set g = g + 1000 where id = {key}")
        session.hurried = turn > 0
        found = client.run(session.prepare(session.statements(read)[0], ()), portion=9)
        session.hurried = False
        assert found == [(seen,)]
        client.ask("rollback")


@pytest.mark.parametrize("level", ["default", "snapshot", "serializable", "read committed"])
def test_a_query_sees_what_its_level_says(client: SqlClient, level: str) -> None:
    """Alone it needs no transaction, where its level sees what is newest; beside what its batch has
    written it is one of that transaction's statements."""
    read, write = "select g from t where id = 60", "update t set g = g + 1000 where id = 60"
    client.ask(f"set leasehold.isolation = '{level}'")
    before = client.ask(read)[0][0]
    session = client.session
    client.run(session.prepare(session.statements(write)[0], ()))
    seen = before if level == "default" else before + 1000
    session.hurried = True
    with suppress(WouldBlock):  # own rows are left to others
        assert client.run(session.prepare(session.statements(read)[0], ()), portion=9) == [(seen,)]
    session.hurried = False
    assert client.run(session.prepare(session.statements(read)[0], ()), portion=9) == [(seen,)]
    ends(session)
    assert hurried(client, read) == [(before + 1000,)]


def test_a_query_as_of_an_lsn_is_of_then(client: SqlClient, database: DevDatabase) -> None:
    read = "select g from t where id = 61"
    (before,) = client.ask(read)
    with database.sql_node("r1").single_read().snapshot() as snapshot:
        then = snapshot.lsn
    client.ask("update t set g = -1 where id = 61")
    assert hurried(client, read) == [(-1,)]
    client.ask(f"set leasehold.as_of = {then}")
    with suppress(WouldBlock):
        assert hurried(client, read) == [before]
    client.session.fail()
    assert client.ask(read) == [before]


def test_what_was_prepared_follows_its_table(client: SqlClient) -> None:
    """By the catalog of the very snapshot that is read; another shape is not shown (0A000)."""
    client.ask("create table shaped (id int primary key, a int)")
    client.ask("insert into shaped values (1, 2)")
    session = client.session
    texts = ("select a from shaped where id = 1", "select * from shaped where id = 1")
    one, all_of_it = (session.prepare(session.statements(text)[0], ()) for text in texts)
    ends(session)

    def found(prepared: Any) -> list[Any]:
        session.hurried = True
        try:
            return client.run(prepared, portion=9)
        except WouldBlock:
            session.hurried = False
            return client.run(prepared, portion=9)
        finally:
            session.hurried = False
            ends(session)

    for _ in range(2):
        assert (found(one), found(all_of_it)) == ([(2,)], [(1, 2)])
    client.ask("alter table shaped add column b int default 3")
    for _ in range(2):
        assert found(one) == [(2,)]
        with pytest.raises(CachedResultChanged):
            found(all_of_it)
        session.fail()
    client.ask("drop table shaped")
    with pytest.raises(UnknownTable):
        found(one)
    session.fail()


@pytest.fixture
def answers(database: DevDatabase, monkeypatch: pytest.MonkeyPatch) -> HeldAnswers:
    return HeldAnswers(database, monkeypatch)


def note(client: SqlClient, key: int) -> Any:
    return client.ask(f"select note from t where id = {key}")[0][0]


@pytest.mark.parametrize("block", [False, True])
def test_a_commit_goes_on_when_its_answer_is_there(
    client: SqlClient, answers: HeldAnswers, block: bool
) -> None:
    key = 20 + block
    text = f"update t set note = note || '!' where id = {key}"
    session = client.session
    if block:
        client.ask("begin")
    client.run(session.prepare(session.statements(text)[0], ()))
    session.hurried = True
    (commit,) = session.statements("commit")

    def commits() -> None:
        if block:
            session.bind(session.prepare(commit, ()), ()).fetch(1)
        else:
            ends(session)

    for _ in range(3):
        with pytest.raises(WouldBlock) as waits:
            commits()
        assert waits.value.begun
    assert waits.value.until is not None
    assert len(answers.waiting) == 1, "it is sent once"
    assert session.status is (Status.BLOCK if block else Status.IDLE)
    called = threading.Event()
    waits.value.until(called.set)
    assert not called.is_set()
    assert answers.give().lsn
    assert called.is_set()
    commits()
    assert session.status is Status.IDLE
    session.hurried = False
    assert note(client, key) == f"note {key}!"


def test_a_commit_that_was_refused_runs_again_elsewhere(
    client: SqlClient, answers: HeldAnswers, database: DevDatabase
) -> None:
    session = client.session
    (update,) = session.statements("update t set g = g + 1 where id = 23 and g > 0")
    client.run(session.prepare(update, ()))
    session.hurried = True
    with pytest.raises(WouldBlock):
        ends(session)
    row = {"table": "t", "op": "update", "key": [23], "values": {"g": 100}}
    assert database.ask(row).committed
    assert not answers.give().lsn, "the row is another one now"
    with pytest.raises(WouldBlock) as waits:
        ends(session)
    assert waits.value.begun
    assert waits.value.until is None
    session.hurried = False
    ends(session)
    assert client.ask("select g from t where id = 23") == [(101,)]


def test_an_answer_that_does_not_come_is_said_after_the_whole_time(
    client: SqlClient, answers: HeldAnswers
) -> None:
    session = client.session
    (update,) = session.statements("update t set g = g where id = 22")
    client.run(session.prepare(update, ()))
    session.hurried = True
    with pytest.raises(WouldBlock) as waits:
        ends(session)
    assert waits.value.timeout_s == COMMIT_TIMEOUT_S
    sent = session._transactions._sent
    assert sent is not None
    sent.since_s -= COMMIT_TIMEOUT_S
    session.hurried = False
    with pytest.raises(OutcomeUnknown):
        ends(session)
    session.fail()
    answers.give()


def listening(database: DevDatabase) -> tuple[SqlListener, dict[str, Any]]:
    listener = SqlListener(database.sql_node("r1"), PgwireSettings())
    given: dict[str, Any] = {"host": "127.0.0.1", "port": listener.port, "user": "me"}
    given |= {"dbname": database.sql_node("r1").database, "autocommit": True}
    return listener, given


@pytest.mark.parametrize("leaves", [False, True])
def test_a_commit_that_waits_holds_up_nobody(
    database: DevDatabase, answers: HeldAnswers, leaves: bool
) -> None:
    """Nor is it dropped when its client leaves: what it has pinned it keeps to its end (D8)."""
    listener, given = listening(database)
    text = "update t set note = %s where id = 30"
    key = [f"the {'last' if leaves else 'first'}"]
    try:
        with psycopg.connect(**given) as quick, psycopg.connect(**given) as writer:
            writer.execute("select 1")
            done = threading.Thread(target=lambda: _swallowed(lambda: writer.execute(text, key)))
            done.start()
            assert answers.sent.wait(WAIT_S)
            assert quick.execute("select g from t where id = 30").fetchone() == (3,)
            if leaves:
                with socket.socket(fileno=os.dup(writer.pgconn.socket)) as connection:
                    connection.shutdown(socket.SHUT_RDWR)
                done.join(WAIT_S)
            assert answers.give().lsn
            done.join(WAIT_S)
            assert quick.execute("select note from t where id = 30").fetchone() == tuple(key)
    finally:
        listener.close()


@pytest.mark.parametrize("extended", [False, True])
def test_a_commit_that_is_on_its_way_is_not_cancelled(
    client: SqlClient, answers: HeldAnswers, extended: bool
) -> None:
    """T5: who cancelled it, by a limit of time too, was told so, and it was committed."""
    told: list[bytes] = []
    conversation = Conversation(client.session, told.append, Limits(), _no_defect)
    key = 24 + extended
    conversation.receive(query(f"begin; update t set note = 'kept' where id = {key}"))
    commit = [parse("commit"), bind(), execute(), SYNC] if extended else [query("commit")]
    waits = conversation.receive(b"".join(commit), hurried=True)
    assert waits is not None
    assert waits.begun
    told.clear()
    conversation.cancel(Canceled("canceling statement due to statement timeout"))
    waits = conversation.receive(b"", hurried=True)
    assert waits is not None
    assert answers.give().lsn
    assert conversation.receive(b"", hurried=True) is None
    assert said(b"".join(told))[-2:] == ["C(COMMIT)", "Z(I)"]
    told.clear()
    conversation.receive(query(f"select note from t where id = {key}"))
    assert said(b"".join(told))[-3:] == ["D(kept)", "C(SELECT 1)", "Z(I)"]


def _no_defect(error: Exception) -> None:
    raise error


def _swallowed(work: Callable[[], Any]) -> None:
    with suppress(psycopg.Error):
        work()


def test_a_slow_statement_stops_neither_other_clients_nor_the_log(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is held in the middle of its run until the others have had their answers."""
    runs, release = threading.Event(), threading.Event()

    def held(running: Running) -> bool:
        runs.set()
        assert release.wait(WAIT_S), "the others had to wait for it"
        return False

    monkeypatch.setattr(Running, "_stopped_in_turn", held)
    listener, given = listening(database)
    found: list[Any] = []

    def beside() -> None:
        with psycopg.connect(**given) as quick:
            found.append(quick.execute("select note from t where id = 7").fetchone())
            assert database.ask(
                {"table": "t", "op": "update", "key": [7], "values": {"note": "new"}}
            ).committed
            found.append(quick.execute("select note from t where id = 7").fetchone())

    try:
        with psycopg.connect(**given) as slow:
            text = "select count(*) from t a, t b where a.note < b.note"
            release.set()
            slow.execute(text)  # its plan is known, then
            release.clear()
            runs.clear()
            scan = threading.Thread(target=lambda: found.append(slow.execute(text).fetchone()))
            scan.start()
            assert runs.wait(WAIT_S)
            other = threading.Thread(target=beside)
            other.start()
            other.join(WAIT_S)
            assert found == [("note 7",), ("new",)]
            release.set()
            scan.join(WAIT_S)
            assert len(found) == 3
    finally:
        release.set()
        listener.close()


@pytest.mark.parametrize("by_text", [False, True])
def test_a_lone_statement_that_ran_again_is_told_what_it_came_to(
    client: SqlClient, answers: HeldAnswers, database: DevDatabase, by_text: bool
) -> None:
    """T2: its client was told nothing yet, and is told the count of the run that was committed."""
    said_so_far: list[bytes] = []
    defects: list[Exception] = []
    conversation = Conversation(client.session, said_so_far.append, Limits(), defects.append)
    text = "update t set g = g + 1 where id in (31, 32) and g >= 0"
    messages = [query(text)] if by_text else [parse(text), bind(), execute(), SYNC]
    client.ask("update t set g = 7 where id in (31, 32)")
    client.session._runner.plan(text, ())  # so that it is run in a hurry
    waits = [conversation.receive(message, hurried=True) for message in messages]
    assert not any(waits[:-1])
    assert len(answers.waiting) == 1
    row = {"table": "t", "op": "update", "key": [32], "values": {"g": -1}}
    assert database.ask(row).committed
    assert not answers.give().lsn, "a row is another one now"
    assert conversation.receive(b"", hurried=True) is not None
    assert conversation.receive(b"") is None
    assert said(b"".join(said_so_far))[-2:] == ["C(UPDATE 1)", "Z(I)"]
    assert not defects
    assert client.ask("select id, g from t where id in (31, 32) order by id") == [(31, 8), (32, -1)]
