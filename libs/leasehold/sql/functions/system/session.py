"""Functions that tell of the session that calls them. Who runs a statement gives it a moment that
knows the session; without one they tell of nobody's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from leasehold.catalog.elements import Moment
from leasehold.catalog.schema_names import PG_CATALOG, PUBLIC
from leasehold.model.errors import FeatureNotSupported, NullNotAllowed, UnknownObject
from leasehold.sql.functions.function import BOOLEAN, INTEGER, TEXT, Function
from leasehold.values.arrays import stored_form
from leasehold.values.letters import ascii_lower
from leasehold.values.time_zone import UTC
from leasehold.values.types import Type, array_of

if TYPE_CHECKING:  # the system catalog lists these functions
    from leasehold.sql.system_catalog.system_relations import NodeSide, System

VERSION: Final = "PostgreSQL 15.0 (Leasehold)"


class Caller(NamedTuple):
    """The session that calls. `process` is the number by which its connection is cancelled;
    `settings` are by name in lower case. `change` sets one, for this transaction alone if it
    says so, and returns its value then. `node` is the one that it is on; `zone` is the setting
    TimeZone."""

    user: str
    database: str
    process: int
    settings: Mapping[str, str]
    change: Callable[[str, str | None, bool], str]
    node: NodeSide | None = None
    zone: ZoneInfo = UTC


def _nobodys(name: str, value: str | None, local: bool) -> str:
    raise FeatureNotSupported("there is no session here whose settings could be changed")


NOBODY: Final = Caller("leasehold", "", 0, MappingProxyType({}), _nobodys)


class CallersMoment(Moment):
    """A moment of one session's statement. `system`: what that statement is told of the rest of
    the database; None until somebody has looked (`with_system`). `numbers`: where it draws numbers
    of sequences (`sequence.Numbers`)."""

    caller: Caller
    system: System | None
    numbers: Any

    @property
    def zone(self) -> ZoneInfo:
        return self.caller.zone

    @classmethod
    def of(
        cls,
        now_us: int,
        seed: bytes,
        caller: Caller,
        system: System | None = None,
        numbers: Any = None,
    ) -> CallersMoment:
        made = cls(now_us, seed)
        made.caller, made.system, made.numbers = caller, system, numbers
        return made


def reseed(moment: Moment, seed: bytes) -> Moment:
    """The same moment of the same session, for one more random value."""
    if isinstance(moment, CallersMoment):
        return CallersMoment.of(moment.now_us, seed, moment.caller, moment.system, moment.numbers)
    return Moment(moment.now_us, seed)


def drawing(moment: Moment, numbers: Any) -> Moment:
    """The same moment for a statement that draws numbers of sequences there."""
    system: System | None = getattr(moment, "system", None)
    return CallersMoment.of(moment.now_us, moment.seed, caller_of(moment), system, numbers)


def numbers_of(moment: Moment) -> Any:
    """Return where the statement draws values of sequences, None where none are to be had."""
    return getattr(moment, "numbers", None)


def system_of(moment: Moment) -> System:
    """Raises FeatureNotSupported where an expression is computed without a database around it."""
    found: System | None = getattr(moment, "system", None)
    if found is None:
        raise FeatureNotSupported("system relations and what tells of them are for queries alone")
    return found


def caller_of(moment: Moment) -> Caller:
    """The session whose statement it is; nobody's without one."""
    return getattr(moment, "caller", NOBODY)


def _told(name: str, kind: Type, tell: Callable[[Caller], Any]) -> Function:
    return Function(name, (), kind, lambda moment: tell(caller_of(moment)), volatility="stable")


def _setting(moment: Moment, name: str) -> str:
    found = caller_of(moment).settings.get(ascii_lower(name))
    if found is None:
        raise UnknownObject(f'unrecognized configuration parameter "{name:.80}"')
    return found


def _setting_or_null(moment: Moment, name: str, missing: int) -> str | None:
    return caller_of(moment).settings.get(ascii_lower(name)) if missing else _setting(moment, name)


def _change(moment: Moment, name: str | None, value: str | None, local: int | None) -> str:
    if name is None:
        raise NullNotAllowed("SET requires parameter name")
    return caller_of(moment).change(name, value, bool(local))


_USERS: Final = ("current_user", "session_user", "user", "current_role")

FUNCTIONS: Final[tuple[Function, ...]] = (
    *(_told(name, TEXT, lambda caller: caller.user) for name in _USERS),
    *(
        _told(name, TEXT, lambda caller: caller.database)
        for name in ("current_database", "current_catalog")
    ),
    _told("current_schema", TEXT, lambda _: PUBLIC),
    Function(
        "current_schemas",
        (BOOLEAN,),
        array_of(Type("name")),
        lambda _, implicit: stored_form([PG_CATALOG, PUBLIC] if implicit else [PUBLIC]),
        volatility="stable",
    ),
    _told("version", TEXT, lambda _: VERSION),
    _told("pg_backend_pid", INTEGER, lambda caller: caller.process),
    _told("pg_is_in_recovery", BOOLEAN, lambda _: 0),
    # Nothing takes advisory locks, so none is left to be given back.
    _told("pg_advisory_unlock_all", Type("void"), lambda _: ""),
    Function("current_setting", (TEXT,), TEXT, _setting, volatility="stable"),
    Function(
        "current_setting", (TEXT, BOOLEAN), TEXT, _setting_or_null, strict=True, volatility="stable"
    ),
    Function(
        "set_config", (TEXT, TEXT, BOOLEAN), TEXT, _change, strict=False, volatility="volatile"
    ),
)
