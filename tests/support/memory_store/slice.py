"""A slice of a check on a store in memory: of the whole report, what lies in a range of the rows or
of one index's entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

from leasehold.catalog.elements import Index
from leasehold.model.keys import Key
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import CheckSlice
from leasehold.schema_change.coordinator.verification import as_if_public
from tests.support.memory_store.check import check_contents, data_of, unmerged
from tests.support.memory_store.contents import Contents


def check_slice(
    held: Contents, subject: bytes, table_id: int, elements: Sequence[int], part: CheckSlice
) -> CheckReport:
    """One table's report on `part`; with `elements` of those alone, as if they were public."""
    whole = check_contents(held, subject, table_id, elements)
    if whole.error:
        return whole
    wanted = as_if_public(held.versions(table_id)[-1], elements)
    data = data_of(held, table_id)
    content: list[Any]
    if part.part:
        index = wanted.element(part.part)
        wanted_part = None if part.part in unmerged(held) else part.part
        entries = {(*values, *key): key for i, values, key in data.entries if i == wanted_part}
        assert isinstance(index, Index), "a part is the rows, or an index"
        inside, until = _cut(entries, part, len(index.columns) if index.unique else 0)
        keys = {entries[entry] for entry in inside}
        found = [f for f in whole.findings if f[1] == part.part and f[0] in (5, 6) and f[2] in keys]
        counts, rows, content = {part.part: len(inside)}, 0, list(inside)
    else:
        inside, until = _cut(data.exists, part, 0)
        found = [f for f in whole.findings if f[0] != 5 and _within(f[2], part, until)]
        pairs = [sorted(held.pairs.get((table_id, key), {}).items()) for key in inside]
        counts, rows, content = {}, len(inside), [*zip(inside, pairs, strict=True)]
    return whole._replace(
        rows=rows,
        entries=counts,
        checksum=blake2b(repr(content).encode(), digest_size=16).digest(),
        rows_checksum=b"",
        findings_total=len(found),
        findings=tuple(found),
        until=until,
    )


def _order(key: Key) -> tuple[tuple[bool, str, Any], ...]:
    """NULL last, as everywhere."""
    return tuple((v is None, type(v).__name__, 0 if v is None else v) for v in key)


def _within(key: Key, part: CheckSlice, until: Key | None) -> bool:
    above = not part.after or not key or _order(key) > _order(tuple(part.after))
    return above and (until is None or _order(key) <= _order(until))


def _cut(lying: Iterable[Key], part: CheckSlice, head: int) -> tuple[list[Key], Key | None]:
    """The slice, and its last key if there is more; it ends behind the last of the same `head`
    first values, if that is not 0 and none of them is NULL."""
    above = sorted((key for key in lying if _within(key, part, None)), key=_order)
    size = min(part.rows_max, len(above))
    while head and 0 < size < len(above) and None not in above[size][:head]:
        if above[size][:head] != above[size - 1][:head]:
            break
        size += 1
    return above[:size], above[size - 1] if size < len(above) else None
