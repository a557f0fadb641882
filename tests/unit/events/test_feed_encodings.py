"""Goal: what a feed tells in Avro and Protobuf is what stock libraries read, with the schema that
the registry has, and is the same as in JSON.

Method: fastavro and Google's protobuf read messages of every type of column; a schema of the next
version reads data of the one before by Avro's own rules.
"""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.debezium.binary_form import AvroForm, BinaryForm, ProtobufForm
from leasehold.events.debezium.column_types import Decimals, form_of
from leasehold.events.debezium.envelope import JsonForm
from leasehold.events.debezium.protobuf_wire import field_number
from leasehold.events.debezium.table_form import Block, Source
from leasehold.events.debezium.varints import two_complement, varint, zigzag
from leasehold.model.ids import format_request_id, request_id
from leasehold.model.records.events import RowImage
from leasehold.values.storage import to_storage
from leasehold.values.types import Type, parse_type
from tests.support.changefeed.feed_readers import (
    as_record,
    protobuf_class,
    read_avro,
    rewrite_avro,
)

ASKED = request_id(1, b"0123456789")
SOURCE = Source(571, 2, 90, 1_559_033_904_863_250, ASKED, 3)
NOW_US = 1_559_033_904_900_000
VALUES = {
    "smallint": -3,
    "integer": 2**31 - 1,
    "bigint": -(2**63),
    "boolean": True,
    "double precision": 2.5,
    "text": "Zürich \U0001f6eb",
    "varchar(9)": "",
    "char(4)": "ab",
    "bytea": b"\x00\xff",
    "date": "2024-02-29",
    "timestamp": "2024-02-29 12:00:00.000001",
    "timestamptz": "1969-12-31 23:59:59+00",
    "uuid": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "jsonb": {"a": [1, None]},
    "numeric(5,2)": "-1.5",
    "numeric": "12.5",
    "bigint[]": [1, None, -9],
    "text[]": [],
    "double precision[]": [0.5],
}


def type_of(kind: str) -> Type:
    return Type(kind) if kind.endswith("[]") else parse_type(kind)


def storage_of(kind: Type, value: Any) -> Any:
    return json.dumps(value) if kind.name.endswith("[]") else to_storage(kind)(value)


def table_of(*kinds: str, nullable: bool = True) -> Descriptor:
    columns = tuple(
        Column(n, f"c{n}", type_of(kind), nullable=nullable) for n, kind in enumerate(kinds, 2)
    )
    return Descriptor(7, "all", 3, (Column(1, "id", parse_type("bigint"), False), *columns), (1,))


def made(form: type[Any], table: Descriptor, decimals: Decimals = Decimals.STRING) -> Any:
    return form(
        *("demo", "demo.feed.public.all", "public.all"),
        *(table, tuple(table.by_name.values()), decimals, "1.2.3"),
    )


def image(table: Descriptor, values: dict[int, Any]) -> RowImage:
    return RowImage(table.table_id, (1,), {}, 570, table.version, 5, values)


def stored(table: Descriptor, *outside: Any) -> RowImage:
    values = {
        column.element_id: storage_of(column.type, value)
        for column, value in zip(table.columns[1:], outside, strict=True)
        if value is not None
    }
    return image(table, values)


def read(form: BinaryForm, schema: str, data: bytes) -> Any:
    if isinstance(form, AvroForm):
        return read_avro(schema, data)
    return as_record(protobuf_class(schema).FromString(data))


def told(form: BinaryForm, row: RowImage | None, op: str = "u", block: Block | None = None) -> Any:
    parts = form.row((1,), row)
    before = parts if op in "ud" else None
    after = parts if op in "ucr" else None
    data = form.value(op, before, after, SOURCE, block, NOW_US)
    return read(form, form.value_schema, data)


@pytest.mark.parametrize("form", [AvroForm, ProtobufForm])
@pytest.mark.parametrize("decimals", Decimals)
@pytest.mark.parametrize("nullable", [True, False])
def test_each_type_is_read_as_json_has_it(
    form: type[BinaryForm], decimals: Decimals, nullable: bool
) -> None:
    table = table_of(*VALUES, nullable=nullable)
    row = stored(table, *VALUES.values())
    wanted = made(JsonForm, table, decimals).row((1,), row)
    found = told(made(form, table, decimals), row)
    assert found["before"] == found["after"]
    binary: dict[str, Any] = {"c10": b"\x00\xff"}
    if decimals is Decimals.PRECISE:
        binary |= {"c16": b"\xff\x6a", "c17": {"scale": 1, "value": b"\x7d"}}
        if form is AvroForm:
            binary["c16"] = found["after"]["c16"]
            assert str(found["after"]["c16"]) == "-1.50", "Avro's own logical type"
    assert found["after"] == {**wanted, **binary}
    event = json.loads(made(JsonForm, table).value("u", None, None, SOURCE, None, NOW_US))
    assert {**event, "before": 0, "after": 0} == {**found, "before": 0, "after": 0}


@pytest.mark.parametrize("form", [AvroForm, ProtobufForm])
def test_null_is_none_and_every_op_has_its_rows(form: type[BinaryForm]) -> None:
    table = table_of(*VALUES)
    kind = made(form, table)
    empty = {"id": 1, **{f"c{n}": None for n in range(2, len(VALUES) + 2)}}
    for op, before, after in (("c", None, empty), ("d", empty, None), ("t", None, None)):
        found = told(kind, image(table, {}), op)
        assert (found["op"], found["before"], found["after"]) == (op, before, after)
    block = {"id": "571:90", "total_order": 4, "data_collection_order": 300}
    assert told(kind, None, "t", Block(*block.values()))["transaction"] == block  # type: ignore[arg-type]


@pytest.mark.parametrize("form", [AvroForm, ProtobufForm])
def test_numbers_that_are_none_are_themselves(form: type[BinaryForm]) -> None:
    table = table_of("double precision", "double precision", "numeric", "numeric(4,1)")
    row = stored(table, "NaN", "-Infinity", "NaN", "NaN")
    found = told(made(form, table, Decimals.DOUBLE), row)["after"]
    assert math.isnan(found["c2"])
    assert found["c3"] == -math.inf
    assert math.isnan(found["c4"])
    precise = told(made(form, table, Decimals.PRECISE), row)["after"]
    assert (precise["c4"], precise["c5"]) == (None, None)


@pytest.mark.parametrize("form", [AvroForm, ProtobufForm])
def test_a_key_has_its_columns_and_a_table_without_one_has_none(form: type[BinaryForm]) -> None:
    columns = (
        Column(1, "a b", parse_type("text"), False),
        Column(2, "n", parse_type("integer"), False),
        Column(3, "rest", parse_type("text")),
    )
    table = Descriptor(7, "t", 1, columns, (2, 1))
    kind = made(form, table)
    data = kind.key((-7, "x"))
    assert list(read(kind, kind.key_schema, data).values()) == [-7, "x"]
    assert list(read(kind, kind.key_schema, data)) == ["n", "a_x20_b"]
    hidden = Descriptor(7, "t", 1, (Column(1, "", parse_type("bigint"), hidden=True),), (1,))
    assert made(form, hidden).key((1,)) is None


def test_bytes_are_those_that_fastavro_writes() -> None:
    table = table_of(*VALUES)
    kind = made(AvroForm, table)
    parts = kind.row((1,), stored(table, *VALUES.values()))
    data = kind.value("u", parts, None, SOURCE, None, NOW_US)
    assert rewrite_avro(kind.value_schema, read_avro(kind.value_schema, data)) == data


@pytest.mark.parametrize("length", [1, 63, 64, 200, 5_000, 40_000])
def test_bytes_of_rows_of_any_length_are_those_that_fastavro_writes(length: int) -> None:
    """Short rows are kept whole, long ones by field: the bytes are the same."""
    table = table_of("text", "bytea", "bigint", "varchar(9)")
    kind = made(AvroForm, table)
    parts = kind.row((1,), stored(table, "é" * length, b"y" * length, -length, None))
    data = kind.value("u", parts, parts, SOURCE, Block("571:90", 4, 300), NOW_US)
    event = read_avro(kind.value_schema, data)
    assert event["before"] == event["after"]
    assert event["after"]["c2"] == "é" * length
    assert rewrite_avro(kind.value_schema, event) == data


@pytest.mark.parametrize("form", [AvroForm, ProtobufForm])
def test_each_event_says_its_own_op_and_moment(form: type[BinaryForm]) -> None:
    """What is the same in many events is made once, and of no other."""
    kind = made(form, table_of("text"))
    for op, now_us in (("c", 5), ("u", 5), ("c", 5), ("c", NOW_US), ("r", NOW_US), ("c", 5)):
        found = read(kind, kind.value_schema, kind.value(op, None, None, SOURCE, None, now_us))
        assert (found["op"], found["ts_us"], found["ts_ms"]) == (op, now_us, now_us // 1_000)


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_is_the_text_that_iso_8601_has(moment: datetime) -> None:
    kind = parse_type("timestamptz")
    form = form_of(kind, Decimals.STRING)
    assert form.convert is not None
    text = form.convert(to_storage(kind)(moment))
    assert text == moment.strftime("%Y").rjust(4, "0") + moment.strftime("-%m-%dT%H:%M:%S.%fZ")


@pytest.mark.parametrize("form", [AvroForm, ProtobufForm])
def test_long_values_give_way_first_those_before(form: type[BinaryForm]) -> None:
    table = table_of("text", "bytea", "text")
    kind = made(form, table)
    parts = kind.row((1,), stored(table, "x" * 30_000, b"y" * 30_000, "short"))
    cut = {
        "id": 1,
        "c2": "__debezium_unavailable_value",
        "c3": b"__debezium_unavailable_value",
        "c4": "short",
    }
    data = kind.value("u", parts, parts, SOURCE, None, NOW_US, 90_000)
    found = read(kind, kind.value_schema, data)
    assert len(data) <= 90_000
    assert found["before"] == cut
    assert found["after"]["c2"] == "x" * 30_000
    both = kind.value("u", parts, parts, SOURCE, None, NOW_US, 5_000)
    assert read(kind, kind.value_schema, both)["after"] == cut


@pytest.mark.parametrize("form", [AvroForm, ProtobufForm])
def test_sources_of_one_commit_and_of_others_are_their_own(form: type[BinaryForm]) -> None:
    table = table_of("text")
    kind = made(form, table)
    for lsn in [*range(1, 70), 1, 2]:
        for number in (1, 2):
            source = Source(lsn, number, lsn + 1, lsn * 10, b"", 3, "true" if lsn % 2 else "false")
            data = kind.value("t", None, None, source, None, NOW_US + lsn)
            found = read(kind, kind.value_schema, data)
            assert found["source"]["sequence"] == f'["{lsn}","{number}"]'
            assert found["source"]["lsn"] == lsn
            assert found["source"]["ts_us"] == lsn * 10
            assert found["source"]["request_id"] is None
            assert found["source"]["snapshot"] == ("true" if lsn % 2 else "false")
            assert found["ts_us"] == NOW_US + lsn


@pytest.mark.parametrize("form", [AvroForm, ProtobufForm])
@pytest.mark.parametrize("change", SOURCE._asdict())
def test_a_source_that_differs_in_one_thing_is_its_own(form: type[BinaryForm], change: str) -> None:
    kind = made(form, table_of("text"))
    others: dict[str, Any] = {"request_id": request_id(2, b"0123456789"), "snapshot": "last"}
    other = SOURCE._replace(**{change: others.get(change, 7)})
    for source in (SOURCE, other, SOURCE):
        found = read(kind, kind.value_schema, kind.value("r", None, None, source, None, NOW_US))
        shown, lsn = found["source"], source.lsn
        assert shown["sequence"] == f'["{lsn}","{source.number}"]'
        assert (shown["lsn"], shown["position"], shown["ts_us"]) == (lsn, *source[2:4])
        assert shown["request_id"] == format_request_id(source.request_id)
        assert (shown["schema_version"], shown["snapshot"]) == source[5:]


def test_schemas_are_the_same_for_versions_that_show_the_same() -> None:
    table = table_of("text", "numeric(5,2)")
    for form in (AvroForm, ProtobufForm):
        newer = replace(table, version=4)
        assert made(form, table).value_schema == made(form, newer).value_schema
        assert made(form, table).key_schema == made(form, newer).key_schema


def test_avro_has_debeziums_logical_types() -> None:
    table = table_of("date", "uuid", "numeric(5,2)", "smallint", "numeric")
    schema = json.loads(made(AvroForm, table, Decimals.PRECISE).value_schema)
    assert (schema["name"], schema["namespace"]) == ("Envelope", "demo.feed.public.all")
    (row,) = [each["type"][1] for each in schema["fields"] if each["name"] == "before"]
    kinds = {field["name"]: field["type"] for field in row["fields"]}
    assert kinds["id"] == "long"
    date = {"type": "int", "connect.version": 1, "connect.name": "io.debezium.time.Date"}
    assert kinds["c2"] == ["null", date]
    assert kinds["c3"][1]["connect.name"] == "io.debezium.data.Uuid"
    assert kinds["c4"][1] == {
        "type": "bytes",
        "scale": 2,
        "precision": 5,
        "connect.version": 1,
        "connect.parameters": {"scale": "2", "connect.decimal.precision": "5"},
        "connect.name": "org.apache.kafka.connect.data.Decimal",
        "logicalType": "decimal",
    }
    assert kinds["c5"] == ["null", {"type": "int", "connect.type": "int16"}]
    assert kinds["c6"][1]["name"] == "VariableScaleDecimal"


def test_a_column_that_comes_with_a_default_is_read_from_old_data() -> None:
    old = table_of("text")
    added = Column(9, "n", parse_type("integer"), nullable=False, default=5)
    newer = replace(old, version=4, columns=(*old.columns, added))
    kind, next_kind = made(AvroForm, old), made(AvroForm, newer)
    parts = kind.row((1,), stored(old, "x"))
    data = kind.value("c", None, parts, SOURCE, None, NOW_US)
    written, reader = json.loads(kind.value_schema), json.loads(next_kind.value_schema)
    found: Any = fastavro.schemaless_reader(io.BytesIO(data), written, reader)
    assert found["after"] == {"id": 1, "c2": "x", "n": 5}


def test_fields_of_protobuf_have_their_columns_numbers() -> None:
    columns = (
        Column(1, "id", parse_type("bigint"), False),
        Column(18_999, "last", parse_type("text")),
        Column(19_000, "next", parse_type("text")),
        Column(20_000, "more", parse_type("text")),
    )
    kind = made(ProtobufForm, Descriptor(7, "t", 1, columns, (1,)))
    fields = protobuf_class(kind.value_schema).DESCRIPTOR.nested_types_by_name["Value"].fields
    numbers = [(field.name, field.number) for field in fields]
    assert numbers == [("id", 1), ("last", 18_999), ("next", 20_000), ("more", 21_000)]
    assert {field_number(n) for n in range(1, 40_000)}.isdisjoint(range(19_000, 20_000))


def test_a_schemas_number_stands_before_the_bytes() -> None:
    table = table_of("text")
    assert made(AvroForm, table).head(258) == b"\x00\x00\x00\x01\x02"
    assert made(ProtobufForm, table).head(258) == b"\x00\x00\x00\x01\x02\x00"


@given(st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_are_as_the_libraries_have_them(number: int) -> None:
    target = io.BytesIO()
    fastavro.schemaless_writer(target, "long", number)
    assert zigzag(number) == target.getvalue()
    table = table_of("bigint")
    kind = made(ProtobufForm, table)
    found = protobuf_class(kind.key_schema)(id=number).SerializeToString()
    assert found in (b"\x08" + two_complement(number), b""), "Google's leaves out a zero"
    if number >= 0:
        assert varint(number) == two_complement(number)
