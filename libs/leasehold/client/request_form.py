"""A change request as its producer writes it → id and bytes for the requests topic.

Fields are not validated here: the master is the one place that accepts or refuses, and what it
refuses it also keeps (dead-letter); a second opinion would only differ from it one day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from leasehold.adapters.codec.request_bytes import pack_fields
from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.model.ids import parse_request_id, request_time_ms
from leasehold.model.records.requests import ChangeRequest, OnConflict, Queue
from leasehold.model.signatures import NO_KEYS, Signer, signer
from leasehold.model.traces import add_trace


class RequestForm(NamedTuple):
    request_id: bytes
    content_type: str
    body: bytes
    on_conflict: OnConflict
    attempt: int


FIRST: Final = 1
"""The attempt of a request that names none."""
UNSIGNED: Final = signer(NO_KEYS, "")
_REQUESTS: Final = Queue.REQUESTS.value


def form(
    request: ChangeRequest | Mapping[str, Any],
    reply_to: int,
    fresh_id: Callable[[], bytes],
    sign: Signer = UNSIGNED,
    traceparent: str = "",
) -> RequestForm:
    """Encode a request whose answer goes to `reply_to`, and sign it in the name of its principal.
    `fresh_id` is called unless it brings an id. `traceparent`: under which it is sent, "" = none.

    Raises MalformedRequest for an id that is no UUIDv7 and for values without a wire form,
    RequestTooLarge.
    """
    if isinstance(request, ChangeRequest):
        sent = request if request.id else request._replace(id=fresh_id())
        content_type, body = encode_request(sent, reply_to)
        content_type = sign(_REQUESTS, sent.principal, content_type, body)
        if traceparent:
            content_type = add_trace(content_type, traceparent)
        return RequestForm(sent.id, content_type, body, sent.on_conflict, sent.attempt)
    request_id = _id_of(request.get("id"), fresh_id)
    fields = {**request, "id": request_id, "reply_to": reply_to}
    content_type, data = pack_fields(fields)
    content_type = sign(_REQUESTS, "", content_type, data)
    if traceparent:
        content_type = add_trace(content_type, traceparent)
    wish = request.get("on_conflict")
    on_conflict = _WISHES.get(wish, _RETRY) if isinstance(wish, str) else _RETRY
    attempt = request.get("attempt")
    attempt = attempt if isinstance(attempt, int) else FIRST
    return RequestForm(request_id, content_type, data, on_conflict, attempt)


_WISHES: Final = {wish.value: wish for wish in OnConflict}
_RETRY: Final = OnConflict.RETRY


def _id_of(value: Any, fresh_id: Callable[[], bytes]) -> bytes:
    if value is None:
        return fresh_id()
    if isinstance(value, bytes):
        request_time_ms(value)
        return value
    if isinstance(value, UUID):
        return parse_request_id(str(value))
    return parse_request_id(value)
