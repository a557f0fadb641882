"""What a master reads of its queues' topics, and what is published to it, until it is decided."""

from __future__ import annotations

from typing import Final

from leasehold.model.records.log import LogPosition
from leasehold.model.records.requests import Lane
from leasehold.replication.effects import (
    NOWHERE,
    AskLane,
    AskLaneIdentity,
    DeleteBelow,
    Effect,
    LaneFound,
    LaneIdentified,
    LaneLost,
    LaneRead,
    PauseLane,
    ReadLane,
    RequestsReceived,
    ResumeLane,
    Warn,
)
from leasehold.replication.fast_path.requests import ReceivedRequests
from leasehold.replication.master.attempts import Attempts
from leasehold.replication.master.backfill_queue import BackfillLane
from leasehold.replication.master.queue_topics import LaneTopics
from leasehold.replication.master.request_queue import RequestQueue

_REQUESTS: Final = Lane.REQUESTS  # a member of an enum costs as much as a call
WAITING_MAX: Final = 20_000
PUBLISHED_WAITING_MAX: Final = 2_000
"""Requests that wait when one that is published is passed over: each may have 60 kB."""
RESUME_BELOW: Final = 5_000


class Intake:
    """Puts each message into its queue once, in the order of its topic (L3).

    Messages of a lane below `_next` were read or are decided. A lane is paused while its queue has
    `WAITING_MAX` messages and until it has fewer than `RESUME_BELOW`, so the queues are bounded."""

    def __init__(
        self,
        position: LogPosition,
        now_ns: int,
        requests: RequestQueue,
        backfill: BackfillLane,
        attempts: Attempts,
    ) -> None:
        """Begin at `position`, right after the Claim."""
        self.topics = LaneTopics(position, now_ns)
        self._requests = requests
        self._backfill = backfill
        self._attempts = attempts
        self._received = ReceivedRequests()
        self._next = {lane: position.decided_through.get(lane, 0) for lane in Lane}
        self._paused: set[Lane] = set()

    def find_lane(self, event: LaneFound) -> list[Effect]:
        """Read the lane from where the log says that it was decided through (L3), if it is the
        topic that the log means."""
        begin = self.topics.begin(event.lane, event.found)
        if begin is None:
            return []
        self._next[event.lane] = begin.offset
        if begin.words:
            self._attempts.forget(event.lane)
        read = ReadLane(event.lane, begin.offset)
        return [Warn(begin.words), read] if begin.words else [read]

    def explain_loss(self, event: LaneIdentified | LaneLost) -> str:
        """Return why this term can't go on with the lane, "" where it can."""
        lane, topic = event.lane, event.topic
        if isinstance(event, LaneIdentified):
            if not self.topics.is_another(lane, event.topic_id):
                return ""
            what = f"topic {topic!r} was deleted and made anew"
        else:
            what = f"topic {topic!r} no longer has offset {self._next[lane]}, which was next"
        waiting = len(self._requests if lane is _REQUESTS else self._backfill)
        return (
            f"L3: {what}; {waiting:,} messages of it that were read and not decided may be gone"
            " with it. The lane is looked at anew in the next term"
        )

    def delete_decided(self, lane: Lane, position: LogPosition) -> list[Effect]:
        """Delete what is decided of the topic that was looked at a moment ago: decided requests
        are in the log, with the body where somebody needs it later."""
        offset = position.decided_through.get(lane, 0)
        return [DeleteBelow(lane, offset)] if offset and self.topics.may_delete(lane) else []

    def queue_message(self, message: LaneRead) -> list[Effect]:
        if message.offset < self._next[message.lane]:
            return []  # from before this term's seek, or delivered twice
        self._next[message.lane] = message.offset + 1
        queue: RequestQueue | BackfillLane = (
            self._requests if message.lane is _REQUESTS else self._backfill
        )
        queue.append(message)
        if len(queue) >= WAITING_MAX and message.lane not in self._paused:
            self._paused.add(message.lane)
            return [PauseLane(message.lane)]
        return []

    def queue_published(self, published: RequestsReceived) -> None:
        """Take requests of the fast path. Whoever gets no answer asks through Kafka, so what there
        is no room for may be passed over."""
        if len(self._requests) >= PUBLISHED_WAITING_MAX:
            return
        if not self._received.accepts(*published[:3]):
            return
        for content_type, body in published.requests:
            message = LaneRead(_REQUESTS, NOWHERE, content_type, body, published.requester)
            self._requests.append(message)

    def resume(self) -> list[Effect]:
        """Read on where a lane was paused and its queue has room again."""
        effects: list[Effect] = []
        waiting = ((Lane.REQUESTS, len(self._requests)), (Lane.BACKFILL, len(self._backfill)))
        for lane, messages in waiting:
            if lane in self._paused and messages < RESUME_BELOW:
                self._paused.discard(lane)
                effects.append(ResumeLane(lane))
        return effects

    def ask_missing(self, now_ns: int) -> list[Effect]:
        return [AskLane(lane) for lane in self.topics.missing(now_ns)]

    def ask_identities(self) -> list[Effect]:
        """Ask whether the lanes are still the same topics."""
        return [AskLaneIdentity(lane) for lane in self.topics.found]
