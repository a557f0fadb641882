"""What a master reads of its queues' topics, and what is published to it, until it is decided."""

from __future__ import annotations

from typing import Final

from leasehold.model.records.log import LogPosition
from leasehold.model.records.requests import Queue
from leasehold.replication.effects import (
    NOWHERE,
    AskQueue,
    AskQueueIdentity,
    DeleteBelow,
    Effect,
    PauseQueue,
    QueueFound,
    QueueIdentified,
    QueueLost,
    QueueRead,
    ReadQueue,
    RequestsReceived,
    ResumeQueue,
    Warn,
)
from leasehold.replication.fast_path.requests import ReceivedRequests
from leasehold.replication.master.attempts import Attempts
from leasehold.replication.master.backfill_queue import BackfillQueue
from leasehold.replication.master.queue_topics import QueueTopics
from leasehold.replication.master.request_queue import RequestQueue
from leasehold.replication.queue_limits import PUBLISHED_WAITING_BYTES_MAX, WAITING_BYTES_MAX

_REQUESTS: Final = Queue.REQUESTS  # a member of an enum costs as much as a call
WAITING_MAX: Final = 20_000
PUBLISHED_WAITING_MAX: Final = 2_000
"""Requests that wait when one that is published is passed over."""
RESUME_PART: Final = 4
"""Reading goes on when so many times fewer wait."""


class Intake:
    """Puts each message into its queue once, in the order of its topic (L3).

    Messages of a queue below `_next` were read or are decided. A queue is paused while its queue
    has `WAITING_MAX` messages or `WAITING_BYTES_MAX` bytes, and until it has a quarter of that, so
    the queues are bounded."""

    def __init__(
        self,
        position: LogPosition,
        now_ns: int,
        requests: RequestQueue,
        backfill: BackfillQueue,
        attempts: Attempts,
    ) -> None:
        """Begin at `position`, right after the Claim."""
        self.topics = QueueTopics(position, now_ns)
        self._requests = requests
        self._backfill = backfill
        self._attempts = attempts
        self._received = ReceivedRequests()
        self._next = {queue: position.decided_through.get(queue, 0) for queue in Queue}
        self._paused: set[Queue] = set()
        self._ends = False

    def find_queue(self, event: QueueFound) -> list[Effect]:
        """Read the queue from where the log says that it was decided through (L3), if it is the
        topic that the log means."""
        if self._ends:
            return []
        begin = self.topics.begin(event.queue, event.found)
        if begin is None:
            return []
        self._next[event.queue] = begin.offset
        if begin.words:
            self._attempts.forget(event.queue)
        read = ReadQueue(event.queue, begin.offset)
        return [Warn(begin.words), read] if begin.words else [read]

    def explain_loss(self, event: QueueIdentified | QueueLost) -> str:
        """Return why this term can't go on with the queue, "" where it can."""
        queue, topic = event.queue, event.topic
        if isinstance(event, QueueIdentified):
            if not self.topics.is_another(queue, event.topic_id):
                return ""
            what = f"topic {topic!r} was deleted and recreated"
        else:
            what = f"topic {topic!r} no longer has offset {self._next[queue]}, which was next"
        waiting = len(self._requests if queue is _REQUESTS else self._backfill)
        return (
            f"L3: {what}; {waiting:,} messages of it that were read and not decided may be gone"
            " with it. The queue is looked at again in the next term"
        )

    def delete_decided(self, queue: Queue, position: LogPosition) -> list[Effect]:
        """Delete what is decided of the topic that was looked at a moment ago: decided requests
        are in the log, with the body where somebody needs it later."""
        offset = position.decided_through.get(queue, 0)
        return [DeleteBelow(queue, offset)] if offset and self.topics.may_delete(queue) else []

    def queue_message(self, message: QueueRead, now_ns: int) -> list[Effect]:
        if message.offset < self._next[message.queue]:
            return []  # from before this term's seek, or delivered twice
        self._next[message.queue] = message.offset + 1
        queue: RequestQueue | BackfillQueue = self._backfill
        if message.queue is _REQUESTS:
            queue = self._requests
            self._requests.append(message, now_ns)
        else:
            self._backfill.append(message)
        full = len(queue) >= WAITING_MAX or queue.waiting_bytes >= WAITING_BYTES_MAX
        if full and message.queue not in self._paused:
            self._paused.add(message.queue)
            return [PauseQueue(message.queue)]
        return []

    def queue_published(self, published: RequestsReceived, now_ns: int) -> None:
        """Take requests of the fast path. Whoever gets no answer asks through Kafka, so what there
        is no room for may be passed over."""
        waiting = self._requests
        if (
            len(waiting) >= PUBLISHED_WAITING_MAX
            or waiting.waiting_bytes >= PUBLISHED_WAITING_BYTES_MAX
        ):
            return
        if not self._received.accepts(*published[:3]):
            return
        for content_type, body in published.requests:
            message = QueueRead(_REQUESTS, NOWHERE, content_type, body, published.requester)
            self._requests.append(message, now_ns)

    @property
    def paused(self) -> frozenset[Queue]:
        """Return the queues that are full, and not read."""
        return frozenset() if self._ends else frozenset(self._paused)

    def waiting(self) -> tuple[tuple[Queue, int, int], ...]:
        """Return how many messages of each queue wait, and their bytes."""
        requests, backfill = self._requests, self._backfill
        return (
            (_REQUESTS, len(requests), requests.waiting_bytes),
            (Queue.BACKFILL, len(backfill), backfill.waiting_bytes),
        )

    def end(self) -> list[Effect]:
        """Read no more of the queues."""
        self._ends = True
        reads = [queue for queue in self.topics.found if queue not in self._paused]
        self._paused.update(reads)
        return [PauseQueue(queue) for queue in reads]

    def resume(self) -> list[Effect]:
        """Read on where a queue was paused and its queue has room again."""
        effects: list[Effect] = []
        if not self._paused or self._ends:
            return effects
        for queue, waiting in ((_REQUESTS, self._requests), (Queue.BACKFILL, self._backfill)):
            few = len(waiting) < WAITING_MAX // RESUME_PART
            short = waiting.waiting_bytes < WAITING_BYTES_MAX // RESUME_PART
            if queue in self._paused and few and short:
                self._paused.discard(queue)
                effects.append(ResumeQueue(queue))
        return effects

    def ask_missing(self, now_ns: int) -> list[Effect]:
        return [AskQueue(queue) for queue in self.topics.missing(now_ns)]

    def ask_identities(self) -> list[Effect]:
        """Ask whether the queues are still the same topics."""
        return [AskQueueIdentity(queue) for queue in self.topics.found]
