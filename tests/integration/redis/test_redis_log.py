"""Records of the log through a Redis of the test's own that stops, dies and refuses."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator

import pytest
import redis

from leasehold.adapters.redis import connection, pubsub
from leasehold.adapters.redis.log import CHANNELS, FORM, LogChannelPublisher, LogSubscriber
from leasehold.adapters.redis.resp import REPLY_BYTES_MAX
from leasehold.replication.fast_path.log import NOBODY, PUBLISHED_BYTES_MAX, Term
from leasehold.settings.environment import RedisSettings
from tests.support.cluster.redis_server import RedisServer
from tests.support.cluster.redis_talk import Talk

TERM: Term = (3, b"\x00\xffmaster of term 3")


class Both(Talk):
    """A master and a node, as their loops call them."""

    def __init__(self, url: str, term: Term = TERM) -> None:
        super().__init__()
        self.speaker = LogChannelPublisher(RedisSettings(url=url), "t")
        self.ear = LogSubscriber(RedisSettings(url=url), "t")
        self.ear.listen(term)
        self.heard: list[tuple[int, bytes]] = []

    def publish(self, offset: int, record: bytes = b"record", term: Term = TERM) -> int:
        self.number += 1
        if not self.speaker.publish_record(self.number, term, offset, record):
            self.told[self.number] = False
        return self.number

    def turn(self) -> None:
        self.told |= self.speaker.outcomes()
        self.heard += self.ear.records()

    def wait(self) -> None:
        self.ear.wait(0.002)

    def works(self) -> None:
        self.until(lambda: self.outcome(self.publish(0)) and bool(self.heard), "a record heard")
        self.heard.clear()

    def fails(self) -> None:
        self.until(lambda: not self.outcome(self.publish(0)), "a record that nobody hears")

    def close(self) -> None:
        self.speaker.close()
        self.ear.close()


@pytest.fixture
def both(server: RedisServer) -> Iterator[Both]:
    made = Both(server.url)
    made.works()
    yield made
    made.close()


def test_what_is_told_is_heard_byte_by_byte_in_order(both: Both) -> None:
    said = [(10**12 + n, b"\x95" + bytes([n]) * 37 * n) for n in range(200)]
    for offset, record in said:
        both.publish(offset, record)
        both.turn()
    both.until(lambda: len(both.heard) == len(said), "all that was told")
    assert both.heard == said
    assert both.outcome(both.number)


def test_a_record_that_is_too_large_is_named_without_its_bytes(both: Both) -> None:
    assert PUBLISHED_BYTES_MAX < REPLY_BYTES_MAX - 1_000, "with the channel's name and the offset"
    both.publish(7, b"y" * PUBLISHED_BYTES_MAX)
    both.publish(8, b"y" * (PUBLISHED_BYTES_MAX + 1))
    both.publish(9, zlib.compress(bytes(10**6)))
    both.until(lambda: len(both.heard) == 3, "all")
    assert both.heard == [(7, b"y" * PUBLISHED_BYTES_MAX), (8, b""), (9, b"")]


def test_another_terms_master_is_not_heard(both: Both) -> None:
    assert not both.outcome(both.publish(1, term=(4, TERM[1])))
    assert not both.outcome(both.publish(1, term=(3, b"another process!")))
    both.ear.listen((4, b"next"))
    both.until(lambda: both.outcome(both.publish(2, term=(4, b"next"))), "the next term's master")
    both.until(lambda: (2, b"record") in both.heard, "its record")
    both.ear.listen(NOBODY)
    both.fails()
    assert not both.ear.up


def test_what_is_no_record_is_passed_over(both: Both, server: RedisServer) -> None:
    with redis.Redis.from_url(server.url) as client:
        zipped = FORM + bytes(8) + zlib.compress(bytes(10**7))
        for data in (b"", FORM, FORM + bytes(7), b"\x02" + bytes(30), zipped):
            client.publish(CHANNELS.of("t", TERM), data)
        client.publish(CHANNELS.of("t", TERM), FORM + bytes(8))
    both.until(lambda: bool(both.heard), "the last of them")
    assert both.heard == [(0, b"")]
    with redis.Redis.from_url(server.url) as client:
        client.publish(CHANNELS.of("t", TERM), FORM + b"x" * 2 * REPLY_BYTES_MAX)
    both.works()


def test_a_redis_that_stands_still_is_given_up(
    both: Both, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the ear after some silence, by the speaker once it has waited as long."""
    monkeypatch.setattr(connection, "SILENCE_NS", 20_000_000)
    monkeypatch.setattr(pubsub, "SILENCE_NS", 20_000_000)
    server.pause()
    first = both.publish(1)
    both.until(lambda: not both.ear.up, "the ear's end")
    assert first not in both.told, "nobody has said anything"
    both.until(lambda: both.publish(2) > 0 and both.told.get(first) is False, "the speaker's end")
    server.resume()
    both.works()


def test_a_redis_that_comes_back_is_used_again(both: Both, server: RedisServer) -> None:
    server.kill()
    both.fails()
    both.until(lambda: not both.ear.up, "the ear's end")
    server.start()
    both.works()


def test_a_user_without_the_channels_is_told_once_what_to_do(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    with redis.Redis.from_url(server.url) as client:
        rights = ["on", ">secret", "~*", "+@all", "resetchannels", "&leasehold:{t}:acks:*"]
        client.execute_command("ACL", "SETUSER", "node", *rights)
        both = Both(server.url.replace("redis://", "redis://node:secret@"))

        def lines() -> list[str]:
            return [r.getMessage() for r in caplog.records if r.name == "leasehold.redis"]

        caplog.set_level(logging.WARNING)
        both.until(lambda: both.publish(1) > 0 and len(lines()) == 2, "a line of each")
        for _ in range(20):
            both.fails()
        assert len(lines()) == 2
        for line in lines():
            assert f"&{CHANNELS.pattern('t')}" in line
            assert "LEASEHOLD_FAST_LOG=off" in line
            assert "secret" not in line
        words = ["-@all", "+publish", "+subscribe", "+ping", f"&{CHANNELS.pattern('t')}"]
        client.execute_command("ACL", "SETUSER", "node", *words)
        both.works()
        both.close()
