"""What a transaction on a replica has changed so far: the write set, with its own reads on top."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from leasehold.adapters.os.clock import new_request_id
from leasehold.catalog.descriptor import TEMPORARY_FROM, Descriptor
from leasehold.catalog.job import Job
from leasehold.catalog.schema_names import HIDDEN
from leasehold.model.budget import UNBOUNDED_BYTES, Budget
from leasehold.model.errors import MalformedRequest, Uncommittable
from leasehold.model.ids import hidden_keys
from leasehold.model.keys import Key, order_of
from leasehold.model.ports import Row
from leasehold.model.records.events import Genids
from leasehold.model.records.requests import (
    ChangeRequest,
    Expression,
    OnConflict,
    Operation,
    OperationKind,
    ReadRange,
)
from leasehold.replica.joined_writes import join_writes
from leasehold.replica.pending_changes import PendingChanges
from leasehold.replica.pending_notifications import checked_notification
from leasehold.replica.reads import Reads, key_in
from leasehold.replica.row_values import decided, image_of, inserted_row, named, with_generated
from leasehold.replica.rows_seen import RowName, RowsSeen
from leasehold.replica.schema_in_transaction import BlockSchema
from leasehold.replica.sequences.session_values import DrawnSequenceValues
from leasehold.replica.temporary_tables import TemporaryTables
from leasehold.rows.index_entries import entry_of
from leasehold.sql.binding.select_for_verify import ShownRow
from leasehold.transaction.binding import binding
from leasehold.transaction.duplicate_key import primary_key_exists
from leasehold.transaction.isolation import ISOLATION, Isolation, Level
from leasehold.transaction.locks import Expected
from leasehold.transaction.pinned_version import check_pinned
from leasehold.values.storage import from_storage, to_json

if TYPE_CHECKING:
    from leasehold.replica.sql_execute import Executed


class _Updated(NamedTuple):
    """An update of the row `name`, which is the row `to` then, as `after` shows it."""

    descriptor: Descriptor
    name: RowName
    to: RowName
    values: Mapping[str, Any]
    expect: Expected | None
    after: dict[str, Any]


class WriteSet:
    """The write set that `Replica.transact` hands to its function; lives as long as one run of it.

    Reads see what the isolation level says: what is newest at each statement, or one moment; with
    or without this transaction's own writes. Every row that is changed is named with the genid that
    its *first* read here has seen, and verified at commit (T1): between a `get` and the `update` of
    what was computed from it the row may change. From serializable up everything read is verified,
    and at any level what was read with `selectv`. A table's descriptor version is pinned from its
    first use to the end (D8).
    """

    def __init__(
        self,
        reads: Reads,
        isolation: Isolation = ISOLATION[Level.READ_COMMITTED],
        sequence_values: DrawnSequenceValues | None = None,
        budget: Budget | None = None,
        notifier: tuple[str, int] = ("", 0),
        temporary: TemporaryTables | None = None,
    ) -> None:
        """Begin. `sequence_values` is what its statements draw from sequences; None: nothing.
        `budget` holds what it keeps. `notifier`: the node and the session that tell what it tells
        those who listen. `temporary` are the session's temporary tables."""
        self._reads = reads
        self.sequence_values = sequence_values
        self.statements = count(1)
        """Their places, by which they draw what they have drawn before."""
        self.isolation = isolation
        budget = budget or Budget(UNBOUNDED_BYTES)
        self.seen = RowsSeen(budget)
        self.pending = PendingChanges(reads, budget, temporary)
        self.notifier = notifier

    @property
    def lsn(self) -> int:
        """The LSN that it reads as of; 0: what is newest."""
        return self._reads.snapshot_lsn or 0

    # ------------------------------------------------------------ reading

    def get(
        self,
        table: str,
        key: Any,
        columns: Sequence[str] | None = None,
        *,
        selectv: bool = False,
    ) -> dict[str, Any] | None:
        """Return the row by column name, or None. `key`: a value, a tuple in key order, or a
        mapping.

        With `columns` only those: what is changed later in this row is then verified by the locks
        of the columns that were read or are written, so that writers under other locks of the row
        don't collide with this one. With `selectv` the commit is refused if the row has changed.
        """
        descriptor, stored, row = self._row(table, key)
        name = (descriptor.table_id, stored)
        wanted = None if columns is None else [descriptor.column(c) for c in columns]
        self.seen.read(descriptor, stored, row, wanted, selectv=selectv)
        found: dict[str, Any] | None
        if self._shows_own(name):
            own = self.pending.rows[name]
            found = None if own is None else dict(own)
        else:
            found = None if row is None else named(descriptor, row)
        if found is not None and wanted is not None:
            found = {column.name: found[column.name] for column in wanted}
        return None if found is None else decided(descriptor, found)

    def scan(
        self,
        table: str,
        low: Any = None,
        high: Any = None,
        *,
        rows_max: int = 10_000,
        selectv: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Yield rows with low <= key < high, in key order. `selectv` as in `get`, for each row; it
        tells nothing of rows that come into the range."""
        descriptor = self._reads.pin(table)
        first = self._reads.bound(descriptor, low)
        last = self._reads.bound(descriptor, high)
        if self.isolation.verifies_reads:
            self.seen.reads.range(descriptor, ReadRange(low=first or (), high=last or ()))
        found = {}
        for key, row in self._reads.scan(descriptor, first, last, rows_max):
            self.seen.read(descriptor, key, row, selectv=selectv)
            found[key] = named(descriptor, row)
        for key, values in self._own_rows(descriptor).items():
            inside = (first is None or order_of(key[: len(first)]) >= order_of(first)) and (
                last is None or order_of(key[: len(last)]) < order_of(last)
            )
            if values is None:
                found.pop(key, None)
            elif inside:
                found[key] = decided(descriptor, values)
        for key in sorted(found, key=order_of)[:rows_max]:
            yield found[key]

    def get_by(
        self, index: str, values: Any, *, rows_max: int = 10_000, selectv: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Yield rows whose index key starts with `values`, in index order; see `Replica.get_by`."""
        descriptor, by = self._reads.index(index)
        stored = self._reads.index_key(
            descriptor, by, values if isinstance(values, tuple) else (values,)
        )
        if self.isolation.verifies_reads:
            self.seen.reads.range(descriptor, ReadRange(descriptor.read_name(by), stored))
        made, width = entry_of(descriptor, by), len(by.columns)
        found: dict[Key, tuple[Key, dict[str, Any]]] = {}
        for key, row in self._reads.get_by(descriptor, by, stored, rows_max):
            self.seen.read(descriptor, key, row, selectv=selectv)
            entry = made(row.values)
            assert entry is not None, "it was found by its entry"
            found[key] = entry[:width], named(descriptor, row)
        for key, own in self._own_rows(descriptor).items():
            found.pop(key, None)
            entry = None if own is None else made(image_of(descriptor, own))
            if own is not None and entry is not None and entry[: len(stored)] == stored:
                found[key] = entry[:width], own
        in_order = sorted(found, key=lambda k: (order_of(found[k][0]), order_of(k)))
        for key in in_order[:rows_max]:
            yield found[key][1]

    def _shows_own(self, name: RowName) -> bool:
        shows = self.isolation.own_writes or name[0] >= TEMPORARY_FROM
        return shows and name in self.pending.rows

    def _own_rows(self, descriptor: Descriptor) -> dict[Key, dict[str, Any] | None]:
        """Return what reads of a table have to show on top."""
        return self.pending.rows_of(descriptor) if self.isolation.own_writes else {}

    # ------------------------------------------------------------ writing

    def name_of(self, table: Descriptor) -> str:
        """Return the name by which `insert` and its like find a table, whatever hides it."""
        return self._reads.name_of(table)

    @cached_property
    def hidden_keys(self) -> Iterator[str]:
        """The keys of rows that are inserted into tables without a primary key (T7), in storage
        form."""
        return hidden_keys(new_request_id())

    def insert(
        self, table: str, key: Any, values: Mapping[str, Any], arbiters: tuple[str, ...] = ()
    ) -> None:
        """Insert a row. Raises DuplicateKey when it is there already. `key` None: of a table
        without a primary key. `arbiters`: as of `Operation`; then a row that others commit
        meanwhile is a verify error."""
        if key is None and self._reads.pin(table).hidden_key:
            key = next(self.hidden_keys)
        descriptor, stored, row = self._row(table, key)
        name = (descriptor.table_id, stored)
        there = self.pending.rows[name] is not None if self._shows_own(name) else row is not None
        if there:
            raise primary_key_exists(descriptor, stored)
        binding(descriptor).values(values, None)
        self._add(OperationKind.INSERT, descriptor, stored, values, None, arbiters)
        if arbiters:
            self._hold(descriptor, stored, {})  # another one's would be waited for, and changed
        self.pending.put(name, inserted_row(descriptor, stored, values))

    def insert_with_hidden_key(self, table: str, stored: Key, values: Mapping[str, Any]) -> None:
        """Insert a row of a table without a primary key, whose hidden one a statement has drawn:
        no row has it, so that none is looked for. `values` are as the table's columns have them."""
        descriptor = self._reads.pin(table)
        self._add_operation(OperationKind.INSERT, descriptor, stored, values)  # a UUID, as text
        row = inserted_row(descriptor, stored, values)
        self.pending.put((descriptor.table_id, stored), row)

    def update(
        self, table: str, key: Any, values: Mapping[str, Any], *, found: Row | None = None
    ) -> bool:
        """Change columns, those of the primary key, too; False when there is no such row. What was
        computed from a row that was read here is never written over a newer one. Raises
        DuplicateKey for a key that another row has. `found`: the row, of who has just read it."""
        return self._update([self._updated(table, key, values, found)], table)

    def update_together(self, table: str, updates: Sequence[tuple[Any, Mapping[str, Any]]]) -> bool:
        """Change several rows, (key, values) each; one may take the key of another that leaves it.
        False when one of them is not there: nothing is changed then."""
        return self._update([self._updated(table, *each) for each in updates], table)

    def _update(self, found: Sequence[_Updated | None], table: str) -> bool:
        if None in found:
            return False
        changed = [each for each in found if each is not None]
        left = {each.name for each in changed if each.to != each.name}
        landed: set[RowName] = set()
        for each in changed:
            if each.to != each.name:
                if each.to in landed or (each.to not in left and self._is_there(table, each)):
                    raise primary_key_exists(each.descriptor, each.to[1])
                landed.add(each.to)
        for each in changed:
            kind, (_, key) = OperationKind.UPDATE, each.name
            self._add(kind, each.descriptor, key, each.values, each.expect)
            if each.name not in landed:
                self.pending.put(each.name, None)
        for each in changed:
            self.pending.put(each.to, each.after)
        return True

    def _updated(
        self, table: str, key: Any, values: Mapping[str, Any], found: Row | None = None
    ) -> _Updated | None:
        """Return what an update comes to; None: there is no such row."""
        descriptor, stored, row = self._row(table, key, found)
        name = (descriptor.table_id, stored)
        if any(isinstance(value, Expression) for value in values.values()):
            raise MalformedRequest(
                "compute the value from the row that `get` gave; expressions are for requests"
            )
        bound = binding(descriptor)
        given = bound.values(values, None, keys=True)
        to = tuple(given.get(e, v) for e, v in zip(descriptor.primary_key, stored, strict=True))
        moves = to != stored
        if moves:
            bound.check_key(dict(zip(descriptor.primary_key, to, strict=True)))
        expect: Expected | None = None
        if self._shows_own(name):
            before = self.pending.rows[name]
        else:
            self.seen.find(descriptor, stored, row)
            before = None if row is None else named(descriptor, row)
            if before is not None:
                self._check_own(table, name)
            if before is not None and name not in self.pending.rows:
                concerned = descriptor.public_ids if moves else descriptor.changed_with(given)
                expect = self._hold_changed(descriptor, stored, row, concerned)
        if before is None:
            return None
        after = with_generated(descriptor, {**before, **values})
        return _Updated(descriptor, name, (name[0], to), values, expect, after)

    def _is_there(self, table: str, updated: _Updated) -> bool:
        """Return whether a row has the key that the updated one comes under."""
        columns = updated.descriptor.key_columns
        _, key = updated.to
        outside = tuple(from_storage(c.type, v) for c, v in zip(columns, key, strict=True))
        _, _, row = self._row(table, outside)
        if self._shows_own(updated.to):
            return self.pending.rows[updated.to] is not None
        return row is not None

    def delete(self, table: str, key: Any, *, found: Row | None = None) -> bool:
        """Delete a row; False when there is no such one. `found`: as of `update`."""
        descriptor, stored, row = self._row(table, key, found)
        name = (descriptor.table_id, stored)
        expect: Expected | None = None
        if self._shows_own(name):
            if self.pending.rows[name] is None:
                return False
        else:
            self.seen.find(descriptor, stored, row)
            if row is None:
                return False
            self._check_own(table, name)
            if name not in self.pending.rows:
                expect = self._hold_changed(descriptor, stored, row, descriptor.public_ids)
        self._add(OperationKind.DELETE, descriptor, stored, {}, expect)
        self.pending.put(name, None)
        return True

    # ------------------------------------------------------------ NOTIFY

    def notify(self, channel: str, payload: str = "") -> None:
        """Tell all sessions of the database that listen to a channel, on every node, once this is
        committed. Raises InvalidArgument, RequestTooLarge."""
        self.pending.notifications.add(0, checked_notification(channel, payload))

    # ------------------------------------------------------------ SQL

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Executed:
        """Run a SELECT, INSERT, UPDATE or DELETE, which sees what `get` would see. What it changes
        is verified and committed with the rest; so is what it has read, where the level verifies
        that."""
        from leasehold.replica.sql_execute import execute  # it stands on this module

        return execute(self, self._reads, sql, parameters)

    # ------------------------------------------------------------ its end

    def request(
        self, request_id: bytes, attempt: int, on_conflict: OnConflict
    ) -> ChangeRequest | None:
        """Return what is to be committed; None: nothing was written, and it ends here (T1)."""
        pending = self.pending
        if not pending:
            return None
        settings = (
            ()
            if self.sequence_values is None
            else self.sequence_values.settings(pending.committed_sequences)
        )
        written = join_writes(pending.operations, _changed_keys(pending.schema))
        return ChangeRequest(
            request_id,
            (*settings, *written, *self._lock_operations()),
            sql=pending.text,
            on_conflict=on_conflict,
            attempt=attempt,
            used=self._reads.used(),
            reads=self.seen.reads.read_set(self.lsn),
            time_zones=pending.schema.zones,
            notifications=pending.notifications.of_session(*self.notifier),
        )

    def _lock_operations(self) -> Iterator[Operation]:
        """Yield the locked rows as updates of nothing, which give them new genids.

        ⚠ Who has locked one of them, too, and has not seen what this transaction writes elsewhere,
        is refused by that (T1): that they are verified is not enough where neither changes them."""
        rows = self.pending.rows
        gone = {table.table_id for table in self.pending.schema.dropped.values()}
        for (table_id, key), (table, _) in self.seen.locked.items():
            written = table.one_lock and (table_id, key) in rows
            if table_id not in gone and not written:
                outside = _outside_key(table, key)
                yield Operation(OperationKind.UPDATE, table.name, outside, {}, None, table.version)

    def locks_stand(self) -> bool:
        """Return whether the rows that it has locked are as they were then. What it has read since
        is so of one moment, to all that lock them before they write; of a level of one moment it is
        in any case. Raises NotCoherent, StaleVersion.

        This node tells by its own store: what it lacks no statement of the transaction has read."""
        if not self.seen.locked or self.isolation.one_snapshot:
            return True
        with self._reads.snapshot() as snapshot:
            for (table_id, key), (table, genids) in self.seen.locked.items():
                check_pinned(table, snapshot.min_version(table_id))
                row = snapshot.get(table, key)
                if row is None or any(row.genids.get(g) != v for g, v in genids.items()):
                    return False
        return True

    def held_rows(self) -> Iterator[ShownRow]:
        """Yield the rows that it has locked, or changed or deleted, as it has found them."""
        for (_, key), (table, genids) in self.seen.locked.items():
            yield ShownRow(table, key, genids)
        written = self.pending.written
        for table_id, key in self.pending.rows:
            found = self.seen.genids_of((table_id, key))
            if table_id in written and found is not None:
                yield ShownRow(written[table_id], key, found)

    def job_request(self, request_id: bytes) -> ChangeRequest:
        """Return the request of the job that is held for the rows."""
        pending = self.pending
        _, zones = pending.schema.request_texts(late=False)
        return ChangeRequest(
            request_id,
            sql=pending.held_text,
            on_conflict=OnConflict.FAIL,
            time_zones=zones,
            held=True,
            demands=pending.schema.demands,
        )

    def request_of_rows(self, request_id: bytes, releases: bytes, job: Job) -> ChangeRequest:
        """Return the request of the rows that `job` waits for, under the versions that it publishes
        with them."""
        schema = self.pending.schema
        numbers = {each.table.name: table_id for table_id, each in schema.shown.items()}
        names = {each.name: each.table.name for each in schema.shown.values()}
        request = self.request(request_id, 1, OnConflict.FAIL)
        assert request is not None, "it has changed tables"

        def under(operation: Operation) -> Operation:
            if operation.schema_version is None:
                return operation
            name = names.get(operation.table, operation.table)
            number = numbers.get(name)
            if number is None:
                return operation
            return operation._replace(table=name, schema_version=job.versions[number])

        operations = tuple(map(under, request.operations))
        zones = schema.request_texts(late=True)[1]
        request = request._replace(operations=operations, releases=releases, time_zones=zones)
        if request.reads is None:
            return request
        tables = tuple(
            read
            if number is None
            else read._replace(table=schema.shown[number].table.name, version=job.versions[number])
            for read in request.reads.tables
            for number in [numbers.get(names.get(read.table, read.table))]
        )
        return request._replace(reads=request.reads._replace(tables=tables))

    # ------------------------------------------------------------ inside

    def _hold(self, descriptor: Descriptor, stored: Key, genids: Genids) -> None:
        """Hold a row, which others may not change from now on. Where own writes are not seen a
        change keeps nobody away, and a temporary table is the session's alone."""
        if self.isolation.own_writes and not descriptor.temporary:
            self.seen.held.add((descriptor.table_id, stored), genids)

    def _hold_changed(
        self, descriptor: Descriptor, stored: Key, row: Row | None, concerned: Iterable[int]
    ) -> Expected:
        """Hold a row that is changed from now on, and return what its commit expects."""
        if row is not None:
            self._hold(descriptor, stored, row.genids)
        return self.seen.expected(descriptor, stored, concerned)

    def _check_own(self, table: str, name: RowName) -> None:
        """Raise Uncommittable (T2): who doesn't see his own writes may change a row that he has
        deleted."""
        if name in self.pending.rows and self.pending.rows[name] is None:
            raise Uncommittable(
                f"row {name[1]!r} of table {table.strip(HIDDEN)!r} was deleted by this very"
                " transaction, which does not see its own writes: this can never be committed",
                table=table,
                key=list(name[1]),
            )

    def _row(
        self, table: str, key: Any, found: Row | None = None
    ) -> tuple[Descriptor, Key, Row | None]:
        descriptor = self._reads.pin(table)
        stored = key_in(descriptor, key)
        if self.isolation.verifies_reads and not descriptor.temporary:
            self.seen.reads.key(descriptor, stored)
        if descriptor.provisional or descriptor.table_id in self.pending.emptied:
            return descriptor, stored, None
        return descriptor, stored, found or self._reads.row(descriptor, stored)

    def _add(
        self,
        kind: OperationKind,
        descriptor: Descriptor,
        key: Key,
        values: Mapping[str, Any],
        expect: Expected | None,
        arbiters: tuple[str, ...] = (),
    ) -> None:
        outside = _outside_key(descriptor, key)
        self._add_operation(kind, descriptor, outside, values, expect, arbiters)

    def _add_operation(
        self,
        kind: OperationKind,
        descriptor: Descriptor,
        outside: Key,
        values: Mapping[str, Any],
        expect: Expected | None = None,
        arbiters: tuple[str, ...] = (),
    ) -> None:
        # A name that is given anew in this transaction means the table that is there without one.
        version = None if descriptor.provisional else descriptor.version
        self.pending.add(
            descriptor,
            Operation(kind, descriptor.name, outside, dict(values), expect, version, arbiters),
        )


def _outside_key(descriptor: Descriptor, key: Key) -> Key:
    return tuple(
        to_json(column.type, value)
        for column, value in zip(descriptor.key_columns, key, strict=True)
    )


def _changed_keys(schema: BlockSchema) -> dict[str, frozenset[str]]:
    """Return the names of the key columns of each table that a transaction makes or changes, by the
    names under which it may have written rows of it."""
    named = list(schema.made.items())
    for each in schema.shown.values():
        named += [(each.name, each.table), (each.table.name, each.table)]
    return {name: frozenset(c.name for c in table.key_columns) for name, table in named}
