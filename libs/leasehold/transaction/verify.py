"""The one place that accepts or refuses a change of rows (T0, T1, D5).

`verify` looks at rows through the store's writer (uncommitted changes of the open batch included)
and through an overlay of the request's own earlier operations, changes nothing, and gives back
either the decided changes with their composed after-images or a Refused error.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from leasehold.model.errors import DuplicateKey, MalformedRequest, Uncommittable, VerifyError
from leasehold.model.ids import OPERATIONS_PER_COMMIT_MAX, genid, genid_lsn, hidden_key
from leasehold.model.ports import Row
from leasehold.model.records import (
    ChangeKind,
    ChangeRequest,
    Image,
    Key,
    Operation,
    OperationKind,
    RowChange,
    RowImage,
)
from leasehold.schema.catalog import Catalog
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.elements import Moment
from leasehold.schema.key_values import compose
from leasehold.schema.types import words_of
from leasehold.transaction.binding import Binding, binding
from leasehold.transaction.locks import agrees, carried, covering, effective, lock_names
from leasehold.transaction.read_set import Past, ReadRules, check_reads
from leasehold.transaction.references import check_references, concerns
from leasehold.transaction.twins import Followed, Touched, followed
from leasehold.transaction.uniqueness import FinalRow, HolderReader, check_unique

RowReader = Callable[[Descriptor, Key], Row | None]


@dataclass(frozen=True, slots=True)
class VerifyRules(ReadRules):
    """⚠ rules for models to switch off."""

    master_composes: bool = True  # T0: after-images come from the master's own row
    min_version_fences: bool = True  # D5
    genids_are_verified: bool = True  # T1
    pinned_is_checked: bool = True  # D3: a statement reads rows two versions ahead of its own
    fill_leaves_genids: bool = True  # ⚠ chunks: a schema change gives writers verify errors
    twin_follows: bool = True  # a write goes to both tables while a primary key changes
    uncommittable_is_recognised: bool = True  # T2: what can never commit is replayed for ever


RULES: Final = VerifyRules()

# Looked up once: a member of an enum costs as much as a call, and each request asks for several.
_INSERT, _UPDATE = OperationKind.INSERT, OperationKind.UPDATE
_DELETE, _UPSERT = OperationKind.DELETE, OperationKind.UPSERT
_UPDATED: Final = ChangeKind.UPDATE


class Decided(NamedTuple):
    """An accepted request: its changes in order, with the rows they were verified against; behind
    them those of twins (`twins.py`).

    `versions`: table id → version used. `before[i]` is the row under `changes[i]`.
    """

    changes: tuple[RowChange, ...]
    before: tuple[Row | None, ...]
    versions: Mapping[int, int]
    rows_affected: int


class RowRefused(VerifyError):
    """A verify error together with the row that refused the request, and the locks concerned."""

    def __init__(
        self, message: str, image: RowImage | None, locks: tuple[int, ...], **detail: object
    ) -> None:
        super().__init__(message, **detail)
        self.image = image
        self.locks = locks


def verify(
    request: ChangeRequest,
    catalog: Catalog,
    rows: RowReader,
    lsn: int,
    rules: VerifyRules = RULES,
    holders: HolderReader | None = None,
    moment: Moment | None = None,
    past: Past | None = None,
) -> Decided:
    """Decide the row operations of `request` as commit `lsn`; `holders` finds rows by their entry
    and is needed where tables have unique indexes, `moment` where defaults change from call to
    call, `past` where the request says what it has read.

    Raises a leaf of Refused: UnknownTable, UnknownColumn, UnknownVersion, StaleVersion (D5), the
    type errors, GeneratedAlways, NotNullViolation, CheckViolation, DuplicateKey,
    ForeignKeyViolation, RowRefused and VerifyError (T1), Uncommittable (T2).
    """
    versions = _used(request, catalog, rules, past)
    if len(request.operations) == 1:
        # The common case needs no overlay.
        operation = request.operations[0]
        descriptor = catalog.resolve(
            operation.table, operation.schema_version, fenced=rules.min_version_fences
        )
        versions[descriptor.table_id] = descriptor.version
        if not operation.key:
            operation = _with_key(operation, descriptor, request.id, 0)
        bound = binding(descriptor)
        key = bound.key(operation.key)
        row = rows(descriptor, key)
        change = _decide(operation, bound, key, row, rules, moment)
        if change is None:
            return Decided((), (), versions, 0)
        looked_at = _looked_at_the_end(descriptor, catalog)
        if not looked_at and not descriptor.twin:
            return Decided((change,), (row,), versions, 1)
        final = {}
        if looked_at:
            final[descriptor.table_id, key] = FinalRow(descriptor, row, change.image)
        touched = []
        if descriptor.twin:
            touched.append(Touched(descriptor, row, _after(change, row, lsn, 0)))
        behind = _check_end(final, touched, catalog, rows, holders, rules)
        changes = (change, *(each.change for each in behind))
        return Decided(changes, (row, *(each.before for each in behind)), versions, 1)
    slices = _verify_many(request, catalog, rows, lsn, versions, rules, holders, moment)
    while True:
        try:
            next(slices)
        except StopIteration as end:
            decided: Decided = end.value
            return decided


def verify_in_slices(
    slice_operations: int,
    request: ChangeRequest,
    catalog: Catalog,
    rows: RowReader,
    lsn: int,
    rules: VerifyRules,
    holders: HolderReader,
    moment: Moment,
    past: Past,
) -> Generator[None, None, Decided]:
    """`verify`, so many operations in a slice; between two of them no row and no version may
    change."""
    versions = _used(request, catalog, rules, past)
    return (
        yield from _verify_many(
            request, catalog, rows, lsn, versions, rules, holders, moment, slice_operations
        )
    )


def _used(
    request: ChangeRequest, catalog: Catalog, rules: VerifyRules, past: Past | None
) -> dict[int, int]:
    """Table id → version of what it has used beside its operations; what it has read is checked."""
    versions: dict[int, int] = {}
    if request.reads is not None:
        assert past is not None, "read sets need a reader of what was written since"
        fenced = rules.min_version_fences
        versions = check_reads(request.reads, catalog, past, rules, fenced=fenced)
    for table, version in request.used.items():
        descriptor = catalog.resolve(table, version, fenced=rules.min_version_fences)
        versions[descriptor.table_id] = descriptor.version
    if len(request.operations) >= OPERATIONS_PER_COMMIT_MAX:
        raise MalformedRequest(f"at most {OPERATIONS_PER_COMMIT_MAX - 1} operations in a request")
    return versions


def _looked_at_the_end(descriptor: Descriptor, catalog: Catalog) -> bool:
    return bool(descriptor.enforced_uniques) or concerns(descriptor, catalog)


def _check_end(
    final: dict[tuple[int, Key], FinalRow],
    touched: list[Touched],
    catalog: Catalog,
    rows: RowReader,
    holders: HolderReader | None,
    rules: VerifyRules,
) -> list[Followed]:
    """T3: what is looked at when all of the request is known; → the changes of twins.

    Twins' rows are equal to rows that are looked at, so nothing is asked of them. But they may
    refer to a parent, and what a request does to them is part of it."""
    if not final and not touched:
        return []
    if final:
        assert holders is not None, "unique indexes and foreign keys need a reader of entries"
        check_unique(final, holders)
    behind: list[Followed] = []
    if touched and rules.twin_follows:
        behind = followed(touched, catalog, rows)
    if final:
        assert holders is not None
        twins = {
            (each.descriptor.table_id, each.change.key): FinalRow(
                each.descriptor, each.before, each.change.image
            )
            for each in behind
        }
        check_references({**final, **twins}, catalog, rows, holders)
    return behind


def _verify_many(
    request: ChangeRequest,
    catalog: Catalog,
    rows: RowReader,
    lsn: int,
    versions: dict[int, int],
    rules: VerifyRules,
    holders: HolderReader | None,
    moment: Moment | None,
    slice_operations: int = OPERATIONS_PER_COMMIT_MAX,
) -> Generator[None, None, Decided]:
    overlay: dict[tuple[int, Key], Row | None] = {}
    final: dict[tuple[int, Key], FinalRow] = {}
    changes: list[RowChange] = []
    before: list[Row | None] = []
    with_twin: dict[tuple[int, Key], tuple[Descriptor, Row | None]] = {}
    for number, operation in enumerate(request.operations):
        if number % slice_operations == slice_operations - 1:
            yield
        descriptor = catalog.resolve(
            operation.table, operation.schema_version, fenced=rules.min_version_fences
        )
        known = versions.setdefault(descriptor.table_id, descriptor.version)
        if known != descriptor.version:
            raise MalformedRequest(
                f"operation {number} uses version {descriptor.version} of table"
                f" {descriptor.name!r}, an earlier one {known}; a transaction pins one version"
            )
        if not operation.key:
            operation = _with_key(operation, descriptor, request.id, number)
        bound = binding(descriptor)
        key = bound.key(operation.key)
        name = (descriptor.table_id, key)
        row = overlay[name] if name in overlay else rows(descriptor, key)
        try:
            change = _decide(operation, bound, key, row, rules, moment)
        except RowRefused as error:
            stale = row is None or any(genid_lsn(row.genids.get(k, 0)) == lsn for k in error.locks)
            if name in overlay and stale and rules.uncommittable_is_recognised:
                raise _uncommittable(number, descriptor, key) from error
            raise
        if change is None:
            continue
        overlay[name] = _after(change, row, lsn, len(changes))
        if _looked_at_the_end(descriptor, catalog):
            before_all = final[name].before if name in final else row
            final[name] = FinalRow(descriptor, before_all, change.image)
        if descriptor.twin:
            with_twin.setdefault(name, (descriptor, row))
        changes.append(change)
        before.append(row)
    touched = [Touched(*known, overlay[name]) for name, known in with_twin.items()]
    behind = _check_end(final, touched, catalog, rows, holders, rules)
    own = len(changes)
    changes += [each.change for each in behind]
    before += [each.before for each in behind]
    return Decided(tuple(changes), tuple(before), versions, own)


def _with_key(
    operation: Operation, descriptor: Descriptor, request: bytes, number: int
) -> Operation:
    """An insert or upsert may hold its key among its values; where there is none, a row is known by
    the request that made it, and by its number in there (T7)."""
    if operation.kind not in (_INSERT, _UPSERT):
        return operation
    if descriptor.hidden_key and operation.kind is _INSERT:
        return operation._replace(key=(hidden_key(request, number),))
    names = [column.name for column in descriptor.key_columns]
    values = dict(operation.values)
    key = {name: values.pop(name) for name in names if name in values}
    return operation._replace(key=key, values=values)


def _after(change: RowChange, row: Row | None, lsn: int, position: int) -> Row | None:
    """The row as later operations of the same request see it."""
    if change.image is None:
        return None
    genids = dict(row.genids) if row is not None else {}
    genids.update(change.carried)
    for lock in change.locks:
        genids[lock] = genid(lsn, position)
    return Row(change.image, genids, lsn)


def _decide(
    operation: Operation,
    bound: Binding,
    key: Key,
    row: Row | None,
    rules: VerifyRules,
    moment: Moment | None,
) -> RowChange | None:
    """One operation against one row; None when it affects no row."""
    descriptor = bound.descriptor
    kind = operation.kind
    if kind is _UPSERT:
        kind = _INSERT if row is None else _UPDATE
    if kind is _INSERT:
        return _insert(operation, bound, key, row, moment)
    changed: Image = {}
    locks = descriptor.locks
    if kind is _UPDATE and row is not None:
        changed = bound.values(operation.values, row.values)
        if descriptor.row_locks:
            locks = covering(descriptor, descriptor.changed_with(changed))
    seen = operation.expect if rules.genids_are_verified else None
    if seen is not None and (row is None or not agrees(descriptor, row.genids, seen, locks)):
        raise _verify_error(operation, descriptor, key, row, locks)
    if row is None:
        return None
    if kind is _DELETE:
        return RowChange(
            ChangeKind.DELETE,
            descriptor.table_id,
            descriptor.version,
            key,
            None,
            row.genids,
            (),
        )
    seen_row = row.values
    if not rules.master_composes:  # what a writer at this version could have seen
        seen_row = {e: v for e, v in seen_row.items() if e in descriptor.public_ids}
    image = compose(descriptor, _UPDATED, seen_row, changed, moment)
    bound.check(row.values, image)
    return RowChange(
        _UPDATED,
        descriptor.table_id,
        descriptor.version,
        key,
        image,
        row.genids,
        locks,
        carried(descriptor, row.genids, locks),
    )


def _insert(
    operation: Operation, bound: Binding, key: Key, row: Row | None, moment: Moment | None
) -> RowChange:
    descriptor = bound.descriptor
    if row is not None:
        raise DuplicateKey(
            f"duplicate key in table {descriptor.name!r}: {_words(descriptor, key)} exists",
            table=descriptor.name,
            constraint=f"{descriptor.name}_pkey",
            key=list(key),
        )
    changed = bound.with_key(bound.values(operation.values, None), key)
    image = compose(descriptor, ChangeKind.INSERT, None, changed, moment)
    bound.check(None, image)
    return RowChange(
        ChangeKind.INSERT,
        descriptor.table_id,
        descriptor.version,
        key,
        image,
        {},
        descriptor.locks,
    )


def _verify_error(
    operation: Operation,
    descriptor: Descriptor,
    key: Key,
    row: Row | None,
    locks: tuple[int, ...],
) -> RowRefused:
    image = None
    if row is not None:
        image = RowImage(
            descriptor.table_id, key, row.genids, row.lsn, descriptor.version, 0, row.values
        )
    now = "is gone" if row is None else f"has {_genid_words(operation, descriptor, row)} now"
    return RowRefused(
        f"verify error in table {descriptor.name!r}: {_words(descriptor, key)} was seen with genid"
        f" {operation.expect}, but {now}",
        image,
        locks,
        table=descriptor.name,
        key=list(key),
        expected=operation.expect,
    )


def _uncommittable(number: int, descriptor: Descriptor, key: Key) -> Uncommittable:
    """T2: what it expects, it has itself changed before: that is so in each replay."""
    return Uncommittable(
        f"operation {number} expects {_words(descriptor, key)} of table {descriptor.name!r} as it"
        " was seen, and an earlier operation of the same transaction has changed or deleted it:"
        " this can never be committed",
        table=descriptor.name,
        key=list(key),
    )


def _genid_words(operation: Operation, descriptor: Descriptor, row: Row) -> str:
    now = effective(descriptor, row.genids)
    if isinstance(operation.expect, Mapping):
        return str({n: now.get(k, 0) for n, k in lock_names(descriptor).items()})
    return f"genid {max(now.values())}"


def _words(descriptor: Descriptor, key: Key) -> str:
    if descriptor.hidden_key:
        return f"its row {key[0]}"
    names = ", ".join(column.name for column in descriptor.key_columns)
    kinds = (column.type for column in descriptor.key_columns)
    values = ", ".join(words_of(kind, value) for kind, value in zip(kinds, key, strict=True))
    return f"({names}) = ({values})"
