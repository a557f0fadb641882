"""SET, RESET and SHOW of a session, and what of it its client is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from leasehold.catalog.search_path import SETTING
from leasehold.model.errors import FeatureNotSupported
from leasehold.pgwire.session import Column, Notice, Report, SettingChanged
from leasehold.sql.functions.system.session import Caller
from leasehold.sql.session_settings import NO_ROLE, SETTINGS, WAIT_FOR_LSN, SessionSettings
from leasehold.sql.syntax.as_of import as_of_text
from leasehold.sql.syntax.session_statements import Modes, Reset, Set, Show
from leasehold.sql.system_catalog.system_relations import NodeSide
from leasehold.sql_session.prepared import Answer
from leasehold.sql_session.session_role import AUTHORIZATION, OF_ROLES, ROLE, SessionRole
from leasehold.transaction.isolation import ISOLATION, Isolation, isolation_of
from leasehold.values.dates import AsOf
from leasehold.values.time_zone import zone_of
from leasehold.values.types import Type

MS: Final = 1_000
MODES: Final = ("transaction_isolation", "transaction_read_only")
"""Settings that say how the running transaction does."""
NOT_BY_FUNCTION: Final = (*MODES, WAIT_FOR_LSN)
"""What set_config() does not set."""
TEXT: Final = Type("text")
OWN_LEVEL: Final = "leasehold.isolation"
SPOKEN_LEVEL: Final = "default_transaction_isolation"
AS_OF: Final = "leasehold.as_of"
_NEWEST: Final = frozenset(i.level.value for i in ISOLATION.values() if not i.one_snapshot)


class SettingCommands:
    """The settings of a session. `caller` is what functions are told of it; `reports` is what its
    client has not been told yet."""

    def __init__(
        self,
        given: Mapping[str, str],
        *,
        role: SessionRole,
        database: str,
        process: int,
        node: NodeSide | None = None,
    ) -> None:
        """Set what the client asks for at its start (`given`). Raises what settings raise."""
        if WAIT_FOR_LSN in {name.lower() for name in given}:
            raise FeatureNotSupported(f"{WAIT_FOR_LSN} can't be set by who connects: SET it then")
        asked = {name: value for name, value in given.items() if name.lower() not in OF_ROLES}
        self.values = SessionSettings({**asked, AUTHORIZATION: role.name})
        self.role = role
        for name in (SPOKEN_LEVEL, OWN_LEVEL):
            if name in {each.lower() for each in given}:
                self.values.follow_at_first(*_other(name, self.values[name]))
        if role.search_path and SETTING not in {each.lower() for each in given}:
            self.values.follow_at_first(SETTING, role.search_path)
        self.reports: list[Report] = []
        self._database, self._process = database, process
        self._node = node
        self.caller = self._as_caller()
        for name, value in given.items():
            if name.lower() == ROLE:
                self.apply(ROLE, value)
        self._follow_role()
        self.reports.clear()

    def begin(self) -> None:
        self.values.begin()

    def end(self, *, committed: bool) -> None:
        changed = self.values.end(committed=committed)
        self.reports += [SettingChanged(name, value) for name, value in changed.items()]
        if changed or self.role.is_said_otherwise(self.values):
            self._follow_role()

    def warn(self, sqlstate: str, words: str) -> None:
        self.reports.append(Notice("WARNING", sqlstate, words))

    def take_reports(self) -> Sequence[Report]:
        if not self.reports:
            return ()
        reports, self.reports = self.reports, []
        return reports

    def _as_caller(self) -> Caller:
        settings = {name.lower(): value for name, value in self.values.all()}
        zone = zone_of(self.values["TimeZone"])
        return Caller(
            self.role.name,
            self._database,
            self._process,
            settings,
            self._change,
            self._node,
            zone,
            self.role.role_id,
            self.role.session_name,
            self.role.first_name,
            self.role.asks_as,
        )

    def see_new_names(self) -> None:
        """Call roles by the names that they have now."""
        if self.role.may_be_renamed:
            self._follow_role()

    def _follow_role(self) -> None:
        """Act as the role that is set, and tell so."""
        self.role.follow(self.values)
        is_superuser = "on" if self.role.is_superuser else "off"
        if self.values.state("is_superuser", is_superuser):
            self.reports.append(SettingChanged("is_superuser", is_superuser))
        self.caller = self._as_caller()

    def _change(self, name: str, value: str | None, local: bool) -> str:
        """Run set_config(). Raises FeatureNotSupported for what says how its own transaction
        runs, or waits."""
        if name.lower() in NOT_BY_FUNCTION:
            raise FeatureNotSupported(f"set_config of {name} is not supported: SET is")
        self.begin()
        self.apply(name, value, local=local)
        return self.values.show(name)[1]

    # ------------------------------------------------------------ SET and RESET

    def set(self, said: Set, *, in_block: bool) -> Answer:
        if said.local and not in_block:
            self.warn("25P01", "SET LOCAL can only be used in transaction blocks")
            return Answer("SET")
        self.begin()
        self.apply(said.name, said.value, local=said.local)
        return Answer("SET")

    def set_defaults(self, modes: Modes) -> None:
        """Run SET SESSION CHARACTERISTICS AS TRANSACTION. Raises FeatureNotSupported."""
        if modes.as_of is not None:
            raise FeatureNotSupported(
                "SESSION CHARACTERISTICS AS TRANSACTION AS OF is not supported: SET leasehold.as_of"
            )
        self.begin()
        if modes.isolation is not None:
            self.apply(OWN_LEVEL, isolation_of(modes.isolation).level.value)
        if modes.read_only is not None:
            self.apply("default_transaction_read_only", "on" if modes.read_only else "off")

    @property
    def default_isolation(self) -> Isolation:
        return isolation_of(self.values[OWN_LEVEL])

    @property
    def reads_newest(self) -> bool:
        """Whether a transaction that asks for nothing sees what is newest, statement by
        statement."""
        return self.values[OWN_LEVEL] in _NEWEST and not self.values[AS_OF]

    @property
    def have_begun(self) -> bool:
        """Whether there is a transaction with which settings may go back."""
        return self.values.in_transaction

    @property
    def as_of(self) -> AsOf | None:
        text = self.values[AS_OF]
        return as_of_text(text) if text else None

    def apply(self, name: str, value: str | None, *, local: bool = False) -> None:
        of_roles = name.lower() in OF_ROLES
        before: str | None = None
        if of_roles:
            self.role.check_may_become(name.lower(), value)
            before = self.values[AUTHORIZATION]
        name = self.values.set(name, value, local=local)
        if name == AUTHORIZATION:
            self.values.set(ROLE, NO_ROLE, local=local)
        if name in (OWN_LEVEL, SPOKEN_LEVEL):
            self._follow(name, local=local)
        if SETTINGS[name.lower()].told and self.values[name] != before:
            self.reports.append(SettingChanged(name, self.values[name]))
        if of_roles:
            self._follow_role()
        else:
            self.caller = self._as_caller()

    def _follow(self, name: str, *, local: bool) -> None:
        """Set the other of the default level's two names: PostgreSQL's, and one that can say all
        five."""
        other, value = _other(name, self.values[name])
        self.values.set(other, value, local=local)

    def reset(self, said: Reset) -> Answer:
        self.begin()
        if said.name is not None:
            self.apply(said.name, None)
            return Answer("RESET")
        before = self.values.told
        self.values.reset_all()
        self.reports += [
            SettingChanged(name, value)
            for name, value in self.values.told.items()
            if before[name] != value
        ]
        self.caller = self._as_caller()
        return Answer("RESET")

    # ------------------------------------------------------------ SHOW

    def shown(self, meaning: Any) -> Sequence[Column] | None:
        """Return the columns of SHOW; None: it gives no rows."""
        if not isinstance(meaning, Show):
            return None
        if meaning.name is None:
            return (Column("name", TEXT), Column("setting", TEXT))
        return (Column(self.values.show(meaning.name)[0], TEXT),)

    def show(self, said: Show, *, in_block: bool) -> Answer:
        if said.name is None:
            return Answer("SHOW", list(self.values.all()))
        if said.name == "transaction_isolation" and not in_block:
            return Answer("SHOW", [(self.values["default_transaction_isolation"],)])
        return Answer("SHOW", [(self.values.show(said.name)[1],)])


def _other(name: str, value: str) -> tuple[str, str]:
    """Return the other of the two names of the default level, and its value."""
    isolation = isolation_of(value)
    if name == OWN_LEVEL:
        return SPOKEN_LEVEL, isolation.spoken
    return OWN_LEVEL, isolation.level.value
