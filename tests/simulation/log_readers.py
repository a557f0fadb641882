"""Who reads the log, or takes a copy of a store, as acknowledgements say it, and whether records
are deleted that one of them needs (L11)."""

from __future__ import annotations

from typing import NamedTuple

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.in_process.bus import MemoryBus, Message
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.acks import Ack
from leasehold.model.time_units import NS_PER_MS
from leasehold.model.topics import Topics
from leasehold.replication.log.truncation import COPY_ROLE, TruncationSettings
from tests.simulation.harm import demand


class _Reader(NamedTuple):
    """`offset`: the furthest that it has said; `said_ns`: when it did last; `away_ns`: how long
    after that the log is kept for it."""

    offset: int
    said_ns: int
    away_ns: int


class LogReaders:
    """Looks on from the bus, by true time: it knows nothing of what masters have heard."""

    def __init__(
        self, bus: MemoryBus, topics: Topics, settings: TruncationSettings, codec: MessagePackCodec
    ) -> None:
        self._log = topics.log.name
        self._acks = topics.acks.name
        self._away_ns = settings.away_ms * NS_PER_MS
        self._copy_away_ns = settings.copy_away_ms * NS_PER_MS
        self._codec = codec
        self._readers: dict[str, _Reader] = {}
        self._bus = bus
        bus.on_delete = self._deleted

    def appended(self, topic: str, message: Message, now_ns: int) -> None:
        """Take what was appended to any topic."""
        if topic != self._acks:
            return
        try:
            ack = self._codec.decode(message.value or b"")
        except MalformedRequest:
            return  # a stranger's
        if not isinstance(ack, Ack):
            return
        if ack.role == COPY_ROLE:
            self._readers[ack.node] = _Reader(ack.offset, now_ns, self._copy_away_ns)
        else:
            known = self._readers.get(ack.node)
            # Whose disk was set back has said more once: it knows that it may need a copy.
            offset = max(ack.offset, known.offset if known is not None else 0)
            self._readers[ack.node] = _Reader(offset, now_ns, self._away_ns)

    def _deleted(self, topic: str, below: int, now_ns: int) -> None:
        if topic != self._log:
            return
        for name, reader in self._readers.items():
            away_ns = now_ns - reader.said_ns
            demand(
                below <= reader.offset or away_ns > reader.away_ns,
                "L11",
                f"the log is deleted below {below}; {name}, which has said"
                f" {away_ns // NS_PER_MS} ms ago that it is at {reader.offset}, needs it",
            )
