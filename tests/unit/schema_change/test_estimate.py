"""Estimates: from what jobs that have succeeded took, and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leasehold.catalog.job import Job, Phase, Status, Step
from leasehold.schema_change.job.estimate import (
    NOT_KNOWN,
    RECENT_JOBS_MAX,
    ROWS_BEYOND,
    Pace,
    WorkPace,
    measure_pace,
    seconds_left,
    total,
)
from tests.support.schema_change.made_job import index_job

US = 1_000_000


def ended(
    number: int,
    rows: int,
    backfill_s: float,
    verify_s: float = 1.0,
    lease_s: float = 0.5,
    **more: Any,
) -> Job:
    """One that published, drained, filled and verified in a single step."""
    marks = [(0, Phase.PUBLISHING.value, 0), (0, Phase.DRAINING.value, int(lease_s * US / 2))]
    at = int(lease_s * US)
    for phase, seconds in ((Phase.BACKFILLING, backfill_s), (Phase.VERIFYING, verify_s)):
        marks.append((0, phase.value, at))
        at += int(seconds * US)
    marks.append((0, Phase.DONE.value, at))
    given = {"status": Status.SUCCEEDED, "rows": rows, "marks": tuple(marks), **more}
    return replace(index_job(number, 1), **given)


def test_without_a_job_that_has_ended_nothing_is_known() -> None:
    assert measure_pace([]) == Pace()
    assert Pace().step_seconds(Step(()), 10) == NOT_KNOWN
    assert WorkPace().seconds(10) == NOT_KNOWN


def test_the_best_rate_and_never_quicker_than_the_quickest_run() -> None:
    pace = measure_pace([ended(1, 10, 2.0), ended(2, 100_000, 4.0)])
    assert pace.lease_s == 0.5
    assert pace.backfill == WorkPace(2.0, 25_000.0, 100_000)
    assert pace.backfill.seconds(10) == 2.0
    assert pace.backfill.seconds(1_000_000) == 40.0
    assert pace.step_seconds(Step((), (1, 2), (1,)), 1_000_000) == 0.5 + 2 * 40.0 + 10.0
    assert pace.step_seconds(Step((), (), (1,)), 1_000_000) == 0.5 + 10.0
    assert pace.step_seconds(Step(()), -1) == 0.5, "a step without work goes over no row"


def test_a_run_of_few_rows_tells_nothing_of_many() -> None:
    """Two rows take two seconds, 10,000 do not take three hours."""
    pace = measure_pace([ended(1, 2, 2.0)])
    assert pace.backfill.seconds(2) == pace.backfill.shortest_s == 2.0
    assert pace.backfill.seconds(2 * ROWS_BEYOND) == 20.0
    assert pace.backfill.seconds(2 * ROWS_BEYOND + 1) == NOT_KNOWN
    assert pace.step_seconds(Step((), (1,)), 10_000) == NOT_KNOWN
    assert pace.backfill.seconds(10_000, 100) == 100.0, "what somebody has set is known"


@pytest.mark.parametrize("status", [Status.RUNNING, Status.FAILED, Status.CANCELLED])
def test_a_job_that_was_cut_short_tells_nothing(status: Status) -> None:
    assert measure_pace([ended(1, 10, 2.0, status=status)]) == Pace()


def test_a_rate_that_was_set_is_not_what_is_possible() -> None:
    slowed = ended(1, 1_000, 100.0, settings={"rows_per_second": 10})
    assert measure_pace([slowed]).backfill == WorkPace()
    assert measure_pace([slowed]).verify == WorkPace(), "it holds for the nodes' look, too"
    assert WorkPace(1.0, 1_000.0, 1_000).seconds(10_000, 100) == 100.0
    assert WorkPace().seconds(10_000, 100) == 100.0


def test_a_job_of_an_earlier_program_has_no_rows_and_tells_of_leases_alone() -> None:
    assert measure_pace([ended(1, -1, 2.0)]) == Pace(0.5)


def test_only_the_newest_jobs_count() -> None:
    old = ended(1, 1_000_000, 1.0)
    newer = [ended(number, 1_000, 1.0) for number in range(2, 2 + RECENT_JOBS_MAX)]
    assert measure_pace([old, *newer]).backfill.rows_per_second == 1_000.0


def test_what_is_left_is_the_step_and_those_after_it() -> None:
    job = replace(index_job(1, 1), step=1)
    pace = Pace(0.5, WorkPace(1.0, 100.0, 100), WorkPace(1.0, 100.0, 100))
    after = len(job.steps) - 2
    assert seconds_left(job, pace, 1_000, 3.0) == 3.0 + 0.5 * after
    assert seconds_left(job, pace, 1_000, NOT_KNOWN) == NOT_KNOWN
    assert total([1.0, NOT_KNOWN]) == NOT_KNOWN
