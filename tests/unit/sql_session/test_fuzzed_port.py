"""Goal: whatever bytes come to a node's port, nothing breaks, nothing is stuck and nothing is left.

Method: transcripts of clients, with bytes, lengths and messages changed, joined and cut at random,
sent in pieces over real sockets to a listener whose sessions are the real ones, on a whole database
in this process. Then what was taken must have been given back.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from leasehold.adapters.sqlite.snapshot import Reader, Readers
from leasehold.dev.database import DevDatabase
from leasehold.settings.sql_port import PgwireSettings
from leasehold.sql_session.listener import SqlListener
from tests.support.pgwire.spoiled_messages import spoil_message
from tests.support.pgwire.wire_words import (
    COPY_DONE,
    FLUSH,
    SYNC,
    TERMINATE,
    bind,
    close,
    copy_data,
    copy_fail,
    describe,
    execute,
    message,
    parse,
    query,
    short,
    startup,
)

WAIT_S = 60
CASES = 400
SEED = int(os.environ.get("SEED") or random.SystemRandom().getrandbits(32))
DATABASE = "dev"
BEGIN = startup(user="me", database=DATABASE)
READ = (parse("select note from t where id = $1", "r"), bind("3", name="r"), execute(), SYNC)
WRITE = (parse("update t set n = n + 1 where id = $1"), bind("4"), describe(portal=True), execute())
TRANSCRIPTS: tuple[tuple[bytes, ...], ...] = (
    (BEGIN, query("select 1; select note from t where id = 2"), TERMINATE),
    (BEGIN, *READ, bind("4", name="r"), describe(portal=True), execute("", 1), SYNC, TERMINATE),
    (BEGIN, *WRITE, SYNC, *READ),
    (BEGIN, query("begin"), *WRITE, SYNC, query("savepoint a; select 1/0"), query("rollback")),
    (BEGIN, query("begin isolation level repeatable read"), *READ, *WRITE, SYNC, query("commit")),
    (BEGIN, query("insert into t (id, n) values (7, 1) on conflict (id) do update set n = 2")),
    (BEGIN, query("copy t (id, note) from stdin"), copy_data(b"90\tx\n91\t\\N\n"), copy_fail("no")),
    (BEGIN, query("copy t (id) from stdin (format csv)"), copy_data(b"1\n"), COPY_DONE, *READ),
    (BEGIN, parse("select id from t order by id"), bind(portal="p"), execute("p", 2), FLUSH),
    (BEGIN, close("r"), close("p", portal=True), describe("r"), SYNC, message(b"F", b"x")),
    (BEGIN, query("set statement_timeout = '1s'; show timezone; reset all; discard all")),
    (short(80877103), BEGIN, *READ),
    (short(80877102, bytes(8)),),
    (startup(196610, user="me", database=DATABASE, _pq_=""), *READ),
    (startup(user="me", database="nowhere"),),
)


def mutated(chance: random.Random, messages: tuple[bytes, ...]) -> bytes:
    """The greeting stays as it is in most cases: else little would come behind it."""
    parts = list(messages)
    first = 0 if chance.random() < 0.15 else 1
    if chance.random() < 0.3:
        parts += chance.choice(TRANSCRIPTS)[1:]
    for _ in range(chance.randrange(4)):
        if len(parts) > first:
            spoil_message(chance, parts, chance.randrange(first, len(parts)))
    if chance.random() < 0.1:
        parts.append(chance.randbytes(chance.randrange(1, 200)))
    return b"".join(parts)


def played(chance: random.Random, port: int) -> None:
    """One client, to its end; one in eight leaves without waiting for anything."""
    data = mutated(chance, chance.choice(TRANSCRIPTS))
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as client:
        try:
            while data:
                size = chance.choice((1, 7, 50, len(data)))
                client.sendall(data[:size])
                data = data[size:]
            if chance.random() < 0.125:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            client.shutdown(socket.SHUT_WR)
            while client.recv(65_536):
                pass
        except TimeoutError:
            raise
        except OSError:
            pass  # it was ended from the other side, which is an answer too


class Counted:
    """Read connections that are in use."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.in_use: dict[int, Reader] = {}
        take, give_back = Readers._take, Readers.give_back

        def taken(readers: Readers) -> Reader:
            reader = take(readers)
            self.in_use[id(reader)] = reader
            return reader

        def given(readers: Readers, reader: Reader) -> None:
            self.in_use.pop(id(reader), None)
            give_back(readers, reader)

        patch.setattr(Readers, "_take", taken)
        patch.setattr(Readers, "give_back", given)


def _soon(met: Callable[[], bool], what: str) -> None:
    """The listener notices that a client has left a moment after it has."""
    done = threading.Event()
    for _ in range(WAIT_S * 100):
        if met():
            return
        done.wait(0.01)
    pytest.fail(f"seed {SEED}: {what}")


def test_any_bytes_leave_a_node_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    print(f"{CASES} cases, seed {SEED}")
    caplog.set_level(logging.WARNING)
    database = DevDatabase(tmp_path)
    try:
        database.wait_ready()
        node = database.sql_node("r1")
        assert node.database == DATABASE
        threads = set(threading.enumerate())
        counted = Counted(monkeypatch)
        listener = SqlListener(node, PgwireSettings())
        given: dict[str, Any] = {"host": "127.0.0.1", "port": listener.port, "user": "me"}
        with psycopg.connect(**given, dbname=DATABASE, autocommit=True) as client:
            client.execute("create table t (id int primary key, n int, note text)")
            client.execute("insert into t select g, g, 'note' from generate_series(1, 5) g")
        chance = random.Random(SEED)
        for number in range(CASES):
            try:
                played(chance, listener.port)
            except TimeoutError:
                pytest.fail(f"seed {SEED}, case {number}: the connection is stuck")
        with psycopg.connect(**given, dbname=DATABASE, autocommit=True) as client:
            assert client.execute("select 1").fetchone() == (1,)
            assert client.execute("select note from t where id = 3").fetchone() is not None
        server = listener._server
        _soon(lambda: not server._clients, "a connection is left")
        assert not asyncio.all_tasks(server.loop)
        _soon(lambda: not counted.in_use, "a read connection was not given back")
        listener.close()
        leases = node._running.agent
        assert leases is not None
        for versions in leases.leases.all.values():
            assert all(held.is_idle for held in versions.values()), "a lease was not given back"
        assert set(threading.enumerate()) <= threads
    finally:
        database.close()
    assert "internal error" not in caplog.text
