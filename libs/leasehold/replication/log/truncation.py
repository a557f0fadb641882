"""Decides how far the log may be deleted: below what everybody who reads it has, with a margin.

L11: the log is deleted only below what every reader has that has acknowledged within `away_ms`.
Who was away for longer begins from a snapshot instead of being waited for, so one forgotten node
can't fill the broker's disk. So a master has to know of all who have acknowledged for that long,
and terms may be shorter: a candidate hears them too, before its term, and finds what was said
before its process began where it still stands (`ack_history.py`). What is heard late, or not in
its place, is heard for the first time as far as this rule goes.

A node that is copying a snapshot reads nothing yet; the node that serves it acknowledges the copy's
position in its place, and the log is kept from there until the copy has been taken, or given up,
and a while longer for the new node to say where it is. Without a changefeed heard of, or a node
that serves snapshots, nothing is deleted: then somebody may need every record.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    just taken it (it opens the store and says where it is) or when both ends are gone.

    `silence_ms`: while nothing at all is heard for longer, who is away isn't known; a reader is
    waited for so much longer, for what it says may be as old when it is heard. `ask_late_ms`: the
    longest that an acknowledgement is on its way before it is given up."""

    kept_records: int = 100_000
    away_ms: int = 3_600_000
    copy_away_ms: int = 600_000
    every_ms: int = 30_000
    silence_ms: int = 60_000
    ask_late_ms: int = 30_000


class LogTruncation:
    """What a candidate knows from acknowledgements of who reads the log, in its terms and outside
    them. Times are its host's CLOCK_BOOTTIME in ns."""

    def __init__(self, settings: TruncationSettings) -> None:
        """Begin with nothing heard."""
        self._settings = settings
        self._since_ns: int | None = None  # whoever has acknowledged since then is known
        self._heard_ns = 0
        self._has_missed = False
        self._readers: dict[str, tuple[int, int, str, bool]] = {}
        self._done_ns: int | None = None
        self._floor = 0

    def take_ack(self, ack: Ack, now_ns: int) -> None:
        """Take an acknowledgement that was read from the topic."""
        if self._since_ns is None:
            self._since_ns = now_ns
        elif now_ns - self._heard_ns > self._settings.silence_ms * NS_PER_MS:
            self._begin_anew(now_ns)
        self._heard_ns = max(self._heard_ns, now_ns)
        self._note(ack, now_ns)

    def take_history(self, readers: Iterable[Ack], span_ns: int, now_ns: int) -> None:
        """Take what stood in the topic before this process began to read it, right up to there:
        the last word of each reader, over `span_ns` at least (`AckHistory`). Each counts as heard
        now, since nobody can say when it was said."""
        if not self._has_missed:
            since_ns = now_ns - span_ns
            self._since_ns = since_ns if self._since_ns is None else min(self._since_ns, since_ns)
            self._heard_ns = max(self._heard_ns, now_ns)
        for ack in readers:
            if ack.node not in self._readers:  # else it has said more since
                self._note(ack, now_ns)

    def floor(self, position: LogPosition, now_ns: int) -> int | None:
        """Return the offset to delete below now, or None. `position` is the master's own."""
        settings = self._settings
        if self._done_ns is not None and now_ns - self._done_ns < settings.every_ms * NS_PER_MS:
            return None
        self._done_ns = now_ns
        if self._since_ns is None or now_ns - self._since_ns < settings.away_ms * NS_PER_MS:
            return None
        if now_ns - self._heard_ns > settings.silence_ms * NS_PER_MS:
            return None  # ⚠ L11: all but the last who were heard would seem to be away
        self._forget_those_away(now_ns)
        roles = {role for _, _, role, _ in self._readers.values()}
        if CHANGEFEED_ROLE not in roles or not any(r[3] for r in self._readers.values()):
            return None
        floor = min(
            position.offset - settings.kept_records,
            position.answered_through,
            *(offset for offset, _, _, _ in self._readers.values()),
        )
        if floor <= self._floor:
            return None
        self._floor = floor
        return floor

    def _note(self, ack: Ack, now_ns: int) -> None:
        if ack.node not in self._readers and len(self._readers) >= READERS_MAX:
            self._forget_those_away(now_ns)
            if len(self._readers) >= READERS_MAX:
                self._begin_anew(now_ns)  # ⚠ L11: this one isn't known of
                return
        self._readers[ack.node] = (ack.offset, now_ns, ack.role, bool(ack.serves))

    def _begin_anew(self, now_ns: int) -> None:
        """Take it that whoever has acknowledged before now may not have been heard."""
        self._since_ns, self._has_missed = now_ns, True

    def _forget_those_away(self, now_ns: int) -> None:
        self._readers = {
            name: reader
            for name, reader in self._readers.items()
            if now_ns - reader[1] < self._away_ns(reader[2])
        }

    def _away_ns(self, role: str) -> int:
        """Return how long after it was last heard a reader is waited for."""
        settings = self._settings
        away_ms = settings.copy_away_ms if role == COPY_ROLE else settings.away_ms
        return (away_ms + settings.silence_ms) * NS_PER_MS
