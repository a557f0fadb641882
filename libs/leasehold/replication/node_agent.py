"""The agent inside a node that serves reads: descriptor leases on every table of its store (D4).

Its users take leases from any thread through `leases`; this part follows the catalog, talks to
the ledger (one command at a time) and acknowledges. Reads of a node with a store never wait for
it (D3).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.part import WHOLE, Part
from leasehold.catalog.states import READABLE
from leasehold.lease.agent.events import (
    Acknowledge,
    Answered,
    Drain,
    Idle,
    LedgerAway,
    TableGone,
    TimePassed,
    VersionKnown,
    Wake,
    Want,
)
from leasehold.lease.agent.events import Event as HolderEvent
from leasehold.lease.agent.events import Send as ToLedger
from leasehold.lease.agent.held_leases import HeldLeases
from leasehold.lease.agent.holder import Holder
from leasehold.lease.agent.old_version_report import OldLeases
from leasehold.lease.agent.session import HolderLimits
from leasehold.model.errors import LedgerUnavailable
from leasehold.model.ports import Now
from leasehold.model.records.acks import HoldingReport, LeaseAck
from leasehold.replication.effects import CallLedger, Effect, Send, Topic
from leasehold.replication.effects import Wake as WakeAt

FOR_AGENT: Final = "agent"


class NodeAgent:
    """The agent. `session_ids`: fresh random numbers from 1 to SESSION_ID_MAX."""

    def __init__(
        self, node: str, session_ids: Iterator[int], limits: HolderLimits | None = None
    ) -> None:
        self._node = node
        self.holder = Holder(node, session_ids, has_store=True, limits=limits)
        self._old = OldLeases(self.holder)
        self._known: dict[int, int] = {}
        self._changes = -1  # those of the catalog that were followed; before the first look none
        self._tokens = count(1)

    @property
    def leases(self) -> HeldLeases:
        return self.holder.leases

    def catalog_changed(self, catalog: Catalog, now_ns: int, part: Part = WHOLE) -> list[Effect]:
        """Follow the catalog, whose newest versions are committed, as far as tables of `part` go:
        new users get them at once (D4)."""
        effects: list[Effect] = []
        if self._changes == catalog.changes:
            return effects
        first_look = self._changes < 0
        changed = catalog.table_ids() if first_look else catalog.changed_since(self._changes)
        self._changes = catalog.changes
        for table in sorted(changed):
            holds = part.holds(table)
            if not holds and table not in self._known:
                continue  # it has no users, so nobody is to wait for them
            newest = catalog.newest(table) if holds and catalog.has(table) else None
            if newest is not None and newest.state in READABLE:
                effects += self._follow(table, newest.version, now_ns)
            elif self._known.pop(table, 0):
                # One that is being dropped, or is held here no more, has no new users; its leases
                # end with those it has.
                effects += self._step(TableGone(table), now_ns)
        return effects

    def _follow(self, table: int, version: int, now_ns: int) -> list[Effect]:
        known = self._known.get(table, 0)
        if known >= version:
            return []
        self._known[table] = version
        effects = self._step(VersionKnown(table, version), now_ns)
        if not known:
            effects += self._step(Want(table, next(self._tokens)), now_ns)
        return effects

    def ledger_replied(self, reply: object, now_ns: int) -> list[Effect]:
        if isinstance(reply, LedgerUnavailable):
            return self._step(LedgerAway(), now_ns)
        return self._step(Answered(reply), now_ns)  # type: ignore[arg-type]

    def users_left(self, now_ns: int) -> list[Effect]:
        """Take it that a retired lease is idle, as `leases.release` said."""
        return self._step(Idle(), now_ns)

    def tick(self, now: Now) -> list[Effect]:
        now_ns = now.mono_ns
        effects: list[Effect] = [self._told(report) for report in self._old.reports(now)]
        if self.leases.idle:
            effects += self._step(Idle(), now_ns)
        due = self.holder.due_ns()
        if due is not None and now_ns >= due:
            effects += self._step(TimePassed(), now_ns)
            due = self.holder.due_ns()
        wakes = [at_ns for at_ns in (due, self._old.due_ns()) if at_ns is not None]
        return [*effects, WakeAt(min(wakes))] if wakes else effects

    def drain(self, now_ns: int) -> list[Effect]:
        return self._step(Drain(), now_ns)

    def _step(self, event: HolderEvent, now_ns: int) -> list[Effect]:
        effects: list[Effect] = []
        for effect in self.holder.step(event, now_ns):
            match effect:
                case ToLedger(command):
                    effects.append(CallLedger(FOR_AGENT, command))
                case Acknowledge(table, version):
                    effects.append(self._told(LeaseAck(self._node, table, version)))
                case Wake(lease=lease):
                    # Nobody waits: the first use of a table only makes it followed.
                    if lease is not None and self.leases.release(lease):
                        effects += self._step(Idle(), now_ns)
        return effects

    def _told(self, record: LeaseAck | HoldingReport) -> Send:
        return Send(Topic.ACKS, 0, self._node.encode(), record, 0)
