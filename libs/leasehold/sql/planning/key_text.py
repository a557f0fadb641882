"""What SQLite takes of a stored value of a keyed type, so that it compares as PostgreSQL does: SQL
for `types.sort_key_of`."""

from __future__ import annotations

from leasehold.values.interval import KEY_DIGITS
from leasehold.values.types import Type


def key_text(kind: Type, value: str) -> str:
    """Return SQL for the sort key of `value`, itself SQL."""
    if kind.name == "interval":
        return f"substr({value}, 1, {KEY_DIGITS})"
    assert kind.name == "numeric", kind
    return f"substr({value}, 1, length({value}) - 1)"
