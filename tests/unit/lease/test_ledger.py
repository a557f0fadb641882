"""The pure ledger, rule by rule; the same commands on Redis: tests/integration."""

from __future__ import annotations

from random import Random

import pytest

from leasehold.lease.commands import (
    TABLES_PER_CALL_MAX,
    Acquire,
    Change,
    Command,
    DropTable,
    EndSession,
    ExpireAgent,
    KillSession,
    Lease,
    Liveness,
    MarkReady,
    Newest,
    OpenSession,
    Publish,
    Register,
    RegisterEpoch,
    Release,
    Renew,
    Seed,
    SeedTables,
    SetMinVersion,
    Snapshot,
)
from leasehold.lease.ledger.ledger import LedgerState, apply, check
from leasehold.lease.master.ledger_watch import seed_parts
from leasehold.lease.replies import (
    Dropped,
    Ended,
    EpochRegistered,
    Expired,
    Granted,
    Holding,
    Killed,
    LedgerRefused,
    LivenessReport,
    MinVersionSet,
    NewestVersions,
    Opened,
    Published,
    RefusalReason,
    Registered,
    Released,
    Renewed,
    Reply,
    Seeded,
    SessionStatus,
    SnapshotReport,
    TableStatus,
)
from tests.support.lease.random_commands import CommandMaker
from tests.support.lease.states import key_of_ledger

RUN = "run-1"


class Ledger:
    """Opened for publishing, with sessions 1 and 2 of agents a and b."""

    def __init__(self, *seeds: Seed, run_id: str = RUN) -> None:
        self.state = LedgerState()
        self.run_id = run_id
        self(RegisterEpoch(1))
        self(SeedTables(1, run_id, seeds or (Seed(1, 1, 1),)))
        self(MarkReady(1, run_id))
        self(OpenSession("a", 1))
        self(OpenSession("b", 2))

    def __call__(self, command: Command) -> Reply:
        reply = apply(self.state, command, self.run_id)
        check(self.state, self.run_id)
        return reply

    def refusal(self, command: Command) -> RefusalReason:
        reply = self(command)
        assert isinstance(reply, LedgerRefused), reply
        return reply.reason

    def step(self, table: int, start: int) -> Reply:
        return self(Publish(1, (Change(table, start, start + 1),), intent=start))


# --- D1 ----------------------------------------------------------------------------------------


def test_d1_acquire_missing_table() -> None:
    """Scenario 40."""
    assert Ledger().refusal(Acquire(1, 9, 99, 1)) is RefusalReason.UNKNOWN_TABLE


def test_d1_acquire_future_version() -> None:
    """Scenario 42."""
    assert Ledger().refusal(Acquire(1, 9, 1, 2)) is RefusalReason.FUTURE


def test_d1_the_newest_is_granted_or_the_one_before_while_it_is_on_its_way() -> None:
    """P10: publish comes before the log, so an agent may know only the version before."""
    ledger = Ledger(Seed(1, 2, 2))
    ledger.step(1, 2)
    assert ledger(Acquire(1, 9, 1, 2)) == Granted(RUN, 1, 2, current=3)
    assert ledger(Acquire(2, 9, 1, 3)) == Granted(RUN, 1, 3, current=3)
    assert ledger.refusal(Acquire(1, 9, 1, 1)) is RefusalReason.TOO_OLD


def test_d1_an_older_one_is_granted_only_down_to_min_version() -> None:
    """For a transaction whose time lies before (AS OF)."""
    ledger = Ledger()
    ledger.step(1, 1)
    assert ledger(Acquire(1, 9, 1, 1)) == Granted(RUN, 1, 1, current=2)
    ledger(Release(1, 9, 1, 1))
    ledger(SetMinVersion(1, 1, 2))
    reply = ledger(Acquire(1, 9, 1, 1))
    assert reply == LedgerRefused(RefusalReason.TOO_OLD, RUN, 1, current=2, min_version=2)


def test_d1_l_before_sc() -> None:
    """The lease is read before the change: the change after next waits for it."""
    ledger = Ledger()
    ledger(Acquire(1, 9, 1, 1))  # L
    assert ledger.step(1, 1) == Published(RUN, False)  # SC
    ledger(SetMinVersion(1, 1, 2))
    assert ledger.step(1, 2) == LedgerRefused(
        RefusalReason.HOLDERS, RUN, 1, 2, 2, holders_total=1, holders=(Holding(1, 1, 1, "a"),)
    )


def test_d1_l_after_sc() -> None:
    """The change is read first: the lease is on the new version, and nobody waits."""
    ledger = Ledger()
    ledger.step(1, 1)  # SC
    assert ledger(Acquire(1, 9, 1, 2)) == Granted(RUN, 1, 2, current=2)  # L
    ledger(SetMinVersion(1, 1, 2))
    assert ledger.step(1, 2) == Published(RUN, False)


@pytest.mark.parametrize("lease_first", [True, False])
def test_d1_l_equal_to_sc(lease_first: bool) -> None:
    """At the same moment: the ledger puts one first, and both orders keep two versions."""
    ledger = Ledger()
    commands: list[Command] = [Acquire(1, 9, 1, 1), Publish(1, (Change(1, 1, 2),))]
    for command in commands if lease_first else reversed(commands):
        assert not isinstance(ledger(command), LedgerRefused)
    ledger(SetMinVersion(1, 1, 2))
    assert ledger.refusal(Publish(1, (Change(1, 2, 3),))) is RefusalReason.HOLDERS


# --- D2 ----------------------------------------------------------------------------------------


def test_d2_third_version_waits() -> None:
    """Scenario 44: 3 is published while 2 is in use; 4 waits until nobody has 2."""
    ledger = Ledger(Seed(1, 2, 2))
    ledger(Acquire(1, 9, 1, 2))
    assert ledger.step(1, 2) == Published(RUN, False)
    ledger(SetMinVersion(1, 1, 3))
    assert ledger.refusal(Publish(1, (Change(1, 3, 4),))) is RefusalReason.HOLDERS
    ledger(Release(1, 9, 1, 2))
    assert ledger.step(1, 3) == Published(RUN, False)


def test_d2_two_publishers() -> None:
    """Scenario 45: each step once, whoever asks; two steps never get the same version."""
    ledger = Ledger()
    first, second = Publish(1, (Change(1, 1, 2),), 10), Publish(1, (Change(1, 1, 2),), 20)
    assert ledger(first) == Published(RUN, False)
    assert ledger(first) == Published(RUN, True)
    assert ledger.refusal(second) is RefusalReason.VERSION
    ledger(SetMinVersion(1, 1, 2))
    assert ledger(Publish(1, (Change(1, 2, 3),), 20)) == Published(RUN, False)


def test_d9_a_table_that_takes_anothers_place_goes_on_from_its_numbers() -> None:
    """Both are published in one call: all of it, or nothing."""
    ledger = Ledger(Seed(1, 4, 4))
    new = Publish(1, (Change(2, 0, 5),), 7)
    assert ledger(new) == Published(RUN, False)
    assert ledger(new) == Published(RUN, True)
    assert ledger.refusal(Publish(1, (Change(2, 0, 6),), 8)) is RefusalReason.VERSION
    assert ledger.refusal(Publish(1, (Change(3, 0, 0),), 9)) is RefusalReason.VERSION
    assert ledger.refusal(Publish(1, (Change(1, 4, 5), Change(2, 4, 5)), 9)) is (
        RefusalReason.VERSION
    )
    assert ledger(Publish(1, (Change(1, 4, 5), Change(2, 5, 6)), 9)) == Published(RUN, False)


@pytest.mark.parametrize("change", [Change(1, 2, 4), Change(1, 2, 1), Change(1, 2, 2)])
def test_d2_publisher_may_not_set_version(change: Change) -> None:
    """Scenario 46: neither up nor down."""
    assert Ledger(Seed(1, 2, 2)).refusal(Publish(1, (change,))) is RefusalReason.VERSION


def test_d2_second_change_waits_first_in_use() -> None:
    """Scenario 51: the version stays 2 and readers are not blocked; then 3."""
    ledger = Ledger()
    ledger(Acquire(1, 9, 1, 1))
    ledger.step(1, 1)
    ledger(SetMinVersion(1, 1, 2))
    assert ledger.refusal(Publish(1, (Change(1, 2, 3),), 2)) is RefusalReason.HOLDERS
    assert ledger(Acquire(2, 9, 1, 2)) == Granted(RUN, 1, 2, current=2)
    ledger(Release(1, 9, 1, 1))
    assert ledger.step(1, 2) == Published(RUN, False)


def test_d2_a_deposed_master_is_refused_everything() -> None:
    ledger = Ledger()
    assert ledger(RegisterEpoch(2)) == EpochRegistered(RUN, True, True)
    deposed: tuple[Command, ...] = (
        RegisterEpoch(1),
        Publish(1, (Change(1, 1, 2),)),
        SetMinVersion(1, 1, 1),
        SeedTables(1, RUN, ()),
        MarkReady(1, RUN),
        KillSession(1, 1, 0),
        ExpireAgent(1, "a"),
        DropTable(1, 1),
    )
    for command in deposed:
        assert ledger(command) == LedgerRefused(RefusalReason.EPOCH, RUN, epoch=2), command


# --- D5 ----------------------------------------------------------------------------------------


def test_d5_the_version_after_next_waits_for_the_fence() -> None:
    ledger = Ledger()
    ledger.step(1, 1)
    assert ledger.refusal(Publish(1, (Change(1, 2, 3),))) is RefusalReason.NOT_FENCED
    assert ledger(SetMinVersion(1, 1, 2)) == MinVersionSet(RUN, 2, 0, ())
    assert ledger(SetMinVersion(1, 1, 1)) == MinVersionSet(RUN, 2, 0, ()), "it never falls"
    assert ledger.refusal(SetMinVersion(1, 1, 3)) is RefusalReason.FUTURE
    assert ledger.step(1, 2) == Published(RUN, False)


def test_d5_the_fence_says_who_still_holds_a_version_below() -> None:
    ledger = Ledger()
    ledger(Acquire(2, 9, 1, 1))
    ledger.step(1, 1)
    reply = ledger(SetMinVersion(1, 1, 2))
    assert reply == MinVersionSet(RUN, 2, 1, (Holding(1, 1, 2, "b"),))


# --- D6 ----------------------------------------------------------------------------------------


def test_d6_another_run_id_closes_everything_but_registration() -> None:
    ledger = Ledger()
    ledger(Acquire(1, 9, 1, 1))
    ledger.run_id = "run-2"
    closed: tuple[Command, ...] = (
        OpenSession("c", 3),
        Renew(1, 1, 1, 0),
        Acquire(1, 9, 1, 1),
        Release(1, 9, 1, 1),
        Publish(1, (Change(1, 1, 2),)),
        SetMinVersion(1, 1, 1),
        MarkReady(1, "run-2"),
        KillSession(1, 1, 0),
        ExpireAgent(1, "a"),
        DropTable(1, 1),
    )
    for command in closed:
        assert ledger.refusal(command) is RefusalReason.CLOSED, command
    assert ledger(Register("a", 1, 1, (Lease(1, 1),))) == Registered("run-2", False, ())
    ledger(SeedTables(1, "run-2", (Seed(1, 1, 1),)))
    assert ledger(Renew(1, 2, 1, 1)) == Renewed("run-2", 2)
    assert ledger.refusal(Publish(1, (Change(1, 1, 2),))) is RefusalReason.NOT_READY
    assert ledger.refusal(SetMinVersion(1, 1, 1)) is RefusalReason.NOT_READY
    ledger(MarkReady(1, "run-2"))
    assert ledger.step(1, 1) == Published("run-2", False)


def test_d6_reseeding_sweeps_what_was_registered_under_a_stale_current() -> None:
    """P8. And the one whose lease was swept is told at its next renewal."""
    ledger = Ledger()
    ledger.run_id = "run-2"
    ledger(Register("a", 1, 1, (Lease(1, 1), Lease(9, 4))))
    ledger(Register("b", 2, 1, ()))
    assert ledger(SeedTables(1, "run-2", (Seed(1, 3, 3),))) == Seeded("run-2", True, swept=2)
    assert ledger.refusal(Renew(1, 2, 2, 1)) is RefusalReason.REGISTER
    assert ledger(Renew(2, 2, 0, 1)) == Renewed("run-2", 2)


def test_d6_registration_below_the_newest_but_one_is_refused() -> None:
    ledger = Ledger(Seed(1, 3, 3), Seed(2, 1, 1))
    held = (Lease(1, 1), Lease(1, 2), Lease(1, 4), Lease(2, 1), Lease(9, 1))
    reply = ledger(Register("a", 1, 1, held))
    assert reply == Registered(RUN, True, refused=(Lease(1, 1), Lease(1, 4), Lease(9, 1)))
    assert ledger(Renew(1, 2, 2, 1)) == Renewed(RUN, 2)


def test_d6_a_registration_replaces_what_was_held() -> None:
    ledger = Ledger()
    ledger(Acquire(1, 9, 1, 1))
    ledger(Register("a", 1, 1, ()))
    assert ledger.state.held(1) == set()


def test_d6_a_session_made_again_by_a_late_registration_is_noticed() -> None:
    """FLUSHALL, then a registration given up before arrives: as many leases, but not the same."""
    ledger = Ledger(Seed(1, 2, 1))
    ledger(Register("a", 1, 3, (Lease(1, 2),)))
    ledger.state = LedgerState()
    ledger(RegisterEpoch(1))
    ledger(SeedTables(1, RUN, (Seed(1, 2, 1),)))
    ledger(Register("a", 1, 2, (Lease(1, 1),)))
    assert ledger.refusal(Renew(1, 4, held=1, confirmed=3)) is RefusalReason.REGISTER


def test_d6_reseeding_in_parts_starts_over_after_a_loss_between_them() -> None:
    ledger = Ledger()
    tables = [Seed(table, 1, 1) for table in range(1, 2 * TABLES_PER_CALL_MAX + 2)]
    parts = seed_parts(1, RUN, tables)
    assert [(part.part, part.final) for part in parts] == [(0, False), (1, False), (2, True)]
    assert ledger(parts[0]) == Seeded(RUN, False, 0)
    assert ledger.refusal(Acquire(1, 9, 1, 1)) is RefusalReason.CLOSED
    ledger.state = LedgerState()  # FLUSHALL
    ledger(RegisterEpoch(1))
    assert ledger.refusal(parts[1]) is RefusalReason.PART
    for part in parts:
        reply = ledger(part)
    assert reply == Seeded(RUN, True, 0)
    assert len(ledger.state.tables) == len(tables)


def test_d6_reseeding_closes_publishing_again() -> None:
    ledger = Ledger()
    ledger(SeedTables(1, RUN, (Seed(1, 1, 1),)))
    assert ledger.refusal(Publish(1, (Change(1, 1, 2),))) is RefusalReason.NOT_READY
    assert ledger.refusal(SeedTables(1, "run-0", ())) is RefusalReason.RUN_ID
    assert ledger.refusal(MarkReady(1, "run-0")) is RefusalReason.RUN_ID


# --- D7 ----------------------------------------------------------------------------------------


def test_d7_death_is_a_compare_and_set() -> None:
    """P7: a renewal between the master's look and its kill wins."""
    ledger = Ledger()
    ledger(Acquire(1, 9, 1, 1))
    ledger(Renew(1, 1, 1, 0))
    refused = ledger(KillSession(1, 1, 0))
    assert refused == LedgerRefused(RefusalReason.COUNTER_MOVED, RUN, counter=1)
    assert ledger(KillSession(1, 1, 1)) == Killed(RUN, freed=1)
    assert ledger(KillSession(1, 1, 1)) == Killed(RUN, freed=0)
    assert ledger.refusal(Renew(1, 2, 1, 1)) is RefusalReason.DEAD
    assert ledger.refusal(Acquire(1, 9, 1, 1)) is RefusalReason.DEAD
    assert ledger.refusal(Release(1, 9, 1, 1)) is RefusalReason.DEAD


def test_d7_dead_holder_does_not_block() -> None:
    """Scenario 55: its entries are swept, so a lost lease row holds up nobody for ever."""
    ledger = Ledger()
    ledger(Acquire(1, 9, 1, 1))
    ledger.step(1, 1)
    ledger(SetMinVersion(1, 1, 2))
    assert ledger.refusal(Publish(1, (Change(1, 2, 3),))) is RefusalReason.HOLDERS
    ledger(KillSession(1, 1, 0))
    assert ledger.step(1, 2) == Published(RUN, False)
    assert ledger.state.leases == {}


def test_d7_an_expired_agent_is_refused_but_still_holds_until_it_is_dead() -> None:
    ledger = Ledger()
    ledger(Acquire(1, 9, 1, 1))
    assert ledger(ExpireAgent(1, "a")) == Expired(RUN, (1,))
    assert ledger.refusal(Renew(1, 1, 1, 0)) is RefusalReason.EXPIRED
    assert ledger.refusal(Acquire(1, 9, 1, 1)) is RefusalReason.EXPIRED
    assert ledger.refusal(Register("a", 1, 1, ())) is RefusalReason.EXPIRED
    assert ledger(Renew(2, 1, 0, 0)) == Renewed(RUN, 1), "others are not concerned"
    assert len(ledger.state.held(1)) == 1
    assert ledger(OpenSession("a", 3)) == Opened(RUN, 3)


def test_d7_an_agent_ends_its_own_session_also_one_that_is_refused() -> None:
    ledger = Ledger()
    ledger(Acquire(1, 9, 1, 1))
    ledger(ExpireAgent(1, "a"))
    assert ledger(EndSession(1)) == Ended(RUN, 1)
    assert ledger.state.leases == {}
    assert ledger.refusal(Renew(1, 1, 1, 0)) is RefusalReason.DEAD
    assert ledger(EndSession(1)) == Ended(RUN, 0), "said twice"
    assert ledger(Renew(2, 1, 0, 0)) == Renewed(RUN, 1), "others are not concerned"


def test_d7_a_late_renewal_or_registration_is_refused() -> None:
    """A repeat under an old counter must not extend what its sender counts from the repeat."""
    ledger = Ledger()
    assert ledger(Renew(1, 5, 0, 0)) == Renewed(RUN, 5)
    assert ledger.refusal(Renew(1, 5, 0, 0)) is RefusalReason.REGISTER
    assert ledger.refusal(Register("a", 1, 5, ())) is RefusalReason.REGISTER


def test_d6_a_late_acquire_or_release_is_refused() -> None:
    """Given up by its sender, who has registered since: it must not take a lease that is used."""
    ledger = Ledger()
    ledger(Register("a", 1, 3, (Lease(1, 1),)))
    assert ledger.refusal(Release(1, 2, 1, 1)) is RefusalReason.REGISTER
    assert ledger.state.held(1) == {Lease(1, 1)}
    ledger(Register("a", 1, 4, ()))
    assert ledger.refusal(Acquire(1, 3, 1, 1)) is RefusalReason.REGISTER
    assert ledger.state.held(1) == set()
    assert ledger(Acquire(1, 4, 1, 1)) == Granted(RUN, 1, 1, current=1)


def test_d7_a_session_id_belongs_to_one_agent() -> None:
    ledger = Ledger()
    assert ledger(OpenSession("a", 1)) == Opened(RUN, 1), "asked again before it was used"
    assert ledger.refusal(OpenSession("b", 1)) is RefusalReason.TAKEN
    assert ledger.refusal(Register("b", 1, 1, ())) is RefusalReason.TAKEN
    ledger(Renew(1, 1, 0, 0))
    assert ledger.refusal(OpenSession("a", 1)) is RefusalReason.TAKEN


# --- D9 and the end of a table -----------------------------------------------------------------


def test_d9_tables_of_a_job_are_published_all_or_none() -> None:
    ledger = Ledger(Seed(1, 2, 2), Seed(2, 2, 2))
    ledger(Acquire(1, 9, 2, 2))
    ledger.step(2, 2)
    ledger(SetMinVersion(1, 2, 3))
    both = Publish(1, (Change(1, 2, 3), Change(2, 3, 4)), 7)
    assert ledger.refusal(both) is RefusalReason.HOLDERS
    assert ledger.state.tables[1].current == 2, "not even the one that was free"
    ledger(Release(1, 9, 2, 2))
    assert ledger(both) == Published(RUN, False)
    assert (ledger.state.tables[1].current, ledger.state.tables[2].current) == (3, 4)


def test_d9_a_new_table_is_published_from_nothing() -> None:
    ledger = Ledger()
    assert ledger(Publish(1, (Change(5, 0, 1),))) == Published(RUN, False)
    assert ledger(Acquire(1, 9, 5, 1)) == Granted(RUN, 5, 1, current=1)
    assert ledger.refusal(Publish(1, (Change(5, 0, 1),), 9)) is RefusalReason.VERSION


def test_d1_no_lease_on_dropped_table() -> None:
    """Scenario 48: refused, and those on it are freed at once."""
    ledger = Ledger()
    ledger(Acquire(1, 9, 1, 1))
    assert ledger(DropTable(1, 1)) == Dropped(RUN, freed=1)
    assert ledger(DropTable(1, 1)) == Dropped(RUN, freed=0)
    assert ledger.refusal(Acquire(1, 9, 1, 1)) is RefusalReason.UNKNOWN_TABLE
    assert ledger(Release(1, 9, 1, 1)) == Released(RUN, False)


def test_d1_drop_waits_for_versions_that_still_show_the_table() -> None:
    ledger = Ledger()
    ledger(Acquire(1, 9, 1, 1))
    ledger.step(1, 1)
    assert ledger.refusal(DropTable(1, 1)) is RefusalReason.HOLDERS


def test_status_is_in_numbers() -> None:
    ledger = Ledger(Seed(1, 2, 1))
    ledger(Acquire(1, 9, 1, 2))
    ledger(Acquire(2, 9, 1, 2))
    ledger(Acquire(2, 9, 1, 1))
    sessions = (SessionStatus(1, "a", 0, 1, False), SessionStatus(2, "b", 0, 2, False))
    assert ledger(Liveness()) == LivenessReport(RUN, 1, True, True, sessions)
    assert ledger(Newest()) == NewestVersions(RUN, ((1, 2),))
    tables = (TableStatus(1, 2, 1, 0, ((1, 1), (2, 2))),)
    assert ledger(Snapshot()) == SnapshotReport(RUN, 1, True, True, sessions, tables)


@pytest.mark.parametrize("seed", range(20))
def test_d1_d5_d6_d7_hold_after_any_commands(seed: int) -> None:
    """Random commands, restarts that lose nothing, the last commands, or everything."""
    random = Random(seed)
    maker, state, run = CommandMaker(random), LedgerState(), 1
    kept = state.copy()
    for _ in range(1_500):
        chance = random.random()
        if chance < 0.004:
            run += 1
            state = kept.copy() if chance < 0.003 else state
        elif chance < 0.006:
            state = LedgerState()
        elif chance < 0.05:
            kept = state.copy()
        before = key_of_ledger(state)
        reply = apply(state, maker.make(state, f"run-{run}"), f"run-{run}")
        check(state, f"run-{run}")
        if isinstance(reply, LedgerRefused):
            assert key_of_ledger(state) == before, "a refusal changes nothing"
