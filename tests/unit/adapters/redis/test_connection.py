"""A line to Redis: for how long it may be away, and what its words may not show.

Method: a listener of a test's own in Redis's place, which shuts the door or lets in.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from leasehold.adapters.redis import connection
from leasehold.adapters.redis.connection import Advice, RedisLine
from leasehold.settings.environment import RedisSettings

DEADLINE_S = 20.0
MORE_THAN_A_POOL_MAKES = 130


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Bound, and not listening: who connects is refused, and nobody else gets the port."""
    monkeypatch.setattr(connection, "PAUSE_NS", 1)
    monkeypatch.setattr(connection, "PAUSE_NS_MAX", 1)
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        yield made


def line_to(door: socket.socket, rest: str = "") -> RedisLine:
    return RedisLine(
        RedisSettings(url=f"redis://127.0.0.1:{door.getsockname()[1]}/0{rest}"), "words"
    )


def until(met: Callable[[], bool], what: str) -> None:
    give_up_s = time.monotonic() + DEADLINE_S
    while not met():
        assert time.monotonic() < give_up_s, f"{what} in {DEADLINE_S:g} s"


def attempts_fail(line: RedisLine, count: int) -> None:
    for _ in range(count):
        until(lambda: line._attempt is not None or line.open(), "an attempt")
        until(lambda: line.open() or line._attempt is None, "the end of an attempt")
        assert not line.up


def test_redis_may_be_away_for_as_long_as_it_likes(door: socket.socket) -> None:
    """A pool of redis-py's makes a hundred connections, counted for good; then it raises, and the
    fast way would never have come back: eight minutes at a pause of 5 s."""
    line = line_to(door)
    attempts_fail(line, MORE_THAN_A_POOL_MAKES)
    door.listen()
    door.setblocking(False)
    inside: list[socket.socket] = []

    def let_in() -> bool:
        with suppress(BlockingIOError):
            inside.append(door.accept()[0])
        for each in inside:
            each.setblocking(False)
            try:
                said = each.recv(10_000)
            except BlockingIOError:
                continue
            each.sendall(b"+OK\r\n" * said.count(b"\r\n*") + b"+OK\r\n" * said.startswith(b"*"))
        return line.open()

    until(let_in, "a connection")
    assert line.up
    line.close()
    for each in inside:
        each.close()


def test_whatever_goes_wrong_with_an_attempt_is_one_line(
    door: socket.socket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also what is no error of redis-py's nor of the system's: a name that is none, say."""

    def fails(*_: object, **__: object) -> None:
        raise UnicodeError("label too long")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    line = line_to(door)
    attempts_fail(line, 3)  # a thread that ends by an exception is a warning, hence a failure here
    (record,) = (r for r in caplog.records if r.name == "leasehold.redis")
    assert "label too long" in record.getMessage()


def test_a_password_in_the_address_is_not_said(
    door: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "leasehold.redis")
    line = line_to(door, "?password=a@hidden&ssl_password=hidden")
    attempts_fail(line, 1)
    line.works()
    assert len(caplog.records) == 2
    for record in caplog.records:
        assert "hidden" not in record.getMessage()
        assert "redis://127.0.0.1:" in record.getMessage()


def test_advice_is_told_even_after_other_trouble_and_once(
    door: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    line = line_to(door)
    for why in ("closed", "refused", Advice("do this"), "closed", Advice("do that")):
        line.say(why)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "(closed)" in told[0]
    assert "(do this)" in told[1]
    line.works()
    line.say("closed")
    assert len(caplog.records) == 4, "and that it works again"


def test_trouble_with_one_thing_does_not_hide_that_with_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    line = RedisLine(RedisSettings(), "news")
    line.say(Advice("denied"), "letters")
    line.say(Advice("denied"), "letters")
    line.say("closed")
    line.works()
    line.say(Advice("denied"), "letters")
    line.say("closed")
    said = [record.getMessage().split(" by ")[0] for record in caplog.records]
    assert said == ["no letters", "no news", "news", "no news"]
