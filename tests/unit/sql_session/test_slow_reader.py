"""Goal: a client that reads slowly, or not at all, or says no more, keeps no snapshot open, and one
that goes on reading gets its whole result.

Method: a conversation over a real session, whose client is as far behind as the test says (drawn;
the seed is printed); then a socket that does not read, at a real listener.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from leasehold.adapters.os.row_spool import SPOOL_BATCH_BYTES, RowSpool
from leasehold.adapters.postgres import connection as pgwire_client
from leasehold.adapters.postgres import reader_pace
from leasehold.dev.database import DevDatabase
from leasehold.pgwire.conversation import Conversation
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.phases import Behind
from leasehold.pgwire.wire_errors import Canceled
from leasehold.settings.sql_port import PgwireSettings
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.listener import SqlListener
from leasehold.sql_session.portals import QueryPortal
from leasehold.sql_session.session import SqlSession
from tests.support.pgwire.wire_words import (
    FLUSH,
    SYNC,
    bind,
    error_of,
    execute,
    messages,
    parse,
    query,
    said,
    startup,
)

ROWS = 3_000
WIDE = f"SELECT g, repeat('x', 500) FROM generate_series(1, {ROWS}) AS g"
RESULT_BYTES = ROWS * 500
WAIT_S = 30
SOON_S = 0.05


class Reader:
    """A client without a socket. `behind`: how far it is when it is told something."""

    def __init__(self, database: DevDatabase) -> None:
        self.spoken: list[bytes] = []
        self.behind: Callable[[], Behind | None] = lambda: None
        self.held: list[bool] = []
        self.defects: list[Exception] = []
        self.session = SqlSession(database.sql_node(), Plans(), user="me")
        self.conversation = Conversation(self.session, self._say, Limits(), self.defects.append)
        self.conversation.begin(7, b"key!")

    def _say(self, data: bytes) -> Behind | None:
        self.held.append(holds_snapshot(self.conversation))
        self.spoken.append(data)
        return self.behind()

    def ask(self, *said_: bytes) -> bytes:
        self.spoken.clear()
        self.held.clear()
        for each in said_:
            assert self.conversation.receive(each) is None
        return b"".join(self.spoken)


def holds_snapshot(conversation: Conversation) -> bool:
    running = conversation._batch.running
    open_ = [
        *conversation._batch.objects._portals.values(),
        *([] if running is None else [running]),
    ]
    portals = [each.portal for each in open_]
    return any(isinstance(p, QueryPortal) and p._snapshot is not None for p in portals)


def numbers(data: bytes) -> list[int]:
    """The first column of rows."""
    return [int(word[2:].split(",")[0]) for word in said(data) if word.startswith("D(")]


@pytest.fixture
def reader(database: DevDatabase) -> Iterator[Reader]:
    made = Reader(database)
    yield made
    made.conversation.close()
    assert not made.defects
    assert made.session._cursors.room.bytes_taken == 0


@pytest.fixture
def draw() -> random.Random:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.mark.parametrize("extended", [False, True])
def test_rows_that_are_not_taken_are_put_aside(reader: Reader, extended: bool) -> None:
    reader.behind = lambda: Behind.SLOW
    asks = [parse(WIDE), bind(), execute(), SYNC] if extended else [query(WIDE)]
    answer = reader.ask(*asks)
    assert numbers(answer) == [*range(1, ROWS + 1)]
    assert f"C(SELECT {ROWS})" in said(answer)[-2:]
    assert reader.held.count(True) == 1, "until the first time that it was behind"


def test_copy_out_is_put_aside_too(reader: Reader) -> None:
    reader.behind = lambda: Behind.SLOW
    answer = reader.ask(query(f"COPY ({WIDE}) TO STDOUT"))
    lines = [body for kind, body in messages(answer) if kind == "d"]
    assert [int(line.split(b"\t")[0]) for line in lines] == [*range(1, ROWS + 1)]
    assert reader.held.count(True) == 1


def test_a_result_for_which_there_is_no_room_comes_whole(
    reader: Reader, draw: random.Random
) -> None:
    """However far behind its client is, and whenever: short of standing."""
    for _ in range(8):
        reader.session._cursors.room.bytes_max = SPOOL_BATCH_BYTES + draw.randrange(RESULT_BYTES)
        slow = draw.random()
        reader.behind = lambda slow=slow: Behind.SLOW if draw.random() < slow else None  # type: ignore[misc]
        assert numbers(reader.ask(query(WIDE))) == [*range(1, ROWS + 1)]


def test_an_error_behind_rows_that_are_put_aside_comes_in_its_place(
    reader: Reader, draw: random.Random
) -> None:
    text = f"SELECT g, repeat('x', 500), 1 / ({ROWS} - g) FROM generate_series(1, {ROWS}) AS g"
    for _ in range(4):
        reader.session._cursors.room.bytes_max = SPOOL_BATCH_BYTES + draw.randrange(
            2 * RESULT_BYTES
        )
        reader.behind = lambda: Behind.SLOW if draw.random() < 0.5 else None
        answer = reader.ask(query(text))
        assert numbers(answer) == [*range(1, ROWS)]
        assert said(answer)[-2:] == ["E(22012)", "Z(I)"]


def test_who_stands_gets_what_was_put_aside_and_is_told_that_it_is_not_all(
    reader: Reader,
) -> None:
    reader.session._cursors.room.bytes_max = RESULT_BYTES // 2
    levels = iter([Behind.SLOW, Behind.SLOW, Behind.STANDING])
    reader.behind = lambda: next(levels, None)
    answer = reader.ask(query(WIDE))
    found = numbers(answer)
    assert ROWS // 3 < len(found) < ROWS
    assert found == [*range(1, len(found) + 1)]
    assert "read faster" in error_of(answer)["M"]
    assert said(answer)[-1] == "Z(I)"
    assert reader.held.count(True) == 3, "until it stood"
    reader.behind = lambda: None
    assert numbers(reader.ask(query(WIDE))) == [*range(1, ROWS + 1)]


def test_one_that_stands_at_once_gets_what_there_is_room_for(reader: Reader) -> None:
    reader.behind = lambda: Behind.STANDING
    assert len(numbers(reader.ask(query(WIDE)))) == ROWS


def test_a_cancel_ends_what_is_not_taken(reader: Reader) -> None:
    def cancels() -> Behind | None:
        reader.behind = lambda: None
        reader.conversation.cancel(Canceled("canceling statement due to user request"))
        return Behind.SLOW

    reader.behind = cancels
    assert said(reader.ask(query(WIDE)))[-2:] == ["E(57014)", "Z(I)"]
    assert not holds_snapshot(reader.conversation)


def test_rows_that_can_not_be_put_aside_are_an_error_in_their_place(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(spool: RowSpool, rows: list[Any]) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(RowSpool, "add", breaks)
    reader.behind = lambda: Behind.SLOW
    answer = reader.ask(query(WIDE))
    found = numbers(answer)
    assert found == [*range(1, len(found) + 1)], "those that it was told before"
    assert said(answer)[-2:] == ["E(53100)", "Z(I)"]
    assert reader.held.count(True) == 1


def test_a_portal_of_a_block_that_has_failed_holds_no_snapshot(reader: Reader) -> None:
    reader.ask(query("begin"), query("savepoint s"))
    fails = parse("SELECT 1 / 0", "f") + bind(portal="f", name="f") + execute("f")
    answer = reader.ask(parse(WIDE) + bind(portal="p") + execute("p", 2) + fails + SYNC)
    assert said(answer)[-2:] == ["E(22012)", "Z(E)"]
    assert not holds_snapshot(reader.conversation)
    reader.ask(query("rollback"))


# ---------------------------------------------------------------- at a listener


@pytest.fixture
def listener(database: DevDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlListener]:
    monkeypatch.setattr(reader_pace, "ASIDE_LAG_S", SOON_S)
    monkeypatch.setattr(pgwire_client, "ASIDE_LAG_S", SOON_S)
    made = SqlListener(database.sql_node(), PgwireSettings(port=0))
    yield made
    made.close()


def let_in(listener: SqlListener) -> tuple[socket.socket, Conversation]:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.settimeout(WAIT_S)
    made.connect(("127.0.0.1", listener.port))
    made.sendall(startup(user="me", database="dev"))
    assert b"Z\0\0\0\5I" in until(made, b"Z\0\0\0\5I")
    (client,) = listener._server._clients.values()
    assert client._conversation is not None
    return made, client._conversation


def until(connection: socket.socket, end: bytes) -> bytes:
    data = bytearray()
    while not data.endswith(end):
        part = connection.recv(1 << 16)
        assert part, "the connection was closed"
        data += part
    return bytes(data)


def comes_true(met: Callable[[], bool], what: str) -> None:
    give_up_s = time.monotonic() + WAIT_S
    while not met():
        assert time.monotonic() < give_up_s, f"{what} in {WAIT_S} s"


def test_a_reader_that_stops_keeps_no_snapshot_and_gets_all_when_it_goes_on(
    listener: SqlListener,
) -> None:
    count = 20_000  # 10 MB: more than kernels keep of it
    text = f"SELECT g, repeat('x', 500) FROM generate_series(1, {count}) AS g"
    connection, conversation = let_in(listener)
    with connection:
        connection.sendall(query(text))
        comes_true(lambda: holds_snapshot(conversation), "a query")
        comes_true(lambda: not holds_snapshot(conversation), "rows that are put aside")
        running: Any = conversation._batch.running
        assert running is not None, "while it is told of them"
        answer = until(connection, b"Z\0\0\0\5I")
        assert numbers(answer) == [*range(1, count + 1)]


def test_who_says_no_more_in_a_batch_keeps_no_snapshot(listener: SqlListener) -> None:
    """It has asked for some rows, and neither for the others nor for the end of the batch."""
    connection, conversation = let_in(listener)
    with connection:
        connection.sendall(parse(WIDE) + bind() + execute("", 2) + FLUSH)
        answer = until(connection, b"s\0\0\0\4")
        assert numbers(answer) == [1, 2]
        comes_true(lambda: not holds_snapshot(conversation), "rows that are put aside")
        connection.sendall(execute("", 0) + SYNC)
        answer = until(connection, b"Z\0\0\0\5I")
        assert numbers(answer) == [*range(3, ROWS + 1)]
