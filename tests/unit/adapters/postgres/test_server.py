"""Goal: the listener serves many clients beside each other, and each of its limits holds.

Method: real sockets and real clients (psycopg) on a free port; a statement waits for an event of
the test, never for a time.
"""

from __future__ import annotations

import logging
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leasehold.adapters.postgres.connection import KEEP_ALIVE
from leasehold.adapters.postgres.server import PgwireServer
from leasehold.model.errors import ConfigurationError
from leasehold.pgwire.auth.scram_server import verifier_of_password
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.session import TimeLimits
from leasehold.pgwire.wire_errors import Canceled
from leasehold.settings.sql_port import PgwireSettings
from tests.support.pgwire.listening import listening
from tests.support.pgwire.small_session import Shared
from tests.support.pgwire.wire_words import (
    SYNC,
    bind,
    copy_data,
    error_of,
    execute,
    messages,
    parse,
    query,
    said,
    short,
    startup,
)

WAIT_S = 60
SSL_REQUEST = 80877103


def connect(server: PgwireServer, **options: Any) -> psycopg.Connection[Any]:
    given = {"host": "127.0.0.1", "user": "leasehold", "dbname": "demo", **options}
    return psycopg.connect(port=server.port, autocommit=True, connect_timeout=WAIT_S, **given)


def raw(server: PgwireServer) -> socket.socket:
    """A socket that was let in."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S)
    connection.sendall(startup(user="leasehold", database="demo"))
    greeting = b""
    while not greeting.endswith(b"Z\0\0\0\5I"):
        part = connection.recv(65_536)
        assert part, said(greeting)
        greeting += part
    return connection


def silent(server: PgwireServer) -> socket.socket:
    """A socket on which nothing was said yet."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S)


def to_the_end(connection: socket.socket) -> bytes:
    data = b""
    try:
        while part := connection.recv(65_536):
            data += part
    except ConnectionResetError:
        pass
    return data


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except psycopg.Error as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


def until_true(met: Callable[[], bool], what: str) -> None:
    give_up_s = time.monotonic() + WAIT_S
    while not met():
        assert time.monotonic() < give_up_s, f"{what} in {WAIT_S} s"


def test_a_slow_statement_stops_no_other_client() -> None:
    shared = Shared()
    with listening(shared) as server, connect(server) as slow, connect(server) as quick:
        thread, found = in_thread(lambda: slow.execute("select wait()").fetchone())
        assert shared.waiting.wait(WAIT_S)
        assert quick.execute("select 1").fetchone() == (1,)
        shared.release.set()
        thread.join(WAIT_S)
        assert found == [("done",)]


def test_cancel_ends_the_statement_and_the_connection_goes_on() -> None:
    shared = Shared()
    with listening(shared) as server, connect(server) as client:
        thread, found = in_thread(lambda: client.execute("select wait()"))
        assert shared.waiting.wait(WAIT_S)
        client.cancel_safe()
        thread.join(WAIT_S)
        assert [error.sqlstate for error in found] == ["57014"]
        assert client.execute("select 1").fetchone() == (1,)


def test_a_wrong_key_cancels_nothing() -> None:
    shared = Shared()
    with listening(shared) as server, connect(server) as client:
        thread, found = in_thread(lambda: client.execute("select wait()").fetchone())
        assert shared.waiting.wait(WAIT_S)
        for key in (bytes(4), bytes(32)):
            with socket.create_connection(("127.0.0.1", server.port)) as other:
                process = struct.pack("!I", client.info.backend_pid)
                other.sendall(short(80877102, process + key))
                assert to_the_end(other) == b""
        shared.release.set()
        thread.join(WAIT_S)
        assert found == [("done",)]


def test_one_client_too_many_is_told_so() -> None:
    with listening(connections_max=2) as server:
        one, other = connect(server), connect(server)
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            connect(server)
        one.close()
        other.close()
        # Places become free again; the listener learns of it a moment later.
        for _ in range(100):
            try:
                connect(server).close()
                break
            except psycopg.OperationalError:
                continue
        else:
            pytest.fail("no place became free")


def test_what_the_session_refuses_is_the_answer() -> None:
    with listening() as server, pytest.raises(psycopg.OperationalError, match='"nowhere" does not'):
        connect(server, dbname="nowhere")


def test_a_statement_that_takes_too_long_is_cancelled() -> None:
    shared = Shared(time_limits=TimeLimits(statement_s=0.1))
    with listening(shared) as server, connect(server) as client:
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            client.execute("select wait()")
        assert client.execute("select 1").fetchone() == (1,)


def test_a_client_whose_machine_is_gone_is_noticed() -> None:
    """The kernel asks it, and ends a connection on which nobody answers."""
    with listening() as server, connect(server) as client:
        (held,) = server._clients.values()
        connection = held._transport.get_extra_info("socket")
        for level, option, value in KEEP_ALIVE:
            assert connection.getsockopt(level, option) == value
        assert client.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("timed", [False, True])
def test_a_copy_whose_client_says_nothing_is_ended(timed: bool, extended: bool) -> None:
    """A cancel was forgotten there, and each row that came began the statement's time anew."""
    limits = TimeLimits(statement_s=0.1) if timed else TimeLimits()
    copy = "copy t from stdin"
    begin = b"".join([parse(copy), bind(), execute()]) if extended else query(copy)
    with listening(Shared(time_limits=limits)) as server, raw(server) as client:
        client.sendall(query("create table t (a text)") + begin)
        assert until(client, b"G")
        client.sendall(copy_data(b"one\n"))
        if not timed:
            assert server.cancel_client(1, Canceled("canceling statement due to user request"))
        fields = error_of(until(client, b"E"))
        assert (fields["S"], fields["C"]) == ("ERROR", "57014")
        client.sendall(copy_data(b"two\n") + (SYNC if extended else b"") + query("select 1"))
        assert "C(SELECT 1)" in said(until(client, b"C"))


def until(connection: socket.socket, kind: bytes) -> bytes:
    """What is said up to the first message of that kind."""
    data = b""
    while kind.decode() not in [each for each, _ in messages(data)]:
        part = connection.recv(65_536)
        assert part, said(data)
        data += part
    return data


@pytest.mark.parametrize(
    ("limits", "begin", "code"),
    [
        (TimeLimits(idle_s=0.1), "select 1", "57P05"),
        (TimeLimits(idle_in_transaction_s=0.1), "begin", "25P03"),
    ],
)
def test_an_idle_client_is_sent_away(limits: TimeLimits, begin: str, code: str) -> None:
    with listening(Shared(time_limits=limits)) as server, raw(server) as client:
        client.sendall(query(begin))
        fields = error_of(to_the_end(client))
        assert (fields["S"], fields["C"]) == ("FATAL", code)


def test_whoever_says_nothing_is_cut_off() -> None:
    with (
        listening(greeting_timeout_s=1) as server,
        silent(server) as client,
    ):
        assert to_the_end(client) == b""


def test_stopping_tells_clients_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    shared = Shared()
    with listening(shared) as server:
        idle, busy = raw(server), raw(server)
        busy.sendall(query("select wait()"))
        assert shared.waiting.wait(WAIT_S)
        server.call_soon(lambda: None)
    for client in (idle, busy):
        fields = error_of(to_the_end(client))
        assert (fields["S"], fields["C"]) == ("FATAL", "57P01")
        client.close()
    assert set(threading.enumerate()) <= before


class Late(threading.Event):
    """What nobody sets but `let_go`."""

    def set(self) -> None:
        pass

    def let_go(self) -> None:
        super().set()


def test_a_statement_that_outlasts_the_listener_ends_quietly() -> None:
    """It heeds its cancellation only when the loop that its connection was of is closed."""
    before = set(threading.enumerate())
    late = Late()
    shared = Shared(release=late)
    with listening(shared, grace_s=0.1, outlasted=1) as server:
        client = raw(server)
        client.sendall(query("select wait()"))
        assert shared.waiting.wait(WAIT_S)
    client.close()
    outlasting = set(threading.enumerate()) - before
    assert outlasting
    failed: list[threading.ExceptHookArgs] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading, "excepthook", failed.append)
        late.let_go()
        for thread in outlasting:
            thread.join(WAIT_S)
    assert not failed
    assert shared.closed == 1
    assert set(threading.enumerate()) <= before


def test_a_client_that_leaves_ends_its_statement() -> None:
    shared = Shared()
    with listening(shared) as server:
        client = raw(server)
        client.sendall(query("select wait()"))
        assert shared.waiting.wait(WAIT_S)
        client.close()
        assert shared.release.wait(WAIT_S), "nobody cancelled it"


def test_a_slow_reader_holds_up_its_own_statement_alone() -> None:
    rows = 100_000
    limits = Limits(output_bytes_max=8_192)
    with listening(limits=limits) as server, connect(server) as other:
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.settimeout(WAIT_S)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(startup(user="leasehold"))
        slow.sendall(query(f"select generate_series(1, {rows})"))
        for _ in range(20):
            assert other.execute("select 1").fetchone() == (1,)
        slow.sendall(b"X\0\0\0\4")
        data = to_the_end(slow)
        slow.close()
        assert f"C(SELECT {rows})" in said(data)[-3:]


def test_a_reader_that_reads_nothing_is_cut_off_in_the_end() -> None:
    shared, rows = Shared(), 3_000_000
    with listening(shared, write_timeout_s=1) as server:
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(startup(user="leasehold") + query(f"select generate_series(1, {rows})"))
        assert shared.gone.wait(WAIT_S), "nobody cut it off"
    slow.close()
    assert 0 < shared.fetched < rows // 2, "rows were fetched that nobody had room for"


def test_stopping_does_not_wait_for_a_reader_that_reads_nothing() -> None:
    before = set(threading.enumerate())
    shared = Shared()
    with listening(shared, grace_s=0.2) as server:
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(startup(user="leasehold") + query("select generate_series(1, 3000000)"))
        assert shared.fetching.wait(WAIT_S)
    slow.close()
    assert set(threading.enumerate()) <= before


def test_passwords() -> None:
    users = {"me": verifier_of_password("pencil", b"salt" * 4)}
    with listening(users=users) as server:
        with connect(server, user="me", password="pencil") as client:
            assert client.execute("select 1").fetchone() == (1,)
        for user, password in (("me", "wrong"), ("you", "pencil")):
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                connect(server, user=user, password=password)


def test_tls(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    users = {"me": verifier_of_password("pencil", b"salt" * 4)}
    with listening(tls_cert=cert, tls_key=key, users=users) as server:
        with connect(
            server, user="me", password="pencil", sslmode="verify-ca", sslrootcert=str(cert)
        ) as client:
            assert client.pgconn.ssl_in_use
            assert client.execute("select 1").fetchone() == (1,)
        with connect(server, user="me", password="pencil", sslmode="disable") as client:
            assert not client.pgconn.ssl_in_use


def test_plain_words_behind_a_request_for_tls_are_refused(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with (
        listening(tls_cert=cert, tls_key=key) as server,
        silent(server) as client,
    ):
        client.sendall(short(SSL_REQUEST) + startup(user="me"))
        assert said(to_the_end(client)) == ["E(08P01)"]


def test_no_tls_behind_the_request_ends_it(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with (
        listening(tls_cert=cert, tls_key=key) as server,
        silent(server) as client,
    ):
        client.sendall(short(SSL_REQUEST))
        assert client.recv(1) == b"S"
        client.sendall(b"no handshake at all, just words and more words")
        assert len(to_the_end(client)) < 100


def test_the_loop_tells_nothing_of_what_it_was_to_send(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    def broken(data: bytes) -> None:
        raise RuntimeError(data)

    with listening() as server:
        server.call_soon(broken, b"4711")
        with connect(server) as client:
            assert client.execute("select 1").fetchone() == (1,)
    assert "internal error (RuntimeError)" in caplog.text
    assert "4711" not in caplog.text


def certificate(folder: Path) -> tuple[Path, Path]:
    """Signed by itself, made by openssl."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    made += ["-subj", "/CN=localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(made, check=True, capture_output=True)
    return cert, key


def test_another_machine_needs_a_secret() -> None:
    with pytest.raises(ConfigurationError, match="LEASEHOLD_SQL_USERS"):
        PgwireServer(lambda admission: pytest.fail("unused"), PgwireSettings(host="0.0.0.0"))


def test_a_port_that_is_taken_is_said() -> None:
    refused = pytest.raises(ConfigurationError, match="LEASEHOLD_SQL_PORT")
    with listening() as server, refused, listening(port=server.port):
        pass


def test_a_port_that_is_taken_for_a_while_is_waited_for() -> None:
    """By an outgoing connection, say: the kernel gives those ports of the same range."""
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    seen = logging.getLogger("leasehold.pgwire")
    said_so = threading.Event()

    def let_go(record: logging.LogRecord) -> bool:
        if "is taken" in record.getMessage():
            taken.close()
            said_so.set()
        return True

    seen.addFilter(let_go)
    try:
        with listening(port=port, port_patience_s=WAIT_S) as server, connect(server) as client:
            assert client.execute("select 1").fetchone() == (1,)
    finally:
        seen.removeFilter(let_go)
        taken.close()
    assert said_so.is_set()


def test_no_value_and_no_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    users = {"me": verifier_of_password("pencil", b"salt" * 4)}
    with listening(users=users) as server:
        with pytest.raises(psycopg.OperationalError):
            connect(server, user="me", password="4711")
        with (
            connect(server, user="me", password="pencil") as client,
            pytest.raises(psycopg.errors.InternalError_),
        ):
            client.execute("select defect(%s)", ("4711",))
    assert "internal error" in caplog.text
    for secret in ("4711", "pencil", str(users["me"])):
        assert secret not in caplog.text


@settings(max_examples=60)
@given(data=st.binary(max_size=300), let_in=st.booleans())
def test_any_bytes_at_the_port_end_in_an_answer_or_a_closed_connection(
    data: bytes, let_in: bool
) -> None:
    client = raw(SERVER[0]) if let_in else silent(SERVER[0])
    with client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        to_the_end(client)  # which comes: nothing is stuck


SERVER: list[PgwireServer] = []


@pytest.fixture(scope="module", autouse=True)
def _fuzzed_server() -> Iterator[None]:
    """`listening` asserts at its end that every session was closed."""
    with listening() as server:
        SERVER.append(server)
        yield
        with connect(server) as client:
            assert client.execute("select 1").fetchone() == (1,)
