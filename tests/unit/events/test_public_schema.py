"""Goal: an event on the versions topics tells everything, to Leasehold's own readers and to
strangers, and always fits a Kafka record.

Method: random tables through the codec; the steps of a change as the changefeed tells them; tables
as large as they may be.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import CHECKS_MAX, COLUMNS_MAX, INDEXES_MAX, Descriptor, from_wire
from leasehold.catalog.edits import apply_edits
from leasehold.catalog.elements import Check, Column, Computed, Derived, Index, Missing, Source
from leasehold.catalog.object_names import NAME_BYTES_MAX
from leasehold.events.avro_schema import avro_schema
from leasehold.events.json_schema import json_schema
from leasehold.events.public_reading import decode_event
from leasehold.events.public_schema import (
    EVENT_BYTES_MAX,
    before_event,
    encode_event,
)
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.acks import Ack
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.log import DescriptorWrite
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import JobPlan
from leasehold.sql.syntax.statements import (
    AddColumn,
    AlterTable,
    ColumnDefinition,
    RenameColumn,
)
from leasehold.values.types import Type
from tests.support.sql_session.made_tables import descriptors

CODEC = MessagePackCodec()
TABLE = Descriptor(
    1,
    "flights",
    1,
    (Column(1, "id", Type("bigint"), nullable=False), Column(2, "gate", Type("text"))),
    (1,),
    next_element_id=3,
)
JOB = {"kind": "add column", "subject": "column belt", "sql": "ALTER …", "step": 1, "steps": 2}


def event_of(descriptor: Descriptor, **more: Any) -> VersionEvent:
    body = {**descriptor.to_wire(), "modified_us": 9}
    told = VersionEvent(
        descriptor.table_id, descriptor.name, descriptor.version, 40, 9, body, 0, ""
    )
    return told._replace(**more)


@given(descriptors())
def test_what_is_told_is_the_whole_descriptor(descriptor: Descriptor) -> None:
    event = event_of(descriptor, job_id=3, step="delete-only", job={**JOB, "status": "running"})
    found = CODEC.decode_as(VersionEvent, encode_event(event))
    assert from_wire(found.body) == from_wire(event.body)
    assert found._replace(body=None) == event._replace(body=None)


@settings(max_examples=20)
@given(descriptors())
def test_the_same_event_has_the_same_bytes(descriptor: Descriptor) -> None:
    again = decode_event(encode_event(event_of(descriptor)))
    assert encode_event(again) == encode_event(event_of(descriptor))


def test_older_events_in_messagepack_are_read_too() -> None:
    event = event_of(TABLE)
    assert CODEC.decode_as(VersionEvent, CODEC.encode(event)).body["name"] == "flights"


PILL = {
    "format": 1,
    "table": "t",
    "table_id": 1,
    "version": 1,
    "former_name": None,
    "lsn": 1,
    "commit_us": 1,
    "job": None,
}


def with_a_column(**column: Any) -> bytes:
    """An event of one column that is not as its type says."""
    wire = {"kind": "column", "id": 1, "type": "integer", "length": None, "default": 1, **column}
    return json.dumps({**PILL, "elements": [wire]}).encode()


NO_EVENTS = [
    *(b"{", b"{}", b'{"format": 2}', b'{"format": 1}', b'{"a": \xff}', b'{"a":' * 100_000),
    with_a_column(default="abc"),
    with_a_column(type=5),
]


@pytest.mark.parametrize("data", NO_EVENTS, ids=lambda data: data[:20].decode(errors="replace"))
def test_what_is_no_event_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedRequest):
        CODEC.decode_as(VersionEvent, data)


def test_json_is_a_record_of_the_versions_topics_alone() -> None:
    """Whoever reads another topic, or is told something, takes none: the events of a table are
    thousands of lines of code that has no business there."""
    with pytest.raises(MalformedRequest):
        CODEC.decode(encode_event(event_of(TABLE)))
    with pytest.raises(MalformedRequest):
        CODEC.decode_as(Ack, encode_event(event_of(TABLE)))


def steps_of(statement: AlterTable) -> list[VersionEvent]:
    catalog = Catalog()
    catalog.apply(DescriptorWrite(1, 1, TABLE.to_wire()), 0, 1)
    made = plan(statement, catalog)
    assert isinstance(made, JobPlan)
    events, now = [event_of(TABLE)], TABLE
    for step in made.job.steps:
        now = apply_edits(now, step.edits)
        events.append(event_of(now, edits=tuple(edit.to_wire() for edit in step.edits)))
    return events


def test_each_step_says_what_it_changed() -> None:
    belt = ColumnDefinition("belt", Type("integer"), nullable=False, default=0)
    events = steps_of(AlterTable("flights", (AddColumn(belt), RenameColumn("gate", "exit"))))
    words = [json.loads(encode_event(event))["diff"]["words"] for event in events]
    assert words[0] == [
        "column id added, public (bigint not null)",
        "column gate added, public (text)",
    ]
    assert words[1:3] == [
        ["column belt added, delete-only (integer not null default 0)"],
        [
            "column gate is now named exit: now text also named gate",
            "column belt: delete-only → public",
        ],
    ]
    assert words[3:] == [["column exit: now text"]]
    for before, event in pairwise(events):
        found = before_event(event)
        assert found is not None
        assert replace(found, next_element_id=0, modified_us=0) == replace(
            from_wire(before.body), next_element_id=0, modified_us=0
        )
        assert json.loads(encode_event(event))["diff"]["from"] == before.version


def test_a_version_that_no_job_made_changed_nothing() -> None:
    event = event_of(replace(TABLE, version=2))
    assert json.loads(encode_event(event))["diff"] == {"from": 1, "words": [], "changes": []}


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        ("bytea", b"\x00\xff", "\\x00ff"),
        ("double precision", float("inf"), "Infinity"),
        ("double precision", "NaN", "NaN"),
        ("date", 366, "1971-01-02"),
    ],
)
def test_what_images_lack_is_told_in_json(kind: str, value: Any, told: Any) -> None:
    column = Column(2, "gate", Type(kind), nullable=False, missing=Missing(3, value))
    table = replace(TABLE, version=4, columns=(TABLE.columns[0], column))
    data = encode_event(event_of(table))
    assert json.loads(data)["elements"][1]["missing"] == {"below": 3, "value": told}
    assert from_wire(decode_event(data).body).by_id[2] == column


def test_what_differs_by_row_is_told_without_a_value() -> None:
    """Who knows one value for all alone looks for it, and stops."""
    first = Missing(3, b"\x00", at_once=True)
    sources = (Source(1, "b", Type("bytea"), first), Source(7, "n", Type("numeric", None, 5, 2)))
    missing = Missing(4, None, computed=Computed("n || 'x'", Type("varchar", 3), sources))
    column = Column(2, "gate", Type("varchar", 3), missing=missing)
    table = replace(TABLE, version=4, columns=(TABLE.columns[0], column))
    data = encode_event(event_of(table))
    told = json.loads(data)["elements"][1]["missing"]
    assert told.keys() == {"below", "computed"}
    assert told["computed"] == {
        "expression": "n || 'x'",
        "type": "varchar",
        "length": 3,
        "sources": [
            {
                "id": 1,
                "name": "b",
                "type": "bytea",
                "length": None,
                "missing": {"below": 3, "value": "\\x00", "at_once": True},
            },
            {
                "id": 7,
                "name": "n",
                "type": "numeric",
                "length": None,
                "precision": 5,
                "scale": 2,
                "missing": None,
            },
        ],
    }
    assert from_wire(decode_event(data).body).by_id[2] == column
    field = avro_schema(table)["fields"][1]
    assert field["default"] is None, "no value is that of all rows"


def test_a_default_that_has_changed_is_not_shown_for_older_data() -> None:
    column = Column(2, "gate", Type("text"), False, "B2", missing=Missing(3, "A1"))
    told = avro_schema(replace(TABLE, version=4, columns=(TABLE.columns[0], column)))
    assert told["fields"][1]["default"] == "A1"


def test_the_names_that_programs_rely_on() -> None:
    index = Index(3, "by_gate", (2,))
    table = replace(TABLE, indexes=(index,), next_element_id=4)
    told = json.loads(encode_event(event_of(table, job_id=3, step="public", job=JOB)))
    assert told["format"] == 1
    assert {n: told[n] for n in ("table", "table_id", "version", "lsn", "commit_us", "state")} == {
        "table": "flights",
        "table_id": 1,
        "version": 1,
        "lsn": 40,
        "commit_us": 9,
        "state": "public",
    }
    assert told["primary_key"] == [1]
    assert told["job"] == {"id": 3, "to": "public", **JOB}
    assert told["avro"] == avro_schema(table)
    assert told["json_schema"] == json_schema(table)
    assert told["left_out"] == []
    gate, by_gate = told["elements"][1:]
    named = ("id", "kind", "name", "state", "type", "nullable", "default", "definition")
    assert [gate[n] for n in named] == [2, "column", "gate", "public", "text", True, None, "text"]
    assert [by_gate[n] for n in ("id", "kind", "columns", "definition")] == [
        3,
        "index",
        [2],
        "on (gate)",
    ]


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_an_infinite_default_has_a_json_form(value: float) -> None:
    column = Column(3, "ratio", Type("double precision"), default=value)
    event = event_of(replace(TABLE, columns=(*TABLE.columns, column), next_element_id=4))
    assert from_wire(decode_event(encode_event(event)).body).by_name["ratio"].default == value


# ------------------------------------------------------------------ as large as may be


EXPRESSIONS = Index(
    2_000, "i", (0, 0, 3), expressions=("(1 + 1)", "lower('x')"), predicate="true", included=(4,)
)


def largest(default: str | None, character: str = '"', generated: str = "") -> VersionEvent:
    """1,000 columns, 64 indexes, 64 checks, every name as long as names may be."""
    derived = Derived((1,), generated, strict=True, generated=True) if generated else None

    def name(number: int) -> str:
        ending = f"{number:04d}"
        return character * ((NAME_BYTES_MAX - len(ending)) // len(character.encode())) + ending

    columns = [Column(1, name(1), Type("bigint"), nullable=False)]
    columns += [
        Column(e, name(e), Type("text"), default=default, alias=name(e + 5_000), derived=derived)
        for e in range(2, COLUMNS_MAX + 1)
    ]
    every = tuple(range(1, 33))
    predicate = f"{name(2)} <> '{default or ''}'" if default else ""
    indexes = [
        Index(2_000 + n, name(2_000 + n), every, predicate=predicate, mentioned=(2,))
        for n in range(INDEXES_MAX)
    ]
    checks = [
        Check(3_000 + n, name(3_000 + n), f"{name(2)} <> '{default or ''}'", (2,))
        for n in range(CHECKS_MAX)
    ]
    table = Descriptor(
        *(1, name(0), 1, tuple(columns), (1,), tuple(indexes)),
        next_element_id=9_000,
        checks=tuple(checks),
    )
    return event_of(table, job_id=1, job={**JOB, "sql": default or ""})


def test_a_table_with_all_columns_that_it_may_have_is_told_whole() -> None:
    data = encode_event(largest(None, "n"))
    assert json.loads(data)["left_out"] == []
    assert len(data) < EVENT_BYTES_MAX


@pytest.mark.parametrize(
    ("character", "characters", "left_out"),
    [
        ("n", 370, ["avro"]),
        ("n", 700, ["diff", "json_schema"]),
        ("n", 1_500, ["diff", "avro", "json_schema"]),
        ("n", 5_000, ["long texts", "diff", "avro", "json_schema"]),
        ("\x01", 700, ["long texts", "diff", "avro", "json_schema"]),
    ],
)
def test_what_does_not_fit_is_left_out_and_rows_can_be_decoded_still(
    character: str, characters: int, left_out: list[str]
) -> None:
    """A control character takes six bytes in JSON."""
    event = largest(character * characters, character)
    data = encode_event(event)
    assert len(data) <= EVENT_BYTES_MAX
    assert json.loads(data)["left_out"] == left_out
    found = from_wire(decode_event(data).body)
    whole = from_wire(event.body)
    assert [(c.element_id, c.name, c.type, c.state) for c in found.columns] == [
        (c.element_id, c.name, c.type, c.state) for c in whole.columns
    ]
    assert found.primary_key == whole.primary_key


@pytest.mark.parametrize("longs", [256, 4_096])
def test_long_expressions_of_generated_columns_are_left_out_too(longs: int) -> None:
    event = largest(None, "n", generated="\x01" * longs)
    data = encode_event(event)
    assert len(data) <= EVENT_BYTES_MAX
    found = from_wire(decode_event(data).body)
    assert all(c.generated for c in found.columns[1:]), "that they take no value is told always"


def test_an_expression_is_told_by_name() -> None:
    derived = Derived((1,), "id + 1", strict=True, generated=True)
    made = Column(3, "g", Type("bigint"), derived=derived)
    decided = Column(4, "at", Type("timestamptz"), default_expression="now()")
    columns = (*TABLE.columns, made, decided)
    event = event_of(replace(TABLE, columns=columns, next_element_id=5))
    told = json.loads(encode_event(event))
    shown = {e["name"]: (e["generated"], e["default_expression"]) for e in told["elements"]}
    assert (shown["g"], shown["at"]) == (("id + 1", ""), (None, "now()"))
    assert told["avro"]["fields"][2]["leasehold.generated"] == "id + 1"
    assert told["json_schema"]["properties"]["g"]["readOnly"]
    assert "generated always as (id + 1) stored" in told["elements"][2]["definition"]
    assert from_wire(decode_event(encode_event(event)).body) == from_wire(event.body)


def test_an_index_whose_texts_are_left_out_can_be_read() -> None:
    event = largest("n" * 5_000, "n")
    found = from_wire(decode_event(encode_event(event)).body)
    whole = from_wire(event.body)
    assert found.indexes == tuple(replace(i, predicate="") for i in whole.indexes)
    short = replace(whole, columns=whole.columns[:40], indexes=(EXPRESSIONS,), checks=())
    data = encode_event(event_of(short))
    assert from_wire(decode_event(data).body).indexes == (EXPRESSIONS,)
    body = dict(json.loads(data))
    (told,) = (e for e in body["elements"] if e["kind"] == "index")
    assert told["expressions"] == list(EXPRESSIONS.expressions)
    assert told["definition"].endswith(" where true")


def test_the_worst_that_is_always_told_fits() -> None:
    assert len(encode_event(largest("\x01" * 256, "\x01"))) <= EVENT_BYTES_MAX
