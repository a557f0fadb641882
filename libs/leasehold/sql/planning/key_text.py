"""What SQLite takes of a stored value of a keyed type, so that it compares as PostgreSQL does: SQL
for `types.sort_key_of`."""

from __future__ import annotations

from leasehold.values.interval import KEY_DIGITS
from leasehold.values.types import Type, null_in_entries


def null_text(kind: Type | None) -> str:
    """Return SQL for what stands for NULL in entries of an index over such values."""
    return "x''" if null_in_entries(kind) == b"" else "''"


def key_text(kind: Type, value: str) -> str:
    """Return SQL for the sort key of `value`, itself SQL."""
    if kind.name == "interval":
        return f"substr({value}, 1, {KEY_DIGITS})"
    assert kind.name == "numeric", kind
    return f"substr({value}, 1, length({value}) - 1)"
