"""NaN as programs give and get it: in requests of JSON and MessagePack, in rows read by name, in
row and version events, in PEP 249.

Method: a whole database in this process; its nodes are compared at the end.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from leasehold.adapters.codec.json_text import json_text
from leasehold.adapters.codec.request_bytes import JSON, MESSAGE_PACK, pack_fields, read_fields
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.dbapi.module import Connection
from leasehold.dev.database import DevDatabase
from leasehold.events.rows import decode_row
from leasehold.model.records.events import RowImage
from leasehold.replica.sql_reads import behind
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession
from leasehold.values.types import Type
from services.examples.decoding import decode_row as decoded_by_stranger
from tests.support.descriptors import row_json

MADE: Final = (
    "create table t (k double precision primary key, d double precision default 'NaN',"
    " i int, s text, b boolean, j jsonb, n numeric)"
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[DevDatabase]:
    dev = DevDatabase(tmp_path)
    try:
        dev.wait_ready()
        assert dev.ask({"sql": MADE}).committed
        yield dev
        assert not dev.check().differences
    finally:
        dev.close()


def by_json(fields: dict[str, Any]) -> dict[Any, Any]:
    return read_fields(JSON, json_text(fields).encode())


def by_message_pack(fields: dict[str, Any]) -> dict[Any, Any]:
    content_type, data = pack_fields(fields)
    assert content_type == MESSAGE_PACK
    return read_fields(content_type, data)


@pytest.mark.parametrize("form", [by_json, by_message_pack])
def test_requests_give_it_as_a_number_or_as_text(database: DevDatabase, form: Any) -> None:
    def answered(op: str, key: Any, **more: Any) -> str:
        answer = database.ask(form({"table": "t", "op": op, "key": {"k": key}, **more}))
        return answer.outcome.code

    def row(key: Any) -> str:
        return repr(database.get("t", (key,)))

    assert answered("insert", math.nan, values={"d": 1, "n": math.nan}) == ""
    assert "'k': nan, 'd': 1.0" in row("NaN")
    assert answered("insert", "NaN", values={}) == "23505"
    assert answered("update", math.nan, values={"d": math.nan, "s": "x"}, expect=0) == ""
    assert "'d': nan, 'i': None, 's': 'x'" in row(math.nan)
    assert answered("update", "NaN", values={"d": {"expr": "d - 1"}}) == ""
    more = {"expr": "d * $1", "args": [math.nan], "types": ["double precision"]}
    assert answered("insert", 1.5, values={"d": 2}) == ""
    assert answered("update", 1.5, values={"d": more}) == ""
    assert "'d': nan" in row(1.5)
    assert answered("delete", math.nan) == answered("delete", 1.5) == ""
    assert row("NaN") == "None"


@pytest.mark.parametrize("column", ["i", "s", "b", "j"])
def test_other_columns_refuse_the_number(database: DevDatabase, column: str) -> None:
    fields = {"table": "t", "op": "insert", "key": {"k": 1}, "values": {column: math.nan}}
    answer = database.ask(by_message_pack(fields))
    assert answer.outcome.code in ("42804", "22P02")
    assert column in answer.outcome.message


def test_a_transaction_of_pep_249_gives_and_gets_floats(database: DevDatabase) -> None:
    session = SqlSession(database.sql_node(), Plans(), user="me")
    connection = Connection(session, lambda: None)
    connection.execute("insert into t (k, d) values (%s, %s), (1, 2)", (math.nan, -math.inf))
    connection.execute("insert into t (k) values (3)")
    found = connection.execute("select k, d from t order by k").fetchall()
    assert repr(found) == "[(1.0, 2.0), (3.0, nan), (nan, -inf)]"
    connection.execute("update t set d = %s where k = %s", (math.nan, math.nan))
    assert repr(connection.execute("select d from t where k = 'NaN'").fetchall()) == "[(nan,)]"
    connection.commit()
    found = connection.execute("select k from t where d = %s order by k", (math.nan,)).fetchall()
    assert repr(found) == "[(3.0,), (nan,)]"
    connection.rollback()
    connection.close()


TABLE: Final = Descriptor(
    7,
    "samples",
    1,
    (
        Column(1, "at", Type("double precision"), nullable=False),
        Column(2, "heat", Type("double precision")),
    ),
    (1,),
)


def test_events_give_it_as_floats_and_as_text_in_json() -> None:
    image = RowImage(7, ("NaN",), {0: 9}, 40, 1, 123, {1: "NaN", 2: math.inf})
    event = decode_row(TABLE, image.key, image)
    assert repr((event.key, event.values)) == "({'at': nan}, {'at': nan, 'heat': inf})"
    told = row_json(TABLE, image.key, image.values)
    assert json.loads(json_text(event.values)) == told == {"at": "NaN", "heat": "Infinity"}
    kind = {"kind": "column", "state": "public", "type": "double precision"}
    elements = [{"id": c.element_id, "name": c.name, **kind} for c in TABLE.columns]
    version = {"primary_key": [1], "elements": elements}
    assert decoded_by_stranger(version, ["NaN"], image.values) == told


def test_t1_what_was_read_up_to_infinity_ends_before_nan() -> None:
    assert behind(math.inf) == "NaN" < behind("NaN")
    assert behind(1.5) == math.nextafter(1.5, math.inf)
