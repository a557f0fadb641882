"""The numbers that one session's transactions draw: `sql.functions_sequence.SequenceValues`.

⚠ What a statement has drawn it draws again when it runs again, by its place in the transaction
(T2): a number that RETURNING has told stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.sequence import SequencePosition, move_position, take_numbers
from leasehold.catalog.sequence_ownership import set_operation
from leasehold.model.errors import NoNumberYet, NotCoherent, QueryCanceled, RequestTooLarge
from leasehold.model.records.requests import Operation
from leasehold.replica.sequences.node_blocks import (
    TRIES_MAX,
    Found,
    NodeSequenceValues,
    Wanted,
    gave_up,
)

T = TypeVar("T")
DRAWN_MAX: Final = 1_000_000
"""Numbers of one transaction, all of which are kept for a replay."""
SET: Final = -1
"""In the place of a sequence's id, in what was drawn: a setval that was done."""


class LocalSequence(NamedTuple):
    """A sequence that a transaction has made, or restarted, from `start` on: of it nobody else
    draws before its commit, which tells how far it came. `beginning`: which of all."""

    descriptor: Descriptor
    start: int
    beginning: int

    @property
    def name(self) -> tuple[int, int, int]:
        """The name of its standing. ⚠ What was restarted and taken back goes on from where it
        was."""
        return self.descriptor.table_id, self.start, self.beginning


Local = Mapping[int, LocalSequence]
"""By their ids."""


class SessionSequenceValues:
    """The values that currval and lastval tell, by sequence id; a session's, over its
    transactions."""

    def __init__(self) -> None:
        self._current: dict[int, int] = {}
        self._last: int | None = None

    def set_drawn(self, sequence_id: int, number: int) -> None:
        self._current[sequence_id] = number
        self._last = sequence_id

    def set(self, sequence_id: int, number: int) -> None:
        self._current[sequence_id] = number

    def known(self, sequence_id: int) -> bool:
        return sequence_id in self._current

    def rename(self, provisional: int, sequence_id: int) -> None:
        """Keep that a sequence which a transaction has made is there now, under its own id."""
        self._current[sequence_id] = self._current.pop(provisional)
        if self._last == provisional:
            self._last = sequence_id

    def current(self, sequence: Descriptor) -> int:
        found = self._current.get(sequence.table_id)
        if found is None:
            raise NoNumberYet(
                f'currval of sequence "{sequence.name}" is not yet defined in this session'
            )
        return found

    def last(self, is_there: Callable[[int], bool]) -> int:
        """Return lastval. `is_there` tells whether a sequence of an id exists. Raises
        NoNumberYet."""
        if self._last is None or not is_there(self._last):
            raise NoNumberYet("lastval is not yet defined in this session")
        return self._current[self._last]

    def forget(self, gone: Callable[[int], bool]) -> None:
        """Forget the sequences of which this is true: they will never be there again."""
        self._current = {k: v for k, v in self._current.items() if not gone(k)}
        if self._last is not None and gone(self._last):
            self._last = None

    def discard(self) -> None:
        self._current, self._last = {}, None


class DrawnSequenceValues:
    """The numbers that one transaction has drawn."""

    def __init__(
        self,
        node: NodeSequenceValues,
        session: SessionSequenceValues,
        check_may_write: Callable[[], None] = lambda: None,
        stopped: Callable[[], bool] | None = None,
    ) -> None:
        """Begin with none. `check_may_write` is called before a number is drawn, or a sequence set;
        `stopped` tells whether the statement is to end, while it waits for numbers."""
        self._node = node
        self._check_may_write = check_may_write
        self._stopped = stopped
        self._session = session
        self._told: dict[int, dict[int, list[int]]] = {}
        self._drawn = 0
        self._place = 0
        self._again: dict[int, Iterator[int]] = {}
        self._found: dict[int, Found] = {}
        self._local: Local = {}
        self._gone: Collection[int] = ()
        self._wait_coherent: Callable[[], None] = _never
        self._states: dict[tuple[int, int, int], SequencePosition] = {}
        self.may_draw: Callable[[int], None] = _may_draw
        """Raises InsufficientPrivilege where the role of the statement may not draw from a
        sequence."""

    def take_over(self, before: DrawnSequenceValues) -> None:
        """Draw what `before` has drawn, of which this is a replay: a number that was told stays
        (T2)."""
        self._told, self._drawn = before._told, before._drawn

    # ------------------------------------------------------------ a statement

    def running(
        self,
        position: int,
        local: Local,
        work: Callable[[], T],
        check_may_block: Callable[[], None],
        wait_coherent: Callable[[], None],
        gone: Collection[int] = (),
    ) -> T:
        """Return what `work` does, which runs the statement at that place, more than once where it
        has to wait for numbers in between; nothing of it may stay when it raises. `gone` are
        sequences that its transaction drops. Raises what `work` raises, WouldBlock, what
        `NodeSequenceValues.fill` raises."""
        self._local, self._wait_coherent, self._gone = local, wait_coherent, gone
        tries = known = 0
        while tries < TRIES_MAX:
            self._place, self._again, self._found = position, {}, {}
            try:
                return work()
            except Wanted as wanted:
                check_may_block()
                if self._stopped is not None and self._stopped():
                    raise QueryCanceled("a statement that takes numbers was ended") from None
                wanted.work()
            # Each setval waits by itself, and gets further every time.
            tries, known = tries + 1 if self._drawn == known else 1, self._drawn
        raise gave_up()

    def _next_redrawn(self, what: int) -> int | None:
        """Return what the statement has drawn there before, if anything."""
        if what not in self._again:
            told = self._told.get(self._place, {}).get(what, ())
            self._again[what] = iter(tuple(told))
        return next(self._again[what], None)

    def _tell(self, what: int, number: int) -> None:
        if self._drawn >= DRAWN_MAX:
            raise RequestTooLarge(f"a transaction draws at most {DRAWN_MAX} numbers from sequences")
        self._drawn += 1
        self._told.setdefault(self._place, {}).setdefault(what, []).append(number)

    # ------------------------------------------------------------ its functions

    def next(self, sequence_id: int) -> int:
        number, own = self._next_redrawn(sequence_id), self._local.get(sequence_id)
        if number is None:
            self._check_may_write()
            number = self._shared(sequence_id) if own is None else self._own(own)
            self._tell(sequence_id, number)
        elif own is not None:
            self._states[own.name] = SequencePosition(number, True, 0)
        self._session.set_drawn(sequence_id, number)
        return number

    def check_may_draw(self, sequence_id: int) -> None:
        self.may_draw(sequence_id)

    def _shared(self, sequence_id: int) -> int:
        found = self._found.get(sequence_id)
        if found is None:
            try:
                found = self._found[sequence_id] = self._node.find(sequence_id)
            except NotCoherent:
                raise Wanted(self._wait_coherent) from None
        number = self._node.draw(found)
        if number is None:
            drawn = len(self._told.get(self._place, {}).get(sequence_id, ()))
            raise Wanted(lambda: self._node.fill(found, drawn, self._stopped))
        return number

    def current(self, sequence: Descriptor) -> int:
        return self._session.current(sequence)

    def last(self) -> int:
        return self._session.last(self._is_there)

    def _is_there(self, sequence_id: int) -> bool:
        if sequence_id in self._gone:
            return False
        if sequence_id in self._local:
            return True
        try:
            return self._node.is_there(sequence_id)
        except NotCoherent:
            raise Wanted(self._wait_coherent) from None

    def set(self, sequence: Descriptor, value: int, *, called: bool) -> None:
        own = self._local.get(sequence.table_id)
        if own is not None:
            self._check_may_write()
            assert sequence.sequence is not None, sequence
            after = move_position(sequence.sequence, sequence.name, value, called, 0)
            self._states[own.name] = after
        elif self._next_redrawn(SET) is None:
            self._check_may_write()
            raise Wanted(lambda: self._set(sequence, value, called=called))
        if called:
            self._session.set(sequence.table_id, value)

    def _set(self, sequence: Descriptor, value: int, *, called: bool) -> None:
        self._node.set(sequence, value, called=called, stopped=self._stopped)
        self._tell(SET, value)

    # ------------------------------------------------------------ sequences of its own

    def _own(self, own: LocalSequence) -> int:
        sequence = own.descriptor.sequence
        assert sequence is not None, own
        before = self._states.get(own.name, SequencePosition(own.start, False, 0))
        found = take_numbers(sequence, own.descriptor.name, before, 1)
        self._states[own.name] = found.after
        return found.first

    def next_of(self, local: Local) -> dict[int, int]:
        """Return from where its own sequences go on that it has drawn from."""
        found: dict[int, int] = {}
        for number, own in local.items():
            known, sequence = self._states.get(own.name), own.descriptor.sequence
            if known is not None and sequence is not None:
                found[number] = known.last + (sequence.increment if known.called else 0)
        return found

    def settings(self, local: Local) -> list[Operation]:
        """Return how far it came with its own sequences, as operations of its commit."""
        found: list[Operation] = []
        for own in local.values():
            known = self._states.get(own.name)
            if known is None:
                continue
            said = set_operation(own.descriptor, known.last, called=known.called)
            found.append(said._replace(values={**said.values, "own": True}))
        return found


def _may_draw(sequence_id: int) -> None:
    """Do nothing: of programs that embed a replica nobody is asked."""


def _never() -> None:
    raise AssertionError("no statement runs")
