"""`FastPath` with one of its promises broken."""

from __future__ import annotations

from collections import deque

from leasehold.replication.fast_path.state_machine import FastPath, Pause


class TriedInItsBackOff(FastPath):
    """P1."""

    def is_ready(self, now_ns: int, missing: int = 0) -> bool:
        return super().is_ready(max(now_ns, self._until_ns), missing)


class RemembersWhatItGaveUp(FastPath):
    """P2."""

    def leave(self, now_ns: int, pause: Pause) -> None:
        kept = deque(self._unconfirmed)
        super().leave(now_ns, pause)
        self._unconfirmed = kept


class BelievesALateWord(FastPath):
    """P2."""

    def confirm(self, number: int) -> bool:
        return super().confirm(number) or self.overdue_at_ns() is not None


class BacksOffAlike(FastPath):
    """P3: an outage costs the same again and again."""

    def _back_off(self, now_ns: int) -> None:
        self._faulty = False
        super()._back_off(now_ns)


class BacksOffForGood(FastPath):
    """P3."""

    def _back_off(self, now_ns: int) -> None:
        super()._back_off(now_ns)
        self._until_ns += self._most_ns


class SkipsANumber(FastPath):
    """P4."""

    def publish(self, now_ns: int) -> int:
        self._next += self.taken
        return super().publish(now_ns)


class ProbesOn(FastPath):
    """It is left, and not tried again."""

    def leave(self, now_ns: int, pause: Pause) -> None:
        probing = self.probing
        super().leave(now_ns, pause)
        self.probing = probing
