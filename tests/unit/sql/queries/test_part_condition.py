"""Conditions by which a replica has some rows of a table: which are ranges of its key."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Lock
from leasehold.catalog.part import ColumnValue, KeyRange, RowsWanted
from leasehold.model.errors import ConfigurationError
from leasehold.sql.planning.part_condition import read_condition
from leasehold.values.types import Type

COLUMNS = (
    Column(1, "id", Type("bigint"), nullable=False),
    Column(2, "name", Type("text"), nullable=False),
)
SEATS = Descriptor(1, "seats", 1, COLUMNS, (1,), next_element_id=3)
BY_NAME = replace(SEATS, primary_key=(2, 1))


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("id >= 100 AND id < 200", 100, 200),
        ("id > 99 AND id <= 199", 100, 200),
        ("id BETWEEN 100 AND 199", 100, 200),
        ("200 > id AND 100 <= id", 100, 200),
        ("seats.id = 7", 7, 8),
        ("id >= 5 AND id >= 9", 9, None),
        ("id < 5", None, 5),
    ],
)
def test_a_range_of_the_key(text: str, low: Any, high: Any) -> None:
    assert read_condition(SEATS, text) == RowsWanted(KeyRange(low, high))


def test_a_range_of_texts() -> None:
    assert read_condition(BY_NAME, "name = 'b'") == RowsWanted(KeyRange("b", "b\0"))
    wanted = RowsWanted(KeyRange("b", "c"))
    assert read_condition(BY_NAME, "name >= 'b' AND name < 'c'") == wanted


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("name = 'b'", KeyRange()),
        ("'b' = seats.name", KeyRange()),
        ("id >= 100 AND name = 'b'", KeyRange(100, None)),
        ("name = 'b' AND id = 7", KeyRange(7, 8)),
    ],
)
def test_a_value_of_another_column(text: str, keys: KeyRange) -> None:
    assert read_condition(SEATS, text) == RowsWanted(keys, ColumnValue(2, "b"))


def test_a_value_is_of_a_type_that_is_stored_as_it_is_compared() -> None:
    price = Column(3, "price", Type("numeric", precision=10, scale=2))
    priced = replace(SEATS, columns=(*COLUMNS, price))
    with pytest.raises(ConfigurationError, match="values of 'price', which is numeric"):
        read_condition(priced, "price = 5")


def test_of_rows_with_several_locks_none_is_held_by_a_value() -> None:
    locked = replace(SEATS, row_locks=(Lock(9, "own"),))
    with pytest.raises(ConfigurationError, match="several locks"):
        read_condition(locked, "name = 'b'")
    assert read_condition(locked, "id = 7") == RowsWanted(KeyRange(7, 8))


@pytest.mark.parametrize(
    "text",
    [
        "name > 'b'",
        "name = 'b' AND name = 'c'",
        "name IN ('b')",
        "name = id::text",
        "upper(name) = 'B'",
        "id = 1 OR id = 2",
        "id IN (1, 2)",
        "id % 2 = 0",
        "id >= 1.5",
        "id IS NULL",
        "id > (SELECT 1)",
        "id > 5; DROP TABLE seats",
        "id > $1",
        "nothing > 5",
        "true",
        "",
        "id >= 5 AND id < 5",
    ],
)
def test_anything_else_is_refused_with_the_tables_name(text: str) -> None:
    with pytest.raises(ConfigurationError, match="'seats'"):
        read_condition(SEATS, text)


def test_a_key_without_ranges_is_held_whole() -> None:
    key = replace(COLUMNS[0], type=Type("numeric", precision=10, scale=2))
    with pytest.raises(ConfigurationError, match="by ranges"):
        read_condition(replace(SEATS, columns=(key, COLUMNS[1])), "id > 5")
