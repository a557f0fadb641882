"""Statements of a session that are prepared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from leasehold.catalog.descriptor import Descriptor
from leasehold.pgwire.session import Column, CopySource
from leasehold.pgwire.wire_errors import CachedResultChanged
from leasehold.replica.replay_log import Types
from leasehold.sql.planning.plan import Prepared as Plan
from leasehold.sql.syntax.session_statements import SessionStatement
from leasehold.sql.system_catalog.oids import table_oid
from leasehold.values.oids import WireType
from leasehold.values.types import KNOWN, element_of


class Answer(NamedTuple):
    """What a command answers."""

    tag: str
    rows: Sequence[Sequence[Any]] = ()


@dataclass
class PreparedStatement:
    """A statement whose names are looked up.

    `types` are the client's own. `open` makes a portal of values. `plan` is the one by which the
    client was told of parameters and columns. `takes_long`: an execution was found to.
    """

    statement: SessionStatement
    types: Types
    parameters: Sequence[WireType]
    columns: Sequence[Column] | None
    open: Callable[[PreparedStatement, Sequence[Any]], Any]
    plan: Plan | None = None
    takes_long: bool = False
    copies: CopySource | None = None
    binary: bool = False
    ends_transaction: bool = field(init=False)
    leaves_failed_block: bool = field(init=False)
    _newest: tuple[object, tuple[Plan, bool]] | None = None
    _allowed: Any = None
    _allowed_to: int = 0

    def __post_init__(self) -> None:
        self.ends_transaction = self.statement.ends_transaction
        self.leaves_failed_block = self.statement.leaves_failed_block

    def newest_plan(self, catalog: object, zone: ZoneInfo) -> tuple[Plan, bool] | None:
        """Return what `keep_newest_plan` was given, if that was of this very catalog and zone."""
        newest = self._newest
        if newest is None or newest[0] is not catalog or not newest[1][0].serves_in(zone):
            return None
        return newest[1]

    def is_allowed(self, catalog: object, role_id: int) -> bool:
        """Return whether `keep_allowed` was called last for this very catalog and role."""
        return self._allowed is catalog and self._allowed_to == role_id

    def keep_allowed(self, catalog: object, role_id: int) -> None:
        """Keep that the role may run it, on a catalog."""
        self._allowed, self._allowed_to = catalog, role_id

    def keep_newest_plan(self, catalog: object, plan: Plan, *, is_short: bool) -> None:
        """Keep the plan on a catalog. `is_short`: it needs no transaction, and surely ends soon.

        Raises CachedResultChanged.
        """
        check_same(self, plan)
        self._newest = catalog, (plan, is_short)

    @property
    def answers_whole(self) -> bool:
        plan = self.plan
        return plan is None or plan.explain or plan.runs_whole


def columns_of(plan: Plan) -> tuple[Column, ...] | None:
    """Return a plan's columns as clients are told of them; None: no rows come."""
    if plan.columns is None:
        return None
    places = {d.table_id: _places(d) for d in plan.tables.values()}
    found = []
    for column in plan.columns:
        table = position = 0
        origin = column.origin
        if origin is not None:
            table = table_oid(origin.table_id)
            position = places.get(origin.table_id, {}).get(origin.element_id, 0)
        found.append(Column(column.name, column.kind, table, position))
    return tuple(found)


def _places(descriptor: Descriptor) -> dict[int, int]:
    public = descriptor.by_name.values()
    return {column.element_id: position for position, column in enumerate(public, start=1)}


def check_same(prepared: PreparedStatement, plan: Plan) -> None:
    """Raise CachedResultChanged where what the client was told no longer holds."""
    if plan is prepared.plan:
        return
    if tuple(plan.parameters) != tuple(prepared.parameters) or [
        (c.name, c.type) for c in prepared.columns or ()
    ] != [(c.name, c.type) for c in columns_of(plan) or ()]:
        raise CachedResultChanged("cached plan must not change result type")


def plan_types(types: Sequence[WireType | None]) -> Types:
    """Return types as the query plan knows them; what it does not know the statement has to
    tell."""
    return tuple(t if t and (element_of(t) or t).name in KNOWN else None for t in types)
