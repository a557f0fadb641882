"""Moves of a job that no schedule is sure to meet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.job import Job, Phase, Status
from leasehold.schema_change.job.transitions import (
    FENCE_HERE,
    FINDINGS_MAX,
    can_turn_back,
    mark,
    record_fenced,
    record_published,
    turn_back,
)
from tests.support.schema_change.made_job import index_job

JOB = index_job(1, 1)
STEP_2 = replace(JOB, step=1, versions={1: 3})


def test_marks_rise_although_the_clock_stands_or_goes_back() -> None:
    job = mark(mark(mark(JOB, 10), 10), 3)
    assert [at for _, _, at in job.marks] == [10, 11, 12]


def test_a_run_begins_with_nothing_counted() -> None:
    draining = replace(
        STEP_2, phase=Phase.DRAINING, run=4, rows_read=9, rows_applied=8, chunks_ended=True
    )
    job = record_fenced(draining, 1)
    assert (job.phase, job.run, job.fence_lsn) == (Phase.BACKFILLING, 5, FENCE_HERE)
    assert (job.rows_read, job.rows_applied, job.chunks_ended) == (0, 0, False)


def test_a_move_out_of_turn_is_a_programmers_error() -> None:
    with pytest.raises(AssertionError):
        record_fenced(JOB, 1)
    with pytest.raises(AssertionError):
        record_published(replace(JOB, phase=Phase.DRAINING), 1)
    with pytest.raises(AssertionError):
        turn_back(replace(JOB, step=2, phase=Phase.DRAINING), 1)


@pytest.mark.parametrize(
    ("job", "states", "step", "phase", "version"),
    [
        (replace(JOB, phase=Phase.DRAINING), "DA", 0, Phase.DRAINING, 2),
        (STEP_2, "DA", 1, Phase.PUBLISHING, 3),
        (replace(STEP_2, phase=Phase.DRAINING), "DWDA", 1, Phase.DRAINING, 3),
        (replace(STEP_2, phase=Phase.BACKFILLING), "DWDA", 2, Phase.PUBLISHING, 4),
        (replace(STEP_2, phase=Phase.VERIFYING), "DWDA", 2, Phase.PUBLISHING, 4),
        (replace(JOB, step=2, versions={1: 4}), "DWDA", 2, Phase.PUBLISHING, 4),
    ],
)
def test_the_way_back(job: Job, states: str, step: int, phase: Phase, version: int) -> None:
    back = turn_back(job, 1, "why", ((1, 2, "k", "w"),) * 100)
    assert "".join(step.label[0].upper() for step in back.steps) == states
    assert (back.step, back.phase, back.versions) == (step, phase, {1: version})
    assert (back.status, back.error) == (Status.ROLLING_BACK, "why")
    assert len(back.findings) == FINDINGS_MAX
    assert not can_turn_back(back)


def test_before_the_first_descriptor_there_is_no_way_back_to_go() -> None:
    assert turn_back(JOB, 1).status is Status.CANCELLED
    failed = turn_back(JOB, 1, "why")
    assert (failed.status, failed.phase, failed.steps) == (Status.FAILED, Phase.DONE, JOB.steps)
