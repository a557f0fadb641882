"""The choice of refused requests that wait, and of those that go back now. PURE: `step(waiting,
arrived, now)`.

Requests are spread over a fixed number of buckets by their id; each bucket's waiting requests are
one value of Spark's state. An entry leaves when it is due, and nothing is ever due later than the
longest back-off, so state cannot grow with time, only with the number of requests that wait now.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

import msgpack

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.codec.request_decoding import ATTEMPTS_MAX as ATTEMPT_MAX
from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.requests import ChangeRequest, Conflict, Queue
from leasehold.model.signatures import NO_KEYS, Mark, RequestKeys, Verifier, read_mark, signer
from leasehold.transaction.retry import ATTEMPTS_MAX, backoff_ms, recompute

BUCKETS: Final = 16
ID_BYTES: Final = 16  # of a UUID
_REQUESTS: Final = Queue.REQUESTS.value
_CLAIM: Final = signer(NO_KEYS, "")
WAITING_MAX: Final = 5_000
"""Per bucket. Beyond it those that are due first go back early: never dropped, just less spaced."""


class Waiting(NamedTuple):
    """A refused request. `conflict` is the record of the conflicts topic as it was read."""

    request_id: bytes
    attempt: int
    due_ms: int
    conflict: bytes


class Arrived(NamedTuple):
    request_id: bytes
    attempt: int
    conflict: bytes


def arrived_of(codec: MessagePackCodec, value: bytes) -> Arrived:
    """Return what a record of the conflicts topic says. Raises MalformedRequest."""
    conflict = codec.decode_as(Conflict, value)
    if len(conflict.request_id) != ID_BYTES or not 1 <= conflict.attempt <= ATTEMPT_MAX:
        raise MalformedRequest("a conflict is of a request with an id, and of one of its attempts")
    return Arrived(conflict.request_id, conflict.attempt, value)


class Step(NamedTuple):
    """The result of a step: what waits, and what is `ready`, in order of due time. `next_due_ms` is
    None when nothing waits."""

    waiting: tuple[Waiting, ...]
    ready: tuple[Waiting, ...]
    next_due_ms: int | None


def step(
    waiting: Sequence[Waiting], arrived: Sequence[Arrived], now_ms: int, early_ms: int
) -> Step:
    """Return what becomes of a bucket at `now_ms` (unix ms). What is due within `early_ms` goes
    now: the next micro-batch would come later than that.

    Of one request only the newest attempt counts: an older one is a repeat, given again by a new
    master (L7) or read again by a replayed micro-batch, and the master would refuse it (L5).
    """
    newest = {entry.request_id: entry for entry in waiting}
    for item in arrived:
        known = newest.get(item.request_id)
        if known is None or known.attempt < item.attempt:
            pause_ms = backoff_ms(item.attempt, jitter(item.request_id, item.attempt))
            newest[item.request_id] = Waiting(
                item.request_id, item.attempt, now_ms + pause_ms, item.conflict
            )
    by_due = sorted(newest.values(), key=lambda entry: (entry.due_ms, entry.request_id))
    ready = sum(1 for entry in by_due if entry.due_ms <= now_ms + early_ms)
    ready = max(ready, len(by_due) - WAITING_MAX)
    left = tuple(by_due[ready:])
    assert len(left) <= WAITING_MAX, len(left)
    return Step(left, tuple(by_due[:ready]), left[0].due_ms if left else None)


class NextAttempts:
    """Computes next attempts, and signs each in the name of whoever has sent the request."""

    def __init__(
        self,
        codec: MessagePackCodec,
        keys: RequestKeys,
        database: str,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> None:
        self._codec = codec
        self._attempts_max = attempts_max
        self._verifier = Verifier(database, keys.master)
        self._sign = signer(keys, database)

    def encode(self, waiting: Waiting) -> tuple[str, bytes, str]:
        """Return the next attempt of a conflict as (content type, body), and "" or why it was given
        up instead: whatever it is that can't be computed, its request ends with a dead letter (R1).

        Raises NotAuthentic for a conflict whose request is not proven: it is nobody's."""
        conflict, mark, role = self._open(waiting)
        try:
            request = self._codec.decode_request(mark.media_type, conflict.body)
            # The body may be that of an earlier attempt's bytes; the refusal's count is the true
            # one.
            request = request._replace(attempt=conflict.attempt)
            table, attempts_max = conflict.table, self._attempts_max
            following = recompute(request, conflict.image, table=table, attempts_max=attempts_max)
            media_type, body = encode_request(following)
        except Exception as error:  # noqa: BLE001 - it would be the same each time
            why = f"its next attempt can't be computed ({type(error).__name__}: {str(error)[:200]})"
            return *self._signed(mark, role, *_give_up(waiting, why)), why
        return *self._signed(mark, role, media_type, body), ""

    def give_up_unread(self, waiting: Waiting, why: str) -> tuple[str, bytes]:
        """Return the giving up of a request that is not looked into, as (content type, body);
        `why` stands in its dead letter. Raises NotAuthentic.

        Nobody reads where its sender listens: who waits asks again under its id, and is told."""
        _, mark, role = self._open(waiting)
        return self._signed(mark, role, *_give_up(waiting, why))

    def _open(self, waiting: Waiting) -> tuple[Conflict, Mark, str]:
        """Return the conflict, and in whose name its request was sent.

        ⚠ Whose it is its own signature says, and not the conflict: who could write one would have
        anything signed in anybody's name. Raises NotAuthentic."""
        conflict = self._codec.decode_as(Conflict, waiting.conflict)
        mark = read_mark(conflict.content_type)
        if mark.signature is None:
            return conflict, mark, mark.role
        return conflict, mark, self._verifier.prove(_REQUESTS, mark, conflict.body).role

    def _signed(self, mark: Mark, role: str, media_type: str, body: bytes) -> tuple[str, bytes]:
        # As no signature was needed the first time, none is now.
        sign = _CLAIM if mark.signature is None else self._sign
        return mark.continue_trace(sign(_REQUESTS, role, media_type, body)), body


def _give_up(waiting: Waiting, why: str) -> tuple[str, bytes]:
    return encode_request(
        ChangeRequest(
            waiting.request_id,
            sql=f"-- given up by the retry: {why}",
            attempt=waiting.attempt + 1,
            give_up=True,
        )
    )


def jitter(request_id: bytes, attempt: int) -> float:
    """Return a number in [0, 1), the same each time it is asked: a micro-batch that is run again
    decides alike."""
    digest = blake2b(request_id + attempt.to_bytes(8, "big"), digest_size=6).digest()
    return int.from_bytes(digest, "big") / (1 << 48)


def pack(waiting: Sequence[Waiting]) -> bytes:
    data: bytes = msgpack.packb(waiting)
    return data


def unpack(data: bytes) -> tuple[Waiting, ...]:
    return tuple(Waiting(*fields) for fields in msgpack.unpackb(data, use_list=False))
