"""Columns between Arrow and Python."""

from __future__ import annotations

from typing import Any


def as_list(column: Any) -> list[Any]:
    """An Arrow column as a list, NULL as None; `to_pylist` would make a scalar of each value. Not
    for numbers that may be NULL."""
    found: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return found
