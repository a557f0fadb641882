"""Writes of one row in a transaction that changes tables are told as what they come to."""

from __future__ import annotations

from typing import Any, Final

from leasehold.model.records.requests import Expression, Operation, OperationKind
from leasehold.replica.joined_writes import join_writes

KEYS: Final = {"t": frozenset({"id"})}
INSERT, UPDATE, DELETE = OperationKind.INSERT, OperationKind.UPDATE, OperationKind.DELETE


def said(kind: OperationKind, key: int, table: str = "t", **values: Any) -> Operation:
    return Operation(kind, table, (key,), values)


def test_updates_are_joined_to_what_has_written_the_row_before() -> None:
    asked = [said(INSERT, 1, a=1), said(UPDATE, 2, a=5), said(UPDATE, 1, b=2), said(UPDATE, 2, a=6)]
    assert join_writes(asked, KEYS) == [said(INSERT, 1, a=1, b=2), said(UPDATE, 2, a=6)]


def test_what_was_seen_before_the_first_is_verified_still() -> None:
    first = said(UPDATE, 1, a=1)._replace(expect=7)
    assert join_writes([first, said(UPDATE, 1, b=2)], KEYS)[0].expect == 7


def test_a_row_that_goes_between_begins_anew() -> None:
    asked = [said(INSERT, 1, a=1), said(DELETE, 1), said(INSERT, 1, a=2), said(UPDATE, 1, b=3)]
    assert join_writes(asked, KEYS) == [*asked[:2], said(INSERT, 1, a=2, b=3)]


def test_what_is_computed_moved_or_of_another_table_stays_as_it_is() -> None:
    asked = [
        said(UPDATE, 1, a=Expression("a + 1")),
        said(UPDATE, 1, a=Expression("a + 1")),
        said(UPDATE, 2, id=3),
        said(UPDATE, 2, a=3),
        said(UPDATE, 1, "other", a=1),
        said(UPDATE, 1, "other", a=2),
    ]
    assert join_writes(asked, KEYS) == asked
