"""Ledger, agent and watches behind numbers, so that a state can hold real objects.

Every step is made on a copy and remembered: a ledger or an agent in one state answers the same
event in the same way, however often the explorer comes by.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, TypeAlias

from leasehold.lease.agent.events import Answered, Effect, Event
from leasehold.lease.agent.holder import Holder
from leasehold.lease.commands import Command
from leasehold.lease.ledger import ledger
from leasehold.lease.ledger.state import LedgerState
from leasehold.lease.master.ledger_watch import LedgerWatch
from leasehold.lease.master.session_watch import SessionWatch
from leasehold.lease.replies import Reply
from tests.support.lease.states import key_of_holder, key_of_ledger, key_of_sessions, key_of_watch

Named: TypeAlias = tuple[str, Any]


class Ids:
    """Session ids, one after the other; `last` belongs to the state."""

    def __init__(self) -> None:
        self.last = 0

    def __iter__(self) -> Ids:
        return self

    def __next__(self) -> int:
        self.last += 1
        return self.last


class Objects:
    """An object's number stands for all objects that are in the same state."""

    def __init__(self) -> None:
        self._objects: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._stepped: dict[Any, tuple[int, list[Effect]]] = {}
        self._applied: dict[Any, tuple[int, Reply]] = {}

    # ------------------------------------------------------------ keeping

    def keep_ledger(self, state: LedgerState) -> int:
        return self._keep("ledger", key_of_ledger(state), state)

    def keep_holder(self, holder: Holder) -> int:
        key = key_of_holder(holder), holder.session._ids.last  # type: ignore[attr-defined]
        return self._keep("holder", key, holder)

    def keep_watch(self, watch: LedgerWatch) -> int:
        return self._keep("watch", key_of_watch(watch), watch)

    def keep_sessions(self, sessions: SessionWatch) -> int:
        return self._keep("sessions", key_of_sessions(sessions), sessions)

    def _keep(self, kind: str, key: Any, thing: Any) -> int:
        number = self._numbers.setdefault((kind, key), len(self._objects))
        if number == len(self._objects):
            self._objects.append(thing)
        return number

    # ------------------------------------------------------------ looking; change copies only

    def ledger(self, number: int) -> LedgerState:
        found: LedgerState = self._objects[number]
        return found

    def holder(self, number: int) -> Holder:
        found: Holder = self._objects[number]
        return found

    def watch(self, number: int) -> LedgerWatch:
        found: LedgerWatch = self._objects[number]
        return found

    def sessions(self, number: int) -> SessionWatch:
        found: SessionWatch = self._objects[number]
        return found

    # ------------------------------------------------------------ steps

    def call(self, number: int, command: Command, run_id: str) -> tuple[int, Reply]:
        """The ledger carries a command out; → its state after it, its answer."""
        known = number, run_id, named(command)
        found = self._applied.get(known)
        if found is None:
            state = self.ledger(number).copy()
            reply = ledger.apply(state, command, run_id)
            found = self._applied[known] = self.keep_ledger(state), reply
        return found

    def step(self, number: int, event: Event, now: int) -> tuple[int, list[Effect]]:
        """The agent takes an event; → its state after it, what it wants done."""
        known = number, type(event).__name__, inner(event), now
        found = self._stepped.get(known)
        if found is None:
            holder = deepcopy(self.holder(number))
            effects = holder.step(event, now)
            found = self._stepped[known] = self.keep_holder(holder), list(effects)
        return found


def named(thing: Any) -> Named:
    """Commands and replies of different kinds can be equal as tuples."""
    return type(thing).__name__, thing


def inner(event: Event) -> Any:
    """An event's content, replies by their kind."""
    return named(event.reply) if isinstance(event, Answered) else tuple(event)
