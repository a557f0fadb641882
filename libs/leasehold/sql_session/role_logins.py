"""The roles of the catalog as those who may log in, and the verifiers that it keeps of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from leasehold.catalog.roles import Role, Roles
from leasehold.pgwire.auth.logins import Account
from leasehold.pgwire.auth.scram_server import Verifier, verifier_of_text


class RoleLogins:
    """A source of log-ins. `roles` gives those that are applied on this node: what changes them is
    known here when it holds for statements, too."""

    def __init__(self, roles: Callable[[], Roles]) -> None:
        self._roles = roles
        self._seen: Roles | None = None
        self._verifiers: dict[str, Verifier | None] = {}

    @property
    def revision(self) -> object:
        return self._roles()

    def find(self, user: str) -> Account | None:
        role = self._current().find(user)
        return None if role is None else self._account_of(role)

    def find_again(self, user: str, account: Account) -> Account | None:
        """Return what is known of the role that it was, whatever its name is now."""
        role = self._current().by_id.get(account.role_id)
        return None if role is None else self._account_of(role)

    def verifiers(self) -> Iterable[Verifier]:
        self._current()
        return [each for each in self._verifiers.values() if each is not None]

    def _account_of(self, role: Role) -> Account:
        return Account(
            verifier=self._verifiers.get(role.verifier),
            may_log_in=role.may_log_in,
            connections_max=role.connections_max,
            valid_until_us=role.valid_until_us,
            administrator=role.superuser,
            role_id=role.role_id,
        )

    def _current(self) -> Roles:
        """Return the roles, whose verifiers are read once."""
        roles = self._roles()
        if roles is not self._seen:
            before = self._verifiers
            texts = {role.verifier for role in roles.by_id.values() if role.verifier}
            self._verifiers = {
                text: before[text] if text in before else _read_verifier(text) for text in texts
            }
            self._seen = roles
        return roles


def _read_verifier(text: str) -> Verifier | None:
    """Return None for what is no verifier: by that nobody logs in."""
    try:
        return verifier_of_text(text)
    except ValueError:
        return None
