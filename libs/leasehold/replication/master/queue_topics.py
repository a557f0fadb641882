"""Knows whether the queues are the topics that the log knows (L3). `decided_through` is an offset
of one topic, which may be deleted and recreated under its name, and an offset alone does not tell
one from the other: in the new one everything below it would count as decided, by every master to
come.

So the log says which topic each queue's offset counts in: the id that Kafka gave it when it was
made. A master asks which topic a queue is before it reads it, and now and then while it is in
office. In a new topic it begins at the first offset; what was deleted undecided it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from leasehold.model.records.log import LogPosition
from leasehold.model.records.requests import Queue
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.log.identity import NO_ID

ASK_AGAIN_MS: Final = 1_000
"""How often it is asked for a queue that was not found: its topic is missing, or Kafka is away."""
TO_DO: Final = (
    "Who waits for the answer to such a request is told that its outcome is not known (08007), and"
    " may ask again under the same id: docs/how-to/recover-a-lost-log.md"
)
TO_DO_FOR_JOBS: Final = (
    "A job whose backfill stands still (leasehold jobs) has to be cancelled and begun again:"
    " docs/how-to/recover-a-lost-log.md"
)


@dataclass(frozen=True, slots=True)
class Found:
    """A queue's topic, as Kafka knows it: its id, its first offset, and that of the next record."""

    topic: str
    topic_id: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Beginning:
    """The offset from which a queue is read, and what is to be said of what is gone ("": nothing
    is)."""

    offset: int
    words: str = ""


def beginning(queue: Queue, found: Found, decided: int, known_id: str) -> Beginning:
    """Return where to begin. By the log, the offsets below `decided` are decided, in the topic
    `known_id` (NO_ID: it was not said which)."""
    to_do = TO_DO if queue is Queue.REQUESTS else TO_DO_FOR_JOBS
    what = f"topic {found.topic!r}, from which the master takes {queue.value},"
    if NO_ID not in (known_id, found.topic_id) and known_id != found.topic_id:
        return Beginning(
            found.first,
            f"L3: {what} was deleted and recreated: the log has decided the old one (topic id"
            f" {known_id}) up to offset {decided}, the new one ({found.topic_id}) is read from its"
            f" first offset on, {found.first}. What stood in the old one and was not decided is"
            f" gone. {to_do}",
        )
    if found.end < decided:
        # What is there now may have come since, and what comes twice is decided once (L5).
        return Beginning(
            found.first,
            f"L3: {what} ends at offset {found.end}, and the log has decided it up to {decided}:"
            " the broker lost acknowledged records, or the topic was deleted and recreated. It is"
            f" read from its first offset on, {found.first}. What was there and was not decided is"
            f" gone. {to_do}",
        )
    if found.first > decided:
        return Beginning(
            found.first,
            f"L3: {what} begins at offset {found.first}, and the log has decided it up to"
            f" {decided}: {found.first - decided:,} offsets in between were deleted before they"
            f" were decided. {to_do}",
        )
    return Beginning(decided)


class QueueTopics:
    """The topics of the queues in one term. Times are this host's CLOCK_BOOTTIME in ns."""

    def __init__(self, position: LogPosition, now_ns: int) -> None:
        """Begin at `position`, right after the Claim."""
        self._decided = {queue: position.decided_through.get(queue, 0) for queue in Queue}
        self._known = {queue: position.queue_topics.get(queue, NO_ID) for queue in Queue}
        self._topics: dict[Queue, str] = {}
        self._asked_ns = now_ns
        self._through: dict[str, int] = {}  # to be said in the log, as are the ids
        self._ids: dict[str, str] = {}
        self._appended: frozenset[str] = frozenset()

    @property
    def found(self) -> tuple[Queue, ...]:
        return tuple(self._topics)

    def missing(self, now_ns: int) -> tuple[Queue, ...]:
        """Return the queues to ask for now; says so once for each time."""
        if len(self._topics) == len(Queue) or (now_ns - self._asked_ns < ASK_AGAIN_MS * NS_PER_MS):
            return ()
        self._asked_ns = now_ns
        return tuple(queue for queue in Queue if queue not in self._topics)

    def begin(self, queue: Queue, found: Found) -> Beginning | None:
        """Return where to read the queue from; None for one that is read already."""
        if queue in self._topics:
            return None
        self._topics[queue] = found.topic_id
        begin = beginning(queue, found, self._decided[queue], self._known[queue])
        if found.topic_id != NO_ID and found.topic_id != self._known[queue]:
            self._ids[queue.value] = found.topic_id
        if begin.offset != self._decided[queue] or queue.value in self._ids:
            self._through[queue.value] = begin.offset
        return begin

    def is_another(self, queue: Queue, topic_id: str) -> bool:
        """Whether the queue's topic has been recreated since it was found."""
        known = self._topics.get(queue, NO_ID)
        return NO_ID not in (known, topic_id) and known != topic_id

    def may_delete(self, queue: Queue) -> bool:
        """Whether the log's offsets count in the topic that the queue is now."""
        return queue in self._topics and queue.value not in self._through

    # ------------------------------------------------------------ what the log is told

    def append(self, decided: Mapping[str, int]) -> tuple[Mapping[str, int], Mapping[str, str]]:
        """Return `decided_through` and `queue_topics` of the record that is appended now, which
        decides `decided`."""
        if not self._through:
            return decided, {}
        self._appended = frozenset(self._through)
        return {**self._through, **decided}, dict(self._ids)

    def read_back(self) -> None:
        """Take that the record just appended counts."""
        for queue in self._appended:
            self._through.pop(queue, None)
            self._ids.pop(queue, None)
        self._appended = frozenset()
