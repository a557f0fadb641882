"""Decides how far the log may be deleted: below what everybody who reads it has, with a margin.

Who was away for longer than `away_ms` begins from a snapshot instead of being waited for, so one
forgotten node can't fill the broker's disk. A node that is copying a snapshot reads nothing yet;
the node that serves it acknowledges the copy's position in its place, and the log is kept from
there until the copy has been taken, or given up, and a while longer for the new node to say where
it is. Without a changefeed heard of, or a node that serves
snapshots, nothing is deleted: then somebody may need every record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from leasehold.model.records.acks import Ack
from leasehold.model.records.log import LogPosition
from leasehold.model.time_units import NS_PER_MS

CHANGEFEED_ROLE: Final = "changefeed"
COPY_ROLE: Final = "copy"
"""Of the acknowledgement for a snapshot that is being copied."""
READERS_MAX: Final = 10_000


def copy_name(node: str, taker: str = "") -> str:
    """Return the name by which the node acknowledges for the copy of its store that `taker` takes,
    "" = a node of an earlier release, which doesn't say its name. No node's has a slash."""
    return f"{node}/copy/{taker}" if taker else f"{node}/copy"


def copy_parts(name: str) -> tuple[str, str]:
    """Return the node whose store is copied, and who takes it, from their `copy_name`."""
    node, _, taker = name.partition("/copy")
    return node, taker.removeprefix("/")


@dataclass(frozen=True, slots=True)
class TruncationSettings:
    """Limits of the deletion. `kept_records` of the log are kept in any case. `copy_away_ms`: how
    long the log is kept for a copy of which nothing is heard any more, which is when a node has
    just taken it (it opens the store and says where it is) or when both ends are gone."""

    kept_records: int = 100_000
    away_ms: int = 3_600_000
    copy_away_ms: int = 600_000
    every_ms: int = 30_000


class LogTruncation:
    """What a master knows from acknowledgements of who reads the log; a new one begins knowing
    nothing, and deletes nothing before it has heard for `away_ms` who is there."""

    def __init__(self, settings: TruncationSettings, now_ns: int) -> None:
        self._settings = settings
        self._begun_ns = now_ns
        self._readers: dict[str, tuple[int, int, str, bool]] = {}
        self._done_ns = now_ns
        self._floor = 0

    def take_ack(self, ack: Ack, now_ns: int) -> None:
        known = ack.node in self._readers
        if known or len(self._readers) < READERS_MAX:
            self._readers[ack.node] = (ack.offset, now_ns, ack.role, bool(ack.serves))

    def floor(self, position: LogPosition, now_ns: int) -> int | None:
        """Return the offset to delete below now, or None. `position` is the master's own."""
        if now_ns - self._done_ns < self._settings.every_ms * NS_PER_MS:
            return None
        self._done_ns = now_ns
        if now_ns - self._begun_ns < self._settings.away_ms * NS_PER_MS:
            return None
        self._readers = {
            name: reader
            for name, reader in self._readers.items()
            if now_ns - reader[1] < self._away_ns(reader[2])
        }
        roles = {role for _, _, role, _ in self._readers.values()}
        if CHANGEFEED_ROLE not in roles or not any(r[3] for r in self._readers.values()):
            return None
        floor = min(
            position.offset - self._settings.kept_records,
            position.answered_through,
            *(offset for offset, _, _, _ in self._readers.values()),
        )
        if floor <= self._floor:
            return None
        self._floor = floor
        return floor

    def _away_ns(self, role: str) -> int:
        settings = self._settings
        away_ms = settings.copy_away_ms if role == COPY_ROLE else settings.away_ms
        return away_ms * NS_PER_MS
