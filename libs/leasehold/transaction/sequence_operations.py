"""Numbers of sequences, as the master gives them: to rows that came without one, and by the block.

The master alone moves a sequence, on its own row of it, in the order of its log; what it gave
stands in the commit. Operations on a sequence are of these kinds, and no others are taken:
    {"take": n}                    the next n numbers are the requester's; the answer says which
    {"set": v, "called": yes}      setval, RESTART: what was taken before is nobody's any more
    {"within": [least, most]}      it is refused where it stands beyond
    {"back": n, "last": m, …}      of a block the numbers from n to m are nobody's: the next one is
                                   n again, where none has been taken behind them; of one that
                                   cycles, where commit `at` has moved it last
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.elements import Column
from leasehold.catalog.sequence import (
    ROW_KEY,
    Sequence,
    SequencePosition,
    check_restart,
    continue_position,
    first_position,
    move_position,
    position_image,
    read_position,
    take_numbers,
)
from leasehold.catalog.states import READABLE
from leasehold.model.errors import MalformedRequest, StoreCorrupted, VerifyError, WrongObject
from leasehold.model.ids import is_sequence_id
from leasehold.model.ports import Row
from leasehold.model.records.log import CatalogWrite, ChangeKind, DescriptorWrite, RowChange
from leasehold.model.records.requests import Operation, OperationKind
from leasehold.transaction.decide import update_row
from leasehold.transaction.overlay import Overlay, RowReader

BLOCK_MAX: Final = 1_000_000
TAKE: Final = "take"
SET: Final = "set"
WITHIN: Final = "within"
BACK: Final = "back"
_ASKED: Final = (TAKE, SET, WITHIN, BACK)
_BIGINT: Final = (-(1 << 63), (1 << 63) - 1)
_CREATES: Final = (OperationKind.INSERT, OperationKind.UPSERT)
_CHANGES: Final = (OperationKind.UPDATE, OperationKind.UPSERT)


def lacks_sequence_values(operation: Operation, descriptor: Descriptor) -> tuple[Column, ...]:
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
        if not {value_name_of(c), c.alias} & given and c.element_id not in keyed
    )


def value_name_of(column: Column) -> Any:
    """Return the name under which a number stands among an operation's values, and its column's id
    where it has none. ⚠ A column that is being dropped is written for those who still read it, and
    no writer of the newer version can name it."""
    return column.name if column.state in READABLE else column.element_id


def may_draw(operation: Operation, descriptor: Descriptor) -> bool:
    """Whether a number may have to be drawn for it. ⚠ Also for a row of before a column that draws
    one, whoever is first to write it: the backfill or an update (T0)."""
    old = descriptor.numbers_old_rows and operation.kind in _CHANGES
    return old or bool(lacks_sequence_values(operation, descriptor))


def first_row(sequence: Descriptor, lsn: int) -> RowChange:
    """Return the row of a sequence that commit `lsn` makes: where it begins."""
    assert sequence.sequence is not None, sequence
    return _inserted(sequence, first_position(sequence.sequence, lsn))


def rows_with_versions(
    catalog: Catalog, writes: Iterable[CatalogWrite], rows: RowReader, lsn: int
) -> Iterator[Move]:
    """Yield the moves of sequences in the commit `lsn` that writes their versions: one that it
    makes begins, and one that it alters goes on under another epoch."""
    for write in writes:
        if not isinstance(write, DescriptorWrite) or not is_sequence_id(write.table_id):
            continue
        said = from_wire(write.body)
        if not catalog.has(said.table_id):
            yield Move(said, None, first_row(said, lsn))
            continue
        before = catalog.newest(said.table_id)
        row = rows(before, ROW_KEY)
        if said.sequence is None or said.sequence == before.sequence or row is None:
            continue
        after = continue_position(said.sequence, read_position(row.values), lsn)
        yield Move(before, row, move_row(before, row, after))


def _inserted(sequence: Descriptor, state: SequencePosition) -> RowChange:
    table, version, locks = sequence.table_id, sequence.version, sequence.locks
    return RowChange(ChangeKind.INSERT, table, version, ROW_KEY, position_image(state), {}, locks)


class Move(NamedTuple):
    """A sequence's row, as a commit moves it."""

    descriptor: Descriptor
    row: Row | None
    change: RowChange


class Drawing:
    """Numbers for the rows of one commit: each sequence is moved once, by as many as were drawn."""

    def __init__(self, catalog: Catalog, rows: RowReader, lsn: int) -> None:
        self._catalog = catalog
        self._rows = rows
        self._lsn = lsn
        self._held: dict[int, tuple[Descriptor, Row | None, SequencePosition]] = {}

    def next(self, column: Column) -> int:
        """Raises SequenceExhausted, MalformedRequest."""
        sequence_id = column.draws_from
        if not self._catalog.has(sequence_id):
            raise MalformedRequest("the sequence of a default is gone: give a value")
        if sequence_id not in self._held:
            descriptor = self._catalog.newest(sequence_id)
            self._held[sequence_id] = (descriptor, *self.state(descriptor))
        descriptor, row, state = self._held[sequence_id]
        assert descriptor.sequence is not None, descriptor
        found = take_numbers(descriptor.sequence, descriptor.name, state, 1)
        self._held[sequence_id] = (descriptor, row, found.after)
        return found.first

    def state(self, descriptor: Descriptor) -> tuple[Row | None, SequencePosition]:
        """Return the row of a sequence, and where it stands, but for what is drawn here and not
        moved yet."""
        assert descriptor.sequence is not None, descriptor
        row = self._rows(descriptor, ROW_KEY)
        if row is None:
            return None, first_position(descriptor.sequence, self._lsn)
        try:
            return row, read_position(row.values)
        except KeyError as error:
            raise StoreCorrupted(f"sequence {descriptor.name!r} has lost its row") from error

    def moved(self) -> Iterator[Move]:
        """Yield what was drawn since the last time: to be put before anybody else looks."""
        for descriptor, row, after in self._held.values():
            yield Move(descriptor, row, move_row(descriptor, row, after))
        self._held.clear()


def move_row(descriptor: Descriptor, row: Row | None, after: SequencePosition) -> RowChange:
    if row is None:
        return _inserted(descriptor, after)
    return update_row(descriptor, ROW_KEY, row, position_image(after), descriptor.locks)


class SequenceValues:
    """The numbers that one request draws and takes. `answer`: the block that it has taken."""

    def __init__(
        self, catalog: Catalog, overlay: Overlay, versions: dict[int, int], lsn: int
    ) -> None:
        self._overlay = overlay
        self._versions = versions
        self._lsn = lsn
        self._drawing = Drawing(catalog, overlay.row, lsn)
        self.answer: Any = None

    # ------------------------------------------------------------ rows without a number

    def given_to(self, operation: Operation, descriptor: Descriptor) -> Operation:
        """Return the operation with a number in each column that draws one. Raises
        SequenceExhausted."""
        for column in lacks_sequence_values(operation, descriptor):
            values: dict[Any, Any] = {**operation.values, value_name_of(column): self.next(column)}
            key = operation.key
            if isinstance(key, Mapping) and key and column.element_id in descriptor.primary_key:
                key = {**key, column.name: values.pop(column.name)}
            operation = operation._replace(key=key, values=values)
        return operation

    def next(self, column: Column) -> int:
        """Raises SequenceExhausted, MalformedRequest."""
        return self._drawing.next(column)

    def settle(self) -> None:
        """Move the sequences as far as was drawn."""
        for descriptor, row, change in self._drawing.moved():
            self._put(descriptor, row, change)

    # ------------------------------------------------------------ operations on a sequence

    def operation(self, operation: Operation, descriptor: Descriptor) -> None:
        """Raises WrongObject, MalformedRequest, SequenceExhausted, OutOfRange, VerifyError."""
        sequence = descriptor.sequence
        assert sequence is not None, descriptor
        values = operation.values
        if operation.kind is not OperationKind.UPDATE or values.keys().isdisjoint(_ASKED):
            raise WrongObject(
                f"{descriptor.name!r} is a sequence: its row can't be written",
                table=descriptor.name,
            )
        self.settle()
        row, state = self._drawing.state(descriptor)
        if TAKE in values:
            count = _whole(values, TAKE, 1, BLOCK_MAX)
            found = take_numbers(sequence, descriptor.name, state, count)
            self.answer = {
                "numbers": (descriptor.table_id, found.first, found.got, found.after.epoch),
                "at": self._lsn,
            }
            self._put(descriptor, row, move_row(descriptor, row, found.after))
            return
        if WITHIN in values:
            _check_within(values, state, sequence)
            return
        if BACK in values:
            back = give_back(sequence, state, values, self._lsn)
            if back is not None and not _may_be_a_lap_later(sequence, row, values):
                self._put(descriptor, row, move_row(descriptor, row, back))
            return
        if values.get("own") and state.epoch != self._lsn:
            # ⚠ Its maker has seen another name for it than the one that this commit has found free.
            raise VerifyError(f"sequence {descriptor.name!r} is not made by this request")
        last = _whole(values, SET, *_BIGINT)
        called = bool(values.get("called", True))
        # ⚠ Its epoch is this commit: blocks from before are nobody's any more.
        after = move_position(sequence, descriptor.name, last, called, self._lsn)
        self._put(descriptor, row, move_row(descriptor, row, after))

    def _put(self, descriptor: Descriptor, row: Row | None, change: RowChange) -> None:
        self._versions.setdefault(descriptor.table_id, descriptor.version)
        self._overlay.put(descriptor, row, change)


def _may_be_a_lap_later(sequence: Sequence, row: Row | None, values: Mapping[str, Any]) -> bool:
    """Whether a sequence that cycles was moved since the commit that `values` give a block back
    to. ⚠ A lap later it stands there again, and that block is another node's."""
    return sequence.cycles and (row is None or values.get("at") != row.lsn)


def _check_within(values: Mapping[str, Any], state: SequencePosition, sequence: Sequence) -> None:
    """Raise InvalidArgument where it stands beyond, as PostgreSQL says it of what ALTER SEQUENCE
    finds."""
    bounds = values[WITHIN]
    if type(bounds) not in (tuple, list) or len(bounds) != 2:
        raise MalformedRequest(f"{WITHIN!r} has two whole numbers")
    least, most = (_whole({WITHIN: each}, WITHIN, *_BIGINT) for each in bounds)
    check_restart(sequence._replace(least=least, most=most), state.last)


def give_back(
    sequence: Sequence, state: SequencePosition, values: Mapping[str, Any], lsn: int
) -> SequencePosition | None:
    """Return where it stands when a node has left off handing out a block from `back` on; None: as
    it does, since somebody has taken numbers behind that block, or set it. ⚠ Under another epoch,
    so that a request which comes again later finds nothing to give back."""
    first, last = _whole(values, BACK, *_BIGINT), _whole(values, "last", *_BIGINT)
    epoch = _whole(values, "epoch", 0, _BIGINT[1])
    if not state.called or (state.last, state.epoch) != (last, epoch):
        return None
    left, rest = divmod(last - first, sequence.increment)
    if rest or left < 0:
        return None
    before = first - sequence.increment
    if values.get("untouched") or not sequence.least <= before <= sequence.most:
        return SequencePosition(first, False, lsn)
    return SequencePosition(before, True, lsn)


def _whole(values: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = values.get(name)
    if type(value) is not int or not least <= value <= most:
        raise MalformedRequest(f"{name!r} is a whole number from {least} to {most}")
    return value
