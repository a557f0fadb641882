"""The advisory locks of one SQL session: how often it has each, for itself or for its transaction.

The ledger knows of each mode of a lock once; what is taken again is counted here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from leasehold.model.records.requests import LockFence
from leasehold.replica.advisory_locks import LockName, NodeLocks, Waits, lost_lock


class Taken(NamedTuple):
    name: LockName
    exclusive: bool


class SessionLocks:
    """The locks of a session. `lose` may be called by any thread, all else by the session's."""

    def __init__(
        self,
        node: NodeLocks,
        process: int,
        waits: Callable[[], Waits],
        may_block: Callable[[], bool],
    ) -> None:
        """Hold nothing. `waits`: how long the statement that runs may wait; `may_block`: whether
        the session may wait for the ledger now."""
        self._node = node
        self.process = process
        self._waits, self._may_block = waits, may_block
        self._of_session: dict[Taken, int] = {}
        self._of_transaction: dict[Taken, None] = {}  # in their order, for savepoints
        self._lost = ""
        self.runs_again = False
        """A transaction runs again: what it has locked it has."""

    @property
    def is_used(self) -> bool:
        """Whether the session has a lock, or its transaction."""
        return bool(self._of_session or self._of_transaction)

    def lose(self, why: str) -> None:
        self._lost = why

    def check(self) -> None:
        """Raises AdvisoryLockLost once a lock of the session was lost, from then on."""
        if self._lost:
            raise lost_lock(self._lost)

    def _has(self, taken: Taken) -> bool:
        return taken in self._of_session or taken in self._of_transaction

    def take(self, taken: Taken, *, ends_with_transaction: bool, wait: bool) -> bool:
        """Take a lock once more, and return whether it is held. Raises what `NodeLocks.take`
        raises."""
        has = self._has(taken)
        if has and self.runs_again:
            return True
        if not has and not self._node.take(
            self, taken.name, exclusive=taken.exclusive, waits=self._waits() if wait else None
        ):
            return False
        self.check()
        if not ends_with_transaction:
            self._of_session[taken] = self._of_session.get(taken, 0) + 1
        else:
            self._of_transaction.setdefault(taken)
        return True

    def claim(self, names: Sequence[LockName], wanted: int, *, exclusive: bool) -> list[LockName]:
        """Take the first `wanted` of several locks that no other session has, for the transaction,
        and return those that it has now. One that runs again gets those that it has. Raises what
        `NodeLocks.claim` raises."""
        if self.runs_again:
            return [name for name in names if self._has(Taken(name, exclusive))][:wanted]
        stopped = self._waits().stopped
        held = self._node.claim(self, names, wanted, exclusive=exclusive, stopped=stopped)
        self.check()
        for name in held:
            self._of_transaction.setdefault(Taken(name, exclusive))
        return held

    def give_claimed(self, names: Sequence[LockName], *, exclusive: bool) -> None:
        """Give back locks that the transaction has claimed just before."""
        taken = [Taken(name, exclusive) for name in names]
        taken = [each for each in taken if each in self._of_transaction]
        for each in taken:
            del self._of_transaction[each]
        self._give_unless_held(taken)

    def give(self, taken: Taken) -> bool:
        """Give a lock of the session back once, and return whether it had it."""
        if self.runs_again:
            return True
        count = self._of_session.pop(taken, 0)
        if count > 1:
            self._of_session[taken] = count - 1
        elif count:
            self._give_unless_held([taken])
        return bool(count)

    def give_all(self) -> None:
        """Give back all that the session has, but for what its transaction has."""
        taken, self._of_session = self._of_session, {}
        self._give_unless_held(list(taken))

    def _give_unless_held(self, taken: Sequence[Taken]) -> None:
        given = [each for each in taken if not self._has(each)]
        if len(given) > 1 and self._may_block():
            for exclusive in (True, False):
                names = [each.name for each in given if each.exclusive is exclusive]
                if names:
                    self._node.give_many(self, names, exclusive=exclusive)
            return
        give = self._node.give if self._may_block() else self._node.give_later
        for each in given:
            give(self, each.name, exclusive=each.exclusive)

    # ------------------------------------------------------------ the transaction

    def fence(self) -> LockFence | None:
        """Return under which locks a request is sent. Raises AdvisoryLockLost."""
        if not (self._of_session or self._of_transaction or self._lost):
            return None
        fence = self._node.fence(self)
        self.check()
        return fence

    def mark(self) -> int:
        """Return what `back_to` takes for a savepoint of now."""
        return len(self._of_transaction)

    def back_to(self, mark: int) -> None:
        """Give back what the transaction has taken since."""
        taken = list(self._of_transaction)[mark:]
        for each in taken:
            del self._of_transaction[each]
        self._give_unless_held(taken)

    def end_transaction(self) -> None:
        if self._of_transaction:
            self.back_to(0)

    def close(self) -> None:
        """Give all back, without waiting for it."""
        self._may_block = lambda: False
        self.end_transaction()
        self.give_all()
