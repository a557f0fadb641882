"""The ledger's answers to the master: publishing, re-seeding, deaths (D2, D5, D6, D7, D9)."""

from leasehold.lease.commands import (
    HOLDERS_MAX,
    TABLES_PER_CALL_MAX,
    Change,
    DropTable,
    ExpireAgent,
    KillSession,
    Lease,
    MarkReady,
    Publish,
    RegisterEpoch,
    SeedTables,
    SetMinVersion,
    Vouch,
)
from leasehold.lease.ledger.state import (
    LedgerState,
    SessionRow,
    TableRow,
    refuse_epoch,
    refuse_held,
    refuse_not_master,
    refuse_publish,
)
from leasehold.lease.replies import (
    Dropped,
    EpochRegistered,
    Expired,
    Killed,
    LedgerRefused,
    MinVersionSet,
    Published,
    Ready,
    RefusalReason,
    Reply,
    Seeded,
    Vouched,
)


def register_epoch(state: LedgerState, command: RegisterEpoch, run_id: str) -> Reply:
    assert command.epoch >= 1, f"epoch {command.epoch}"
    if _is_deposed(state, command.epoch):
        return LedgerRefused(RefusalReason.EPOCH, run_id, epoch=state.epoch)
    state.epoch = state.fences = command.epoch
    state.vouches = command.epoch if command.vouches else 0
    return EpochRegistered(run_id, state.seeded == run_id, state.ready == run_id)


def _is_deposed(state: LedgerState, epoch: int) -> bool:
    """Whether a higher epoch is registered (D2)."""
    return epoch < state.epoch


def vouch(state: LedgerState, command: Vouch, run_id: str) -> Reply:
    refused = refuse_not_master(state, command.epoch, run_id)
    if refused is not None:
        return refused
    if command.run_id != run_id:
        return LedgerRefused(RefusalReason.RUN_ID, run_id)
    if command.call <= state.calls:  # else the ledger has lost calls since they were seen
        state.vouched = max(state.vouched, command.call)
    return Vouched(run_id, state.vouched)


def publish(state: LedgerState, command: Publish, run_id: str) -> Reply:
    assert 1 <= len(command.changes) <= TABLES_PER_CALL_MAX, "a publish names its tables"
    assert len({change.table for change in command.changes}) == len(command.changes)
    refused = refuse_publish(state, command.epoch, run_id)
    if refused is not None:
        return refused
    if all(_is_published(state, change, command.intent) for change in command.changes):
        return Published(run_id, True)
    for table, from_version, to_version in command.changes:
        row = state.tables.get(table, TableRow(0, 0, 0))
        if from_version != row.current or not _follows(from_version, to_version):
            return LedgerRefused(RefusalReason.VERSION, run_id, table, row.current, row.min_version)
        if not _is_fenced(row):
            return LedgerRefused(
                RefusalReason.NOT_FENCED, run_id, table, row.current, row.min_version
            )
        holding = from_version and refuse_held(state, table, from_version, run_id)
        if holding:
            return holding
    for table, from_version, to_version in command.changes:
        min_version = state.tables[table].min_version if from_version else to_version
        state.tables[table] = TableRow(to_version, min_version, command.intent)
    return Published(run_id, False)


def _follows(from_version: int, to_version: int) -> bool:
    return to_version == from_version + 1 or (from_version == 0 and to_version > 0)


def _is_fenced(row: TableRow) -> bool:
    """Whether nobody writes under the version before the newest any more (D5)."""
    return row.min_version == row.current


def _is_published(state: LedgerState, change: Change, intent: int) -> bool:
    row = state.tables.get(change.table)
    if row is None or not _follows(change.from_version, change.to_version):
        return False
    return row.current == change.to_version and row.intent == intent


def set_min_version(state: LedgerState, command: SetMinVersion, run_id: str) -> Reply:
    refused = refuse_publish(state, command.epoch, run_id)
    if refused is not None:
        return refused
    row = state.tables.get(command.table)
    if row is None:
        return LedgerRefused(RefusalReason.UNKNOWN_TABLE, run_id, command.table)
    if command.version > row.current:
        return LedgerRefused(
            RefusalReason.FUTURE, run_id, command.table, row.current, row.min_version
        )
    min_version = max(row.min_version, command.version)
    state.tables[command.table] = row._replace(min_version=min_version)
    holders = state.holders(command.table, min_version)
    return MinVersionSet(run_id, min_version, len(holders), tuple(holders[:HOLDERS_MAX]))


def seed_tables(state: LedgerState, command: SeedTables, run_id: str) -> Reply:
    assert len(command.tables) <= TABLES_PER_CALL_MAX, "a re-seeding goes in parts"
    outdated = refuse_epoch(state, command.epoch, run_id)
    if outdated is not None:
        return outdated
    if command.run_id != run_id:
        return LedgerRefused(RefusalReason.RUN_ID, run_id)
    # A loss between two parts leaves a hole: then the part expected is not the one that comes.
    if command.part not in (0, state.seed_part):
        return LedgerRefused(RefusalReason.PART, run_id)
    if command.part == 0:
        state.seeded = state.ready = ""
        state.tables = {}
    for table, current, min_version in command.tables:
        assert 1 <= min_version <= current, f"D5: table {table}: {min_version} > {current}"
        state.tables[table] = TableRow(current, min_version, 0)
    if not command.final:
        state.seed_part = command.part + 1
        return Seeded(run_id, False, 0)
    state.seed_part = 0
    state.seeded = run_id
    swept = state.sweep(lambda lease: _unseeded(state, lease))
    return Seeded(run_id, True, swept)


def _unseeded(state: LedgerState, lease: Lease) -> bool:
    row = state.tables.get(lease.table)
    return row is None or not row.current - 1 <= lease.version <= row.current


def mark_ready(state: LedgerState, command: MarkReady, run_id: str) -> Reply:
    outdated = refuse_epoch(state, command.epoch, run_id)
    if outdated is not None:
        return outdated
    if command.run_id != run_id:
        return LedgerRefused(RefusalReason.RUN_ID, run_id)
    if state.seeded != run_id:
        return LedgerRefused(RefusalReason.CLOSED, run_id)
    state.ready = run_id
    return Ready(run_id)


def kill_session(state: LedgerState, command: KillSession, run_id: str) -> Reply:
    refused = refuse_not_master(state, command.epoch, run_id)
    if refused is not None:
        return refused
    row = state.sessions.get(command.session)
    if row is None:
        return Killed(run_id, 0)
    if _has_renewed(row, command):
        return LedgerRefused(RefusalReason.COUNTER_MOVED, run_id, counter=row.counter)
    return Killed(run_id, state.remove(command.session))


def _has_renewed(row: SessionRow, command: KillSession) -> bool:
    """Whether the session has renewed since the master has looked (D7)."""
    return row.counter != command.counter


def expire_agent(state: LedgerState, command: ExpireAgent, run_id: str) -> Reply:
    refused = refuse_not_master(state, command.epoch, run_id)
    if refused is not None:
        return refused
    found = sorted(s for s, row in state.sessions.items() if row.agent == command.agent)
    for session in found:
        state.sessions[session] = state.sessions[session]._replace(expiring=True)
    return Expired(run_id, tuple(found))


def drop_table(state: LedgerState, command: DropTable, run_id: str) -> Reply:
    refused = refuse_publish(state, command.epoch, run_id)
    if refused is not None:
        return refused
    row = state.tables.get(command.table)
    if row is None:
        return Dropped(run_id, 0)
    holding = refuse_held(state, command.table, row.current, run_id)
    if holding is not None:
        return holding
    del state.tables[command.table]
    return Dropped(run_id, state.sweep(lambda lease: lease.table == command.table))
