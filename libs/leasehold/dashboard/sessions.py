"""Sessions of those who have logged in, by a secret: the browser keeps it, this process only a
digest of it."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Final, NamedTuple

LOGGED_IN_MAX: Final = 1_000
LOGGED_IN_OF_USER_MAX: Final = 20
SECRET_BYTES: Final = 32


class _Session(NamedTuple):
    user: str
    until_s: float


class Sessions:
    """The sessions that are open, in the order in which they began. Of one user, and of all, the
    oldest gives way to a new one."""

    def __init__(self, length_s: float, now_s: Callable[[], float]) -> None:
        self._length_s = length_s
        self._now_s = now_s
        self._open: OrderedDict[bytes, _Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, user: str) -> str:
        """Return the secret of a new session."""
        now_s = self._now_s()
        while self._open and next(iter(self._open.values())).until_s <= now_s:
            self._open.popitem(last=False)
        theirs = [key for key, session in self._open.items() if session.user == user]
        if len(theirs) >= LOGGED_IN_OF_USER_MAX:
            del self._open[theirs[0]]
        if len(self._open) >= LOGGED_IN_MAX:
            self._open.popitem(last=False)
        secret = secrets.token_urlsafe(SECRET_BYTES)
        self._open[_digest(secret)] = _Session(user, now_s + self._length_s)
        return secret

    def find_user(self, secret: str) -> str | None:
        """Return whose session it is, None where there is none or it has ended."""
        found = self._open.get(_digest(secret))
        return found.user if found is not None and self._now_s() < found.until_s else None

    def end(self, secret: str) -> None:
        self._open.pop(_digest(secret), None)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode(errors="replace")).digest()
