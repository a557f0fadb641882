"""The leases an agent holds, as its users see them: taking one costs no lock and no network.

`acquire` and `release` may be called from any thread; everything else only from the one that
steps the holder. Why no lock is needed under CPython's global interpreter lock: a user adds
itself *before* it looks whether the lease is retired, and a lease is retired *before* its users
are counted. `list.append`, `list.pop`, and reading an attribute are each atomic, so of two
threads that race at least one sees the other: either the user backs off, or it is counted.
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from leasehold.lease.commands import Lease

FOREVER_NS: Final = 2**63 - 1
LABEL_CHARS_MAX: Final = 120
SQL_CHARS_MAX: Final = 500


class LeaseStatus(Enum):
    """What the ledger knows of a lease."""

    WANTED = "asked for"
    HELD = "held"
    UNLEASED = "used without a lease"  # D3: only by a node with a store
    RELEASING = "being released"
    GONE = "gone"  # released, or lost: no longer usable


@dataclass(eq=False, slots=True)
class Use:
    """A user by name, for those who wait for it: change `sql` as its statements pass."""

    label: str
    sql: str
    since_ns: int


def bound_line(words: str, chars_max: int) -> str:
    """Return the words on one line, without what a terminal would obey, `chars_max` characters at
    most."""
    shown = "".join(c if c.isprintable() else " " for c in words[: 4 * chars_max])
    line = " ".join(shown.split())
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"


class BlockingUse(NamedTuple):
    """A user of an old version, as it is shown to people (`age_ns` by the agent's own clock)."""

    table: int
    version: int
    label: str
    sql: str
    age_ns: int


class HeldLease:
    """The lease on a version of one table with its users (D8: a transaction is a user from first
    use to its end). `users` counts the anonymous ones by its length."""

    __slots__ = (
        "id",
        "lingers",
        "named",
        "retired",
        "retired_ns",
        "since_ns",
        "status",
        "table",
        "used",
        "users",
        "version",
    )

    def __init__(self, lease: Lease, now_ns: int = 0) -> None:
        self.id = lease
        self.since_ns = now_ns  # for people: when this agent took the version up,
        self.retired_ns = 0  # and since when its new users get a newer one
        self.table, self.version = lease
        self.users: list[None] = []
        self.used = False  # a hint: has it ever had one?
        self.named: dict[Use, None] = {}
        self.retired = False  # D4: no new users; set before the users are counted
        self.lingers = False  # had users when a newer version took its place
        self.status = LeaseStatus.WANTED

    @property
    def is_idle(self) -> bool:
        return not self.users and not self.named

    def __repr__(self) -> str:
        users = len(self.users) + len(self.named)
        return f"/{self.version}/{users} of table {self.table}, {self.status.value}"


class HeldLeases:
    """The leases of one agent. `newest` is what new users get. `valid_until_ns` is the agent's
    conservative expiry (D3); an agent with a store goes on after it, so there it is FOREVER_NS."""

    __slots__ = ("all", "idle", "newest", "now_ns", "old", "valid_until_ns")

    def __init__(self, valid_until_ns: int) -> None:
        self.newest: dict[int, HeldLease] = {}
        self.all: dict[int, dict[int, HeldLease]] = {}  # table → version → lease
        self.idle: deque[HeldLease] = deque()  # retired ones whose last user has left
        self.old: dict[Lease, HeldLease] = {}  # retired ones, in use or on their way out
        self.now_ns = 0  # of the holder's last step: for ages that people are shown, nothing else
        self.valid_until_ns = valid_until_ns

    def acquire(self, table: int, now_ns: int = 0) -> HeldLease | None:
        """Return a use of the newest version held, or None: not held, or run out at `now_ns`. Give
        it back with :meth:`release`."""
        while now_ns < self.valid_until_ns:
            lease = self.newest.get(table)
            if lease is None:
                return None
            lease.users.append(None)
            if not lease.retired:
                lease.used = True
                return lease
            self.release(lease)  # retired in between; `newest` was changed before
        return None

    def acquire_again(self, lease: HeldLease, now_ns: int = 0) -> bool:
        """Take one use more of a lease that :meth:`acquire` has given before; False: not of this
        one. What new users get is never retired, and what is retired stays so (D4)."""
        before = lease.retired
        if before or now_ns >= self.valid_until_ns:
            return False
        lease.users.append(None)
        if not lease.retired:
            return True
        self.release(lease)  # retired in between
        return False

    def release(self, lease: HeldLease) -> bool:
        """Give a use back. True: the holder has work to do (D4), step it."""
        lease.users.pop()
        if lease.retired and lease.is_idle:
            self.idle.append(lease)
            return True
        return False

    def acquire_named(self, table: int, use: Use, now_ns: int = 0) -> HeldLease | None:
        """Acquire, as :meth:`acquire` does, for a user whom blockers are to be shown by name."""
        lease = self.acquire(table, now_ns)
        if lease is not None:
            self.name_use(lease, use)
        return lease

    def name_use(self, lease: HeldLease, use: Use) -> None:
        """Give a name to an anonymous use, taken by :meth:`acquire` or for a waiter."""
        lease.named[use] = None
        lease.users.pop()

    def release_named(self, lease: HeldLease, use: Use) -> bool:
        """Release, as :meth:`release` does, a use that has a name."""
        del lease.named[use]
        if lease.retired and lease.is_idle:
            self.idle.append(lease)
            return True
        return False

    def is_valid(self, lease: HeldLease, now_ns: int) -> bool:
        """Whether a subscriber may still decode under a lease that it uses (D3)."""
        return lease.status is not LeaseStatus.GONE and now_ns < self.valid_until_ns

    def find_blockers(
        self, table: int, below_version: int, now_ns: int, limit: int
    ) -> list[BlockingUse]:
        """Return the oldest users of versions below, at most `limit`, oldest first."""
        found = [
            BlockingUse(
                table,
                version,
                bound_line(use.label, LABEL_CHARS_MAX),
                bound_line(use.sql, SQL_CHARS_MAX),
                now_ns - use.since_ns,
            )
            for version, lease in self.all.get(table, {}).items()
            if version < below_version
            for use in list(lease.named)  # one atomic copy: users come and go meanwhile
        ]
        return sorted(found, key=lambda blocking: -blocking.age_ns)[:limit]

    def named_uses(self) -> list[tuple[Use, int, int]]:
        """Return (user, table, version) of all that have names; from any thread."""
        return [
            (use, table, version)
            for table, by_version in list(self.all.items())
            for version, lease in list(by_version.items())
            for use in list(lease.named)
        ]

    # --- only from the thread that steps the holder ---

    def find(self, lease: Lease) -> HeldLease | None:
        return self.all.get(lease.table, {}).get(lease.version)

    def add(self, lease: Lease) -> HeldLease:
        by_version = self.all.setdefault(lease.table, {})
        assert lease.version not in by_version, f"D1: held twice: {lease}"
        held = by_version[lease.version] = HeldLease(lease, self.now_ns)
        return held

    def put_first(self, lease: HeldLease) -> None:
        """New users get this one from now on; the one before is retired (D4)."""
        before = self.newest.get(lease.table)
        assert before is None or before.version <= lease.version, f"D4: {before} after {lease}"
        self.newest[lease.table] = lease  # first this, so that no user meets only retired ones
        if before is not None and before is not lease:
            self.retire(before)

    def retire(self, lease: HeldLease) -> None:
        if self.newest.get(lease.table) is lease:
            del self.newest[lease.table]
        if not lease.retired:
            lease.retired_ns = self.now_ns
            self.old[lease.id] = lease
        lease.retired = True
        if lease.is_idle:
            self.idle.append(lease)

    def remove(self, lease: HeldLease) -> None:
        """Make a lease unusable; those who still use it find out by :meth:`is_valid`."""
        lease.status = LeaseStatus.GONE
        if self.newest.get(lease.table) is lease:
            del self.newest[lease.table]
        lease.retired = True
        self.old.pop(lease.id, None)
        by_version = self.all.get(lease.table, {})
        if by_version.get(lease.version) is lease:
            del by_version[lease.version]
            if not by_version:
                del self.all[lease.table]

    def each(self) -> list[HeldLease]:
        return [lease for by_version in self.all.values() for lease in by_version.values()]
