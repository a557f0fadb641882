"""Numbers of sequences on a node: taken from the master by the block, handed out from memory.

A block is a node's once the commit that moved the sequence past it is in the log, and nobody else's
ever: so a number is given once, whatever ends in between, and what was not handed out is lost, as
in PostgreSQL behind CACHE. Before a statement draws, its node looks at the sequence's row: a block
from before a setval or RESTART is of another epoch, and thrown away (DESIGN.md).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from leasehold.adapters.os.clock import new_request_id
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.sequence import EPOCH, ROW_KEY, read_position
from leasehold.catalog.sequence_ownership import set_operation
from leasehold.catalog.states import State
from leasehold.client.pending import waited_for
from leasehold.model.errors import (
    CanceledUnderWay,
    GaveUp,
    NoMaster,
    OutcomeUnknown,
    QueryCanceled,
    Refused,
    StaleVersion,
    UnknownTable,
)
from leasehold.model.ports import StoreSnapshot
from leasehold.model.records.requests import (
    ChangeRequest,
    OnConflict,
    Operation,
    OperationKind,
    Outcome,
)
from leasehold.replica.reads import Reads
from leasehold.transaction.sequence_operations import BACK, BLOCK_MAX, TAKE

BLOCK_VALUES: Final = 32
"""As PostgreSQL writes ahead of itself; twice as many after one that was used up soon."""
BLOCK_VALUES_MAX: Final = 8_192
SOON_S: Final = 1.0
ANSWER_TIMEOUT_S: Final = 30.0
TRIES_MAX: Final = 100

Stopped = Callable[[], bool]
Submit = Callable[[ChangeRequest, float, Stopped | None], Outcome]


class Found(NamedTuple):
    """A sequence as a statement finds it."""

    descriptor: Descriptor
    epoch: int


@dataclass(slots=True)
class _Block:
    """A block of one sequence: `left` numbers from `next` on, of that epoch, taken by the commit
    `at`."""

    epoch: int = -1
    next: int = 0
    left: int = 0
    first: int = 0
    at: int = -1
    size: int = 0
    taken_s: float = 0.0
    filling: threading.Lock = field(default_factory=threading.Lock)


class NodeSequenceValues:
    """The blocks of one node; methods may be called from any thread."""

    def __init__(self, submit: Submit, reads: Callable[[], Reads]) -> None:
        """Begin without blocks. `submit` is that of `SqlNode`; `reads` gives what is newest here,
        by one snapshot."""
        self._submit = submit
        self._reads = reads
        self._lock = threading.Lock()
        self._blocks: dict[int, _Block] = {}

    def find(self, sequence_id: int) -> Found:
        """Return a sequence as it is now. Raises NotCoherent, UnknownTable (it was dropped)."""
        with self._reads().snapshot() as snapshot:
            versions = snapshot.versions(sequence_id)
            if not versions:
                raise UnknownTable("the sequence does not exist any more")
            row = snapshot.get(versions[-1], ROW_KEY)
            epoch = 0 if row is None else row.values.get(EPOCH, 0)
            return Found(versions[-1], epoch)

    def is_there(self, sequence_id: int) -> bool:
        """Return whether a sequence exists. Raises NotCoherent."""
        with self._reads().snapshot() as snapshot:
            versions = snapshot.versions(sequence_id)
            return bool(versions) and versions[-1].state is not State.ABSENT

    def draw(self, found: Found) -> int | None:
        """Return the next number; None: `fill` has to take some first."""
        sequence = found.descriptor.sequence
        assert sequence is not None, found
        with self._lock:
            block = self._blocks.get(found.descriptor.table_id)
            if block is None or not self._holds(block, found):
                return None
            number, block.left = block.next, block.left - 1
            block.next += sequence.increment
            return number

    def _holds(self, block: _Block, found: Found) -> bool:
        """Return whether a block has numbers: what was taken before a setval is nobody's (T8)."""
        return bool(block.left) and block.epoch == found.epoch

    def fill(self, found: Found, wanted: int, stopped: Stopped | None = None) -> None:
        """Take a block; it waits for the master. `wanted`: about as many are needed now. One at a
        time for a sequence: who comes meanwhile finds what the first one took. `stopped`: has who
        waits been told to end? A block that he has asked for is nobody's then.

        Raises SequenceExhausted, StaleVersion (it is gone), NoMaster (nobody has answered),
        BusUnavailable, QueryCanceled.
        """
        descriptor = found.descriptor
        with self._lock:
            block = self._blocks.setdefault(descriptor.table_id, _Block())
        # ⚠ Without an answer each would wait its whole time for the one before it.
        if not _acquired(block.filling, stopped):
            raise NoMaster(
                f"no numbers of sequence {descriptor.name!r} could be had: others have waited for"
                f" {ANSWER_TIMEOUT_S:g} s"
            )
        try:
            with self._lock:
                if self._holds(block, found):
                    return
                count = self._size(block, descriptor, wanted)
            try:
                answer = self._asked(descriptor, {TAKE: count}, stopped)
            except UnknownTable as error:
                # Its table is being dropped, or the column: who runs again finds out.
                raise StaleVersion(error.message, table=descriptor.name) from error
            except OutcomeUnknown as error:
                # The block may be taken, and is nobody's then; the statement has done nothing.
                raise NoMaster(
                    f"no numbers of sequence {descriptor.name!r} could be had: {error.message}"
                ) from error
            table_id, first, got, epoch = answer["numbers"]
            if table_id != descriptor.table_id:
                return  # another one has its name by now: `find` will tell
            with self._lock:
                block.epoch, block.next, block.left = epoch, first, got
                block.first, block.at = first, answer.get("at", -1)
                block.taken_s = time.monotonic()
        finally:
            block.filling.release()

    def _size(self, block: _Block, descriptor: Descriptor, wanted: int) -> int:
        assert descriptor.sequence is not None, descriptor
        soon = not block.left and time.monotonic() - block.taken_s < SOON_S
        size = 2 * block.size if soon else block.size // 2
        size = max(BLOCK_VALUES, min(size, BLOCK_VALUES_MAX))
        block.size = size
        return min(max(size, wanted, descriptor.sequence.cache), BLOCK_MAX)

    def give_back(self, found: Found, stopped: Stopped | None = None) -> None:
        """Hand out no more of a block, so that what is left is the next for whoever takes numbers.

        Before ALTER SEQUENCE, which would leave a gap, and PostgreSQL leaves none. Whether the
        master has taken it back nobody is told: where it has not, there is the gap.
        """
        sequence = found.descriptor.sequence
        assert sequence is not None, found
        with self._lock:
            block = self._blocks.get(found.descriptor.table_id)
            if block is None or not block.left or block.epoch != found.epoch:
                return
            values = {
                BACK: block.next,
                "last": block.next + (block.left - 1) * sequence.increment,
                "epoch": block.epoch,
                "untouched": block.next == block.first,
                "at": block.at,
            }
            block.left = 0
        with suppress(Refused, NoMaster, OutcomeUnknown):
            self._asked(found.descriptor, values, stopped)

    def set(
        self, descriptor: Descriptor, value: int, *, called: bool, stopped: Stopped | None = None
    ) -> None:
        """Set the value; returns when it is so on every coherent node. Raises OutOfRange,
        OutcomeUnknown, BusUnavailable; CanceledUnderWay once `stopped`."""
        try:
            self._asked(descriptor, set_operation(descriptor, value, called=called).values, stopped)
        except QueryCanceled as error:
            raise CanceledUnderWay(
                error.message,
                detail=f'setval of sequence "{descriptor.name}" was sent to the master already: it'
                " may be done all the same.",
            ) from None

    def _asked(self, descriptor: Descriptor, values: Any, stopped: Stopped | None = None) -> Any:
        operation = Operation(OperationKind.UPDATE, descriptor.name, ROW_KEY, values)
        request = ChangeRequest(new_request_id(), (operation,), on_conflict=OnConflict.FAIL)
        outcome = self._submit(request, ANSWER_TIMEOUT_S, stopped)
        if not outcome.lsn:
            raise outcome.make_error()
        return outcome.answer


def _acquired(lock: threading.Lock, stopped: Stopped | None) -> bool:
    """Return whether a lock was had within the time that an answer may take. Raises
    QueryCanceled."""
    if stopped is None:
        return lock.acquire(timeout=ANSWER_TIMEOUT_S)
    return waited_for(
        lambda seconds: lock.acquire(timeout=seconds), stopped, ANSWER_TIMEOUT_S, "numbers"
    )


class Wanted(Exception):
    """A statement needs what only waiting gives: it runs again then. `work` waits."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__("a statement waits for numbers")
        self.work = work


def last_value(snapshot: StoreSnapshot, sequence: Descriptor) -> int | None:
    """Return the number that a sequence has given last, to whomever; None: it has given none."""
    if not snapshot.part.holds(sequence.table_id):
        return None  # of one that others draw from it is not known here
    row = None if sequence.provisional else snapshot.get(sequence, ROW_KEY)
    if row is None:
        return None
    last, called, _ = read_position(row.values)
    return last if called else None


def gave_up() -> GaveUp:
    return GaveUp(
        f"could not allocate sequence values: the sequence was restarted {TRIES_MAX} times"
        " meanwhile"
    )
