"""The fast path of requests and answers (`replication/fast_path/requests.py`): a requester
PUBLISHes its requests on the channel of the master's term, and listens on one of its own.

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
from leasehold.model import byte_limits
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.requests import Result, ResultBatch
from leasehold.model.signatures import CONTENT_TYPE_CHARACTERS_MAX
from leasehold.replication.effects import RequestsReceived
from leasehold.replication.fast_path.log import Term
from leasehold.settings.environment import RedisSettings

REQUESTS: Final = Channels("requests", "requests", "LEASEHOLD_FAST_REQUESTS")
ANSWERS: Final = Channels("answers", "answers", "LEASEHOLD_FAST_REQUESTS")
FORM: Final = b"\x01"
ASKER_BYTES: Final = 16
NUMBER_BYTES: Final = 8
HEAD_BYTES: Final = len(FORM) + ASKER_BYTES + 2 * NUMBER_BYTES
REQUEST_BYTES_MAX: Final = 60 * 1024
REQUESTS_MAX: Final = 1_024
CONTENT_TYPE_MAX: Final = CONTENT_TYPE_CHARACTERS_MAX
ANSWER_BYTES_MAX: Final = byte_limits.FAST
CODEC: Final = MessagePackCodec()
LOG: Final = logging.getLogger("leasehold.results")

Request = tuple[str, bytes]
"""Content type and body."""


def pack_requests(requester: bytes, run: int, number: int, requests: Sequence[Request]) -> bytes:
    assert len(requester) == ASKER_BYTES, requester
    head = (
        FORM + requester + run.to_bytes(NUMBER_BYTES, "big") + number.to_bytes(NUMBER_BYTES, "big")
    )
    body: bytes = msgpack.packb(requests)
    return head + body


def read_requests(data: bytes) -> RequestsReceived | None:
    """Return what a message of requests holds, None for one that is none."""
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


class RequestPublisher(ChannelPublisher[tuple[int, int]]):
    """Publishes a requester's requests, each message under (run, number)."""

    def __init__(self, settings: RedisSettings, database: str, requester: bytes) -> None:
        super().__init__(settings, database, REQUESTS)
        self._requester = requester

    def publish_requests(
        self, term: Term, run: int, number: int, requests: Sequence[Request]
    ) -> bool:
        """Publish one message of requests to a term's master; returns what `publish` does."""
        data = pack_requests(self._requester, run, number, requests)
        return self.publish_to_term(term, data, (run, number))


class AnswerSubscriber(ChannelSubscriber):
    """Receives the answers to a requester."""

    def __init__(self, settings: RedisSettings, database: str, requester: bytes) -> None:
        super().__init__(settings, database, ANSWERS)
        self._channel = ANSWERS.named(database, requester.hex())

    def open(self) -> None:
        """Subscribe to the requester's channel; `results` goes on with it."""
        self.listen_to((self._channel, ANSWERS))

    def results(self) -> list[Result]:
        """Return what was published since the last call. To be called again and again."""
        found: list[Result] = []
        for _, data in self.messages():
            if not data.startswith(FORM):
                continue
            try:
                found += CODEC.decode_as(ResultBatch, data[len(FORM) :]).results
            except MalformedRequest as error:
                LOG.debug("an answer that was told is left out: %s", error.message)
        return found


class AnswerPublisher(ChannelPublisher[None]):
    """Publishes the master's answers. What a requester does not receive it asks for through Kafka,
    so it does not matter what becomes of them."""

    def __init__(self, settings: RedisSettings, database: str) -> None:
        super().__init__(settings, database, ANSWERS)

    def publish_answers(self, requester: bytes, batch: ResultBatch) -> None:
        """Publish a batch of results on the requester's own channel, as far as that works."""
        self.outcomes()
        channel = ANSWERS.named(self._database, requester.hex())
        for data in _in_parts(batch):
            if not self.publish(channel, data, None):
                break


def _in_parts(batch: ResultBatch) -> Iterable[bytes]:
    """Yield messages of the size that Redis keeps for who does not take them, and its reader reads.
    One result that is larger is left to Kafka."""
    data = FORM + CODEC.encode(batch)
    results = batch.results
    if len(data) <= ANSWER_BYTES_MAX:
        yield data
    elif len(results) > 1:
        half = len(results) // 2
        yield from _in_parts(ResultBatch(results[:half]))
        yield from _in_parts(ResultBatch(results[half:]))
