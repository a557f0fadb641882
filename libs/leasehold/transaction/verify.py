"""The one place that accepts or refuses a change of rows (T0, T1, D5).

`verify` looks at rows through the store's writer (uncommitted changes of the open batch included)
and through an overlay of the request's own earlier operations, changes nothing, and gives back
either the decided changes with their composed after-images or a Refused error.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import DuplicateKey, MalformedRequest, RequestTooLarge
from leasehold.model.ids import OPERATIONS_PER_COMMIT_MAX, genid_lsn
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.log import ChangeKind, RowChange
from leasehold.model.records.requests import ChangeRequest, OnConflict, Operation, OperationKind
from leasehold.rows.defaults import Draw
from leasehold.rows.filled_by_key import complete_new_row
from leasehold.transaction.alike_inserts import (
    ALIKE_MIN,
    AbsenceReader,
    count_alike,
    plan_inserts,
)
from leasehold.transaction.binding import binding
from leasehold.transaction.decide import decide, delete_row, uncommittable, with_key
from leasehold.transaction.demanded_columns import check_demanded
from leasehold.transaction.duplicate_key import primary_key_exists
from leasehold.transaction.foreign_keys import References
from leasehold.transaction.mirror_table import Followed, follow_writes
from leasehold.transaction.overlay import Name, Overlay, RowReader, is_checked_at_end
from leasehold.transaction.read_set import Past, check_reads
from leasehold.transaction.referenced_changes import Identity, ReferencedChanges
from leasehold.transaction.referential_actions import Actions
from leasehold.transaction.rights import Rights
from leasehold.transaction.row_conflict import RowRefused
from leasehold.transaction.sequence_operations import (
    SequenceValues,
    lacks_sequence_values,
    may_draw,
)
from leasehold.transaction.uniqueness import (
    FinalRow,
    HolderReader,
    Sought,
    check_sought,
    check_unique,
)

_UPDATE: Final = OperationKind.UPDATE
_COMES: Final = ChangeKind.INSERT
_REPLAY: Final = OnConflict.REPLAY


class Decided(NamedTuple):
    """An accepted request: its changes in order, with the rows they were verified against; behind
    them what foreign keys' actions do (`referential_actions.py`), and what follows in mirrors
    (`mirrors.py`).

    `versions`: table id → version used. `before[i]` is the row under `changes[i]`. `answer`: what
    the result carries beyond counts.
    """

    changes: tuple[RowChange, ...]
    before: tuple[Row | None, ...]
    versions: Mapping[int, int]
    rows_affected: int
    answer: Any = None


def verify(
    request: ChangeRequest,
    catalog: Catalog,
    rows: RowReader,
    lsn: int,
    holders: HolderReader | None = None,
    context: CommitContext | None = None,
    past: Past | None = None,
    rights: Rights | None = None,
    absent: AbsenceReader | None = None,
) -> Decided:
    """Decide the row operations of `request` as commit `lsn`; `holders` finds rows by their entry
    and is needed where tables have unique indexes, `context` where defaults change from call to
    call, `past` where the request says what it has read. `rights`: those of a requester who may not
    do everything. By `absent` many new rows are looked for at once.

    Raises a leaf of Refused: UnknownTable, UnknownColumn, UnknownVersion, StaleVersion (D5), the
    type errors, GeneratedAlways, NotNullViolation, CheckViolation, DuplicateKey,
    ForeignKeyViolation, RowRefused and VerifyError (T1), Uncommittable (T2), InsufficientPrivilege.
    """
    versions = _check_used(request, catalog, past, rights)
    if len(request.operations) == 1:
        # The common case needs no overlay.
        operation = request.operations[0]
        descriptor = catalog.resolve(operation.table, operation.schema_version)
        alone = not is_checked_at_end(descriptor, catalog) and not descriptor.mirror
        if alone and descriptor.sequence is None and not may_draw(operation, descriptor):
            versions[descriptor.table_id] = descriptor.version
            if rights is not None:
                rights.check(0, operation, descriptor)
            return _decide_one(request, descriptor, catalog, rows, context, versions)
    made = _Request(request, catalog, rows, lsn, holders, context, rights, absent)
    slices = made.decide_all(request.operations, versions)
    while True:
        try:
            next(slices)
        except StopIteration as end:
            decided: Decided = end.value
            return decided


def verify_in_slices(
    request: ChangeRequest,
    catalog: Catalog,
    rows: RowReader,
    lsn: int,
    holders: HolderReader,
    context: CommitContext,
    past: Past,
    rights: Rights | None = None,
    absent: AbsenceReader | None = None,
) -> Generator[int | None, None, Decided]:
    """Verify as `verify` does, and yield behind each row that was looked at, or behind several with
    their number; in between no row and no version may change."""
    versions = _check_used(request, catalog, past, rights)
    made = _Request(request, catalog, rows, lsn, holders, context, rights, absent)
    return (yield from made.decide_all(request.operations, versions))


def _check_used(
    request: ChangeRequest, catalog: Catalog, past: Past | None, rights: Rights | None
) -> dict[int, int]:
    """Return by table id the versions that the request has used beside its operations, and check
    what it has read."""
    versions: dict[int, int] = {}
    if request.reads is not None:
        assert past is not None, "read sets need a reader of what was written since"
        if rights is not None:
            rights.check_reads(request.reads)
        versions = check_reads(request.reads, catalog, past)
    for table, version in request.used.items():
        descriptor = catalog.resolve(table, version)
        versions[descriptor.table_id] = descriptor.version
    if len(request.operations) >= OPERATIONS_PER_COMMIT_MAX:
        raise MalformedRequest(f"at most {OPERATIONS_PER_COMMIT_MAX - 1} operations in a request")
    return versions


def _decide_one(
    request: ChangeRequest,
    descriptor: Descriptor,
    catalog: Catalog,
    rows: RowReader,
    context: CommitContext | None,
    versions: dict[int, int],
) -> Decided:
    """Decide the only operation, on a table of which nothing is looked at in the end."""
    (operation,) = request.operations
    if not operation.key:
        operation = with_key(operation, descriptor, request.id, 0)
    bound = binding(descriptor)
    key = bound.key(operation.key)
    row = rows(descriptor, key)
    replays = request.on_conflict is _REPLAY
    change = decide(operation, bound, key, row, context, replays=replays)
    if change is None:
        return Decided((), (), versions, 0)
    if row is not None and change.kind is _COMES:
        if rows(descriptor, change.key) is not None:
            raise primary_key_exists(descriptor, change.key)
        return Decided((delete_row(descriptor, key, row), change), (row, None), versions, 1)
    return Decided((_as_new(change, descriptor, catalog),), (row,), versions, 1)


def _as_new(change: RowChange, descriptor: Descriptor, catalog: Catalog) -> RowChange:
    """Return the change with what a new row has although its writer's version knows nothing of
    it. Raises NotNullViolation where a newer version demands a value of every row."""
    if change.image is None or not catalog.has_newer(descriptor):
        return change
    newest = catalog.newest(descriptor.table_id)
    check_demanded(newest, descriptor, change.image)
    if change.kind is not _COMES:
        return change
    return change._replace(image=complete_new_row(newest, descriptor.version, change.image))


class _Request:
    """The row operations of one request."""

    def __init__(
        self,
        request: ChangeRequest,
        catalog: Catalog,
        rows: RowReader,
        lsn: int,
        holders: HolderReader | None,
        context: CommitContext | None,
        rights: Rights | None = None,
        absent: AbsenceReader | None = None,
    ) -> None:
        self._rights = rights
        self._absent = absent
        self._alone_until = 0  # operations before that one are decided one by one
        self._request = request
        self._replays = request.on_conflict is _REPLAY
        self._catalog = catalog
        self._rows = rows
        self._lsn = lsn
        self._holders = holders
        self._context = context
        self._overlay = Overlay(catalog, rows, lsn)
        self._losses = ReferencedChanges(catalog) if catalog.has_actions else None
        self._landing: dict[Name, _Landing] = {}
        self._draw: Draw | None = None
        self._sought: list[Sought] = []

    def decide_all(
        self,
        operations: tuple[Operation, ...],
        versions: dict[int, int],
    ) -> Generator[int | None, None, Decided]:
        affected = passed = looked_at = 0
        sequence_values = SequenceValues(self._catalog, self._overlay, versions, self._lsn)
        self._draw = sequence_values.next
        for number, operation in enumerate(operations):
            if number < passed:
                continue
            if number:
                yield looked_at
            looked_at = self._insert_alike(number, versions)
            if looked_at:
                passed = number + looked_at
                affected += looked_at
                continue
            looked_at = 1
            descriptor = self._catalog.resolve(operation.table, operation.schema_version)
            known = versions.setdefault(descriptor.table_id, descriptor.version)
            if known != descriptor.version:
                raise MalformedRequest(
                    f"operation {number} uses version {descriptor.version} of table"
                    f" {descriptor.name!r}, an earlier one {known}; a transaction pins one version"
                )
            if self._rights is not None:
                self._rights.check(number, operation, descriptor)
            if descriptor.sequence is not None:
                sequence_values.operation(operation, descriptor)
                continue
            if descriptor.numbered and not self._is_there(number, operation, descriptor):
                operation = sequence_values.given_to(operation, descriptor)
            try:
                affected += self._decide_operation(number, operation, descriptor)
            except DuplicateKey:
                self._refuse_sought()
                raise
        try:
            self._land()
            behind = yield from self._check_end()
        except DuplicateKey:
            self._refuse_sought()
            raise
        sequence_values.settle()
        changes, before = self._overlay.changes, self._overlay.before
        if (
            self._losses is not None and self._losses.found
        ):  # rows of other tables, under versions that the master has chosen
            for change in changes:
                versions.setdefault(change.table_id, change.version)
        changes += [each.change for each in behind]
        before += [each.before for each in behind]
        if len(changes) > OPERATIONS_PER_COMMIT_MAX:
            raise RequestTooLarge(f"at most {OPERATIONS_PER_COMMIT_MAX} rows change in a request")
        return Decided(tuple(changes), tuple(before), versions, affected, sequence_values.answer)

    def _insert_alike(self, number: int, versions: dict[int, int]) -> int:
        """Decide the operations from that number on together, as far as they are new rows that
        nothing is in the way of; return how many, 0 where that one is to be decided by itself."""
        absent, catalog, overlay = self._absent, self._catalog, self._overlay
        if number < self._alone_until or absent is None or self._rights is not None:
            return 0
        operations = self._request.operations
        count = count_alike(operations, number)
        self._alone_until = number + max(count, 1)  # unless they are decided here
        if count < ALIKE_MIN or self._landing:
            return 0
        operation = operations[number]
        descriptor = catalog.resolve(operation.table, operation.schema_version)
        known = versions.get(descriptor.table_id, descriptor.version)
        losses = self._losses is not None and self._losses.concerns(descriptor)
        if known != descriptor.version or losses or catalog.has_newer(descriptor):
            return 0
        plan = plan_inserts(binding(descriptor), operation)
        made = None if plan is None else plan.make(operations[number : number + count])
        if made is None or overlay.touches(descriptor.table_id, made.keys):
            return 0
        # Among the rows between them there may be others, of which each is looked for then.
        if not absent(descriptor, made.keys):
            rows = self._rows
            for key in made.keys:
                if rows(descriptor, key) is not None:
                    return 0
        versions[descriptor.table_id] = descriptor.version
        overlay.put_new(descriptor, made.keys, made.changes)
        return count

    def _is_there(self, number: int, operation: Operation, descriptor: Descriptor) -> bool:
        """Whether its row is there. ⚠ An upsert of such a row leaves what it does not name: its
        numbers, too."""
        lacking = lacks_sequence_values(operation, descriptor)
        keyed = any(column.element_id in descriptor.primary_key for column in lacking)
        if operation.kind is not OperationKind.UPSERT or keyed or not lacking:
            return False
        if not operation.key:
            operation = with_key(operation, descriptor, self._request.id, number)
        if self._landing:
            self._land()
        key = binding(descriptor).key(operation.key)
        return self._overlay.row(descriptor, key) is not None

    def _decide_operation(self, number: int, operation: Operation, descriptor: Descriptor) -> bool:
        """Decide one operation; return whether it affected its row."""
        if not operation.key:
            operation = with_key(operation, descriptor, self._request.id, number)
        bound = binding(descriptor)
        key = bound.key(operation.key)
        name = (descriptor.table_id, key)
        row = self._overlay.row(descriptor, key)
        # Rows that move one after the other do so together: each may take another's key.
        if self._landing and (operation.kind is not _UPDATE or row is None):
            self._land()
            row = self._overlay.row(descriptor, key)
        context = self._context_of(number, descriptor)
        arbiters = operation.arbiters
        if arbiters and name in self._overlay.rows:  # a row of its own is in no other one's way
            operation = operation._replace(arbiters=())
        try:
            change = decide(operation, bound, key, row, context, self._draw, replays=self._replays)
        except RowRefused as error:
            if self._is_of_own_making(name, row, error.locks):
                raise uncommittable(number, descriptor, key) from error
            raise
        except DuplicateKey:
            if any(arbiters):  # by one of them there may be a row as well, which comes first
                inserted = decide(operation, bound, key, None, context)
                self._seek(arbiters, descriptor, inserted)
            raise
        if any(arbiters):
            self._seek(arbiters, descriptor, change)
        if change is None:
            return False
        if row is not None and change.kind is _COMES:
            self._move(number, descriptor, key, row, change)
            return True
        if self._landing:
            self._land()
        change = _as_new(change, descriptor, self._catalog)
        self._overlay.put(descriptor, row, change)
        if self._losses is not None and self._losses.concerns(descriptor):
            self._record_losses(self._losses, number, change, row)
        return True

    def _is_of_own_making(self, name: Name, row: Row | None, locks: tuple[int, ...]) -> bool:
        """Whether the request has itself changed what one of its operations expects (T2 ⚠): else
        what can never be committed would be replayed for ever."""
        if name not in self._overlay.rows:
            return False
        return row is None or any(genid_lsn(row.genids.get(k, 0)) == self._lsn for k in locks)

    def _seek(
        self, arbiters: tuple[str, ...], descriptor: Descriptor, inserted: RowChange | None
    ) -> None:
        """Remember by which unique indexes no row was in the way of one that is inserted."""
        assert inserted is not None, "an insert affects its row"
        assert inserted.image is not None, "an insert affects its row"
        self._sought.append(Sought(descriptor, inserted.image, arbiters))

    def _refuse_sought(self) -> None:
        """Raises VerifyError where one of those rows is there by now."""
        if self._sought:
            assert self._holders is not None, "unique indexes need a reader of entries"
            check_sought(self._sought, self._overlay.final, self._holders)

    def _context_of(self, number: int, descriptor: Descriptor) -> CommitContext | None:
        """Return the moment of an operation. ⚠ Random defaults differ by key and moment, and one
        key may be inserted twice in a request, when the first row has moved on."""
        if not number or self._context is None or not descriptor.defaults_change:
            return self._context
        return self._context._replace(seed=self._context.seed + number.to_bytes(4, "big"))

    def _record_losses(
        self, losses: ReferencedChanges, number: int, change: RowChange, row: Row | None
    ) -> None:
        table = change.table_id
        if row is None:
            losses.inserted(table, change.key, number + 1)
            return
        identity = losses.identity(table, change.key)
        losses.changed(identity, row.values, change.image, number + 1)
        if change.image is None:
            losses.left(table, change.key)

    def _move(
        self, number: int, descriptor: Descriptor, key: Key, row: Row, comes: RowChange
    ) -> None:
        identity = None
        if self._losses is not None and self._losses.concerns(descriptor):
            identity = self._losses.left(comes.table_id, key)
            self._losses.changed(identity, row.values, comes.image, number + 1)
        self._overlay.put(descriptor, row, delete_row(descriptor, key, row))
        name = (comes.table_id, comes.key)
        if name in self._landing:
            raise primary_key_exists(descriptor, comes.key)
        self._landing[name] = _Landing(descriptor, comes, identity)

    def _land(self) -> None:
        for (table_id, key), (descriptor, change, identity) in self._landing.items():
            if self._overlay.row(descriptor, key) is not None:
                raise primary_key_exists(descriptor, key)
            self._overlay.put(descriptor, None, change)
            if identity is not None and self._losses is not None:
                self._losses.landed(table_id, key, identity)
        self._landing.clear()

    def _check_end(self) -> Generator[None, None, list[Followed]]:
        """Look at what can be judged when all of the request is known (T3); return the changes of
        mirrors. Yields behind each row.

        Mirrors' rows are equal to rows that are looked at, so nothing is asked of them. But they
        may refer to a parent, and what a request does to them is part of it."""
        overlay, catalog, holders = self._overlay, self._catalog, self._holders
        if self._losses is not None and self._losses.found:
            assert holders is not None, "foreign keys need a reader of entries"
            actions = Actions(overlay, self._losses, catalog, holders, self._context, self._draw)
            yield from actions.run()
        if overlay.final:
            assert holders is not None, "unique indexes and foreign keys need a reader of entries"
            yield from check_unique(overlay.final, holders)
        behind = yield from follow_writes(overlay.touched(), catalog, self._rows)
        if overlay.refers:
            assert holders is not None
            mirrors = {(f.descriptor.table_id, f.change.key): f for f in behind}
            final = {
                name: FinalRow(f.descriptor, f.before, f.change.image)
                for name, f in mirrors.items()
            }
            stand = {
                name: None if f.change.image is None else Row(f.change.image, {}, self._lsn)
                for name, f in mirrors.items()
            }
            touched = {**overlay.rows, **stand}
            references = References(catalog, touched, self._rows, holders)
            yield from references.check({**overlay.final, **final})
        return behind


class _Landing(NamedTuple):
    """A row that has left its key; `identity` where a foreign key's action may ask who it is."""

    descriptor: Descriptor
    change: RowChange
    identity: Identity | None
