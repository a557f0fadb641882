"""Columns of bytes between Arrow and Python."""

from __future__ import annotations

from typing import Any


def bytes_of(column: Any) -> list[Any]:
    """An Arrow column of bytes as a list, NULL as None; `to_pylist` would make a scalar of each."""
    found: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return found
