"""What becomes of a request that is not accepted, and what the log says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from leasehold.model import byte_limits
from leasehold.model.errors import (
    InternalFailure,
    LeaseholdError,
    Refused,
    StoreCorrupted,
    StoreUnwritable,
)
from leasehold.model.records.events import RowImage
from leasehold.model.records.log import Disposition, Refusal
from leasehold.model.records.requests import ChangeRequest, OnConflict
from leasehold.replication.effects import QueueRead
from leasehold.sql.ddl.passwords import has_passwords
from leasehold.transaction.retry import is_recomputed
from leasehold.transaction.row_conflict import RowRefused

WORDS_BYTES_MAX: Final = byte_limits.REFUSED_WORDS
"""A refusal's words and detail: the answer has them, whatever the request was."""
MESSAGE_CHARACTERS_MAX: Final = 4_096
TEXT_CHARACTERS_MAX: Final = 256
"""Of a text in a detail that is cut."""
ITEMS_MAX: Final = 32
"""Of a list or mapping in a detail that is cut: as many as a key has columns."""
TOO_LARGE_TO_RETRY: Final = "; the request is too large to be tried again by itself"


def disposition_for_good(request: ChangeRequest) -> Disposition:
    """Return DEAD_LETTER for a producer's request, which is kept for people; FINAL for one whose
    requester waits for the answer and handles it."""
    if request.on_conflict is OnConflict.RETRY and not _may_have_password(request):
        return Disposition.DEAD_LETTER
    return Disposition.FINAL


def _may_have_password(request: ChangeRequest) -> bool:
    """Return whether the text may have a password, which nobody is to read for ever."""
    return request.sql is not None and has_passwords(request.sql)


def disposition_of(request: ChangeRequest, error: LeaseholdError, attempts_max: int) -> Disposition:
    """Return what is to become of a request that ended with `error`."""
    if not isinstance(error, Refused) or not error.replayable:
        return disposition_for_good(request)
    if request.on_conflict is OnConflict.REPLAY:
        return Disposition.REPLAY
    if request.on_conflict is OnConflict.RETRY:
        if request.attempt > attempts_max:
            return Disposition.DEAD_LETTER
        # ⚠ T1: what rests on the row as it was seen would be written over the newer one.
        if isinstance(error, RowRefused) and not is_recomputed(request):
            return Disposition.DEAD_LETTER
        return Disposition.CONFLICT
    return Disposition.FINAL


def refusal_of(
    message: QueueRead,
    request: ChangeRequest,
    error: LeaseholdError,
    disposition: Disposition,
    detail: Mapping[str, object] | None,
    decided_us: int,
) -> Refusal:
    """Return the refusal of a message. `detail`: instead of the error's."""
    image: RowImage | None = error.image if isinstance(error, RowRefused) else None
    return Refusal(
        request_id=request.id,
        attempt=request.attempt,
        disposition=disposition,
        code=error.sqlstate,
        message=error.message,
        detail=_as_from_the_log(error.detail if detail is None else detail),
        decided_us=decided_us,
        reply_to=reply_partition(message, request),
        queue=message.queue,
        offset=message.offset,
        content_type=message.content_type,
        body=message.body if _keeps_body(disposition) else None,
        image=image if disposition is Disposition.CONFLICT else None,
        principal=request.principal,
    )


def cut_body(refusal: Refusal, body: bytes, bytes_max: int) -> Refusal:
    """Return a refusal that keeps the reason, and `bytes_max` of the message's body (L8)."""
    return refusal._replace(
        body=body[:bytes_max] if _keeps_body(refusal.disposition) else None,
        image=None,
        detail={**refusal.detail, "body_bytes": len(body), "body_cut": True},
    )


def cut_words(refusal: Refusal) -> Refusal:
    """Return a refusal whose words and detail fit any answer; the detail says that it is cut."""
    message, detail = refusal.message[:MESSAGE_CHARACTERS_MAX], _cut(refusal.detail)
    return refusal._replace(message=message, detail={**detail, "detail_cut": True})


def cut_conflict(refusal: Refusal) -> Refusal:
    """Return a conflict without the values of the row: the next attempt needs its key alone."""
    image = refusal.image
    return refusal if image is None else refusal._replace(image=image._replace(values={}))


def give_up_conflict(refusal: Refusal, request: ChangeRequest) -> Refusal:
    """Return the refusal of a request for good: of a part of it no next attempt can be made."""
    words = f"{refusal.message}{TOO_LARGE_TO_RETRY}"
    return refusal._replace(disposition=disposition_for_good(request), message=words, image=None)


def _cut(value: Any) -> Any:
    if isinstance(value, str | bytes):
        return value[:TEXT_CHARACTERS_MAX]
    if isinstance(value, Mapping):
        return {name: _cut(value[name]) for name in list(value)[:ITEMS_MAX]}
    if isinstance(value, list | tuple):
        return tuple([_cut(each) for each in value[:ITEMS_MAX]])
    return value


def _keeps_body(disposition: Disposition) -> bool:
    return disposition in (Disposition.CONFLICT, Disposition.DEAD_LETTER)


def reply_partition(message: QueueRead, request: ChangeRequest) -> int:
    """Return the partition of `results` that the answer is for; -1 for a request that was told,
    which is answered by telling."""
    return -1 if message.requester else request.reply_to


def internal_failure(error: Exception) -> InternalFailure:
    """Return the refusal of a request at which a defect was met, before anything was changed.

    Every master after this one would meet it too, and nothing behind the request would ever be
    decided; so the one request is refused and kept for people, and the rest goes on.

    Raises `error` itself where it tells of the store. ⚠ L6: whoever looks at rows puts into the
    store what it still lacks, and a node that can't do that must not go on with half of it."""
    if isinstance(error, StoreUnwritable | StoreCorrupted):
        raise error
    kind = type(error).__name__
    return InternalFailure(
        f"deciding this request failed inside ({kind}: {str(error)[:200]}); nothing of it was"
        " applied; please report it with the request",
    )


def _as_from_the_log(detail: Mapping[str, object]) -> dict[str, Any]:
    """Return detail as it comes back from the log, so that the first answer and a repeat are
    equal."""
    plain = (str, int, float, bool, bytes, tuple, type(None))
    return {
        name: tuple(value)
        if isinstance(value, list)
        else _as_from_the_log(value)
        if isinstance(value, dict)
        else value
        if isinstance(value, plain)
        else str(value)
        for name, value in detail.items()
    }
