"""What every refusal of a statement has: a class, words, a position."""

from __future__ import annotations

from typing import TypeAlias

import pytest

from leasehold.model.errors import Refused
from leasehold.sql.ddl.schema_statements import parse_ddl

Refusal: TypeAlias = tuple[str, type[Refused], int]
"""The statement, the error, and its position in characters from 1."""


def check_refusal(sql: str, error: type[Refused], position: int) -> None:
    with pytest.raises(Refused) as caught:
        parse_ddl(sql)
    assert type(caught.value) is error, caught.value
    assert caught.value.detail["position"] == position, caught.value
    assert len(caught.value.message) > 10
