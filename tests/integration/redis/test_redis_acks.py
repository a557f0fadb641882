"""The fast way of acknowledgements on a Redis of its own that stops, dies and refuses."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from leasehold.adapters.redis import connection
from leasehold.adapters.redis.acks import (
    ACK_BYTES_MAX,
    CHANNELS,
    AckPublisher,
    MasterLook,
)
from leasehold.adapters.redis.master_subscriber import MasterSubscriber
from leasehold.adapters.redis.resp import REPLY_BYTES_MAX
from leasehold.replication.fast_path.log import NOBODY
from leasehold.settings.environment import RedisSettings
from tests.support.cluster.redis_server import RedisServer, listen_by_tls, self_signed
from tests.support.cluster.redis_talk import DEADLINE_S, Talk

TERM = (3, b"\x00\xffmaster of term 3")
CHANNEL = CHANNELS.of("t", TERM)


class Both(Talk):
    """A node and its master, as their loops call them."""

    def __init__(self, settings: RedisSettings, database: str = "t") -> None:
        super().__init__()
        self.speaker = AckPublisher(settings, database)
        self.listener = MasterSubscriber(settings, database, (CHANNELS,))
        self.heard: list[bytes] = []
        self.longest = 0

    def publish(self, data: bytes = b"ack", term: tuple[int, bytes] = TERM) -> int:
        self.number += 1
        if not self.speaker.publish_to_term(term, data, self.number):
            self.told[self.number] = False
        return self.number

    def turn(self) -> None:
        self.told |= self.speaker.outcomes()
        self.heard += self.listener.received().acks
        self.longest = max(self.longest, *map(len, self.heard), 0)

    def wait(self) -> None:
        self.listener.wait(0.002)

    def outcome(self, number: int) -> bool:
        """Of that one: the answer to a later one stands for it where all were well."""

        def known() -> bool:
            return any(n >= number for n in self.told)

        self.until(known, "an outcome")
        return self.told[min(n for n in self.told if n >= number)]

    def works(self) -> None:
        """Tell until it is heard."""

        def heard() -> bool:
            return self.outcome(self.publish()) and b"ack" in self.heard

        self.until(heard, "an acknowledgement that is heard")
        self.heard.clear()
        self.told.clear()

    def fails(self) -> None:
        self.until(lambda: not self.outcome(self.publish()), "an acknowledgement that is not heard")

    def close(self) -> None:
        self.speaker.close()
        self.listener.close()


@pytest.fixture
def both(server: RedisServer) -> Iterator[Both]:
    made = Both(RedisSettings(url=server.url))
    made.listener.listen(TERM)
    made.works()
    yield made
    made.close()


def test_what_is_told_is_heard_in_order_and_answered_for(both: Both) -> None:
    said = [b"%d" % n for n in range(300)]
    last = [both.publish(data) for data in said][-1]
    both.until(lambda: len(both.heard) == 300, "all that was told")
    assert both.heard == said
    assert both.outcome(last)
    assert all(both.told.values())


class Looking(Talk):
    """A standby that looks for the master of a term."""

    def __init__(self, settings: RedisSettings) -> None:
        super().__init__()
        self.look = MasterLook(settings, "t")
        self.found: list[tuple[object, bool]] = []

    def turn(self) -> None:
        self.found += self.look.outcomes()

    def wait(self) -> None:
        self.look._line.wait(0.002)

    def sees(self) -> bool:
        """Look until that is answered, and return whether somebody listens."""
        self.found.clear()
        self.until(lambda: self.look.ask(TERM), "a connection")
        self.until(lambda: bool(self.found), "an answer to a look")
        assert {term for term, _ in self.found} == {TERM}
        return self.found[-1][1]


def test_who_looks_sees_whether_the_master_s_connection_is_there(
    both: Both, server: RedisServer
) -> None:
    looking = Looking(RedisSettings(url=server.url))
    assert looking.sees()
    both.listener.close()
    looking.until(lambda: not looking.sees(), "a connection that is closed to be missed")
    server.kill()
    looking.found.clear()
    looking.look.ask(TERM)
    looking.until(lambda: not looking.look.up, "the connection to be lost")
    assert not looking.found, "nothing is told where Redis says nothing"
    looking.look.close()


def test_nobody_listens_to_another_term_log_or_cluster(both: Both, server: RedisServer) -> None:
    other_epoch = both.publish(term=(4, TERM[1]))
    other_process = both.publish(term=(3, b"another process!"))
    assert not both.outcome(other_epoch)
    assert not both.outcome(other_process)
    other = Both(RedisSettings(url=server.url.replace("/0", "/1")), "t2")
    other.until(lambda: other.publish() > 0 and other.speaker._line.up, "a connection")
    assert not other.outcome(other.publish())
    other.close()
    assert not both.heard


def test_a_master_that_stops_listening_is_not_counted(both: Both) -> None:
    both.listener.listen(NOBODY)
    both.fails()
    assert not both.listener.up
    both.listener.listen(TERM)
    both.works()


def test_a_redis_that_stands_still_answers_nothing_and_later_all(
    both: Both, server: RedisServer
) -> None:
    server.pause()
    number = both.publish(b"late")
    for _ in range(20):
        both.turn()
        both.listener.wait(0.001)
    assert number not in both.told
    server.resume()
    assert both.outcome(number)
    both.until(lambda: both.heard == [b"late"], "what was told meanwhile")


def test_telling_never_waits_for_a_redis_that_stands_still(both: Both, server: RedisServer) -> None:
    """Its buffers fill up: then the connection is given up, and none of it counts as told."""
    server.pause()
    begun = time.monotonic()
    for _ in range(20_000):
        both.publish(b"x" * ACK_BYTES_MAX)
        both.turn()
    assert time.monotonic() - begun < DEADLINE_S
    assert list(both.told.values()).count(False) > 10_000
    assert not any(told for number, told in both.told.items() if number > 1 + 1)
    server.resume()
    both.works()


def test_half_a_command_is_none(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Redis would take for its other half is the next command."""

    class Narrow:
        def send(self, data: bytes) -> int:
            return len(data) - 1

    monkeypatch.setattr(both.speaker._line, "_socket", Narrow())
    assert not both.outcome(both.publish())
    assert not both.speaker._line.up
    both.works()


def test_a_redis_that_dies_is_said_once_and_found_again(
    both: Both, server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "leasehold.redis")
    server.kill()
    for _ in range(5):
        both.fails()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2, lines  # the node's, and the master's
    assert all("Kafka carries them meanwhile" in line for line in lines)
    caplog.clear()
    server.start()
    both.works()
    assert len(caplog.records) == 2
    assert all("again" in record.getMessage() for record in caplog.records)


def test_a_connection_that_redis_ends_is_made_anew(both: Both, server: RedisServer) -> None:
    """As when its buffer for a listener that does not read is full."""
    with redis.Redis.from_url(server.url) as client:
        client.client_kill_filter(_type="pubsub")
        both.works()
        client.client_kill_filter(_type="normal", skipme=True)
        both.works()


def test_a_listener_whose_redis_says_nothing_looks_for_it_anew(
    both: Both, server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SILENCE_NS", 30_000_000)
    with redis.Redis.from_url(server.url) as client:
        before = client.info("stats")["total_connections_received"]
        begun = time.monotonic()
        both.until(lambda: time.monotonic() - begun > 0.3, "some silence")
        assert client.info("stats")["total_connections_received"] == before  # PING is answered
    server.pause()
    both.until(lambda: not both.listener.up, "a listener that gives up")
    monkeypatch.setattr(connection, "SILENCE_NS", 1_000_000_000)
    server.resume()
    both.works()


@pytest.mark.parametrize("size", [0, ACK_BYTES_MAX, ACK_BYTES_MAX + 1, REPLY_BYTES_MAX * 4])
def test_what_anybody_else_says_harms_nobody(both: Both, server: RedisServer, size: int) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.publish(CHANNEL, b"x" * size)
        client.publish("leasehold:{t}:acks:other", b"x")
    both.works()
    assert both.longest <= ACK_BYTES_MAX


def test_a_user_without_the_channels_is_told_once_what_to_do(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    rights = ["on", ">secret", "~*", "+@all", "resetchannels"]
    url = server.url.replace("redis://", "redis://node:secret@")
    with redis.Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "node", *rights)
        both = Both(RedisSettings(url=url))
        both.listener.listen(TERM)

        def lines() -> list[str]:
            return [r.getMessage() for r in caplog.records if r.name == "leasehold.redis"]

        both.until(lambda: both.publish() > 0 and len(lines()) == 2, "a line of each")
        for _ in range(20):
            both.fails()
        assert len(lines()) == 2
        for line in lines():
            assert "NOPERM" in line
            assert f"&{CHANNELS.pattern('t')}" in line
            assert "LEASEHOLD_FAST_ACKS=off" in line
            assert "secret" not in line
        # With the rights that the line names, and no other command.
        words = ["-@all", "+publish", "+subscribe", "+ping", f"&{CHANNELS.pattern('t')}"]
        client.execute_command("ACL", "SETUSER", "node", *words)
        both.works()
        both.close()


def said_in_vain(settings: RedisSettings, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines that a node logs whose acknowledgements fail again and again."""
    caplog.clear()
    both = Both(settings)
    both.until(lambda: both.publish() > 0 and bool(caplog.records), "a line")
    for _ in range(5):
        both.fails()
    both.close()
    return [record.getMessage() for record in caplog.records]


def test_a_password_is_given_as_for_the_ledger(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.config_set("requirepass", "secret")
    for password in (None, "wrong"):
        (line,) = said_in_vain(RedisSettings(url=server.url, password=password), caplog)
        assert "LEASEHOLD_REDIS_PASSWORD" in line
    right = Both(RedisSettings(url=server.url, password="secret"))
    right.listener.listen(TERM)
    right.works()
    right.close()


def test_tls_as_for_the_ledger(server: RedisServer, tmp_path: Path) -> None:
    """Its records come in other pieces than what was sent, and a socket does not tell of all."""
    certificate, key = self_signed(tmp_path)
    port = listen_by_tls(server.url, certificate, key)
    url = f"rediss://127.0.0.1:{port}/0"
    stranger = Both(RedisSettings(url=url))
    stranger.fails()  # nobody whom it trusts has signed that
    stranger.close()
    both = Both(RedisSettings(url=url, ca=certificate))
    both.listener.listen(TERM)
    both.works()
    said = [bytes([n % 256]) * ACK_BYTES_MAX for n in range(500)]
    for data in said:
        both.publish(data)
        both.turn()
    both.until(lambda: len(both.heard) == len(said), "all that was told")
    assert both.heard == said
    assert both.outcome(both.number)
    server.pause()
    for data in said * 20:
        both.publish(data)
        both.turn()
    server.resume()
    both.works()
    both.close()
