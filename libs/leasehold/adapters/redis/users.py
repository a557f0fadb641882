"""Users of Redis and their rules: what ACL LIST says, and what ACL SETUSER is told.

Passwords go there as their SHA-256, as Redis keeps them itself: they stand in no command, which
MONITOR and a slow log would show.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import redis

from leasehold.adapters.redis.client import make_client
from leasehold.model.errors import ConfigurationError, LedgerUnavailable
from leasehold.model.process_rights import RedisRules
from leasehold.settings.environment import RedisSettings

TIMEOUT_S: Final = 5.0
USER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,62}")
DEFAULT_USER: Final = "default"
_PART: Final = re.compile(r"\([^()]*\)|[^\s()]+")
_NOTHING: Final = frozenset(
    {"sanitize-payload", "skip-sanitize-payload", "resetchannels", "resetkeys", "-@all"}
)
"""Words of ACL LIST that give nothing; they come and go with releases of Redis."""


class UserRules(NamedTuple):
    """A user's name, the digests of its passwords, and what it may do."""

    name: str
    passwords: tuple[str, ...]
    rules: RedisRules

    def words(self) -> tuple[str, ...]:
        """Return what ACL SETUSER takes, the user as it was forgotten."""
        selectors = (f"({' '.join(each)})" for each in self.rules.selectors)
        digests = (f"#{each}" for each in self.passwords)
        return (self.name, "reset", "on", *digests, *self.rules.commands, *selectors)


def digest_of(password: str) -> str:
    """Return a password as Redis keeps it."""
    return sha256(password.encode()).hexdigest()


class RedisUsers:
    """The users of a Redis, through a connection of somebody who may change them. Methods raise
    LedgerUnavailable, and ConfigurationError for what Redis refuses."""

    def __init__(self, settings: RedisSettings) -> None:
        self._where = settings.where
        self._client = make_client(settings, TIMEOUT_S, decode_responses=True)

    def lines(self) -> Mapping[str, str]:
        """Return what ACL LIST says of each user, by name."""
        found: Sequence[str] = self._ask("ACL", "LIST")
        return {line.split(" ", 2)[1]: line for line in found}

    def set_user(self, user: UserRules) -> None:
        """Make a user, or make it anew; connections of one that loses nothing go on."""
        self._ask("ACL", "SETUSER", *user.words())

    def save(self) -> bool:
        """Ask Redis to keep its users in its aclfile. Return False where it has none, and forgets
        them as it restarts."""
        try:
            self._ask("ACL", "SAVE")
        except ConfigurationError:
            return False
        return True

    def close(self) -> None:
        self._client.close()

    def _ask(self, *words: str) -> Any:
        try:
            return self._client.execute_command(*words)
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            raise LedgerUnavailable(
                f"Redis at {self._where} did not answer ({error}).", ledger=self._where
            ) from error
        except redis.RedisError as error:
            doing = " ".join(words[:3])
            raise ConfigurationError(f"Redis at {self._where} refuses {doing}: {error}.") from error


def is_as_wanted(line: str, wanted: UserRules) -> bool:
    """Return whether a line of ACL LIST gives exactly what is wanted."""
    digests = (f"#{each}" for each in wanted.passwords)
    commands = {"user", wanted.name, "on", *digests, *wanted.rules.commands}
    selectors = {frozenset(each) for each in wanted.rules.selectors}
    words, found = set(), set()
    for part in _PART.findall(line):
        if part.startswith("("):
            found.add(frozenset(part[1:-1].split()) - _NOTHING)
        else:
            words.add(part)
    return words - _NOTHING == commands and found == selectors


def is_open(line: str) -> bool:
    """Return whether a line of ACL LIST lets everybody in without a password, for everything."""
    words = set(_PART.findall(line))
    return {"on", "nopass"} <= words and bool({"+@all", "allcommands"} & words)
