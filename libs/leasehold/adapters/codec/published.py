"""What the changefeed publishes, as bytes that a message has room for.

The master takes no commit whose rows or jobs have more (`replication/master/batch.py`). But an
earlier one
may have, and such a record stands in its log: a changefeed that could not step over it would never
publish anything again. So what is too large is told in a shorter form, which says that it is one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

from leasehold.adapters.codec.records import MessagePackCodec, row_key
from leasehold.events.public_schema import encode_event
from leasehold.model import byte_limits
from leasehold.model.errors import MalformedRequest
from leasehold.model.keys import Key
from leasehold.model.records.events import RowImage, RowLeftOut, RowsTruncated, VersionEvent
from leasehold.model.records.jobs import JobEvent
from leasehold.model.records.requests import DeadLetter, Result, ResultBatch
from leasehold.model.topics import PUBLISHED_BYTES_MAX

TEXT_CHARACTERS_MAX: Final = 256
"""Longest text or bytes in what is told in a shorter form."""
BODY_BYTES_MAX: Final = byte_limits.REFUSED_BODY
"""Of a request that is too large for its dead letter; as much as the master keeps of one."""
RESULTS_BYTES_MAX: Final = byte_limits.RESULTS
"""Of one message of several results: repeats are no part of a record of the log, so nothing else
bounds what they come to, and their readers take a megabyte at a time."""
_NOT_IN_PART: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("default", "missing"), None),
    **dict.fromkeys(("expression", "predicate", "default_expression"), ""),
    "expressions": [],
}
"""Fields of an element's wire form, and what stands there instead of one that is too long."""
_CODEC: Final = MessagePackCodec()
LOG: Final = logging.getLogger("leasehold.changefeed")


def row_message(key: Key, image: RowImage | None) -> tuple[bytes, bytes | None] | None:
    """Return record key and value for the rows topic, a tombstone for None, and a RowLeftOut for an
    image that is too large. Returns None where its key alone is: of such a row nothing can be told.
    """
    packed = row_key(key)
    if image is None:
        if _fits(packed, b""):
            return packed, None
        LOG.error("the deletion of row %.200r can't be published: its key is too large", key)
        return None
    value = _CODEC.encode(image)
    if _fits(packed, value):
        return packed, value
    size = len(value)
    value = _CODEC.encode(RowLeftOut(*image[:-1], size))
    if not _fits(packed, value):
        LOG.error(
            "row %.200r of table %d can't be published: its key is too large", key, image.table_id
        )
        return None
    about = key, image.table_id, size
    LOG.warning("row %.200r of table %d is published as left out: its image has %d bytes", *about)
    return packed, value


def feed_message(key: bytes, record: VersionEvent | JobEvent | DeadLetter) -> bytes:
    """Return the value of a message of that key; version events are for everybody, hence JSON, and
    have a limit of their own. Of a job what is long in its elements and findings is cut where it is
    too large, of a dead letter what is long in the request."""
    if isinstance(record, VersionEvent):
        return encode_event(record)
    value = _CODEC.encode(record)
    if _fits(key, value):
        return value
    if isinstance(record, JobEvent):
        value = _CODEC.encode(record._replace(body=_shortened(record.body)))
        if not _fits(key, value):  # with rows and steps beyond all measure
            value = _CODEC.encode(record._replace(body=_without_steps(record.body)))
    else:
        value = _CODEC.encode(_cut(record))
    assert _fits(key, value), "what is left has texts of bounded length"
    return value


def messages_of(record: object) -> Iterator[bytes]:
    """Yield the messages that carry a record to a topic: results of many bytes take several, and
    the words of one that no message has room for are cut."""
    data = _CODEC.encode(record)
    results = record.results if isinstance(record, ResultBatch) else ()
    if len(results) == 1 and not _fits(b"", data):
        yield _CODEC.encode(ResultBatch((_with_short_words(results[0]),)))
        return
    if len(results) < 2 or len(data) <= RESULTS_BYTES_MAX:
        yield data
        return
    half = len(results) // 2
    yield from messages_of(ResultBatch(results[:half]))
    yield from messages_of(ResultBatch(results[half:]))


def restore_image(key: Key, value: bytes) -> RowImage | RowLeftOut | RowsTruncated:
    """Return what a record of a rows topic holds that is no tombstone. Raises MalformedRequest."""
    if not key:
        return _CODEC.decode_as(RowsTruncated, value)
    record = _CODEC.decode(value)
    if isinstance(record, RowImage | RowLeftOut):
        return record
    raise MalformedRequest(f"a {type(record).__name__} is no row image")


def _fits(key: bytes, value: bytes) -> bool:
    return len(key) + len(value) <= PUBLISHED_BYTES_MAX


def _with_short_words(result: Result) -> Result:
    """Return an answer that a message has room for: masters once refused with words of any
    length, and what they said is remembered."""
    outcome = result.outcome
    message, detail = outcome.message[: BODY_BYTES_MAX // 4], _shortened(outcome.detail)
    short = outcome._replace(message=message, detail={**detail, "detail_cut": True})
    return result._replace(outcome=short)


def _cut(letter: DeadLetter) -> DeadLetter:
    """Return a dead letter with a short body, whose reason stays; `body_bytes` says how many there
    were."""
    body = letter.body or b""
    detail = {**_shortened(letter.detail), "body_bytes": len(body), "body_cut": True}
    message = letter.message[: BODY_BYTES_MAX // 4]
    return letter._replace(message=message, detail=detail, body=body[:BODY_BYTES_MAX])


def _shortened(value: Any) -> Any:
    if isinstance(value, str | bytes):
        return value[:TEXT_CHARACTERS_MAX]
    if isinstance(value, Mapping):
        return {name: _without(name, each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(each) for each in value]
    return value


def _without(name: Any, value: Any) -> Any:
    """Return the value of a field in a shorter form. ⚠ Part of a value of an element may be no
    value, and part of an expression is another one."""
    if name in _NOT_IN_PART and _is_long(value):
        return _NOT_IN_PART[name]
    return _shortened(value)


def _is_long(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_long, value))
    return isinstance(value, str | bytes) and len(value) > TEXT_CHARACTERS_MAX


def _without_steps(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job's body whose steps have no elements, so that their numbers and states still mean
    something."""
    kept: dict[str, Any] = _shortened({**body, "findings": [], "steps": []})
    kept["steps"] = [[[], *work] for _, *work in body["steps"]]
    return kept
