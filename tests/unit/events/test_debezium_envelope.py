"""Goal: a feed's messages are what Debezium's documentation says of its connector for PostgreSQL.

Method: expectations written by hand: the envelope, the key, Connect's schema of both, and of each
type one value in each mode.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.states import State
from leasehold.events.debezium.column_types import Decimals, Style, form_of
from leasehold.events.debezium.envelope import JsonForm, begin_message, end_message
from leasehold.events.debezium.table_form import MESSAGE_BYTES_MAX, Block, Source
from leasehold.model.ids import format_request_id, request_id
from leasehold.model.records.events import RowImage, RowLeftOut
from leasehold.values.storage import to_storage
from leasehold.values.types import Type, parse_type

CUSTOMERS = Descriptor(
    7,
    "customers",
    3,
    (
        Column(1, "id", Type("integer"), False),
        Column(2, "first_name", Type("text"), False),
        Column(3, "email", Type("varchar", 40)),
        Column(4, "coming", Type("text"), state=State.WRITE_ONLY),
    ),
    (1,),
)
ASKED = request_id(1, b"0123456789")
SOURCE = Source(571, 2, 90, 1_559_033_904_863_250, ASKED, 3)


def form(table: Descriptor = CUSTOMERS, **fields: Any) -> JsonForm:
    topic = f"demo.feed.public.{table.name}"
    columns = tuple(table.by_name.values())
    made = JsonForm("demo", topic, f"public.{table.name}", table, columns, Decimals.STRING, "1.2.3")
    return replace(made, **fields)


def image(values: dict[int, Any], table: Descriptor = CUSTOMERS) -> RowImage:
    return RowImage(table.table_id, (1,), {}, 570, table.version, 5, values)


ANNE = image({1: 1, 2: "Anne", 3: None, 4: "hidden"})


def test_a_value_is_the_envelope() -> None:
    table = form()
    before, after = table.row((1,), ANNE), table.row((1,), image({2: "Anne Marie", 3: "a@b"}))
    value = table.value("u", before, after, SOURCE, None, 1_559_033_904_900_000)
    assert json.loads(value) == {
        "before": {"id": 1, "first_name": "Anne", "email": None},
        "after": {"id": 1, "first_name": "Anne Marie", "email": "a@b"},
        "source": {
            "version": "1.2.3",
            "connector": "leasehold",
            "name": "demo.feed",
            "ts_ms": 1_559_033_904_863,
            "snapshot": "false",
            "db": "demo",
            "sequence": '["571","2"]',
            "ts_us": 1_559_033_904_863_250,
            "ts_ns": 1_559_033_904_863_250_000,
            "schema": "public",
            "table": "customers",
            "txId": 571,
            "lsn": 571,
            "xmin": None,
            "position": 90,
            "request_id": format_request_id(ASKED),
            "schema_version": 3,
        },
        "transaction": None,
        "op": "u",
        "ts_ms": 1_559_033_904_900,
        "ts_us": 1_559_033_904_900_000,
        "ts_ns": 1_559_033_904_900_000_000,
    }
    assert table.key((1,)) == b'{"id":1}'


@given(
    st.text(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.booleans(),
)
def test_rows_and_keys_are_what_pythons_json_writes(
    text: str, number: int, ratio: float, ok: bool
) -> None:
    """Written column by column, they are the very bytes that an encoder of dictionaries gives."""
    kinds = ("text", "bigint", "double precision", "boolean", "text[]", "integer")
    columns = tuple(
        Column(n, f'c"{n}', Type(kind) if kind.endswith("[]") else parse_type(kind), n > 2)
        for n, kind in enumerate(kinds, 1)
    )
    made = form(Descriptor(7, "t", 1, columns, (1, 2)))
    values = {
        3: to_storage(columns[2].type)(ratio),
        4: to_storage(columns[3].type)(ok),
        5: json.dumps([text, None]),
    }
    row = made.row((text, number), RowImage(7, (text, number), {}, 1, 1, 5, values))
    assert row is not None

    def dumped(value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    assert made.key((text, number)) == dumped({'c"1': text, 'c"2': number})
    value = made.value("u", row, row, SOURCE, None, 5)
    assert value.startswith(b'{"before":%b,"after":%b,"source":' % (dumped(row), dumped(row)))


def test_names_that_json_has_to_escape_and_commits_without_a_request() -> None:
    table = replace(CUSTOMERS, name='a"b\\c', columns=(Column(1, 'i"d', Type("integer"), False),))
    made = form(table)
    value = made.value("c", None, made.row((1,), ANNE), SOURCE._replace(request_id=b""), None, 5)
    body = json.loads(value)
    assert body["after"] == {'i"d': 1}
    assert (body["source"]["table"], body["source"]["request_id"]) == ('a"b\\c', None)


def test_a_message_with_its_schema() -> None:
    table = form(schemas=True)
    assert json.loads(table.key((1,)) or b"") == {
        "schema": {
            "type": "struct",
            "fields": [{"type": "int32", "optional": False, "field": "id"}],
            "optional": False,
            "name": "demo.feed.public.customers.Key",
        },
        "payload": {"id": 1},
    }
    block = Block("571:90", 1, 1)
    body = json.loads(table.value("c", None, table.row((1,), ANNE), SOURCE, block, 5))
    schema, payload = body["schema"], body["payload"]
    assert payload["transaction"] == {
        "id": "571:90",
        "total_order": 1,
        "data_collection_order": 1,
    }
    assert (schema["type"], schema["optional"]) == ("struct", False)
    assert schema["name"] == "demo.feed.public.customers.Envelope"
    fields = {each["field"]: each for each in schema["fields"]}
    assert list(fields) == [
        *("before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns"),
    ]
    row = {
        "type": "struct",
        "fields": [
            {"type": "int32", "optional": False, "field": "id"},
            {"type": "string", "optional": False, "field": "first_name"},
            {"type": "string", "optional": True, "field": "email"},
        ],
        "optional": True,
        "name": "demo.feed.public.customers.Value",
    }
    assert fields["before"] == {**row, "field": "before"}
    assert fields["after"] == {**row, "field": "after"}
    assert fields["op"] == {"type": "string", "optional": False, "field": "op"}
    assert fields["transaction"]["name"] == "event.block"
    assert fits(schema, payload) == []


def fits(schema: dict[str, Any], value: Any, where: str = "") -> list[str]:
    """What Connect's JSON converter would refuse of a value."""
    if value is None:
        return [] if schema["optional"] else [f"{where}: null"]
    kinds = {
        "struct": dict,
        "string": str,
        "int16": int,
        "int32": int,
        "int64": int,
        "boolean": bool,
        "double": (float, int, str),
        "bytes": str,
        "array": list,
    }
    if not isinstance(value, kinds[schema["type"]]):  # type: ignore[arg-type]
        return [f"{where}: {value!r} is no {schema['type']}"]
    if schema["type"] == "array":
        return [w for each in value for w in fits(schema["items"], each, f"{where}[]")]
    if schema["type"] != "struct":
        return []
    names = [each["field"] for each in schema["fields"]]
    wrong = [f"{where}.{name}: not in the schema" for name in value if name not in names]
    for each in schema["fields"]:
        wrong += fits(each, value.get(each["field"]), f"{where}.{each['field']}")
    return wrong


DAY_US = 86_400_000_000
LOGICAL = {"version": 1}
VARIABLE = {
    "type": "struct",
    "name": "io.debezium.data.VariableScaleDecimal",
    "version": 1,
    "fields": [
        {"type": "int32", "optional": False, "field": "scale"},
        {"type": "bytes", "optional": False, "field": "value"},
    ],
}
CONNECT_DECIMAL = {
    "type": "bytes",
    "name": "org.apache.kafka.connect.data.Decimal",
    "version": 1,
    "parameters": {"scale": "2", "connect.decimal.precision": "5"},
}


@pytest.mark.parametrize(
    ("kind", "outside", "schema", "shown"),
    [
        ("smallint", 7, {"type": "int16"}, 7),
        ("integer", -7, {"type": "int32"}, -7),
        ("bigint", 1 << 62, {"type": "int64"}, 1 << 62),
        ("boolean", True, {"type": "boolean"}, True),
        ("double precision", 1.5, {"type": "double"}, 1.5),
        ("double precision", "NaN", {"type": "double"}, "NaN"),
        ("double precision", "-Infinity", {"type": "double"}, "-Infinity"),
        ("text", 'a"ü', {"type": "string"}, 'a"ü'),
        ("varchar(5)", "ab", {"type": "string"}, "ab"),
        ("char(4)", "ab", {"type": "string"}, "ab  "),
        ("bytea", "\\x00ff", {"type": "bytes"}, "AP8="),
        ("date", "1970-01-11", {"type": "int32", "name": "io.debezium.time.Date", **LOGICAL}, 10),
        (
            "timestamp",
            "1970-01-02T00:00:00.000001",
            {"type": "int64", "name": "io.debezium.time.MicroTimestamp", **LOGICAL},
            DAY_US + 1,
        ),
        (
            "timestamptz",
            "2020-01-01T02:00:00+02:00",
            {"type": "string", "name": "io.debezium.time.ZonedTimestamp", **LOGICAL},
            "2020-01-01T00:00:00.000000Z",
        ),
        (
            "uuid",
            "01234567-89AB-cdef-0123-456789abcdef",
            {"type": "string", "name": "io.debezium.data.Uuid", **LOGICAL},
            "01234567-89ab-cdef-0123-456789abcdef",
        ),
        (
            "jsonb",
            {"a": [1, None]},
            {"type": "string", "name": "io.debezium.data.Json", **LOGICAL},
            '{"a": [1, null]}',
        ),
        ("numeric(5,2)", "-1.5", {"type": "string"}, "-1.50"),
        ("numeric", "NaN", {"type": "string"}, "NaN"),
    ],
)
def test_each_type_has_debeziums_form(
    kind: str, outside: Any, schema: dict[str, Any], shown: Any
) -> None:
    made = parse_type(kind)
    found = form_of(made, Decimals.STRING)
    value = to_storage(made)(outside)
    assert dict(found.schema) == schema
    assert (value if found.convert is None else found.convert(value)) == shown
    assert fits({**schema, "optional": False}, shown) == []


@pytest.mark.parametrize(
    ("mode", "kind", "outside", "schema", "shown"),
    [
        (Decimals.DOUBLE, "numeric(5,2)", "-1.5", {"type": "double"}, -1.5),
        (Decimals.DOUBLE, "numeric", "NaN", {"type": "double"}, "NaN"),
        # BigInteger -150 and 12345 in two's complement
        (Decimals.PRECISE, "numeric(5,2)", "-1.5", CONNECT_DECIMAL, "/2o="),
        (Decimals.PRECISE, "numeric(5,2)", "123.45", CONNECT_DECIMAL, "MDk="),
        (Decimals.PRECISE, "numeric(5,2)", "0", CONNECT_DECIMAL, "AA=="),
        (Decimals.PRECISE, "numeric(5,2)", "1.28", CONNECT_DECIMAL, "AIA="),
        (Decimals.PRECISE, "numeric(5,2)", "-1.28", CONNECT_DECIMAL, "gA=="),
        (Decimals.PRECISE, "numeric", "12.5", VARIABLE, {"scale": 1, "value": "fQ=="}),
        (Decimals.PRECISE, "numeric", "NaN", VARIABLE, None),
    ],
)
def test_numbers_in_the_other_modes(
    mode: Decimals, kind: str, outside: Any, schema: dict[str, Any], shown: Any
) -> None:
    made = parse_type(kind)
    found = form_of(made, mode)
    assert dict(found.schema) == schema
    assert found.convert is not None
    assert found.convert(to_storage(made)(outside)) == shown


@pytest.mark.parametrize(
    ("kind", "mode"), [("double precision", Decimals.STRING), ("numeric", Decimals.DOUBLE)]
)
def test_beside_a_schema_what_is_no_number_is_null(kind: str, mode: Decimals) -> None:
    """Kafka Connect's JsonConverter takes the text NaN for 0.0."""
    made = parse_type(kind)
    found = form_of(made, mode, Style.JSON_WITH_SCHEMA)
    assert found.convert is not None
    assert found.may_lack
    assert found.convert(to_storage(made)("NaN")) is None
    assert found.convert(to_storage(made)(1.5)) == 1.5


def test_an_array_is_one_of_its_elements() -> None:
    found = form_of(Type("bigint[]"), Decimals.STRING)
    assert found.schema == {"type": "array", "items": {"type": "int64", "optional": True}}
    dates = form_of(Type("timestamptz[]"), Decimals.STRING)
    assert dates.convert is not None
    assert dates.convert("[0, null]") == ["1970-01-01T00:00:00.000000Z", None]


def test_a_table_without_a_primary_key_has_no_keys() -> None:
    columns = (Column(1, "n", Type("integer")), Column(2, "", Type("bigint"), hidden=True))
    table = form(Descriptor(8, "bare", 1, columns, (2,)))
    assert table.key((5,)) is None
    assert table.row((5,), RowImage(8, (5,), {}, 1, 1, 1, {1: 3, 2: 5})) == {"n": 3}


def test_of_a_row_that_was_left_out_the_key_is_told() -> None:
    left_out = RowLeftOut(7, (1,), {}, 570, 3, 5, 9_000_000)
    assert form().row((1,), left_out) == {"id": 1, "first_name": None, "email": None}


@pytest.mark.parametrize("schemas", [False, True])
def test_what_no_message_has_room_for_gives_way(schemas: bool) -> None:
    """First long values of the row before, then of the row after; short ones stay."""
    table = form(schemas=schemas)
    long = table.row((1,), image({2: "x" * 100_000, 3: "short"}))
    one = table.value("u", long, long, SOURCE, None, 5, 150_000)
    body = json.loads(one)["payload"] if schemas else json.loads(one)
    assert len(one) <= 150_000
    assert body["before"] == {**(long or {}), "first_name": "__debezium_unavailable_value"}
    assert body["after"] == long
    two = json.loads(table.value("u", long, long, SOURCE, None, 5, 90_000))
    assert (two["payload"] if schemas else two)["after"] == body["before"]


def test_the_widest_row_fits_a_message() -> None:
    """1,000 columns with names and values as long as they may be."""
    columns = tuple(Column(n, f"{n:0>60}", Type("text")) for n in range(2, 1_001))
    table = Descriptor(7, "wide", 1, (Column(1, "id", Type("integer"), False), *columns), (1,))
    made = form(table, schemas=True)
    row = made.row((1,), image(dict.fromkeys(range(2, 1001), "\x01" * 30000), table))
    assert len(made.value("u", row, row, SOURCE, None, 5)) <= MESSAGE_BYTES_MAX


def test_a_transaction_has_a_begin_and_an_end() -> None:
    key, value = begin_message("571:90", 5_000)
    assert json.loads(key) == {"id": "571:90"}
    assert json.loads(value) == {
        "status": "BEGIN",
        "id": "571:90",
        "event_count": None,
        "data_collections": None,
        "ts_ms": 5,
    }
    _, value = end_message("571:90", 5_000, {"public.a": 2, "public.b": 1})
    assert json.loads(value) == {
        "status": "END",
        "id": "571:90",
        "event_count": 3,
        "data_collections": [
            {"data_collection": "public.a", "event_count": 2},
            {"data_collection": "public.b", "event_count": 1},
        ],
        "ts_ms": 5,
    }
