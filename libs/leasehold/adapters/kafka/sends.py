"""What a node puts on topics other than the log: answers until the broker has them (L7), all else
once. Nothing here waits: whoever runs a node has heartbeats to send meanwhile."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from leasehold.adapters.codec.published import messages_of
from leasehold.adapters.kafka.client import MessageTooLarge
from leasehold.adapters.kafka.writer import BY_KEY, Headers, TopicWriter
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.requests import ResultBatch
from leasehold.replication.effects import Send

LOG: Final = logging.getLogger("leasehold.node")


@dataclass(slots=True)
class _Whole:
    """An effect; `left`: so many of its messages the broker does not have yet. `term`: tokens of
    another one are not this master's."""

    send: Send
    left: int
    term: int


class _Part(NamedTuple):
    """A message that carries an effect out, or a part of it."""

    whole: _Whole
    data: bytes


class Sends:
    """The effects of a node on their way out. For the one thread of its loop."""

    def __init__(
        self,
        writer: TopicWriter,
        topics: Mapping[str, str],
        headers: Callable[[Send], Headers] = lambda _: (),
    ) -> None:
        """Prepare to send by `writer`. `topics` holds names by the words of `Topic`; `headers`
        returns those of a message that is sent now."""
        self._writer = writer
        self._topics = topics
        self._headers = headers
        self._waiting: deque[_Part] = deque()
        self._term = 0
        self._given: list[int] = []

    @property
    def is_waiting(self) -> bool:
        """Whether something is to be tried again, by `take_delivered`."""
        return bool(self._waiting)

    def send(self, send: Send) -> None:
        """Send an effect at once, in as many messages as it takes; what has a token and finds no
        room is tried later."""
        messages = list(messages_of(send.record))
        whole = _Whole(send, len(messages), self._term)
        for data in messages:
            part = _Part(whole, data)
            if (self._waiting and send.token) or not self._try(part):
                self._waiting.append(part)

    def end_term(self) -> None:
        """Forget what waits: this node is master no longer, and whoever is next gives it (L7)."""
        self._term += 1
        self._waiting.clear()
        self._given.clear()

    def take_delivered(self) -> list[int]:
        """Return the tokens of what the broker has wholly since the last call; to be called again
        and again. What waits for room is tried in its order, until there is none."""
        for delivery in self._writer.deliveries():
            part: _Part = delivery.token
            whole = part.whole
            if delivery.error is None:
                self._landed(whole)
            elif delivery.too_large:
                self._drop(part, delivery.error)
            elif whole.send.token and whole.term == self._term:
                self._waiting.append(part)
        while self._waiting and self._try(self._waiting[0]):
            self._waiting.popleft()
        given, self._given = self._given, []
        return given

    def _try(self, part: _Part) -> bool:
        """Send a message, and return False if there is no room for it now."""
        send = part.whole.send
        partition = BY_KEY if send.partition < 0 else send.partition
        try:
            topic, headers = self._topics[send.topic], self._headers(send)
            self._writer.send(topic, partition, send.key or None, part.data, headers, part)
        except MessageTooLarge as error:
            self._drop(part, error.message)
        except BusUnavailable as error:
            if not send.token:
                return True  # it comes again with the next one of its kind
            if not self._waiting:
                LOG.warning("an answer waits for the Kafka producer's queue: %s", error.message)
            return False
        return True

    def _landed(self, whole: _Whole) -> None:
        whole.left -= 1
        if whole.send.token and not whole.left and whole.term == self._term:
            self._given.append(whole.send.token)

    def _drop(self, part: _Part, why: str) -> None:
        """Count a message as given that can never be sent, and must not hold up others. Who waits
        for it asks again (T5)."""
        record = part.whole.send.record
        results = record.results if isinstance(record, ResultBatch) else ()
        names = [result.request_id.hex() for result in results]
        LOG.error(
            "a %s of %d bytes is dropped, for good: %s%s",
            type(record).__name__,
            len(part.data),
            why,
            f"; requests {', '.join(names[:5])}" if names else "",
        )
        self._landed(part.whole)
