"""What happens to an agent's holder, and what it wants done."""

from typing import Final, NamedTuple, TypeAlias

from leasehold.lease.agent.held_leases import HeldLease
from leasehold.lease.commands import Command
from leasehold.lease.replies import RefusalReason, Reply

# --- events ------------------------------------------------------------------------------------


class VersionKnown(NamedTuple):
    """The descriptor is here: applied to the store, or read from the versions topic."""

    table: int
    version: int


class TableGone(NamedTuple):
    """The table is not in the newest catalog any more."""

    table: int


NOBODY: Final = 0
"""The token of a Want whose user has stopped waiting before it was looked at."""


class Want(NamedTuple):
    """Somebody waits for a lease on the newest known version (version 0), or on a named older
    one for a transaction whose time lies before (D8). Answered by one Wake with this token; with
    `NOBODY` the newest version is held for who comes next, and nobody is woken."""

    table: int
    token: int
    version: int = 0


class GaveUp(NamedTuple):
    """Users have stopped waiting: (table, token) of each. Nobody is woken for them any more."""

    waiters: frozenset[tuple[int, int]]


class Answered(NamedTuple):
    """The reply to the command sent last."""

    reply: Reply


class LedgerAway(NamedTuple):
    """The command sent last has no answer; whether it was carried out is unknown."""


class Idle(NamedTuple):
    """A retired lease has lost its last user: `release` said so."""


class TimePassed(NamedTuple):
    """The time that `due_ns` gave has come."""


class Drain(NamedTuple):
    """The agent is stopping: no new users; every lease is released when its users are gone."""


Event: TypeAlias = (
    VersionKnown | TableGone | Want | GaveUp | Answered | LedgerAway | Idle | TimePassed | Drain
)

# --- effects -----------------------------------------------------------------------------------


class Send(NamedTuple):
    """A command for the ledger; the holder sends one at a time and waits for Answered or
    LedgerAway."""

    command: Command


class Acknowledge(NamedTuple):
    """Word that no user below `version` is left here, and that the ledger knows: wakes a waiting
    job (D4)."""

    table: int
    version: int


class Wake(NamedTuple):
    """The answer to a Want. `lease`: a use taken for the waiter, to be given back by `release`; or
    None and why."""

    token: int
    lease: HeldLease | None
    reason: RefusalReason | None = None
    sentence: str = ""


Effect: TypeAlias = Send | Acknowledge | Wake
