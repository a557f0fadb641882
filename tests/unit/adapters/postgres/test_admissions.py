"""Goal: places are kept as the settings and roles say, and who may not log in any more is found.

Method: sources of log-ins that the test changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any

import pytest

from leasehold.adapters.postgres.admissions import Admissions
from leasehold.pgwire.auth.logins import Account, ClientCertificate, Method
from leasehold.pgwire.auth.scram_server import Verifier, verifier_of_password
from leasehold.pgwire.wire_errors import AuthenticationRefused, TooManyConnections
from leasehold.settings.sql_port import PgwireSettings

VERIFIER = verifier_of_password("pencil", b"salt" * 4, 4096)


class Roles:
    def __init__(self, **accounts: Account) -> None:
        self.accounts = accounts
        self.revision: object = object()

    def change(self, **accounts: Account) -> None:
        self.accounts = accounts
        self.revision = object()

    def find(self, user: str) -> Account | None:
        return self.accounts.get(user)

    def find_again(self, user: str, account: Account) -> Account | None:
        known = (each for each in self.accounts.values() if each.role_id == account.role_id)
        return next(known, None)

    def verifiers(self) -> Iterable[Verifier]:
        return [a.verifier for a in self.accounts.values() if a.verifier is not None]


def admissions(roles: Roles, **settings: Any) -> Admissions:
    return Admissions(PgwireSettings(**settings), [roles], None, lambda: 0.0)


def enter(made: Admissions, roles: Roles, process: int, user: str) -> None:
    made.enter(process, user, made.users.find(user) or roles.find(user))


def test_a_role_has_as_many_places_as_it_says() -> None:
    roles = Roles(
        two=Account(VERIFIER, connections_max=2, role_id=7),
        none=Account(VERIFIER, connections_max=0, role_id=8),
        chief=Account(VERIFIER, connections_max=0, role_id=9, administrator=True),
    )
    made = admissions(roles)
    for process in (1, 2):
        enter(made, roles, process, "two")
    for process, user in ((3, "two"), (4, "none")):
        with pytest.raises(TooManyConnections, match=f'too many connections for role "{user}"'):
            enter(made, roles, process, user)
    enter(made, roles, 5, "chief")
    assert made.leave(1) == "two"
    assert made.leave(1) is None
    enter(made, roles, 6, "two")


def test_the_last_places_are_kept_for_administrators() -> None:
    roles = Roles(me=Account(VERIFIER, role_id=7))
    made = admissions(roles, connections_max=4, reserved_connections=2, users={"ann": VERIFIER})
    for process in (1, 2):
        enter(made, roles, process, "me")
    with pytest.raises(TooManyConnections, match="reserved for roles with the SUPERUSER attribute"):
        enter(made, roles, 3, "me")
    for process in (3, 4):
        enter(made, roles, process, "ann")
    with pytest.raises(TooManyConnections, match="sorry, too many clients already"):
        enter(made, roles, 5, "ann")


@pytest.mark.parametrize(
    ("connections", "reserved", "kept"), [(100, 3, 3), (3, 3, 2), (1, 3, 0), (10, 0, 0)]
)
def test_not_all_places_are_kept(connections: int, reserved: int, kept: int) -> None:
    made = PgwireSettings(connections_max=connections, reserved_connections=reserved)
    assert made.reserved == kept


def test_where_nobody_is_asked_all_are_administrators() -> None:
    roles = Roles()
    made = admissions(roles, connections_max=2, reserved_connections=1)
    for process in (1, 2):
        enter(made, roles, process, "anybody")


def test_who_has_gone_is_told_once() -> None:
    me = Account(VERIFIER, role_id=7)
    you = Account(VERIFIER, role_id=8)
    roles = Roles(me=me, you=you)
    made = admissions(roles, users={"ann": VERIFIER})
    for process, user in enumerate(("me", "you", "ann"), 1):
        enter(made, roles, process, user)
    assert made.revoked() == []
    roles.change(me=me._replace(verifier=None, connections_max=0), you=you)
    assert made.revoked() == [], "neither a password nor a limit ends sessions"
    roles.change(me=me._replace(may_log_in=False), you=you)
    made.welcome(ip_address("192.0.2.1"), tls_offered=False)  # who comes learns of it before
    assert made.revoked() == [1]
    assert made.revoked() == []
    made.leave(1)
    roles.change(renamed=you)
    assert made.revoked() == []
    roles.change(you=you._replace(role_id=9))
    assert made.revoked() == [2], "one of the same name is another"
    made.users.replace({})
    assert made.revoked() == [2, 3]


def test_who_is_revoked_while_he_is_asked_is_not_let_in() -> None:
    me = Account(VERIFIER, role_id=7)
    roles = Roles()
    made = admissions(roles)
    with pytest.raises(AuthenticationRefused):
        made.enter(1, "me", me)
    assert len(made) == 0


@pytest.mark.parametrize(
    ("settings", "address", "tls", "required"),
    [
        ({}, "127.0.0.1", True, False),
        ({}, "192.0.2.1", True, True),
        ({}, "192.0.2.1", False, False),
        ({"tls_clientcert": "verify-ca"}, "127.0.0.1", True, True),
        ({"auth": "cert"}, "127.0.0.1", True, True),
    ],
)
def test_who_needs_tls(settings: dict[str, Any], address: str, tls: bool, required: bool) -> None:
    welcome = admissions(Roles(), **settings).welcome(ip_address(address), tls_offered=tls)
    assert welcome.tls_required is required


def test_who_logs_in_by_a_certificate_needs_one_for_his_name() -> None:
    welcome = admissions(Roles(), auth="cert").welcome(ip_address("::1"), tls_offered=True)
    assert (welcome.method, welcome.certificate) == (Method.CERT, ClientCertificate.VERIFY_FULL)
