"""Decides an operation against its row: names and values, genids (T1), the after-image (T0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import (
    Refused,
    SequenceExhausted,
    Uncommittable,
    VerifyError,
)
from leasehold.model.ids import hidden_key
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.events import Image, RowImage
from leasehold.model.records.log import ChangeKind, RowChange
from leasehold.model.records.requests import ANY_GENID, Operation, OperationKind
from leasehold.rows.defaults import Draw
from leasehold.rows.generated import derive
from leasehold.rows.key_values import compose
from leasehold.transaction.binding import Binding
from leasehold.transaction.duplicate_key import primary_key_exists
from leasehold.transaction.locks import (
    agrees,
    carry_genids,
    covering_locks,
    effective_genids,
    lock_names,
)
from leasehold.transaction.row_conflict import RowRefused
from leasehold.transaction.uniqueness import in_the_way
from leasehold.values.types import is_equal, words_of

# Looked up once: a member of an enum costs as much as a call, and each request asks for several.
_INSERT, _UPDATE = OperationKind.INSERT, OperationKind.UPDATE
_DELETE, _UPSERT = OperationKind.DELETE, OperationKind.UPSERT
_UPDATED: Final = ChangeKind.UPDATE
_UNCOMPUTABLE: Final = frozenset({"22", "54"})
"""Classes of what an expression may fail with on one row and not on another."""
BEFORE_NAMED_MAX: Final = 10
"""Columns that the words of a verify error name."""


def with_key(
    operation: Operation, descriptor: Descriptor, request: bytes, number: int
) -> Operation:
    """An insert or upsert may hold its key among its values; where there is none, a row is known by
    the request that made it, and by its number in there (T7)."""
    if operation.kind not in (_INSERT, _UPSERT):
        return operation
    if descriptor.hidden_key and operation.kind is _INSERT:
        return operation._replace(key=(hidden_key(request, number),))
    kind, table, _, given, expect, version, arbiters, before = operation
    key: dict[str, Any] = {}
    values = dict(given)
    for column in descriptor.key_columns:
        if column.name in values:
            key[column.name] = values.pop(column.name)
    # Not `_replace`, which goes by the fields' names: many rows of a request come this way.
    return Operation(kind, table, key, values, expect, version, arbiters, before)


def decide(
    operation: Operation,
    bound: Binding,
    key: Key,
    row: Row | None,
    context: CommitContext | None,
    draw: Draw | None = None,
    *,
    replays: bool = False,
) -> RowChange | None:
    """Return the change that an operation makes, None when it affects no row. An insert where there
    is a row is an update that moves it: that one goes (`delete_row`), and comes like this. `draw`:
    numbers for columns that an old row has none of yet. `replays`: who asks would run its
    statements again."""
    descriptor = bound.descriptor
    kind = operation.kind
    if kind is _UPSERT:
        kind = _INSERT if row is None else _UPDATE
    if kind is _INSERT:
        if row is not None and "" in operation.arbiters:
            raise in_the_way(descriptor, _words(descriptor, key), key)
        return _insert(operation, bound, key, row, context)
    try:
        found = _composed(operation, kind, bound, key, row, context, draw)
    except SequenceExhausted:
        raise  # so it is for every replay
    except Refused as error:
        if replays and _is_found_out_by_replay(operation, error):
            raise _computed_otherwise(descriptor, key, error) from error
        raise
    if found is None or row is None:
        return None
    if found.image is None:
        return delete_row(descriptor, key, row)
    if found.moves:
        return land_row(bound, found.image)
    # ⚠ Refused here it is for good: constraints wait for COMMIT (T4), and no replay looks at them.
    bound.check(row.values, found.image)
    return update_row(descriptor, key, row, found.image, found.locks)


class _Composed(NamedTuple):
    """The row that an operation makes. `image` None: of a row that goes."""

    image: Image | None
    locks: tuple[int, ...]
    moves: bool = False


def _composed(
    operation: Operation,
    kind: OperationKind,
    bound: Binding,
    key: Key,
    row: Row | None,
    context: CommitContext | None,
    draw: Draw | None,
) -> _Composed | None:
    """Return what an update or a delete makes of its row, whose genids are looked at; None: it is
    not there."""
    descriptor = bound.descriptor
    changed: Image = {}
    locks = descriptor.locks
    moves = False
    if kind is _UPDATE and row is not None:
        changed = bound.values(operation.values, row.values, keys=operation.kind is _UPDATE)
        moves = bound.moves(changed, key)
        # An update of nothing by somebody who expects nothing is how a row is locked: all of it.
        of_all = not changed and operation.expect is None
        if descriptor.row_locks and not moves and not of_all:
            locks = covering_locks(descriptor, descriptor.changed_with(changed))
    seen = operation.expect
    if seen is not None and (row is None or not agrees(descriptor, row.genids, seen, locks)):
        raise _verify_error(operation, descriptor, key, row, locks)
    if operation.before is not None:
        _check_before(operation.before, bound, key, row)
    if row is None:
        return None
    if kind is _DELETE:
        return _Composed(None, locks)
    # T0 ⚠: from the row as it is, not as a writer at this version can have seen it.
    return _Composed(
        compose(descriptor, _UPDATED, row.values, changed, context, draw), locks, moves
    )


def _is_found_out_by_replay(operation: Operation, error: Refused) -> bool:
    """Whether an expression may have failed on this row alone, on which its sender has computed it
    otherwise."""
    return error.sqlstate[:2] in _UNCOMPUTABLE and operation.expect == ANY_GENID


def _computed_otherwise(descriptor: Descriptor, key: Key, error: Refused) -> VerifyError:
    """Return the error by which statements find out (T2, T4): ⚠ who replays has computed it on the
    row as it was, and has told its client so, and on the row as it is now that can't be done."""
    return VerifyError(
        f"verify error in table {descriptor.name!r}: on the row as it is now there is"
        f" {error.message} ({error.sqlstate})",
        table=descriptor.name,
        key=list(key),
    )


def delete_row(descriptor: Descriptor, key: Key, row: Row) -> RowChange:
    table, version = descriptor.table_id, descriptor.version
    return RowChange(ChangeKind.DELETE, table, version, key, None, row.genids, ())


def update_row(
    descriptor: Descriptor, key: Key, row: Row, image: Image, locks: tuple[int, ...]
) -> RowChange:
    return RowChange(
        _UPDATED,
        descriptor.table_id,
        descriptor.version,
        key,
        image,
        row.genids,
        locks,
        carry_genids(descriptor, row.genids, locks),
    )


def land_row(bound: Binding, image: Image) -> RowChange:
    """Return the change by which a row comes under another key, with every pair that it has, those
    that the writer can't see, too. Raises what `Binding.check` and generated columns raise."""
    descriptor = bound.descriptor
    bound.check_key(image)
    image = _checked_as_new(bound, image)
    table, version = descriptor.table_id, descriptor.version
    key = key_in(descriptor, image)
    return RowChange(ChangeKind.INSERT, table, version, key, image, {}, descriptor.locks)


def _checked_as_new(bound: Binding, image: Image) -> Image:
    """Return the image as that of a new row. ⚠ What broke a constraint before would be carried
    behind the slices of a verification that has passed there."""
    image = _recompute_derived(bound.descriptor, image)
    bound.check(None, image)
    return image


def _recompute_derived(descriptor: Descriptor, image: Image) -> Image:
    if not descriptor.has_derived:
        return image
    made = dict(image)
    derive(descriptor, None, made)
    return {element_id: value for element_id, value in made.items() if value is not None}


def key_in(descriptor: Descriptor, image: Image) -> Key:
    return tuple(image.get(e) for e in descriptor.primary_key)


def _insert(
    operation: Operation, bound: Binding, key: Key, row: Row | None, context: CommitContext | None
) -> RowChange:
    descriptor = bound.descriptor
    if row is not None:
        raise primary_key_exists(descriptor, key)
    changed = bound.with_key(bound.values(operation.values, None), key)
    image = compose(descriptor, ChangeKind.INSERT, None, changed, context)
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


def _check_before(before: Mapping[str, Any], bound: Binding, key: Key, row: Row | None) -> None:
    """Check that a row is as its writer says that it was. Raises RowRefused, and what types raise
    for a value that no such row can have."""
    descriptor = bound.descriptor
    said = bound.values(before, None)
    if row is None:
        differ = ["the row"]
        words = "is gone"
    else:
        differ = sorted(
            descriptor.by_id[element_id].name
            for element_id, value in said.items()
            if not is_equal(descriptor.by_id[element_id].type, row.values.get(element_id), value)
        )
        words = f"has another value of {', '.join(differ[:BEFORE_NAMED_MAX])} than was seen"
    if not differ:
        return
    image = None
    if row is not None:
        image = RowImage(
            descriptor.table_id, key, row.genids, row.lsn, descriptor.version, 0, row.values
        )
    raise RowRefused(
        f"verify error in table {descriptor.name!r}: {_words(descriptor, key)} {words}",
        image,
        descriptor.locks,
        table=descriptor.name,
        key=list(key),
        columns=differ[:BEFORE_NAMED_MAX],
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
    now = "is gone"
    more: dict[str, object] = {}
    if row is not None:
        genid = _genid_now(operation, descriptor, row)
        now = f"has {genid} now" if isinstance(genid, dict) else f"has genid {genid} now"
        more["genid"] = genid
    said = f"was seen with genid {operation.expect}"
    if operation.expect == ANY_GENID:
        said = "has to be there"
    return RowRefused(
        f"verify error in table {descriptor.name!r}: {_words(descriptor, key)} {said}, but {now}",
        image,
        locks,
        table=descriptor.name,
        key=list(key),
        expected=operation.expect,
        **more,
    )


def uncommittable(number: int, descriptor: Descriptor, key: Key) -> Uncommittable:
    """Return the error of a request that expects what it has itself changed before: that is so in
    each replay (T2)."""
    return Uncommittable(
        f"operation {number} expects {_words(descriptor, key)} of table {descriptor.name!r} as it"
        " was seen, and an earlier operation of the same transaction has changed or deleted it:"
        " this can never be committed",
        table=descriptor.name,
        key=list(key),
    )


def _genid_now(operation: Operation, descriptor: Descriptor, row: Row) -> int | dict[str, int]:
    """The row's, in the form in which the operation expects one."""
    now = effective_genids(descriptor, row.genids)
    if isinstance(operation.expect, Mapping):
        return {n: now.get(k, 0) for n, k in lock_names(descriptor).items()}
    return max(now.values())


def _words(descriptor: Descriptor, key: Key) -> str:
    if descriptor.hidden_key:
        return f"its row {key[0]}"
    names = ", ".join(column.name for column in descriptor.key_columns)
    kinds = (column.type for column in descriptor.key_columns)
    values = ", ".join(words_of(kind, value) for kind, value in zip(kinds, key, strict=True))
    return f"({names}) = ({values})"
