"""Checks that it is the log which this reader has read (L2). A topic may be deleted and recreated
under its name, and an offset alone does not tell one from the other.

At a start by content: the record that the position ends in has to stand before it. That also holds
for a log that was brought back from a copy, which is another topic to Kafka. While a reader runs,
by the topic's id (`LogIdentity`): what stands in another topic is no continuation of what was read,
until a start has looked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from leasehold.model.errors import LogStopped
from leasehold.model.records.log import LogPosition
from leasehold.model.time_units import NS_PER_MS

LOOK_MS: Final = 2_000
"""How often it is asked, with one small question to any broker. Until then L1, L2 and the leases'
end keep a reader from harm; this is for somebody to hear of it."""
FIRST_WINDOW: Final = 16
"""Records before a position that are looked at first: those after the one it ends in count nowhere
(barriers, records of deposed masters), and are few."""
NO_ID: Final = ""
"""Of a broker that gives topics no ids (before Kafka 2.8)."""

TO_DO: Final = (
    "What was answered is in the stores of the nodes (LEASEHOLD_DATA): keep them. Bring the log's"
    " records back at their offsets, or begin a new database: docs/how-to/recover-a-lost-log.md"
)
"""The same whatever became of the log: whoever reads it knows more than this process does."""


def check_log(
    topic: str,
    position: LogPosition,
    first: int,
    end: int,
    digests: Callable[[int, int], Iterable[bytes]],
) -> None:
    """Raise LogStopped, with what to do, unless a reader at `position` may go on in this log. Its
    offsets are `first` to `end` (that of the next record), both asked after the position was read.
    `digests(from, below)` gives those of the records there."""
    check_reach(topic, position, first, end)
    if not position.digest:
        return
    below, width = position.offset, FIRST_WINDOW
    while below > first:
        begin = max(first, below - width)
        if position.digest in digests(begin, below):
            return
        below, width = begin, 2 * width
    if position.offset > first:
        raise LogStopped(
            f"L2: the record that this process applied last (LSN {position.lsn}, epoch"
            f" {position.epoch}) does not stand in topic {topic!r} before offset {position.offset}:"
            " the topic was deleted and recreated, or this store belongs to another log."
            f" {TO_DO}",
            topic=topic,
        )


def check_reach(topic: str, position: LogPosition, first: int, end: int) -> None:
    """Raise LogStopped, with what to do, unless `position` lies within a log whose offsets are
    `first` to `end`."""
    if position.offset < first:
        raise LogStopped(
            f"the log begins at offset {first}, this process has applied it up to"
            f" {position.offset}: what lies between was deleted; start it from a snapshot (a node"
            " that is started again takes one by itself, where another serves them)",
            topic=topic,
        )
    if position.offset > end:
        raise LogStopped(
            f"L2: this process has applied the log up to offset {position.offset} (LSN"
            f" {position.lsn}), and topic {topic!r} has only {end}: the broker lost acknowledged"
            " records, the topic was deleted and recreated, or this store belongs to another log."
            f" {TO_DO}",
            topic=topic,
        )


class LogIdentity:
    """The check while a reader runs. Times are this host's CLOCK_BOOTTIME in ns."""

    def __init__(self, now_ns: int, look_ms: int = LOOK_MS) -> None:
        self._look_ns = look_ms * NS_PER_MS
        self._asked_ns = now_ns
        self._known = NO_ID

    def due(self, now_ns: int) -> bool:
        """Return whether to ask now, once for each time."""
        if now_ns - self._asked_ns < self._look_ns:
            return False
        self._asked_ns = now_ns
        return True

    def check_topic(self, topic: str, topic_id: str, position: LogPosition) -> None:
        """Raise LogStopped if the log's topic is another one now. `topic_id`: the id that Kafka
        gives it, NO_ID: none. The first one is the log's: to be asked before the log is looked
        at."""
        if topic_id == NO_ID:
            return
        if self._known == NO_ID:
            self._known = topic_id
        if topic_id != self._known:
            raise LogStopped(
                f"L2: topic {topic!r} was deleted and recreated: this process has applied the log"
                f" up to offset {position.offset} (LSN {position.lsn}), and Kafka has another one"
                f" under that name now (topic id {topic_id}, it was {self._known}). {TO_DO}",
                topic=topic,
            )
