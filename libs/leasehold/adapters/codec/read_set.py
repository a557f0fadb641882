"""A request's read set, and what it asks of a barrier: plain arrays in the order of their records'
fields (MessagePack).

Keys are storage values, as they lie in a store; a program writes them, not a person. Whether
tables and indexes exist, and how many parts their keys have, is asked when it is judged.
"""

from __future__ import annotations

from typing import Any, Final

from leasehold.adapters.codec.record_shape import record_restorer
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.requests import BarrierRequest, ReadSet

_RESTORE: Final = record_restorer(ReadSet)
_RESTORE_BARRIER: Final = record_restorer(BarrierRequest)
NAME_CHARACTERS_MAX: Final = 256
_NUMBERS_END: Final = 1 << 62
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


def decode_barrier(value: Any) -> BarrierRequest:
    """Return the barrier that a request asks for. Raises MalformedRequest."""
    try:
        found: BarrierRequest = _RESTORE_BARRIER(_as_tuples(value))
    except (ValueError, TypeError, LookupError) as error:
        raise MalformedRequest(f"'barrier': {str(error)[:200]}", field="barrier") from error
    check, repair, part = found
    numbers = (-1 if check is None else check, *(part[::2] if part else ()))
    after = part.after if part else ()
    if (
        not all(-1 <= number < _NUMBERS_END for number in numbers)
        or len(repair) > NAME_CHARACTERS_MAX
        or not repair.isprintable()
        or not all(type(value) in _PLAIN for value in after)
        or (check is None and (repair or part))
    ):
        raise MalformedRequest(
            "'barrier': expected a table to check, or none, and nothing of it else", field="barrier"
        )
    return found


def _keys(table: Any) -> Any:
    yield from table.keys
    yield from (seen.key for seen in table.visited)
    for part in table.ranges:
        yield from (part.equal, part.low, part.high)


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if type(value) is list else value
