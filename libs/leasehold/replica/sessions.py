"""The sessions of one node, for those who look at them, cancel them or end them."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import NamedTuple, Protocol

from leasehold.adapters.os.computing_turns import ComputingTurns, default_at_once
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.model import metrics
from leasehold.model.measures import Measures, Sample


class Activity(NamedTuple):
    """A session as others see it. `label` names it to those who wait for a version that it has
    pinned. `state` is PostgreSQL's word; `sql` its last statement, running or not. Times are unix
    µs. `role_id`: the role that it came as."""

    process: int
    user: str
    application: str
    label: str
    state: str
    isolation: str | None
    sql: str
    opened_us: int
    began_us: int | None
    statement_us: int
    role_id: int = BOOTSTRAP_ROLE


class Listed(Protocol):
    def activity(self) -> Activity: ...

    def cancel(self, reason: Exception) -> None: ...


class Connections(Protocol):
    """The connections of a listener, by the numbers of its clients' sessions."""

    def cancel_client(self, process: int, reason: Exception) -> bool:
        """End what a client runs now, be it in the session or on the way to a slow reader. False:
        there is no such client."""
        ...

    def end_client(self, process: int, why: str = "") -> bool: ...

    def tell_clients(self, processes: Collection[int]) -> None:
        """Tell clients what waits for them (NOTIFY), as soon as their sessions are idle;
        called by any thread."""
        ...


class Sessions:
    """The sessions of a node. All methods may be called from any thread. `connections` is None as
    long as nobody listens. `computing`: how they share its processors."""

    def __init__(self) -> None:
        self.computing = ComputingTurns(default_at_once())
        self._lock = threading.Lock()
        self._open: dict[int, Listed] = {}
        self._last = 0
        self._measures = Measures()  # under the lock
        self.connections: Connections | None = None

    def number(self, process: int) -> int:
        """Return the number of a session: that of its connection, or one of its own."""
        if process:
            return process
        with self._lock:
            self._last -= 1
            return self._last

    def enter(self, process: int, session: Listed) -> None:
        with self._lock:
            self._open[process] = session

    def leave(self, process: int, session: Listed) -> None:
        with self._lock:
            if self._open.get(process) is session:
                del self._open[process]

    def count_replay(self) -> None:
        """Count a transaction that runs again after a verify error."""
        with self._lock:
            self._measures.add(metrics.REPLAYS)

    def samples(self) -> list[Sample]:
        """Return how many sessions there are by state, and what is counted here."""
        states: dict[str, int] = {}
        for activity in self.activities():
            states[activity.state] = states.get(activity.state, 0) + 1
        found = [Sample(metrics.SESSIONS, (state,), number) for state, number in states.items()]
        return [*found, *self._measures.samples()]

    def activities(self) -> list[Activity]:
        with self._lock:
            sessions = list(self._open.values())
        return [session.activity() for session in sessions]

    def role_of(self, process: int) -> int | None:
        """Return the role that a session came as, None where there is no such session."""
        with self._lock:
            session = self._open.get(process)
        return None if session is None else session.activity().role_id

    def cancel(self, process: int, reason: Exception) -> bool:
        """End what a session runs now, if anything. False: there is no such session."""
        if self.connections is not None and self.connections.cancel_client(process, reason):
            return True
        with self._lock:
            session = self._open.get(process)
        if session is None:
            return False
        session.cancel(reason)
        return True

    def tell(self, processes: Collection[int]) -> None:
        """Tell the connections of sessions that something waits for them. Those of programs that
        embed the node ask by themselves."""
        if self.connections is not None:
            self.connections.tell_clients([process for process in processes if process > 0])

    def end(self, process: int, why: str = "") -> bool:
        """End a session, and its connection, which is told `why`. False: there is no such
        connection."""
        return self.connections is not None and self.connections.end_client(process, why)
