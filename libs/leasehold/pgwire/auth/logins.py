"""The port that answers who may log in, and what several sources of it say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from leasehold.pgwire.auth.scram_server import Verifier

UNLIMITED: Final = -1


class Account(NamedTuple):
    """What is known of one who may log in. `verifier`: None where there is no password.
    `connections_max`: on one node. `valid_until_us`: when the password ends, in unix µs, 0 = never.
    `role_id`: of the catalog's role, 0 for who stands in the file of users."""

    verifier: Verifier | None
    may_log_in: bool = True
    connections_max: int = UNLIMITED
    valid_until_us: int = 0
    administrator: bool = False
    role_id: int = 0

    def password_holds(self, now_us: int) -> bool:
        return self.valid_until_us == 0 or now_us < self.valid_until_us


class Logins(Protocol):
    """A source of who may log in. Called on the listener's loop: it answers from memory."""

    @property
    def revision(self) -> object:
        """Return another object, by `==`, whenever an answer may be another one."""
        ...

    def find(self, user: str) -> Account | None: ...

    def find_again(self, user: str, account: Account) -> Account | None:
        """Return what is known now of one who logged in as `user` when `account` was known of him;
        None: there is no such one any more, or never was in this source."""
        ...

    def verifiers(self) -> Iterable[Verifier]:
        """Return those of all users that have one."""
        ...


class UserList:
    """The users of a file or a setting: administrators, who can log in whatever the catalog
    holds."""

    def __init__(self, users: Mapping[str, Verifier]) -> None:
        self._users = users

    @property
    def revision(self) -> object:
        return id(self._users), self._users

    def replace(self, users: Mapping[str, Verifier]) -> None:
        """Take other users in the place of those so far; called from any thread."""
        self._users = users

    def find(self, user: str) -> Account | None:
        verifier = self._users.get(user)
        return None if verifier is None else Account(verifier, administrator=True)

    def find_again(self, user: str, account: Account) -> Account | None:
        return None if account.role_id else self.find(user)

    def verifiers(self) -> Iterable[Verifier]:
        return self._users.values()


class FirstOf:
    """Several sources: the first that knows a name answers for it."""

    def __init__(self, sources: Sequence[Logins]) -> None:
        self._sources = tuple(sources)

    @property
    def revision(self) -> object:
        return tuple(source.revision for source in self._sources)

    def find(self, user: str) -> Account | None:
        return next(filter(None, (source.find(user) for source in self._sources)), None)

    def find_again(self, user: str, account: Account) -> Account | None:
        found = (source.find_again(user, account) for source in self._sources)
        return next(filter(None, found), None)

    def verifiers(self) -> Iterable[Verifier]:
        for source in self._sources:
            yield from source.verifiers()


class Method(Enum):
    """How a client shows that it is who it says; the words are those of PostgreSQL's pg_hba."""

    TRUST = "trust"
    SCRAM = "scram-sha-256"
    CERT = "cert"


class ClientCertificate(Enum):
    """What is asked for beside that: nothing, a certificate of the CA, one for the user's name."""

    NO = "no"
    VERIFY_CA = "verify-ca"
    VERIFY_FULL = "verify-full"


class TlsChannel(NamedTuple):
    """What TLS has shown. `binding`: the digest of our certificate for tls-server-end-point, None
    where its signature has none. `names`: the common names of the client's certificate, None where
    it has shown none."""

    binding: bytes | None = None
    names: tuple[str, ...] | None = None


class Turns(Protocol):
    """The turns in which clients that come from one place may try a password."""

    def claim(self, user: str) -> float:
        """Return the seconds until its turn, which is now taken. Raises AuthenticationRefused where
        too many wait already."""
        ...

    def settle(self, user: str, *, right: bool) -> None:
        """Note how it ended."""
        ...


class AtOnce:
    """Turns of who has none: nobody waits."""

    def claim(self, user: str) -> float:
        return 0.0

    def settle(self, user: str, *, right: bool) -> None:
        pass
