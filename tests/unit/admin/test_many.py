"""A view of thousands of tables and jobs: what is shown of them, and how much is decoded for it."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.admin import view as view_module
from leasehold.admin.job_report import ENDED_TOLD_MAX, jobs_report, one_job_report
from leasehold.admin.report import report
from leasehold.admin.view import ClusterView, Event, fold, fold_all
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.job import Job, Phase, Status, Step, job_from_wire
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import JobEvent
from leasehold.model.records.log import JobForgotten
from leasehold.schema_change.job.estimate import RECENT_JOBS_MAX

TABLES = 300
JOBS = 1_000
DAY_US = 24 * 3_600_000_000
NOW = 10 * DAY_US


def version(table: int, lsn: int = 1, number: int = 1) -> VersionEvent:
    body = Descriptor(table, f"t{table}", number, (), ()).to_wire()
    return VersionEvent(table, f"t{table}", number, lsn, lsn, body, 0, "")


def job(number: int, status: Status, table: int = 1, at_us: int = NOW, kind: str = "k") -> JobEvent:
    phase = Phase.DONE if status.ended else Phase.PUBLISHING
    made = Job(
        number, "", table, f"t{table}", b"", kind, "s", (Step(()),), 0, phase=phase,
        status=status, versions={table: 2}, marks=((0, phase.value, at_us),),
    )  # fmt: skip
    return JobEvent(number, number, at_us, made.to_wire())


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many tables and jobs are decoded."""
    counts = {"tables": 0, "jobs": 0}

    def counting(name: str, real: Any) -> Any:
        def decode(body: Any) -> Any:
            counts[name] += 1
            return real(body)

        return decode

    monkeypatch.setattr(view_module, "from_wire", counting("tables", from_wire))
    monkeypatch.setattr(view_module, "job_from_wire", counting("jobs", job_from_wire))
    return counts


def seen(*events: Event) -> ClusterView:
    return fold_all(ClusterView(), events, NOW)


def many() -> ClusterView:
    ended = (job(n, Status.SUCCEEDED, n % TABLES) for n in range(1, JOBS))
    return seen(*map(version, range(TABLES)), *ended, job(JOBS, Status.RUNNING, 7))


def numbers(view: ClusterView) -> list[int]:
    return [told["job"] for told in report(view, NOW)["jobs"]]


def test_reading_decodes_no_job_that_has_ended(decoded: dict[str, int]) -> None:
    """The others it does: what can't be decoded is left out as it comes."""
    view = many()
    assert (len(view.tables), len(view.jobs)) == (TABLES, JOBS)
    assert decoded == {"tables": TABLES, "jobs": 1}


def test_a_report_decodes_what_it_tells_of(decoded: dict[str, int]) -> None:
    told = report(many(), NOW, tables_max=20)
    assert len(told["tables"]) == 20
    assert (told["tables_there"], told["jobs_ended"]) == (TABLES, JOBS - 1)
    assert [one["job"] for one in told["jobs"]] == list(range(JOBS - ENDED_TOLD_MAX, JOBS + 1))
    assert decoded["jobs"] <= len(told["jobs"]) + RECENT_JOBS_MAX
    assert decoded["tables"] == TABLES


def test_one_job_is_told_of_alone(decoded: dict[str, int]) -> None:
    view = many()
    told = one_job_report(view, 5, NOW)
    assert told is not None
    assert told["job"] == 5
    assert one_job_report(view, JOBS + 1, NOW) is None
    running = 1
    assert decoded["jobs"] <= running + 1 + RECENT_JOBS_MAX


def test_all_jobs_are_told_of_where_all_are_asked_for() -> None:
    assert [told["job"] for told in jobs_report(many(), NOW)] == list(range(1, JOBS + 1))


def test_the_tables_shown_are_those_that_change_then_the_newest() -> None:
    view = seen(*(version(n, lsn=n) for n in range(TABLES)), job(1, Status.RUNNING, 7))
    told = report(view, NOW, tables_max=3)["tables"]
    assert [one["table_id"] for one in told] == [7, TABLES - 2, TABLES - 1]


def test_failures_of_the_last_day_are_told_of_with_who_has_mended_them() -> None:
    """However many others have ended since, so that nobody is told of what is settled."""
    others = [job(n, Status.SUCCEEDED, 9, kind="other") for n in range(1_000, 1_200)]
    failed = job(10, Status.FAILED, at_us=NOW - 1)
    assert numbers(seen(failed, *others))[0] == 10
    again = [job(n, Status.SUCCEEDED) for n in (20, 30)]
    assert numbers(seen(failed, *again, *others))[:2] == [10, 30]
    old = job(10, Status.FAILED, at_us=NOW - DAY_US - 1)
    assert numbers(seen(old, *others))[0] == 1_100


def test_events_together_are_what_they_are_one_by_one() -> None:
    check = CheckReport(b"1", "r1", b"", 5, 5, 1, 1, 9, {}, b"", 0, (), 1, "")
    events: list[Event] = [
        *(version(1), version(2), version(1, 5, 2), version(1, 3, 1)),
        *(job(1, Status.RUNNING), job(2, Status.RUNNING), job(1, Status.SUCCEEDED)),
        *(JobForgotten(2), check, check._replace(node="r2"), check._replace(subject=b"2"), check),
    ]
    one_by_one = ClusterView()
    for event in events:
        one_by_one = fold(one_by_one, event, NOW)
    assert seen(*events) == one_by_one
    assert list(one_by_one.checks) == [b"2", b"1"], "the one heard of last at the end"


def test_a_view_that_was_given_out_does_not_change() -> None:
    check = CheckReport(b"1", "r1", b"", 5, 5, 1, 1, 9, {}, b"", 0, (), 1, "")
    view = seen(version(1), job(1, Status.RUNNING), check)
    kept = (dict(view.tables), dict(view.jobs), {s: dict(of) for s, of in view.checks.items()})
    fold_all(view, [version(2), job(2, Status.RUNNING), check._replace(node="r2")], NOW)
    assert (view.tables, view.jobs, view.checks) == kept


@pytest.mark.parametrize("status", ["running", "succeeded"])
def test_what_cannot_be_decoded_is_left_out_and_nothing_else(status: str) -> None:
    left_out: list[Event] = []
    bad: list[Event] = [
        version(2)._replace(body={"state": "public"}),
        JobEvent(3, 3, NOW, {"status": status, "job": 3}),
        JobEvent(4, 4, NOW, {}),
    ]
    good: list[Event] = [version(1), job(1, Status.RUNNING), job(2, Status.SUCCEEDED)]
    events = [event for pair in zip(bad, good, strict=True) for event in pair]
    view = fold_all(ClusterView(), events, NOW, lambda event, _: left_out.append(event))
    assert [table["table_id"] for table in report(view, NOW)["tables"]] == [1]
    assert numbers(view) == [1, 2]
    assert one_job_report(view, 3, NOW) is None
    assert bad[0] in left_out
    assert bad[2] in left_out
