"""What a candidate knows of leases, and whom it waits for as the next master (C6).

Times are in ms here, made ns for the code; nothing waits for a real clock.
"""

from __future__ import annotations

from leasehold.model.features import NEWEST, incarnation_of
from leasehold.model.ids import INCARNATION_BYTES
from leasehold.model.records.acks import Ack
from leasehold.model.records.log import Grant
from leasehold.replication.coherency import (
    GIVEN_UP,
    NODES_MAX,
    CoherencySettings,
    CoherencyWatch,
)
from leasehold.replication.granted_leases import GrantedLeases

MS = 1_000_000
SETTINGS = CoherencySettings(duration_ms=500, defer_ms=100)
ME = b"incarnation"


def ack(node: str, offset: int, asked_ns: int = 0, incarnation: bytes = ME) -> Ack:
    return Ack(node, incarnation, "replicant", offset, 1, 0, asked_ns, False, "", 0)


def grant(node: str, incarnation: bytes = ME) -> Grant:
    return Grant(node, incarnation, 1, 500)


def known(started_ms: int = 0, longest_grant_ms: int = 0) -> GrantedLeases:
    return GrantedLeases(started_ms * MS, longest_grant_ms, SETTINGS.defer_ms)


def claimed(leases: GrantedLeases, now_ms: int) -> CoherencyWatch:
    return CoherencyWatch(SETTINGS, now_ms * MS, leases.running())


def test_c6_a_new_master_answers_once_those_with_a_lease_have_the_record() -> None:
    leases = known()
    leases.read_grants([grant("r1"), grant("r2")], 10_000 * MS)
    master = claimed(leases, 10_020)
    assert master.coherent(10_020 * MS) == {"r1", "r2"}
    for node in ("r1", "r2"):
        assert not master.may_answer(70, 10_021 * MS)
        master.take_ack(ack(node, 71), 71, 10_021 * MS)
    assert master.may_answer(70, 10_021 * MS)


def test_c6_who_says_nothing_is_waited_for_as_long_as_its_last_grant_says() -> None:
    leases = known()
    leases.read_grants([grant("r1")], 10_000 * MS)
    leases.read_grants([grant("r1")], 10_200 * MS)
    master = claimed(leases, 10_500)
    assert not master.may_answer(70, 10_799 * MS)
    assert master.may_answer(70, 10_800 * MS)
    assert claimed(leases, 10_800).coherent(10_800 * MS) == frozenset()


def test_c6_another_incarnation_of_a_node_says_nothing_of_its_lease() -> None:
    leases = known()
    leases.read_grants([grant("r1", b"before")], 10_000 * MS)
    leases.take_ack(ack("r1", 99, incarnation=b"after"), 10_010 * MS)
    leases.take_ack(ack("r1", 99, GIVEN_UP, b"later"), 10_010 * MS)
    master = claimed(leases, 10_020)
    assert not master.may_answer(70, 10_021 * MS)


def test_c6_who_has_given_its_lease_back_is_not_waited_for_whenever_its_grant_is_read() -> None:
    leases = known()
    leases.read_grants([grant("r1")], 10_000 * MS)
    leases.take_ack(ack("r1", 70, GIVEN_UP), 10_010 * MS)
    leases.take_ack(ack("r2", 70, GIVEN_UP), 10_010 * MS)
    leases.read_grants([grant("r1"), grant("r2")], 10_015 * MS)
    assert claimed(leases, 10_020).may_answer(70, 10_020 * MS)


def test_c6_grants_of_before_the_start_are_waited_for_by_time_from_the_start_on() -> None:
    leases = known(started_ms=5_000, longest_grant_ms=900)
    assert not claimed(leases, 5_100).may_answer(0, 5_999 * MS)
    assert claimed(leases, 5_100).may_answer(0, 6_000 * MS)
    assert claimed(leases, 60_000).may_answer(0, 60_000 * MS), "they are over long since"


def test_c6_of_more_nodes_than_are_kept_the_rest_is_waited_for_by_time() -> None:
    leases = known()
    leases.read_grants([grant(f"old {number}") for number in range(NODES_MAX)], 1_000 * MS)
    leases.read_grants([grant("r1")], 10_000 * MS)  # the others are over, and forgotten
    assert claimed(leases, 10_001).coherent(10_001 * MS) == {"r1"}
    leases.read_grants([grant(f"new {number}") for number in range(NODES_MAX)], 10_100 * MS)
    master = claimed(leases, 10_101)
    for node in master.coherent(10_101 * MS):
        master.take_ack(ack(node, 71), 71, 10_102 * MS)
    assert not master.may_answer(70, 10_699 * MS)
    assert master.may_answer(70, 10_700 * MS)


def test_a_candidate_hears_what_all_know_before_it_is_master() -> None:
    """So that a change which touches no row is planned as such from the first moment of a term."""
    leases = known(longest_grant_ms=500)
    knows = incarnation_of(bytes(INCARNATION_BYTES))
    leases.take_ack(ack("r1", 5, incarnation=knows), 10_000 * MS)
    assert claimed(leases, 10_001).all_know(NEWEST, 10_001 * MS)
    leases.take_ack(ack("earlier", 5, incarnation=b""), 10_000 * MS)
    master = claimed(leases, 10_001)
    assert not master.all_know(NEWEST, 10_001 * MS)
    assert master.all_know(NEWEST, 30_000 * MS), "it has not been heard for long"
    begun = known(started_ms=9_900, longest_grant_ms=500)
    begun.take_ack(ack("r1", 5, incarnation=knows), 10_000 * MS)
    master = claimed(begun, 10_001)
    assert not master.all_know(NEWEST, 10_001 * MS), "others may not have been heard yet"
    assert master.all_know(NEWEST, 10_500 * MS)
