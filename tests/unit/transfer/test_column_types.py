"""Goal: what PostgreSQL writes of a value becomes what a change request has for it."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.transfer.column_types import find_reader
from leasehold.values.storage import to_storage
from leasehold.values.text_io import from_text
from leasehold.values.types import parse_type


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("real", "0.1", 0.1),
        ("real", "NaN", "NaN"),
        ("integer[]", "{1,NULL,-3}", [1, None, -3]),
        ("text[]", '{a,"b c",NULL}', ["a", "b c", None]),
        ("numeric(5,2)[]", "{1.50}", ["1.50"]),
        ("character varying(3)[]", "{abc}", ["abc"]),
        ("time(3) without time zone[]", "{10:20:30.5}", ["10:20:30.500000"]),
        ("bytea[]", r'{"\\x00ff"}', ["\\x00ff"]),
    ],
)
def test_a_values_text_is_read(kind: str, text: str, value: Any) -> None:
    read = find_reader(kind)
    assert read is not None
    assert read(text) == value
    made = parse_type(kind)
    assert to_storage(made)(read(text)) == from_text(made, text)
