"""Goal: a stranger who has read the documents decodes rows as Leasehold itself does.

Method: random tables and rows as they travel, through the examples' decoder and through ours.
"""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from leasehold.adapters.codec.records import MessagePackCodec, row_key
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.states import State
from leasehold.events.public_schema import encode_event
from leasehold.model.records.events import RowImage, RowLeftOut, RowsTruncated, VersionEvent
from leasehold.values.types import Type
from services import examples
from services.examples.decoding import RowRecord, VersionBook, WaitingRows
from tests.support.descriptors import row_json
from tests.support.sql_session.made_tables import descriptors, rows

ROOT = Path(__file__).parents[4]
CODEC = MessagePackCodec()
ID = Column(1, "id", Type("bigint"), nullable=False)
GATE = Column(2, "gate", Type("text"))
V1 = Descriptor(1, "flights", 1, (ID, GATE), (1,), next_element_id=3)
V2 = replace(V1, version=2, columns=(ID, replace(GATE, name="exit", alias="gate")))


def event(descriptor: Descriptor) -> bytes:
    wire = descriptor.to_wire()
    return encode_event(
        VersionEvent(descriptor.table_id, descriptor.name, descriptor.version, 9, 9, wire, 0, "")
    )


def record(version: int, values: dict[int, Any], lsn: int = 5) -> RowRecord:
    key = (values[1],)
    return RowRecord(row_key(key), CODEC.encode(RowImage(1, key, {0: 9}, lsn, version, 7, values)))


@given(st.data())
def test_every_row_of_every_table_is_decoded_alike(data: st.DataObject) -> None:
    descriptor = data.draw(descriptors())
    image = data.draw(rows(descriptor))
    book = VersionBook()
    book.learn(event(descriptor))
    told = book.decode(1, record(descriptor.version, image))
    assert told is not None
    ours = row_json(descriptor, (image[1],), image)
    assert json.loads(json.dumps(told["row"])) == json.loads(json.dumps(ours))


def test_a_row_waits_for_its_own_version_and_those_behind_it_wait_too() -> None:
    """A newer version would name the column otherwise; an older row must not be overtaken."""
    book = VersionBook()
    waiting = WaitingRows(book, 1)
    book.learn(event(V2))
    assert waiting.take(record(1, {1: 7, 2: "B4"})) == []
    assert waiting.take(record(2, {1: 7, 2: "B5"})) == []
    assert waiting.take(RowRecord(row_key((7,)), None)) == []
    assert len(waiting) == 3
    book.learn(event(V1))
    first, second, third = waiting.take()
    assert (first["version"], first["row"]) == (1, {"id": 7, "gate": "B4"})
    assert (second["version"], second["row"]) == (2, {"id": 7, "exit": "B5"})
    assert third == {"table": "flights", "deleted": {"id": 7}}
    assert len(waiting) == 0


def test_a_deleted_row_of_a_table_not_heard_of_waits() -> None:
    waiting = WaitingRows(VersionBook(), 1)
    assert waiting.take(RowRecord(row_key((7,)), None)) == []


def test_a_name_is_that_of_the_table_that_has_it_now() -> None:
    book = VersionBook()
    for each in (V1, replace(V1, version=2, name="departures", alias="flights")):
        book.learn(event(each))
    assert book.table_id("flights") == book.table_id("departures") == 1
    book.learn(event(replace(V1, version=3, name="departures")))
    book.learn(event(V1))  # again, as after a restart
    assert book.table_id("flights") is None


def test_a_truncation_is_told_once_its_table_is_known() -> None:
    book = VersionBook()
    gone = RowRecord(row_key(()), CODEC.encode(RowsTruncated(1, 41, 7)))
    assert book.decode(1, gone) is None
    book.learn(event(V1))
    assert book.decode(1, gone) == {"table": "flights", "truncated": 41}


def test_a_row_whose_image_was_too_large_is_told_by_its_key() -> None:
    book = VersionBook()
    left_out = CODEC.encode(RowLeftOut(1, (7,), {0: 9}, 5, 1, 6, 9_000_000))
    assert book.decode(1, RowRecord(row_key((7,)), left_out)) is None
    book.learn(event(V1))
    told = book.decode(1, RowRecord(row_key((7,)), left_out))
    about = {"table": "flights", "version": 1, "lsn": 5, "commit_us": 6}
    assert told == {**about, "left_out": {"id": 7}, "bytes": 9_000_000}


def test_what_is_no_row_image_is_not_taken_for_one() -> None:
    book = VersionBook()
    book.learn(event(V1))
    told = book.decode(1, RowRecord(row_key((7,)), msgpack.packb([2, 30])))
    assert told is not None
    assert "no row image" in told["unreadable"]


def test_bytes_that_nobody_can_read_hold_up_no_others() -> None:
    book = VersionBook()
    rows = WaitingRows(book, 1)
    for garbage in (b"", b"\xff", b"{}", b"[]", event(V1).replace(b'"elements"', b'"other"')):
        assert book.learn(garbage) is None
        (told,) = rows.take(RowRecord(garbage, garbage))
        assert set(told) == {"unreadable"}
    assert book.learn(event(V1)) is not None
    (told,) = rows.take(RowRecord(row_key((7,)), None))
    assert told == {"table": "flights", "deleted": {"id": 7}}


def test_the_ten_lines_of_the_document_do_what_it_says() -> None:
    document = (ROOT / "docs" / "how-to" / "follow-versions.md").read_text("utf-8")
    code = document.partition("```python\n")[2].partition("```")[0]
    assert sum(bool(line) for line in code.splitlines()) == 10
    known: dict[str, Any] = {"json": json, "msgpack": msgpack}
    exec(code, known)
    gate = Column(3, "gate", Type("text"), state=State.DELETE_ONLY)
    origin = Column(2, "origin", Type("text"))
    known["learn"](event(replace(V1, version=2, columns=(ID, origin, gate))))
    shown = document.partition("the image `")[2].partition("`")[0].replace("null", "None")
    image = eval(shown, {})
    assert image[:2] == [1, 30]
    expected = json.loads(document.partition("\nis `")[2].partition("`")[0])
    assert known["decode"](msgpack.packb(image)) == expected
    ours = RowImage(1, (7,), {0: 9437184}, 9, 2, 1700000000000000, {1: 7, 2: "JFK"})
    assert msgpack.packb(image) == CODEC.encode(ours)


def test_the_examples_need_nothing_of_leasehold() -> None:
    folder = Path(examples.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("leasehold"), path.name
            if isinstance(node, ast.Import):
                assert not any(a.name.startswith("leasehold") for a in node.names), path.name
