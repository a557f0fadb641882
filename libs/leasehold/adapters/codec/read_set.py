"""A request's read set: plain arrays in the order of its records' fields (MessagePack).

Keys are storage values, as they lie in a store; a program writes a read set, not a person. Whether
tables and indexes exist, and how many parts their keys have, is asked when it is judged.
"""

from __future__ import annotations

from typing import Any, Final

from leasehold.adapters.codec.record_shape import record_restorer
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.requests import ReadSet

_RESTORE: Final = record_restorer(ReadSet)
_PLAIN: Final = (str, int, float, bytes, bool, type(None))


def decode_reads(value: Any) -> ReadSet:
    """Return the read set that a request's field holds. Raises MalformedRequest."""
    try:
        found: ReadSet = _RESTORE(_as_tuples(value))
    except (ValueError, TypeError, LookupError) as error:
        raise MalformedRequest(f"'reads': {str(error)[:200]}", field="reads") from error
    keys = (key for table in found.tables for key in _keys(table))
    if found.lsn < 0 or not all(type(part) in _PLAIN for key in keys for part in key):
        raise MalformedRequest("'reads': invalid LSN or key part", field="reads")
    return found


def _keys(table: Any) -> Any:
    yield from table.keys
    yield from (seen.key for seen in table.visited)
    for part in table.ranges:
        yield from (part.equal, part.low, part.high)


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if type(value) is list else value
