"""The fold of everything that travels into one view, and the report made of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.admin.job_report import SPARK_SILENT_SAID_MS
from leasehold.admin.report import (
    CHANGEFEED_SILENT_SAID_MS,
    CHECKS_TOLD_MAX,
    report,
)
from leasehold.admin.view import (
    COPIES_MAX,
    HELD_BACK_MAX,
    RATE_SECONDS_MAX,
    RECENT_CHECKS_MAX,
    RECENT_EVENTS_MAX,
    SILENT_AFTER_US,
    ClaimSeen,
    ClusterView,
    Event,
    LedgerSeen,
    LogSeen,
    Reachable,
    TopicEnds,
    TopicsRead,
    Unreachable,
    fold,
)
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.job import Phase, Status, job_from_wire
from leasehold.catalog.states import State
from leasehold.cli.job_watch import rows_words
from leasehold.cli.status import copy_words, troubles_of
from leasehold.lease.replies import Holding, SessionStatus, SnapshotReport, TableStatus
from leasehold.model.records.acks import AccessReport, Ack, CheckReport, HoldingReport
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import (
    FAILING,
    ChangefeedReport,
    JobEvent,
    JobProgress,
    SparkReport,
)
from leasehold.model.records.log import CheckSlice, JobForgotten
from leasehold.replication.log.truncation import COPY_ROLE, copy_name
from leasehold.values.types import Type
from tests.support.schema_change.made_job import INDEX_ID, index_job, report_of

NOW = 1_000_000_000_000_000
SECOND = 1_000_000
JOB = index_job(2, 1, table="flights", versions={}, created_us=NOW)


def seen(*events: Event, now_us: int = NOW) -> ClusterView:
    view = ClusterView()
    for event in events:
        view = fold(view, event, now_us)
    return view


def log(offset: int, *, epoch: int = 1, lsn: int = 10, commits: int = 1, **more: Any) -> LogSeen:
    fields: dict[str, Any] = {
        "commit_us": NOW - SECOND,
        "refusals": 0,
        "dead_letters": 0,
        "decided_through": {"requests": 5},
        "answered_through": 0,
        **more,
    }
    return LogSeen(offset, epoch, 1, lsn, commits=commits, **fields)


def ack(node: str, role: str = "replicant", *, coherent: bool = True, **more: Any) -> Ack:
    fields: dict[str, Any] = {"offset": 4, "epoch": 1, "lsn": 10, "sent_us": NOW, **more}
    return Ack(
        node, b"", role, fields["offset"], fields["epoch"], fields["lsn"], 0, coherent, "",
        fields["sent_us"],
    )  # fmt: skip


def version(number: int, *columns: Column) -> VersionEvent:
    first = Column(1, "id", Type("integer"), nullable=False)
    body = Descriptor(1, "flights", number, (first, *columns), (1,)).to_wire()
    return VersionEvent(1, "flights", number, number, NOW, body, 0, "")


def job(**changes: Any) -> JobEvent:
    changed = replace(JOB, **changes)
    return JobEvent(changed.job_id, changes.get("step", 0) + 5, NOW, changed.to_wire())


def ledger(
    holders: dict[int, tuple[Holding, ...]],
    *,
    ready: bool = True,
    sessions: tuple[tuple[int, int, bool], ...] = (),
) -> LedgerSeen:
    """`sessions`: id, renewals, whether it is expiring."""
    tables = (TableStatus(1, 3, 2, 0, ((2, 1), (3, 4))),)
    seen = tuple(SessionStatus(s, "pricing", count, 1, expiring) for s, count, expiring in sessions)
    return LedgerSeen(SnapshotReport("run", 1, True, ready, seen, tables), holders)


# --- the log ---------------------------------------------------------------------------------


def test_a_claim_names_the_master_and_the_first_of_two_wins() -> None:
    view = seen(ClaimSeen(3, 2, "m1"), ClaimSeen(4, 2, "m2"), log(5, epoch=2))
    assert (view.log.master, view.log.epoch, view.log.end) == ("m1", 2, 6)


def test_a_deposed_master_changes_nothing() -> None:
    view = seen(ClaimSeen(3, 2, "m2"), log(4, epoch=2, lsn=50), log(5, epoch=1, lsn=51))
    assert view.log.lsn == 50
    assert view.log.end == 5


def test_the_logs_time_is_beside_the_masters_clock() -> None:
    """It rises with commits and with what is closed, and falls at a reset alone."""
    known: list[Event] = [
        log(5, closed_us=NOW + 7 * SECOND, id_horizon_us=NOW - 90),
        ack("m1", "master"),
    ]
    told = report(seen(*known, log(6)), NOW)["log"]
    assert (told["time_us"], told["id_horizon_us"]) == (NOW + 7 * SECOND, NOW - 90)
    assert (told["master_clock_us"], told["ahead_ms"]) == (NOW, 7_000)
    reset = log(7, commit_us=NOW, closed_us=NOW + 5, reset_us=NOW - 1, id_horizon_us=NOW - 100)
    view = seen(*known, log(6, commit_us=NOW + 7 * SECOND), reset)
    told = report(view, NOW)["log"]
    assert (told["time_us"], told["id_horizon_us"]) == (NOW + 5, NOW - 100)
    assert [second.at for second in view.seconds] == [NOW // SECOND]
    assert report(seen(log(5)), NOW)["log"]["ahead_ms"] is None


def test_without_its_claim_in_sight_the_master_is_known_by_its_ack() -> None:
    assert seen(log(9), ack("m1", "master")).log.master == "m1"
    assert seen(ack("m1", "master"), log(9)).log.master == "m1"
    assert seen(ack("m1", "master", epoch=0), log(9)).log.master == ""


def test_a_record_read_twice_is_counted_once() -> None:
    view = seen(log(5, commits=3), log(5, commits=3), log(6, commits=2, refusals=3, dead_letters=1))
    assert (view.committed, view.refused, view.dead_lettered) == (5, 2, 1)


def test_rates_are_of_whole_seconds_and_bounded() -> None:
    view = ClusterView()
    for number in range(2 * RATE_SECONDS_MAX):
        at_us = NOW + number * SECOND
        view = fold(view, log(number + 1, commits=10, commit_us=at_us), at_us)
    assert len(view.seconds) <= RATE_SECONDS_MAX + 1
    told = report(view, NOW + 2 * RATE_SECONDS_MAX * SECOND)["rates"]
    assert told["committed_per_second"] == 10
    assert len(told["last_minute"]) == RATE_SECONDS_MAX
    assert told["last_minute"][-1] == [10, 0, 0]


def test_l3_a_record_tells_of_its_own_queues_only() -> None:
    ends = TopicEnds({"requests": 9, "backfill": 4})
    view = seen(log(1, decided_through={"requests": 5}), log(2, decided_through={}), ends)
    told = {queue["lane"]: queue["waiting"] for queue in report(view, NOW)["lanes"]}
    assert told == {"requests": 4, "backfill": None}


# --- nodes -----------------------------------------------------------------------------------


def test_coherency_lag_and_since_when() -> None:
    late = NOW + 2 * SECOND
    view = seen(
        log(9, lsn=30),
        ack("m1", "master"),
        ack("r1", offset=10, lsn=30),
        ack("r2"),
        ack("r2", coherent=False, sent_us=NOW + SECOND),
        ack("r2", coherent=False, sent_us=late),
        ack("m2", "standby", coherent=False),
        now_us=late,
    )
    told = {node["node"]: node for node in report(view, late)["nodes"]}
    assert told["m1"]["coherency"] == "coherent"
    assert told["r1"]["lag_records"] == 0
    assert told["r2"]["coherency"] == "incoherent"
    assert told["r2"]["for_ms"] == 1_000
    assert (told["r2"]["lag_records"], told["r2"]["lag_lsn"]) == (6, 20)
    assert told["m2"]["coherency"] == "follows"


def test_a_node_that_asks_nobody_who_he_is_is_shown_as_open() -> None:
    words = "open: who comes to 127.0.0.1:5432 is asked for no password"
    view = seen(ack("r1"), ack("r2"), AccessReport("r1", words, NOW), AccessReport("r1", "", 0))
    shown = {node["node"]: node["open"] for node in report(view, NOW)["nodes"]}
    assert shown == {"r1": words, "r2": ""}
    later = fold(view, ack("r1", sent_us=NOW + 60 * SECOND), NOW + 60 * SECOND)
    told = report(later, NOW + 60 * SECOND)["nodes"]
    assert [node["open"] for node in told] == ["", ""], "it asks since, and says nothing more"


def test_who_begins_from_a_copy_is_shown_while_the_log_is_kept_for_it() -> None:
    name = copy_name("r1", "r3")
    view = seen(log(29), ack("r1", offset=30), ack(name, COPY_ROLE, offset=9))
    assert [node["node"] for node in report(view, NOW)["nodes"]] == ["r1"]
    (told,) = report(view, NOW)["copies"]
    assert copy_words(told) == "r3 takes a copy of r1's store: the log is kept for it from offset 9"
    assert told["lag_records"] == 21
    (told,) = report(view, NOW + 60 * SECOND)["copies"]
    assert copy_words(told) == (
        "r3 has taken a copy of r1's store: the log is kept for it from offset 9, 9 min more"
    )
    assert not report(view, NOW + 600 * SECOND)["copies"]
    for number in range(COPIES_MAX):
        view = fold(view, ack(copy_name("r1", f"n{number}"), COPY_ROLE, sent_us=NOW + 1), NOW)
    assert len(view.copies) == COPIES_MAX
    assert name not in view.copies


def test_a_node_that_is_not_heard_is_silent() -> None:
    view = seen(ack("r1"))
    (told,) = report(view, NOW + SILENT_AFTER_US + 1)["nodes"]
    assert told["coherency"] == "silent"
    assert told["for_ms"] == SILENT_AFTER_US // 1_000


def test_a_node_is_not_silent_because_the_watcher_has_not_read_on() -> None:
    """Ages are those at the last reading; that it lies back is said in words instead."""
    view = seen(ack("r1"), TopicsRead({}))
    late = NOW + 40 * SECOND
    told = report(view, late)
    assert told["nodes"][0]["coherency"] == "coherent"
    assert (told["nodes"][0]["age_ms"], told["as_of_us"], told["now_us"]) == (0, NOW, late)
    assert told["gaps"] == ["the topics were last read 40 s ago"]
    assert troubles_of(told)[0].startswith("not all is known: the topics were last read 40 s ago")
    (told_again,) = report(fold(view, TopicsRead({}), late), late)["nodes"]
    assert told_again["coherency"] == "silent", "read on, and nothing was heard of it"


def test_topics_that_were_not_read_to_their_ends_are_named() -> None:
    view = seen(ack("r1"), TopicsRead({"jobs": 12_000, "acks": -1}))
    assert report(view, NOW)["gaps"] == [
        "topic acks is still being read",
        "topic jobs is still being read, about 12,000 records are left",
    ]
    assert report(fold(view, TopicsRead({}), NOW), NOW)["gaps"] == []
    assert report(seen(ack("r1")), NOW)["gaps"] == [], "a view that is told of everything at once"


def test_an_older_ack_does_not_overtake_a_newer_one() -> None:
    view = seen(ack("r1", lsn=20), ack("r1", lsn=10, sent_us=NOW - 1))
    assert view.nodes["r1"].ack.lsn == 20


# --- tables and jobs -------------------------------------------------------------------------


def test_versions_come_once_newest_first_and_bounded() -> None:
    events = [version(number + 1) for number in range(RECENT_EVENTS_MAX + 5)]
    view = seen(*events, events[0])
    told = report(view, NOW)["versions"]
    assert len(told) == RECENT_EVENTS_MAX
    assert told[0]["version"] == RECENT_EVENTS_MAX + 5


def test_progress_may_come_before_its_job_and_of_another_run_it_says_nothing() -> None:
    progress = JobProgress(2, 1, 700, 7, 100.0, "reading", NOW)
    backfilling = {"step": 1, "phase": Phase.BACKFILLING, "run": 1}
    ends = TopicEnds({"rows/1": 1_000})
    (told,) = report(seen(progress, job(**backfilling), ends), NOW)["jobs"]
    assert (told["rows"], told["rows_total"], told["eta_s"]) == (700, 1_000, 3.0)
    (told,) = report(seen(progress, job(**{**backfilling, "run": 2}), ends), NOW)["jobs"]
    assert (told["rows"], told["eta_s"]) == (0, None)


def test_rows_and_time_left_by_what_the_job_counted_and_recent_ones_took() -> None:
    backfilling = {"step": 1, "phase": Phase.BACKFILLING, "run": 1, "rows": 10_000}
    (told,) = report(seen(job(**backfilling)), NOW)["jobs"]
    assert (told["rows_total"], told["eta_s"], told["ends_in_s"]) == (10_000, None, None)
    (told,) = report(seen(job(**backfilling, settings={"rows_per_second": 500})), NOW)["jobs"]
    assert told["eta_s"] == 20.0, "no quicker than was allowed"
    marks = [(1, Phase.PUBLISHING, 0), (1, Phase.BACKFILLING, 1), (1, Phase.VERIFYING, 3)]
    marks += [(2, Phase.PUBLISHING, 4), (2, Phase.DONE, 5)]
    ended = replace(
        JOB,
        job_id=JOB.job_id - 1,
        status=Status.SUCCEEDED,
        rows=2_000,
        marks=tuple((step, phase.value, at * SECOND) for step, phase, at in marks),
    )
    earlier = JobEvent(ended.job_id, 1, NOW, ended.to_wire())
    _, told = report(seen(earlier, job(**backfilling)), NOW)["jobs"]
    # 1,000 rows/s to fill, 2,000 to verify, and a second for the leases of the step after.
    assert (told["eta_s"], told["ends_in_s"]) == (10.0, 10.0 + 5.0 + 1.0)
    _, told = report(seen(earlier, job(**backfilling, settings={"postpone": 1})), NOW)["jobs"]
    assert (told["eta_s"], told["ends_in_s"]) == (10.0, None), "a person may take for ever"
    held = ledger({1: (Holding(1, 2, 77, "pricing"),)})
    draining = job(phase=Phase.DRAINING, versions={1: 3}, rows=10)
    assert report(seen(earlier, draining), NOW)["jobs"][1]["ends_in_s"] is not None
    assert report(seen(earlier, draining, held), NOW)["jobs"][1]["ends_in_s"] is None
    again = tuple((1, Phase.VERIFYING.value, at) for at in range(3))
    (told,) = report(seen(job(step=1, phase=Phase.VERIFYING, marks=again)), NOW)["jobs"]
    assert told["attempts"] == 3


def test_fractions_only_rise_on_the_way() -> None:
    way: list[dict[str, Any]] = [
        {"step": step, "phase": phase, "rows_read": rows}
        for step, phase, rows in (
            (0, Phase.PUBLISHING, 0),
            (0, Phase.DRAINING, 0),
            (1, Phase.PUBLISHING, 0),
            (1, Phase.DRAINING, 0),
            (1, Phase.BACKFILLING, 0),
            (1, Phase.BACKFILLING, 500),
            (1, Phase.BACKFILLING, 5_000),
            (1, Phase.VERIFYING, 5_000),
            (2, Phase.PUBLISHING, 5_000),
            (2, Phase.DRAINING, 5_000),
            (2, Phase.DONE, 5_000),
        )
    ]
    ends = TopicEnds({"rows/1": 1_000})
    done = [report(seen(job(**at), ends), NOW)["jobs"][0]["fraction"] for at in way]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] == 1
    (told,) = report(seen(job(status=Status.SUCCEEDED, step=2)), NOW)["jobs"]
    assert told["fraction"] == 1


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


def test_an_older_word_does_not_overtake_and_what_is_kept_is_bounded() -> None:
    view = seen(held_back(users=1), held_back(users=2, sent_us=NOW - 1))
    assert [said.users for said in view.held_back.values()] == [1]
    many = [held_back(version=n, sent_us=NOW + n) for n in range(HELD_BACK_MAX + 9)]
    assert min(version for _, _, version in seen(*many).held_back) == 9


def test_a_check_is_whole_however_many_tables_and_nodes_answer_it() -> None:
    view = ClusterView()
    some = CheckReport(b"one", "n", b"", 5, 5, 1, 1, 9, {}, b"", 0, (), 1, "")._replace(
        subject=b"barrier"
    )
    asked = {(f"n{node}", table) for node in range(5) for table in range(40)}
    for node, table in sorted(asked):
        view = fold(view, some._replace(node=node, table_id=table), 0)
        view = fold(view, some._replace(subject=b"job", node=node), 0)
    assert view.checks[b"barrier"].keys() == asked
    assert [list(view.checks), len(view.checks[b"job"])] == [[b"barrier", b"job"], 5]
    told = report(view, 0)["checks"]
    assert len(told) == CHECKS_TOLD_MAX
    assert [check["subject"] for check in told[:6]] == [b"job".hex()] * 5 + [b"barrier".hex()]


def test_of_a_node_and_table_the_newest_report_counts_and_old_checks_are_forgotten() -> None:
    view = ClusterView()
    some = CheckReport(b"one", "n", b"", 5, 5, 1, 1, 9, {}, b"", 0, (), 1)
    view = fold(fold(view, some, 0), some._replace(lsn=6), 0)
    assert [check.lsn for check in view.checks[some.subject].values()] == [6]
    for number in range(RECENT_CHECKS_MAX):
        view = fold(view, some._replace(subject=b"%d" % number), 0)
    assert list(view.checks) == [b"%d" % number for number in range(RECENT_CHECKS_MAX)]


@pytest.mark.parametrize("phase", [Phase.BACKFILLING, Phase.VALIDATING])
def test_a_job_at_which_spark_fails_says_why_and_so_does_the_status(phase: Phase) -> None:
    at = {"step": 1, "run": 1, "marks": ((1, phase.value, NOW),), "phase": phase}
    why = "java.io.IOException: No space left on device"
    failing = JobProgress(2, 1, 0, 0, 0.0, FAILING + why, NOW)

    def told(*events: Any, after_s: int = 20) -> tuple[str, str]:
        """What the job waits for, and what the status says of Spark."""
        whole = report(seen(*events), NOW + after_s * SECOND)
        troubles = [words for words in troubles_of(whole) if words.startswith("Spark")]
        return " ".join(whole["jobs"][0]["waits_for"]), " ".join(troubles)

    waits, trouble = told(job(**at), failing)
    assert waits == f"Spark fails at run 1 of the {WORK[phase]} and tries again: {why}"
    assert trouble == f"Spark fails at job 2 on flights and tries again: {why}"
    assert "stopped telling" in told(job(**at), failing, after_s=60)[0], "it tries every 30 s"
    again = failing._replace(phase="backfilling", sent_us=NOW + 1)
    assert told(job(**at), failing, again, after_s=1) == ("", "")
    assert told(job(**{**at, "run": 2}), failing, after_s=1) == ("", ""), "of another run"
    assert told(job(**at, status=Status.PAUSED), failing)[1] == ""


WORK = {Phase.BACKFILLING: "backfill", Phase.VALIDATING: "validation"}


def test_a_backfill_and_a_verification_say_who_is_silent() -> None:
    at = {"step": 1, "run": 1, "marks": ((1, "backfilling", NOW),)}
    late = NOW + 20 * SECOND
    backfilling = job(phase=Phase.BACKFILLING, **at)
    (words,) = report(seen(backfilling), late)["jobs"][0]["waits_for"]
    assert "has not begun run 1" in words
    progress = JobProgress(2, 1, 700, 7, 100.0, "reading", NOW + SECOND)
    (words,) = report(seen(backfilling, progress), late)["jobs"][0]["waits_for"]
    assert "has stopped telling of run 1 of the backfill, for 19.0 s" in words
    assert report(seen(backfilling, progress), NOW)["jobs"][0]["waits_for"] == []
    validating = job(phase=Phase.VALIDATING, **at)
    (words,) = report(seen(validating), late)["jobs"][0]["waits_for"]
    assert "has not begun run 1 of the validation" in words
    verifying = job(phase=Phase.VERIFYING, **at)
    (words,) = report(seen(verifying, ack("r1"), ack("r2", coherent=False)), late)["jobs"][0][
        "waits_for"
    ]
    assert "node r1 is still verifying" in words


def test_spark_is_not_blamed_for_the_time_that_a_job_was_paused() -> None:
    marks = ((1, Phase.BACKFILLING.value, NOW),)
    backfilling = {"step": 1, "phase": Phase.BACKFILLING, "run": 1, "marks": marks}
    progress = JobProgress(2, 1, 700, 7, 100.0, "reading", NOW)
    resumed_us = NOW + 3_600 * SECOND
    resumed = job(**backfilling)._replace(commit_us=resumed_us)

    def said(after_us: int) -> list[str]:
        (told,) = report(seen(progress, resumed), resumed_us + after_us)["jobs"]
        return list(told["waits_for"])

    assert said(SECOND) == []
    (words,) = said((SPARK_SILENT_SAID_MS + 1_000) * 1_000)
    assert words == "Spark has stopped telling of run 1 of the backfill, for 16.0 s"


def test_a_verification_in_slices_tells_how_far_it_is_and_who_is_late_with_its_slice() -> None:
    at: dict[str, Any] = {"phase": Phase.VERIFYING, "step": 1, "run": 1, "rows": 1_000}
    look = CheckSlice(0, (250,), 250)
    marks = ((1, "verifying", NOW - 10 * SECOND),)
    going = job(**at, look=look, looked=250, marks=marks)
    columns = (Column(1, "id", Type("integer"), nullable=False), Column(3, "a", Type("integer")))
    being_made = Index(INDEX_ID, "i2", (3,), state=State.WRITE_ONLY)
    body = Descriptor(1, "flights", 2, columns, (1,), (being_made,), 10).to_wire()
    table = VersionEvent(1, "flights", 2, 2, NOW, body, 0, "")
    (told,) = report(seen(table, going, ack("r1")), NOW)["jobs"]
    assert (told["rows"], told["rows_total"], told["in_slices"]) == (250, 2_000, True)
    assert (told["rows_per_second"], told["eta_s"]) == (25.0, 70.0)
    assert rows_words(told) == "250 of about 2,000"
    done = report(seen(table, job(**at)), NOW)["jobs"][0]["fraction"]
    assert done < told["fraction"] < 1
    late = NOW + 20 * SECOND
    said = report_of(job_from_wire(going.body), "r1", going.lsn - 1, 2)
    (words,) = report(seen(going, ack("r1"), said), late)["jobs"][0]["waits_for"]
    assert "node r1 is still verifying" in words, "it has told of the slice before"
    told_now = said._replace(lsn=going.lsn)
    assert report(seen(going, ack("r1"), told_now), late)["jobs"][0]["waits_for"] == []


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


def test_a_job_tells_whether_it_can_be_taken_back_and_which_rows_failed_it() -> None:
    (told,) = report(seen(job(step=JOB.point)), NOW)["jobs"]
    assert (told["can_cancel"], told["point_of_no_return"]) == (True, JOB.point + 1)
    (told,) = report(seen(job(step=JOB.point, phase=Phase.DRAINING)), NOW)["jobs"]
    assert not told["can_cancel"]
    findings = ((4, 9, (7,), "entry missing"), (4, 9, (b"\x07", 8), "of another key"))
    failed = job(status=Status.FAILED, phase=Phase.DONE, error="e", findings=findings)
    (told,) = report(seen(version(3), failed), NOW)["jobs"]
    assert told["findings"][0] == {
        "condition": 4,
        "element": 9,
        "key": [7],
        "words": "entry missing",
    }
    json.dumps(told)  # whatever a key holds


def test_leases_tell_old_from_current() -> None:
    told = report(seen(version(3), ledger({1: (Holding(1, 2, 7, "a"),)})), NOW)["leases"]
    assert [(v["version"], v["old"], v["agents"]) for v in told[0]["versions"]] == [
        (2, True, ["a"]),
        (3, False, []),
    ]


# --- reach -----------------------------------------------------------------------------------


def test_what_is_away_is_said_until_it_is_back() -> None:
    view = seen(Unreachable("kafka", "no broker"), Unreachable("ledger", "no redis"))
    assert set(view.unreachable) == {"kafka", "ledger"}
    assert report(view, NOW)["ledger"]["state"] == "away"
    view = fold(fold(view, Reachable("kafka"), NOW), ledger({}), NOW)
    assert view.unreachable == {}
    assert report(view, NOW)["ledger"]["state"] == "ready"


def spark_troubles(view: ClusterView, now_us: int) -> list[str]:
    return [each for each in troubles_of(report(view, now_us)) if "Spark" in each]


def test_spark_is_silent_once_it_is_not_heard_and_of_none_nothing_is_said() -> None:
    none = seen()
    assert report(none, NOW)["spark"] is None
    assert spark_troubles(none, NOW) == []
    view = seen(SparkReport(NOW, ""))
    heard_until = NOW + SPARK_SILENT_SAID_MS * 1_000
    assert spark_troubles(view, heard_until) == []
    late = heard_until + 1_000
    assert report(view, late)["spark"]["silent"]
    (words,) = spark_troubles(view, late)
    assert words.startswith("Spark is silent for 15.0 s")
    assert spark_troubles(fold(view, SparkReport(late, ""), late), late) == []


def test_a_changefeed_is_silent_once_it_is_not_heard_and_of_none_nothing_is_said() -> None:
    assert report(seen(), NOW)["changefeed"] is None
    view = seen(ChangefeedReport(NOW, 40, 9))
    heard_until = NOW + CHANGEFEED_SILENT_SAID_MS * 1_000
    assert not report(view, heard_until)["changefeed"]["silent"]
    late = heard_until + 1_000
    (words,) = [each for each in troubles_of(report(view, late)) if "changefeed" in each]
    assert words.startswith("the changefeed is silent for 15.0 s: ")
    assert "stop at LSN 9" in words
    again = report(fold(view, ChangefeedReport(late, 41, 9), late), late)["changefeed"]
    assert (again["silent"], again["offset"]) == (False, 41)


def test_how_far_a_changefeed_is_behind_is_counted_in_records_of_the_log() -> None:
    view = fold(seen(ChangefeedReport(NOW, 40, 9)), log(45, lsn=12), NOW)
    assert report(view, NOW)["changefeed"]["lag_records"] == 6


def test_spark_says_why_it_retries_nothing() -> None:
    view = seen(SparkReport(NOW, "no checkpoint"))
    assert spark_troubles(view, NOW) == [
        "Spark does not retry requests just now: no checkpoint",
    ]


EVENTS: list[Event] = [
    log(1),
    log(2, epoch=2),
    ClaimSeen(3, 3, "m1"),
    ack("r1"),
    ack("m1", "master", coherent=False),
    version(1),
    version(2),
    job(),
    job(step=1, phase=Phase.BACKFILLING),
    JobProgress(2, 0, 5, 1, 3.0, "reading", NOW),
    SparkReport(NOW, "x"),
    ChangefeedReport(NOW, 3, 2),
    ledger({1: (Holding(1, 2, 7, "a"),)}),
    Unreachable("kafka", "x"),
    TopicEnds({"rows/1": 9, "requests": 8}),
]


@given(st.lists(st.sampled_from(EVENTS), max_size=25))
def test_any_order_gives_a_report_that_json_can_hold(events: list[Event]) -> None:
    view = seen(*events)
    told = report(view, NOW)
    assert json.loads(json.dumps(told)) == told
    assert all(0 <= one["fraction"] <= 1 for one in told["jobs"])
    assert all(queue["waiting"] is None or queue["waiting"] >= 0 for queue in told["lanes"])


def test_a_job_that_is_forgotten_is_shown_no_more() -> None:
    some = JobEvent(7, 1, NOW, index_job(7, 1).to_wire())
    other = some._replace(job_id=8, body=index_job(8, 1).to_wire())
    progress = JobProgress(7, 1, 10, 1, 1.0, "backfilling", NOW)
    view = seen(some, other, progress)
    assert (set(view.jobs), set(view.progress)) == ({7, 8}, {7})
    view = fold(view, JobForgotten(7), NOW)
    assert (set(view.jobs), set(view.progress)) == ({8}, set())
    assert fold(view, JobForgotten(7), NOW) == view
