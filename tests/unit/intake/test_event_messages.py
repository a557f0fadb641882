"""Goal: whatever stands on a topic becomes a request, a dead letter that says why it is none, or
nothing; only what an event needs and has not holds it up.

Method: records of both encodings and layouts; a registry in this process; random bytes.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.codec.request_decoding import decode_request
from leasehold.adapters.http.schema_registry import SchemaRegistry
from leasehold.adapters.kafka.reader import Record
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.client.request_form import UNSIGNED
from leasehold.events.debezium.varints import zigzag
from leasehold.events.foreign.row_events import Layout
from leasehold.events.foreign.row_operations import Rules
from leasehold.intake.decoding import Decoder, Held, Schemas
from leasehold.intake.event_messages import BODY_BYTES_MAX, EventMessages, Outgoing
from leasehold.model.ids import request_id
from leasehold.model.records.requests import ChangeRequest, DeadLetter
from leasehold.model.topics import Topics
from leasehold.settings.intake import AUTO, REGISTRY
from leasehold.settings.intake import JSON as PLAIN
from leasehold.settings.schema_registry import SchemaRegistrySettings
from leasehold.values.types import Type
from tests.support.registry.double import RegistryDouble, registry_double

TABLE: Final = Descriptor(
    1,
    "Orders",
    1,
    (Column(1, "id", Type("bigint"), False), Column(2, "n", Type("integer"))),
    (1,),
)
ID: Final = request_id(1_790_000_000_000, b"0123456789")
NOW_US: Final = 1_790_000_000_000_000
ROW: Final = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "id", "type": "long"}, {"name": "n", "type": ["null", "int"]}],
}
DEADLINE_S: Final = 20.0


def record(value: Any, key: Any = None, topic: str = "shop.orders") -> Record:
    data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    named = key if key is None or isinstance(key, bytes) else json.dumps(key).encode()
    return Record(topic, 3, 41, named, data, ())


def messages(
    registry: SchemaRegistry | None = None,
    layout: Layout = Layout.DEBEZIUM,
    encoding: str = AUTO,
) -> EventMessages:
    def find(name: str) -> Descriptor | None:
        return TABLE if name == "Orders" else None

    routes = {"shop.orders": "Orders", "shop.nowhere": "nowhere"}
    decoder = Decoder(encoding, Schemas(registry))
    topics = Topics("demo")
    return EventMessages("i", topics, routes, layout, Rules(), decoder, find, UNSIGNED)


def request_of(message: Outgoing | None) -> ChangeRequest:
    assert message is not None
    assert not message.is_letter
    assert message.topic == "demo.requests"
    ((name, content_type),) = message.headers
    assert name == "content-type"
    assert content_type is not None
    return decode_request(content_type.decode(), message.value)


def letter_of(message: Outgoing | None) -> DeadLetter:
    assert message is not None
    assert message.is_letter
    assert message.topic == "demo.dead-letter"
    return MessagePackCodec().decode_as(DeadLetter, message.value)


def test_events_become_requests_of_their_id() -> None:
    made = messages()
    request = request_of(made.message_of(record({"op": "c", "after": {"id": 7, "n": 1}}), ID, 0))
    assert request.id == ID
    assert request.operations[0].values == {"n": 1}
    wiped = request_of(made.message_of(record({"op": "t"}), ID, 0))
    assert wiped.sql == 'TRUNCATE "Orders"'
    assert made.message_of(record(None, {"id": 7}), ID, 0) is None, "a tombstone"
    assert made.message_of(record({"op": "m"}), ID, 0) is None
    gone = made.message_of(record({"op": "d", "before": {"id": 7}}, b"no JSON"), ID, 0)
    assert request_of(gone).operations[0].key == {"id": 7}
    rows = messages(layout=Layout.ROWS)
    assert request_of(rows.message_of(record(None, {"id": 7}), ID, 0)).operations[0].key == {
        "id": 7
    }
    assert request_of(rows.message_of(record(b"null", {"id": 7}), ID, 0)).operations[0].values == {}


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        (b"", "08P01", "no JSON"),
        (b"\xff\xfe", "08P01", "UTF-8"),
        (b"[" * 100_000, "08P01", "deep"),
        (b"{}", "08P01", "op"),
        ({"op": "c", "after": {"id": 7, "n": 2**40}}, "22003", "out of range"),
        ({"op": "c", "after": {"id": 7, "n": "x"}}, "22P02", "'n'"),
        ({"op": "c", "after": {"id": 7, "new": 1}}, "42703", "no column 'new'"),
        ({"op": "c", "after": {"n": 1}}, "08P01", "no value for id"),
        (b"9" * 5_000, "08P01", "no JSON"),
    ],
)
def test_what_can_t_be_taken_says_why_where_and_keeps_its_bytes(
    value: Any, code: str, words: str
) -> None:
    event = record(value)
    letter = letter_of(messages().message_of(event, ID, NOW_US))
    assert letter.code == code
    assert words in letter.message
    assert letter.body == event.value
    assert letter.detail["topic"] == "shop.orders"
    assert (letter.detail["partition"], letter.offset) == (3, 41)
    assert letter.request_id == ID


def test_a_large_event_s_letter_keeps_its_beginning() -> None:
    letter = letter_of(messages().message_of(record(b"x" * (BODY_BYTES_MAX + 9)), ID, NOW_US))
    assert letter.body == b"x" * BODY_BYTES_MAX
    assert letter.detail["body_bytes"] == BODY_BYTES_MAX + 9


def test_a_table_that_is_not_there_is_waited_for() -> None:
    with pytest.raises(Held, match="'nowhere'"):
        messages().message_of(record({"op": "c", "after": {}}, topic="shop.nowhere"), ID, 0)
    letter_of(messages().message_of(record(b"bad", topic="shop.nowhere"), ID, 0))


# ---------------------------------------------------------------- by a registry


@pytest.fixture
def double() -> Iterator[RegistryDouble]:
    with registry_double() as made:
        yield made


def asking(double: RegistryDouble) -> EventMessages:
    registry = SchemaRegistry(SchemaRegistrySettings(urls=double.url), 5.0)
    return messages(registry, Layout.ROWS)


def framed(number: int, body: bytes) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + body


def waited(made: EventMessages, event: Record) -> Outgoing | None:
    """What becomes of an event once the registry has answered."""
    give_up = time.monotonic() + DEADLINE_S
    while time.monotonic() < give_up:
        with suppress(Held):
            return made.message_of(event, ID, NOW_US)
    raise AssertionError("the registry's answer did not come")


def test_avro_is_read_by_the_number_of_its_schema(double: RegistryDouble) -> None:
    number = double.number("s", json.dumps(ROW))
    made = asking(double)
    event = record(framed(number, zigzag(7) + b"\x02" + zigzag(-3)))
    with pytest.raises(Held, match="schema 1"):
        made.message_of(event, ID, 0)
    (operation,) = request_of(waited(made, event)).operations
    assert (operation.key, operation.values) == ({"id": 7}, {"n": -3})
    double.always = (500, b"")
    assert request_of(made.message_of(event, ID, 0)).operations == (operation,), "it is kept"
    cut = letter_of(made.message_of(record(framed(number, b"\x0e")), ID, 0))
    assert "no whole number" in cut.message


def test_a_registry_that_is_away_holds_only_who_needs_it(double: RegistryDouble) -> None:
    number = double.number("s", json.dumps(ROW))
    double.always = (503, {"message": "not now"})
    registry = SchemaRegistry(SchemaRegistrySettings(urls=double.url), 0.05)
    made = messages(registry, Layout.ROWS)
    event = record(framed(number, zigzag(7) + b"\x00"))
    give_up = time.monotonic() + DEADLINE_S
    words = ""
    while "not now" not in words:
        assert time.monotonic() < give_up
        with pytest.raises(Held) as held:
            made.message_of(event, ID, 0)
        words = held.value.words
        request_of(made.message_of(record({"id": 1}), ID, 0))
    double.always = None
    assert request_of(waited(made, event)).operations[0].key == {"id": 7}


def test_a_schema_that_nobody_has_or_can_read_is_said_of_its_event(double: RegistryDouble) -> None:
    double.always = (404, {"error_code": 40403, "message": "Schema not found"})
    made = asking(double)
    assert "no schema 9" in letter_of(waited(made, record(framed(9, b"")))).message
    for answer, words in (
        ({"schema": "{", "schemaType": "AVRO"}, "none of Avro"),
        ({"schema": "syntax", "schemaType": "PROTOBUF"}, "PROTOBUF"),
    ):
        double.always = (200, answer)
        assert words in letter_of(waited(asking(double), record(framed(9, b"")))).message
    double.always = (200, {"schema": "{}", "schemaType": "JSON"})
    made = asking(double)
    found = request_of(waited(made, record(framed(9, b'{"id": 7}'))))
    assert found.operations[0].key == {"id": 7}


def test_the_encoding_that_is_said_is_the_one_that_is_read() -> None:
    by_registry = messages(encoding=REGISTRY)
    assert "wire format" in letter_of(by_registry.message_of(record({"op": "t"}), ID, 0)).message
    plain = messages(encoding=PLAIN)
    assert "JSON" in letter_of(plain.message_of(record(b"\x00{}"), ID, 0)).message
    with pytest.raises(Held, match="LEASEHOLD_REGISTRY"):
        messages().message_of(record(framed(1, b"")), ID, 0)


def test_no_bytes_end_in_anything_else(double: RegistryDouble) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    source = random.Random(seed)
    number = double.number("s", json.dumps(ROW))
    made = {layout: messages(layout=layout) for layout in Layout}
    with_registry = asking(double)
    waited(with_registry, record(framed(number, b"\x0e\x00")))
    good = json.dumps({"op": "u", "before": {"id": 1}, "after": {"id": 1, "n": 5}}).encode()
    for _ in range(2_000):
        data = bytearray(good)
        for _ in range(source.randrange(1, 5)):
            data[source.randrange(len(data))] = source.randrange(1, 256)
        event = record(bytes(data), bytes(data[:9]))
        for each in made.values():
            each.message_of(event, ID, NOW_US)
        with_registry.message_of(record(framed(number, source.randbytes(9))), ID, NOW_US)
