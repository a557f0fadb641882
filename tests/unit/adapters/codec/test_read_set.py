"""A read set travels inside a request; an older one has none; a broken one names its field."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from leasehold.adapters.codec.request_bytes import MESSAGE_PACK
from leasehold.adapters.codec.request_decoding import decode_request
from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.model.errors import MalformedRequest
from leasehold.model.ids import request_id
from leasehold.model.records.requests import (
    ChangeRequest,
    Operation,
    OperationKind,
    ReadRange,
    ReadSet,
    TableReads,
    Visited,
)

ID = request_id(1_700_000_000_000, b"0123456789")
UPDATE = Operation(OperationKind.UPDATE, "t", (1,), {"a": 1}, 77, 3)
READS = ReadSet(
    41,
    (
        TableReads(
            "t",
            3,
            keys=((1,), (2,)),
            ranges=(ReadRange(low=(1,), high=(9,)), ReadRange("by_a", equal=("x", None))),
            visited=(Visited((1,), ((0, 77),)), Visited((2,), ((0, 5), (7, 0)))),
        ),
        TableReads("u", 1, whole=True),
    ),
)


def test_it_comes_back_as_it_went() -> None:
    request = ChangeRequest(ID, (UPDATE,), reads=READS)
    assert decode_request(*encode_request(request)) == request


def test_a_request_without_one_is_as_before() -> None:
    request = ChangeRequest(ID, (UPDATE,))
    content_type, data = encode_request(request)
    assert b"reads" not in data
    assert decode_request(content_type, data).reads is None


@pytest.mark.parametrize(
    "reads",
    [
        7,
        [],
        [41],
        [-1, []],
        [41, [["t"]]],
        [41, [["t", 3, [["a", {"x": 1}]]]]],
        [41, [["t", 3, [1]]]],
        [41, [["t", 3, [], [["", [], [[]], []]]]]],
        [41, [["t", 3, [], [], "yes"]]],
        [41, [["t", 3, [], [], False, [[[1], "x"]]]]],
        [41, [], "more"],
        "x" * 50,
    ],
)
def test_a_broken_one_is_refused_by_name(reads: Any) -> None:
    data = msgpack.packb({"id": ID, "table": "t", "op": "delete", "key": [1], "reads": reads})
    with pytest.raises(MalformedRequest, match="'reads'"):
        decode_request(MESSAGE_PACK, data)
