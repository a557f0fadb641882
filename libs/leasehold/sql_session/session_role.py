"""The role that a session is, and the one that it acts as: SET ROLE, SET SESSION AUTHORIZATION."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from leasehold.catalog.access import Access
from leasehold.catalog.roles import BOOTSTRAP_ROLE, Roles
from leasehold.model.errors import InsufficientPrivilege, InvalidArgument
from leasehold.sql.functions.system.session import AsksAs
from leasehold.sql.session_settings import NO_ROLE, SessionSettings

ROLE: Final = "role"
AUTHORIZATION: Final = "session_authorization"
OF_ROLES: Final = (ROLE, AUTHORIZATION)


class SessionRole:
    """The role of a session. A role is meant by its id, also where it is renamed while the session
    lasts.

    A `user` of whom the catalog knows no role is the first one: whoever has let him in trusts him,
    as there were no roles before.
    """

    def __init__(self, user: str, access: Callable[[], Access], role_id: int | None = None) -> None:
        """Begin as the role of that name, or as `role_id`, which the listener has found: since then
        the name may have gone to another one, or to none."""
        self._user, self._access = user, access
        if role_id is None:
            found = access().roles.find(user)
            role_id = BOOTSTRAP_ROLE if found is None else found.role_id
        self.login_id = role_id
        self._ids = {user: self.login_id}
        self.session_id = self.role_id = self.login_id
        self._said = user, NO_ROLE
        self._seen: Access | None = None

    @property
    def access(self) -> Access:
        """Return who may do what now."""
        return self._access()

    @property
    def _roles(self) -> Roles:
        return self._access().roles

    @property
    def asks_as(self) -> AsksAs:
        """Return as whom requests are sent: the role that it came as, and the one that it acts
        as."""
        login, role = self.login_id, self.role_id
        principal = "" if login == BOOTSTRAP_ROLE else self._roles.name_of(login)
        return AsksAs(principal, "" if role == login else self._roles.name_of(role))

    @property
    def is_superuser(self) -> bool:
        """Whether nothing is forbidden to the role that it acts as."""
        return self._roles.is_superuser(self.role_id)

    @property
    def name(self) -> str:
        """The name of the role that it acts as."""
        return self._name_of(self.role_id)

    @property
    def search_path(self) -> str:
        """The search path that sessions of the role which it came as begin with: its own, else that
        of the database, "" = the default."""
        found = self._roles.by_id.get(self.login_id)
        own = "" if found is None else found.search_path
        return own or self._access().search_path

    @property
    def session_name(self) -> str:
        return self._name_of(self.session_id)

    @property
    def first_name(self) -> str:
        """How it calls the first role, if not by its name."""
        return self._user if self.login_id == BOOTSTRAP_ROLE else ""

    def _name_of(self, role_id: int) -> str:
        if role_id == self.login_id == BOOTSTRAP_ROLE:
            return self._user
        return self._roles.name_of(role_id)

    def check_may_become(self, setting: str, name: str | None) -> None:
        """Check that one of the two settings may be given a value; None = what it was at first.

        Raises InvalidArgument (22023) for no role, InsufficientPrivilege (42501).
        """
        if name is None or (setting == ROLE and name == NO_ROLE):
            return
        role_id = self._find(name)
        if setting == ROLE:
            if not self._roles.is_member_of(self.session_id, role_id):
                raise InsufficientPrivilege(f'permission denied to set role "{name:.80}"')
        elif role_id != self.login_id and not self._roles.is_superuser(self.login_id):
            raise InsufficientPrivilege("permission denied to set session authorization")
        self._ids[name] = role_id

    def _find(self, name: str) -> int:
        if name == self._user:
            return self.login_id
        found = self._roles.find(name)
        if found is not None:
            return found.role_id
        raise InvalidArgument(f'role "{name:.80}" does not exist')

    @property
    def may_be_renamed(self) -> bool:
        """Whether something has changed since `follow`, such as the name of a role of its own."""
        named = self.role_id != BOOTSTRAP_ROLE or self.login_id != BOOTSTRAP_ROLE
        return named and self._access() is not self._seen

    def follow(self, settings: SessionSettings) -> None:
        """Act as the settings say."""
        self._seen = self._access()
        said, role = settings[AUTHORIZATION], settings[ROLE]
        self._said = said, role
        self.session_id = self._ids[said]
        self.role_id = self.session_id if role == NO_ROLE else self._ids[role]

    def is_said_otherwise(self, settings: SessionSettings) -> bool:
        """Return whether the settings say another role than the one that was followed last."""
        return (settings[AUTHORIZATION], settings[ROLE]) != self._said
