"""What a transaction has read: gathered while it runs, and judged by the master (T1).

Gathered in the same words in which it was read: a key, a range of the primary key or of an index,
or the table. Bounded: beyond a limit single keys or ranges become the table, which refuses more
than is needed, and never less.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.states import READABLE
from leasehold.model.budget import RangeLooks, RangeTooLong
from leasehold.model.errors import MalformedRequest, UnknownColumn, VerifyError
from leasehold.model.keys import Key
from leasehold.model.ports import RowSource
from leasehold.model.records.events import Genids
from leasehold.model.records.requests import ReadRange, ReadSet, TableReads, Visited
from leasehold.transaction.locks import effective_genids

KEYS_MAX: Final = 1_000
RANGES_MAX: Final = 100
VISITED_MAX: Final = 5_000
LOOKED_STEPS_MAX: Final = 3_000_000
"""Of all ranges of one request: about 1,000,000 rows of a primary key, or 50,000 entries of an
index with their rows. What is longer counts as the whole table."""
PRIMARY: Final = 0


class Past(RowSource, Protocol):
    """The part of `model.ports.StoreWriter` that is asked of a master's own store."""

    def kept_from(self, table_id: int) -> int | None: ...
    def last_write(self, table_id: int) -> int: ...
    def written_in(
        self, descriptor: Descriptor, index_id: int, part: ReadRange, lsn: int, looks: RangeLooks
    ) -> Key | None: ...
    def gone_from(
        self, descriptor: Descriptor, index_id: int, part: ReadRange, lsn: int, looks: RangeLooks
    ) -> Key | None: ...


# ---------------------------------------------------------------- gathering


@dataclass(slots=True)
class _Read:
    descriptor: Descriptor
    keys: dict[Key, None] = field(default_factory=dict)
    ranges: dict[ReadRange, None] = field(default_factory=dict)
    whole: bool = False
    visited: dict[Key, Visited] = field(default_factory=dict)

    def become_whole(self) -> None:
        """Let it be the whole table, of which no key and no range has to be kept."""
        self.whole = True
        self.keys.clear()
        self.ranges.clear()


class ReadsSoFar:
    """Filled by a transaction's statements."""

    def __init__(self) -> None:
        self._tables: dict[int, _Read] = {}

    def _of(self, descriptor: Descriptor) -> _Read:
        return self._tables.setdefault(descriptor.table_id, _Read(descriptor))

    def key(self, descriptor: Descriptor, key: Key) -> None:
        """A row was looked up, whether or not it was there."""
        read = self._of(descriptor)
        if not read.whole:
            read.keys[key] = None
            if len(read.keys) > KEYS_MAX:
                read.become_whole()

    def range(self, descriptor: Descriptor, part: ReadRange) -> None:
        read = self._of(descriptor)
        if not read.whole:
            read.ranges[part] = None
            if part == ReadRange() or len(read.ranges) > RANGES_MAX:
                read.become_whole()

    def table(self, descriptor: Descriptor) -> None:
        self._of(descriptor).become_whole()

    def visited(self, descriptor: Descriptor, key: Key, genids: Genids) -> None:
        """SELECTV or FOR UPDATE has shown a row with those genids. Raises MalformedRequest for too
        many."""
        read = self._of(descriptor)
        read.visited.setdefault(key, _seen(descriptor, key, genids))
        if len(read.visited) > VISITED_MAX:
            raise MalformedRequest(
                f"SELECTV and FOR UPDATE may visit {VISITED_MAX} rows of table"
                f" {descriptor.name!r} in one transaction; use isolation level serializable for"
                " more"
            )

    def read_set(self, lsn: int) -> ReadSet | None:
        """Return what was read as of `lsn`, None when nothing is to be verified."""
        if not self._tables:
            return None
        return ReadSet(lsn, tuple(map(_table_reads, self._tables.values())))


def _table_reads(read: _Read) -> TableReads:
    descriptor = read.descriptor
    return TableReads(
        descriptor.name,
        descriptor.version,
        tuple(read.keys),
        tuple(read.ranges),
        read.whole,
        tuple(read.visited.values()),
    )


# ---------------------------------------------------------------- judging


def check_reads(reads: ReadSet, catalog: Catalog, past: Past) -> dict[int, int]:
    """Return the version used of each table by its id (D5).

    Raises VerifyError (40001) where anything of it was written since (T1), StaleVersion,
    UnknownTable, UnknownColumn and MalformedRequest for a key that the table has not.
    """
    versions: dict[int, int] = {}
    looks = RangeLooks(LOOKED_STEPS_MAX)
    for table in reads.tables:
        descriptor = catalog.resolve(table.table, table.version)
        versions[descriptor.table_id] = descriptor.version
        for seen in table.visited:
            _check_visited(descriptor, seen, past)
        if table.whole or table.keys or table.ranges:
            _check_table(descriptor, table, reads.lsn, past, looks)
    return versions


def _check_visited(descriptor: Descriptor, seen: Visited, past: Past) -> None:
    key = seen.key
    _fits(descriptor, len(key), len(descriptor.primary_key))
    row = past.row(descriptor, key)
    if row is None or _seen(descriptor, key, row.genids) != seen:
        raise _changed(descriptor, f"row {key!r:.200} was locked, or visited by SELECTV", key)


def _seen(descriptor: Descriptor, key: Key, genids: Genids) -> Visited:
    now = effective_genids(descriptor, genids)
    return Visited(key, tuple((lock, now.get(lock, 0)) for lock in descriptor.locks))


def _check_table(
    descriptor: Descriptor, read: TableReads, lsn: int, past: Past, looks: RangeLooks
) -> None:
    name, floor = descriptor.name, past.kept_from(descriptor.table_id)
    if floor is None or lsn < floor:
        raise VerifyError(
            f"whether what was read of table {name!r} at LSN {lsn:,} has changed is not known any"
            " more: its history is not kept for so long (LEASEHOLD_ROW_HISTORY_MS)",
            table=name,
        )
    if past.last_write(descriptor.table_id) <= lsn:
        return
    if read.whole:
        raise _changed(descriptor, f"it was read whole at LSN {lsn:,}", ())
    width = len(descriptor.primary_key)
    for key in read.keys:
        _fits(descriptor, len(key), width)
        _check_part(descriptor, PRIMARY, ReadRange("", key), lsn, past, looks)
    for part in read.ranges:
        index_id, width = _key_read(descriptor, part.by)
        longest = len(part.equal) + max(len(part.low), len(part.high))
        _fits(descriptor, max(longest, width), width)
        _check_part(descriptor, index_id, part, lsn, past, looks)


def _check_part(
    descriptor: Descriptor,
    index_id: int,
    part: ReadRange,
    lsn: int,
    past: Past,
    looks: RangeLooks,
) -> None:
    try:
        found = past.written_in(descriptor, index_id, part, lsn, looks)
        if found is None:
            found = past.gone_from(descriptor, index_id, part, lsn, looks)
    except RangeTooLong:
        words = f"a range of it was read at LSN {lsn:,} that is too long to be looked through now"
        raise _changed(descriptor, words, ()) from None
    if found is not None:
        raise _changed(descriptor, f"row {found!r:.200} was written since LSN {lsn:,}", found)


def _key_read(descriptor: Descriptor, index: str) -> tuple[int, int]:
    """Return (index id, parts of its key)."""
    if not index:
        return PRIMARY, len(descriptor.primary_key)
    found = descriptor.read_index(index)
    if found is None or found.state not in READABLE:
        raise UnknownColumn(f"index {index!r} does not exist", index=index)
    return found.element_id, len(found.columns)


def _fits(descriptor: Descriptor, parts: int, width: int) -> None:
    if parts != width:
        raise MalformedRequest(
            f"a key of table {descriptor.name!r} that was read has {parts} parts, and not the"
            f" {width} that it should have",
            table=descriptor.name,
        )


def _changed(descriptor: Descriptor, words: str, key: Key) -> VerifyError:
    return VerifyError(
        f"verify error in table {descriptor.name!r}, which this transaction has read: {words}",
        table=descriptor.name,
        key=list(key),
    )
