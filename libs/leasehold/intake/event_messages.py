"""An event of a topic → the change request that it becomes, or the dead letter that says why none.

What is wrong with an event is said of that event; nothing else waits for it. What is wrong with
what it needs (no such table yet, a registry that is away) holds its partition up: every event
behind it would end the same way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from leasehold.adapters.codec.published import feed_message
from leasehold.adapters.kafka.reader import Record
from leasehold.adapters.kafka.writer import Headers
from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import Descriptor
from leasehold.client.request_form import form
from leasehold.events.foreign.row_events import Decoded, Layout, RowEvent, What, read_event
from leasehold.events.foreign.row_operations import Rules, operations_of
from leasehold.intake.decoding import Decoder, Held
from leasehold.model import byte_limits
from leasehold.model.errors import InternalFailure, LeaseholdError, MalformedRequest, Refused
from leasehold.model.records.requests import ChangeRequest, DeadLetter
from leasehold.model.signatures import Signer
from leasehold.model.topics import Topics

NOBODY: Final = -1
"""The partition of answers: what is refused stands among the dead letters, where people look."""
JSON_TYPE: Final = "application/json"
REGISTRY_TYPE: Final = "application/vnd.confluent"
BODY_BYTES_MAX: Final = byte_limits.REFUSED_BODY
Find = Callable[[str], Descriptor | None]
LOG: Final = logging.getLogger("leasehold.intake")


class Outgoing(NamedTuple):
    """A message of the next transaction. `is_letter`: a dead letter."""

    topic: str
    key: bytes
    value: bytes
    headers: Headers = ()
    is_letter: bool = False


class EventMessages:
    """Makes messages of events, for one intake."""

    def __init__(
        self,
        name: str,
        topics: Topics,
        routes: Mapping[str, str],
        layout: Layout,
        rules: Rules,
        decoder: Decoder,
        find: Find,
        sign: Signer,
    ) -> None:
        """Make messages for the intake of that name. `routes`: tables' names by topic; `find`
        returns a table by its name."""
        self._name = name
        self._topics = topics
        self._routes = routes
        self._layout = layout
        self._rules = rules
        self._decoder = decoder
        self._find = find
        self._sign = sign

    def message_of(self, record: Record, request_id: bytes, now_us: int) -> Outgoing | None:
        """Return the message of an event, None where it says nothing of a row. Raises Held."""
        try:
            request = self._request(record, request_id)
            if request is None:
                return None
            made = form(request, NOBODY, _no_other_id, self._sign)
            content_type, body = made.content_type, made.body
            if len(body) > byte_limits.REQUEST_SENT - len(request_id):
                raise MalformedRequest(f"its request has {len(body)} bytes, too many for a message")
        except LeaseholdError as error:
            return self.letter(record, request_id, error, now_us)
        except Held:
            raise
        except Exception as error:
            # A defect met this one event: kept for people, it holds up nothing.
            LOG.exception("reading the event at offset %d of %s", record.offset, record.topic)
            words = f"reading the event failed inside ({type(error).__name__}: {error!s:.200})"
            return self.letter(record, request_id, InternalFailure(words), now_us)
        headers = (("content-type", content_type.encode()),)
        return Outgoing(self._topics.requests.name, request_id, body, headers)

    def _request(self, record: Record, request_id: bytes) -> ChangeRequest | None:
        name = self._routes[record.topic]
        value = None if record.value is None else self._decoder.read(record.value)
        if value is not None and value.value is None:
            value = None  # JSON's null is no value, as Kafka's
        event = None if value is None else read_event(value, None, self._layout)
        if event is None and value is None and self._layout is Layout.ROWS:
            event = read_event(None, self._key(record, None), self._layout)
        elif event is not None and event.what is What.DELETE:
            event = read_event(value, self._key(record, event), self._layout)
        if event is None:
            return None
        table = self._find(name)
        if table is None:
            raise Held(f"table {name!r}, which does not exist: make it, or correct the routes")
        if event.what is What.TRUNCATE:
            return ChangeRequest(request_id, sql=f"TRUNCATE {quoted(table.name)}")
        return ChangeRequest(request_id, operations_of(event, table, self._rules))

    def _key(self, record: Record, event: RowEvent | None) -> Decoded | None:
        """Return what a message's key says; nothing where that can't be read and its value may say
        the same."""
        if not record.key:
            return None
        try:
            return self._decoder.read(record.key)
        except MalformedRequest as error:
            if event is not None and event.before is not None:
                return None
            raise MalformedRequest(f"its key can't be read: {error.message}") from error

    def letter(
        self, record: Record, request_id: bytes, error: LeaseholdError, now_us: int
    ) -> Outgoing:
        """Return the dead letter of an event."""
        body = record.value or b""
        detail: dict[str, Any] = {
            "intake": self._name,
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "table": self._routes.get(record.topic, ""),
            **{name: _plain(value) for name, value in error.detail.items() if name != "table"},
        }
        if len(body) > BODY_BYTES_MAX:
            detail |= {"body_bytes": len(body), "body_cut": True}
        letter = DeadLetter(
            request_id=request_id,
            attempt=1,
            code=error.sqlstate if isinstance(error, Refused) else "XX000",
            message=f"the event at offset {record.offset} of {record.topic}: {error.message}",
            detail=detail,
            decided_us=now_us,
            queue=f"{record.topic}/{record.partition}",
            offset=record.offset,
            content_type=REGISTRY_TYPE if body[:1] == b"\x00" else JSON_TYPE,
            body=body[:BODY_BYTES_MAX],
        )
        value = feed_message(request_id, letter)
        return Outgoing(self._topics.dead_letter.name, request_id, value, is_letter=True)


def _no_other_id() -> bytes:
    raise AssertionError("an event's request has an id")


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | bool) else str(value)[:200]
