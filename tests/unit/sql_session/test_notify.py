"""LISTEN and NOTIFY of SQL sessions on several nodes of one database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from leasehold.model.records.requests import ChangeRequest, OnConflict
from leasehold.pgwire.session import Status, WouldBlock
from leasehold.replica.notifications import NodeNotifications
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession
from tests.support.sql_session.sql_client import SqlClient, database_with

DEADLINE_S = 30.0
ALL = 1 << 30


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    with database_with(tmp_path_factory, "create table t (id int primary key, n int)") as made:
        yield made


class Client(SqlClient):
    """A client with a number of its own."""

    def __init__(self, database: DevDatabase, node: str, process: int) -> None:
        super().__init__(database, node)
        self.session.close()
        self.session = SqlSession(self.node, Plans(), user="me", process=process)

    def heard(self, count: int = 1) -> list[tuple[str, str, int]]:
        """Return what it is told, once it is so much, and nothing more is on its way: what the
        other session has committed stands on every coherent node."""
        found: list[tuple[str, str, int]] = []
        while len(found) < count and self.session.wait_notifications(DEADLINE_S):
            found += self.session.take_notifications(ALL)
        return found


@pytest.fixture
def one(database: DevDatabase) -> Iterator[Client]:
    made = Client(database, "r1", 11)
    yield made
    made.session.close()


@pytest.fixture
def other(database: DevDatabase) -> Iterator[Client]:
    made = Client(database, "r2", 12)
    yield made
    made.session.close()


def test_a_session_on_another_node_is_told_at_commit(one: Client, other: Client) -> None:
    other.ask("listen news; listen more")
    one.ask("begin; notify news, 'first'; insert into t values (1, 1)")
    assert not other.session.has_notifications
    one.ask("notify more; notify news, 'second'; notify nobody, 'x'")
    assert not other.session.has_notifications
    one.ask("commit")
    assert other.heard(3) == [("news", "first", 0), ("more", "", 0), ("news", "second", 0)]
    assert other.ask("select n from t where id = 1") == [(1,)]
    one.ask("delete from t")


def test_a_session_is_told_what_it_tells_itself(one: Client) -> None:
    one.ask("listen news; notify news, 'x'; select pg_notify('news', 'y')")
    assert one.heard(2) == [("news", "x", 11), ("news", "y", 11)]
    one.ask("begin; unlisten news; notify news, 'x'; commit")
    assert not one.session.has_notifications
    one.ask("begin; listen news; notify news, 'z'; commit")
    assert one.heard() == [("news", "z", 11)]


def test_what_is_rolled_back_is_told_to_nobody(one: Client, other: Client) -> None:
    other.ask("listen a")
    one.ask("begin; notify a, '1'; rollback")
    one.ask("begin; notify a, '2'; savepoint s; notify a, '3'; savepoint q; notify a, '4'")
    one.ask("rollback to s; notify a, '5'; release s; commit")
    assert one.code("begin; notify a, '6'; select 1/0") == "22012"
    one.ask("rollback")
    assert one.code("notify a, '7'; select 1/0") == "22012", "a text is one transaction"
    one.ask("notify a, 'end'")
    assert [payload for _, payload, _ in other.heard(3)] == ["2", "5", "end"]


def test_a_transaction_tells_each_once(one: Client, other: Client) -> None:
    other.ask("listen a; listen b")
    one.ask("begin; notify a, 'x'; notify b, 'x'; notify a, 'x'; notify a; notify a, ''; commit")
    one.ask("select pg_notify('a', (i % 3)::text) from generate_series(1, 9) i")
    assert [told[:2] for told in other.heard(6)] == [
        *(("a", "x"), ("b", "x"), ("a", ""), ("a", "1"), ("a", "2"), ("a", "0"))
    ]


def test_a_session_in_a_transaction_is_told_behind_it(one: Client, other: Client) -> None:
    other.ask("listen a")
    other.ask("begin; select 1")
    one.ask("notify a, 'x'")
    assert other.session.has_notifications
    assert other.session.take_notifications(ALL) == ()
    assert other.code("select 1/0") == "22012"
    assert other.status() is Status.FAILED
    assert other.session.take_notifications(ALL) == ()
    other.ask("rollback")
    assert other.heard() == [("a", "x", 0)]


def test_listen_counts_from_its_commit_on(one: Client, other: Client) -> None:
    channels = "select * from pg_listening_channels()"
    other.ask("listen a")
    other.ask("begin; listen b; listen c; unlisten a; savepoint s; unlisten *")
    assert other.ask(channels) == [("a",)]
    other.ask("rollback to s; commit")
    assert other.ask(channels) == [("b",), ("c",)]
    other.ask("begin; listen d; unlisten b; rollback")
    assert other.ask(channels) == [("b",), ("c",)]
    assert other.code("listen d; select 1/0") == "22012"
    other.ask("listen d; begin; rollback")  # what comes before BEGIN in its text belongs to it
    one.ask("notify a, '1'; notify d, '2'; notify b, '3'")
    assert other.heard() == [("b", "3", 0)]
    other.ask("listen b; unlisten never; unlisten *")
    assert other.ask(channels) == []


def test_a_transaction_whose_commit_fails_listens_and_tells_as_before(
    one: Client, other: Client
) -> None:
    one.ask("insert into t values (1, 1)")
    other.ask("listen a")
    other.ask("begin isolation level repeatable read; listen b; unlisten a")
    other.ask("notify a, 'never'; update t set n = 3 where id = 1")
    one.ask("update t set n = 2 where id = 1")
    assert other.code("commit") == "40001"
    assert other.ask("select * from pg_listening_channels()") == [("a",)]
    one.ask("notify b, '1'; notify a, '2'; delete from t")
    assert other.heard() == [("a", "2", 0)]


def test_what_is_told_is_right_when_a_transaction_runs_again(one: Client, other: Client) -> None:
    """T2: a write that runs again tells what it comes to then; what a query has told, whose rows
    the client was shown, and NOTIFY stay."""
    one.ask("insert into t values (1, 1), (2, 2)")
    other.ask("listen a")
    one.ask("begin; select pg_notify('a', 'seen ' || n) from t where id = 1")
    one.ask("update t set n = n + 1 where id = 1 and pg_notify('a', 'of ' || n) is not null")
    one.ask("notify a, 'end'")
    other.ask("update t set n = 10 where id = 1")
    one.ask("commit")
    assert [payload for _, payload, _ in other.heard(3)] == ["seen 1", "of 10", "end"]
    assert other.ask("select n from t where id = 1") == [(11,)]
    one.ask("delete from t")


def test_what_is_told_alone_waits_for_nobody(one: Client, other: Client) -> None:
    """On the thread that all clients share, as far as it goes there."""
    other.ask("listen a")
    one.session.hurried = True
    try:
        one.ask("notify a, 'x'")
    except WouldBlock:
        one.session.hurried = False
        one.session.end_batch()
    finally:
        one.session.hurried = False
    assert other.heard() == [("a", "x", 0)]


def test_discard_all_listens_to_nothing(one: Client, other: Client) -> None:
    other.ask("listen a")
    one.ask("notify a, 'x'")
    other.ask("discard all")
    assert not other.session.has_notifications
    assert other.ask("select count(*) from pg_listening_channels()") == [(0,)]


def test_a_read_only_transaction_tells_all_the_same(one: Client, other: Client) -> None:
    other.ask("begin read only; listen a; commit")
    one.ask("begin read only; notify a, 'x'; select pg_notify('a', 'y'); commit")
    assert [payload for _, payload, _ in other.heard(2)] == ["x", "y"]


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_at_each_level(one: Client, other: Client, level: str) -> None:
    other.ask("listen a")
    one.ask(f"begin isolation level {level}; select * from t; notify a, 'x'; commit")
    assert other.heard() == [("a", "x", 0)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("select pg_notify('', 'x')", "22023"),
        ("select pg_notify(null, 'x')", "22023"),
        (f"select pg_notify('{'c' * 64}', 'x')", "22023"),
        ("select pg_notify('c', repeat('x', 8000))", "22023"),
        (f"notify c, '{'x' * 8000}'", "22023"),
        ("select pg_notify('c', repeat('x', 7999)), pg_notify('c', null)", "00000"),
        ("select pg_notify('c', i::text) from generate_series(1, 10001) i", "54000"),
        ("select pg_notify('c', repeat('x', 7990) || i) from generate_series(1, 300) i", "54000"),
        ("listen", "42601"),
        ("notify c, 7", "42601"),
        ("notify c, 'a' 'b'", "42601"),
        ("listen a.b", "42601"),
    ],
)
def test_what_is_refused(one: Client, text: str, code: str) -> None:
    assert one.code(text) == code


def test_names_are_folded_and_cut_as_all_names(one: Client, other: Client) -> None:
    other.ask(f'listen News; listen "News"; listen {"x" * 70}')
    channels = other.ask("select pg_listening_channels()")
    assert channels == [("news",), ("News",), ("x" * 63,)]
    one.ask(f"notify NEWS; notify {'x' * 64}")
    assert [channel for channel, _, _ in other.heard(2)] == ["news", "x" * 63]


def test_the_part_of_the_room_that_is_taken(one: Client, other: Client) -> None:
    other.ask("listen a")
    other.ask("begin")
    usage = "select pg_notification_queue_usage()"
    assert other.ask(usage) == [(0.0,)]
    one.ask("select pg_notify('a', repeat('x', 7000) || i) from generate_series(1, 100) i")
    ((taken,),) = other.ask(usage)
    assert 0.01 < taken < 0.02
    other.ask("commit")
    assert len(other.heard(100)) == 100
    assert other.ask(usage) == [(0.0,)]


def test_a_session_that_takes_nothing_ends(
    database: DevDatabase, one: Client, other: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a program that embeds its node, whose connection nobody can close: each call says it."""
    monkeypatch.setattr(database.notifications["r2"], "_bytes_max", 5_000)
    other.ask("listen a")
    other.ask("begin")
    one.ask("select pg_notify('a', repeat('x', 1000) || i) from generate_series(1, 10) i")
    for asked in ("select 1", "rollback"):
        with pytest.raises(LeaseholdError, match="taken none of its notifications") as lost:
            other.ask(asked)
        assert lost.value.sqlstate == "57P01"
    with pytest.raises(LeaseholdError, match="taken none of its notifications"):
        other.session.wait_notifications(0.0)
    assert one.ask("select 1") == [(1,)]


def test_a_change_request_tells_too(database: DevDatabase, other: Client) -> None:
    """Of a producer: beside a row, and alone."""
    other.ask("listen a")
    notify = [["a", "row"], ["b", "x"], ["a", "row"]]
    fields = {"table": "t", "op": "insert", "values": {"id": 5, "n": 5}, "notify": notify}
    assert database.ask(fields).committed
    assert database.ask({"notify": [["a", "alone"]]}).committed
    refused = database.ask(fields)
    assert refused.outcome.code == "23505"
    assert database.ask({"notify": [["a", "end"]]}).committed
    assert [told[:2] for told in other.heard(3)] == [("a", "row"), ("a", "alone"), ("a", "end")]
    other.ask("delete from t")


def test_a_request_with_sql_tells_too(one: Client, other: Client) -> None:
    other.ask("listen a")
    one.ask("begin; create table made (id int primary key); notify a, 'made'; commit")
    one.ask("begin; alter table made add column b int; notify a, 'changed'; commit")
    one.ask("begin; truncate made; notify a, 'emptied'; commit")
    assert [payload for _, payload, _ in other.heard(3)] == ["made", "changed", "emptied"]
    one.ask("drop table made")


def test_notify_is_a_request_without_rows(
    one: Client, other: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that the master may be asked to decide again under the same id."""
    requests: list[ChangeRequest] = []
    submit = one.node.submit

    def seen(request: ChangeRequest, *given: object) -> object:
        requests.append(request)
        return submit(request, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(type(one.node), "submit", lambda self, *given: seen(*given))
    one.ask("notify a, 'x'")
    (request,) = requests
    assert request.notifications is not None
    assert (request.operations, request.sql, request.reads) == ((), None, None)
    assert request.on_conflict is OnConflict.REPLAY
    assert request.notifications[1:] == ("r1", 11)


def test_a_node_that_starts_again_goes_on(database: DevDatabase, one: Client) -> None:
    """Whoever embeds it in `leasehold dev` listens to each of its lives."""
    assert isinstance(one.node.notifications, NodeNotifications)
    one.ask("listen a")
    node = database.cluster.nodes["r1"]
    with database.held():
        node.crash()
        node.start()
    one.ask("notify a, 'x'")
    assert one.heard() == [("a", "x", 11)]
