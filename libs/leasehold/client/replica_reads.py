"""Coherent reads on a local store, and the descriptor versions that a transaction pins (D8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from leasehold.adapters.clock import boottime_ns
from leasehold.adapters.sqlite_snapshot import SqliteSnapshot
from leasehold.adapters.sqlite_store import SqliteStore
from leasehold.lease.held_leases import HeldLease, HeldLeases, Use
from leasehold.model.errors import MalformedRequest, NotCoherent
from leasehold.model.ports import Row
from leasehold.model.records import Key
from leasehold.replication.coherency import CoherencyLease
from leasehold.schema.descriptor import Descriptor, Index
from leasehold.schema.entries import key_types
from leasehold.schema.types import Type, sort_key_of, to_storage
from leasehold.transaction.binding import binding
from leasehold.transaction.pinned import check_pinned


class Reads:
    """Statements of one user; `close` gives the pinned versions back.

    The coherency lease is looked at before every snapshot is taken (C2), and the pinned version
    is compared with `min_version` *inside* that snapshot (D3 ⚠): between a check and a read the
    store may have moved on by two versions.
    """

    def __init__(
        self,
        store: SqliteStore,
        coherency: CoherencyLease,
        leases: HeldLeases | None,
        users_left: Callable[[], None],
        label: str = "",
    ) -> None:
        """`label` names the user to those who wait for a version that it has pinned."""
        self._store = store
        self._coherency = coherency
        self._leases = leases
        self._users_left = users_left
        self._use = None if leases is None else Use(label, "", boottime_ns())
        self._pinned: dict[str, tuple[Descriptor, HeldLease | None]] = {}

    def says(self, sql: str) -> None:
        """What its user does now, for those who wait for it."""
        if self._use is not None:
            self._use.sql = sql

    def snapshot(self) -> SqliteSnapshot:
        """Raises NotCoherent: this replica may have missed a write that was answered."""
        if not self._coherency.holds(boottime_ns()):
            raise NotCoherent(
                "this replica is not coherent now: it has no valid lease from the master; wait"
                " for it (`wait_coherent`) or read elsewhere"
            )
        return self._store.open_snapshot()

    def pin(self, table: str) -> Descriptor:
        """The version this transaction uses of `table`. Raises UnknownTable, StaleVersion."""
        found = self._pinned.get(table)
        if found is not None:
            return found[0]
        with self.snapshot() as snapshot:
            newest: Descriptor = snapshot.newest(table)
            lease = None
            if self._leases is not None and self._use is not None:
                lease = self._leases.acquire_named(newest.table_id, self._use)
            descriptor = newest
            if lease is not None and lease.version != newest.version:
                versions = {d.version: d for d in snapshot.versions(newest.table_id)}
                # The agent may be a moment behind or ahead of this snapshot; what the snapshot
                # has decides, and a write is fenced by the master anyway (D5).
                descriptor = versions.get(lease.version, newest)
        self._pinned[table] = (descriptor, lease)
        return descriptor

    def key(self, descriptor: Descriptor, key: Any) -> Key:
        """A key as given by a user → storage form. Raises what `Binding.key` raises."""
        given = key if isinstance(key, tuple | Mapping) else (key,)
        return binding(descriptor).key(given)

    def bound(self, descriptor: Descriptor, key: Any) -> Key | None:
        """A bound of a scan: None, or a key or a prefix of one."""
        if key is None:
            return None
        given = key if isinstance(key, tuple) else (key,)
        return binding(descriptor).key_prefix(given)

    def index_key(self, descriptor: Descriptor, index: Index, given: Sequence[Any]) -> Key:
        """The first parts of an index's key in storage form. Raises MalformedRequest for more than
        it has, and what the types raise."""
        kinds = key_types(descriptor, index)
        if len(given) > len(kinds):
            raise MalformedRequest(
                f"the key of index {index.name!r} has {len(kinds)} parts; {len(given)} values were"
                " given",
                index=index.name,
            )
        return tuple(_keyed(kind, value) for kind, value in zip(kinds, given, strict=False))

    def used(self) -> dict[str, int]:
        """Every table of this transaction with its pinned version, those only read included."""
        return {table: descriptor.version for table, (descriptor, _) in self._pinned.items()}

    def row(self, descriptor: Descriptor, key: Key) -> Row | None:
        with self.snapshot() as snapshot:
            check_pinned(descriptor, snapshot.min_version(descriptor.table_id))
            return snapshot.get(descriptor, key)

    def scan(
        self, descriptor: Descriptor, low: Key | None, high: Key | None, rows_max: int
    ) -> Iterator[tuple[Key, Row]]:
        with self.snapshot() as snapshot:
            check_pinned(descriptor, snapshot.min_version(descriptor.table_id))
            yield from snapshot.scan(descriptor, low, high, rows_max=rows_max)

    def close(self) -> None:
        for _, lease in self._pinned.values():
            if lease is None or self._leases is None or self._use is None:
                continue
            if self._leases.release_named(lease, self._use):
                self._users_left()
        self._pinned.clear()


def _keyed(kind: Type, value: Any) -> Any:
    """An outside value as an index's entries hold it."""
    stored, key = to_storage(kind)(value), sort_key_of(kind)
    return stored if key is None or stored is None else key(stored)
