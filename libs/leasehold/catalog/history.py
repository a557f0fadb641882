"""Descriptors of the past: which one was current at an LSN, and which nobody need keep any more.

A version is current from the LSN of the commit that published it up to the next one's. Under what
was current at an LSN its rows can be read: the data was consistent with it then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import NotCoherent, SnapshotTooOld, UnknownTable


class History(NamedTuple):
    """The past that is kept as of one moment. `tables`: kept versions of each, oldest first;
    everything current at `floor_lsn` or later is among them; `newest_lsn`: of the newest commit
    there is."""

    tables: Iterable[Sequence[Descriptor]]
    floor_lsn: int
    newest_lsn: int

    def table_at(self, name: str, lsn: int) -> Descriptor:
        """Return the version of the table that was called `name` at `lsn`, current then.

        Raises SnapshotTooOld (72000) below the floor, NotCoherent (57P03) above the newest commit,
        UnknownTable when no table was called so then.
        """
        check_kept(self.floor_lsn, lsn, self.newest_lsn)
        for versions in self.tables:
            found = find_current(versions, lsn)
            if found is not None and name in found.names:
                return found
        raise UnknownTable(f"table {name!r} did not exist at LSN {lsn:,}", table=name)


def check_kept(floor_lsn: int | None, lsn: int, newest_lsn: int | None = None) -> None:
    """Refuse to read at an LSN whose rows and descriptors are not known. `floor_lsn` None: no row
    of the past is kept.

    Raises SnapshotTooOld (72000) below the floor, NotCoherent (57P03) above the newest commit.
    """
    if newest_lsn is not None and lsn > newest_lsn:
        raise NotCoherent(
            f"LSN {lsn:,} lies ahead: {newest_lsn:,} is the newest here; wait for it, or"
            " ask for an earlier one"
        )
    if floor_lsn is None:
        raise SnapshotTooOld(
            f"no rows of the past are kept here (LEASEHOLD_ROW_HISTORY_MS is 0), and LSN {lsn:,}"
            " was asked for; set it on every node, or read what is there now"
        )
    if lsn < floor_lsn:
        raise SnapshotTooOld(
            f"the history before LSN {floor_lsn:,} is no longer kept, and LSN {lsn:,} was"
            " asked for; ask for a later one",
            floor_lsn=floor_lsn,
        )


def find_current(versions: Sequence[Descriptor], lsn: int) -> Descriptor | None:
    """Return, of one table's versions, oldest first, the one current at `lsn`; None when the oldest
    was published after it."""
    then = [descriptor for descriptor in versions if descriptor.since_lsn <= lsn]
    return then[-1] if then else None


def tables_at(tables: Iterable[Sequence[Descriptor]], lsn: int) -> tuple[Descriptor, ...]:
    """Return, of each table, the version that was current then, where the table could be named."""
    found = (find_current(versions, lsn) for versions in tables)
    return tuple(then for then in found if then is not None and then.names)


class Ended(NamedTuple):
    """A version that was current for the last time just before `until_lsn`."""

    table_id: int
    version: int
    until_lsn: int


def ended_before(
    versions: Sequence[Descriptor], min_version: int, before_us: int
) -> Iterator[Ended]:
    """Yield, of one table's versions, those that nobody may use (D5) and nobody asks for: another
    took their place in a commit before that time. The newest is never among them."""
    for descriptor, after in pairwise(versions):
        if descriptor.version >= min_version or after.modified_us >= before_us:
            return
        yield Ended(descriptor.table_id, descriptor.version, after.since_lsn)
