"""Refusals that come again and again: the first is written down at once, those that follow it
within a few seconds as one with their number. Who is refused in a loop does not fill a disk."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from leasehold.model.audit import Audited, AuditEvent

TOGETHER_NS: Final = 10_000_000_000
KEPT_MAX: Final = 1_000
REPEATED: Final = frozenset({Audited.REFUSED, Audited.FAILED_LOG_IN})
_Key = tuple[str, ...]


class Repeats:
    """The refusals of the last seconds, for one thread at a time: `KEPT_MAX` at most; where there
    are more, the oldest are written."""

    def __init__(self) -> None:
        self._since: OrderedDict[_Key, int] = OrderedDict()
        self._more: dict[_Key, AuditEvent] = {}

    def __len__(self) -> int:
        return len(self._since)

    def take(self, event: AuditEvent, now_ns: int) -> list[AuditEvent]:
        """Return what is to be written now that this event has come."""
        if event.kind not in REPEATED:
            return [event]
        key = (event.kind, event.outcome, event.user, event.role, event.address)
        if key in self._since:
            known = self._more.get(key)
            self._more[key] = event._replace(times=event.times + (known.times if known else 0))
            return []
        self._since[key] = now_ns
        due = self.due(now_ns)
        while len(self._since) > KEPT_MAX:
            due += self._end(next(iter(self._since)))
        return [*due, event]

    def due(self, now_ns: int, *, all_of_them: bool = False) -> list[AuditEvent]:
        """Return what has gathered and waits no longer; each stands for all of its kind."""
        found: list[AuditEvent] = []
        while self._since:
            key, since_ns = next(iter(self._since.items()))
            if now_ns - since_ns < TOGETHER_NS and not all_of_them:
                break
            found += self._end(key)
        return found

    def _end(self, key: _Key) -> list[AuditEvent]:
        del self._since[key]
        more = self._more.pop(key, None)
        return [] if more is None else [more]
