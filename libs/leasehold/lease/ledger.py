"""The cluster's side of the descriptor leases: which session holds which version.

``apply(state, command, run_id)`` changes the state and answers. It is the specification that
``adapters/redis_ledger.lua`` follows check by check, in the same order. The ledger reads no
clock and no randomness: when a session is dead is the master's to say (``session_watch.py``).
"""

from collections.abc import Callable
from typing import Any

from leasehold.lease import agent_side, master_side
from leasehold.lease.commands import (
    HOLDERS_MAX,
    Acquire,
    Command,
    DropTable,
    ExpireAgent,
    Holders,
    KillSession,
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
)
from leasehold.lease.ledger_state import LedgerState, check
from leasehold.lease.replies import (
    HolderList,
    LivenessReport,
    NewestVersions,
    Reply,
    SessionStatus,
    SnapshotReport,
    TableStatus,
)
from leasehold.lease.rules import EVERY_RULE, Rules

__all__ = ["LedgerState", "apply", "check"]


def apply(state: LedgerState, command: Command, run_id: str, rules: Rules = EVERY_RULE) -> Reply:
    """Do one command on the ledger whose incarnation is ``run_id``; what Redis does atomically."""
    assert run_id, "D6: a ledger always has a run id"
    return _COMMANDS[type(command)](state, command, run_id, rules)


def _holders(state: LedgerState, command: Holders, run_id: str, rules: Rules) -> Reply:
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


def _liveness(state: LedgerState, command: Liveness, run_id: str, rules: Rules) -> Reply:
    seeded, ready = state.seeded == run_id, state.ready == run_id
    return LivenessReport(run_id, state.epoch, seeded, ready, _sessions(state))


def _newest(state: LedgerState, command: Newest, run_id: str, rules: Rules) -> Reply:
    return NewestVersions(
        run_id, tuple((t, row.current) for t, row in sorted(state.tables.items()))
    )


def _snapshot(state: LedgerState, command: Snapshot, run_id: str, rules: Rules) -> Reply:
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


_COMMANDS: dict[type, Callable[[LedgerState, Any, str, Rules], Reply]] = {
    OpenSession: agent_side.open_session,
    Renew: agent_side.renew,
    Register: agent_side.register,
    Acquire: agent_side.acquire,
    Release: agent_side.release,
    RegisterEpoch: master_side.register_epoch,
    Publish: master_side.publish,
    SetMinVersion: master_side.set_min_version,
    SeedTables: master_side.seed_tables,
    MarkReady: master_side.mark_ready,
    KillSession: master_side.kill_session,
    ExpireAgent: master_side.expire_agent,
    DropTable: master_side.drop_table,
    Holders: _holders,
    Liveness: _liveness,
    Newest: _newest,
    Snapshot: _snapshot,
}
