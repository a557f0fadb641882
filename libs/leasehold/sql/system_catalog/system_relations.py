"""System relations: what a query may name beside tables. Their columns are fixed; their rows are
computed for one statement, of descriptors and of what its node knows, and can't be written.

To add one: its shape into RELATIONS (`relations.py`) or, when the node tells of it, into
NODE_RELATIONS (`leasehold_schema.py`); its rows where `System` asks for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NoReturn, Protocol

from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.job import Job
from leasehold.catalog.privileges import Privilege
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.catalog.schema_names import (
    INFORMATION_SCHEMA,
    PG_CATALOG,
    PUBLIC,
    TEMPORARY_SCHEMA,
)
from leasehold.catalog.search_path import schemas_of
from leasehold.model.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    UnknownTable,
)
from leasehold.model.records.requests import LockFence
from leasehold.sql.functions.system.session import CallerContext, caller_of, sequence_values_of
from leasehold.sql.system_catalog.leasehold_schema import NODE_RELATIONS
from leasehold.sql.system_catalog.relations import RELATIONS, Relation
from leasehold.sql.system_catalog.rows import SystemCatalog
from leasehold.sql.system_catalog.sequences import LastValue

_POSTGRESQLS: Final = frozenset({PG_CATALOG, INFORMATION_SCHEMA})

Row = Mapping[str, Any]
Tell = Callable[[str, str], None]
Found = Mapping[tuple[Any, ...], list[tuple[Any, ...]]]


def relation_of(schema: str, name: str) -> Relation | None:
    """Return the system relation of that name, None where a table is meant. `schema` "" is by the
    search path, where pg_catalog stands first.

    Raises FeatureNotSupported for what PostgreSQL has there, UnknownTable for other schemas.
    """
    named = (schema or PG_CATALOG, name)
    found = RELATIONS.get(named) or NODE_RELATIONS.get(named)
    if found is not None or schema in ("", PUBLIC):
        return found
    if schema in _POSTGRESQLS:
        raise FeatureNotSupported(f"the system relation {schema}.{name} is not supported")
    raise UnknownTable(f"relation {f'{schema}.{name}'!r} does not exist", table=name)


def refuse_write(relation: Relation) -> NoReturn:
    raise InsufficientPrivilege(
        f"permission denied: {relation.name!r} is a system relation, which can't be written"
    )


class NodeSide(Protocol):
    """What a node tells of itself and of its database, and does for a client."""

    def rows(self, relation: Relation) -> Iterable[Row]:
        """Return the rows of one of `NODE_RELATIONS`, each by the columns that say something.
        Raises BusUnavailable, LedgerUnavailable."""
        ...

    def act(self, action: str, *values: Any) -> bool:
        """Do one of the actions of `functions/system/node.py`; False: there was nothing to do it
        to. Raises what the master refuses with; for an advisory lock what `NodeLocks` raises."""
        ...

    def fence(self) -> LockFence | None:
        """Return under which advisory locks the session sends a request. Raises
        AdvisoryLockLost."""
        ...

    def listening(self) -> tuple[Sequence[str], float]:
        """Return the channels to which the session listens, and which part of its node's room is
        taken by what waits for all of its sessions."""
        ...


class System:
    """What one statement is told of the database and of its node; the same throughout.

    `tables`: the descriptors of its snapshot; `last_value`: of a sequence there; `user`: how the
    session calls the first role; `role_id`: the one that asks, under `access`. `jobs`: those there
    that have not ended.
    """

    def __init__(
        self,
        tables: Callable[[], Iterable[Descriptor]],
        database: str,
        user: str,
        settings: Mapping[str, str] | None = None,
        node: NodeSide | None = None,
        last_value: LastValue = lambda _: None,
        access: Access | None = None,
        role_id: int = BOOTSTRAP_ROLE,
        tell: Tell | None = None,
        jobs: Callable[[], Iterable[Job]] = tuple,
    ) -> None:
        self._tables, self._jobs = tables, jobs
        self._tell = tell
        self._access, self._role_id = access or Access(), role_id
        self._last_value = last_value
        self._database, self._user, self._settings = database, user, settings
        self._node = node
        self._rows: dict[Relation, list[tuple[Any, ...]]] = {}
        self._found: dict[tuple[Relation, tuple[int, ...]], Found] = {}

    @cached_property
    def catalog(self) -> SystemCatalog:
        return SystemCatalog(
            self._tables(),
            self._database,
            self._user,
            self._settings,
            self._last_value,
            self._access,
            self._role_id,
            self._jobs,
        )

    @cached_property
    def schemas(self) -> tuple[str, ...]:
        """The schemas of the session's search path that are there."""
        return schemas_of(self._settings, self._access, self._role_id, self._user)

    @property
    def implicit_schemas(self) -> tuple[str, ...]:
        """Return those that are looked at before, without being said."""
        own = (TEMPORARY_SCHEMA,) if any(table.temporary for table in self._tables()) else ()
        return (*own, *(() if PG_CATALOG in self.schemas else (PG_CATALOG,)))

    def check_sequence(self, sequence: Descriptor, privileges: Privilege) -> None:
        """Check that the role has one of the privileges on a sequence. Raises
        InsufficientPrivilege (42501)."""
        role_id = self._role_id
        if role_id == BOOTSTRAP_ROLE:
            return
        if not self._access.privileges(role_id, "sequence", sequence.table_id) & privileges:
            raise InsufficientPrivilege(f"permission denied for sequence {sequence.name}")

    def rows(self, relation: Relation) -> list[tuple[Any, ...]]:
        """Storage values for all columns."""
        rows = self._rows.get(relation)
        if rows is None:
            rows = self._rows[relation] = self._made(relation)
        return rows

    def found(self, relation: Relation, places: tuple[int, ...]) -> Found:
        """The rows by their values in the columns at `places`."""
        found = self._found.get((relation, places))
        if found is None:
            by: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
            for row in self.rows(relation):
                by[tuple(row[position] for position in places)].append(row)
            found = self._found[relation, places] = dict(by)
        return found

    def _made(self, relation: Relation) -> list[tuple[Any, ...]]:
        if (relation.schema, relation.name) in RELATIONS:
            return self.catalog.rows(relation.schema, relation.name)
        return [relation.whole(row) for row in self._told_by().rows(relation)]

    def act(self, action: str, *values: Any) -> bool:
        return self._told_by().act(action, *values)

    def notify(self, channel: str, payload: str) -> None:
        """Tell those who listen to a channel, once the transaction is committed. Raises
        FeatureNotSupported where there is none, and what that raises."""
        if self._tell is None:
            raise FeatureNotSupported("NOTIFY is for SQL sessions: leasehold.connect()")
        self._tell(channel, payload)

    def listening(self) -> tuple[Sequence[str], float]:
        """Return the channels to which the session listens, and which part of its node's room is
        taken by what waits for all of its sessions."""
        return self._told_by().listening()

    def _told_by(self) -> NodeSide:
        if self._node is None:
            raise FeatureNotSupported(
                "relations and functions of the schema leasehold can't be used here: ask them"
                " in a SQL session (leasehold.connect(), or a node's port for SQL)"
            )
        return self._node


def with_system(
    context: CommitContext,
    tables: Callable[[], Iterable[Descriptor]],
    last_value: LastValue = lambda _: None,
    access: Access | None = None,
    tell: Tell | None = None,
    jobs: Callable[[], Iterable[Job]] = tuple,
) -> CommitContext:
    """The same context for one statement on a snapshot that has these tables, sequences that have
    given these values last, roles, and `jobs` that have not ended. `tell`: its transaction tells a
    channel something."""
    caller = caller_of(context)
    access = access or Access()
    first = caller.first_role or access.roles.name_of(BOOTSTRAP_ROLE)
    system = System(
        tables,
        caller.database,
        first,
        caller.settings,
        caller.node,
        last_value,
        access,
        caller.role_id,
        tell,
        jobs,
    )
    return CallerContext.of(
        context.now_us, context.seed, caller, system, sequence_values_of(context)
    )
