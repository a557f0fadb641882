"""Goal: a job's page shows each phase with the time that it took, and which one is open."""

from __future__ import annotations

from dataclasses import replace

from leasehold.catalog.job import Status
from leasehold.dashboard.reading import make_timeline
from tests.support.schema_change.made_job import index_job


def test_each_phase_has_its_time_and_the_last_one_is_open() -> None:
    marks = ((0, "publishing", 1_000_000), (0, "draining", 3_000_000), (1, "publishing", 3_500_000))
    job = replace(index_job(7, 1), marks=marks)
    told = make_timeline(job, 10_000_000)
    assert [(each["step"], each["phase"], each["took_ms"], each["open"]) for each in told] == [
        (1, "publishing", 2_000, False),
        (1, "draining", 500, False),
        (2, "publishing", 6_500, True),
    ]
    assert told[0]["to"] == job.steps[0].label
    ended = replace(job, status=Status.SUCCEEDED)
    assert [each["phase"] for each in make_timeline(ended, 10_000_000)] == [
        "publishing",
        "draining",
    ]
    assert make_timeline(replace(job, marks=()), 10_000_000) == []
