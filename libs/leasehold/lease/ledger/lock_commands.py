"""The ledger's answers about advisory locks (D10).

A lock lives as long as the session of its owner's node, under one run id. Whoever waits has a place
in a queue, and asks again; nobody passes those before it, but those who wait for itself.
"""

from collections.abc import Iterator

from leasehold.lease.commands import (
    LISTED_LOCKS_MAX,
    LOCK_USERS_MAX,
    LOCKS_MAX,
    WAITS_FOLLOWED_MAX,
    ClaimLocks,
    GiveLock,
    GiveLocks,
    ListLocks,
    TakeLock,
)
from leasehold.lease.ledger.state import (
    EXCLUSIVE,
    SHARED,
    LedgerState,
    LockKey,
    LockRow,
    Owner,
    refuse_closed,
    refuse_session,
)
from leasehold.lease.replies import (
    LedgerRefused,
    LockGiven,
    LockList,
    LocksClaimed,
    LockTaken,
    LockUse,
    LockWaits,
    RefusalReason,
    Reply,
)

NO_ROW = LockRow({}, ())


def _refuse_locks(state: LedgerState, session: int, run_id: str) -> LedgerRefused | None:
    """Return why a session gets no locks now, None where it may get some."""
    gone = refuse_session(state, session, run_id)
    if gone is not None:
        return gone
    if state.ready != run_id:  # one of before may still be used
        return LedgerRefused(RefusalReason.NOT_READY, run_id)
    if state.fences != state.epoch:
        return LedgerRefused(RefusalReason.UNFENCED, run_id)
    return None


def claim_locks(state: LedgerState, command: ClaimLocks, run_id: str) -> Reply:
    refused = _refuse_locks(state, command.session, run_id)
    if refused is not None:
        return refused
    _begin_run(state, run_id)
    mode = _mode_of(command.exclusive)
    me: Owner = (command.session, command.owner)
    held: list[int] = []
    full = False
    for place, key in enumerate(command.names):
        if len(held) >= command.wanted:
            break
        row = _live_row(state, key)
        had = row.holders.get(me, 0)
        if not had & mode:
            others = _before(row, me, len(row.queue))
            waits = state.waits.get(me) == key  # it has a place in the queue, and keeps that
            if waits or any(_conflict(mode, other) for _, other in others):
                _put(state, key, row)
                continue
            if not had and _is_full(state, key, row):
                full = True
                break
            _put(state, key, row._replace(holders={**row.holders, me: had | mode}))
        held.append(place)
    return LocksClaimed(run_id, state.epoch, full, tuple(held))


def give_locks(state: LedgerState, command: GiveLocks, run_id: str) -> Reply:
    given = False
    for name in command.names:
        one = GiveLock(command.session, command.owner, *name, command.exclusive)
        reply = give_lock(state, one, run_id)
        if not isinstance(reply, LockGiven):
            return reply
        given |= reply.was_held
    return LockGiven(run_id, given)


def take_lock(state: LedgerState, command: TakeLock, run_id: str) -> Reply:
    refused = _refuse_locks(state, command.session, run_id)
    if refused is not None:
        return refused
    _begin_run(state, run_id)
    key, mode = _key_of(command), _mode_of(command.exclusive)
    me: Owner = (command.session, command.owner)
    if state.waits.get(me, key) != key:
        _leave_queue(state, me)
    row = _live_row(state, key)
    had = row.holders.get(me, 0)
    if had & mode:
        return LockTaken(run_id, state.epoch)
    place = _place(row, me, mode, had)
    if not any(_conflict(mode, other) for _, other in _before(row, me, place)):
        return _grant(state, key, row, me, mode, run_id)
    if not command.waits:
        _put(state, key, row)
        return LedgerRefused(RefusalReason.LOCKED, run_id)
    if (me, mode) not in row.queue:
        if _is_full(state, key, row):
            return LedgerRefused(RefusalReason.LIMIT, run_id)
        queue = [each for each in row.queue if each[0] != me]
        queue.insert(place, (me, mode))
        row = row._replace(queue=tuple(queue))
    _put(state, key, row)
    state.waits[me] = key
    if _is_deadlock(state, me):
        _leave_queue(state, me)
        return LedgerRefused(RefusalReason.DEADLOCK, run_id)
    return LockWaits(run_id)


def _grant(
    state: LedgerState, key: LockKey, row: LockRow, me: Owner, mode: int, run_id: str
) -> Reply:
    if me not in row.holders and _is_full(state, key, row):
        return LedgerRefused(RefusalReason.LIMIT, run_id)
    holders = {**row.holders, me: row.holders.get(me, 0) | mode}
    queue = tuple(each for each in row.queue if each[0] != me)
    state.waits.pop(me, None)
    _put(state, key, LockRow(holders, queue))
    return LockTaken(run_id, state.epoch)


def give_lock(state: LedgerState, command: GiveLock, run_id: str) -> Reply:
    shut = refuse_closed(state, run_id)
    if shut is not None:
        return shut
    _begin_run(state, run_id)
    key, mode = _key_of(command), _mode_of(command.exclusive)
    me: Owner = (command.session, command.owner)
    if state.waits.get(me) == key:
        _leave_queue(state, me)
    row = _live_row(state, key)
    had = row.holders.get(me, 0)
    holders = {owner: modes for owner, modes in row.holders.items() if owner != me}
    if had & ~mode:
        holders[me] = had & ~mode
    _put(state, key, row._replace(holders=holders))
    return LockGiven(run_id, bool(had & mode))


def list_locks(state: LedgerState, command: ListLocks, run_id: str) -> Reply:
    uses: list[LockUse] = []
    if state.locks_run == run_id:
        for key in state.locks:
            row = _live_row(state, key)
            for owner, modes in row.holders.items():
                uses += [
                    _use(state, key, owner, mode, granted=True)
                    for mode in (SHARED, EXCLUSIVE)
                    if modes & mode
                ]
            uses += [_use(state, key, owner, mode, granted=False) for owner, mode in row.queue]
    uses.sort(key=lambda use: (use[:4], use.owner, use.granted, use.exclusive))
    return LockList(run_id, tuple(uses[: min(command.names_max, LISTED_LOCKS_MAX)]))


def _use(state: LedgerState, key: LockKey, owner: Owner, mode: int, *, granted: bool) -> LockUse:
    session, number = owner
    agent = state.sessions[session].agent
    return LockUse(*key, session, agent, number, mode == EXCLUSIVE, granted)


def _key_of(command: TakeLock | GiveLock) -> LockKey:
    return (command.space, command.high, command.low)


def _mode_of(exclusive: bool) -> int:
    return EXCLUSIVE if exclusive else SHARED


def _conflict(one: int, other: int) -> bool:
    return bool((one | other) & EXCLUSIVE)


def _begin_run(state: LedgerState, run_id: str) -> None:
    """Forget the locks of another run id: the newest of them may be lost."""
    if state.locks_run != run_id:
        state.locks_run, state.locks, state.waits = run_id, {}, {}


def _live_row(state: LedgerState, key: LockKey) -> LockRow:
    """Return a lock without those whose session is gone."""
    row = state.locks.get(key, NO_ROW)
    sessions = state.sessions
    return LockRow(
        {owner: modes for owner, modes in row.holders.items() if owner[0] in sessions},
        tuple(each for each in row.queue if each[0][0] in sessions),
    )


def _put(state: LedgerState, key: LockKey, row: LockRow) -> None:
    for owner, _ in state.locks.get(key, NO_ROW).queue:
        if owner[0] not in state.sessions:
            state.waits.pop(owner, None)
    if row.holders or row.queue:
        state.locks[key] = row
    else:
        state.locks.pop(key, None)


def _leave_queue(state: LedgerState, me: Owner) -> None:
    key = state.waits.pop(me)
    row = _live_row(state, key)
    queue = tuple(each for each in row.queue if each[0] != me)
    _put(state, key, row._replace(queue=queue))


def _place(row: LockRow, me: Owner, mode: int, had: int) -> int:
    """Return the place in the queue: the one that it has, or the last; but who holds the lock comes
    before those that wait for it, who could never go on before it does."""
    if (me, mode) in row.queue:
        return row.queue.index((me, mode))
    for place, (_, wanted) in enumerate(row.queue):
        if had and _conflict(had, wanted):
            return place
    return len(row.queue)


def _before(row: LockRow, me: Owner, place: int) -> Iterator[tuple[Owner, int]]:
    """Yield who goes before `me`: other holders, and those in the queue."""
    for owner, modes in row.holders.items():
        if owner != me:
            yield owner, modes
    for owner, mode in row.queue[:place]:
        if owner != me:
            yield owner, mode


def _is_full(state: LedgerState, key: LockKey, row: LockRow) -> bool:
    if len(row.holders) + len(row.queue) >= LOCK_USERS_MAX:
        return True
    if key not in state.locks and len(state.locks) >= LOCKS_MAX:
        for each in list(state.locks):
            _put(state, each, _live_row(state, each))
        return len(state.locks) >= LOCKS_MAX
    return False


def _is_deadlock(state: LedgerState, me: Owner) -> bool:
    """Whether those that `me` waits for wait for it, maybe by others."""
    seen = {me}
    left = [me]
    while left and len(seen) <= WAITS_FOLLOWED_MAX:
        waiter = left.pop()
        key = state.waits.get(waiter)
        if key is None:
            continue
        row = _live_row(state, key)
        place, mode = next((n, m) for n, (owner, m) in enumerate(row.queue) if owner == waiter)
        for owner, other in _before(row, waiter, place):
            if _conflict(mode, other):
                if owner == me:
                    return True
                if owner not in seen:
                    seen.add(owner)
                    left.append(owner)
    return False
