"""Each ⚠ rule of the descriptor leases, and what breaks it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

from leasehold.in_process import ledger
from leasehold.lease.agent.held_leases import HeldLease
from leasehold.lease.agent.holder import Holder
from leasehold.lease.agent.session import AT_ONCE, AgentSession
from leasehold.lease.ledger import agent_commands, master_commands, state
from leasehold.lease.master.ledger_watch import Effect, LedgerWatch, Phase, RecordRun
from leasehold.lease.master.session_watch import SessionWatch
from leasehold.lease.replies import LivenessReport
from tests.models.mutants.breaking import Breaks, names_off

BREAKS: Final = Breaks()


@dataclass(frozen=True, slots=True)
class Rules:
    """The comment names the invariant that a rule carries, and what breaks without."""

    # --- the ledger (ledger.py); its other side (adapters/redis/ledger.lua) can't be broken ---
    seeded_gate: bool = True  # D6: a ledger not seeded under this run id grants old versions
    ready_gate: bool = True  # D6: publishes before the agents could re-register what they hold
    epoch_fence: bool = True  # D2: a deposed master publishes, kills, seeds
    publish_checks_holders: bool = True  # D2: three versions live at once
    publish_needs_fence: bool = True  # D5: v+2 is published although v+1 was never fenced
    publish_is_idempotent: bool = True  # D2: a repeated publish is refused and the job is stuck
    acquire_two_newest: bool = True  # D1: a lease on v-2 is granted
    register_two_newest: bool = True  # D6: a re-registered lease on v-2 is taken
    reseed_sweeps: bool = True  # D6: what was registered under a stale `current` stays
    death_is_compare_and_set: bool = True  # D7: a session is killed that has just renewed
    late_calls_refused: bool = True  # D6: a release given up long ago takes a lease that is used
    renew_checks_held: bool = True  # D6: an agent goes on with leases that the ledger lost
    # --- the master's view (session_watch.py, ledger_watch.py) ---
    death_by_own_clock: bool = True  # D7: a master that has just come kills at first sight
    grace_waits: bool = True  # D6: ready at once, agents have not re-registered
    vouch_when_recorded: bool = True  # D11: vouched for in a ledger that the next one ignores
    grace_in_log: bool = True  # D6: the next master finds the run id on record, skips the wait
    # --- the agent (holder.py) ---
    reregister_before_extend: bool = True  # D6: a renewal by another run id extends leases lost
    expiry_from_send_time: bool = True  # D3: the reply's time: valid after the master's TTL
    extend_when_vouched: bool = True  # D11: a Redis that is master no more extends its leases
    acquire_when_vouched: bool = True  # D11: a lease that no master knows is used by another's word
    release_at_zero_only: bool = True  # D4: a lease is released under a running transaction
    move_at_once: bool = True  # D4: new users are still put on the old version


EVERY_RULE: Final = Rules()


@contextmanager
def broken(rules: Rules) -> Iterator[None]:
    """The ledger in this process asserts its invariants where no rule is broken."""
    names = names_off(rules)
    if not names:
        yield
        return
    with BREAKS.broken(names), patch.object(ledger, "check", lambda *_: None):
        yield


def _always(*_: Any) -> bool:
    return True


def _never(*_: Any) -> bool:
    return False


def _nothing(*_: Any) -> None:
    pass


# -------------------------------------------------------------- the ledger

for _owner in (state, agent_commands):
    BREAKS("seeded_gate", _owner, "refuse_closed")(_nothing)
for _owner in (state, master_commands):
    BREAKS("epoch_fence", _owner, "refuse_epoch")(_nothing)
BREAKS("epoch_fence", master_commands, "_is_deposed")(_never)
BREAKS("ready_gate", state, "_is_ready")(_always)
BREAKS("publish_checks_holders", master_commands, "refuse_held")(_nothing)
BREAKS("publish_needs_fence", master_commands, "_is_fenced")(_always)
BREAKS("publish_is_idempotent", master_commands, "_is_published")(_never)
BREAKS("register_two_newest", agent_commands, "_is_of_the_two_newest")(_always)
BREAKS("reseed_sweeps", master_commands, "_unseeded")(_never)
BREAKS("death_is_compare_and_set", master_commands, "_has_renewed")(_never)
BREAKS("late_calls_refused", agent_commands, "_is_late")(_never)
BREAKS("renew_checks_held", agent_commands, "_is_as_its_sender_knows")(_always)


@BREAKS("acquire_two_newest", agent_commands, "_oldest")
def _grant_any_version(_kept: Any, _row: Any) -> int:
    return 0


# -------------------------------------------------------------- the master


@BREAKS("death_by_own_clock", SessionWatch, "_first_seen_ns")
def _see_it_since_ever(_kept: Any, _watch: SessionWatch, _received_ns: int) -> int:
    return 0


@BREAKS("grace_waits", LedgerWatch, "_grace_ns")
def _wait_for_nobody(_kept: Any, _watch: LedgerWatch) -> int:
    return 0


BREAKS("vouch_when_recorded", LedgerWatch, "may_vouch")(_always)


@BREAKS("grace_in_log", LedgerWatch, "_looked")
def _skip_the_wait(kept: Any, watch: LedgerWatch, report: LivenessReport) -> list[Effect]:
    if report.epoch == watch._epoch and report.run_id == watch._recorded and report.seeded:
        return watch._mark(report.run_id)
    effects: list[Effect] = kept(watch, report)
    return effects


@BREAKS("grace_in_log", LedgerWatch, "_grace")
def _record_before_the_wait(_kept: Any, watch: LedgerWatch, now_ns: int) -> list[Effect]:
    watch.phase = Phase.WAITING
    watch._until_ns = now_ns + watch._grace_ns()
    return [RecordRun(watch._run_id)]


# -------------------------------------------------------------- the agent


@BREAKS("reregister_before_extend", AgentSession, "renewed_by")
def _extend_by_any_answer(
    _kept: Any, session: AgentSession, _run_id: str, now_ns: int, *_: Any
) -> None:
    session._extend_by(AT_ONCE, now_ns)


BREAKS("reregister_before_extend", AgentSession, "served_by")(_nothing)


@BREAKS("expiry_from_send_time", AgentSession, "_extend")
def _count_from_the_answer(kept: Any, session: AgentSession, sent_ns: int, now_ns: int) -> None:
    kept(session, now_ns, now_ns)


BREAKS("extend_when_vouched", AgentSession, "_needs_vouch")(_never)
BREAKS("acquire_when_vouched", AgentSession, "may_acquire")(_always)


BREAKS("release_at_zero_only", Holder, "_may_go")(_always)


@BREAKS("release_at_zero_only", Holder, "_move_to")
def _release_the_old_one_at_once(kept: Any, holder: Holder, lease: HeldLease) -> None:
    newest = holder.leases.newest.get(lease.table)
    kept(holder, lease)
    if newest is not None and newest is not lease:
        holder._leaving[newest.id] = newest


@BREAKS("move_at_once", Holder, "_move_to")
def _stay_while_it_is_used(kept: Any, holder: Holder, lease: HeldLease) -> None:
    newest = holder.leases.newest.get(lease.table)
    if newest is None or newest.is_idle:
        kept(holder, lease)
