"""Functions that tell of the session that calls them. Who runs a statement gives it a context that
knows the session; without one they tell of nobody's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from leasehold.catalog.elements import CommitContext
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.model.errors import FeatureNotSupported, NullNotAllowed, UnknownObject
from leasehold.model.records.requests import LockFence
from leasehold.sql.functions.function import BOOLEAN, INTEGER, TEXT, Function
from leasehold.values.arrays import stored_form
from leasehold.values.letters import ascii_lower
from leasehold.values.time_zone import UTC
from leasehold.values.types import Type, array_of

if TYPE_CHECKING:  # the system catalog lists these functions
    from leasehold.sql.system_catalog.system_relations import NodeSide, System

VERSION: Final = "PostgreSQL 15.0 (Leasehold)"


class AsksAs(NamedTuple):
    """The names as whom a session asks the master: `ChangeRequest.principal` and `as_role`."""

    principal: str = ""
    as_role: str = ""


class Caller(NamedTuple):
    """The session that calls. `process` is the number by which its connection is cancelled;
    `settings` are by name in lower case. `change` sets one, for this transaction alone if it
    says so, and returns its value then. `node` is the one that it is on; `zone` is the setting
    TimeZone. `user` is the name of the role that it acts as, `role_id` its id; `session_user` of
    the one that SET ROLE starts from, "" = the same. `first_role`: how it calls the first one, if
    not by its name."""

    user: str
    database: str
    process: int
    settings: Mapping[str, str]
    change: Callable[[str, str | None, bool], str]
    node: NodeSide | None = None
    zone: ZoneInfo = UTC
    role_id: int = BOOTSTRAP_ROLE
    session_user: str = ""
    first_role: str = ""
    asks_as: AsksAs = AsksAs()

    def fence(self) -> LockFence | None:
        """Return under which advisory locks the session sends a request. Raises
        AdvisoryLockLost."""
        return None if self.node is None else self.node.fence()


def _nobodys(name: str, value: str | None, local: bool) -> str:
    raise FeatureNotSupported("there is no session here whose settings could be changed")


NOBODY: Final = Caller("leasehold", "", 0, MappingProxyType({}), _nobodys)


class CallerContext(CommitContext):
    """A context of one session's statement. `system`: what that statement is told of the rest of
    the database; None until somebody has looked (`with_system`). `sequence_values`: where it draws
    numbers of sequences (`sequence.SequenceValues`)."""

    caller: Caller
    system: System | None
    sequence_values: Any

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
        sequence_values: Any = None,
    ) -> CallerContext:
        made = cls(now_us, seed)
        made.caller, made.system, made.sequence_values = caller, system, sequence_values
        return made


def reseed(context: CommitContext, seed: bytes) -> CommitContext:
    """The same context of the same session, for one more random value."""
    if isinstance(context, CallerContext):
        return CallerContext.of(
            context.now_us, seed, context.caller, context.system, context.sequence_values
        )
    return CommitContext(context.now_us, seed)


def drawing(context: CommitContext, sequence_values: Any) -> CommitContext:
    """The same context for a statement that draws numbers of sequences there."""
    system: System | None = getattr(context, "system", None)
    return CallerContext.of(
        context.now_us, context.seed, caller_of(context), system, sequence_values
    )


def sequence_values_of(context: CommitContext) -> Any:
    """Return where the statement draws values of sequences, None where none are to be had."""
    return getattr(context, "sequence_values", None)


def system_of(context: CommitContext) -> System:
    """Raises FeatureNotSupported where an expression is computed without a database around it."""
    found: System | None = getattr(context, "system", None)
    if found is None:
        raise FeatureNotSupported(
            "functions that tell of the system catalog can't be used here: they stand in"
            " queries alone"
        )
    return found


def caller_of(context: CommitContext) -> Caller:
    """The session whose statement it is; nobody's without one."""
    return getattr(context, "caller", NOBODY)


def _told(name: str, kind: Type, tell: Callable[[Caller], Any]) -> Function:
    return Function(name, (), kind, lambda context: tell(caller_of(context)), volatility="stable")


def _setting(context: CommitContext, name: str) -> str:
    found = caller_of(context).settings.get(ascii_lower(name))
    if found is None:
        raise UnknownObject(f'unrecognized configuration parameter "{name:.80}"')
    return found


def _setting_or_null(context: CommitContext, name: str, missing: int) -> str | None:
    return (
        caller_of(context).settings.get(ascii_lower(name)) if missing else _setting(context, name)
    )


def _change(context: CommitContext, name: str | None, value: str | None, local: int | None) -> str:
    if name is None:
        raise NullNotAllowed("SET requires parameter name")
    return caller_of(context).change(name, value, bool(local))


def _current_schema(context: CommitContext) -> str | None:
    schemas = system_of(context).schemas
    return schemas[0] if schemas else None


def _current_schemas(context: CommitContext, implicit: int) -> str:
    system = system_of(context)
    return stored_form([*(system.implicit_schemas if implicit else ()), *system.schemas])


_USERS: Final = ("current_user", "user", "current_role")

FUNCTIONS: Final[tuple[Function, ...]] = (
    *(_told(name, TEXT, lambda caller: caller.user) for name in _USERS),
    _told("session_user", TEXT, lambda caller: caller.session_user or caller.user),
    *(
        _told(name, TEXT, lambda caller: caller.database)
        for name in ("current_database", "current_catalog")
    ),
    Function("current_schema", (), Type("name"), _current_schema, volatility="stable"),
    Function(
        "current_schemas",
        (BOOLEAN,),
        array_of(Type("name")),
        _current_schemas,
        volatility="stable",
    ),
    _told("version", TEXT, lambda _: VERSION),
    _told("pg_backend_pid", INTEGER, lambda caller: caller.process),
    _told("pg_is_in_recovery", BOOLEAN, lambda _: 0),
    Function("current_setting", (TEXT,), TEXT, _setting, volatility="stable"),
    Function(
        "current_setting", (TEXT, BOOLEAN), TEXT, _setting_or_null, strict=True, volatility="stable"
    ),
    Function(
        "set_config", (TEXT, TEXT, BOOLEAN), TEXT, _change, strict=False, volatility="volatile"
    ),
)
