"""Coherent reads on a local store, and the descriptor versions that a transaction pins (D8)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Index
from leasehold.catalog.namespaces import qualified
from leasehold.catalog.schema_names import HIDDEN
from leasehold.catalog.states import READABLE
from leasehold.lease.agent.held_leases import HeldLease, HeldLeases, Use
from leasehold.model.budget import Budget
from leasehold.model.errors import (
    FeatureNotSupported,
    MalformedRequest,
    NotCoherent,
    StaleVersion,
    UnknownColumn,
    UnknownTable,
)
from leasehold.model.keys import Key
from leasehold.model.ports import Row, Snapshots, StoreSnapshot
from leasehold.sql.expressions.key_types import key_types
from leasehold.transaction.binding import binding
from leasehold.transaction.pinned_version import check_pinned
from leasehold.values.storage import to_storage
from leasehold.values.types import Type, sort_key_of


class LooksUp(Protocol):
    """What of a snapshot is asked while a statement has it open."""

    def newest(self, table: str) -> Any: ...

    def versions(self, table_id: int) -> Sequence[Any]: ...

    def get(self, descriptor: Descriptor, key: Key) -> Row | None: ...


class Reads:
    """Statements of one user; `close` gives the pinned versions back.

    The coherency lease is looked at before every snapshot is taken (C2), and the pinned version
    is compared with `min_version` *inside* that snapshot (D3 ⚠): between a check and a read the
    store may have moved on by two versions. Both are needed for what is newest only: what was there
    at a `snapshot_lsn` (an LSN) does not change, and is read under the versions of then (D8).
    """

    def __init__(
        self,
        store: Snapshots,
        coherent: Callable[[], bool],
        leases: HeldLeases | None,
        users_left: Callable[[], None],
        label: str = "",
        snapshot_lsn: int | None = None,
    ) -> None:
        """Begin, with nothing pinned. `label` names the user to those who wait for a version that
        it has pinned."""
        self._store = store
        self._coherent = coherent
        self.snapshot_lsn = snapshot_lsn
        self._leases = leases
        self._users_left = users_left
        self._use = None if leases is None else Use(label, "", boottime_ns())
        self._open: LooksUp | None = None
        self._pinned: dict[str, tuple[Descriptor, HeldLease | None]] = {}
        self._made: Mapping[str, Descriptor] = {}
        self._temporary: Mapping[str, Descriptor] = {}
        self._gone: Container[str] = ()
        self._changed: Mapping[str, tuple[str, Descriptor, str]] = {}
        self._budget: Budget | None = None

    @property
    def budget(self) -> Budget:
        """Return the budget of what the transaction keeps until `close`."""
        if self._budget is None:
            self._budget = self._store.open_budget()
        return self._budget

    def show_activity(self, sql: str) -> None:
        """Keep what its user does now, for those who wait for it."""
        if self._use is not None:
            self._use.sql = sql

    def become_block(self, block: Reads) -> None:
        """Last from here on as `block`, of which nothing was asked yet: what was used is leased,
        too. It keeps the version that it was used under (D8): if that is too old by now, the next
        snapshot tells, and for what was written the master (D5)."""
        self._leases, self._users_left, self._use = block._leases, block._users_left, block._use
        if self._leases is None or self._use is None:
            return
        for table, (descriptor, lease) in self._pinned.items():
            assert lease is None, "a read that holds leases has been made to last before"
            lease = self._leases.acquire_named(descriptor.table_id, self._use)
            self._pinned[table] = (descriptor, lease)

    def use_schema(
        self,
        made: Mapping[str, Descriptor],
        gone: Container[str],
        changed: Mapping[str, tuple[str, Descriptor, str]] | None = None,
        temporary: Mapping[str, Descriptor] | None = None,
    ) -> None:
        """Keep tables that this transaction makes, which no store has, names of those that it drops
        or renames, and of those that it changes, by the name that they have for it, the one for
        others, how they will be, and why their rows are closed to it, if they are. `temporary`: the
        session's own, which hide others of their names."""
        self._made, self._gone, self._changed = made, gone, changed or {}
        self._temporary = temporary or {}

    def name_of(self, table: Descriptor) -> str:
        """Return what `pin` finds a table by that it has given."""
        hidden = table.name in self._temporary and not table.temporary
        return HIDDEN + table.name if hidden else table.name

    def snapshot(self) -> StoreSnapshot:
        """Open a snapshot. Raises NotCoherent: this replica may have missed a write that was
        answered; as of a moment SnapshotTooOld, when that is no longer kept."""
        if self.snapshot_lsn is not None:
            return self._at(self.snapshot_lsn)
        self.check_coherent()
        return self._store.open_snapshot()

    def brief_snapshot(self) -> SqliteSnapshot:
        """Open a snapshot of what is newest, for one statement that surely ends soon. Raises
        NotCoherent."""
        self.check_coherent()
        snapshot = self._store.open_snapshot(brief=True)
        assert isinstance(snapshot, SqliteSnapshot), "on a store of this process"
        return snapshot

    def check_coherent(self) -> None:
        """Raise NotCoherent where a snapshot of what is newest may miss a write (C2)."""
        if not self._coherent():
            raise NotCoherent(
                "this replica is not coherent now: it has no valid lease from the master; wait"
                " for it (`wait_coherent`) or read elsewhere"
            )

    def _at(self, snapshot_lsn: int) -> StoreSnapshot:
        snapshot = self._store.open_snapshot()
        try:
            return snapshot.as_of(snapshot_lsn)
        except BaseException:
            snapshot.close()
            raise

    def pin(self, table: str) -> Descriptor:
        """Return the version that this transaction uses of a table. Raises UnknownTable."""
        own = self._temporary.get(table)
        if own is not None:
            return own
        table = table.removeprefix(HIDDEN)
        made = self._made.get(table)
        if made is not None:
            return made
        if table in self._gone:
            raise UnknownTable(f"table {table!r} does not exist", table=table)
        changed = self._changed.get(table)
        if changed is not None:
            return self._pin_changed(*changed)
        found = self._pinned.get(table)
        if found is not None:
            return found[0]
        if self._open is not None:
            return self._pin(table, self._open)
        with self.snapshot() as snapshot:
            return self._pin(table, snapshot)

    def _pin_changed(self, name: str, table: Descriptor, closed: str) -> Descriptor:
        """Pin a table that the transaction changes, and return it as that leaves it."""
        if closed:
            raise FeatureNotSupported(
                f"this very transaction changes table {table.name!r}: its rows can't be read and"
                f" written before that is committed, since {closed}",
                hint="Do it before the table is changed, or behind COMMIT.",
                table=table.name,
            )
        found = self._pinned.get(name)
        if found is None and self._open is not None:
            pinned = self._pin(name, self._open)
        elif found is None:
            with self.snapshot() as snapshot:
                pinned = self._pin(name, snapshot)
        else:
            pinned = found[0]
        if pinned.version != table.version:
            raise StaleVersion(
                f"table {name!r} was changed by others since this transaction has changed it; run"
                " it again",
                table=name,
            )
        return table

    def give_back(self, tables: Container[int]) -> None:
        """Give back the pinned versions of tables, of which nothing is read any more."""
        for name, (descriptor, lease) in list(self._pinned.items()):
            if descriptor.table_id in tables:
                del self._pinned[name]
                self._release(lease)

    def _release(self, lease: HeldLease | None) -> None:
        if lease is None or self._leases is None or self._use is None:
            return
        if self._leases.release_named(lease, self._use):
            self._users_left()

    def _pin(self, table: str, snapshot: LooksUp) -> Descriptor:
        newest: Descriptor = snapshot.newest(table)
        lease = None
        if self._leases is not None and self._use is not None:
            lease = self._leases.acquire_named(newest.table_id, self._use)
        descriptor = newest
        if self.snapshot_lsn is None and lease is not None and lease.version != newest.version:
            versions = {d.version: d for d in snapshot.versions(newest.table_id)}
            # The agent may be a moment behind or ahead of this snapshot; what the snapshot
            # has decides, and a write is fenced by the master anyway (D5).
            descriptor = versions.get(lease.version, newest)
        self._pinned[table] = (descriptor, lease)
        return descriptor

    def bound(self, descriptor: Descriptor, key: Any) -> Key | None:
        """Return a bound of a scan in storage form: None, or a key or a prefix of one."""
        if key is None:
            return None
        given = key if isinstance(key, tuple) else (key,)
        return binding(descriptor).key_prefix(given)

    def index_key(self, descriptor: Descriptor, index: Index, given: Sequence[Any]) -> Key:
        """Return the first parts of an index's key in storage form. Raises MalformedRequest for
        more than it has, and what the types raise."""
        kinds = key_types(descriptor, index)
        if len(given) > len(kinds):
            raise MalformedRequest(
                f"the key of index {index.name!r} has {len(kinds)} parts; {len(given)} values were"
                " given",
                index=index.name,
            )
        return tuple(_keyed(kind, value) for kind, value in zip(kinds, given, strict=False))

    def used(self) -> dict[str, int]:
        """Return every table of this transaction with its pinned version, those only read
        included."""
        return {table: descriptor.version for table, (descriptor, _) in self._pinned.items()}

    def index(self, name: str) -> tuple[Descriptor, Index]:
        """Return a public index, `table.index` or its name alone, with its table's pinned version.
        Raises UnknownColumn."""
        with self.snapshot() as snapshot:
            found, _ = public_index(snapshot.tables(), name)
        pinned = self.pin(found.name)
        return public_index((pinned,), name)

    def _check_pinned(self, descriptor: Descriptor, snapshot: StoreSnapshot) -> None:
        if self.snapshot_lsn is None:
            check_pinned(descriptor, snapshot.min_version(descriptor.table_id))

    @contextmanager
    def within(self, snapshot: LooksUp) -> Iterator[None]:
        """Look tables and rows up in the snapshot that a statement has open, and has checked."""
        self._open = snapshot
        try:
            yield
        finally:
            self._open = None

    def row(self, descriptor: Descriptor, key: Key) -> Row | None:
        """Return a row, all of it, for who may change it. Raises NotHeldHere."""
        self._store.part.check_writable(descriptor)
        ahead = descriptor.ahead
        if ahead:
            descriptor = self._pinned[self._changed[descriptor.name][0]][0]
        if self._open is not None:
            row = self._open.get(descriptor, key)
        else:
            with self.snapshot() as snapshot:
                self._check_pinned(descriptor, snapshot)
                row = snapshot.get(descriptor, key)
        if not ahead or row is None:
            return row
        return row._replace(values={**row.values, **ahead})

    def scan(
        self, descriptor: Descriptor, low: Key | None, high: Key | None, rows_max: int
    ) -> Iterator[tuple[Key, Row]]:
        self._store.part.check_writable(descriptor)
        with self.snapshot() as snapshot:
            self._check_pinned(descriptor, snapshot)
            yield from snapshot.scan(descriptor, low, high, rows_max=rows_max)

    def get_by(
        self, descriptor: Descriptor, index: Index, values: Key, rows_max: int
    ) -> Iterator[tuple[Key, Row]]:
        self._store.part.check_writable(descriptor)
        with self.snapshot() as snapshot:
            self._check_pinned(descriptor, snapshot)
            yield from snapshot.get_by(descriptor, index.element_id, values, rows_max=rows_max)

    def close(self) -> None:
        for _, lease in self._pinned.values():
            self._release(lease)
        self._pinned.clear()
        if self._budget is not None:
            self._budget.close()


def key_in(descriptor: Descriptor, key: Any) -> Key:
    """Return a key as given by a user in storage form. Raises what `Binding.key` raises."""
    if type(key) is int or type(key) is str:  # isinstance of Mapping takes a while
        return binding(descriptor).key((key,))
    given = key if isinstance(key, tuple | Mapping) else (key,)
    return binding(descriptor).key(given)


def _keyed(kind: Type, value: Any) -> Any:
    """Return an outside value as an index's entries hold it."""
    stored, key = to_storage(kind)(value), sort_key_of(kind)
    return stored if key is None or stored is None else key(stored)


def public_index(tables: Sequence[Descriptor], name: str) -> tuple[Descriptor, Index]:
    """Return an index that queries see, and its table. Raises UnknownColumn: elements that aren't
    public don't exist for a query."""
    table, _, index = name.rpartition(".")
    for descriptor in tables:
        names = descriptor.names
        if not names:
            continue  # one that is on its way out, or to take another's place, is nobody's to read
        if not table or table in names:
            found = descriptor.index(qualified(descriptor.schema, index) if table else index)
        elif table == descriptor.schema:
            found = descriptor.index(name)
        else:
            continue
        if found is not None and found.state in READABLE:
            return descriptor, found
    raise UnknownColumn(f"index {name!r} does not exist", index=name)
