"""The fold of everything that travels into one view, and the report made of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.admin.fold import CLAIMS_KEPT_MAX, COPIES_MAX, RATE_SECONDS_MAX, fold
from leasehold.admin.job_report import SPARK_SILENT_SAID_MS
from leasehold.admin.report import (
    CHANGEFEED_SILENT_SAID_MS,
    report,
)
from leasehold.admin.troubles import troubles_of
from leasehold.admin.view import (
    SILENT_AFTER_US,
    ClaimSeen,
    ClusterView,
    Event,
    Reachable,
    TopicEnds,
    TopicsRead,
    Unreachable,
)
from leasehold.catalog.job import Phase
from leasehold.cli.status import copy_words
from leasehold.lease.replies import Holding
from leasehold.model.records.acks import AccessReport
from leasehold.model.records.jobs import (
    ChangefeedReport,
    JobEvent,
    JobProgress,
    SparkReport,
)
from leasehold.model.records.log import JobForgotten
from leasehold.replication.log.truncation import COPY_ROLE, copy_name
from tests.support.admin.doctor_facts import node_report
from tests.support.admin.view_events import NOW, SECOND, ack, job, ledger, log, seen, version
from tests.support.schema_change.made_job import index_job

# --- the log ---------------------------------------------------------------------------------


def test_a_claim_names_the_master_and_the_first_of_two_wins() -> None:
    view = seen(ClaimSeen(3, 2, "m1"), ClaimSeen(4, 2, "m2"), log(5, epoch=2))
    assert (view.log.master, view.log.epoch, view.log.end) == ("m1", 2, 6)


def test_l1_a_claim_that_came_between_a_masters_records_changes_nothing() -> None:
    """Its candidate had not applied the last of them, so no reader counts it. Nodes acknowledge on
    in the master's term, and what the master writes is the log."""
    master = ack("m1", "master", epoch=2, offset=4)
    view = seen(log(3, epoch=2), master, ClaimSeen(4, 3, "m2"), log(5, epoch=2, lsn=51))
    assert (view.log.master, view.log.epoch, view.log.lsn) == ("m1", 2, 51)
    view = fold(view, ack("r1", epoch=2, offset=6), NOW)
    assert (view.log.master, view.log.epoch) == ("m1", 2)


@pytest.mark.parametrize("claim_first", [True, False])
def test_l1_a_claim_counts_once_a_node_has_acknowledged_in_its_term(claim_first: bool) -> None:
    claim, acked = ClaimSeen(4, 3, "m2"), ack("r1", epoch=3, offset=5)
    view = seen(log(3, epoch=2), ack("m1", "master", epoch=2, offset=4))
    for event in (claim, acked) if claim_first else (acked, claim):
        view = fold(view, event, NOW)
    assert (view.log.master, view.log.epoch, view.log.claims) == ("m2", 3, ())


def test_l1_of_two_claims_the_one_that_nodes_count_names_the_master() -> None:
    """The first was in vain, and the second, for the same term, follows what was applied."""
    view = seen(log(3, epoch=2), ClaimSeen(4, 3, "m2"), log(5, epoch=2), ClaimSeen(6, 3, "m3"))
    view = fold(view, ack("m3", "master", epoch=3, offset=7), NOW)
    assert (view.log.master, view.log.epoch) == ("m3", 3)
    assert fold(view, log(7, epoch=3, lsn=60), NOW).log.lsn == 60


def test_claims_that_nobody_counts_are_not_kept_without_bound() -> None:
    view = seen(log(1, epoch=2), *(ClaimSeen(at, 3, "m2") for at in range(2, 100)))
    assert len(view.log.claims) <= CLAIMS_KEPT_MAX
    assert view.log.epoch == 2


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
    view = seen(ack("r1"), ack("r2"), AccessReport("r1", words, NOW))
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


def test_a_node_whose_clock_was_set_back_is_heard() -> None:
    """Acknowledgements come in the order of their topic; what their clocks say orders nothing."""
    view = seen(ack("r1", lsn=10, sent_us=NOW + 600 * SECOND), ack("r1", lsn=20))
    assert view.nodes["r1"].ack.lsn == 20
    view = seen(node_report("m1", room="short", sent_us=NOW + 600 * SECOND), node_report("m1"))
    assert report(view, NOW)["disks"] == []


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


def test_a_changefeed_says_how_its_feeds_are() -> None:
    told = (("public.t", "failed", "a column is gone"), ("public.u", "on", ""))
    view = seen(ChangefeedReport(NOW, 40, 9, told))
    assert report(view, NOW)["changefeed"]["feeds"] == [
        {"table": "public.t", "status": "failed", "words": "a column is gone"},
        {"table": "public.u", "status": "on", "words": ""},
    ]


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


def test_a_disk_below_its_reserve_is_trouble_while_its_node_says_so() -> None:
    short = node_report("m1", room="short", free_bytes=9 << 20)
    view = seen(ack("m1", "master"), short, node_report("gone"))
    told = report(view, NOW)
    assert [(each["node"], each["room"]) for each in told["disks"]] == [("m1", "short")]
    (words,) = [each for each in troubles_of(told) if "reserve" in each]
    assert words.startswith("9 MiB are free on the disk of node m1's store")
    assert report(view, NOW + 31 * SECOND)["disks"] == []
    healed = seen(ack("m1"), short, node_report("m1", sent_us=NOW + 1))
    assert [each for each in troubles_of(report(healed, NOW)) if "reserve" in each] == []
