"""What the ledger answers. A reply always carries the run id of the ledger that gave it (D6)."""

from enum import Enum
from typing import NamedTuple, TypeAlias

from leasehold.lease.commands import Lease


class RefusalReason(Enum):
    """The reason of a refusal. The value is what travels."""

    CLOSED = "closed"  # D6: not seeded under this run id; only re-registration is taken
    NOT_READY = "not ready"  # D6: seeded, but the agents' grace of one TTL is not over
    EPOCH = "epoch"  # D2: not the registered epoch; `epoch` says which one is
    RUN_ID = "run id"  # D6: the caller means another incarnation of the ledger
    PART = "part"  # D6: a part of a re-seeding is missing before this one: start over
    DEAD = "dead"  # D7: no such session: killed, or lost with the ledger's state
    EXPIRED = "expired"  # D7: a person asked for this agent's renewals to be refused
    TAKEN = "taken"  # the session id belongs to another agent or is in use
    REGISTER = "register"  # D6: ledger and agent disagree: register what is held
    COUNTER_MOVED = "counter moved"  # D7: it has renewed since; it is not dead
    UNKNOWN_TABLE = "unknown table"
    FUTURE = "future"  # D1: that version does not exist yet
    TOO_OLD = "too old"  # D1, D5: below the newest but one, or below min_version
    VERSION = "version"  # D2: not from `current`, or not to the next one
    NOT_FENCED = "not fenced"  # D5: min_version has not reached the version published from
    HOLDERS = "holders"  # D2: live leases below; the reply names them
    LIMIT = "limit"  # SESSIONS_MAX, LEASES_PER_SESSION_MAX, LOCKS_MAX or LOCK_USERS_MAX
    UNFENCED = "unfenced"  # the master is of a release that does not hold writes to locks
    UNVOUCHED = "not vouched for"  # D11: the agent's own: its session does not count yet
    LOCKED = "locked"  # another has the advisory lock, and the caller does not wait
    DEADLOCK = "deadlock"  # who has the advisory lock waits for the caller


class Holding(NamedTuple):
    """A live lease, as a blocker is named."""

    table: int
    version: int
    session: int
    agent: str


class LedgerRefused(NamedTuple):
    """A refusal. ``current`` and ``min_version`` are the table's where one was named; ``epoch`` the
    ledger's for EPOCH; ``counter`` the session's for COUNTER_MOVED; ``holders`` (at most
    HOLDERS_MAX of ``holders_total``) for HOLDERS."""

    reason: RefusalReason
    run_id: str
    table: int = 0
    current: int = 0
    min_version: int = 0
    epoch: int = 0
    counter: int = 0
    holders_total: int = 0
    holders: tuple[Holding, ...] = ()


class Opened(NamedTuple):
    """The answer to OpenSession. ``call``, ``vouched``: see Extension."""

    run_id: str
    session: int
    call: int = 0
    vouched: int = 0


class Renewed(NamedTuple):
    """The answer to Renew. ``call``, ``vouched``: see Extension."""

    run_id: str
    counter: int
    call: int = 0
    vouched: int = 0


class Registered(NamedTuple):
    """The answer to Register. ``seeded``: whether the leases were judged by the log's versions, so
    that they hold. ``call``, ``vouched``: see Extension."""

    run_id: str
    seeded: bool
    refused: tuple[Lease, ...]
    call: int = 0
    vouched: int = 0


class Extension(NamedTuple):
    """What an answer says of the time that a session has by it (D11). ``call``: the number of the
    call that was answered, among those that extend a session; 0: it counts at once. ``vouched``:
    up to which number the master has seen them, so that they count."""

    call: int
    vouched: int


class Granted(NamedTuple):
    run_id: str
    table: int
    version: int
    current: int


class Released(NamedTuple):
    run_id: str
    was_held: bool


class Ended(NamedTuple):
    """The answer to EndSession; also where the session had ended before."""

    run_id: str
    freed: int


class EpochRegistered(NamedTuple):
    run_id: str
    seeded: bool
    ready: bool


class Vouched(NamedTuple):
    run_id: str
    call: int


class Published(NamedTuple):
    run_id: str
    already: bool


class MinVersionSet(NamedTuple):
    """The answer to SetMinVersion. ``holders_total`` live leases below it: none means that the
    table is drained (D4)."""

    run_id: str
    min_version: int
    holders_total: int
    holders: tuple[Holding, ...]


class Seeded(NamedTuple):
    run_id: str
    complete: bool
    swept: int


class Ready(NamedTuple):
    run_id: str


class Killed(NamedTuple):
    run_id: str
    freed: int


class Expired(NamedTuple):
    run_id: str
    sessions: tuple[int, ...]


class Dropped(NamedTuple):
    run_id: str
    freed: int


class HolderList(NamedTuple):
    """The answer to Holders. ``ready`` False: agents may not have re-registered yet, so an empty
    list proves nothing."""

    run_id: str
    ready: bool
    holders_total: int
    holders: tuple[Holding, ...]


class SessionStatus(NamedTuple):
    session: int
    agent: str
    counter: int
    held: int
    expiring: bool


class TableStatus(NamedTuple):
    """A table, as a person sees it. ``leases``: (version, how many sessions hold it), by
    version."""

    table: int
    current: int
    min_version: int
    intent: int
    leases: tuple[tuple[int, int], ...]


class LivenessReport(NamedTuple):
    """The answer to Liveness. ``calls``: the number of the last call that has extended a session
    (D11)."""

    run_id: str
    epoch: int
    seeded: bool
    ready: bool
    sessions: tuple[SessionStatus, ...]
    calls: int = 0


class NewestVersions(NamedTuple):
    run_id: str
    versions: tuple[tuple[int, int], ...]  # (table, current), by table


class SnapshotReport(NamedTuple):
    run_id: str
    epoch: int
    seeded: bool
    ready: bool
    sessions: tuple[SessionStatus, ...]
    tables: tuple[TableStatus, ...]


class LockTaken(NamedTuple):
    """The answer to TakeLock: it is held. `epoch`: the registered one."""

    run_id: str
    epoch: int


class LockWaits(NamedTuple):
    """The answer to TakeLock: it has a place in the queue."""

    run_id: str


class LockGiven(NamedTuple):
    run_id: str
    was_held: bool


class LocksClaimed(NamedTuple):
    """The answer to ClaimLocks: the places of those of its names that are held now, from 0.
    `epoch`: the registered one. `full`: there is no room for more."""

    run_id: str
    epoch: int
    full: bool
    held: tuple[int, ...]


class LockUse(NamedTuple):
    """A use of an advisory lock: it is held, or waited for."""

    space: int
    high: int
    low: int
    session: int
    agent: str
    owner: int
    exclusive: bool
    granted: bool


class LockList(NamedTuple):
    run_id: str
    uses: tuple[LockUse, ...]


Reply: TypeAlias = (
    LedgerRefused
    | Opened
    | Renewed
    | Registered
    | Granted
    | Released
    | Ended
    | EpochRegistered
    | Vouched
    | Published
    | MinVersionSet
    | Seeded
    | Ready
    | Killed
    | Expired
    | Dropped
    | LockTaken
    | LockWaits
    | LockGiven
    | LocksClaimed
    | LockList
    | HolderList
    | LivenessReport
    | NewestVersions
    | SnapshotReport
)
