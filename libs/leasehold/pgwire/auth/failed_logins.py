"""Delays after failed log-ins, for each user and the place that he comes from.

Guessing costs time, and nobody else's: who comes under another name or from elsewhere waits for
nothing, and no name is locked. That a name has no user changes nothing. The time is given in.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from leasehold.pgwire.wire_errors import AuthenticationRefused

FAILURES_FREE: Final = 2
"""Slips of the keyboard."""
DELAY_S: Final = 0.25
DELAY_S_MAX: Final = 4.0
WAIT_S_MAX: Final = 5.0
"""Below the time that a greeting may take."""
FORGOTTEN_S: Final = 600.0
PLACES_MAX: Final = 10_000
"""Whoever fails under so many names that his own is forgotten has made as many tries for one."""


class _Failures(NamedTuple):
    in_a_row: int
    free_s: float  # when the next one may try
    last_s: float


_NONE: Final = _Failures(0, 0.0, 0.0)


class FailedLogins:
    """Failures in a row by user and origin, the latest `PLACES_MAX` of them."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._failures: OrderedDict[tuple[str, int], _Failures] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failures)

    def claim(self, user: str, origin: int) -> float:
        """Return the seconds until a try may be looked at: one after the other, however many come
        at a time. Raises AuthenticationRefused where that is too long."""
        found = self._find(user, origin)
        if found.in_a_row <= FAILURES_FREE:
            return 0.0
        now_s = self._now_s()
        at_s = max(now_s, found.free_s)
        if at_s - now_s > WAIT_S_MAX:
            raise AuthenticationRefused(
                f'too many failed log-ins of user "{user}" from this address; try again in some'
                " seconds"
            )
        self._failures[user, origin] = found._replace(free_s=at_s + _delay_s(found.in_a_row))
        return at_s - now_s

    def settle(self, user: str, origin: int, *, right: bool) -> None:
        """Note a wrong password, or forget those before a right one."""
        key = user, origin
        if right:
            self._failures.pop(key, None)
            return
        found, now_s = self._find(user, origin), self._now_s()
        count = found.in_a_row + 1
        free_s = max(found.free_s, now_s + _delay_s(count))
        self._failures[key] = _Failures(count, free_s, now_s)
        self._failures.move_to_end(key)
        if len(self._failures) > PLACES_MAX:
            self._failures.popitem(last=False)

    def _find(self, user: str, origin: int) -> _Failures:
        found = self._failures.get((user, origin), _NONE)
        return _NONE if self._now_s() - found.last_s > FORGOTTEN_S else found


def _delay_s(failures: int) -> float:
    beyond = failures - FAILURES_FREE
    return 0.0 if beyond <= 0 else min(DELAY_S * 2.0 ** min(beyond - 1, 16), DELAY_S_MAX)


class TurnsOf:
    """The turns of clients that come from one origin."""

    def __init__(self, failed: FailedLogins, origin: int) -> None:
        self._failed = failed
        self._origin = origin

    def claim(self, user: str) -> float:
        return self._failed.claim(user, self._origin)

    def settle(self, user: str, *, right: bool) -> None:
        self._failed.settle(user, self._origin, right=right)
