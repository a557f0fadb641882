"""The places of sessions: for whom, how he is asked who he is, and how many there are for all, for
administrators and for each role."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple

from leasehold.adapters.os.clock import unix_us
from leasehold.adapters.postgres.arrivals import origin_of
from leasehold.pgwire.auth.failed_logins import FailedLogins, TurnsOf
from leasehold.pgwire.auth.logins import (
    UNLIMITED,
    Account,
    ClientCertificate,
    FirstOf,
    Logins,
    UserList,
)
from leasehold.pgwire.auth.scram_server import MockVerifiers
from leasehold.pgwire.auth.startup import Welcome
from leasehold.pgwire.wire_errors import AuthenticationRefused, TooManyConnections
from leasehold.settings.sql_port import PgwireSettings

NONCE_BYTES: Final = 18


class _Place(NamedTuple):
    user: str
    account: Account | None


class Admissions:
    """The places of sessions, and what is known of those who want one. Used on the listener's loop;
    `users` may be replaced from any thread."""

    def __init__(
        self,
        settings: PgwireSettings,
        sources: Sequence[Logins],
        mock_secret: bytes | None,
        now_s: Callable[[], float],
    ) -> None:
        """Begin with no place taken. `sources`: who else may log in, beside the users of the
        settings, which come first."""
        self._settings = settings
        self._method = settings.method
        self.users = UserList(settings.users or {})
        self._logins = FirstOf([self.users, *sources])
        self._mock_secret = mock_secret
        self._revision: object = None
        self._unchecked = False  # places, since who may log in has changed
        self._mock = MockVerifiers((), mock_secret)
        self._failed = FailedLogins(now_s)
        self._places: dict[int, _Place] = {}
        self._by_role: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._places)

    def welcome(self, address: IPv4Address | IPv6Address, *, tls_offered: bool) -> Welcome:
        """Return how a client that comes from there is met."""
        self._notice_changes()
        certificate = self._settings.certificate
        return Welcome(
            method=self._method,
            logins=self._logins,
            mock=self._mock,
            nonce=secrets.token_urlsafe(NONCE_BYTES),
            certificate=certificate,
            tls_offered=tls_offered,
            tls_required=certificate is not ClientCertificate.NO
            or (tls_offered and not address.is_loopback),
            now_us=unix_us(),
            turns=TurnsOf(self._failed, origin_of(address)),
        )

    def enter(self, process: int, user: str, account: Account | None) -> None:
        """Give a session's place. Raises TooManyConnections where there is none for this one,
        AuthenticationRefused for one who may not log in any more since he was asked who he is."""
        place = _Place(user, account)
        if self._is_revoked(place):
            raise AuthenticationRefused(f'role "{user}" is not permitted to log in')
        all_places = self._settings.connections_max
        if len(self._places) >= all_places:
            raise TooManyConnections("sorry, too many clients already")
        if account is not None and not account.administrator:
            if len(self._places) >= all_places - self._settings.reserved:
                raise TooManyConnections(
                    "remaining connection slots are reserved for roles with the SUPERUSER attribute"
                )
            limit = account.connections_max
            if limit != UNLIMITED and self._by_role[account.role_id] >= limit:
                raise TooManyConnections(f'too many connections for role "{user}"')
        self._places[process] = place
        if account is not None:
            self._by_role[account.role_id] += 1

    def leave(self, process: int) -> str | None:
        """Take a place back, and return whose it was; None: it had none."""
        place = self._places.pop(process, None)
        if place is None:
            return None
        if place.account is not None:
            self._by_role[place.account.role_id] -= 1
            if not self._by_role[place.account.role_id]:
                del self._by_role[place.account.role_id]
        return place.user

    def revoked(self) -> list[int]:
        """Return those in a place who may not log in any more, or are not whom they were: once for
        each change of who may."""
        self._notice_changes()
        if not self._unchecked:
            return []
        self._unchecked = False
        return [process for process, place in self._places.items() if self._is_revoked(place)]

    def _is_revoked(self, place: _Place) -> bool:
        if place.account is None:  # nobody is asked, and nothing was known of him
            return False
        found = self._logins.find_again(place.user, place.account)
        return found is None or not found.may_log_in

    def _notice_changes(self) -> None:
        revision = self._logins.revision
        if revision != self._revision:
            self._revision = revision
            self._unchecked = True
            self._mock = MockVerifiers(self._logins.verifiers(), self._mock_secret)
