"""Rules of copying a table under another key by ranges: which are copied so, by which index, and
what the digest of the rows is. PURE.

A range is one of the new key, in the order of the unique index that the old table has over it: so
whether a row is copied already is told by its key as it is now, whatever it was before. In each
store the rows of a range are those of the old table at the range's own place in the log, without
those that are there: who has written a row since the other table is written has written both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import DELETED
from leasehold.sql.expressions.default import is_random
from leasehold.values.types import sort_key_of

DIGEST_PRIME: Final = (1 << 31) - 1
"""Squares of what is below it have a place in 63 bits, and so has the sum of a million of them."""


def find_copying_index(source: Descriptor, target: Descriptor) -> Index | None:
    """Return the unique index of `source` that has its rows in the order of the key of `target`;
    None: these rows are not copied by ranges.

    An entry that is computed is computed for each row, a key that may be drawn or made up when a
    row is written is nothing to cut ranges by, and of some types (numeric) an entry has what stands
    for a value in an order, by which no row is found: those are filled by images.
    """
    if any(index.computed for index in target.indexes if index.state in DELETED):
        return None
    for column in target.key_columns:
        if _may_be_made_up(column) or sort_key_of(column.type) is not None:
            return None
    for index in source.indexes:
        keeps_apart = index.refuses_duplicates and not index.computed
        if keeps_apart and index.columns == target.primary_key:
            return index
    return None


def _may_be_made_up(column: Column) -> bool:
    if column.hidden or column.draws_from:
        return True
    return bool(column.default_expression) and is_random(column.default_expression)


def digest_genids(rows: Iterable[tuple[int, ...]]) -> int:
    """Return the digest of rows by the genids of their locks, in whatever order they come: no two
    versions of rows have one genid, and each says all that a row holds. It is what
    `digest_expression` has SQL compute."""
    found = 0
    for genids in rows:
        for number, genid in enumerate(genids, 1):
            part = genid % DIGEST_PRIME
            found += number * (part * part % DIGEST_PRIME)
    return found


def digest_expression(genids: Iterable[str]) -> str:
    """Return the SQL of a row's part of the digest, its genids being what these expressions give:
    their sum over all rows is the digest."""
    parts = (
        f"{number} * ((({genid}) % {DIGEST_PRIME}) * (({genid}) % {DIGEST_PRIME}) % {DIGEST_PRIME})"
        for number, genid in enumerate(genids, 1)
    )
    return " + ".join(parts)
