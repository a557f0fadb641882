"""The ledger's answers to agents: sessions, leases, re-registration (D1, D6, D7)."""

from leasehold.lease.commands import (
    LEASES_PER_SESSION_MAX,
    SESSION_ID_MAX,
    SESSIONS_MAX,
    Acquire,
    EndSession,
    Lease,
    OpenSession,
    Register,
    Release,
    Renew,
)
from leasehold.lease.ledger.state import (
    LedgerState,
    SessionRow,
    TableRow,
    count_extension,
    refuse_closed,
    refuse_session,
)
from leasehold.lease.replies import (
    Ended,
    Granted,
    LedgerRefused,
    Opened,
    RefusalReason,
    Registered,
    Released,
    Renewed,
    Reply,
)


def open_session(state: LedgerState, command: OpenSession, run_id: str) -> Reply:
    assert 1 <= command.session <= SESSION_ID_MAX, f"session id {command.session}"
    shut = refuse_closed(state, run_id)
    if shut is not None:
        return shut
    row = state.sessions.get(command.session)
    if row is not None:
        fresh = row == SessionRow(command.agent, 0, False) and not state.held(command.session)
        if not fresh:
            return LedgerRefused(RefusalReason.TAKEN, run_id)
        return Opened(run_id, command.session, *count_extension(state))
    if len(state.sessions) >= SESSIONS_MAX:
        return LedgerRefused(RefusalReason.LIMIT, run_id)
    state.sessions[command.session] = SessionRow(command.agent, 0, False)
    return Opened(run_id, command.session, *count_extension(state))


def renew(state: LedgerState, command: Renew, run_id: str) -> Reply:
    gone = refuse_session(state, command.session, run_id)
    if gone is not None:
        return gone
    row = state.sessions[command.session]
    # Strictly rising: were a repeat under the same counter answered, its sender would count its
    # lease from the repeat while the master's watch counts from the first one.
    if command.counter <= row.counter:
        return LedgerRefused(RefusalReason.REGISTER, run_id)
    if not _is_as_its_sender_knows(state, command):
        return LedgerRefused(RefusalReason.REGISTER, run_id)
    state.sessions[command.session] = row._replace(counter=command.counter)
    return Renewed(run_id, command.counter, *count_extension(state))


def _is_as_its_sender_knows(state: LedgerState, command: Renew) -> bool:
    """Whether the ledger has lost none of the sender's leases, and no call that was answered
    (D6)."""
    held = len(state.held(command.session))
    return (command.held, command.confirmed) == (held, state.sessions[command.session].counter)


def register(state: LedgerState, command: Register, run_id: str) -> Reply:
    assert 1 <= command.session <= SESSION_ID_MAX, f"session id {command.session}"
    row = state.sessions.get(command.session)
    if row is not None and row.agent != command.agent:
        return LedgerRefused(RefusalReason.TAKEN, run_id)
    if row is not None and row.expiring:
        return LedgerRefused(RefusalReason.EXPIRED, run_id)
    if row is not None and command.counter <= row.counter:
        return LedgerRefused(RefusalReason.REGISTER, run_id)
    if row is None and len(state.sessions) >= SESSIONS_MAX:
        return LedgerRefused(RefusalReason.LIMIT, run_id)
    if len(command.leases) > LEASES_PER_SESSION_MAX:
        return LedgerRefused(RefusalReason.LIMIT, run_id)
    seeded = state.seeded == run_id
    refused = tuple(lease for lease in command.leases if not _may_register(state, lease, seeded))
    state.sessions[command.session] = SessionRow(command.agent, command.counter, False)
    state.put(command.session, set(command.leases) - set(refused))
    return Registered(run_id, seeded, refused, *count_extension(state))


def _may_register(state: LedgerState, lease: Lease, seeded: bool) -> bool:
    """Whether a lease may be held again (D6). Before the re-seeding `current` may be stale or
    unknown: the sweep judges again."""
    row = state.tables.get(lease.table)
    if row is None:
        return not seeded
    if seeded and lease.version > row.current:
        return False
    return _is_of_the_two_newest(row, lease.version)


def _is_of_the_two_newest(row: TableRow, version: int) -> bool:
    return version >= row.current - 1


def acquire(state: LedgerState, command: Acquire, run_id: str) -> Reply:
    gone = refuse_session(state, command.session, run_id)
    if gone is not None:
        return gone
    if _is_late(state, command):
        return LedgerRefused(RefusalReason.REGISTER, run_id)
    row = state.tables.get(command.table)
    if row is None:
        return LedgerRefused(RefusalReason.UNKNOWN_TABLE, run_id, command.table)
    if command.version > row.current:
        return LedgerRefused(
            RefusalReason.FUTURE, run_id, command.table, row.current, row.min_version
        )
    if command.version < _oldest(row):
        return LedgerRefused(
            RefusalReason.TOO_OLD, run_id, command.table, row.current, row.min_version
        )
    held = state.held(command.session)
    lease = Lease(command.table, command.version)
    if lease not in held and len(held) >= LEASES_PER_SESSION_MAX:
        return LedgerRefused(RefusalReason.LIMIT, run_id)
    state.put(command.session, held | {lease})
    return Granted(run_id, command.table, command.version, row.current)


def _oldest(row: TableRow) -> int:
    """Return the oldest version of which a lease is granted (D1)."""
    return max(row.current - 1, row.min_version)


def release(state: LedgerState, command: Release, run_id: str) -> Reply:
    shut = refuse_closed(state, run_id)
    if shut is not None:
        return shut
    if command.session not in state.sessions:
        return LedgerRefused(RefusalReason.DEAD, run_id)
    if _is_late(state, command):
        return LedgerRefused(RefusalReason.REGISTER, run_id)
    held = state.held(command.session)
    lease = Lease(command.table, command.version)
    state.put(command.session, held - {lease})
    return Released(run_id, lease in held)


def end_session(state: LedgerState, command: EndSession, run_id: str) -> Reply:
    return Ended(run_id, state.remove(command.session))


def _is_late(state: LedgerState, command: Acquire | Release) -> bool:
    """Whether the sender has given the call up and registered since what it holds (D6); a late
    release would take a lease from under its users."""
    return command.counter < state.sessions[command.session].counter
