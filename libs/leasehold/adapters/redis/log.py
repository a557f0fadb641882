"""The fast way of the log's records (`replication/fast_path/log.py`): PUBLISH at the master,
SUBSCRIBE at the nodes.

What is told on the term's channel (`pubsub.py`): a byte for the form, the offset, the very
bytes of the record; without those where they are too many, or zipped since the record is large.
"""

from __future__ import annotations

from typing import Final

from leasehold.adapters.codec.records import is_zipped
from leasehold.adapters.redis.pubsub import ChannelPublisher, Channels, ChannelSubscriber
from leasehold.replication.fast_path.log import NOBODY, PUBLISHED_BYTES_MAX, Term
from leasehold.settings.environment import RedisSettings

CHANNELS: Final = Channels("log", "records of the log", "LEASEHOLD_FAST_LOG")
FORM: Final = b"\x01"
OFFSET_BYTES: Final = 8
HEAD_BYTES: Final = len(FORM) + OFFSET_BYTES


class LogChannelPublisher:
    """Publishes the master's records. For one thread, which it never blocks."""

    def __init__(self, settings: RedisSettings, database: str) -> None:
        self._publisher = ChannelPublisher[int](settings, database, CHANNELS)
        self._database = database
        self._term = NOBODY
        self._channel = b""

    def tell(self, number: int, term: Term, offset: int, record: bytes) -> bool:
        """False: it was not told, and won't be. `outcomes` says what became of the others."""
        if self._term != term:
            self._term = term
            self._channel = CHANNELS.of(self._database, term)
        head = FORM + offset.to_bytes(OFFSET_BYTES, "big")
        whole = len(record) <= PUBLISHED_BYTES_MAX and not is_zipped(record)
        return self._publisher.tell(self._channel, head + record if whole else head, number)

    def outcomes(self) -> list[tuple[int, bool]]:
        """(number, whether a node listened) of those that Redis has answered since."""
        return self._publisher.outcomes()

    def close(self) -> None:
        self._publisher.close()


class LogSubscriber:
    """Receives the master's records. For one thread, which it never blocks."""

    def __init__(self, settings: RedisSettings, database: str) -> None:
        self._subscriber = ChannelSubscriber(settings, database, CHANNELS)

    @property
    def up(self) -> bool:
        return self._subscriber.up

    def listen(self, term: Term) -> None:
        """To the master of that term, and no other; NOBODY: to none."""
        self._subscriber.listen(term)

    def wait(self, timeout_s: float) -> None:
        """Until something may have come."""
        self._subscriber.wait(timeout_s)

    def messages(self) -> list[tuple[int, bytes]]:
        """(offset, record) of what was told since the last call, whoever said it; b"": the record
        was too large. To be called again and again."""
        return [told for data in self._subscriber.messages() if (told := _told(data)) is not None]

    def close(self) -> None:
        self._subscriber.close()


def _told(data: bytes) -> tuple[int, bytes] | None:
    if len(data) < HEAD_BYTES or not data.startswith(FORM):
        return None
    record = data[HEAD_BYTES:]
    if is_zipped(record):  # a small one that grows to gigabytes
        return None
    return int.from_bytes(data[len(FORM) : HEAD_BYTES], "big"), record
