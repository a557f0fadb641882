"""The lease rules as switches, so that a model can turn one off and see the harm.

Services always run with every rule on; only tests and models construct anything else. Redis's
side (``adapters/redis/ledger.lua``) has no switches at all.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """One boolean per rule; the comment names the invariant it carries and what breaks without."""

    # --- the ledger (ledger.py) ---
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
    grace_in_log: bool = True  # D6: the next master finds the run id on record, skips the wait
    # --- the agent (holder.py) ---
    reregister_before_extend: bool = True  # D6: a renewal by another run id extends leases lost
    expiry_from_send_time: bool = True  # D3: the reply's time: valid after the master's TTL
    release_at_zero_only: bool = True  # D4: a lease is released under a running transaction
    move_at_once: bool = True  # D4: new users are still put on the old version


EVERY_RULE = Rules()
