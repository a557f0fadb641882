"""Coherency leases: who may read, and whom an answer waits for (C1–C6).

Times are in ms here, made ns for the code; nothing waits for a real clock.
"""

from __future__ import annotations

import pytest

from leasehold.model.features import NEWEST, Feature, incarnation_of, known_to
from leasehold.model.ids import INCARNATION_BYTES
from leasehold.model.records.acks import Ack, PartReport
from leasehold.model.records.log import Grant
from leasehold.replication.coherency import (
    ASKS_REMEMBERED_MAX,
    GIVEN_UP,
    CoherencyLease,
    CoherencySettings,
    CoherencyWatch,
)
from leasehold.replication.granted_leases import GrantedLeases
from tests.models.mutants.replication import CoherencyRules, broken

SETTINGS = CoherencySettings()
MS = 1_000_000
ME = b"incarnation"


def ack(node: str, offset: int, asked_ms: int = 0, incarnation: bytes = ME) -> Ack:
    asked = asked_ms * MS if asked_ms > 0 else asked_ms
    return Ack(node, incarnation, "replicant", offset, 1, 0, asked, False, "", 0)


def watch(longest_grant_ms: int = 0) -> CoherencyWatch:
    """A master's that has just started, at the time 0, in a log with such a grant."""
    leases = GrantedLeases(0, longest_grant_ms, SETTINGS.defer_ms)
    return CoherencyWatch(SETTINGS, 0, leases.running())


def test_c3_the_lease_runs_from_the_asks_own_send_time() -> None:
    lease = CoherencyLease("r1", ME)
    asked = lease.ask(1_000 * MS)
    # However late the grant comes, the lease ends where the requester can be sure of it.
    assert lease.granted(Grant("r1", ME, asked, 500))
    assert lease.holds(1_499 * MS)
    assert not lease.holds(1_500 * MS)


def test_c3_a_delayed_grant_grants_nothing() -> None:
    lease = CoherencyLease("r1", ME)
    lease.granted(Grant("r1", ME, lease.ask(1_000 * MS), 500))
    assert not lease.holds(2_000 * MS)


def test_c3_a_grant_counts_only_for_an_ask_of_this_incarnation() -> None:
    """A boot-time clock starts over: an echo from before lies days in the future (races 4)."""
    lease = CoherencyLease("r1", ME)
    lease.ask(40_000 * MS)
    assert not lease.granted(Grant("r1", b"before the reboot", 950_400_000 * MS, 500))
    assert not lease.granted(Grant("r1", ME, 950_400_000 * MS, 500))
    assert not lease.holds(40_001 * MS)


def test_c3_off_an_old_incarnations_grant_is_taken() -> None:
    lease = CoherencyLease("r1", ME)
    with broken(CoherencyRules(grant_names_an_ask=False)):
        lease.granted(Grant("r1", b"before the reboot", 950_400_000 * MS, 500))
    assert lease.holds(40_001 * MS)


def test_c3_another_nodes_grant_is_not_ours_and_asks_are_bounded() -> None:
    lease = CoherencyLease("r1", ME)
    first = lease.ask(1)
    assert not lease.granted(Grant("r2", ME, first, 500))
    for at in range(2, ASKS_REMEMBERED_MAX + 2):
        lease.ask(at)
    assert not lease.granted(Grant("r1", ME, first, 500))


def test_c2_a_lease_given_up_is_over_at_once() -> None:
    lease = CoherencyLease("r1", ME)
    lease.granted(Grant("r1", ME, lease.ask(10 * MS), 500))
    lease.give_up()
    assert not lease.holds(11 * MS)


def test_c1_an_answer_waits_for_every_coherent_node() -> None:
    master = watch()
    for node in ("r1", "r2"):
        master.take_ack(ack(node, 5, asked_ms=1), 5, 1 * MS)
    assert {g.node for g in master.grants(5, 2 * MS)} == {"r1", "r2"}
    assert not master.may_answer(5, 3 * MS)
    master.take_ack(ack("r1", 6), 6, 4 * MS)
    assert not master.may_answer(5, 5 * MS)
    master.take_ack(ack("r2", 6), 6, 6 * MS)
    assert master.may_answer(5, 7 * MS)


def test_c1_a_node_counts_from_the_append_of_its_grant() -> None:
    master = watch()
    master.take_ack(ack("r1", 5, asked_ms=1), 5, 1 * MS)
    assert master.may_answer(5, 1 * MS)
    master.grants(5, 2 * MS)
    assert master.coherent(2 * MS) == {"r1"}
    assert not master.may_answer(5, 2 * MS)


def test_what_all_processes_know_is_what_the_last_one_does() -> None:
    """An incarnation says it, in which a master of an earlier release sees nothing new; one that is
    not coherent counts, and one that has not been heard for long no more."""
    now, random = 700 * MS, bytes(INCARNATION_BYTES)
    knows = incarnation_of(random)
    assert [known_to(each) for each in (random, b"", knows, incarnation_of(b""))] == [
        0,
        0,
        NEWEST,
        NEWEST,
    ]
    master = watch(longest_grant_ms=500)
    assert not master.all_know(Feature.CHANGES_IN_PLACE, 599 * MS), (
        "who holds a lease may not be heard yet"
    )
    assert master.all_know(Feature.CHANGES_IN_PLACE, now)
    master.take_ack(ack("r1", 5, incarnation=knows), 5, now)
    assert master.all_know(Feature.CHANGES_IN_PLACE, now)
    assert not master.all_know(NEWEST + 1, now)
    master.take_ack(ack("changefeed", 5, incarnation=b""), 5, now)
    assert not master.all_know(Feature.CHANGES_IN_PLACE, now)
    later = now + 21 * SETTINGS.duration_ms * MS
    master.take_ack(ack("r1", 6, incarnation=knows), 6, later)
    master.sweep(later)
    assert master.all_know(Feature.CHANGES_IN_PLACE, later)


def test_who_has_returned_its_lease_for_good_reads_no_more() -> None:
    """A node that was stopped, to be replaced by one of a newer release; another one of its name
    counts by itself."""
    master, earlier = watch(), bytes(INCARNATION_BYTES)
    master.take_ack(ack("r1", 5, incarnation=earlier), 5, 1 * MS)
    assert not master.all_know(Feature.CHANGES_IN_PLACE, 1 * MS)
    master.take_ack(ack("r1", 5, GIVEN_UP, incarnation=earlier), 5, 2 * MS)
    assert master.all_know(Feature.CHANGES_IN_PLACE, 2 * MS)
    master.take_ack(ack("r1", 5, incarnation=b"\1" * INCARNATION_BYTES), 5, 3 * MS)
    assert not master.all_know(Feature.CHANGES_IN_PLACE, 3 * MS)


def test_c4_a_silent_node_is_waited_for_until_its_lease_is_surely_over() -> None:
    """Counted from when its ask was heard, however late it was granted; news of it that ask for
    nothing change nothing."""
    master = watch()
    master.take_ack(ack("r1", 4, asked_ms=1), 5, 2 * MS)
    master.take_ack(ack("r1", 5), 5, 9 * MS)
    master.grants(5, 10 * MS)
    over_ms = 2 + SETTINGS.duration_ms + SETTINGS.defer_ms
    assert not master.may_answer(5, (over_ms - 1) * MS)
    assert master.may_answer(5, over_ms * MS)
    assert master.coherent(over_ms * MS) == frozenset()


def test_c6_a_new_process_waits_out_the_longest_grant_of_the_log() -> None:
    master = watch(longest_grant_ms=900)
    assert not master.may_answer(0, 999 * MS)
    assert master.may_answer(0, 1_000 * MS)


def test_c6_a_log_without_a_grant_needs_no_wait() -> None:
    assert watch().may_answer(0, 0)


def test_c6_off_a_new_master_answers_while_old_leases_run() -> None:
    with broken(CoherencyRules(takeover_waits=False)):
        assert watch(longest_grant_ms=900).may_answer(0, 0)


def test_c4_a_restarted_node_does_not_shorten_the_wait_for_its_old_lease() -> None:
    master = watch()
    master.take_ack(ack("r1", 5, asked_ms=1), 5, 1 * MS)
    master.grants(5, 10 * MS)
    master.take_ack(ack("r1", 9, incarnation=b"again"), 9, 20 * MS)
    assert not master.may_answer(5, 21 * MS)


def test_c4_a_node_that_gives_its_lease_back_is_not_waited_for() -> None:
    master = watch()
    master.take_ack(ack("r1", 5, asked_ms=1), 5, 1 * MS)
    master.grants(5, 10 * MS)
    master.take_ack(ack("r1", 5, asked_ms=GIVEN_UP), 5, 11 * MS)
    assert master.may_answer(5, 12 * MS)


def lease_of(master: CoherencyWatch, node: str, now_ms: int) -> Grant:
    """What a node is granted that asks now, and has applied everything."""
    end = now_ms  # offsets rise with the time
    master.take_ack(ack(node, end, asked_ms=now_ms), end, now_ms * MS)
    (grant,) = master.grants(end, now_ms * MS)
    return grant


def test_c3_c4_a_lease_lasts_longer_while_grants_are_long_on_their_way() -> None:
    """And no longer than is allowed, however long that is."""
    master = watch()
    assert lease_of(master, "r1", 1).duration_ms == SETTINGS.duration_ms
    assert lease_of(master, "r1", 601).duration_ms == SETTINGS.renewal_ms + 600 * 3 // 2
    assert lease_of(master, "r1", 9_000).duration_ms == SETTINGS.duration_ms_max
    over_ms = 9_000 + SETTINGS.duration_ms_max + SETTINGS.defer_ms
    assert not master.may_answer(9_000, (over_ms - 1) * MS)
    assert master.may_answer(9_000, over_ms * MS)


def test_c3_the_ask_went_the_way_of_the_masters_records() -> None:
    master = watch()
    lease_of(master, "r1", 1)
    master.read_back(1, 301 * MS, append_ns=300 * MS)
    assert lease_of(master, "r1", 601).duration_ms == SETTINGS.renewal_ms + 900 * 3 // 2


def test_c3_one_late_node_makes_nobodys_lease_longer() -> None:
    """What it is granted is on its way for 800 ms, and for 5 ms to the others."""
    master = watch()
    for number in range(1, 30):
        now = 200 * number
        for node, behind in (("r1", 0), ("r2", 0), ("late", 3)):
            asked = ack(node, max(0, number - behind), asked_ms=now)
            master.take_ack(asked, number, now * MS)
        granted = master.grants(number, now * MS)
        assert {grant.node for grant in granted} == {"r1", "r2", "late"}
        assert {grant.duration_ms for grant in granted} == {SETTINGS.duration_ms}
        for node in ("r1", "r2"):
            master.take_ack(ack(node, number + 1), number + 1, (now + 5) * MS)


def test_c4_a_longer_lease_of_before_is_waited_for_to_its_end() -> None:
    """The log was slow for r1 alone; r2 comes, and leases are short again."""
    master = watch()
    lease_of(master, "r1", 1)
    longer = lease_of(master, "r1", 1_001)
    lease_of(master, "r2", 1_002)
    master.take_ack(ack("r2", 1_003), 1_003, 1_003 * MS)
    assert lease_of(master, "r1", 1_004).duration_ms == SETTINGS.duration_ms
    over_ms = 1_001 + longer.duration_ms + SETTINGS.defer_ms
    assert "r1" in master.coherent((over_ms - 1) * MS)
    assert "r1" not in master.coherent(over_ms * MS)


def granted(master: CoherencyWatch, behind: int, now_ms: int) -> bool:
    """Whether r1, so many records behind, is granted the lease that it asks for."""
    master.take_ack(ack("r1", 100, asked_ms=now_ms), 100 + behind, now_ms * MS)
    return bool(master.grants(100 + behind, now_ms * MS))


def test_c5_who_comes_has_caught_up() -> None:
    """From its grant on every answer waits for it."""
    master = watch()
    assert not granted(master, SETTINGS.joins_behind_max + 1, 1)
    assert granted(master, SETTINGS.joins_behind_max, 2)


def test_c5_who_goes_on_asking_is_let_in_further_behind() -> None:
    """Under steady writes a busy node would never be as near; never further than a renewal."""
    master = watch()
    behind, patience = SETTINGS.joins_behind_max + 10, SETTINGS.joins_patience_ms
    assert not granted(master, behind, 1)
    assert not granted(master, behind, 9 * patience)
    assert granted(master, behind, 1 + 10 * patience)
    other = watch()
    assert not granted(other, SETTINGS.behind_records_max + 1, 1)
    assert not granted(other, SETTINGS.behind_records_max + 1, 1 + 1_000 * patience)


def test_c5_who_is_far_behind_is_not_renewed() -> None:
    master = watch()
    assert granted(master, 0, 1)
    assert granted(master, SETTINGS.behind_records_max, 200)
    assert not granted(master, SETTINGS.behind_records_max + 1, 400)
    over_ms = 200 + SETTINGS.duration_ms + SETTINGS.defer_ms
    assert not granted(master, SETTINGS.behind_records_max, over_ms), "it would come anew"


def test_c5_slow_but_alive_is_left_out_for_a_cool_down_that_doubles() -> None:
    """It acknowledges everything, always late: it must not slow every write for ever (races 25)."""
    master = watch()
    now = 0
    offset = 1
    rests = []
    for _ in range(2):
        for _ in range(SETTINGS.slow_acks_max):
            master.take_ack(ack("r1", offset, asked_ms=now + 1), offset, now * MS)
            assert master.grants(offset, now * MS)
            master.read_back(offset, now * MS)
            now += SETTINGS.lag_ms_max + 50
            offset += 1
            master.take_ack(ack("r1", offset), offset, now * MS)
        refused_at = now
        while not master.grants(offset, now * MS):
            now += 100
            master.take_ack(ack("r1", offset, asked_ms=now), offset, now * MS)
        rests.append(now - refused_at)
    assert rests[0] >= SETTINGS.cool_down_ms
    assert rests[1] >= 2 * SETTINGS.cool_down_ms


def test_c5_a_node_that_is_fast_again_is_forgiven() -> None:
    master = watch()
    now = 0
    offset = 1

    def serve(lag_ms: int) -> bool:
        nonlocal now, offset
        now += 10
        master.take_ack(ack("r1", offset, asked_ms=now), offset, now * MS)
        granted = bool(master.grants(offset, now * MS))
        master.read_back(offset, now * MS)
        now += lag_ms
        offset += 1
        master.take_ack(ack("r1", offset), offset, now * MS)
        return granted

    def rest_ms() -> int:
        """Of being slow until it is left out, and then until the next grant."""
        while serve(SETTINGS.lag_ms_max + 50):
            pass
        begun = now
        while not serve(1):
            pass
        return now - begun

    first = rest_ms()
    for _ in range(SETTINGS.fast_acks_forgive):
        serve(1)
    assert rest_ms() <= first + SETTINGS.lag_ms_max


def test_c5_a_fast_node_is_never_left_out() -> None:
    master = watch()
    for number in range(100):
        now = number * 10
        master.take_ack(ack("r1", number, asked_ms=now + 1), number, now * MS)
        assert master.grants(number, now * MS)
        master.read_back(number, now * MS)
        master.take_ack(ack("r1", number + 1), number + 1, (now + 5) * MS)


class Cluster:
    """Nodes that acknowledge each record so many ms after its read-back."""

    def __init__(self, *nodes: str) -> None:
        self.master = watch()
        self.nodes = nodes
        self.now = 0
        self.offset = 1

    def serve(self, *lags_ms: int) -> set[str]:
        """One record; → who had a lease for it."""
        for node in self.nodes:
            asked = ack(node, self.offset, asked_ms=self.now + 1)
            self.master.take_ack(asked, self.offset, self.now * MS)
        granted = {grant.node for grant in self.master.grants(self.offset, self.now * MS)}
        self.master.read_back(self.offset, self.now * MS)
        self.offset += 1
        for lag_ms, node in sorted(zip(lags_ms, self.nodes, strict=True)):
            self.master.take_ack(ack(node, self.offset), self.offset, (self.now + lag_ms) * MS)
        self.now += max(lags_ms) + 1
        return granted


SLOW_MS = SETTINGS.lag_ms_max + 50


def test_c5_one_slower_than_the_others_is_left_out_alone() -> None:
    cluster = Cluster("r1", "r2", "r3")
    for _ in range(SETTINGS.slow_acks_max):
        assert cluster.serve(5, SLOW_MS + 5, 6) == {"r1", "r2", "r3"}
    assert cluster.serve(5, 5, 5) == {"r1", "r3"}


def test_c5_two_nodes_one_slow() -> None:
    cluster = Cluster("r1", "r2")
    for _ in range(SETTINGS.slow_acks_max):
        assert cluster.serve(SLOW_MS + 5, 5) == {"r1", "r2"}
    assert cluster.serve(5, 5) == {"r2"}


def test_c5_nodes_that_are_late_together_stay() -> None:
    """A machine whose processes all wait for a processor: nobody is slower than the others."""
    cluster = Cluster("r1", "r2", "r3")
    for _ in range(5 * SETTINGS.slow_acks_max):
        assert cluster.serve(SLOW_MS + 60, SLOW_MS, SLOW_MS + 30) == {"r1", "r2", "r3"}


def test_c5_who_lost_its_lease_meanwhile_holds_up_no_judgement() -> None:
    """C4 saw to it; the next records are timed by the others."""
    master = watch()
    for node in ("r1", "r2"):
        master.take_ack(ack(node, 1, asked_ms=1), 1, 1 * MS)
    master.grants(1, 1 * MS)
    master.read_back(1, 2 * MS)
    now = 2
    for offset in range(2, SETTINGS.slow_acks_max + 20):
        now += SLOW_MS
        master.take_ack(ack("r1", offset, asked_ms=now), offset, now * MS)
        if not master.grants(offset, now * MS):
            break  # r2 is silent, and r1, alone now, is judged by its lag behind the master
        master.read_back(offset, now * MS)
    else:
        raise AssertionError("r1 was never judged")


@pytest.mark.parametrize(("append_ms", "stays"), [(0, False), (60, True)])
def test_c5_who_is_alone_has_as_long_as_the_masters_record_took(
    append_ms: int, *, stays: bool
) -> None:
    """Whose acknowledgement goes through brokers that take so long is not slow itself."""
    master, now, kept = watch(), 0, True
    for offset in range(1, SETTINGS.slow_acks_max + 2):
        master.take_ack(ack("r1", offset, asked_ms=now + 1), offset, now * MS)
        kept = bool(master.grants(offset, now * MS))
        master.read_back(offset, now * MS, append_ns=append_ms * MS)
        now += SLOW_MS
        master.take_ack(ack("r1", offset + 1), offset + 1, now * MS)
    assert kept == stays


def test_how_far_the_slowest_coherent_node_is_behind() -> None:
    master = watch()
    assert master.records_behind(9, 0) == 0
    for node, offset in (("r1", 9), ("r2", 7)):
        master.take_ack(ack(node, offset, asked_ms=1), 9, 1 * MS)
    assert master.records_behind(9, 1 * MS) == 0, "nobody is coherent yet"
    master.grants(9, 1 * MS)
    assert master.records_behind(9, 2 * MS) == 2
    assert master.records_behind(9, 700 * MS) == 0, "its lease is over"


def part(incarnation: bytes, *tables: int) -> PartReport:
    return PartReport("r1", incarnation, tuple((each, f"t{each}", "") for each in tables), 0)


def test_of_two_incarnations_what_the_last_one_holds_counts() -> None:
    """Started again with less, or with more, a node is asked for what it has now."""
    seen = watch()
    seen.take_ack(ack("r1", 1, incarnation=b"whole"), 1, 100 * MS)
    assert seen.holders(7, ["r1", "unheard"]) == {"r1", "unheard"}
    seen.take_part(part(b"less", 8), 1, 200 * MS)
    assert seen.holders(7, ["r1", "unheard"]) == {"unheard"}
    assert seen.holders(8, ["r1"]) == {"r1"}
    seen.take_ack(ack("r1", 2, incarnation=b"whole again"), 1, 300 * MS)
    assert seen.holders(7, ["r1"]) == {"r1"}


def test_the_dead_are_forgotten() -> None:
    master = watch()
    for number in range(50):
        master.take_ack(ack("r1", 1, incarnation=bytes([number])), 1, 0)
    master.sweep(3_600_000 * MS)
    master.take_ack(ack("r1", 1, asked_ms=3_600_001), 1, 3_600_001 * MS)
    assert len(master.grants(1, 3_600_001 * MS)) == 1
