"""Goal: whoever is connected and has not said who it is takes nobody's place: sessions, cancels and
refusals go on, and what is held open displaces itself.

Method: the order of places by itself; then silent sockets, probes and busy workers at a listener.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from ipaddress import ip_address

import psycopg
import pytest

from leasehold.adapters.postgres.arrivals import ARRIVING_MIN, Arrivals, origin_of
from leasehold.adapters.postgres.server import PgwireServer
from leasehold.settings.sql_port import PgwireSettings
from tests.support.pgwire.listening import listening
from tests.support.pgwire.small_session import Shared
from tests.support.pgwire.wire_words import SYNC, startup
from tests.unit.adapters.postgres.test_server import (
    WAIT_S,
    connect,
    in_thread,
    silent,
    to_the_end,
    until_true,
)

MANY = 5 * ARRIVING_MIN


def test_the_oldest_of_the_origin_with_the_most_gives_way() -> None:
    arrivals = Arrivals(4)
    for process, origin in enumerate([1, 2, 2, 2]):
        assert arrivals.enter(process, origin) is None
    assert arrivals.enter(4, 1) == 1
    assert arrivals.enter(5, 3) == 0, "of as many the origin that came first"
    assert arrivals.enter(6, 2) == 2
    assert len(arrivals) == 4


def test_who_has_left_takes_no_place() -> None:
    arrivals = Arrivals(2)
    arrivals.enter(1, 1)
    arrivals.enter(2, 1)
    arrivals.leave(1)
    arrivals.leave(1)
    assert arrivals.enter(3, 1) is None
    assert arrivals.enter(4, 1) == 2


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
    ],
)
def test_addresses_of_one_host_are_one_origin(one: str, other: str, same: bool) -> None:
    assert (origin_of(ip_address(one)) == origin_of(ip_address(other))) is same


def test_silent_connections_keep_nobody_out() -> None:
    with listening(connections_max=2) as server, ExitStack() as held:
        kept = [held.enter_context(silent(server)) for _ in range(MANY)]
        with connect(server) as one, connect(server) as two:
            assert [c.execute("select 1").fetchone() for c in (one, two)] == [(1,), (1,)]
        assert to_the_end(kept[0]) == b"", "the oldest is cut off"
        assert len(server._arrivals) <= ARRIVING_MIN


def test_who_has_logged_in_is_displaced_by_nobody() -> None:
    with listening(connections_max=2) as server, connect(server) as client, ExitStack() as held:
        for _ in range(MANY):
            held.enter_context(silent(server))
        assert client.execute("select 1").fetchone() == (1,)


def busy(server: PgwireServer, shared: Shared) -> Callable[[], None]:
    """The only worker is at a statement; what comes back cancels it, and waits for it."""
    client = connect(server)
    thread, found = in_thread(lambda: client.execute("select wait()"))
    assert shared.waiting.wait(WAIT_S)

    def cancel() -> None:
        client.cancel_safe(timeout=WAIT_S)
        thread.join(WAIT_S)
        assert [error.sqlstate for error in found] == ["57014"]
        client.close()

    return cancel


def test_probes_need_no_worker() -> None:
    """A load balancer connects and leaves, all the time, also while every worker is busy."""
    shared = Shared()
    with listening(shared, connections_max=1) as server:
        cancel = busy(server, shared)
        for _ in range(MANY):
            silent(server).close()
        until_true(lambda: len(server._clients) == 1, "one client left")
        cancel()


def test_one_too_many_is_told_so_while_all_workers_are_busy() -> None:
    shared = Shared()
    with listening(shared, connections_max=1) as server:
        cancel = busy(server, shared)
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            connect(server)
        cancel()


def test_one_who_is_turned_away_is_not_counted_whatever_it_says() -> None:
    with listening(connections_max=1) as server, connect(server):
        for _ in range(MANY):
            with silent(server) as refused:
                refused.sendall(startup(user="leasehold", database="demo") + SYNC * MANY)
                assert b"53300" in to_the_end(refused)
        until_true(lambda: len(server._clients) == 1, "one client left")


def test_who_is_not_let_in_has_ten_seconds() -> None:
    assert PgwireSettings().greeting_timeout_s == 10
