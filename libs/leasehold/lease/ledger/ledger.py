"""The cluster's side of the descriptor leases: which session holds which version.

``apply(state, command, run_id)`` changes the state and answers. It is the specification that
``adapters/redis/ledger.lua`` follows check by check, in the same order. The ledger reads no
clock and no randomness: when a session is dead is the master's to say (``session_watch.py``).
"""

from collections.abc import Callable
from typing import Any

from leasehold.lease.commands import (
    HOLDERS_MAX,
    Acquire,
    ClaimLocks,
    Command,
    DropTable,
    EndSession,
    ExpireAgent,
    GiveLock,
    GiveLocks,
    Holders,
    KillSession,
    ListLocks,
    Liveness,
    MarkReady,
    Newest,
    OpenSession,
    Publish,
    Register,
    RegisterEpoch,
    Release,
    Renew,
    SeedTables,
    SetMinVersion,
    Snapshot,
    TakeLock,
    Vouch,
)
from leasehold.lease.ledger import agent_commands, lock_commands, master_commands
from leasehold.lease.ledger.state import LedgerState, check
from leasehold.lease.replies import (
    HolderList,
    LivenessReport,
    NewestVersions,
    Reply,
    SessionStatus,
    SnapshotReport,
    TableStatus,
)

__all__ = ["LedgerState", "apply", "check"]


def apply(state: LedgerState, command: Command, run_id: str) -> Reply:
    """Do one command on the ledger whose incarnation is ``run_id``; what Redis does atomically."""
    assert run_id, "D6: a ledger always has a run id"
    return _COMMANDS[type(command)](state, command, run_id)


def _holders(state: LedgerState, command: Holders, run_id: str) -> Reply:
    holders = state.holders(command.table, command.below_version)
    ready = state.ready == run_id
    return HolderList(
        run_id, ready, len(holders), tuple(holders[: min(command.names_max, HOLDERS_MAX)])
    )


def _sessions(state: LedgerState) -> tuple[SessionStatus, ...]:
    return tuple(
        SessionStatus(session, row.agent, row.counter, len(state.held(session)), row.expiring)
        for session, row in sorted(state.sessions.items())
    )


def _liveness(state: LedgerState, command: Liveness, run_id: str) -> Reply:
    seeded, ready = state.seeded == run_id, state.ready == run_id
    return LivenessReport(run_id, state.epoch, seeded, ready, _sessions(state), state.calls)


def _newest(state: LedgerState, command: Newest, run_id: str) -> Reply:
    return NewestVersions(
        run_id, tuple((t, row.current) for t, row in sorted(state.tables.items()))
    )


def _snapshot(state: LedgerState, command: Snapshot, run_id: str) -> Reply:
    counts: dict[int, dict[int, int]] = {}
    for held in state.leases.values():
        for table, version in held:
            by_version = counts.setdefault(table, {})
            by_version[version] = by_version.get(version, 0) + 1
    tables = tuple(
        TableStatus(
            table,
            row.current,
            row.min_version,
            row.intent,
            tuple(sorted(counts.get(table, {}).items())),
        )
        for table, row in sorted(state.tables.items())
    )
    seeded, ready = state.seeded == run_id, state.ready == run_id
    return SnapshotReport(run_id, state.epoch, seeded, ready, _sessions(state), tables)


_COMMANDS: dict[type, Callable[[LedgerState, Any, str], Reply]] = {
    OpenSession: agent_commands.open_session,
    Renew: agent_commands.renew,
    Register: agent_commands.register,
    Acquire: agent_commands.acquire,
    Release: agent_commands.release,
    EndSession: agent_commands.end_session,
    RegisterEpoch: master_commands.register_epoch,
    Vouch: master_commands.vouch,
    Publish: master_commands.publish,
    SetMinVersion: master_commands.set_min_version,
    SeedTables: master_commands.seed_tables,
    MarkReady: master_commands.mark_ready,
    KillSession: master_commands.kill_session,
    ExpireAgent: master_commands.expire_agent,
    DropTable: master_commands.drop_table,
    TakeLock: lock_commands.take_lock,
    GiveLock: lock_commands.give_lock,
    ClaimLocks: lock_commands.claim_locks,
    GiveLocks: lock_commands.give_locks,
    ListLocks: lock_commands.list_locks,
    Holders: _holders,
    Liveness: _liveness,
    Newest: _newest,
    Snapshot: _snapshot,
}
