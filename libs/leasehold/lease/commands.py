"""What can be asked of the ledger: numbers and names, never content.

Every command may be sent again by whoever is left without an answer: the second time it finds
its work done, or is refused with a reason that says what to do. The pure ledger (``ledger.py``)
and Redis (``adapters/redis/ledger.lua``) give the same reply (``replies.py``) to the same command.
"""

from typing import NamedTuple, TypeAlias

SESSION_ID_MAX = 2**53 - 1
"""Session ids are Lua numbers too, and those are doubles."""

NEVER_LATE = SESSION_ID_MAX
"""The counter of whoever never gives up a call (tests that call the pure ledger)."""

SESSIONS_MAX = 10_000
LEASES_PER_SESSION_MAX = 10_000
TABLES_PER_CALL_MAX = 1_000
LOCKS_MAX = 4_096
"""Advisory locks of a database that somebody holds or waits for."""
LOCK_USERS_MAX = 1_000
"""Owners that hold one of them or wait for it."""
LOCKS_PER_CALL_MAX = 256
"""Locks that one ClaimLocks or GiveLocks names."""
LISTED_LOCKS_MAX = 1_000
WAITS_FOLLOWED_MAX = 1_000
"""Owners that a look for a deadlock passes."""

HOLDERS_MAX = 64
"""How many holders a reply names (lowest version, then lowest session first); it counts all."""


class Lease(NamedTuple):
    table: int
    version: int


class Change(NamedTuple):
    """A table's part of a publish: from its current version to the next. From 0 it is a new table,
    at whatever version it has in the log: one that takes another's place does not begin at 1."""

    table: int
    from_version: int
    to_version: int


class Seed(NamedTuple):
    """A table's versions as the log has them."""

    table: int
    current: int
    min_version: int


# --- an agent's commands -----------------------------------------------------------------------


class OpenSession(NamedTuple):
    """Begin a session without leases. Its id is the agent's own fresh random number (from 1 to
    SESSION_ID_MAX): a ledger that lost its state would give a number of its own counting twice."""

    agent: str
    session: int


class Renew(NamedTuple):
    """Extends a session with all its leases in one call. ``counter`` rises with every call that the
    agent makes; ``held`` is the number of leases it believes it has, ``confirmed`` the counter of
    its last call of this kind that was answered: both must be the ledger's, else one of them has
    lost something, and the agent registers what it holds (D6)."""

    session: int
    counter: int
    held: int
    confirmed: int


class Register(NamedTuple):
    """ "This is all I hold": replaces whatever the ledger has under the session (D6)."""

    agent: str
    session: int
    counter: int
    leases: tuple[Lease, ...]


class Acquire(NamedTuple):
    """A lease on the version named, the newest whose descriptor the agent has (D1). ``counter``:
    the last one the agent has used; below the session's, this call was given up long ago."""

    session: int
    counter: int
    table: int
    version: int


class Release(NamedTuple):
    session: int
    counter: int
    table: int
    version: int


class EndSession(NamedTuple):
    """Ends a session of the sender's own, with all that it holds: nobody uses a lease of it any
    more, and nothing is ever sent under it again."""

    session: int


# --- the master's commands ---------------------------------------------------------------------


class RegisterEpoch(NamedTuple):
    """Makes a master the one whose commands count. `vouches`: the ledger may be replaced by another
    one while it lives (Sentinel), so what extends a session counts only once this master has seen
    it (D11)."""

    epoch: int
    vouches: bool = False


class Vouch(NamedTuple):
    """Says that the master has seen all calls up to one that extend a session, and was master by
    the log after it had (D11)."""

    epoch: int
    run_id: str
    call: int


class Publish(NamedTuple):
    """Publishes all tables of one step at once (D9). ``intent`` is the number that the log gave the
    step (the LSN of its intent): a repeat is a repeat only under the same one."""

    epoch: int
    changes: tuple[Change, ...]
    intent: int = 0


class SetMinVersion(NamedTuple):
    epoch: int
    table: int
    version: int


class SeedTables(NamedTuple):
    """Re-seed from the log, in parts of at most TABLES_PER_CALL_MAX, numbered from 0."""

    epoch: int
    run_id: str
    tables: tuple[Seed, ...]
    part: int = 0
    final: bool = True


class MarkReady(NamedTuple):
    epoch: int
    run_id: str


class KillSession(NamedTuple):
    """Death as a compare-and-set: a session whose counter has moved is alive (D7)."""

    epoch: int
    session: int
    counter: int


class ExpireAgent(NamedTuple):
    """Refuse the renewals of all the agent's sessions from now on (D7)."""

    epoch: int
    agent: str


class DropTable(NamedTuple):
    epoch: int
    table: int


# --- advisory locks ----------------------------------------------------------------------------


class TakeLock(NamedTuple):
    """Asks for an advisory lock in the name of `owner`, a SQL session of the node whose session
    this is. `space`, `high` and `low` name it, as in PostgreSQL: 1 and the halves of a bigint, or 2
    and two integers. `waits`: whether it keeps a place in the queue; asked again it is the same
    place, so who waits asks again and again."""

    session: int
    owner: int
    space: int
    high: int
    low: int
    exclusive: bool
    waits: bool


class GiveLock(NamedTuple):
    """Gives one mode of a lock back, or the place in its queue."""

    session: int
    owner: int
    space: int
    high: int
    low: int
    exclusive: bool


class ClaimLocks(NamedTuple):
    """Asks for the first `wanted` of `names` (space, high, low) that no other owner is in the way
    of, in the name of `owner`; nobody waits for one. Those that it has already count."""

    session: int
    owner: int
    wanted: int
    exclusive: bool
    names: tuple[tuple[int, int, int], ...]


class GiveLocks(NamedTuple):
    """Gives one mode of several locks back."""

    session: int
    owner: int
    exclusive: bool
    names: tuple[tuple[int, int, int], ...]


class ListLocks(NamedTuple):
    """Asks for the first `names_max` locks that live sessions hold or wait for."""

    names_max: int


# --- anyone's questions ------------------------------------------------------------------------


class Holders(NamedTuple):
    """Asks who holds the table below a version (0: at any): how many, and the first `names_max` by
    name. Most looks of a drain want the number alone, and to name a hundred agents costs ten times
    as much."""

    table: int
    below_version: int = 0
    names_max: int = HOLDERS_MAX


class Liveness(NamedTuple):
    """The sessions and their counters: what a master's watch looks at."""


class Newest(NamedTuple):
    """The tables' current versions: has an agent missed one? Snapshot would tell each of a thousand
    agents of all the others."""


class Snapshot(NamedTuple):
    """Everything a person may want to see, in numbers."""


Command: TypeAlias = (
    OpenSession
    | Renew
    | Register
    | Acquire
    | Release
    | EndSession
    | RegisterEpoch
    | Vouch
    | Publish
    | SetMinVersion
    | SeedTables
    | MarkReady
    | KillSession
    | ExpireAgent
    | DropTable
    | TakeLock
    | GiveLock
    | ClaimLocks
    | GiveLocks
    | ListLocks
    | Holders
    | Liveness
    | Newest
    | Snapshot
)
