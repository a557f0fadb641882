"""Rows as a reader of one version sees them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from uuid import UUID

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Missing
from leasehold.catalog.states import State
from leasehold.events.avro_schema import avro_schema
from leasehold.events.rows import decode_row
from leasehold.model.records.events import RowImage, RowLeftOut
from leasehold.schema_change.plan.primary_key import hidden_column
from leasehold.values.types import Type
from tests.support.descriptors import with_state

DAY = Column(2, "day", Type("date"))
GATE = Column(3, "gate", Type("text"), state=State.WRITE_ONLY)
V1 = Descriptor(
    7, "flights", 1, (Column(1, "id", Type("integer"), nullable=False), DAY, GATE), (1,)
)
IMAGE = RowImage(7, (5,), {0: 9}, 40, 1, 123, {1: 5, 2: 366, 3: "B4", 8: "a later column's"})


def test_values_have_names_and_python_types() -> None:
    row = decode_row(V1, (5,), IMAGE)
    assert row.key == {"id": 5}
    assert row.values == {"id": 5, "day": date(1971, 1, 2)}
    assert (row.table, row.lsn, row.version, row.made_under) == ("flights", 40, 1, 1)


def test_of_a_row_that_was_too_large_there_is_its_key_and_how_large_it_was() -> None:
    """It is no row that was deleted, and none without values either."""
    row = decode_row(V1, (5,), RowLeftOut(*IMAGE[:-1], 9_000_000))
    assert row.key == row.values == {"id": 5}
    assert (row.lsn, row.made_under, row.left_out_bytes) == (40, 1, 9_000_000)
    assert decode_row(V1, (5,), IMAGE).left_out_bytes == 0


@pytest.mark.parametrize("state", [State.DELETE_ONLY, State.WRITE_ONLY])
def test_elements_that_are_not_public_are_hidden(state: State) -> None:
    hidden = replace(V1, columns=(*V1.columns[:2], replace(GATE, state=state)))
    values = decode_row(hidden, (5,), IMAGE).values
    assert values is not None
    assert "gate" not in values


def test_t7_a_hidden_key_tells_which_row_it_is_and_stands_in_no_image() -> None:
    key = "019365f0-0000-7000-8000-000000000001"
    table = replace(V1, columns=(*V1.columns[1:], hidden_column(9)), primary_key=(9,))
    image = IMAGE._replace(key=(key,), values={2: 366, 9: key})
    row = decode_row(table, (key,), image)
    assert row.key == {"": UUID(key)}
    assert row.values == {"day": date(1971, 1, 2)}
    assert [field["name"] for field in avro_schema(table)["fields"]] == ["day"]


def test_a_public_column_without_a_pair_is_null() -> None:
    public = with_state(V1, 3, State.PUBLIC)
    image = IMAGE._replace(values={1: 5, 2: None})
    assert decode_row(public, (5,), image).values == {"id": 5, "day": None, "gate": None}


def test_a_pair_that_was_filled_by_key_is_put_into_older_images() -> None:
    gate = replace(GATE, state=State.PUBLIC, missing=Missing(3, "A1"))
    newest = replace(V1, version=4, columns=(*V1.columns[:2], gate))
    for made_under, expected in ((2, "A1"), (3, None)):
        image = IMAGE._replace(version=made_under, values={1: 5})
        assert decode_row(newest, (5,), image).values == {"id": 5, "day": None, "gate": expected}


def test_a_deleted_row_has_a_key_and_no_values() -> None:
    row = decode_row(V1, (5,), None)
    assert row.values is None
    assert row.key == {"id": 5}
