"""Who reads the log, or takes a copy of a store, as acknowledgements say it, and whether records
are deleted that one of them needs (L11)."""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.in_process.bus import MemoryBus, Message
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.acks import Ack
from leasehold.model.time_units import NS_PER_MS
from leasehold.model.topics import Topics
from leasehold.replication.log.truncation import COPY_ROLE, TruncationSettings
from tests.simulation.harm import demand

_NEVER_NS: Final = -(10**18)


class _Reader(NamedTuple):
    """`offset`: the furthest that it has said; `said_ns`: when it did last; `away_ns`: how long
    after that the log is kept for it. `left_ns`: its last word before it was away for longer, the
    last time; `known_ns`: from when on every master that deletes has heard it again."""

    offset: int
    said_ns: int
    away_ns: int
    left_ns: int
    known_ns: int

    def was_away(self, at_ns: int) -> bool:
        """Return whether a master may have taken it for away then."""
        if at_ns < self.known_ns:
            return at_ns - self.left_ns > self.away_ns
        return at_ns - self.said_ns > self.away_ns


class LogReaders:
    """Looks on from the bus, by true time: it knows nothing of what masters have heard."""

    def __init__(
        self, bus: MemoryBus, topics: Topics, settings: TruncationSettings, codec: MessagePackCodec
    ) -> None:
        self._log = topics.log.name
        self._acks = topics.acks.name
        self._away_ns = settings.away_ms * NS_PER_MS
        self._copy_away_ns = settings.copy_away_ms * NS_PER_MS
        self._silence_ns = settings.silence_ms * NS_PER_MS
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
        is_copy = ack.role == COPY_ROLE
        away_ns = self._copy_away_ns if is_copy else self._away_ns
        offset, left_ns, known_ns = ack.offset, _NEVER_NS, now_ns
        known = self._readers.get(ack.node)
        if known is not None:
            # Whose disk was set back has said more once: it knows that it may need a copy.
            offset = offset if is_copy else max(offset, known.offset)
            back = now_ns - known.said_ns > known.away_ns
            left_ns = known.said_ns if back else known.left_ns
            # A master that hears nothing for longer than this deletes nothing either.
            known_ns = now_ns + self._silence_ns if back else known.known_ns
        self._readers[ack.node] = _Reader(offset, now_ns, away_ns, left_ns, known_ns)

    def _deleted(self, topic: str, below: int, asked_ns: int) -> None:
        """Judge a deletion by when it was asked for: it may be done when the broker is there again,
        and whoever is back by then, having been away for longer, finds it done."""
        if topic != self._log:
            return
        for name, reader in self._readers.items():
            demand(
                below <= reader.offset or reader.was_away(asked_ns),
                "L11",
                f"the log is deleted below {below}; {name}, which has said"
                f" {(asked_ns - reader.said_ns) // NS_PER_MS} ms before that was asked for that it"
                f" is at {reader.offset}, needs it",
            )
