"""Goal: a connection whose messages are all there never waits, however many come at once, however
their bytes are cut, and whatever came before them on the same connection.

Method: a database and its listener in this process; batches of 1 to 10,000 messages, three times on
one connection, by bare bytes cut at random places (the seed is printed), psycopg and asyncpg.
"""

from __future__ import annotations

import asyncio
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import asyncpg
import psycopg
import pytest

from leasehold.dev.database import DevDatabase
from leasehold.pgwire.conversation import HURRIED_MESSAGES_MAX
from leasehold.settings.sql_port import PgwireSettings
from leasehold.sql_session.listener import SqlListener
from tests.support.pgwire.wire_words import SYNC, bind, describe, execute, messages, parse, startup

WAIT_S = 30
TURNS = 3
MOST = 10_000
PIPELINED = 3_000
SIZES = [1, HURRIED_MESSAGES_MAX - 1, HURRIED_MESSAGES_MAX, HURRIED_MESSAGES_MAX + 1, MOST]
PIECES_MAX = 40


@pytest.fixture(scope="module")
def port(database: DevDatabase) -> Iterator[int]:
    listener = SqlListener(database.sql_node(), PgwireSettings(port=0))
    yield listener.port
    listener.close()


@pytest.fixture
def draw() -> random.Random:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    return random.Random(seed)


def raw(port: int) -> socket.socket:
    """A socket that was let in."""
    made = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.sendall(startup(user="me", database="dev"))
    answers(made)
    return made


def answers(connection: socket.socket) -> Counter[str]:
    """Kinds of what is said up to ReadyForQuery, counted. A silence of WAIT_S is an error."""
    data = bytearray()
    while not data.endswith(b"Z\0\0\0\5I"):
        part = connection.recv(1 << 16)
        assert part, "the connection was closed"
        data += part
    return Counter(kind for kind, _ in messages(bytes(data)))


def batch(size: int) -> tuple[bytes, Counter[str]]:
    """That many messages, Sync at the end, and what has to be said to them."""
    kinds = [(bind("7", name="q"), "2"), (describe(portal=True), "T"), (execute(), "DC")]
    said: Counter[str] = Counter("Z")
    made = []
    for number in range(size - 1):
        data, kind = kinds[number % 3]
        made.append(data)
        said.update(kind)
    return b"".join(made) + SYNC, said


def cut(data: bytes, draw: random.Random) -> list[bytes]:
    """In pieces, mostly not between two messages."""
    places = {draw.randrange(len(data) + 1) for _ in range(draw.randrange(PIECES_MAX))}
    at = [0, *sorted(places), len(data)]
    return [data[begin:end] for begin, end in pairwise(at)]


def test_every_size_of_a_batch_is_answered_three_times(port: int, draw: random.Random) -> None:
    sizes = [*SIZES, *(draw.randrange(2, 600) for _ in range(6))]
    for size in sizes:
        data, wanted = batch(size)
        with raw(port) as connection:
            connection.sendall(parse("SELECT $1::integer", "q") + SYNC)
            answers(connection)
            for _ in range(TURNS):
                for piece in cut(data, draw):
                    connection.sendall(piece)
                assert answers(connection) == wanted, size


def test_batches_of_many_sizes_follow_one_another(port: int, draw: random.Random) -> None:
    """What one batch leaves behind must not be in the way of the next, be it larger or smaller."""
    with raw(port) as connection:
        connection.sendall(parse("SELECT $1::integer", "q") + SYNC)
        answers(connection)
        for _ in range(60):
            data, wanted = batch(draw.choice([*SIZES[:-1], draw.randrange(1, 400)]))
            for piece in cut(data, draw):
                connection.sendall(piece)
            assert answers(connection) == wanted


def test_psycopg_writes_batches_one_after_another(port: int, draw: random.Random) -> None:
    sizes = [1, 21, 22, 40, draw.randrange(2, 400)]

    def work() -> tuple[int, Any]:
        with connect(port) as client:
            client.execute("CREATE TABLE written (id int PRIMARY KEY, label text)")
            first = 0
            for size in sizes:
                for _ in range(TURNS):
                    rows = [(n, "x") for n in range(first, first + size)]
                    with client.transaction():
                        client.cursor().executemany("INSERT INTO written VALUES (%s, %s)", rows)
                    first += size
            return first, client.execute("SELECT count(*), max(id) FROM written").fetchone()

    count, found = in_time(work)
    assert found == (count, count - 1)


def test_psycopg_pipelines_thousands(port: int) -> None:
    def work() -> list[Any]:
        found = []
        with connect(port) as client:
            for _ in range(TURNS):
                with client.pipeline():
                    cursors = [client.execute("SELECT %s::int", (n,)) for n in range(PIPELINED)]
                found += [cursor.fetchone() for cursor in cursors]
        return found

    assert in_time(work) == [(n,) for n in range(PIPELINED)] * TURNS


def test_asyncpg_writes_batches_one_after_another(port: int, draw: random.Random) -> None:
    sizes = [1, 21, 22, 40, draw.randrange(2, 400)]

    async def run() -> tuple[int, Any]:
        client = await asyncpg.connect(dsn(port), timeout=WAIT_S, command_timeout=WAIT_S)
        await client.execute("CREATE TABLE sent (id int PRIMARY KEY, label text)")
        first = 0
        for size in sizes:
            for _ in range(TURNS):
                rows = [(n, "x") for n in range(first, first + size)]
                await client.executemany("INSERT INTO sent VALUES ($1, $2)", rows)
                first += size
        count = await client.fetchval("SELECT count(*) FROM sent")
        await client.close()
        return first, count

    wanted, count = asyncio.run(run())
    assert count == wanted


def in_time(work: Callable[[], Any]) -> Any:
    """What it comes to. A driver itself would wait for ever."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except psycopg.Error as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(WAIT_S)
    assert found, "an answer never came"
    return found[0]


def dsn(port: int) -> str:
    return f"postgresql://me@127.0.0.1:{port}/dev"


def connect(port: int) -> psycopg.Connection[Any]:
    return psycopg.connect(dsn(port), autocommit=True, connect_timeout=WAIT_S)
