"""Requests and their answers on a Redis of the test's own that stops, dies and refuses."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from functools import partial

import pytest
import redis

from leasehold.adapters.redis.acks import ACK_BYTES_MAX, AckPublisher
from leasehold.adapters.redis.acks import CHANNELS as ACKS
from leasehold.adapters.redis.master_subscriber import MasterSubscriber
from leasehold.adapters.redis.requests import (
    ANSWERS,
    ASKER_BYTES,
    FORM,
    REQUEST_BYTES_MAX,
    REQUESTS,
    AnswerPublisher,
    AnswerSubscriber,
    RequestPublisher,
    pack_requests,
    read_requests,
)
from leasehold.adapters.redis.resp import REPLY_BYTES_MAX
from leasehold.model.records.requests import Outcome, Result, ResultBatch
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.settings.environment import RedisSettings
from tests.support.cluster.redis_server import RedisServer
from tests.support.cluster.redis_talk import DEADLINE_S, Talk

TERM: Term = (3, b"\x00\xffmaster of term 3")
ME = bytes(range(ASKER_BYTES))
OTHER = b"\xff" * ASKER_BYTES
JSON = "application/json"
Told = tuple[int, int, tuple[tuple[str, bytes], ...]]
COMMANDS = ["+publish", "+subscribe", "+ping"]


def result(number: int, answer: object = None) -> Result:
    return Result(number.to_bytes(8, "big"), number, Outcome(1, 7, 1, 0, True, answer=answer))


class Both(Talk):
    """A requester and a master, as their loops call them."""

    def __init__(self, url: str, requester: bytes = ME, term: Term = TERM) -> None:
        super().__init__()
        settings = RedisSettings(url=url)
        self.requester = requester
        self.speaker = RequestPublisher(settings, "t", requester)
        self.answers = AnswerSubscriber(settings, "t", requester)
        self.master = MasterSubscriber(settings, "t")
        self.master.listen(term)
        self.replies = AnswerPublisher(settings, "t")
        self.heard: list[Told] = []
        self.acks: list[bytes] = []
        self.answered: list[Result] = []

    def ask(self, *bodies: bytes, term: Term = TERM) -> int:
        self.number += 1
        self.speaker.open()
        told = [(JSON, body) for body in bodies]
        if not self.speaker.publish_requests(term, 1, self.number, told):
            self.told[self.number] = False
        return self.number

    def answer(self, *results: Result, requester: bytes | None = None) -> None:
        self.replies.publish_answers(requester or self.requester, ResultBatch(results))

    def turn(self) -> None:
        self.speaker.open()
        self.answers.open()
        self.told |= {number: heard for (_, number), heard in self.speaker.outcomes()}
        heard = self.master.received()
        for data in heard.requests:
            asked = read_requests(data)
            if asked is not None:
                self.heard.append(asked[1:4])
        self.acks += heard.acks
        self.answered += self.answers.results()

    def wait(self) -> None:
        self.master.wait(0.002)

    def asks(self) -> None:
        """Until a request is heard."""
        self.until(lambda: self.outcome(self.ask(b"x")) and bool(self.heard), "a request heard")
        self.heard.clear()
        self.told.clear()

    def asks_in_vain(self) -> None:
        self.until(lambda: not self.outcome(self.ask(b"x")), "a request that nobody hears")

    def is_answered(self) -> None:
        def heard() -> bool:
            self.answer(result(0))
            return bool(self.answered)

        self.until(heard, "an answer")
        self.turn()
        self.until(lambda: self.quiet(), "the last of them")
        self.answered.clear()

    def quiet(self) -> bool:
        """Whether all that was answered has come: what is told last comes last. Behind a standstill
        it may be given up, as answers are that Kafka carries then: another one is told."""
        self.number += 1
        last = result(self.number)
        self.answer(last)
        give_up_s = time.monotonic() + 1
        while self.answered[-1:] != [last] and time.monotonic() < give_up_s:
            self.turn()
            self.wait()
        return self.answered[-1:] == [last]

    def has_answers(self, count: int) -> bool:
        return len(self.answered) == count

    def works(self) -> None:
        self.asks()
        self.is_answered()

    def close(self) -> None:
        for each in (self.speaker, self.answers, self.master, self.replies):
            each.close()


@pytest.fixture
def both(server: RedisServer) -> Iterator[Both]:
    made = Both(server.url)
    made.works()
    yield made
    made.close()


def test_what_is_asked_and_answered_is_heard_whole_in_order(both: Both) -> None:
    bodies = [(b"%d" % n, bytes([n]) * 150 * n) for n in range(200)]
    numbers = []
    for pair in bodies:
        numbers.append(both.ask(*pair))
        both.turn()
    both.until(lambda: len(both.heard) == len(bodies), "all that was asked")
    assert [told[1] for told in both.heard] == numbers
    assert [tuple(body for _, body in told[2]) for told in both.heard] == bodies
    assert both.outcome(numbers[-1])
    assert all(both.told.values())
    results = [result(n, "x" * 20 * (n % 200)) for n in range(1_000)]
    # Fifty are told in several parts, and still no more than a connection takes while Redis has not
    # read any of it: what is beyond that is given up, and would be Kafka's.
    for end in range(50, len(results) + 1, 50):
        both.answer(*results[end - 50 : end])
        both.until(partial(both.has_answers, end), "what was answered")
    assert both.answered == results


def test_a_terms_channel_is_heard_by_its_master_alone(both: Both, server: RedisServer) -> None:
    assert not both.outcome(both.ask(b"x", term=(4, TERM[1])))
    assert not both.outcome(both.ask(b"x", term=(3, b"another process!")))
    other = Both(server.url, OTHER, (3, b"another process!"))
    other.until(lambda: other.outcome(other.ask(b"y", term=(3, b"another process!"))), "heard")
    both.asks()
    assert {body for _, _, told in other.heard for _, body in told} == {b"y"}
    both.master.listen(NOBODY)
    both.asks_in_vain()
    other.close()


def test_who_ends_to_hear_requests_hears_all_that_were_said_to_be_heard(both: Both) -> None:
    """And its acknowledgements as before. The next one nobody is said to have heard."""
    numbers = [both.ask(b"%d" % number) for number in range(50)]
    both.until(lambda: numbers[-1] in both.told, "Redis's word for those of before")
    both.master.end_requests()
    numbers += [both.ask(b"%d" % number) for number in range(50, 60)]
    both.until(lambda: not both.master.hears_requests, "the end")
    both.until(lambda: numbers[-1] in both.told, "Redis's word for the last one")
    heard = {told[1] for told in both.heard}
    assert heard == {number for number in numbers if both.told[number]}
    assert heard >= set(numbers[:50])
    both.asks_in_vain()
    assert both.master.up


def test_an_askers_answers_are_heard_by_itself_alone(both: Both, server: RedisServer) -> None:
    other = Both(server.url, OTHER)
    other.is_answered()
    both.answer(result(7), requester=OTHER)
    other.until(lambda: other.answered == [result(7)], "an answer")
    both.is_answered()
    assert other.answered == [result(7)]
    other.turn()
    assert other.answered == [result(7)]
    other.close()


def test_a_redis_that_stands_still_answers_nothing_and_later_all(
    both: Both, server: RedisServer
) -> None:
    server.pause()
    number = both.ask(b"late")
    both.answer(result(7))
    for _ in range(20):
        both.turn()
        both.master.wait(0.001)
    assert number not in both.told
    server.resume()
    assert both.outcome(number)
    both.until(lambda: both.answered == [result(7)], "what was answered meanwhile")
    assert [told[2] for told in both.heard] == [((JSON, b"late"),)]


def test_nobody_waits_for_a_redis_that_stands_still(both: Both, server: RedisServer) -> None:
    server.pause()
    begun = time.monotonic()
    for _ in range(2_000):
        both.ask(b"x" * 10_000)
        both.answer(result(0, "x" * 10_000))
        both.turn()
    assert time.monotonic() - begun < DEADLINE_S
    assert list(both.told.values()).count(False) > 1_000
    assert not any(both.told.values())
    server.resume()
    both.works()


def test_a_redis_that_dies_is_said_once_and_found_again(
    both: Both, server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "leasehold.redis")
    server.kill()
    for _ in range(5):
        both.asks_in_vain()
        both.answer(result(0))

    def lines(word: str) -> int:
        return sum(word in record.getMessage() for record in caplog.records)

    ends = 4  # two of each
    both.until(lambda: lines("Kafka carries them meanwhile") == ends, "a line of each")
    assert len(caplog.records) == ends
    server.start()
    both.works()
    both.until(lambda: lines("again") == ends, "a line of each")
    assert len(caplog.records) == 2 * ends


@pytest.mark.parametrize("kind", ["pubsub", "normal"])
def test_a_connection_that_redis_ends_is_made_anew(
    both: Both, server: RedisServer, kind: str
) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.client_kill_filter(_type=kind, skipme=True)
        both.works()


def test_what_is_too_large_is_no_request_and_ends_no_connection(
    both: Both, server: RedisServer
) -> None:
    """What Redis hands on whole. Beyond that the connection is given up, and recreated."""
    room = REQUEST_BYTES_MAX - len(pack_requests(ME, 1, 1, [(JSON, b"x" * 50_000)])) + 50_000
    assert both.outcome(both.ask(b"x" * room))
    both.until(lambda: len(both.heard) == 1, "the largest one")
    both.ask(b"x" * (room + 1))
    assert both.outcome(both.ask(b"behind"))
    both.until(lambda: len(both.heard) == 2, "the one behind it")
    assert both.heard[1][2] == ((JSON, b"behind"),)
    both.ask(b"x" * REPLY_BYTES_MAX * 4)
    both.heard.clear()
    both.works()


@pytest.mark.parametrize("size", [0, 1, 40, REPLY_BYTES_MAX * 4])
def test_what_anybody_else_says_harms_nobody(both: Both, server: RedisServer, size: int) -> None:
    with redis.Redis.from_url(server.url) as client:
        for said in (b"\xff" * size, FORM + b"\x93" * size):
            client.publish(REQUESTS.of("t", TERM), said)
            client.publish(ANSWERS.named("t", ME.hex()), said)
            client.publish(ANSWERS.named("t", ME.hex()), FORM + said)
    both.works()


def test_what_is_too_large_for_an_acknowledgement_is_none(both: Both, server: RedisServer) -> None:
    """A request may be larger, on its own channel."""
    assert both.outcome(both.ask(b"x" * 2 * ACK_BYTES_MAX))
    with redis.Redis.from_url(server.url) as client:
        client.publish(ACKS.of("t", TERM), b"x" * (ACK_BYTES_MAX + 1))
        client.publish(ACKS.of("t", TERM), b"x" * ACK_BYTES_MAX)
    both.until(lambda: bool(both.acks), "an acknowledgement")
    assert [len(ack) for ack in both.acks] == [ACK_BYTES_MAX]
    assert len(both.heard) == 1


# ---------------------------------------------------------------- rights


def user_of(server: RedisServer, *channels: str) -> str:
    """URL of a user with the rights of a node, and those channels alone."""
    with redis.Redis.from_url(server.url) as client:
        words = ["reset", "on", ">secret", "~*", "-@all", *COMMANDS, "resetchannels"]
        words += [f"&{channel}" for channel in channels]
        client.execute_command("ACL", "SETUSER", "node", *words)
    return server.url.replace("redis://", "redis://node:secret@")


def advice(caplog: pytest.LogCaptureFixture, pattern: str) -> int:
    lines = [r.getMessage() for r in caplog.records if r.name == "leasehold.redis"]
    assert not any("secret" in line for line in lines)
    found = [line for line in lines if f"&{pattern}" in line]
    for line in found:
        assert "NOPERM" in line
        assert "LEASEHOLD_FAST_REQUESTS=off" in line
    return len(found)


def test_without_the_channel_of_requests_acknowledgements_go_on(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """As of a user whose rights were given for an older release."""
    url = user_of(server, ACKS.pattern("t"))
    both = Both(url)
    acks = AckPublisher(RedisSettings(url=url), "t")
    number = 0

    def told() -> None:
        nonlocal number
        count = len(both.acks)

        def more() -> bool:
            nonlocal number
            number += 1
            acks.publish_to_term(TERM, b"ack", number)
            acks.outcomes()
            return len(both.acks) > count

        both.until(more, "an acknowledgement")

    told()
    both.until(lambda: advice(caplog, REQUESTS.pattern("t")) == 1, "the master's line")
    for _ in range(20):
        both.asks_in_vain()
        told()
    assert advice(caplog, REQUESTS.pattern("t")) == 2, "and the requester's"
    caplog.clear()
    user_of(server, *(kind.pattern("t") for kind in (ACKS, REQUESTS, ANSWERS)))
    both.master.listen(TERM)  # the next term
    both.works()
    both.close()
    acks.close()


def test_without_the_channel_of_answers_nobody_has_an_ear(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Then nothing is asked by this way (`AnswerSubscriber.up`), and one line of each side says
    why."""
    both = Both(user_of(server, ACKS.pattern("t"), REQUESTS.pattern("t")))
    both.asks()

    def lines() -> bool:
        both.answer(result(0))
        return advice(caplog, ANSWERS.pattern("t")) == 2

    both.until(lines, "a line of each")
    for _ in range(20):
        both.answer(result(0))
        both.asks()
    assert advice(caplog, ANSWERS.pattern("t")) == 2
    assert not both.answered
    user_of(server, *(kind.pattern("t") for kind in (ACKS, REQUESTS, ANSWERS)))
    both.works()
    both.close()
