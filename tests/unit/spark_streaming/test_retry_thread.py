"""The thread of the retry stream: whatever the driver's own loop does, the stream turns; and what
ends it is raised in that loop."""

from __future__ import annotations

import threading

import pytest

from spark_streaming import retry_thread
from spark_streaming.retry_thread import POOL, RetryThread

TIMEOUT_S = 20.0


class Stream:
    """Notes who calls it; `turned` is set with its second turn."""

    def __init__(self) -> None:
        self.trouble, self.waiting = "", 0
        self.threads: set[int] = set()
        self.turns = 0
        self.turned, self.closed = threading.Event(), threading.Event()
        self.fails_at: dict[str, Exception] = {}

    def _called(self, name: str) -> None:
        self.threads.add(threading.get_ident())
        if name in self.fails_at:
            raise self.fails_at[name]

    def start(self) -> None:
        self._called("start")

    def turn(self) -> None:
        self.turns += 1
        self._called("turn")
        if self.turns > 1:
            self.turned.set()

    def close(self) -> None:
        self._called("close")
        self.closed.set()


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Stream:
    monkeypatch.setattr(retry_thread, "POLL_S", 0.001)
    return Stream()


def made(stream: Stream, pools: list[tuple[str, int]] | None = None) -> RetryThread:
    taken = [] if pools is None else pools

    def take(pool: str) -> None:
        taken.append((pool, threading.get_ident()))

    return RetryThread(stream, take)


def test_it_turns_though_nobody_else_does(stream: Stream) -> None:
    """Its own thread starts the query, so that the query's jobs are of its pool."""
    pools: list[tuple[str, int]] = []
    thread = made(stream, pools)
    thread.start()
    assert stream.turned.wait(TIMEOUT_S), "this thread, as a driver's loop, does nothing meanwhile"
    thread.check()
    stream.trouble, stream.waiting = "Kafka is away", 3
    assert (thread.trouble, thread.waiting) == ("Kafka is away", 3)
    thread.close()
    assert stream.closed.is_set()
    ((pool, ident),) = pools
    assert (pool, {ident}) == (POOL, stream.threads)
    assert ident != threading.get_ident()


def test_what_it_can_not_start_with_is_raised_at_the_start(stream: Stream) -> None:
    stream.fails_at["start"] = OSError("no checkpoint")
    thread = made(stream)
    with pytest.raises(OSError, match="no checkpoint"):
        thread.start()
    assert stream.closed.wait(TIMEOUT_S)
    assert stream.turns == 0


def test_what_ends_it_later_is_raised_in_the_drivers_loop(stream: Stream) -> None:
    thread = made(stream)
    thread.start()
    stream.fails_at["turn"] = LookupError("who?")  # now: `start` raises what comes before its end
    assert stream.closed.wait(TIMEOUT_S)
    with pytest.raises(LookupError, match=r"who\?"):
        thread.check()
    thread.close()


def test_one_that_was_never_started_is_closed(stream: Stream) -> None:
    made(stream).close()
    assert stream.closed.is_set()
