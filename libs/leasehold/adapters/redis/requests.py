"""The fast way of requests and answers (`replication/fast_path/requests.py`): a requester PUBLISHes
its requests on the channel of the master's term, and listens on one of its own.

A message of requests: a byte for the form, who asks (16 bytes), the run and the number in it (8
each), then [[content type, body], …] as MessagePack. One of answers: a byte for the form, then a
ResultBatch as it stands on the topic `results`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

import msgpack

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.redis.pubsub import ChannelPublisher, Channels, ChannelSubscriber
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.requests import Result, ResultBatch
from leasehold.replication.effects import RequestsReceived
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.settings.environment import RedisSettings

REQUESTS: Final = Channels("requests", "requests", "LEASEHOLD_FAST_REQUESTS")
ANSWERS: Final = Channels("answers", "answers", "LEASEHOLD_FAST_REQUESTS")
FORM: Final = b"\x01"
ASKER_BYTES: Final = 16
NUMBER_BYTES: Final = 8
HEAD_BYTES: Final = len(FORM) + ASKER_BYTES + 2 * NUMBER_BYTES
REQUEST_BYTES_MAX: Final = 60 * 1024
REQUESTS_MAX: Final = 1_024
CONTENT_TYPE_MAX: Final = 100
ANSWER_BYTES_MAX: Final = 48 * 1024
CODEC: Final = MessagePackCodec()
LOG: Final = logging.getLogger("leasehold.results")

Request = tuple[str, bytes]
"""Content type and body."""


def packed_requests(requester: bytes, run: int, number: int, requests: Sequence[Request]) -> bytes:
    assert len(requester) == ASKER_BYTES, requester
    head = (
        FORM + requester + run.to_bytes(NUMBER_BYTES, "big") + number.to_bytes(NUMBER_BYTES, "big")
    )
    body: bytes = msgpack.packb(requests)
    return head + body


def requests_of(data: bytes) -> RequestsReceived | None:
    """None: it is no such message, whoever said it."""
    if not HEAD_BYTES < len(data) <= REQUEST_BYTES_MAX or not data.startswith(FORM):
        return None
    requester_end = len(FORM) + ASKER_BYTES
    run_end = requester_end + NUMBER_BYTES
    try:
        said = msgpack.unpackb(data[HEAD_BYTES:], use_list=False, max_array_len=REQUESTS_MAX)
    except Exception:  # noqa: BLE001 - msgpack raises what it likes for bytes that are none of its
        return None
    if not isinstance(said, tuple) or not all(_is_request(one) for one in said):
        return None
    return RequestsReceived(
        data[len(FORM) : requester_end],
        int.from_bytes(data[requester_end:run_end], "big"),
        int.from_bytes(data[run_end:HEAD_BYTES], "big"),
        said,
    )


def _is_request(said: object) -> bool:
    return (
        isinstance(said, tuple)
        and len(said) == 2
        and isinstance(said[0], str)
        and len(said[0]) <= CONTENT_TYPE_MAX
        and isinstance(said[1], bytes)
    )


class RequestPublisher:
    """Publishes a requester's requests. For one thread at a time, which it never blocks."""

    def __init__(self, settings: RedisSettings, database: str, requester: bytes) -> None:
        self._publisher = ChannelPublisher[tuple[int, int]](settings, database, REQUESTS)
        self._database = database
        self._requester = requester
        self._term = NOBODY
        self._channel = b""

    def open(self) -> None:
        """Have the connection made, if it is not there."""
        self._publisher.open()

    @property
    def up(self) -> bool:
        return self._publisher.up

    def tell(self, term: Term, run: int, number: int, requests: Sequence[Request]) -> bool:
        """False: it was not told, and won't be. `outcomes` says what became of the others."""
        if self._term != term:
            self._term = term
            self._channel = REQUESTS.of(self._database, term)
        data = packed_requests(self._requester, run, number, requests)
        return self._publisher.tell(self._channel, data, (run, number))

    def outcomes(self) -> list[tuple[tuple[int, int], bool]]:
        """((run, number), whether a master listened) of those that Redis has answered since."""
        return self._publisher.outcomes()

    def close(self) -> None:
        self._publisher.close()


class AnswerSubscriber:
    """Receives the answers to a requester. For one thread, which it never blocks."""

    def __init__(self, settings: RedisSettings, database: str, requester: bytes) -> None:
        self._subscriber = ChannelSubscriber(settings, database, ANSWERS)
        self._channel = ANSWERS.named(database, requester.hex())

    @property
    def up(self) -> bool:
        return self._subscriber.up

    def open(self) -> None:
        """Have the connection made; `results` goes on with it."""
        self._subscriber.listen_to((self._channel, ANSWERS))

    def wait(self, timeout_s: float) -> None:
        """Until something may have come."""
        self._subscriber.wait(timeout_s)

    def results(self) -> list[Result]:
        """What was told since the last call; to be called again and again."""
        found: list[Result] = []
        for data in self._subscriber.messages():
            if not data.startswith(FORM):
                continue
            try:
                found += CODEC.decode_as(ResultBatch, data[len(FORM) :]).results
            except MalformedRequest as error:
                LOG.debug("an answer that was told is left out: %s", error.message)
        return found

    def close(self) -> None:
        self._subscriber.close()


class AnswerPublisher:
    """Publishes the master's answers. What a requester does not receive it asks for through Kafka,
    so nothing comes back of what is told. For one thread, which it never holds up."""

    def __init__(self, settings: RedisSettings, database: str) -> None:
        self._publisher = ChannelPublisher[None](settings, database, ANSWERS)
        self._database = database

    def tell(self, requester: bytes, batch: ResultBatch) -> None:
        self._publisher.outcomes()
        channel = ANSWERS.named(self._database, requester.hex())
        for data in _in_parts(batch):
            if not self._publisher.tell(channel, data, None):
                break

    def open(self) -> None:
        """Have the connection made before it is needed."""
        self._publisher.open()

    def close(self) -> None:
        self._publisher.close()


def _in_parts(batch: ResultBatch) -> Iterable[bytes]:
    """Of what Redis keeps for who does not take it, and its reader reads; one result that is larger
    is left to Kafka."""
    data = FORM + CODEC.encode(batch)
    results = batch.results
    if len(data) <= ANSWER_BYTES_MAX:
        yield data
    elif len(results) > 1:
        half = len(results) // 2
        yield from _in_parts(ResultBatch(results[:half]))
        yield from _in_parts(ResultBatch(results[half:]))
