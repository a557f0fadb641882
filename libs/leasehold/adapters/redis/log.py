"""The fast path of the log's records (`replication/fast_path/log.py`): PUBLISH at the master,
SUBSCRIBE at the nodes.

What is published on the term's channel (`pubsub.py`): a byte for the form, the offset, the very
bytes of the record; without those where they are too many, or zipped since the record is large.
"""

from __future__ import annotations

from typing import Final

from leasehold.adapters.codec.records import is_zipped
from leasehold.adapters.redis.pubsub import ChannelPublisher, Channels, ChannelSubscriber
from leasehold.replication.fast_path.log import PUBLISHED_BYTES_MAX, Term
from leasehold.settings.environment import RedisSettings

CHANNELS: Final = Channels("log", "records of the log", "LEASEHOLD_FAST_LOG")
FORM: Final = b"\x01"
OFFSET_BYTES: Final = 8
HEAD_BYTES: Final = len(FORM) + OFFSET_BYTES


class LogChannelPublisher(ChannelPublisher[int]):
    """Publishes the master's records, each under a number of its own."""

    def __init__(self, settings: RedisSettings, database: str) -> None:
        super().__init__(settings, database, CHANNELS)

    def publish_record(self, number: int, term: Term, offset: int, record: bytes) -> bool:
        """Publish a record that the log has at `offset`; returns what `publish` does."""
        head = FORM + offset.to_bytes(OFFSET_BYTES, "big")
        whole = len(record) <= PUBLISHED_BYTES_MAX and not is_zipped(record)
        return self.publish_to_term(term, head + record if whole else head, number)


class LogSubscriber(ChannelSubscriber):
    """Receives the master's records."""

    def __init__(self, settings: RedisSettings, database: str) -> None:
        super().__init__(settings, database, CHANNELS)

    def records(self) -> list[tuple[int, bytes]]:
        """Return (offset, record) of what was published since the last call, whoever did it; b""
        stands for a record that was too large. To be called again and again."""
        return [found for _, data in self.messages() if (found := _record(data)) is not None]


def _record(data: bytes) -> tuple[int, bytes] | None:
    if len(data) < HEAD_BYTES or not data.startswith(FORM):
        return None
    record = data[HEAD_BYTES:]
    if is_zipped(record):  # a small one that grows to gigabytes
        return None
    return int.from_bytes(data[len(FORM) : HEAD_BYTES], "big"), record
