"""Numbers of sequences, as the master gives them: to rows that came without one, and by the block.

The master alone moves a sequence, on its own row of it, in the order of its log; what it gave
stands in the commit. Operations on a sequence are of two kinds, and no others are taken:
    {"take": n}                    the next n numbers are the asker's; the answer says which
    {"set": v, "called": yes}      setval, RESTART: what was taken before is nobody's any more
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from leasehold.model.errors import MalformedRequest, StoreCorrupted, VerifyError, WrongObject
from leasehold.model.ports import Row
from leasehold.model.records import ChangeKind, ChangeRequest, Operation, OperationKind, RowChange
from leasehold.schema.catalog import Catalog
from leasehold.schema.descriptor import Column, Descriptor
from leasehold.schema.sequence import (
    ROW_KEY,
    Standing,
    fresh,
    image_of,
    moved_to,
    standing_of,
    taken,
)
from leasehold.schema.states import READABLE
from leasehold.transaction.deciding import updated
from leasehold.transaction.overlay import Overlay
from leasehold.transaction.rules import VerifyRules

BLOCK_MAX: Final = 1_000_000
TAKE: Final = "take"
SET: Final = "set"
_CREATES: Final = (OperationKind.INSERT, OperationKind.UPSERT)


def lacks_numbers(operation: Operation, descriptor: Descriptor) -> tuple[Column, ...]:
    """Columns that draw their default, and that the operation leaves out."""
    if not descriptor.numbered or operation.kind not in _CREATES:
        return ()
    key: Any = operation.key
    given: set[Any] = {*operation.values}
    if isinstance(key, Mapping):
        given |= key.keys()
    keyed = descriptor.primary_key if key and not isinstance(key, Mapping) else ()
    return tuple(
        c
        for c in descriptor.numbered
        if not {place_of(c), c.alias} & given and c.element_id not in keyed
    )


def place_of(column: Column) -> Any:
    """Under which a number stands among an operation's values: its name, and its id where it has
    none. ⚠ A column that is being dropped is written for those who still read it, and no writer of
    the newer version can name it."""
    return column.name if column.state in READABLE else column.element_id


class Numbers:
    """Of one request. `answer`: the block that it has taken."""

    def __init__(
        self,
        request: ChangeRequest,
        catalog: Catalog,
        overlay: Overlay,
        versions: dict[int, int],
        lsn: int,
        rules: VerifyRules,
    ) -> None:
        self._request = request
        self._catalog = catalog
        self._overlay = overlay
        self._versions = versions
        self._lsn = lsn
        self._rules = rules
        self._left: dict[int, list[int]] = {}
        self.answer: Any = None

    # ------------------------------------------------------------ rows without a number

    def given_to(self, operation: Operation, number: int, descriptor: Descriptor) -> Operation:
        """With a number in each column that draws one. Raises SequenceExhausted."""
        for column in lacks_numbers(operation, descriptor):
            left = self._left.get(column.draws_from)
            if not left:
                wanted = self._wanted(column, number, operation)
                left = self._left[column.draws_from] = self._drawn(column.draws_from, wanted)
            values: dict[Any, Any] = {**operation.values, place_of(column): left.pop()}
            key = operation.key
            if isinstance(key, Mapping) and key and column.element_id in descriptor.primary_key:
                key = {**key, column.name: values.pop(column.name)}
            operation = operation._replace(key=key, values=values)
        return operation

    def _wanted(self, column: Column, number: int, operation: Operation) -> int:
        """As many as this and the operations behind it need, as far as that is seen at once."""
        return sum(
            1
            for each in self._request.operations[number:]
            if each.table == operation.table
            and each.kind in _CREATES
            and place_of(column) not in each.values
        )

    def _drawn(self, sequence_id: int, count: int) -> list[int]:
        """The next of them last."""
        if not self._catalog.has(sequence_id):
            raise MalformedRequest("the sequence of a default is gone: give a value")
        descriptor = self._catalog.newest(sequence_id)
        assert descriptor.sequence is not None, descriptor
        row, standing = self._standing(descriptor)
        found = taken(descriptor.sequence, descriptor.name, standing, count)
        self._put(descriptor, row, found.after)
        step = descriptor.sequence.increment
        return [found.first + step * n for n in reversed(range(found.got))]

    # ------------------------------------------------------------ operations on a sequence

    def operation(self, operation: Operation, descriptor: Descriptor) -> None:
        """Raises WrongObject, MalformedRequest, SequenceExhausted, OutOfRange, VerifyError."""
        sequence = descriptor.sequence
        assert sequence is not None, descriptor
        values = operation.values
        if operation.kind is not OperationKind.UPDATE or not values.keys() & {TAKE, SET}:
            raise WrongObject(
                f"{descriptor.name!r} is a sequence: its row can't be written",
                table=descriptor.name,
            )
        row, standing = self._standing(descriptor)
        if TAKE in values:
            count = _whole(values, TAKE, 1, BLOCK_MAX)
            found = taken(sequence, descriptor.name, standing, count)
            self.answer = {
                "numbers": (descriptor.table_id, found.first, found.got, found.after.epoch)
            }
            self._put(descriptor, row, found.after)
            return
        if values.get("own") and standing.epoch != self._lsn:
            # ⚠ Its maker has seen another name for it than the one that this commit has found free.
            raise VerifyError(f"sequence {descriptor.name!r} is not made by this request")
        last = _whole(values, SET, -(1 << 63), (1 << 63) - 1)
        called = bool(values.get("called", True))
        after = moved_to(sequence, descriptor.name, last, called, self._lsn)
        if not self._rules.setting_begins_an_epoch:
            after = after._replace(epoch=standing.epoch)
        self._put(descriptor, row, after)

    # ------------------------------------------------------------ its row

    def _standing(self, descriptor: Descriptor) -> tuple[Row | None, Standing]:
        assert descriptor.sequence is not None, descriptor
        row = self._overlay.row(descriptor, ROW_KEY)
        if row is None:
            return None, fresh(descriptor.sequence, self._lsn)
        try:
            return row, standing_of(row.values)
        except KeyError as error:
            raise StoreCorrupted(f"sequence {descriptor.name!r} has lost its row") from error

    def _put(self, descriptor: Descriptor, row: Row | None, after: Standing) -> None:
        self._versions.setdefault(descriptor.table_id, descriptor.version)
        image, locks = image_of(after), descriptor.locks
        if row is None:
            table, version = descriptor.table_id, descriptor.version
            change = RowChange(ChangeKind.INSERT, table, version, ROW_KEY, image, {}, locks)
        else:
            change = updated(descriptor, ROW_KEY, row, image, locks)
        self._overlay.put(descriptor, row, change)


def _whole(values: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = values[name]
    if type(value) is not int or not least <= value <= most:
        raise MalformedRequest(f"{name!r} is a whole number from {least} to {most}")
    return value
