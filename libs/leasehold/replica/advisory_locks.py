"""Advisory locks as the SQL sessions of one node have them: in the ledger, for the whole database.

All locks of a node hang on one session with the ledger, beside that of its descriptor leases, which
is renewed while one of them is held. Once it may have ended, by this node's own clock (D3) or by
what the ledger answers, its locks may be others': the SQL sessions that held one end (57P01), and
what they have sent is not committed any more (D10, `LockFence`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from leasehold.lease.agent.session import AgentSession, HolderLimits
from leasehold.lease.commands import (
    LISTED_LOCKS_MAX,
    LOCK_USERS_MAX,
    LOCKS_MAX,
    LOCKS_PER_CALL_MAX,
    ClaimLocks,
    Command,
    GiveLock,
    GiveLocks,
    ListLocks,
    TakeLock,
)
from leasehold.lease.replies import (
    Extension,
    LedgerRefused,
    LockGiven,
    LockList,
    LocksClaimed,
    LockTaken,
    LockUse,
    LockWaits,
    Opened,
    RefusalReason,
    Registered,
    Renewed,
    Reply,
)
from leasehold.model.errors import (
    AdvisoryLockLost,
    DeadlockFound,
    LedgerUnavailable,
    LockNotAvailable,
    OutOfMemory,
    QueryCanceled,
)
from leasehold.model.records.requests import LockFence

LOG: Final = logging.getLogger("leasehold.locks")
LEDGER_WAIT_S: Final = 20.0
"""How long a statement waits for a ledger that can't give locks; one that has lost its state gives
none for the TTL of a session."""
ASK_FIRST_S: Final = 0.005
ASK_LAST_S: Final = 0.1
"""Who waits asks again after the first of these, then twice as long each time, up to the last."""
AWAY_S: Final = 0.5
"""After a call without an answer nobody asks for so long."""
IDLE_S: Final = 60.0
"""How long the session is renewed when nobody holds a lock any more."""
UNGIVEN_MAX: Final = 10_000
"""Locks that could not be given back yet. With more the session is given up, and all of them."""
LOST: Final = (
    "terminating connection because an advisory lock that it held may be another's by now: this"
    " node could not renew its session with the ledger (Redis), or the ledger has lost its state"
)


ROWS: Final = 3
"""The space of rows that were claimed."""


class LockName(NamedTuple):
    """An advisory lock, as in pg_locks: `space` is objsubid (1: `high` and `low` are the halves of
    a bigint; 2: they are two integers). In `ROWS` rows are claimed: `high` is a table's id, `low`
    a digest of the row's key."""

    space: int
    high: int
    low: int


class Ledger(Protocol):
    def call(self, command: Command) -> Reply: ...


class LockHolder(Protocol):
    """A SQL session that may hold locks."""

    process: int

    def lose(self, why: str) -> None:
        """Take note that its locks are not its own any more; called by any thread."""
        ...


class Waits(NamedTuple):
    """How long a statement waits for a lock. `stopped`: whether it was ended; `lock_s` after that
    many seconds it gives up (55P03), 0: never."""

    stopped: Callable[[], bool]
    lock_s: float


class _Grant(NamedTuple):
    holder: LockHolder
    epoch: int


class NodeLocks:
    """The advisory locks of one node. All methods may be called from any thread."""

    def __init__(
        self,
        node: str,
        open_ledger: Callable[[], Ledger],
        session_ids: Iterator[int],
        limits: HolderLimits,
        end_session: Callable[[int, str], bool],
        clock_ns: Callable[[], int],
    ) -> None:
        """Hold nothing yet. `open_ledger` is called when the first lock is asked for;
        `end_session`: ends the connection of a process, with what it is told."""
        self._agent = f"{node} (advisory locks)"
        self._open_ledger = open_ledger
        self._ids, self._limits = session_ids, limits
        self._end_session, self._clock_ns = end_session, clock_ns
        self._ledger: Ledger | None = None
        # One call at a time: the ledger is one connection. All that follows is under it.
        self._calls = threading.Lock()
        self._session = AgentSession(self._agent, self._ids, self._limits)
        self._run_id = ""
        self._granted: dict[tuple[int, LockName, bool], _Grant] = {}
        self._ungiven: deque[GiveLock] = deque()
        self._away_until_ns = 0
        self._used_ns = 0
        self._keeper: threading.Thread | None = None
        self._given = threading.Condition()
        self._later: deque[tuple[LockHolder, LockName, bool]] = deque()
        self._stopping = False
        self._wake = threading.Event()  # whoever renews the session

    # ------------------------------------------------------------ taking and giving

    def take(
        self, holder: LockHolder, name: LockName, *, exclusive: bool, waits: Waits | None
    ) -> bool:
        """Take a lock for a session, and return True; False where another has it and `waits` is
        None.

        Raises DeadlockFound (40P01), LockNotAvailable (55P03), QueryCanceled, OutOfMemory (53200),
        LedgerUnavailable (58030).
        """
        owner = owner_of(holder.process)
        began_s, pause_s, queued = time.monotonic(), ASK_FIRST_S, False
        no_ledger_s = began_s + LEDGER_WAIT_S
        try:
            while True:
                reply = self._ask(holder, owner, name, exclusive, waits is not None)
                if isinstance(reply, LockTaken):
                    queued = False
                    return True
                now_s = time.monotonic()
                if isinstance(reply, LockWaits):
                    queued, no_ledger_s = True, now_s + LEDGER_WAIT_S
                elif _is_for_good(reply):
                    return False
                elif now_s >= no_ledger_s or (waits is None and not _is_soon(reply)):
                    raise _no_locks(reply)
                if waits is not None and waits.stopped():
                    raise QueryCanceled("the statement that has waited for it was ended")
                if waits is not None and waits.lock_s and now_s - began_s >= waits.lock_s:
                    raise LockNotAvailable("canceling statement due to lock timeout")
                with self._given:
                    self._given.wait(pause_s)
                pause_s = min(2 * pause_s, ASK_LAST_S)
        finally:
            if queued:  # it was ended
                self.give(holder, name, exclusive=exclusive)

    def claim(
        self,
        holder: LockHolder,
        names: Sequence[LockName],
        wanted: int,
        *,
        exclusive: bool,
        stopped: Callable[[], bool],
    ) -> list[LockName]:
        """Take the first `wanted` of several locks that no other session has, and return those
        that are held now, in their order. `stopped`: whether the statement was ended.

        Raises QueryCanceled, OutOfMemory (53200), LedgerUnavailable (58030).
        """
        owner = owner_of(holder.process)
        pause_s, no_ledger_s = ASK_FIRST_S, time.monotonic() + LEDGER_WAIT_S
        while True:
            reply = self._claim(holder, owner, tuple(names), wanted, exclusive)
            if isinstance(reply, LocksClaimed):
                held = [names[place] for place in reply.held]
                if reply.full and not held:
                    raise no_room()
                return held
            if stopped():
                raise QueryCanceled("the statement that has waited for the ledger was ended")
            if time.monotonic() >= no_ledger_s:
                raise _no_locks(reply)
            with self._given:
                self._given.wait(pause_s)
            pause_s = min(2 * pause_s, ASK_LAST_S)

    def _claim(
        self,
        holder: LockHolder,
        owner: int,
        names: tuple[LockName, ...],
        wanted: int,
        exclusive: bool,
    ) -> Reply | LedgerUnavailable:
        with self._calls:
            opened = self._in_session()
            if opened is not None:
                return opened
            session = self._session.id
            reply = self._call(ClaimLocks(session, owner, wanted, exclusive, names))
            if isinstance(reply, LedgerUnavailable):  # it may have been carried out
                for name in names:
                    if (owner, name, exclusive) not in self._granted:
                        self._owe(GiveLock(session, owner, *name, exclusive))
            elif isinstance(reply, LocksClaimed) and reply.run_id != self._run_id:
                self._lose_all()
                return LedgerRefused(RefusalReason.DEAD, reply.run_id)
            elif isinstance(reply, LocksClaimed):
                held = {names[place] for place in reply.held}
                owed = {GiveLock(session, owner, *name, exclusive) for name in held}
                self._ungiven = deque(each for each in self._ungiven if each not in owed)
                grant = _Grant(holder, reply.epoch)
                for name in held:
                    self._granted.setdefault((owner, name, exclusive), grant)
                self._used_ns = self._clock_ns()
            elif isinstance(reply, LedgerRefused) and reply.reason in _SESSION_GONE:
                self._lose_all()
            return reply

    def give_many(self, holder: LockHolder, names: Sequence[LockName], *, exclusive: bool) -> None:
        """Give several locks back as `give` does one."""
        owner = owner_of(holder.process)
        with self._calls:
            for name in names:
                self._granted.pop((owner, name, exclusive), None)
            self._used_ns = self._clock_ns()
            if not self._session.is_open:
                return
            session = self._session.id
            for first in range(0, len(names), LOCKS_PER_CALL_MAX):
                part = tuple(names[first : first + LOCKS_PER_CALL_MAX])
                command = GiveLocks(session, owner, exclusive, part)
                if not isinstance(self._call(command), LockGiven):
                    for name in part:
                        self._owe(GiveLock(session, owner, *name, exclusive))
        with self._given:
            self._given.notify_all()

    def _ask(
        self, holder: LockHolder, owner: int, name: LockName, exclusive: bool, waits: bool
    ) -> Reply | LedgerUnavailable:
        with self._calls:
            opened = self._in_session()
            if opened is not None:
                return opened
            session = self._session.id
            asked = TakeLock(session, owner, *name, exclusive, waits)
            reply = self._call(asked)
            if isinstance(reply, LedgerUnavailable):  # it may have been carried out
                self._owe(GiveLock(session, owner, *name, exclusive))
            elif isinstance(reply, LockTaken | LockWaits) and reply.run_id != self._run_id:
                self._lose_all()
                return LedgerRefused(RefusalReason.DEAD, reply.run_id)
            elif isinstance(reply, LockTaken):
                # ⚠ What was owed of an earlier call would take it away again.
                owed = GiveLock(session, owner, *name, exclusive)
                self._ungiven = deque(each for each in self._ungiven if each != owed)
                self._granted[owner, name, exclusive] = _Grant(holder, reply.epoch)
                self._used_ns = self._clock_ns()
            elif isinstance(reply, LedgerRefused) and reply.reason in _SESSION_GONE:
                self._lose_all()
            return reply

    def give(self, holder: LockHolder, name: LockName, *, exclusive: bool) -> None:
        """Give a lock back, or the place in its queue; what can't be said to the ledger now is said
        later."""
        owner = owner_of(holder.process)
        with self._calls:
            self._granted.pop((owner, name, exclusive), None)
            self._used_ns = self._clock_ns()
            if not self._session.is_open:
                return
            command = GiveLock(self._session.id, owner, *name, exclusive)
            if not isinstance(self._call(command), LockGiven):
                self._owe(command)
        with self._given:
            self._given.notify_all()

    def give_later(self, holder: LockHolder, name: LockName, *, exclusive: bool) -> None:
        """Give a lock back without waiting for the ledger: soon."""
        if self._keeper is not None:  # else there is no session, and no lock
            self._later.append((holder, name, exclusive))
            self._wake.set()

    def _owe(self, command: GiveLock) -> None:
        self._ungiven.append(command)
        if len(self._ungiven) > UNGIVEN_MAX:
            self._lose_all()

    def fence(self, holder: LockHolder) -> LockFence | None:
        """Return under which locks a session sends its transaction, None: under none. Raises
        AdvisoryLockLost."""
        owner = owner_of(holder.process)
        with self._calls:
            if not self._granted:
                return None
            if not self._is_valid():
                self._lose_all()
            epochs = [g.epoch for (one, _, _), g in self._granted.items() if one == owner]
            if not epochs:
                return None
            return LockFence(self._run_id, self._session.id, min(epochs))

    # ------------------------------------------------------------ what others see

    def uses(self) -> tuple[LockUse, ...]:
        """Return who holds which lock in the whole database, or waits for it; where the ledger does
        not answer, what is held here."""
        with self._calls:
            reply = self._call(ListLocks(LISTED_LOCKS_MAX))
            if isinstance(reply, LockList):
                return reply.uses
            return tuple(
                LockUse(*name, self._session.id, self._agent, owner, exclusive, True)
                for owner, name, exclusive in self._granted
            )

    def is_own(self, use: LockUse) -> bool:
        """Return whether a session of this node has it."""
        return use.session == self._session.id

    # ------------------------------------------------------------ the session with the ledger

    def _is_valid(self) -> bool:
        return self._session.is_open and self._clock_ns() < self._session.expires_ns

    def _in_session(self) -> Reply | LedgerUnavailable | None:
        """Open a session if there is none; return why there is none then. Under _calls."""
        if self._is_valid():
            return None
        if self._session.is_awaiting_vouch(self._clock_ns()) and not self._granted:
            return self._await_vouch()
        self._lose_all()
        self._session.sent(self._clock_ns())
        reply = self._call(self._session.registration(()))
        if not isinstance(reply, Opened):
            self._session = AgentSession(self._agent, self._ids, self._limits)
            return reply
        self._session.confirmed()
        extension = Extension(reply.call, reply.vouched)
        self._session.judged_by(reply.run_id, self._clock_ns(), extension)
        self._run_id = reply.run_id
        self._used_ns = self._clock_ns()
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._keep, name="advisory-locks", daemon=True)
            self._keeper.start()
        return None if self._is_valid() else self._await_vouch()

    def _await_vouch(self) -> Reply | None:
        """Ask whether the master has vouched for the session (D11); return why there is none yet.
        Under _calls."""
        if self._clock_ns() >= self._session.renew_ns:
            self._extend()
        if self._is_valid():
            return None
        return LedgerRefused(RefusalReason.UNVOUCHED, self._run_id)

    def _call(self, command: Command) -> Reply | LedgerUnavailable:
        if self._clock_ns() < self._away_until_ns:
            return LedgerUnavailable("Redis did not answer a moment ago")
        try:
            if self._ledger is None:
                self._ledger = self._open_ledger()
            return self._ledger.call(command)
        except LedgerUnavailable as error:
            self._away_until_ns = self._clock_ns() + int(AWAY_S * 1e9)
            return error

    def _lose_all(self) -> None:
        """Take the session for dead, and all its locks for lost. Under _calls."""
        lost = {grant.holder.process: grant.holder for grant in self._granted.values()}
        self._granted.clear()
        self._ungiven.clear()
        self._session = AgentSession(self._agent, self._ids, self._limits)
        for process, holder in lost.items():
            holder.lose(LOST)
            self._end_session(process, LOST)
        if lost:
            LOG.warning("lost the advisory locks of %d SQL sessions, which were ended", len(lost))

    def _keep(self) -> None:
        """Renew the session while it is used, and say what could not be said."""
        while True:
            self._wake.clear()
            while self._later:
                holder, name, exclusive = self._later.popleft()
                self.give(holder, name, exclusive=exclusive)
            with self._calls:
                if self._stopping or self._has_ended():
                    self._keeper = None
                    return
                self._renew()
                due_ns = self._session.renew_ns if self._session.is_open else self._clock_ns()
                wait_ns = max(due_ns - self._clock_ns(), self._limits.retry_after_ns)
                if self._ungiven:
                    wait_ns = self._limits.retry_after_ns
            self._wake.wait(wait_ns / 1e9)

    def _has_ended(self) -> bool:
        if not self._session.is_open:
            return True
        idle_ns = self._clock_ns() - self._used_ns
        return (
            not self._granted and not self._later and not self._ungiven and idle_ns > IDLE_S * 1e9
        )

    def _renew(self) -> None:
        if self._session.is_awaiting_vouch(self._clock_ns()) and not self._granted:
            self._await_vouch()
            return
        if not self._is_valid():
            self._lose_all()
            return
        if self._clock_ns() >= self._session.renew_ns:
            self._extend()
        while self._ungiven and isinstance(self._call(self._ungiven[0]), LockGiven):
            self._ungiven.popleft()

    def _extend(self) -> None:
        session = self._session
        session.sent(self._clock_ns())
        reply = self._call(session.renewal(0))
        if isinstance(reply, LedgerRefused) and reply.reason is RefusalReason.REGISTER:
            # A renewal was carried out that nobody has heard of. The session is there, and so are
            # its locks.
            session.must_register = True
            reply = self._call(session.registration(()))
        if isinstance(reply, LedgerUnavailable):
            return  # it is asked again, until the session has ended by this node's clock
        known = isinstance(reply, Renewed) or (isinstance(reply, Registered) and reply.seeded)
        if not known or reply.run_id != self._run_id:
            self._lose_all()
            return
        assert isinstance(reply, Renewed | Registered), "it is known"
        session.confirmed()
        extension = Extension(reply.call, reply.vouched)
        session.judged_by(reply.run_id, self._clock_ns(), extension)

    def close(self) -> None:
        """Give up all locks, by ending what renews them; what is held was given back before."""
        self._stopping = True
        self._wake.set()
        keeper = self._keeper
        if keeper is not None:
            keeper.join()
        close = getattr(self._ledger, "close", None)
        if close is not None:
            close()


_SESSION_GONE: Final = frozenset({RefusalReason.DEAD, RefusalReason.EXPIRED, RefusalReason.CLOSED})


def owner_of(process: int) -> int:
    """Return the number of a SQL session in the ledger, which knows none below zero."""
    return 2 * process if process >= 0 else -2 * process + 1


def process_of(owner: int) -> int:
    """Return the process that `owner_of` has made a number of."""
    return -(owner // 2) if owner % 2 else owner // 2


def _is_soon(reply: Reply | LedgerUnavailable) -> bool:
    """Whether a lock can be asked for in a moment: the master has not yet vouched for a session
    that was just opened."""
    return isinstance(reply, LedgerRefused) and reply.reason is RefusalReason.UNVOUCHED


def _is_for_good(reply: Reply | LedgerUnavailable) -> bool:
    """Whether another has it and nobody waits. Raises DeadlockFound, OutOfMemory."""
    if not isinstance(reply, LedgerRefused):
        return False
    if reply.reason is RefusalReason.DEADLOCK:
        raise DeadlockFound(
            "deadlock detected",
            hint="Take advisory locks in one order everywhere. pg_locks shows who has which.",
        )
    if reply.reason is RefusalReason.LIMIT:
        raise no_room()
    return reply.reason is RefusalReason.LOCKED


def no_room() -> OutOfMemory:
    """Return the error where the ledger has no room for another lock."""
    return OutOfMemory(
        f"out of shared memory: a database has at most {LOCKS_MAX} advisory locks and claimed rows"
        f" at a time, and one of them at most {LOCK_USERS_MAX} holders and waiters",
        hint="COMMIT gives claimed rows back. pg_locks shows who has which.",
    )


def _no_locks(reply: Reply | LedgerUnavailable) -> LedgerUnavailable:
    if isinstance(reply, LedgerUnavailable):
        return LedgerUnavailable(f"no advisory lock: {reply.message}")
    assert isinstance(reply, LedgerRefused), reply
    if reply.reason is RefusalReason.UNFENCED:
        return LedgerUnavailable(
            "no advisory lock: the master is of an earlier release, which would commit what is"
            " written under a lock that was lost; upgrade the masters first"
        )
    return LedgerUnavailable(
        f"no advisory lock: the ledger (Redis) gives none yet ({reply.reason.value}); after it has"
        " lost its state that takes as long as a session lives without being renewed"
    )


def lost_lock(why: str) -> AdvisoryLockLost:
    """Return the error of a session whose locks are lost."""
    return AdvisoryLockLost(why)
