"""Goal: LISTEN and NOTIFY are those of PostgreSQL.

Method: the same stories said to both, and the same tags and SQLSTATEs; then two sessions that tell
each other something, and what each hears, of whom, and when. Ours are on two nodes: what comes from
another node has no process of this one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import asyncpg
import psycopg
import pytest

from tests.support.postgres.both_servers import Connection
from tests.support.postgres.client_server import Server
from tests.support.postgres.stories import check_story, told

pytestmark = pytest.mark.integration

DEADLINE_S: Final = 30.0
STORIES: Final = {
    "tags and channels": """
        listen a
        listen "B"
        listen a
        select * from pg_listening_channels()
        notify a
        notify a, 'x'
        notify "B", ''
        unlisten a
        unlisten never
        select pg_listening_channels()
        select count(*), min(c) from pg_listening_channels() as t (c)
        unlisten *
        select * from pg_listening_channels()
        select pg_notification_queue_usage()
        listen a
        discard all
        select * from pg_listening_channels()
    """,
    "channels of a transaction": """
        listen a
        begin
        listen b
        unlisten a
        select * from pg_listening_channels()
        savepoint s
        unlisten *
        listen c
        rollback to s
        commit
        select * from pg_listening_channels()
        begin
        unlisten *
        rollback
        select * from pg_listening_channels()
        begin
        unlisten *
        listen d
        commit
        select * from pg_listening_channels()
        begin
        select 1/0
        listen e
        notify e
        unlisten d
        rollback
        select * from pg_listening_channels()
        begin read only
        listen f
        notify f, 'x'
        commit
        select * from pg_listening_channels()
    """,
    "what is wrong": """
        select pg_notify('', 'x')
        select pg_notify(null, 'x')
        select pg_notify('a', null)
        select pg_notify(repeat('c', 63), 'x')
        select pg_notify(repeat('c', 64), 'x')
        select pg_notify('a', repeat('x', 7999))
        select pg_notify('a', repeat('x', 8000))
        select pg_notify('a')
        select pg_notify(1, 2)
        select pg_notify('a', 'x'), pg_notify('a', 'x') is null, pg_notify('a', 'y')::text = ''
        listen
        listen a.b
        listen *
        unlisten
        notify
        notify a, 7
        notify a, 'x' || 'y'
        notify 'a'
    """,
}
HEARD: Final[dict[str, list[tuple[str, str]]]] = {
    "at commit, in order, each once": [
        ("two", "listen a"),
        ("two", "listen b"),
        ("one", "begin"),
        ("one", "notify a, '1'"),
        ("one", "notify b, '1'"),
        ("one", "notify a, '1'"),
        ("one", "select pg_notify('a', x) from (values ('2'), ('1'), ('3')) as t (x)"),
        ("one", "notify a"),
        ("one", "notify a, ''"),
        ("one", "commit"),
        ("one", "notify a, '1'"),
    ],
    "nothing that is taken back": [
        ("two", "listen a"),
        ("one", "begin"),
        ("one", "notify a, '1'"),
        ("one", "savepoint s"),
        ("one", "notify a, '2'"),
        ("one", "rollback to s"),
        ("one", "notify a, '3'"),
        ("one", "savepoint s"),
        ("one", "notify a, '4'"),
        ("one", "release s"),
        ("one", "commit"),
        ("one", "begin"),
        ("one", "notify a, '5'"),
        ("one", "rollback"),
        ("one", "begin"),
        ("one", "notify a, '6'"),
        ("one", "select 1/0"),
        ("one", "commit"),
        ("one", "notify a, '7'; select 1/0"),
        ("one", "notify a, '8'; select 1"),
    ],
    "behind the listener's transaction": [
        ("two", "listen a"),
        ("two", "begin"),
        ("two", "select 1"),
        ("one", "notify a, '1'"),
        ("two", "select 2"),
        ("two", "notify a, '2'"),
        ("one", "notify a, '3'"),
        ("two", "commit"),
    ],
    "its own": [
        ("two", "begin"),
        ("two", "listen a"),
        ("two", "notify a, 'heard'"),
        ("two", "commit"),
        ("two", "begin"),
        ("two", "notify a, 'not heard'"),
        ("two", "unlisten a"),
        ("two", "commit"),
        ("two", "listen a"),
        ("two", "notify a, 'heard again'"),
    ],
    "what came before LISTEN, and behind UNLISTEN": [
        ("one", "notify a, '1'"),
        ("two", "listen a"),
        ("one", "notify a, '2'"),
        ("two", "select 1"),
        ("two", "unlisten a"),
        ("one", "notify a, '3'"),
        ("two", "listen a"),
        ("one", "notify a, '4'"),
    ],
    "within statements that write": [
        ("one", "create table member (id int primary key, n int)"),
        ("two", "listen a"),
        ("one", "insert into member values (1, 10), (2, 20) returning pg_notify('a', 'i' || id)"),
        ("one", "update member set n = n + 1 returning n, pg_notify('a', 'u' || n)"),
        ("one", "delete from member where pg_notify('a', 'd' || id) is not null returning id"),
        ("one", "select pg_notify('a', 'none') from member"),
        ("one", "drop table member"),
    ],
}


@pytest.mark.parametrize("name", STORIES)
def test_statements_answer_the_same(servers: tuple[Server, Server], name: str) -> None:
    check_story(servers, STORIES[name])


Heard = list[tuple[str, str, bool]]


def heard_by(connection: Connection, end: Callable[[], Any]) -> Heard:
    """What a session is told up to the end, and whether by itself."""
    found: Heard = []
    end()
    for notify in connection.notifies(timeout=DEADLINE_S):
        if notify.payload == "the end":
            return found
        own = notify.pid == connection.info.backend_pid
        found.append((notify.channel, notify.payload, own))
    raise AssertionError(found)


def listened(one: Connection, two: Connection, script: list[tuple[str, str]]) -> list[Any]:
    """The answers to a script, and what the second session has heard."""
    answers = [told({"one": one, "two": two}[who], text) for who, text in script]
    two.execute("listen the_end")
    return [*answers, heard_by(two, lambda: one.execute("notify the_end, 'the end'"))]


@pytest.mark.parametrize("name", HEARD)
def test_sessions_hear_the_same(servers: tuple[Server, Server], name: str) -> None:
    found = []
    for server in servers:
        with server.psycopg(autocommit=True) as one, server.psycopg(autocommit=True) as two:
            found.append(listened(one, two, HEARD[name]))
    assert found[0] == found[1]


def test_what_comes_meanwhile_is_told_before_the_answer_ends(
    servers: tuple[Server, Server],
) -> None:
    """libpq hands it over while it reads an answer: no further message is waited for."""
    for server in servers:
        found: list[str] = []
        with server.psycopg(autocommit=True) as connection:
            connection.add_notify_handler(lambda notify: found.append(notify.payload))  # noqa: B023
            connection.execute("listen a")
            for number in range(20):
                connection.execute(f"notify a, '{number}'")
                assert found[-1:] == [str(number)], server.kind
            with connection.transaction():
                connection.execute("select pg_notify('a', 'x')")
                assert found[-1] == "19", server.kind
            assert found[-1] == "x", server.kind


def test_a_pipeline_is_told_behind_its_sync(servers: tuple[Server, Server]) -> None:
    for server in servers:
        found: list[str] = []
        with server.psycopg(autocommit=True) as connection:
            connection.add_notify_handler(lambda notify: found.append(notify.payload))  # noqa: B023
            connection.execute("listen a")
            with connection.pipeline():
                connection.execute("select pg_notify('a', %s)", ("1",))
                connection.execute("notify a, '2'")
            connection.execute("select 1")
        assert found == ["1", "2"], server.kind


def test_asyncpg_is_told_while_it_waits(servers: tuple[Server, Server]) -> None:
    async def run(server: Server) -> list[Any]:
        listener = await asyncpg.connect(**server.asyncpg())
        sender = await asyncpg.connect(**server.asyncpg())
        found: list[Any] = []
        ended = asyncio.Event()

        def take(connection: Any, pid: int, channel: str, payload: str) -> None:
            found.append((channel, payload, pid == connection.get_server_pid()))
            if payload == "end":
                ended.set()

        await listener.add_listener("a", take)
        await listener.execute("notify a, 'own'")
        await sender.execute("select pg_notify('a', $1)", "x")
        async with sender.transaction():
            await sender.execute("notify a, 'y'")
            await sender.execute("notify a, 'end'")
        await asyncio.wait_for(ended.wait(), DEADLINE_S)
        await listener.remove_listener("a", take)
        await listener.close()
        await sender.close()
        return found

    ours, theirs = (asyncio.run(run(server)) for server in servers)
    assert ours == theirs
    assert [payload for _, payload, _ in ours] == ["own", "x", "y", "end"]


def test_many_at_once_come_in_order(servers: tuple[Server, Server]) -> None:
    """More than one portion, and from several senders; each sender's in its order."""
    for server in servers:
        with server.psycopg(autocommit=True) as listener:
            listener.execute("listen a")
            senders = [server.psycopg(autocommit=True) for _ in range(3)]
            for number in range(30):
                for place, sender in enumerate(senders):
                    sender.execute(
                        "select pg_notify('a', %s || ' ' || (%s * 100 + i) || repeat('x', 500))"
                        " from generate_series(0, 99) i",
                        (place, number),
                    )
            for sender in senders:
                sender.close()
            found: dict[str, list[int]] = {}
            for notify in listener.notifies(timeout=DEADLINE_S, stop_after=9_000):
                who, _, told_last = notify.payload.rstrip("x").partition(" ")
                found.setdefault(who, []).append(int(told_last))
        assert found == {str(place): list(range(3_000)) for place in range(3)}, server.kind


def test_psycopg_sees_a_listener_that_ends(servers: tuple[Server, Server]) -> None:
    """A session that is ended hears nothing more, and its connection is closed."""
    for server in servers:
        with server.psycopg(autocommit=True) as one, server.psycopg(autocommit=True) as two:
            two.execute("listen a")
            one.execute("select pg_terminate_backend(%s)", (two.info.backend_pid,))
            with pytest.raises(psycopg.OperationalError):
                list(two.notifies(timeout=DEADLINE_S))
            one.execute("notify a")
