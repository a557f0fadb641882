"""Tables and jobs in the view: versions, progress, checks, what Spark says of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from leasehold.admin.fold import RECENT_CHECKS_MAX, RECENT_EVENTS_MAX, fold
from leasehold.admin.job_report import SPARK_SILENT_SAID_MS
from leasehold.admin.report import (
    CHECKS_TOLD_MAX,
    report,
)
from leasehold.admin.sender_clocks import SPARK
from leasehold.admin.troubles import troubles_of
from leasehold.admin.view import LOG_TIME, ClusterView, Heard, TopicEnds
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.job import Phase, Status, Step, job_from_wire
from leasehold.catalog.states import State
from leasehold.cli.job_watch import rows_words
from leasehold.lease.replies import Holding
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import (
    FAILING,
    JobEvent,
    JobProgress,
)
from leasehold.model.records.log import CheckSlice
from leasehold.values.types import Type
from tests.support.admin.view_events import JOB, NOW, SECOND, ack, job, ledger, seen, version
from tests.support.schema_change.made_job import INDEX_ID, report_of


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


def test_ages_of_a_job_are_by_the_logs_time_and_spark_is_heard_by_ours() -> None:
    """The master's clock is ten minutes ahead, that of Spark's driver ten behind."""
    ten = 600 * SECOND
    begun_us = NOW + ten
    marks = ((1, Phase.BACKFILLING.value, begun_us),)
    backfilling = {"step": 1, "phase": Phase.BACKFILLING, "run": 1, "marks": marks, "rows": 1_000}
    going = job(**backfilling, created_us=begun_us)._replace(commit_us=begun_us)
    progress = JobProgress(2, 1, 700, 7, 100.0, "reading", NOW - ten)
    heard = Heard(LOG_TIME, ten), Heard(SPARK, -ten)
    view = seen(going, progress, *heard)
    (told,) = report(view, NOW + 3 * SECOND)["jobs"]
    assert (told["phase_ms"], told["age_ms"], told["waits_for"]) == (3_000, 3_000, [])
    (told,) = report(view, NOW + 20 * SECOND)["jobs"]
    assert told["phase_ms"] == 20_000
    assert told["waits_for"] == ["Spark has stopped telling of run 1 of the backfill, for 20.0 s"]


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
    alone: dict[str, Any] = {**at, "step": 0, "steps": (Step((), (), (INDEX_ID,)), Step(()))}
    walk = [
        report(seen(table, job(**alone, look=look, looked=rows)), NOW)["jobs"][0]["fraction"]
        for rows in (0, 500, 1_000)
    ]
    assert walk == [0.25, 0.3125, 0.375], "where nothing is filled it is most of the step"
    late = NOW + 20 * SECOND
    said = report_of(job_from_wire(going.body), "r1", going.lsn - 1, 2)
    (words,) = report(seen(going, ack("r1"), said), late)["jobs"][0]["waits_for"]
    assert "node r1 is still verifying" in words, "it has told of the slice before"
    told_now = said._replace(lsn=going.lsn)
    assert report(seen(going, ack("r1"), told_now), late)["jobs"][0]["waits_for"] == []


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
