"""The reader of AS OF: which moment of the past a transaction reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from leasehold.model.errors import MomentOutOfRange
from leasehold.values.date_text import timestamp_of_text
from leasehold.values.dates import AsOf, infinite_word, is_infinite
from leasehold.values.integers import whole

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_of_text(text: str) -> AsOf:
    """Digits alone are an LSN; else it is a time, in UTC where it names no zone. Raises
    InvalidMoment (22007), MomentOutOfRange (22008)."""
    given = text.strip()
    if given.isascii() and given.isdigit():
        return whole(given)
    at = timestamp_of_text(given, zoned=True)
    if is_infinite(at):
        raise MomentOutOfRange(f"AS OF {infinite_word(at)} names no moment of the past")
    return _EPOCH + timedelta(microseconds=at)
