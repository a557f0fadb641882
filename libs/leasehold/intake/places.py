"""How far an intake is in a partition, and by which time its requests are named. PURE.

⚠ A master decides a request as soon as the broker has it, also one of a transaction that is aborted
later (`docs/reference/change-requests.md`). So an event that is sent again has to have the very id
that it had before: then it gets its answer of before. An id carries a time (L5), by which it is
known for a day. That time stands in the place, which is stored before anything is sent under it:

- `[next, ids_through)` are the offsets whose events may be sent now, all under the time `ids_ms`.
- Whoever stores a place behind events that were sent has sent nothing beyond it, so it may give
  what follows a time of now.
- Whoever begins with a place that another process has left may meet events that this one has sent
  in a transaction without an end: those below `ids_through` that were there when it began. They
  keep their time.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Final, NamedTuple

from leasehold.model.errors import MalformedRequest
from leasehold.model.ids import request_id

RESERVED: Final = 100_000
"""Offsets that one time is stored for at once."""
FRESH_MS: Final = 600_000
"""A time that is older is stored anew before it is used, where nothing was sent under it."""
EXPIRED_MS: Final = 20 * 3_600_000
"""A time that is older is of no use: ids are known for a day. Whoever has left it was ended in the
middle of a transaction that long ago."""
ID_BYTES: Final = 10


class Place(NamedTuple):
    """A partition's place. `topic_id`: of the topic that it is a place of, which one that is made
    anew under the name has not."""

    topic_id: str
    next: int
    ids_ms: int = 0
    ids_through: int = 0

    def to_json(self) -> bytes:
        """Return what `read_place` takes."""
        return json.dumps(self._asdict()).encode()


def read_place(value: bytes) -> Place:
    """Return a place from its JSON. Raises MalformedRequest."""
    try:
        body = json.loads(value)
        topic_id = body["topic_id"]
        numbers = [body[field] for field in ("next", "ids_ms", "ids_through")]
        if not isinstance(topic_id, str) or any(type(n) is not int or n < 0 for n in numbers):
            raise MalformedRequest("a place has other fields")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MalformedRequest(f"a place can't be read: {error!r:.100}") from error
    return Place(topic_id, *numbers)


class Course:
    """The way of one process through one partition.

    `stored`: the place that is stored. `next`: the offset behind what was taken since. Invariant:
    an event from `stored.next` on may have been sent by an earlier process below `_kept_below`,
    under the time of `stored`, and nowhere else.
    """

    def __init__(self, place: Place, end: int, now_ms: int) -> None:
        """Begin at a stored place; `end` is the partition's, asked after the takeover."""
        self.stored = place
        self.next = place.next
        left = min(place.ids_through, end)
        self.was_expired = left > place.next and now_ms - place.ids_ms > EXPIRED_MS
        self._kept_below = 0 if self.was_expired else left

    def may_send(self, offset: int, now_ms: int) -> bool:
        """Return whether an event may be sent under the place that is stored; else what was taken
        is sent first, and then a place by `reserve` is stored."""
        assert offset >= self.next, "events are taken in order"
        place = self.stored
        if offset < self._kept_below:
            return True
        if place.next < self._kept_below:
            return False
        return offset < place.ids_through and now_ms - place.ids_ms <= FRESH_MS

    def reserve(self, offset: int, now_ms: int) -> Place:
        """Return the place under which events from `offset` on may be sent, which is the next one
        that there is."""
        assert self.next == self.stored.next, "what was taken is stored before"
        self.next = offset
        return self.place(now_ms)

    def take(self, offset: int) -> None:
        """Note that the event at that offset goes into the next transaction."""
        assert offset >= self.next, "events are taken in order"
        self.next = offset + 1

    def place(self, now_ms: int) -> Place:
        """Return the place to be stored in the transaction of what was taken."""
        if self.next < self._kept_below:
            return self.stored._replace(next=self.next)
        return self.stored._replace(next=self.next, ids_ms=now_ms, ids_through=self.next + RESERVED)

    def sealed(self) -> Place:
        """Return the place of who has sent nothing beyond it, and ends."""
        return self.stored._replace(ids_through=max(self.stored.next, self._kept_below))

    def store(self, place: Place) -> None:
        """Note that a place is stored."""
        assert place.next == self.next, "nothing was taken meanwhile"
        self.stored = place


def event_id(intake: str, topic: str, place: Place, partition: int, offset: int) -> bytes:
    """Return the id of the request that an event becomes: the same one whenever it is sent under
    that place."""
    words = f"{intake}\n{topic}\n{place.topic_id}\n{partition}\n{offset}".encode()
    return request_id(place.ids_ms, blake2b(words, digest_size=ID_BYTES).digest())
