"""Who came, who was refused, who left: the one place that is told of it.

Lines are limited, so that nobody fills a disk by guessing or by connecting again and again; what is
left out is counted, and said with the next line.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import Final

LOG: Final = logging.getLogger("leasehold.login")
LINES_PER_S: Final = 5.0
LINES_AT_ONCE_MAX: Final = 100.0
NAME_CHARACTERS_MAX: Final = 63


class _Allowance:
    """How many lines of one kind may be written now."""

    def __init__(self) -> None:
        self._left = LINES_AT_ONCE_MAX
        self._counted_s = monotonic()
        self._left_out = 0

    def take(self) -> str | None:
        """Return words on what was left out before, or None where this one is left out."""
        now_s = monotonic()
        more = (now_s - self._counted_s) * LINES_PER_S
        self._left = min(self._left + more, LINES_AT_ONCE_MAX)
        self._counted_s = now_s
        if self._left < 1.0:
            self._left_out += 1
            return None
        self._left -= 1.0
        words = f" ({self._left_out} more were not logged)" if self._left_out else ""
        self._left_out = 0
        return words


class LoginLog:
    """Called on the listener's loop. Names are those that clients give: quoted and cut."""

    def __init__(self) -> None:
        self._admitted = _Allowance()
        self._refused = _Allowance()

    def admitted(self, process: int, user: str, database: str, address: str, how: str) -> None:
        """Note that somebody was let in. `how`: by what he has shown who he is."""
        words = self._admitted.take()
        if words is not None:
            LOG.info(
                "connection %d: user %s from %s was let in to %s (%s)%s",
                process,
                _named(user),
                address,
                _named(database),
                how,
                words,
            )

    def refused(self, user: str, address: str, why: str) -> None:
        """Note that somebody was refused. `why`: the SQLSTATE that he was told, or other words of
        ours."""
        words = self._refused.take()
        if words is not None:
            who = f"user {_named(user)}" if user else "a client"
            LOG.warning("refused %s from %s: %s%s", who, address, why, words)

    def ended(self, process: int, user: str, address: str) -> None:
        """Note that somebody who was let in is gone."""
        words = self._admitted.take()
        if words is not None:
            LOG.info(
                "connection %d: user %s from %s has left%s", process, _named(user), address, words
            )


def _named(name: str) -> str:
    return repr(name[:NAME_CHARACTERS_MAX])
