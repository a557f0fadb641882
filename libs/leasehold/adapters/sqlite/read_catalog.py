"""The catalog as readers of a store have it: newest descriptors by name, kept versions, min
versions, and who may do what, as of one count of changes.

A change of one table is read as one of that table: a thousand others cost a copy of their
pointers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import apsw
import msgpack

from leasehold.adapters.sqlite.access import read_access
from leasehold.adapters.sqlite.catalog import read_min_versions
from leasehold.adapters.sqlite.layout import OF_ACCESS
from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import Descriptor, from_wire

CATALOGS_KEPT_MAX: Final = 4
"""Those of snapshots that are open beside each other."""
_ALL: Final = "SELECT table_id, version, body FROM descriptors ORDER BY table_id, version"
_OF_TABLE: Final = "SELECT version, body FROM descriptors WHERE table_id = ? ORDER BY version"
_MIN_VERSION: Final = "SELECT version FROM min_versions WHERE table_id = ?"
_CHANGES: Final = "SELECT table_id FROM catalog_changes WHERE changes > ? AND changes <= ?"


class ReadCatalog(NamedTuple):
    """Newest descriptors by every name they have, min versions, and who may do what, as of one
    count of changes. `referring`: of a table that enforced foreign keys refer to, by id, the ids of
    the tables that have them."""

    changes: int
    newest: dict[str, Descriptor]
    versions: dict[int, tuple[Descriptor, ...]]
    min_versions: dict[int, int]
    access: Access
    referring: dict[int, tuple[int, ...]]


class CatalogReader:
    """What was read is kept: of a table whose bytes are the same its descriptors stay the same
    objects, so that plans for them stay good. Thread-safe: of two that read at once one is
    forgotten."""

    def __init__(self) -> None:
        self._kept: dict[int, ReadCatalog] = {}  # by their counts, newest last
        self._decoded: dict[tuple[int, int], tuple[bytes, Descriptor]] = {}
        self.newest: ReadCatalog | None = None
        """The one of the highest count that was read."""

    def at(self, count: int, connection: apsw.Connection) -> ReadCatalog:
        """Return the catalog of the snapshot that `connection` has open, of that count: equal
        counts mean equal catalogs."""
        found = self._kept.get(count)
        if found is None:
            newest = self.newest
            changed = None if newest is None else _changed_tables(connection, newest.changes, count)
            if newest is None or changed is None:
                found = self._read_all(count, connection)
            else:
                found = self._read_changed(newest, changed, count, connection)
            self._keep(found)
        return found

    def _keep(self, found: ReadCatalog) -> None:
        kept = {**self._kept, found.changes: found}
        for count in sorted(kept)[:-CATALOGS_KEPT_MAX]:
            del kept[count]
        self._kept = kept
        if self.newest is None or self.newest.changes < found.changes:
            self.newest = found

    def _read_all(self, count: int, connection: apsw.Connection) -> ReadCatalog:
        rows: list[Any] = connection.execute(_ALL).fetchall()
        found: dict[int, list[Descriptor]] = {}
        decoded: dict[tuple[int, int], tuple[bytes, Descriptor]] = {}
        for table_id, version, body in rows:
            one = decoded[table_id, version] = self._decode(table_id, version, body)
            found.setdefault(table_id, []).append(one[1])
        self._decoded = decoded
        versions = {table_id: tuple(kept) for table_id, kept in found.items()}
        access = Access.load(*read_access(connection))
        lowest = read_min_versions(connection)
        referring: dict[int, tuple[int, ...]] = {}
        for table_id, there in versions.items():
            _let_refer(referring, table_id, (), there)
        return ReadCatalog(count, _by_name(versions), versions, lowest, access, referring)

    def _read_changed(
        self, before: ReadCatalog, changed: Collection[int], count: int, connection: apsw.Connection
    ) -> ReadCatalog:
        versions, lowest = dict(before.versions), dict(before.min_versions)
        decoded = dict(self._decoded)
        newest: dict[str, Descriptor] | None = dict(before.newest)
        referring = dict(before.referring)
        for table_id in sorted(changed):
            if table_id == OF_ACCESS:
                continue
            was = versions.pop(table_id, ())
            for descriptor in was:
                decoded.pop((table_id, descriptor.version), None)
            rows: list[Any] = connection.execute(_OF_TABLE, (table_id,)).fetchall()
            if rows:
                kept = [(version, self._decode(table_id, version, body)) for version, body in rows]
                decoded.update({(table_id, version): one for version, one in kept})
                versions[table_id] = tuple(one for _, (_, one) in kept)
            fence: list[Any] = connection.execute(_MIN_VERSION, (table_id,)).fetchall()
            lowest.pop(table_id, None)
            if fence:
                lowest[table_id] = fence[0][0]
            newest = _with_names(newest, was, versions.get(table_id, ()))
            _let_refer(referring, table_id, was, versions.get(table_id, ()))
        self._decoded = decoded
        access = before.access
        if OF_ACCESS in changed:
            access = Access.load(*read_access(connection))
        by_name = _by_name(versions) if newest is None else newest
        return ReadCatalog(count, by_name, versions, lowest, access, referring)

    def _decode(self, table_id: int, version: int, body: bytes) -> tuple[bytes, Descriptor]:
        same = self._decoded.get((table_id, version))
        if same is not None and same[0] == body:
            return same
        return body, from_wire(msgpack.unpackb(body, strict_map_key=False))


def _changed_tables(connection: apsw.Connection, since: int, count: int) -> set[int] | None:
    """Return which tables the changes after the first `since` were of, OF_ACCESS among them; None:
    not all of them are known."""
    if count < since:
        return None
    rows: list[Any] = connection.execute(_CHANGES, (since, count)).fetchall()
    return {table_id for (table_id,) in rows} if len(rows) == count - since else None


def _let_refer(
    referring: dict[int, tuple[int, ...]],
    table_id: int,
    was: tuple[Descriptor, ...],
    there: tuple[Descriptor, ...],
) -> None:
    """Let `referring` have a table as its newest version refers to others, in place of what it
    `was`."""
    before, now = _parents(was), _parents(there)
    for parent in before - now:
        referring[parent] = tuple(each for each in referring[parent] if each != table_id)
    for parent in now - before:
        referring[parent] = (*referring.get(parent, ()), table_id)


def _parents(versions: tuple[Descriptor, ...]) -> set[int]:
    """Return the ids of the tables that the newest of these versions refers to."""
    return {key.parent for key in versions[-1].enforced_foreign_keys} if versions else set()


def _by_name(versions: dict[int, tuple[Descriptor, ...]]) -> dict[str, Descriptor]:
    """Return the newest version by each name. Of two tables that have one, since one takes the
    other's place, that is the later one."""
    return {
        name: versions[table][-1]
        for table in sorted(versions)
        for name in versions[table][-1].names
    }


def _with_names(
    newest: dict[str, Descriptor] | None,
    was: tuple[Descriptor, ...],
    there: tuple[Descriptor, ...],
) -> dict[str, Descriptor] | None:
    """Return the newest versions by name with those of one table anew. None: names are gone, or are
    those of another table, too, so that all have to be gathered again."""
    if newest is None:
        return None
    names = set(there[-1].names) if there else set()
    before = set(was[-1].names) if was else set()
    if before - names or any(
        name in newest and newest[name].table_id != there[-1].table_id for name in names
    ):
        return None
    newest.update(dict.fromkeys(names, there[-1]) if there else {})
    return newest
