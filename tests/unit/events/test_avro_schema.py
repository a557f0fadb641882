"""Goal: what a row is and what a schema says of it never differ, through every step of a change.

Method: fastavro, an implementation that is not ours, writes and reads rows of random tables; the
steps of changes come from the real plan.
"""

from __future__ import annotations

import io
from decimal import Decimal
from itertools import pairwise
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import apply_edits
from leasehold.catalog.elements import Column
from leasehold.catalog.states import State
from leasehold.events.avro_schema import (
    avro_name,
    avro_numbers,
    avro_record_name,
    avro_row,
    avro_schema,
    named_in_avro,
)
from leasehold.events.rows import decode_row
from leasehold.model.records.events import RowImage
from leasehold.model.records.log import DescriptorWrite
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import JobPlan
from leasehold.sql.syntax.statements import (
    AddColumn,
    AlterTable,
    AlterType,
    Change,
    ColumnDefinition,
    CreateIndex,
    DropColumn,
    DropNotNull,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetNotNull,
)
from leasehold.values.types import Type
from tests.support.sql_session.made_tables import NAMES, descriptors, rows, storage_values

TABLE = Descriptor(
    1,
    "the flights",
    1,
    (
        Column(1, "id", Type("bigint"), nullable=False),
        Column(2, "gate", Type("varchar", 8)),
        Column(3, "seats", Type("integer"), nullable=False, default=3),
        Column(4, "left at", Type("timestamptz")),
    ),
    (1,),
    next_element_id=5,
)


def alter(action: Any) -> AlterTable:
    return AlterTable("the flights", (action,))


def added(name: str, kind: str, **more: Any) -> AlterTable:
    return alter(AddColumn(ColumnDefinition(name, Type(kind), **more)))


CHANGES: dict[str, Change] = {
    "nullable column": added("belt", "text"),
    "nullable column with default": added("belt", "integer", default=5),
    "required column": added("belt", "boolean", nullable=False, default=1),
    "required bytes": added("raw", "bytea", nullable=False, default=b"\x00\xff"),
    "required numeric": added("fee", "numeric", nullable=False, default="DQ15 2"),
    "required decimal": alter(
        AddColumn(
            ColumnDefinition("fee", Type("numeric", None, 9, 3), nullable=False, default="BLmlj~3")
        )
    ),
    "drop column": alter(DropColumn("gate")),
    "drop required column": alter(DropColumn("seats")),
    "rename column": alter(RenameColumn("left at", "gone")),
    "rename table": alter(RenameTable("departures")),
    "alter type": alter(AlterType("seats", Type("bigint"))),
    "set default": alter(SetDefault("gate", "'A1'")),
    "drop default": alter(SetDefault("seats", None)),
    "set not null": alter(SetNotNull("gate")),
    "drop not null": alter(DropNotNull("seats")),
    "index": CreateIndex("by_gate", "the flights", ("gate",)),
}


def written(schema: Any, row: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, row, strict=True)
    return out.getvalue()


def read(data: bytes, writer: Any, reader: Any = None) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(data), writer, reader)


def values_of(descriptor: Descriptor, image: dict[int, Any]) -> dict[str, Any]:
    key = tuple(image[e] for e in descriptor.primary_key)
    row = RowImage(descriptor.table_id, key, {}, 5, descriptor.version, 1, image)
    values = decode_row(descriptor, key, row).values
    assert values is not None
    return values


@given(st.data())
def test_every_row_of_every_table_comes_back(data: st.DataObject) -> None:
    descriptor = data.draw(descriptors())
    values = values_of(descriptor, data.draw(rows(descriptor)))
    row = avro_numbers(avro_schema(descriptor), avro_row(values))
    schema = fastavro.parse_schema(avro_schema(descriptor))
    assert nan_as_text(read(written(schema, row), schema)) == nan_as_text(row)


def nan_as_text(value: Any) -> Any:
    """For comparison: Python's NaN differs from itself, in an array too."""
    match value:
        case dict():
            return {name: nan_as_text(each) for name, each in value.items()}
        case list():
            return [nan_as_text(each) for each in value]
    return "NaN" if value != value else value


@given(NAMES)
def test_names_come_back_and_are_names(name: str) -> None:
    for mangled in (avro_name(name), avro_record_name(name)):
        assert named_in_avro(mangled) == name
        assert mangled.isascii()
        assert mangled.isidentifier()


def test_a_good_name_stays_as_it_is_and_a_word_of_avro_does_not_name_a_record() -> None:
    assert avro_name("seats_left") == "seats_left"
    assert avro_name("int") == "int"
    assert avro_record_name("int") == "_x69_nt"
    assert avro_name("left at") == "left_x20_at"


def steps_of(change: Change) -> list[Descriptor]:
    """The table before the change and after each of its steps."""
    catalog = Catalog()
    catalog.apply(DescriptorWrite(1, 1, TABLE.to_wire()), 0, 1)
    made = plan(change, catalog)
    assert isinstance(made, JobPlan)
    versions = [TABLE]
    for step in made.job.steps:
        versions.append(apply_edits(versions[-1], step.edits))
    return versions


def expected(old: Descriptor, new: Descriptor, image: dict[int, Any]) -> dict[int, Any]:
    """What PostgreSQL shows after the change of a row that was there before it. A column that has
    changed its type is another element of the same name, with the same value."""

    def shown(column: Column) -> Any:
        same = old.by_id.get(column.element_id)
        if same is None or same.state is not State.PUBLIC:
            same = old.by_name.get(column.name)
        return column.default if same is None else image[same.element_id]

    return {**image, **{column.element_id: shown(column) for column in new.by_name.values()}}


@pytest.mark.parametrize("name", CHANGES)
@settings(max_examples=20)
@given(data=st.data())
def test_data_of_each_version_is_read_with_the_schema_of_the_next(
    name: str, data: st.DataObject
) -> None:
    """And the other way round, by whoever has not heard of the step yet: rows then hold only what
    both versions allow (d ⊨ S under both)."""
    versions = steps_of(CHANGES[name])
    for old, new in pairwise(versions):
        image = both_allow(data, old, new)
        for writer, reader in ((old, new), (new, old)):
            if reader is old and not foreseen(old, new):
                continue
            write = fastavro.parse_schema(avro_schema(writer))
            row = avro_numbers(avro_schema(writer), avro_row(values_of(writer, image)))
            found = read(written(write, row), write, fastavro.parse_schema(avro_schema(reader)))
            shown = values_of(reader, expected(writer, reader, image))
            wanted = avro_numbers(avro_schema(reader), avro_row(shown))
            assert as_underlying(found, reader) == wanted, (writer, reader)


def both_allow(data: st.DataObject, old: Descriptor, new: Descriptor) -> dict[int, Any]:
    image: dict[int, Any] = {}
    for column in (*old.columns, *new.columns):
        values = storage_values(column.type)
        if column.nullable and image.get(column.element_id) is None:
            image.setdefault(column.element_id, data.draw(st.none() | values))
        elif image.get(column.element_id) is None:
            image[column.element_id] = data.draw(values)
    return image


def foreseen(old: Descriptor, new: Descriptor) -> bool:
    """Can a reader at the old version read what the new one writes? Not where it misses a column
    that each row must have, nor a name that was given since: aliases are the reader's to tell. Nor
    a type that is wider."""
    wider = any(new.by_id[e].type != old.by_id[e].type for e in old.public_ids & new.public_ids)
    if wider:
        return False
    gone = old.public_ids - new.public_ids
    renamed = any(new.by_id[c.element_id].name != c.name for c in old.by_name.values() if not gone)
    return old.name == new.name and not renamed and not any(old.by_id[e].required for e in gone)


def as_underlying(row: dict[str, Any], reader: Descriptor) -> dict[str, Any]:
    """fastavro hands a field's default over as the schema spells it; bytes are spelled as text."""
    found = dict(row)
    for column in reader.by_name.values():
        name = avro_name(column.name)
        if column.type.name == "bytea" and isinstance(found[name], str):
            found[name] = found[name].encode("latin-1")
        if column.type.precision is not None and isinstance(found[name], str):
            unscaled = int.from_bytes(found[name].encode("latin-1"), "big", signed=True)
            found[name] = Decimal(unscaled).scaleb(-(column.type.scale or 0))
    return found


def test_only_public_columns_are_told_with_ids_types_and_words() -> None:
    hidden = Column(5, "belt", Type("text"), state=State.WRITE_ONLY)
    schema = avro_schema(
        Descriptor(7, "int", 4, (*TABLE.columns, hidden), (1,), next_element_id=6, alias="a b")
    )
    assert (schema["name"], schema["aliases"]) == ("_x69_nt", ["a_x20_b"])
    assert [field["name"] for field in schema["fields"]] == ["id", "gate", "seats", "left_x20_at"]
    assert schema["fields"][2] == {
        "name": "seats",
        "doc": "integer not null default 3",
        "type": "int",
        "default": 3,
        "leasehold.column": "seats",
        "leasehold.element_id": 3,
        "leasehold.type": "integer",
    }
    assert schema["fields"][3]["type"][1] == {"type": "long", "logicalType": "timestamp-micros"}
