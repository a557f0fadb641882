"""Goal: a stranger's bytes become a request or a MalformedRequest that names the field.

Method: the public forms of both content types, one broken field at a time, and random bytes.
"""

from __future__ import annotations

import contextlib
import json
import tracemalloc
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from unittest.mock import patch
from uuid import UUID

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.adapters.codec import request_bytes
from leasehold.adapters.codec.request_bytes import (
    JSON,
    MESSAGE_PACK,
    MESSAGE_PACK_ZLIB,
    OPERATIONS_MAX,
    REQUEST_BYTES_MAX,
    SLICE_OPERATIONS,
)
from leasehold.adapters.codec.request_decoding import (
    SQL_BYTES_MAX,
    decode_request,
    decode_request_in_slices,
)
from leasehold.adapters.codec.request_encoding import ROWS_TOGETHER_MAX, encode_request
from leasehold.model.errors import MalformedRequest, RequestTooLarge
from leasehold.model.ids import format_request_id, request_id
from leasehold.model.records.log import CheckSlice
from leasehold.model.records.notifications import (
    NOTIFICATIONS_BYTES_MAX,
    NOTIFICATIONS_MAX,
    Notification,
    Notifications,
)
from leasehold.model.records.requests import (
    ANY_GENID,
    BarrierRequest,
    ChangeRequest,
    Expression,
    JobControl,
    LockFence,
    OnConflict,
    Operation,
    OperationKind,
)

TOLD = Notifications((Notification("c", "x"), Notification("d", "é")), "r1", -7)
ID = request_id(1_700_000_000_000, b"0123456789")
ID_TEXT = format_request_id(ID)
UPDATE: dict[str, Any] = {
    "id": ID_TEXT,
    "table": "flights",
    "op": "update",
    "key": {"id": 5},
    "values": {"seats": {"expr": "seats - 1"}, "gate": "B7"},
    "expect": 77,
    "schema_version": 3,
    "on_conflict": "fail",
}
UPDATED = ChangeRequest(
    ID,
    (
        Operation(
            OperationKind.UPDATE,
            "flights",
            {"id": 5},
            {"seats": Expression("seats - 1"), "gate": "B7"},
            77,
            3,
        ),
    ),
    on_conflict=OnConflict.FAIL,
)


SOUGHT = Operation(OperationKind.INSERT, "t", (5,), {"a": 1}, None, 3, ("", "t_a"))


def said(**fields: Any) -> dict[str, Any]:
    return {**UPDATE, "values": {"a": {"expr": "a + $1", **fields}}}


def both(fields: Any) -> list[tuple[str, bytes]]:
    return [(JSON, json.dumps(fields).encode()), (MESSAGE_PACK, msgpack.packb(fields))]


def refused(fields: Any) -> str:
    """The words of the refusal, which are the same for both content types."""
    words = set()
    for content_type, data in both(fields):
        with pytest.raises(MalformedRequest) as caught:
            decode_request(content_type, data)
        words.add(caught.value.message)
    assert len(words) == 1, words
    return words.pop()


def read_in_slices(content_type: str, data: bytes) -> tuple[object, int]:
    """What comes of it, and how often it could be left."""
    slices, left = decode_request_in_slices(content_type, data), 0
    try:
        while True:
            next(slices)
            left += 1
    except StopIteration as end:
        return end.value, left
    except (MalformedRequest, RequestTooLarge) as error:
        return (type(error), error.message, error.detail), left


def read_as_a_whole(content_type: str, data: bytes) -> object:
    try:
        return decode_request(content_type, data)
    except (MalformedRequest, RequestTooLarge) as error:
        return type(error), error.message, error.detail


def test_a_large_request_is_parsed_in_slices_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """One parse of 250,000 operations took 0.6 s and more, in which no heartbeat went out."""
    row = {"table": "t", "op": "insert", "key": {"id": 1}, "values": {"n": "x" * 300}}
    fields = {"id": ID, "transaction": [row] * 4_000}
    whole: list[int] = []
    real = request_bytes._from_message_pack

    def noted(data: bytes) -> object:
        whole.append(len(data))
        return real(data)

    monkeypatch.setattr(request_bytes, "_from_message_pack", noted)
    data = msgpack.packb(fields)
    for form, body in ((MESSAGE_PACK, data), (MESSAGE_PACK_ZLIB, zlib.compress(data))):
        request, left = read_in_slices(form, body)
        assert isinstance(request, ChangeRequest)
        assert len(request.operations) == 4_000
        assert left > 2 * 4_000 // SLICE_OPERATIONS
    assert not whole


@given(st.data())
def test_in_slices_the_same_comes_of_a_request_or_the_same_is_said(data: st.DataObject) -> None:
    text = st.text(max_size=3)
    value = st.one_of(st.none(), st.integers(-5, 5), text, st.lists(st.integers(0, 3), max_size=3))
    row = st.fixed_dictionaries({"table": text, "op": st.sampled_from(["insert", "delete", "x"])})
    row_or_not = st.one_of(row, value, st.dictionaries(text, value, max_size=3))
    operations = st.one_of(st.lists(row_or_not, max_size=5), value)
    fields = data.draw(
        st.fixed_dictionaries(
            {"id": st.sampled_from([ID, ID_TEXT, 5])},
            optional={"transaction": operations, "sql": value, "table": value, "attempt": value},
        )
    )
    pairs = list(fields.items()) + data.draw(st.sampled_from([[], list(fields.items())[-1:]]))
    parts = [msgpack.packb(each) for pair in pairs for each in pair]
    packed = bytes([0x80 + len(pairs)]) + b"".join(parts)
    cut = data.draw(st.integers(0, len(packed)))
    how = data.draw(st.sampled_from(["whole", "whole", "cut", "longer", "other byte"]))
    if how == "cut":
        packed = packed[:cut]
    elif how == "longer":
        packed += b"\x01"
    elif how == "other byte" and cut < len(packed):
        packed = packed[:cut] + bytes([data.draw(st.integers(0, 255))]) + packed[cut + 1 :]
    with patch.object(request_bytes, "SLICED_ABOVE_BYTES", 0):
        assert read_in_slices(MESSAGE_PACK, packed)[0] == read_as_a_whole(MESSAGE_PACK, packed)


def test_one_row() -> None:
    for content_type, data in both(UPDATE):
        assert decode_request(content_type, data) == UPDATED


def test_several_rows() -> None:
    insert = {"table": "t", "op": "insert", "values": {"id": 1, "x": None}}
    delete = {"table": "t", "op": "delete", "key": [2, "b"]}
    fields = {"id": ID_TEXT, "transaction": [insert, delete], "used": {"u": 4}}
    for content_type, data in both(fields):
        assert decode_request(content_type, data) == ChangeRequest(
            ID,
            (
                Operation(OperationKind.INSERT, "t", {}, {"id": 1, "x": None}),
                Operation(OperationKind.DELETE, "t", (2, "b"), {}),
            ),
            used={"u": 4},
        )


def test_sql_and_rows() -> None:
    rows = [{"table": "t", "op": "insert", "values": {"id": n}} for n in (1, 2)]
    made = tuple(Operation(OperationKind.INSERT, "t", {}, {"id": n}) for n in (1, 2))
    for content_type, data in both({"id": ID_TEXT, "sql": "CREATE …", "transaction": rows}):
        assert decode_request(content_type, data) == ChangeRequest(ID, made, "CREATE …")
    for content_type, data in both({"id": ID_TEXT, "sql": "CREATE …", **rows[0]}):
        assert decode_request(content_type, data) == ChangeRequest(ID, made[:1], "CREATE …")


def test_sql_and_job_control() -> None:
    for content_type, data in both({"id": ID_TEXT, "sql": "ALTER TABLE t …", "reply_to": 3}):
        assert decode_request(content_type, data) == ChangeRequest(
            ID, sql="ALTER TABLE t …", reply_to=3
        )
    fields = {"id": ID_TEXT, "job": 7, "action": "set", "rows_per_second": 100}
    for content_type, data in both(fields):
        assert decode_request(content_type, data) == ChangeRequest(
            ID, control=JobControl(7, "set", {"rows_per_second": 100})
        )


def test_the_clock() -> None:
    wanted = ChangeRequest(ID, on_conflict=OnConflict.FAIL, reset_clock=True)
    fields = {"id": ID_TEXT, "clock": "reset", "on_conflict": "fail"}
    for content_type, data in (*both(fields), encode_request(wanted)):
        assert decode_request(content_type, data) == wanted


def test_an_upgrade_that_is_finalized() -> None:
    wanted = ChangeRequest(ID, on_conflict=OnConflict.FAIL, feature_level=9)
    fields = {"id": ID_TEXT, "finalize": 9, "on_conflict": "fail"}
    for content_type, data in (*both(fields), encode_request(wanted)):
        assert decode_request(content_type, data) == wanted
    for level in (0, 256, True, "9", None):
        for content_type, data in both({**fields, "finalize": level}):
            with pytest.raises(MalformedRequest, match="finalize"):
                decode_request(content_type, data)


def test_barriers() -> None:
    part = CheckSlice(4, (1, "a", None, b"x", 1.5), 100)
    for asked in (BarrierRequest(), BarrierRequest(-1), BarrierRequest(3, "r1", part)):
        wanted = ChangeRequest(ID, on_conflict=OnConflict.FAIL, barrier=asked)
        assert decode_request(*encode_request(wanted)) == wanted
    for fields in ([], [None]):
        for content_type, data in both({"id": ID_TEXT, "barrier": fields}):
            assert decode_request(content_type, data) == ChangeRequest(ID, barrier=BarrierRequest())


@pytest.mark.parametrize(
    "asked",
    [
        *(None, 5, "x", {}, [1, 2], [1, "", None, 9], [-2], [1 << 62], [True], [None, "r1"]),
        *([None, "", [0, [], 9]], [1, "", [0, []]], [1, "", [0, 5, 9]], [1, "", [-2, [], 9]]),
        *([1, "", [0, [{}], 9]], [1, "r\n"], [1, "r" * 257]),
    ],
)
def test_what_is_no_barrier(asked: Any) -> None:
    for content_type, data in both({"id": ID_TEXT, "barrier": asked}):
        with pytest.raises(MalformedRequest, match="barrier"):
            decode_request(content_type, data)


def test_without_a_content_type_a_request_is_json() -> None:
    assert decode_request("", json.dumps(UPDATE).encode()) == UPDATED
    data = json.dumps(UPDATE).encode()
    assert decode_request("application/JSON; charset=utf-8", data) == UPDATED


def test_an_id_in_bytes_is_taken_from_message_pack() -> None:
    assert decode_request(MESSAGE_PACK, msgpack.packb({**UPDATE, "id": ID})) == UPDATED


def without(name: str) -> dict[str, Any]:
    return {field: value for field, value in UPDATE.items() if field != name}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (without("id"), "'id' is missing"),
        ({**UPDATE, "id": 5}, "'id'"),
        ({**UPDATE, "id": "x"}, "'id'"),
        ({**UPDATE, "id": "123e4567-e89b-42d3-a456-426614174000"}, "version 7"),
        (without("table"), "nothing to do"),
        ({**UPDATE, "table": 7}, "'table': expected a name"),
        ({**UPDATE, "table": ""}, "'table': expected a name"),
        (without("op"), "'op': expected one of insert, update, delete, upsert, found nothing"),
        ({**UPDATE, "op": "merge"}, "'op'"),
        ({**UPDATE, "op": ["update"]}, "'op'"),
        (without("key"), "'key': expected an object of key column"),
        ({**UPDATE, "key": 5}, "'key'"),
        ({**UPDATE, "key": {}}, "'key'"),
        ({**UPDATE, "key": []}, "'key'"),
        ({**UPDATE, "key": {"id": [1]}}, "'key.id'"),
        ({**UPDATE, "key": [{"id": 1}]}, "'key'"),
        (without("values"), "'values'"),
        ({**UPDATE, "values": [1]}, "'values'"),
        ({**UPDATE, "values": {"a": {"expr": 1}}}, "'values.a'"),
        ({**UPDATE, "values": {"a": {"expr": "b", "c": 1}}}, "'values.a'"),
        ({**UPDATE, "values": {"a": {"expr": "b + $1", "args": [1]}}}, "'values.a'"),
        (said(args=1, types=[]), "'values.a.args': expected an array of at most 100 values"),
        (said(args=[1] * 101, types=["integer"] * 101), "'values.a.args'"),
        (said(args=[[1]], types=["integer"]), "'values.a.args'"),
        (said(args=[1], types=["integer", "text"]), "'values.a.types': expected an array of 1"),
        (said(args=[1], types=[4]), "'values.a.types'"),
        ({**UPDATE, "values": {"": 1}}, "'values'"),
        ({**UPDATE, "op": "delete"}, "a delete takes none"),
        ({**UPDATE, "expect": "77"}, "'expect': expected a whole number"),
        ({**UPDATE, "expect": True}, "'expect'"),
        ({**UPDATE, "expect": -1}, "'expect'"),
        ({**UPDATE, "schema_version": 0}, "'schema_version'"),
        ({**UPDATE, "arbiters": [""]}, "'arbiters': an insert, and nothing else"),
        ({**UPDATE, "op": "insert", "arbiters": "a"}, "'arbiters': expected an array of at most"),
        ({**UPDATE, "op": "insert", "arbiters": ["", 1]}, "'arbiters': expected a name"),
        ({**UPDATE, "on_conflict": "ignore"}, "'on_conflict': expected one of retry, fail"),
        ({**UPDATE, "on_conflict": None}, "'on_conflict'"),
        ({**UPDATE, "attempt": 0}, "'attempt'"),
        ({**UPDATE, "give_up": 1}, "'give_up': expected true or false, found the number 1"),
        ({**UPDATE, "reply_to": -2}, "'reply_to'"),
        ({**UPDATE, "used": [1]}, "'used'"),
        ({**UPDATE, "used": {"t": "1"}}, "'used.t'"),
        ({**UPDATE, "tabel": "t"}, "did you mean 'table'"),
        ({**UPDATE, "sql": 7}, "'sql': expected text"),
        ({**UPDATE, "sql": ""}, "'sql'"),
        ({"id": ID_TEXT, "sql": "x", "transaction": []}, "0 operations"),
        ({"id": ID_TEXT, "sql": "x", "job": 7}, "'job' is not a field of this request"),
        ({"id": ID_TEXT, "sql": "x", "op": "insert"}, "'op' is not a field of this request"),
        ({"id": ID_TEXT, "transactoin": []}, "did you mean 'transaction'"),
        ({"id": ID_TEXT, "transaction": {}}, "'transaction'"),
        ({"id": ID_TEXT, "transaction": []}, "0 operations"),
        ({"id": ID_TEXT, "transaction": [5]}, "'transaction[0]'"),
        ({"id": ID_TEXT, "transaction": [{"table": "t", "op": "x"}]}, "'transaction[0].op'"),
        ({"id": ID_TEXT, "transaction": [{"id": 1}]}, "'transaction[0].id'"),
        ({"id": ID_TEXT, "sql": ""}, "'sql'"),
        ({"id": ID_TEXT, "sql": None}, "'sql'"),
        (
            {"id": ID_TEXT, "job": 7},
            "'action': expected one of pause, resume, cancel, dismiss, set",
        ),
        ({"id": ID_TEXT, "job": "7", "action": "pause"}, "'job'"),
        ({"id": ID_TEXT, "clock": True}, "'clock': expected one of reset"),
        ({"id": ID_TEXT, "clock": "reset", "job": 7}, "'clock' is not a field"),
        ({"id": ID_TEXT, "job": 7, "action": "set"}, "'set' needs one of"),
        ({"id": ID_TEXT, "job": 7, "action": "pause", "chunk_rows": 1}, "only the action 'set'"),
        ([], "a request is an object"),
        (None, "a request is an object"),
    ],
)
def test_a_wrong_field_is_named(fields: Any, words: str) -> None:
    assert words in refused(fields)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"id": 1, "id": 2}', "'id' is given twice"),
        (b'{"values": {"a": 1, "a": 1}}', "'a' is given twice"),
        (b'{"a": NaN}', "NaN is not a JSON value"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON value"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "no JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b"\xef\xbb\xbf{}", "no JSON"),
        (b"", "no JSON"),
        (json.dumps({**UPDATE, "table": "\ud800"}).encode(), "surrogates"),
        (json.dumps({**UPDATE, "values": {"a": "\ud800"}}).encode(), "surrogates"),
        (json.dumps({**UPDATE, "values": {"\ud800": 1}}).encode(), "surrogates"),
        (json.dumps({**UPDATE, "key": {"\ud800": 1}}).encode(), "surrogates"),
        (json.dumps({**UPDATE, "values": {"a": {"expr": "\ud800"}}}).encode(), "surrogates"),
        (json.dumps({**UPDATE, "used": {"\ud800": 1}}).encode(), "surrogates"),
        (json.dumps({"id": ID_TEXT, "sql": "\ud800"}).encode(), "surrogates"),
        (json.dumps({"id": ID_TEXT, "\ud800": "x"}).encode(), "nothing to do|not a field"),
        (json.dumps({**UPDATE, "key": [1 << 64]}).encode(), "64 bits"),
        (json.dumps({**UPDATE, "values": {"a": {"b": ["\ud800"]}}}).encode(), "surrogate"),
        (json.dumps({**UPDATE, "values": {"a": {"expr": 5}}}).encode(), "plain value"),
    ],
)
def test_broken_json_is_refused_with_words(data: bytes, words: str) -> None:
    with pytest.raises(MalformedRequest, match=words) as caught:
        decode_request(JSON, data)
    caught.value.message.encode()
    str(caught.value.detail).encode()


def test_json_and_long_numbers_are_values_as_they_are() -> None:
    """An object or an array stands for its text, a number of more than 64 bits for itself; an
    object with expr is an expression."""
    given = {
        "long": 327267367867168100000,
        "object": {"a": [1, 2.5, None, True, "é"], "b": {}},
        "array": [1, "a"],
        "text": "a",
        "computed": {"expr": "free - 1"},
    }
    wanted = {
        "long": Decimal(327267367867168100000),
        "object": '{"a": [1, 2.5, null, true, "é"], "b": {}}',
        "array": '[1, "a"]',
        "text": "a",
        "computed": Expression("free - 1"),
    }
    request = decode_request(JSON, json.dumps({**UPDATE, "values": given}).encode())
    assert request.operations[0].values == wanted
    assert decode_request(*encode_request(request)).operations[0].values == {
        **wanted,
        "long": "327267367867168100000",
    }
    del given["computed"], wanted["computed"]
    rows = {**ROWS, "columns": list(given), "rows": [list(given.values())]}
    fields = {"id": ID_TEXT, "transaction": [rows]}
    assert decode_request(JSON, json.dumps(fields).encode()).operations[0].values == wanted


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no MessagePack"),
        (b"\xc1", "no MessagePack"),
        (msgpack.packb(UPDATE) + b"\x00", "no MessagePack"),
        (b"\x81\xa1a" * 5000, "no MessagePack"),
        (b"\xdd\x00\x00\x4e\x20" * 1000, "no MessagePack"),
        (b"\x82\xa2id\x01\xa2id\x02", "'id' is given twice"),
        (msgpack.packb({1: 2}), "no MessagePack|not a field"),
        (msgpack.packb({b"id": ID}), "nothing to do|not a field"),
        (msgpack.packb({**UPDATE, "values": {b"a": 1}}), "'values'"),
        (msgpack.packb({**UPDATE, "key": [1 << 63]}), "64 bits"),
        (msgpack.packb({**UPDATE, "values": {"a": [msgpack.Timestamp(5)]}}), "'values.a'"),
        (msgpack.packb({**UPDATE, "values": {"a": msgpack.ExtType(5, b"x")}}), "'values.a'"),
        (msgpack.packb({**UPDATE, "values": {"a": msgpack.Timestamp(5)}}), "'values.a'"),
        (msgpack.packb({**UPDATE, "id": b"short"}), "'id'"),
    ],
)
def test_broken_message_pack_is_refused_with_words(data: bytes, words: str) -> None:
    with pytest.raises(MalformedRequest, match=words):
        decode_request(MESSAGE_PACK, data)


def test_an_unknown_content_type_is_refused() -> None:
    with pytest.raises(MalformedRequest, match="'text/csv' is not known"):
        decode_request("text/csv", b"{}")


def test_the_size_is_bounded() -> None:
    fields = {"id": ID_TEXT, "sql": "x" * REQUEST_BYTES_MAX}
    with pytest.raises(RequestTooLarge, match=f"at most {REQUEST_BYTES_MAX}"):
        decode_request(JSON, json.dumps(fields).encode())
    small = zlib.compress(msgpack.packb(fields))
    assert len(small) < 100_000
    with pytest.raises(RequestTooLarge, match="when it is unpacked"):
        decode_request(MESSAGE_PACK_ZLIB, small)
    with pytest.raises(MalformedRequest, match="'sql': expected text"):
        decode_request(JSON, json.dumps({**fields, "sql": "x" * (SQL_BYTES_MAX + 1)}).encode())


@pytest.mark.parametrize(
    ("data", "words"), [(b"nothing", "not zlib's"), (zlib.compress(b"x" * 99)[:-4], "not all of")]
)
def test_broken_zlib_is_refused_with_words(data: bytes, words: str) -> None:
    with pytest.raises(MalformedRequest, match=words):
        decode_request(MESSAGE_PACK_ZLIB, data)


def insert(n: int, *, keyed: bool = True, table: str = "t") -> Operation:
    key: Any = (str(n),) if keyed else {}
    return Operation(OperationKind.INSERT, table, key, {"a": n, "b": "x"}, None, 3)


def test_inserts_that_are_alike_travel_as_rows() -> None:
    one = Operation(OperationKind.DELETE, "t", (1,), {}, 7, 3)
    other = Operation(OperationKind.INSERT, "t", {"id": 1}, {"a": Expression("1 + 1")})
    alike = [insert(n) for n in range(2 * ROWS_TOGETHER_MAX + 5)]
    unlike = [insert(1, keyed=False), insert(2, keyed=False), insert(3, table="u")]
    operations = (one, *alike, other, *unlike, one)
    content_type, data = encode_request(ChangeRequest(ID, operations))
    assert content_type == MESSAGE_PACK_ZLIB
    told = msgpack.unpackb(zlib.decompress(data))["transaction"]
    assert [len(each.get("rows", ())) for each in told] == [
        0,
        *[ROWS_TOGETHER_MAX] * 2,
        5,
        0,
        2,
        0,
        0,
    ]
    assert decode_request(content_type, data).operations == operations


ROWS: dict[str, Any] = {"table": "t", "op": "insert", "columns": ["id", "a"], "rows": [[1, 2]]}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"op": "update"}, "'transaction\\[0\\].op'"),
        ({"columns": ["a", "a"]}, "each once"),
        ({"columns": "a"}, "an array of column names"),
        ({"rows": 5}, "an array of rows"),
        ({"rows": [[1, 2], [1]]}, "rows\\[1\\]': expected an array of 2 values"),
        ({"rows": [[1, {"a": "\u0000"}]]}, "Unicode escape"),
        ({"keys": []}, "an array of 1 keys"),
        ({"keys": [5]}, "an object of key column"),
        ({"values": {}}, "'transaction\\[0\\].values' is not a field"),
        ({"rows": []}, "0 operations"),
    ],
)
def test_broken_rows_are_refused_with_words(fields: dict[str, Any], words: str) -> None:
    broken = {"id": ID_TEXT, "transaction": [{**ROWS, **fields}]}
    for content_type, data in both(broken):
        with pytest.raises(MalformedRequest, match=words):
            decode_request(content_type, data)


def test_the_number_of_operations_is_bounded() -> None:
    delete = {"table": "t", "op": "delete", "key": [1]}
    fields = {"id": ID_TEXT, "transaction": [delete] * OPERATIONS_MAX}
    for content_type, data in both(fields):
        assert len(decode_request(content_type, data).operations) == OPERATIONS_MAX
    fields["transaction"] = [delete] * (OPERATIONS_MAX + 1)
    with pytest.raises(RequestTooLarge, match=f"{OPERATIONS_MAX + 1} operations"):
        decode_request(JSON, json.dumps(fields).encode())
    with pytest.raises(MalformedRequest, match=str(OPERATIONS_MAX)):
        decode_request(MESSAGE_PACK, msgpack.packb(fields))
    head = {"table": "t", "op": "insert", "columns": ["a"]}
    many = [{**head, "rows": [[1]] * 10_000}] * (OPERATIONS_MAX // 10_000)
    fields["transaction"] = [*many, delete]
    with pytest.raises(RequestTooLarge, match=f"{OPERATIONS_MAX + 1} operations"):
        decode_request(JSON, json.dumps(fields).encode())


VALUE = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=8)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)


@st.composite
def broken_requests(draw: st.DrawFn) -> dict[str, Any]:
    """A right request with some fields replaced, so that every branch is reached."""
    start: dict[str, Any] = draw(
        st.sampled_from(
            [
                UPDATE,
                {"id": ID_TEXT, "transaction": [{"table": "t", "op": "delete", "key": [1]}]},
                {"id": ID_TEXT, "sql": "x", "attempt": 2, "give_up": True, "used": {"t": 1}},
                {"id": ID_TEXT, "job": 7, "action": "set", "chunk_rows": 5},
            ]
        )
    )
    fields = {**start}
    names = st.one_of(st.sampled_from(sorted(fields)), st.text(max_size=8))
    for name in draw(st.lists(names, max_size=3)):
        fields[name] = draw(VALUE)
    return fields


@given(broken_requests())
def test_no_field_raises_anything_else(fields: dict[str, Any]) -> None:
    data = [(JSON, json.dumps(fields).encode())]
    with suppress(UnicodeEncodeError):  # MessagePack's writer can't make every one
        data.append((MESSAGE_PACK, msgpack.packb(fields)))
    for content_type, encoded in data:
        try:
            request = decode_request(content_type, encoded)
        except MalformedRequest as error:
            error.message.encode()
        else:
            assert decode_request(*encode_request(request)) == request


@given(st.sampled_from(["", JSON, MESSAGE_PACK, "\ud800"]), st.binary(max_size=200))
def test_no_bytes_raise_anything_else(content_type: str, data: bytes) -> None:
    with pytest.raises(MalformedRequest) as caught:
        decode_request(content_type, data)
    assert not {"request_id", "reply_to"} & caught.value.detail.keys()


@given(st.integers(0, 200), st.integers(0, 255))
def test_one_changed_byte_raises_nothing_else(at: int, byte: int) -> None:
    for content_type, data in both(UPDATE):
        broken = bytearray(data)
        broken[at % len(data)] = byte
        with contextlib.suppress(MalformedRequest):
            decode_request(content_type, bytes(broken))


@pytest.mark.parametrize(
    "request_",
    [
        UPDATED,
        UPDATED._replace(attempt=3, give_up=True, reply_to=5, used={"u": 1}),
        UPDATED._replace(operations=UPDATED.operations * 2, on_conflict=OnConflict.REPLAY),
        UPDATED._replace(
            operations=(
                UPDATED.operations[0]._replace(
                    values={"a": Expression("a + $1 * $2", (1, "2.50"), ("integer", "numeric"))},
                    expect=ANY_GENID,
                ),
            )
        ),
        ChangeRequest(ID, (SOUGHT,)),
        ChangeRequest(ID, (SOUGHT, SOUGHT, SOUGHT._replace(arbiters=()), SOUGHT)),
        ChangeRequest(ID, sql="CREATE TABLE …"),
        UPDATED._replace(sql="CREATE TABLE …; CREATE INDEX …"),
        UPDATED._replace(sql="CREATE TABLE …", operations=UPDATED.operations * 2),
        ChangeRequest(ID, control=JobControl(7, "pause")),
        ChangeRequest(ID, control=JobControl(7, "set", {"chunk_rows": 5})),
    ],
)
def test_what_is_encoded_is_read_back(request_: ChangeRequest) -> None:
    assert decode_request(*encode_request(request_)) == request_


def test_dates_and_uuids_are_encoded_as_text() -> None:
    timestamp = datetime(2013, 1, 1, 5, tzinfo=UTC)
    values = {"at": timestamp, "day": timestamp.date(), "u": UUID(int=1)}
    operation = Operation(OperationKind.INSERT, "t", {}, values)
    found = decode_request(*encode_request(ChangeRequest(ID, (operation,))))
    assert found.operations[0].values == {
        "at": "2013-01-01T05:00:00+00:00",
        "day": "2013-01-01",
        "u": "00000000-0000-0000-0000-000000000001",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", 0.1),
        ("123456789.12345678", 123456789.12345678),
        ("0.12345678901234567891", Decimal("0.12345678901234567891")),
        ("1e22", 1e22),
        ("12345678901234567890.5", Decimal("12345678901234567890.5")),
    ],
)
def test_a_number_that_no_double_is_keeps_its_digits(text: str, value: Any) -> None:
    body = f'{{"id": "{ID_TEXT}", "table": "t", "op": "insert", "values": {{"a": {text}}}}}'
    (operation,) = decode_request("application/json", body.encode()).operations
    found = operation.values["a"]
    assert (found, type(found)) == (value, type(value))
    again = decode_request(*encode_request(ChangeRequest(ID, (operation,)))).operations[0]
    assert again.values["a"] == (str(value) if isinstance(value, Decimal) else value)


@pytest.mark.parametrize("place", ["key", "values"])
def test_a_number_of_more_zeros_than_a_numeric_has_is_refused_before_they_are_written(
    place: str,
) -> None:
    """A few bytes must not say how many a master writes; and its sender gets an answer."""
    value = {"key": '"key": {"id": %s}, "values": {}', "values": '"values": {"a": %s}'}[place]
    fields = value % "1.0000000000000000e-20000000"
    body = f'{{"id": "{ID_TEXT}", "table": "t", "op": "insert", "reply_to": 3, {fields}}}'
    tracemalloc.start()
    with pytest.raises(MalformedRequest, match=f"{place}.*as many digits as a numeric") as caught:
        decode_request("application/json", body.encode())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000
    assert caught.value.detail["request_id"] == ID
    assert caught.value.detail["reply_to"] == 3


def test_a_number_of_more_zeros_than_a_numeric_has_is_not_sent() -> None:
    """As the retry of a conflict would do with what an earlier release has taken."""
    operation = Operation(OperationKind.INSERT, "t", {}, {"a": Decimal("1e-20000000")})
    tracemalloc.start()
    with pytest.raises(MalformedRequest, match="more digits than a numeric"):
        encode_request(ChangeRequest(ID, (operation,)))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000


def test_a_value_without_a_wire_form_is_refused_when_encoding() -> None:
    operation = Operation(OperationKind.INSERT, "t", {}, {"a": object()})
    with pytest.raises(MalformedRequest, match="object has no wire form"):
        encode_request(ChangeRequest(ID, (operation,)))


def test_id_and_partition_of_a_malformed_request_are_found() -> None:
    for content_type, data in both({"id": ID_TEXT, "reply_to": 4, "tabel": 1}):
        with pytest.raises(MalformedRequest) as caught:
            decode_request(content_type, data)
        assert caught.value.detail["request_id"] == ID
        assert caught.value.detail["reply_to"] == 4


def test_giving_up_is_a_request_that_can_be_decided() -> None:
    """L5: without its operations it was malformed, and the attempt was never decided."""
    last = UPDATED._replace(on_conflict=OnConflict.REPLAY, attempt=3, used={"flights": 3})
    again = decode_request(*encode_request(last.giving_up()))
    assert (again.id, again.attempt, again.give_up, again.used) == (ID, 4, True, {})


# ------------------------------------------------------------------ time zones of schema changes


@pytest.mark.parametrize("operations", [(), UPDATED.operations])
def test_time_zones_travel_with_the_statements(operations: tuple[Operation, ...]) -> None:
    said = ChangeRequest(ID, operations, sql="DROP TABLE t", time_zones=("Asia/Tokyo", "UTC"))
    assert decode_request(*encode_request(said)) == said
    content_type, data = encode_request(said._replace(time_zones=()))
    assert b"time_zones" not in data, "an earlier release reads it"
    assert decode_request(content_type, data).time_zones == ()


@pytest.mark.parametrize(
    "said",
    [
        ChangeRequest(ID, sql="DROP TABLE t", held=True),
        ChangeRequest(ID, sql="DROP TABLE t", held=True, demands=((5, 2), (6, 1))),
        ChangeRequest(ID, releases=b"\x01" * 6 + b"\x70\x01" + b"\x81" * 8),
        ChangeRequest(ID, sql="GRANT a TO b", releases=ID),
        ChangeRequest(ID, sql="GRANT a TO b", fence=LockFence("run", 2**53 - 1, 3)),
        ChangeRequest(ID, notifications=Notifications((Notification("c", ""),))),
        ChangeRequest(ID, releases=ID, notifications=TOLD),
        ChangeRequest(ID, sql="DROP TABLE t", notifications=TOLD),
        ChangeRequest(ID, (Operation(OperationKind.DELETE, "t", (1,), {}),), notifications=TOLD),
        ChangeRequest(
            ID, (Operation(OperationKind.DELETE, "t", (1,), {}),) * 2, notifications=TOLD
        ),
    ],
)
def test_a_job_and_its_rows_find_each_other(said: ChangeRequest) -> None:
    assert decode_request(*encode_request(said)) == said


def test_what_is_told_is_told_once_by_whom_it_says() -> None:
    fields = {"id": ID_TEXT, "notify": [["c", "x"], ["d", "x"], ["c", "x"]]}
    read = decode_request(JSON, json.dumps(fields).encode())
    told = Notifications((Notification("c", "x"), Notification("d", "x")))
    assert read == ChangeRequest(ID, notifications=told)
    fields |= UPDATE | {"notifier": ["r1", 5]}
    read = decode_request(JSON, json.dumps(fields).encode())
    assert read.notifications == told._replace(node="r1", process=5)
    assert len(read.operations) == 1


TOLD_WRONGLY: list[dict[str, Any]] = [
    {"notify": []},
    {"notify": "c"},
    {"notify": ["c"]},
    {"notify": [["c"]]},
    {"notify": [["c", None]]},
    {"notify": [["c", 1]]},
    {"notify": [["", "x"]]},
    {"notify": [["c" * 64, "x"]]},
    {"notify": [["c", "x" * 8_000]]},
    {"notify": [["c", "é" * 4_000]]},
    {"notify": [["c", "\x00"]]},
    {"notify": [["c", "\ud800"]]},
    {"notify": [["c", "x"]], "notifier": "r1"},
    {"notify": [["c", "x"]], "notifier": ["r1"]},
    {"notify": [["c", "x"]], "notifier": ["", 1]},
    {"notify": [["c", "x"]], "notifier": ["r1", "x"]},
    {"notify": [["c", "x"]], "notifier": ["r1", 1 << 31]},
    {"notifier": ["r1", 1]},
    {"notify": [["c", "x"]], "barrier": []},
    {"notify": [["c", "x"]], "job": 1, "action": "pause"},
]


@pytest.mark.parametrize("fields", TOLD_WRONGLY)
def test_what_is_told_wrongly_is_malformed(fields: dict[str, Any]) -> None:
    with pytest.raises(MalformedRequest):
        decode_request(JSON, json.dumps({"id": ID_TEXT, **fields}).encode())


def test_what_is_told_is_bounded() -> None:
    many = [["c", str(number)] for number in range(NOTIFICATIONS_MAX + 1)]
    long = [["c", f"{number:07900}"] for number in range(NOTIFICATIONS_BYTES_MAX // 7_900)]
    for notify in (many, long):
        with pytest.raises(RequestTooLarge, match="'notify' holds"):
            decode_request(JSON, json.dumps({"id": ID_TEXT, "notify": notify}).encode())
        read = decode_request(JSON, json.dumps({"id": ID_TEXT, "notify": notify[:-100]}).encode())
        assert read.notifications is not None


@pytest.mark.parametrize("demands", [5, [5], [[5]], [[5, "2"]], [[5, True]], [[1, 2]] * 1001])
def test_broken_demands_are_refused_by_name(demands: Any) -> None:
    data = json.dumps({"id": ID_TEXT, "sql": "DROP TABLE t", "demands": demands}).encode()
    with pytest.raises(MalformedRequest, match="demands"):
        decode_request(JSON, data)


@pytest.mark.parametrize("zones", ["UTC", [1], [""], ["Z" * 256], ["UTC"] * 129, {"UTC": 1}])
def test_broken_time_zones_are_refused_by_name(zones: Any) -> None:
    data = json.dumps({"id": ID_TEXT, "sql": "DROP TABLE t", "time_zones": zones}).encode()
    with pytest.raises(MalformedRequest, match="time_zones"):
        decode_request(JSON, data)
