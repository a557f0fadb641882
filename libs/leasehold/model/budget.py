"""The budget of a statement or a request: how long it may compute, how much memory it may hold.

Who runs a statement (a session, the master, a node that applies the log) opens a budget on its
thread by `spending`. What computes asks it: `charge` before work whose time does not follow from
the length of a row, `hold` and `give_back` for memory that grows with the rows. So a time limit and
a cancel hold inside a call, too, and a call that nobody could interrupt is refused before it
begins.

Work is counted in units of about 10 ns on one core of a server of 2020. Whether one call is too
much is decided by that count alone, never by a clock: every node that computes an index entry has
to come to the same answer. How long all calls of a statement may take together is up to whoever
opened the budget, who looks at clocks and cancels in `look`; nobody else has to compute that
statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, Final, Protocol, TypeVar

from leasehold.model.errors import OutOfMemory, TooComplex

WORK_PER_MS: Final = 100_000
"""Units of work that take about a millisecond."""

CALL_WORK_MAX: Final = 100 * WORK_PER_MS
"""Of one call that can't be interrupted. A fifth of the time for which a coherency lease lasts."""

LOOK_WORK: Final = WORK_PER_MS
"""Units between two looks of a statement at what may end it."""

FREE_CHARACTERS: Final = 1_000
"""What takes time in proportion to shorter texts is not charged: a charge would cost more than it
tells. A row's texts together have some millions at most."""

_AT_ONCE: Final = 256
"""Values of a long list between two charges."""

T = TypeVar("T")

GRAIN_BYTES: Final = 1 << 16
"""A budget takes memory from the node's pool in pieces of this size, so that the pool's lock is
asked once for many rows."""


def check_call(work: int) -> None:
    """Raise TooComplex (54001) for a call of more than CALL_WORK_MAX units."""
    if work > CALL_WORK_MAX:
        raise TooComplex(
            f"one operation of this statement would take about {work // WORK_PER_MS} ms, in which"
            f" nothing could stop it; {CALL_WORK_MAX // WORK_PER_MS} ms are allowed"
        )


VALUE_BYTES: Final = 64
"""Of a value that is kept, beside its text or bytes; about."""


def size_of(values: Iterable[Any]) -> int:
    """Return about how many bytes values take where they are kept."""
    size = 0
    for value in values:
        size += VALUE_BYTES
        if type(value) is str or type(value) is bytes:
            size += len(value)
    return size


def _named(setting: str) -> str:
    return f" ({setting})" if setting else ""


UNBOUNDED_BYTES: Final = 1 << 62
"""The limit of a budget that has none."""


class Pool(Protocol):
    """The memory that all statements of one node may hold together (`adapters/os/memory_pool`)."""

    bytes_max: int
    setting: str
    """What `bytes_max` comes from, for the error."""

    def take(self, size: int) -> bool:
        """Take `size` bytes; return False, and take nothing, if there are not so many left."""

    def give_back(self, size: int) -> None:
        """Return `size` bytes that were taken."""


class Budget:
    """What one statement or request may hold, and how it is stopped. Used by one thread at a time.

    `look` is called after each LOOK_WORK units of work; it raises what the statement is to end
    with: its time is over, or somebody has cancelled it.
    """

    def __init__(
        self,
        bytes_max: int,
        pool: Pool | None = None,
        look: Callable[[], None] | None = None,
        setting: str = "",
    ) -> None:
        """Begin with nothing held. `setting` is named in the error when `bytes_max` is reached."""
        self._bytes_max = bytes_max
        self._pool = pool
        self._look = look
        self._setting = setting
        self._work_until_look = LOOK_WORK
        self._held = 0
        self._taken = 0

    @property
    def held(self) -> int:
        """Return the bytes that are held now."""
        return self._held

    def charge(self, work: int) -> None:
        """Count `work` units that one call is about to do.

        Raises TooComplex (54001) for a call of more than CALL_WORK_MAX, and whatever `look` raises.
        """
        check_call(work)
        self._work_until_look -= work
        if self._work_until_look <= 0:
            self._work_until_look = LOOK_WORK
            if self._look is not None:
                self._look()

    def hold(self, size: int) -> None:
        """Count `size` bytes more that stay in memory. Raises OutOfMemory (53200); then nothing is
        counted."""
        held = self._held + size
        if held > self._bytes_max:
            raise OutOfMemory(
                f"this statement would hold more than {self._bytes_max >> 20} MB of"
                f" memory{_named(self._setting)}"
            )
        if held > self._taken and self._pool is not None:
            need = held - self._taken
            more = max(need, GRAIN_BYTES)
            if not self._pool.take(more) and not self._pool.take(more := need):
                pool = self._pool
                raise OutOfMemory(
                    f"the statements of this node together would hold more than"
                    f" {pool.bytes_max >> 20} MB of memory{_named(pool.setting)}: try again when"
                    " others have ended"
                )
            self._taken += more
        self._held = held

    def give_back(self, size: int) -> None:
        """Count `size` bytes of those held as free again."""
        self._held -= size

    def close(self) -> None:
        """Give all memory back to the node. May be called twice."""
        taken, self._taken, self._held = self._taken, 0, 0
        if self._pool is not None and taken:
            self._pool.give_back(taken)


_CURRENT: Final[ContextVar[Budget | None]] = ContextVar("budget", default=None)


@contextmanager
def spending(budget: Budget) -> Iterator[Budget]:
    """Open `budget` for the block, on this thread; one that is open already is open again after."""
    token = _CURRENT.set(budget)
    try:
        yield budget
    finally:
        _CURRENT.reset(token)


def open_budget(budget: Budget) -> Token[Budget | None]:
    """Open `budget` on this thread until `close_budget`: `spending` for who does it each time."""
    return _CURRENT.set(budget)


def close_budget(token: Token[Budget | None]) -> None:
    """Close the budget that was opened last; the one of before is open again."""
    _CURRENT.reset(token)


def is_spending() -> bool:
    """Whether a budget is open on this thread."""
    return _CURRENT.get() is not None


@contextmanager
def spending_nothing() -> Iterator[None]:
    """Open no budget for the block, on this thread: what every node computes alike, whoever asks
    for it, is charged to nobody."""
    token = _CURRENT.set(None)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def charge(work: int) -> None:
    """Charge this thread's budget, as `Budget.charge`. Without one the limit of a call holds."""
    budget = _CURRENT.get()
    if budget is not None:
        budget.charge(work)
    else:
        check_call(work)


def hold(size: int) -> None:
    """Hold `size` bytes of this thread's budget, as `Budget.hold`; without one, do nothing."""
    budget = _CURRENT.get()
    if budget is not None:
        budget.hold(size)


def give_back(size: int) -> None:
    """Give `size` bytes back to this thread's budget; without one, do nothing."""
    budget = _CURRENT.get()
    if budget is not None:
        budget.give_back(size)


def charge_size(size: int, work_per_character: int) -> None:
    """Charge for one pass over so many characters, digits or bytes; nothing for a short one."""
    if size > FREE_CHARACTERS:
        charge(size * work_per_character)


def charge_long(size: int, work_per_character: int) -> None:
    """Charge as `charge_size` for a loop of ours: others run meanwhile, so it is never too long for
    one call."""
    if size > FREE_CHARACTERS:
        work = size * work_per_character
        while work > CALL_WORK_MAX:
            charge(CALL_WORK_MAX)
            work -= CALL_WORK_MAX
        charge(work)


def charge_each(values: Sequence[T], work: int) -> Iterable[T]:
    """Return the values for a loop of ours that takes so much work for each of them: it is stopped
    between them."""
    return values if len(values) <= _AT_ONCE else _charged(values, work)


def _charged(values: Sequence[T], work: int) -> Iterator[T]:
    for begin in range(0, len(values), _AT_ONCE):
        part = values[begin : begin + _AT_ONCE]
        charge(len(part) * work)
        yield from part


class RangeTooLong(Exception):
    """Raised where what a request has read is more than may be looked through (`RangeLooks`)."""


class RangeLooks:
    """How much the ranges that one request has read may be looked through, all together, in steps
    of about 15 ns. Nothing else is decided meanwhile."""

    def __init__(self, steps_max: int) -> None:
        self.steps_left = steps_max

    def take(self, steps: int) -> bool:
        """Count so many steps; return False where they are too many."""
        self.steps_left -= steps
        return self.steps_left >= 0
