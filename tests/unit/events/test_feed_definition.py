"""Goal: an order about a feed comes through as it was said, and what is none is refused in words.

Method: every kind of order there and back; bodies that anybody may have written.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from leasehold.events.debezium.column_types import Decimals
from leasehold.events.debezium.definition import (
    ORDER_BYTES_MAX,
    CreateFeed,
    Definition,
    DropFeed,
    Order,
    SnapshotSignal,
    decode_order,
    encode_order,
)
from leasehold.model.errors import MalformedRequest

FULL = Definition(
    table="public.Möwe",
    columns=("a", "b"),
    where="a > 'x'",
    schemas=True,
    decimals=Decimals.PRECISE,
    tombstones=False,
    transactions=True,
    snapshot=False,
    partitions=4,
    kept_hours=0,
)


@pytest.mark.parametrize(
    "order",
    [
        CreateFeed("1", FULL),
        CreateFeed("2", Definition(table="public.t")),
        DropFeed("3", "public.t"),
        SnapshotSignal("4", ("public.t", "public.u")),
        SnapshotSignal("5", ("public.t",), stop=True),
    ],
)
def test_an_order_comes_through(order: Order) -> None:
    assert decode_order(encode_order(order)) == order


def test_a_signal_is_debeziums() -> None:
    """As its documentation has it for a topic of signals."""
    text = """{"type":"execute-snapshot","data":
        {"data-collections": ["public.t"], "type": "INCREMENTAL"}}"""
    assert decode_order(text.encode()) == SnapshotSignal("", ("public.t",))


CREATE: dict[str, Any] = {"type": "create-feed", "data": {"table": "public.t"}}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"[" * 20_000,
        b" " * (ORDER_BYTES_MAX + 1),
        [],
        {},
        {"type": 3},
        {"type": "log", "data": {"message": "hello"}},
        {"type": "execute-snapshot", "data": []},
        {"type": "execute-snapshot", "data": {"data-collections": "public.t"}},
        {"type": "drop-feed", "data": {"table": "t"}},
        {"type": "drop-feed", "data": {"table": "public."}},
        *(
            {**CREATE, "data": {**CREATE["data"], name: value}}
            for name, value in (
                ("table", "a\nb.c"),
                ("columns", [1]),
                ("where", "x" * 9_000),
                ("schemas", "yes"),
                ("decimals", "roman"),
                ("partitions", 0),
                ("partitions", True),
                ("partitions", 1_000),
                ("kept_hours", -1),
            )
        ),
    ],
)
def test_what_is_no_order_is_refused(body: Any) -> None:
    value = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(MalformedRequest):
        decode_order(value)
