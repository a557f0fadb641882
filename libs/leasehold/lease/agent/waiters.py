"""Users who wait for a lease that is not there yet."""

from __future__ import annotations

from collections.abc import Collection, KeysView

from leasehold.lease.agent.events import Wake
from leasehold.lease.agent.held_leases import HeldLease
from leasehold.lease.commands import Lease
from leasehold.lease.replies import RefusalReason


class Waiters:
    """Tokens of users by what they wait for, in the order in which they came; `waiters_max` at
    most. Version 0 stands for the newest one of a table."""

    def __init__(self, waiters_max: int) -> None:
        self._waiters_max = waiters_max
        self._tokens: dict[Lease, list[int]] = {}
        self._of_table: dict[int, dict[Lease, None]] = {}
        self._number = 0

    @property
    def is_full(self) -> bool:
        return self._number >= self._waiters_max

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def __contains__(self, wanted: Lease) -> bool:
        return wanted in self._tokens

    def wanted(self) -> KeysView[Lease]:
        return self._tokens.keys()

    def wanted_of(self, table: int) -> list[Lease]:
        """Return what is waited for of one table."""
        return list(self._of_table.get(table, ()))

    def add(self, wanted: Lease, token: int) -> None:
        self._of_table.setdefault(wanted.table, {})[wanted] = None
        self._tokens.setdefault(wanted, []).append(token)
        self._number += 1

    def serve(self, wanted: Lease, lease: HeldLease) -> list[Wake]:
        """Wake those who wait for `wanted`, each with a use of the lease."""
        tokens = self._pop(wanted)
        for _ in tokens:
            lease.users.append(None)
            lease.used = True
        return [Wake(token, lease) for token in tokens]

    def send_away(
        self, wanted: Lease, reason: RefusalReason | None, sentence: str = ""
    ) -> list[Wake]:
        """Wake those who wait for `wanted` without a lease."""
        return [Wake(token, None, reason, sentence) for token in self._pop(wanted)]

    def forget(self, waiters: Collection[tuple[int, int]]) -> None:
        """Forget those, (table, token) each, who have stopped waiting."""
        for table in {table for table, _ in waiters}:
            for wanted in self.wanted_of(table):
                left = [token for token in self._pop(wanted) if (table, token) not in waiters]
                for token in left:
                    self.add(wanted, token)

    def _pop(self, wanted: Lease) -> list[int]:
        tokens = self._tokens.pop(wanted, [])
        of_table = self._of_table.get(wanted.table, {})
        of_table.pop(wanted, None)
        if not of_table:
            self._of_table.pop(wanted.table, None)
        self._number -= len(tokens)
        return tokens
