"""The ledger in this process: the pure state machine behind the interface of Redis's.

For `leasehold dev`, the simulation and the models. `restart` plays what a Redis can do: come
back with another run id and all, some or none of its state, or be emptied under the same one;
`fail_over`: be replaced by a replica while it lives.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from leasehold.lease.commands import Command
from leasehold.lease.ledger.ledger import LedgerState, apply, check
from leasehold.lease.replies import Reply
from leasehold.model.errors import LedgerUnavailable

TAIL_COMMANDS_MAX: Final = 10_000
"""How many of the last commands can be lost; older ones are taken as safe on disk."""


class MemoryLedger:
    """The ledger. Not safe for several threads at once: the in-process bus calls it from one."""

    def __init__(self) -> None:
        self._incarnation = 1
        self._state = LedgerState()
        self._saved = LedgerState()
        self._tail: deque[Command] = deque()
        self.reachable = True

    @property
    def run_id(self) -> str:
        return f"memory-{self._incarnation}"

    def call(self, command: Command) -> Reply:
        """Raises LedgerUnavailable while `reachable` is False."""
        if not self.reachable:
            raise LedgerUnavailable("the in-memory ledger is switched off", ledger=self.run_id)
        self._tail.append(command)
        if len(self._tail) > TAIL_COMMANDS_MAX:
            apply(self._saved, self._tail.popleft(), self.run_id)
        reply = apply(self._state, command, self.run_id)
        check(self._state, self.run_id)
        return reply

    def restart(self, *, lose_state: bool = False, lose_last: int = 0) -> None:
        """Give it another run id, with the last `lose_last` commands undone or nothing kept at
        all."""
        assert 0 <= lose_last <= TAIL_COMMANDS_MAX, f"lose_last {lose_last}"
        kept = list(self._tail)[: max(0, len(self._tail) - lose_last)]
        if lose_state:
            self._saved = LedgerState()
        else:
            for command in kept:
                apply(self._saved, command, self.run_id)
        self._tail.clear()
        self._state = self._saved.copy()
        self._incarnation += 1

    def fail_over(self, *, lose_last: int = 0) -> MemoryLedger:
        """Make it another server with its state, but the last `lose_last` commands. Return the one
        that it was, which lives on with all of it."""
        old = MemoryLedger()
        old._incarnation = self._incarnation
        old._state, old._saved = self._state.copy(), self._state.copy()
        self.restart(lose_last=lose_last)
        return old

    def flush(self) -> None:
        """FLUSHALL: everything gone, the run id stays (D6)."""
        self._state, self._saved = LedgerState(), LedgerState()
        self._tail.clear()

    def state(self) -> LedgerState:
        """A copy, for invariants and models."""
        return self._state.copy()
