"""Who a job of the view waits for, by name, and since when."""

from __future__ import annotations

import json
from typing import Any

from leasehold.admin.fold import HELD_BACK_MAX
from leasehold.admin.report import (
    report,
)
from leasehold.admin.view import Event, Heard, Unreachable
from leasehold.catalog.job import Phase, Status
from leasehold.lease.replies import Holding
from leasehold.model.records.acks import HoldingReport
from leasehold.model.records.events import VersionEvent
from tests.support.admin.view_events import JOB, NOW, SECOND, ack, job, ledger, seen, version

LINGERING = ((0, "draining", NOW - 2 * SECOND),)


def test_blockers_name_who_holds_what_and_only_those_in_the_way() -> None:
    old, current = Holding(1, 2, 77, "pricing"), Holding(1, 3, 78, "boarding")
    draining = job(phase=Phase.DRAINING, versions={1: 3}, marks=LINGERING)
    publishing = job(phase=Phase.PUBLISHING, versions={1: 4}, marks=LINGERING)
    held = ledger({1: (old, current)})
    (words,) = report(seen(draining, held), NOW)["jobs"][0]["waits_for"]
    assert "pricing" in words
    assert "77" in words
    (words,) = report(seen(publishing, held), NOW)["jobs"][0]["waits_for"]
    assert "version 2" in words
    (told,) = report(seen(job(phase=Phase.BACKFILLING), held), NOW)["jobs"]
    assert (told["waits_for"], told["blockers"]) == ([], [])
    (told,) = report(seen(draining, held), NOW - SECOND - 1_000)["jobs"]
    assert told["waits_for"] == [], "a step's leases end by themselves, so soon after its begin"
    assert told["blockers"]


def test_a_blocker_of_another_table_of_the_job_is_named_by_that_table() -> None:
    """A job may move several: one that drops a table and those that refer to it."""
    gates = VersionEvent(7, "gates", 1, 1, NOW, {**version(1).body, "table_id": 7}, 0, "")
    dropping = job(phase=Phase.DRAINING, versions={1: 3, 7: 5, 8: 2}, marks=LINGERING)
    holders: dict[int, tuple[Holding, ...]] = {
        table: (Holding(table, 1, 77, "pricing"),) for table in (1, 7, 8)
    }
    (told,) = report(seen(gates, dropping, ledger(holders)), NOW)["jobs"]
    assert [each["table"] for each in told["blockers"]] == ["flights", "gates", "table 8"]
    assert "holds gates version 1" in told["waits_for"][1]


def held_back(**more: Any) -> HoldingReport:
    work = (("transaction book", "", 5_000), ("", "SELECT 1", 2_000), ("third", "", 1))
    said = HoldingReport("pricing", 77, 1, 2, 5, 9_000, 4_000, 12_000, work, NOW)
    return said._replace(**more)


def blocked(*events: Event, now_us: int, expiring: bool = False) -> dict[str, Any]:
    held = ledger({1: (Holding(1, 2, 77, "pricing"),)}, sessions=((77, 3, expiring),))
    draining = job(phase=Phase.DRAINING, versions={1: 3}, marks=LINGERING)
    told = report(seen(draining, held, *events, now_us=now_us), now_us)
    (lease,) = (v for v in told["leases"][0]["versions"] if v["old"])
    (blocker,) = told["jobs"][0]["blockers"]
    assert lease["holders"] == [{**blocker, "table": "table 1"}], "the same story in both"
    json.dumps(blocker)
    return {**blocker, "words": told["jobs"][0]["waits_for"][0]}


def test_a_blocker_says_since_when_and_at_what_work() -> None:
    told = blocked(held_back(), now_us=NOW + SECOND)
    assert told["state"] == "running"
    assert (told["held_ms"], told["old_ms"], told["session_ends_in_ms"]) == (10_000, 5_000, 11_000)
    assert told["work"][0] == {"label": "transaction book", "sql": "", "age_ms": 6_000}
    assert told["words"] == (
        "agent pricing holds flights version 2 (session 77) for 5.0 s after a newer one was there;"
        " in use by transaction book (6.0 s), SELECT 1 (3.0 s), 3 other users;"
        " it lets go when its work on it ends"
    )


def test_a_blocker_that_is_not_heard_of_is_silent_and_its_session_ends() -> None:
    told = blocked(held_back(), now_us=NOW + 5 * SECOND)
    assert (told["state"], told["heard_ms"]) == ("silent", 5_000)
    assert "not heard of for 5.0 s: its session ends by itself (in about 7.0 s" in told["words"]


def test_a_blocker_is_heard_by_our_clock_whatever_its_own_says() -> None:
    ten = 600 * SECOND
    late = held_back(sent_us=NOW - ten)
    told = blocked(late, Heard("pricing", -ten), now_us=NOW + SECOND)
    assert (told["state"], told["heard_ms"], told["old_ms"]) == ("running", 1_000, 5_000)
    told = blocked(
        ack("pricing", sent_us=NOW + ten), Heard("pricing", ten), now_us=NOW + 4 * SECOND
    )
    assert (told["state"], told["heard_ms"]) == ("silent", 4_000)


def test_a_blocker_whose_renewals_are_refused_is_expiring() -> None:
    told = blocked(held_back(), now_us=NOW, expiring=True)
    assert told["state"] == "expiring"
    assert "renewals are refused" in told["words"]


def test_a_blocker_that_has_said_nothing_is_known_by_other_signs_of_life() -> None:
    told = blocked(now_us=NOW)
    assert (told["state"], told["users"], told["old_ms"]) == ("unknown", None, None)
    assert "has not said why" in told["words"]
    assert blocked(ack("pricing"), now_us=NOW)["state"] == "running"
    assert blocked(ack("pricing"), now_us=NOW + 4 * SECOND)["state"] == "silent"
    renewed = ledger({1: (Holding(1, 2, 77, "pricing"),)}, sessions=((77, 4, False),))
    assert blocked(renewed, now_us=NOW)["state"] == "running"
    earlier = blocked(held_back(session=76), now_us=NOW)
    assert earlier["users"] is None, "said by a session before this one"


def test_the_word_that_came_last_counts_and_what_is_kept_is_bounded() -> None:
    view = seen(held_back(users=1), held_back(users=2, sent_us=NOW - 1))
    assert [said.users for said in view.held_back.values()] == [2]
    many = [held_back(version=n, sent_us=NOW - n) for n in range(HELD_BACK_MAX + 9)]
    assert min(version for _, _, version in seen(*many).held_back) == 9


def test_blockers_that_are_nobodys_lease() -> None:
    draining = job(phase=Phase.DRAINING, versions={1: 3})

    def words(*events: Event) -> str:
        return " ".join(report(seen(draining, *events), NOW)["jobs"][0]["waits_for"])

    assert "away" in words(ledger({}), Unreachable("ledger", "no"))
    assert "grace" in words(ledger({}, ready=False))
    paused = job(phase=Phase.DRAINING, status=Status.PAUSED)
    assert "resume 2" in report(seen(paused), NOW)["jobs"][0]["waits_for"][0]
    postponed = job(step=JOB.point, settings={"postpone": 1})
    (told,) = report(seen(postponed), NOW)["jobs"]
    assert told["postponed"]
    assert "jobs complete 2" in told["waits_for"][0]
