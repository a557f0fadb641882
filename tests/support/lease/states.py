"""Keys of what keeps leases, for models: hashable, and equal exactly for equal states."""

from __future__ import annotations

from leasehold.lease.agent.held_leases import HeldLeases
from leasehold.lease.agent.holder import Holder
from leasehold.lease.agent.session import AgentSession
from leasehold.lease.ledger.state import LedgerState
from leasehold.lease.master.ledger_watch import LedgerWatch
from leasehold.lease.master.session_watch import SessionWatch

Key = tuple[object, ...]


def key_of_ledger(state: LedgerState) -> Key:
    return (
        state.epoch,
        state.seeded,
        state.ready,
        state.seed_part,
        (state.vouches, state.calls, state.vouched),
        tuple(sorted(state.tables.items())),
        tuple(sorted(state.sessions.items())),
        tuple((session, tuple(sorted(held))) for session, held in sorted(state.leases.items())),
    )


def key_of_holder(holder: Holder) -> Key:
    """`session_ids` aside."""
    return (
        _key_of_session(holder.session),
        _key_of_leases(holder.leases),
        tuple(sorted(holder._known.items())),
        tuple(sorted(holder._followed)),
        tuple(holder._wanted),
        tuple(holder._missing),
        holder._missing_ns,
        tuple(holder._resting.items()),
        tuple(holder._leaving),
        tuple((wanted, tuple(tokens)) for wanted, tokens in holder._waiters._tokens.items()),
        holder._in_flight,
        holder._draining,
    )


def _key_of_session(session: AgentSession) -> Key:
    return (
        session.id,
        session.is_open,
        session.must_register,
        session.expires_ns,
        session.renew_ns,
        session.retry_ns,
        session._run_id,
        session._counter,
        session._confirmed,
        session._sent_ns,
        (tuple(session._unvouched), session._vouched),
    )


def _key_of_leases(leases: HeldLeases) -> Key:
    held = sorted(
        (
            lease.id,
            lease.retired,
            lease.lingers,
            lease.used,
            lease.status.name,
            len(lease.users),
            len(lease.named),
        )
        for lease in leases.each()
    )
    newest = sorted(lease.id for lease in leases.newest.values())
    return (tuple(held), tuple(newest), leases.valid_until_ns)


def key_of_watch(watch: LedgerWatch) -> Key:
    times = (watch._until_ns, watch._tables)
    return (watch._epoch, watch._recorded, watch._run_id, times, watch.phase.name)


def key_of_sessions(watch: SessionWatch) -> Key:
    """Of one mastership."""
    return (watch._epoch, watch._run_id, tuple(sorted(watch._seen.items())))
