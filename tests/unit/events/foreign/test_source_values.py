"""Goal: what another system says of a row becomes the values that the column has for it.

Method: each type of column is told by our own feed, in every form and unit that Debezium has for
it, and read back; what others say otherwise stands in a table.
"""

from __future__ import annotations

import io
import json
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.debezium.binary_form import AvroForm
from leasehold.events.debezium.column_types import Decimals
from leasehold.events.debezium.envelope import JsonForm
from leasehold.events.debezium.table_form import Source, TableForm
from leasehold.events.foreign import avro_decoding
from leasehold.events.foreign.row_events import Decoded, Layout, read_event, without_schema
from leasehold.events.foreign.row_operations import Rules, operations_of
from leasehold.events.foreign.source_types import UNKNOWN, SourceType
from leasehold.events.foreign.source_values import Units, converter, is_left_out
from leasehold.model.errors import LeaseholdError, MalformedRequest, Refused
from leasehold.model.ids import request_id
from leasehold.model.records.events import RowImage
from leasehold.values.storage import to_storage
from leasehold.values.types import Type, array_of, parse_type

SOURCE: Final = Source(571, 2, 90, 1_559_033_904_863_250, request_id(1, b"0123456789"), 3)
VALUES: Final[dict[str, Any]] = {
    "smallint": -3,
    "integer": 2**31 - 1,
    "bigint": -(2**63),
    "boolean": True,
    "real": 0.1,
    "double precision": 2.5,
    "text": "Zürich \U0001f6eb",
    "varchar(9)": "",
    "char(4)": "ab",
    "bytea": b"\x00\xff",
    "date": "2024-02-29",
    "timestamp": "2024-02-29 12:00:00.000001",
    "timestamptz": "1969-12-31 23:59:59+00",
    "time": "23:59:59.5",
    "timetz": "12:30:00+00",
    "interval": "76:00:00.25",
    "uuid": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "json": '{"a" : 1}',
    "jsonb": {"a": [1, None]},
    "numeric(5,2)": "-1.5",
    "numeric": "12.5",
    "inet": "10.0.0.1/8",
    "bigint[]": [1, None, -9],
    "text[]": [],
    "double precision[]": [0.5],
    "date[]": ["2024-02-29", None],
    "bytea[]": [b"\x00"],
}


def type_of(kind: str) -> Type:
    return array_of(parse_type(kind[:-2])) if kind.endswith("[]") else parse_type(kind)


def table_of(*kinds: str, nullable: bool = True) -> Descriptor:
    columns = tuple(
        Column(n, f"c{n}", type_of(kind), nullable=nullable) for n, kind in enumerate(kinds, 2)
    )
    return Descriptor(7, "all", 3, (Column(1, "id", parse_type("bigint"), False), *columns), (1,))


def form_of(kind: type[Any], table: Descriptor, decimals: Decimals, *more: Any) -> Any:
    return kind(
        *("demo", "demo.feed.public.all", "public.all"),
        *(table, tuple(table.by_name.values()), decimals, "1.2.3", *more),
    )


def decoded(form: TableForm, data: bytes) -> Decoded:
    if not isinstance(form, AvroForm):
        return without_schema(json.loads(data))
    schema = avro_decoding.read_schema(form.value_schema)
    return Decoded(avro_decoding.decode(schema, data), schema.fields, schema.records)


def stored_again(table: Descriptor, values: Any) -> dict[int, Any]:
    return {
        table.by_name[name].element_id: to_storage(table.by_name[name].type)(value)
        for name, value in values.items()
    }


FORMS: Final = ((JsonForm, (False,)), (JsonForm, (True,)), (AvroForm, ()))


@pytest.mark.parametrize("decimals", Decimals)
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(("kind", "more"), FORMS)
def test_each_type_comes_back_from_a_feed(
    kind: type[Any], more: tuple[Any, ...], nullable: bool, decimals: Decimals
) -> None:
    values = dict(VALUES)
    if more == (False,) and decimals is Decimals.PRECISE:
        # Base64 in plain JSON tells nobody that it is a decimal: below.
        del values["numeric"], values["numeric(5,2)"]
    table = table_of(*values, nullable=nullable)
    stored = {
        column.element_id: to_storage(column.type)(value)
        for column, value in zip(table.columns[1:], values.values(), strict=True)
    }
    form = form_of(kind, table, decimals, *more)
    row = form.row((1,), RowImage(7, (1,), {}, 570, 3, 5, stored))
    event = read_event(
        decoded(form, form.value("c", None, row, SOURCE, None, 5)), None, Layout.DEBEZIUM
    )
    assert event is not None
    (operation,) = operations_of(event, table, Rules())
    assert operation.key == {"id": 1}
    assert stored_again(table, operation.values) == stored


def test_plain_json_of_precise_decimals_is_refused_and_not_guessed() -> None:
    table = table_of("numeric(5,2)")
    form = form_of(JsonForm, table, Decimals.PRECISE, False)
    row = form.row((1,), RowImage(7, (1,), {}, 570, 3, 5, {2: to_storage(type_of("numeric"))("7")}))
    event = read_event(
        decoded(form, form.value("c", None, row, SOURCE, None, 5)), None, Layout.DEBEZIUM
    )
    assert event is not None
    with pytest.raises(Refused, match="c2"):
        operations_of(event, table, Rules())


AT: Final = datetime(2024, 2, 29, 12, 30, 0, 123_456, UTC)
MICROS: Final = (AT - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
SAID: Final[tuple[tuple[SourceType, str, Any, Any], ...]] = (
    (SourceType("int32", "org.apache.kafka.connect.data.Date"), "date", 0, "1970-01-01"),
    (SourceType("int32", "io.debezium.time.Date"), "timestamp", -1, "1969-12-31T00:00:00"),
    (
        SourceType("int64", "io.debezium.time.Timestamp"),
        "timestamp",
        1_500,
        "1970-01-01 00:00:01.5",
    ),
    (SourceType("int64", "io.debezium.time.NanoTimestamp"), "timestamp", MICROS * 1_000, AT),
    (SourceType("int64", "io.debezium.time.MicroTimestamp"), "timestamptz", MICROS, AT),
    (SourceType("int64", "io.debezium.time.MicroTimestamp"), "date", MICROS, "2024-02-29"),
    (SourceType("int64", "io.debezium.time.MicroTimestamp"), "bigint", MICROS, MICROS),
    (
        SourceType("string", "io.debezium.time.ZonedTimestamp"),
        "timestamptz",
        "2024-02-29T12:30:00.123456Z",
        AT,
    ),
    (SourceType("int32", "io.debezium.time.Time"), "time", 1_500, "00:00:01.5"),
    (SourceType("int64", "io.debezium.time.NanoTime"), "time", 1_500_000_000, "00:00:01.5"),
    (SourceType("string", "io.debezium.time.ZonedTime"), "timetz", "12:30:00Z", "12:30:00+00"),
    (SourceType("int64", "io.debezium.time.MicroDuration"), "interval", -1_500_000, "-1.5 seconds"),
    (
        SourceType("string", "io.debezium.time.Interval"),
        "interval",
        "P1Y2M3DT4H5M6S",
        "1 year 2 mons 3 days 04:05:06",
    ),
    (SourceType("int32", "io.debezium.time.Year"), "integer", 2024, 2024),
    (SourceType("int16"), "boolean", 1, True),
    (SourceType("string"), "bigint", "9223372036854775807", 2**63 - 1),
    (SourceType("double"), "numeric", 0.1, "0.1"),
    (SourceType("string"), "numeric", "0.12345678901234567890123", "0.12345678901234567890123"),
    (UNKNOWN, "numeric", Decimal("0.12345678901234567890123"), "0.12345678901234567890123"),
    (UNKNOWN, "double precision", "1e3", 1000.0),
    (UNKNOWN, "bytea", "AAE=", b"\x00\x01"),
    (UNKNOWN, "bytea", "\\x0001", b"\x00\x01"),
    (UNKNOWN, "jsonb", {"b": 1}, '{"b": 1}'),
    (UNKNOWN, "jsonb", [1], "[1]"),
    (UNKNOWN, "jsonb", True, "true"),
    (UNKNOWN, "jsonb", '{"b":1}', '{"b": 1}'),
    (UNKNOWN, "date", 19_782, "2024-02-29"),
    (UNKNOWN, "date", "2024-02-29", "2024-02-29"),
    (UNKNOWN, "timestamp", "2024-02-29T12:30:00.123456Z", AT),
    (SourceType("bytes", "org.apache.kafka.connect.data.Decimal", 2), "integer", b"\x02\x58", 6),
    (SourceType("bytes", "org.apache.kafka.connect.data.Decimal", -2), "bigint", b"\x06", 600),
    (SourceType("bytes", "org.apache.kafka.connect.data.Decimal", 0), "numeric", b"", "0"),
)


@pytest.mark.parametrize(("source", "kind", "said", "wanted"), SAID)
def test_what_others_say_becomes_what_the_column_has(
    source: SourceType, kind: str, said: Any, wanted: Any
) -> None:
    target = parse_type(kind)
    found = to_storage(target)(converter(source, target, Units.MICROS)(said))
    assert found == to_storage(target)(wanted)


@pytest.mark.parametrize(
    ("units", "value"), [("micros", 10**6), ("millis", 10**3), ("nanos", 10**9)]
)
def test_numbers_without_a_schema_have_the_unit_of_the_settings(units: str, value: int) -> None:
    for kind, wanted in (("timestamp", "1970-01-01 00:00:01"), ("time", "00:00:01")):
        target = parse_type(kind)
        found = converter(UNKNOWN, target, Units(units))(value)
        assert to_storage(target)(found) == to_storage(target)(wanted)


@pytest.mark.parametrize(
    ("source", "kind", "said"),
    [
        (UNKNOWN, "date", 10**12),
        (UNKNOWN, "timestamp", 10**30),
        (UNKNOWN, "time", -1),
        (UNKNOWN, "bytea", "no base64!"),
        (UNKNOWN, "text", {"a": 1}),
        (UNKNOWN, "integer", "12a"),
        (UNKNOWN, "integer", 2.5),
        (UNKNOWN, "boolean", 2),
        (UNKNOWN, "jsonb", "{"),
        (UNKNOWN, "numeric", "x"),
        (SourceType("struct", "io.debezium.data.VariableScaleDecimal"), "numeric", {"scale": 1}),
        (
            SourceType("bytes", "org.apache.kafka.connect.data.Decimal", 2, None, True),
            "numeric",
            "?",
        ),
        (
            SourceType("bytes", "org.apache.kafka.connect.data.Decimal", 0),
            "numeric",
            b"\x7f" * 200_000,
        ),
    ],
)
def test_what_no_column_can_have_is_refused(source: SourceType, kind: str, said: Any) -> None:
    target = parse_type(kind)
    with pytest.raises(Refused):
        to_storage(target)(converter(source, target, Units.MICROS)(said))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from(sorted(VALUES)),
    st.sampled_from(
        [
            "",
            "io.debezium.time.Date",
            "io.debezium.time.MicroTime",
            "io.debezium.time.NanoTimestamp",
            "io.debezium.time.MicroDuration",
            "org.apache.kafka.connect.data.Decimal",
            "io.debezium.data.VariableScaleDecimal",
        ]
    ),
    st.sampled_from(["any", "int64", "string", "bytes", "struct"]),
)
def test_no_value_ends_in_anything_but_a_refusal(value: Any, kind: str, name: str, of: str) -> None:
    target = type_of(kind)
    for in_json in (False, True):
        convert = converter(SourceType(of, name, 3, None, in_json), target, Units.MICROS)
        if value is not None:
            try:
                to_storage(target)(convert(value))
            except LeaseholdError:
                continue


def test_a_value_that_its_source_did_not_send_is_known() -> None:
    name = "__debezium_unavailable_value"
    assert all(
        map(is_left_out, (name, name.encode(), [name], "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="))
    )
    assert not any(map(is_left_out, ("", "a", b"", [], [1, 2], None, 5)))


# ---------------------------------------------------------------- Avro

AVRO: Final[Any] = {
    "type": "record",
    "name": "R",
    "namespace": "a.b",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "l", "type": ["null", "long"], "default": None},
        {"name": "s", "type": {"type": "string", "connect.name": "io.debezium.data.Json"}},
        {
            "name": "d",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
        },
        {"name": "on", "type": {"type": "int", "logicalType": "date"}},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "f", "type": {"type": "fixed", "name": "F", "size": 3}},
        {"name": "a", "type": {"type": "array", "items": ["null", "double"]}},
        {"name": "m", "type": {"type": "map", "values": "boolean"}},
        {"name": "e2", "type": ["E", "float"]},
        {
            "name": "inner",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "I",
                    "fields": [{"name": "x_x20_y", "type": "long", "leasehold.column": "x y"}],
                },
            ],
        },
        {"name": "again", "type": ["null", "I"]},
    ],
}
ROW: Final[Any] = {
    "i": -5, "l": 2**62, "s": "{}", "d": Decimal("-1.500"), "on": 3, "e": "B", "f": b"abc",
    "a": [1.5, None], "m": {"k": True}, "e2": "A", "inner": {"x_x20_y": 7}, "again": None,
}  # fmt: skip


def written(row: Any, schema: Any = AVRO) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), row)
    return file.getvalue()


def test_avro_is_read_as_fastavro_writes_it() -> None:
    schema = avro_decoding.read_schema(json.dumps(AVRO))
    found = avro_decoding.decode(schema, written(ROW))
    assert found == {**ROW, "d": (-1500).to_bytes(2, "big", signed=True), "inner": {"x y": 7}}
    assert schema.fields["d"].name == "org.apache.kafka.connect.data.Decimal"
    assert schema.fields["d"].scale == 3
    assert schema.fields["on"].name == "io.debezium.time.Date"
    assert schema.fields["s"].name == "io.debezium.data.Json"
    assert schema.fields["l"].kind == "int64"
    assert schema.records["inner"].keys() == {"x y"} == schema.records["again"].keys()


@pytest.mark.parametrize("cut", range(0, len(written(ROW)), 3))
def test_avro_that_ends_too_soon_or_too_late_is_malformed(cut: int) -> None:
    schema = avro_decoding.read_schema(json.dumps(AVRO))
    for data in (written(ROW)[:cut], written(ROW) + b"\x00" * (cut + 1)):
        with pytest.raises(MalformedRequest):
            avro_decoding.decode(schema, data)


def test_avro_s_bombs_are_refused() -> None:
    nulls = avro_decoding.read_schema('{"type": "array", "items": "null"}')
    with pytest.raises(MalformedRequest, match="items"):
        avro_decoding.decode(nulls, b"\xfe\xff\xff\xff\xff\xff\xff\x7f")
    text = avro_decoding.read_schema('"string"')
    for data in (b"\xfe\xff\xff\xff\x0f", b"\x01", b"\x02\xff", b"\xff" * 11):
        with pytest.raises(MalformedRequest):
            avro_decoding.decode(text, data)
    linked = '{"type":"record","name":"L","fields":[{"name":"n","type":["null","L"]}]}'
    with pytest.raises(MalformedRequest, match="deep"):
        avro_decoding.decode(avro_decoding.read_schema(linked), b"\x02" * 100_000)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "5", "null", "[]x", '"unknown"', '{"type":"record"}', '{"type":"nothing"}',
        '{"type":"record","name":"R","fields":[{"name":"a"}]}',
        '{"type":"fixed","name":"F","size":"x"}',
        "[" * 5_000, '{"type":' * 200 + '"int"' + "}" * 200,
        '{"type":"enum","name":"E"}', '{"type":"array"}',
    ],
)  # fmt: skip
def test_what_is_no_schema_of_avro_is_malformed(text: str) -> None:
    with pytest.raises(MalformedRequest):
        avro_decoding.read_schema(text)


def test_random_bytes_are_read_or_malformed() -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    source = random.Random(seed)
    schema = avro_decoding.read_schema(json.dumps(AVRO))
    good = written(ROW)
    for _ in range(2_000):
        data = bytearray(good)
        for _ in range(source.randrange(1, 4)):
            data[source.randrange(len(data))] = source.randrange(256)
        try:
            avro_decoding.decode(schema, bytes(data))
        except MalformedRequest:
            continue
