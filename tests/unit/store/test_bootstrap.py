"""When a node's store begins from another node's snapshot."""

from __future__ import annotations

from leasehold.adapters.bootstrap import is_far_behind
from leasehold.model.records import LogPosition


def test_an_empty_store_copies_where_one_with_data_catches_up() -> None:
    """A new replica once applied a whole load again, record by record, and became coherent too
    late for whoever opened it."""
    assert is_far_behind(LogPosition(), end=1_000)
    assert not is_far_behind(LogPosition(offset=9_000), end=10_000)
    assert is_far_behind(LogPosition(offset=9_000), end=20_000)


def test_a_log_that_has_hardly_begun_is_read() -> None:
    assert not is_far_behind(LogPosition(), end=20)
