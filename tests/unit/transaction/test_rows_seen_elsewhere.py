"""Goal: a request that says how a row was holds for that row alone, and is refused for good where
it is another one.

Method: stores of every kind, operations with `before`, and the way of such a request through the
codec, the retry and the rights.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from leasehold.adapters.codec.request_bytes import pack_fields
from leasehold.adapters.codec.request_decoding import decode_request
from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.model.errors import (
    MalformedRequest,
    Uncommittable,
    UnknownColumn,
    VerifyError,
    WrongType,
)
from leasehold.model.ids import request_id
from leasehold.model.records.requests import ANY_GENID, ChangeRequest, Operation, OperationKind
from leasehold.transaction.retry import is_recomputed
from leasehold.values.types import Type
from tests.support.transaction.written_table import Store, WrittenTable, insert, update

TABLE: Final = Descriptor(
    1,
    "t",
    1,
    (
        Column(1, "id", Type("bigint"), False),
        Column(2, "n", Type("bigint")),
        Column(3, "j", Type("jsonb")),
        Column(4, "x", Type("double precision")),
        Column(5, "d", Type("numeric")),
    ),
    (1,),
)
ID: Final = request_id(1_790_000_000_000, b"0123456789")


def seen(kind: OperationKind, before: dict[str, Any], **values: Any) -> Operation:
    return Operation(kind, "t", {"id": 1}, values, ANY_GENID, before=before)


@pytest.fixture
def table(store: Store) -> WrittenTable:
    made = WrittenTable(store, TABLE)
    made.send(insert("t", 1, n=5, j={"b": 1, "a": 2}, x="NaN", d="1.50"))
    return made


@pytest.mark.parametrize(
    "before",
    [
        {},
        {"n": 5},
        {"j": '{"a":2, "b":1.0}'},
        {"x": "NaN"},
        {"d": 1.5},
        {"n": 5, "j": {"a": 2, "b": 1}},
    ],
)
def test_a_row_that_is_as_it_was_seen_is_changed(
    table: WrittenTable, before: dict[str, Any]
) -> None:
    table.send(seen(OperationKind.UPDATE, before, n=6))
    found = table.row(1, 1)
    assert found is not None
    assert found[2] == 6


@pytest.mark.parametrize("kind", [OperationKind.UPDATE, OperationKind.DELETE])
@pytest.mark.parametrize(
    "before", [{"n": 6}, {"n": None}, {"n": 5, "j": None}, {"x": 1.0}, {"d": 1.51}]
)
def test_a_row_that_is_another_is_left_alone(
    table: WrittenTable, kind: OperationKind, before: dict[str, Any]
) -> None:
    values = {"n": 7} if kind is OperationKind.UPDATE else {}
    was = table.row(1, 1)
    with pytest.raises(VerifyError, match="than was seen") as refused:
        table.send(seen(kind, before, **values))
    assert table.row(1, 1) == was
    different = sorted(name for name in before if name != "n" or before["n"] != 5)
    assert refused.value.detail["columns"] == different


def test_a_row_that_is_gone_is_no_row_that_was_seen(table: WrittenTable) -> None:
    gone = Operation(OperationKind.DELETE, "t", {"id": 9}, {}, before={"n": 1})
    with pytest.raises(VerifyError, match="is gone"):
        table.send(gone)


def test_null_is_a_value_that_a_row_was_seen_with(table: WrittenTable) -> None:
    table.send(update("t", 1, n=None))
    table.send(seen(OperationKind.UPDATE, {"n": None}, n=1))
    assert (table.row(1, 1) or {})[2] == 1


def test_what_the_same_request_has_changed_can_never_be_as_it_was_seen(
    table: WrittenTable,
) -> None:
    with pytest.raises(Uncommittable):
        table.send(update("t", 1, n=6), seen(OperationKind.UPDATE, {"n": 5}, n=7))
    table.send(update("t", 1, n=6), seen(OperationKind.UPDATE, {"n": 6}, n=7))


def test_names_and_types_are_checked(table: WrittenTable) -> None:
    with pytest.raises(UnknownColumn):
        table.send(seen(OperationKind.UPDATE, {"nothing": 5}, n=6))
    with pytest.raises(WrongType):
        table.send(seen(OperationKind.UPDATE, {"n": True}, n=6))


def test_it_is_never_tried_again_on_another_row() -> None:
    assert not is_recomputed(ChangeRequest(ID, (seen(OperationKind.DELETE, {"n": 1}),)))


def test_it_travels() -> None:
    for operation in (
        seen(OperationKind.UPDATE, {"n": 5, "j": "[1]"}, n=6),
        seen(OperationKind.DELETE, {"n": None}),
    ):
        request = ChangeRequest(ID, (operation,))
        assert decode_request(*encode_request(request)) == request
        several = ChangeRequest(ID, (operation, operation))
        assert decode_request(*encode_request(several)) == several


@pytest.mark.parametrize(
    "fields",
    [
        {"op": "insert", "before": {"n": 1}},
        {"op": "upsert", "before": {"n": 1}},
        {"op": "delete", "before": 5},
        {"op": "delete", "before": {"n": {"expr": "1"}}},
        {"op": "delete", "before": {5: 1}},
        {"op": "delete", "before": {"n": 1}, "arbiters": [""]},
    ],
)
def test_what_has_no_meaning_is_malformed(fields: dict[str, Any]) -> None:
    whole = {"id": ID, "table": "t", "key": {"id": 1}, "values": {}, **fields}
    with pytest.raises(MalformedRequest):
        decode_request(*pack_fields(whole))
