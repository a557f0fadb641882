"""Infinite dates and timestamps: storage values, texts, what JSON and Python have for them, and
what is sent in their place."""

from __future__ import annotations

from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.avro_schema import avro_schema
from leasehold.events.debezium.column_types import Decimals, form_of
from leasehold.events.foreign.source_types import SourceType
from leasehold.events.foreign.source_values import Units, converter
from leasehold.events.json_schema import json_schema
from leasehold.model.errors import InvalidMoment, MomentOutOfRange, Refused
from leasehold.pgwire.values.decoding import make_decoder
from leasehold.pgwire.values.encoding import make_encoder
from leasehold.sql.syntax.as_of import as_of_text
from leasehold.values.dates import INFINITY
from leasehold.values.storage import from_storage, to_json, to_storage
from leasehold.values.text_io import from_text, to_text
from leasehold.values.time_zone import UTC as ZONE
from leasehold.values.time_zone import at_zone, local_of
from leasehold.values.types import Type
from services.examples.decoding import decode_row as decoded_by_stranger

KINDS: Final = ("date", "timestamp", "timestamptz")
BOTH: Final = {"infinity": INFINITY, "-infinity": -INFINITY}
TOKYO: Final = ZoneInfo("Asia/Tokyo")


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("word", BOTH)
def test_it_is_the_same_word_in_every_form(name: str, word: str) -> None:
    kind, stored = Type(name), BOTH[word]
    assert from_text(kind, f" {word.upper()}\n", TOKYO) == stored
    assert to_text(kind, stored, TOKYO) == word
    assert local_of(stored, TOKYO) == at_zone(stored, TOKYO) == stored
    assert to_storage(kind)(word) == stored
    assert from_storage(kind, stored) == to_json(kind, stored) == word
    assert from_text(Type(name, length=None if name == "date" else 0), word) == stored


@pytest.mark.parametrize("name", KINDS)
def test_all_others_are_between(name: str) -> None:
    kind = Type(name)
    store = to_storage(kind)
    first, last = ("0001-01-01", "9999-12-31")
    assert -INFINITY < store(first) < store(last) < INFINITY


@pytest.mark.parametrize(
    "text", ["+infinity", "inf", "infinite", "- infinity", "infinity BC", "infinity 10:00", "iNf"]
)
@pytest.mark.parametrize("name", KINDS)
def test_other_words_are_no_moment(name: str, text: str) -> None:
    with pytest.raises(InvalidMoment):
        from_text(Type(name), text)


@pytest.mark.parametrize("name", ["time", "timetz"])
def test_no_time_of_day_is_infinite(name: str) -> None:
    with pytest.raises(InvalidMoment):
        from_text(Type(name), "infinity")


BINARY: Final = {
    "date": (b"\x7f\xff\xff\xff", b"\x80\0\0\0"),
    "timestamp": (b"\x7f" + b"\xff" * 7, b"\x80" + b"\0" * 7),
    "timestamptz": (b"\x7f" + b"\xff" * 7, b"\x80" + b"\0" * 7),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_binary_form_is_that_of_postgresql(name: str) -> None:
    kind = Type(name)
    for stored, sent in zip(BOTH.values(), BINARY[name], strict=True):
        assert make_encoder(kind, 1, ZONE)(stored)[4:] == sent
        assert make_decoder(kind, 1, ZONE)(sent) == stored
    beside = int.from_bytes(BINARY[name][0]) - 1
    with pytest.raises(MomentOutOfRange):
        make_decoder(kind, 1, ZONE)(beside.to_bytes(len(BINARY[name][0])))


SENT: Final[dict[str, tuple[Any, Any]]] = {
    "date": (2_147_483_647, -2_147_483_648),
    "timestamp": (9_223_372_036_825_200_000, -9_223_372_036_832_400_000),
    "timestamptz": ("+292278994-08-16T23:00:00Z", "-292275055-05-16T23:00:00Z"),
}


@pytest.mark.parametrize("name", KINDS)
def test_feeds_have_what_debezium_sends_and_intakes_read_it(name: str) -> None:
    kind = Type(name)
    form = form_of(kind, Decimals.STRING)
    convert = form.convert
    assert convert is not None
    read = converter(SourceType(name=str(form.schema["name"])), kind, Units.MICROS)
    for (word, stored), sent in zip(BOTH.items(), SENT[name], strict=True):
        assert convert(stored) == sent
        assert read(sent) == read(word) == word
        assert converter(SourceType(), kind, Units.MILLIS)(sent) == word
    plain = to_storage(kind)("2026-02-28")
    assert to_storage(kind)(read(convert(plain))) == plain


def test_a_whole_number_that_only_days_have_for_it_is_a_moment_elsewhere() -> None:
    source = SourceType(name="io.debezium.time.MicroTimestamp")
    read = converter(source, Type("timestamp"), Units.MICROS)
    assert read(2_147_483_647) == "1970-01-01T00:35:47.483647"
    read = converter(SourceType(name="io.debezium.time.Date"), Type("date"), Units.MICROS)
    with pytest.raises(Refused):
        read(9_223_372_036_825_200_000)


def test_as_of_names_a_moment() -> None:
    for word in BOTH:
        with pytest.raises(MomentOutOfRange, match=f"AS OF {word} names no moment"):
            as_of_text(word)


def test_a_schema_of_avro_has_no_default_for_it() -> None:
    for default in (7, INFINITY):
        column = Column(2, "d", Type("date"), nullable=False, default=default)
        table = Descriptor(
            1, "t", 1, (Column(1, "id", Type("integer"), nullable=False), column), (1,)
        )
        _, field = avro_schema(table)["fields"]
        assert ("default" in field) == (default == 7)
        assert json_schema(table)["properties"]["d"]["default"] == to_json(column.type, default)


def test_a_row_is_read_without_a_library_of_ours() -> None:
    elements = [
        {"kind": "column", "state": "public", "id": number, "name": name, "type": name}
        for number, name in enumerate(KINDS, 1)
    ]
    values = {1: INFINITY, 2: -INFINITY, 3: INFINITY}
    told = decoded_by_stranger({"primary_key": [1], "elements": elements}, [INFINITY], values)
    assert told == {"date": "infinity", "timestamp": "-infinity", "timestamptz": "infinity"}
