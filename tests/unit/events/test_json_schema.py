"""Goal: the JSON Schema of a version takes every row that the version allows, and no other.

Method: the validator of the `jsonschema` package, its format checks included.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.states import State
from leasehold.events.json_schema import json_schema
from leasehold.values.types import Type
from tests.support.descriptors import row_json
from tests.support.sql_session.made_tables import descriptors, rows


def validator(descriptor: Descriptor) -> Draft202012Validator:
    schema = json_schema(descriptor)
    Draft202012Validator.check_schema(schema)
    checker = Draft202012Validator.FORMAT_CHECKER
    return Draft202012Validator(json.loads(json.dumps(schema)), format_checker=checker)


@given(st.data())
def test_every_row_that_a_table_may_hold_is_valid(data: st.DataObject) -> None:
    descriptor = data.draw(descriptors())
    image = data.draw(rows(descriptor))
    row = row_json(descriptor, (image[1],), image)
    assert row.keys() == descriptor.by_name.keys()
    validator(descriptor).validate(json.loads(json.dumps(row)))


TABLE = Descriptor(
    1,
    "flights",
    6,
    (
        Column(1, "id", Type("smallint"), nullable=False),
        Column(2, "gate", Type("varchar", 3), default="A1"),
        Column(3, "day", Type("date"), nullable=False),
        Column(4, "raw", Type("bytea")),
        Column(5, "hidden", Type("text"), state=State.WRITE_ONLY),
        Column(6, "left", Type("timestamp")),
        Column(7, "landed", Type("timestamptz")),
        Column(8, "ticket", Type("uuid")),
        Column(9, "late", Type("boolean")),
        Column(10, "heat", Type("double precision"), default="NaN"),
    ),
    (1,),
)
GOOD: dict[str, Any] = {"id": 7, "day": "2013-01-31"}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"gate": None, "raw": "\\x00ff", "late": False},
        {"left": "2013-01-31T05:17:00", "landed": "2013-01-31T05:17:00.000001+00:00"},
        {"ticket": "0191e4a6-0000-7000-8000-000000000001"},
        *({"heat": heat} for heat in (None, 1, -1.5, "NaN", "Infinity", "-Infinity")),
    ],
)
def test_null_may_be_left_out(more: dict[str, Any]) -> None:
    validator(TABLE).validate({**GOOD, **more})


@pytest.mark.parametrize(
    "more",
    [
        {"id": 32_768},
        {"id": None},
        {"id": "7"},
        *({"heat": heat} for heat in ("nan", "1.5", "", True)),
        {"day": None},
        {"day": "2013-02-31"},
        {"gate": "long"},
        {"raw": "00ff"},
        {"raw": "\\x0"},
        {"hidden": "x"},
        {"left": "2013-01-31T05:17:00+00:00"},
        {"landed": "2013-01-31T05:17:00"},
        {"ticket": "0191"},
        {"late": 1},
        {"nobody": 1},
    ],
)
def test_what_no_such_row_holds_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        validator(TABLE).validate({**GOOD, **more})


@pytest.mark.parametrize("name", ["id", "day"])
def test_a_row_without_a_column_that_is_not_null_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        validator(TABLE).validate({column: v for column, v in GOOD.items() if column != name})


def test_defaults_and_words_stand_beside_the_types() -> None:
    assert json_schema(TABLE)["properties"]["gate"] == {
        "type": ["string", "null"],
        "maxLength": 3,
        "description": "varchar(3) default 'A1'",
        "default": "A1",
    }
