"""Knows whether the lanes are the topics that the log knows (L3). `decided_through` is an offset of
one topic, which may be deleted and made anew under its name, and an offset alone does not tell one
from the other: in the new one everything below it would count as decided, by every master to come.

So the log says which topic each lane's offset counts in: the id that Kafka gave it when it was
made. A master asks which topic a lane is before it reads it, and now and then while it is in
office. In a new topic it begins at the first offset; what was deleted undecided it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from leasehold.model.records.log import LogPosition
from leasehold.model.records.requests import Lane
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.log.identity import NO_ID

ASK_AGAIN_MS: Final = 1_000
"""How often it is asked for a lane that was not found: its topic is missing, or Kafka is away."""
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
    """A lane's topic, as Kafka knows it: its id, its first offset, and that of the next record."""

    topic: str
    topic_id: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Beginning:
    """The offset from which a lane is read, and what is to be said of what is gone ("": nothing
    is)."""

    offset: int
    words: str = ""


def beginning(lane: Lane, found: Found, decided: int, known_id: str) -> Beginning:
    """Return where to begin. By the log, the offsets below `decided` are decided, in the topic
    `known_id` (NO_ID: it was not said which)."""
    to_do = TO_DO if lane is Lane.REQUESTS else TO_DO_FOR_JOBS
    what = f"topic {found.topic!r}, from which the master takes {lane.value},"
    if NO_ID not in (known_id, found.topic_id) and known_id != found.topic_id:
        return Beginning(
            found.first,
            f"L3: {what} was deleted and made anew: the log has decided the old one (topic id"
            f" {known_id}) up to offset {decided}, the new one ({found.topic_id}) is read from its"
            f" first offset on, {found.first}. What stood in the old one and was not decided is"
            f" gone. {to_do}",
        )
    if found.end < decided:
        # What is there now may have come since, and what comes twice is decided once (L5).
        return Beginning(
            found.first,
            f"L3: {what} ends at offset {found.end}, and the log has decided it up to {decided}:"
            " the broker lost acknowledged records, or the topic was deleted and made anew. It is"
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


class LaneTopics:
    """The topics of the lanes in one term. Times are this host's CLOCK_BOOTTIME in ns."""

    def __init__(self, position: LogPosition, now_ns: int) -> None:
        """Begin at `position`, right after the Claim."""
        self._decided = {lane: position.decided_through.get(lane, 0) for lane in Lane}
        self._known = {lane: position.lane_topics.get(lane, NO_ID) for lane in Lane}
        self._topics: dict[Lane, str] = {}
        self._asked_ns = now_ns
        self._through: dict[str, int] = {}  # to be said in the log, as are the ids
        self._ids: dict[str, str] = {}
        self._appended: frozenset[str] = frozenset()

    @property
    def found(self) -> tuple[Lane, ...]:
        return tuple(self._topics)

    def missing(self, now_ns: int) -> tuple[Lane, ...]:
        """Return the lanes to ask for now; says so once for each time."""
        if len(self._topics) == len(Lane) or (now_ns - self._asked_ns < ASK_AGAIN_MS * NS_PER_MS):
            return ()
        self._asked_ns = now_ns
        return tuple(lane for lane in Lane if lane not in self._topics)

    def begin(self, lane: Lane, found: Found) -> Beginning | None:
        """Return where to read the lane from; None for one that is read already."""
        if lane in self._topics:
            return None
        self._topics[lane] = found.topic_id
        begin = beginning(lane, found, self._decided[lane], self._known[lane])
        if found.topic_id != NO_ID and found.topic_id != self._known[lane]:
            self._ids[lane.value] = found.topic_id
        if begin.offset != self._decided[lane] or lane.value in self._ids:
            self._through[lane.value] = begin.offset
        return begin

    def is_another(self, lane: Lane, topic_id: str) -> bool:
        """Whether the lane's topic has been made anew since it was found."""
        known = self._topics.get(lane, NO_ID)
        return NO_ID not in (known, topic_id) and known != topic_id

    def may_delete(self, lane: Lane) -> bool:
        """Whether the log's offsets count in the topic that the lane is now."""
        return lane in self._topics and lane.value not in self._through

    # ------------------------------------------------------------ what the log is told

    def append(self, decided: Mapping[str, int]) -> tuple[Mapping[str, int], Mapping[str, str]]:
        """Return `decided_through` and `lane_topics` of the record that is appended now, which
        decides `decided`."""
        if not self._through:
            return decided, {}
        self._appended = frozenset(self._through)
        return {**self._through, **decided}, dict(self._ids)

    def read_back(self) -> None:
        """Take that the record just appended counts."""
        for lane in self._appended:
            self._through.pop(lane, None)
            self._ids.pop(lane, None)
        self._appended = frozenset()
