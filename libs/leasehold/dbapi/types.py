"""PEP 249's constructors of values, and its types: what a column's `type_code` is equal to."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Final

Date = date
Time = time
Timestamp = datetime
Binary = bytes


def DateFromTicks(ticks: float) -> date:  # noqa: N802 - PEP 249's name
    """Return a date of `ticks`, seconds since 1970 in UTC, which sessions are in."""
    return TimestampFromTicks(ticks).date()


def TimeFromTicks(ticks: float) -> time:  # noqa: N802 - PEP 249's name
    return TimestampFromTicks(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802 - PEP 249's name
    return datetime.fromtimestamp(ticks, UTC)


class TypeGroup:
    """Equal to the `type_code` of each of its types, lengths and precisions apart."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other.partition("(")[0] in self._names
        return self is other

    def __hash__(self) -> int:
        return hash(self._names)


STRING: Final = TypeGroup("text", "varchar", "char", "uuid", "inet", "cidr", "json", "jsonb")
BINARY: Final = TypeGroup("bytea")
NUMBER: Final = TypeGroup("smallint", "integer", "bigint", "numeric", "real", "double precision")
DATETIME: Final = TypeGroup("date", "time", "timetz", "timestamp", "timestamptz", "interval")
ROWID: Final = TypeGroup()
"""There are none: rows are known by their primary keys."""
