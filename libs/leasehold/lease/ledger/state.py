"""What the ledger knows, and the gates that every command passes first.

Invariants, asserted in :func:`check`:

D1  once seeded, leases are on the two newest versions of a table only.
D5  1 <= min_version <= current.
D6  ``ready`` names a run id only where ``seeded`` names it too.
D7  every lease has a session.
D10 an exclusive advisory lock has one live owner, and no other shares it.
D11 a master vouches for no call that was not made.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from leasehold.lease.commands import HOLDERS_MAX, Lease
from leasehold.lease.replies import Extension, Holding, LedgerRefused, RefusalReason

SHARED, EXCLUSIVE = 1, 2


class TableRow(NamedTuple):
    current: int
    min_version: int
    intent: int


class SessionRow(NamedTuple):
    agent: str
    counter: int
    expiring: bool


Owner: TypeAlias = tuple[int, int]
"""Of an advisory lock: a session, and a SQL session on its node."""
LockKey: TypeAlias = tuple[int, int, int]


class LockRow(NamedTuple):
    """An advisory lock: the modes that each owner holds (SHARED, EXCLUSIVE), and the mode that each
    one in the queue waits for, in their order."""

    holders: Mapping[Owner, int]
    queue: tuple[tuple[Owner, int], ...]


class LedgerState:
    """Everything the ledger knows. Rows are immutable, so that a copy is some shallow ones."""

    __slots__ = (
        "calls",
        "epoch",
        "fences",
        "leases",
        "locks",
        "locks_run",
        "ready",
        "seed_part",
        "seeded",
        "sessions",
        "tables",
        "vouched",
        "vouches",
        "waits",
    )

    def __init__(self) -> None:
        self.epoch = 0
        self.seeded = ""  # the run id under which the tables came from the log; "" = closed
        self.ready = ""  # the run id under which the agents' grace has passed; "" = closed
        self.seed_part = 0  # the part of a re-seeding that may come next; 0 = none under way
        self.tables: dict[int, TableRow] = {}
        self.sessions: dict[int, SessionRow] = {}
        self.leases: dict[int, set[Lease]] = {}  # by session
        self.vouches = 0  # the epoch whose master vouches for calls; 0 = none does
        self.calls = 0  # how many have extended a session, under masters that vouch
        self.vouched = 0  # up to which of them the master has seen
        self.fences = 0  # the epoch whose master holds writes to advisory locks
        self.locks_run = ""  # the run id under which the locks were taken
        self.locks: dict[LockKey, LockRow] = {}
        self.waits: dict[Owner, LockKey] = {}  # whose queue it is in

    def copy(self) -> "LedgerState":
        other = LedgerState()
        other.epoch, other.seeded, other.ready = self.epoch, self.seeded, self.ready
        other.seed_part = self.seed_part
        other.tables = dict(self.tables)
        other.sessions = dict(self.sessions)
        other.leases = {session: set(held) for session, held in self.leases.items()}
        other.vouches, other.calls, other.vouched = self.vouches, self.calls, self.vouched
        other.fences, other.locks_run = self.fences, self.locks_run
        other.locks, other.waits = dict(self.locks), dict(self.waits)
        return other

    def held(self, session: int) -> set[Lease]:
        return self.leases.get(session, set())

    def holders(self, table: int, below_version: int) -> list[Holding]:
        """Return all live leases on the table below a version (0: at any), in the order of
        replies."""
        found = [
            Holding(lease.table, lease.version, session, self.sessions[session].agent)
            for session, held in self.leases.items()
            for lease in held
            if lease.table == table and (below_version == 0 or lease.version < below_version)
        ]
        return sorted(found)

    def sweep(self, doomed: Callable[[Lease], bool]) -> int:
        """Take out the leases that ``doomed`` picks; return how many."""
        swept = 0
        for session, held in list(self.leases.items()):
            kept = {lease for lease in held if not doomed(lease)}
            swept += len(held) - len(kept)
            self._keep(session, kept)
        return swept

    def remove(self, session: int) -> int:
        """Take out a session with its leases; return how many it had."""
        freed = len(self.held(session))
        self.sessions.pop(session, None)
        self.put(session, ())
        return freed

    def _keep(self, session: int, held: set[Lease]) -> None:
        if held:
            self.leases[session] = held
        else:
            self.leases.pop(session, None)

    def put(self, session: int, held: Iterable[Lease]) -> None:
        self._keep(session, set(held))


def check(state: LedgerState, run_id: str) -> None:
    """Assert the invariants above; for models and tests, with every rule on."""
    assert not state.ready or state.ready == state.seeded, "D6: ready without seeded"
    assert state.vouched <= state.calls, f"D11: {state.vouched} of {state.calls} calls"
    for session, held in state.leases.items():
        assert session in state.sessions, f"D7: leases of a session that is gone: {session}"
        assert held, "D7: an empty set of leases is kept"
    for key, lock in state.locks.items():
        _check_lock(state, key, lock)
    for table, row in state.tables.items():
        assert 1 <= row.min_version <= row.current, f"D5: table {table}: {row}"
    if state.seeded != run_id:
        return
    for held in state.leases.values():
        for lease in held:
            row = state.tables[lease.table]
            assert row.current - 1 <= lease.version <= row.current, f"D1: {lease} under {row}"


def _check_lock(state: LedgerState, key: LockKey, row: LockRow) -> None:
    live = [modes for (session, _), modes in row.holders.items() if session in state.sessions]
    assert row.holders or row.queue, f"an advisory lock of nobody is kept: {key}"
    assert len(live) <= 1 or all(modes == SHARED for modes in live), f"D10: {key}: {row}"
    for owner, _ in row.queue:
        assert state.waits[owner] == key, f"{owner} is in the queue of another lock than {key}"


def refuse_closed(state: LedgerState, run_id: str) -> LedgerRefused | None:
    if state.seeded != run_id:
        return LedgerRefused(RefusalReason.CLOSED, run_id)
    return None


def refuse_epoch(state: LedgerState, epoch: int, run_id: str) -> LedgerRefused | None:
    """Return the refusal of a master whose epoch is not the registered one (D2). Equality, not "not
    lower": a higher one means that the ledger lost the registration."""
    if epoch != state.epoch:
        return LedgerRefused(RefusalReason.EPOCH, run_id, epoch=state.epoch)
    return None


def refuse_not_master(state: LedgerState, epoch: int, run_id: str) -> LedgerRefused | None:
    return refuse_epoch(state, epoch, run_id) or refuse_closed(state, run_id)


def refuse_publish(state: LedgerState, epoch: int, run_id: str) -> LedgerRefused | None:
    refused = refuse_not_master(state, epoch, run_id)
    if refused is None and not _is_ready(state, run_id):
        return LedgerRefused(RefusalReason.NOT_READY, run_id)
    return refused


def _is_ready(state: LedgerState, run_id: str) -> bool:
    """Whether the agents could re-register what they hold (D6)."""
    return state.ready == run_id


def refuse_session(state: LedgerState, session: int, run_id: str) -> LedgerRefused | None:
    shut = refuse_closed(state, run_id)
    if shut is not None:
        return shut
    row = state.sessions.get(session)
    if row is None:
        return LedgerRefused(RefusalReason.DEAD, run_id)
    if row.expiring:
        return LedgerRefused(RefusalReason.EXPIRED, run_id)
    return None


def count_extension(state: LedgerState) -> Extension:
    """Count a call that extends a session; return what its answer says of that (D11)."""
    if not state.vouches or state.vouches != state.epoch:
        return Extension(0, 0)  # this master does not vouch: a call counts at once
    state.calls += 1
    return Extension(state.calls, state.vouched)


def refuse_held(
    state: LedgerState, table: int, below_version: int, run_id: str
) -> LedgerRefused | None:
    holders = state.holders(table, below_version)
    if not holders:
        return None
    row = state.tables[table]
    return LedgerRefused(
        RefusalReason.HOLDERS,
        run_id,
        table,
        row.current,
        row.min_version,
        holders_total=len(holders),
        holders=tuple(holders[:HOLDERS_MAX]),
    )
