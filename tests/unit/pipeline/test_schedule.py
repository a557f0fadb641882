"""Which runs start and stop, and what a run keeps on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leasehold.catalog.job import Job, Phase, Status, Step
from leasehold.pipeline.schedule import Decision, RunId, decide, wanted_run
from spark_streaming.run_folder import RunFolder, Totals, runs_of_job
from tests.support.disk_folder import DiskFolder
from tests.support.schema_change.made_job import index_job


def job(job_id: int, **fields: Any) -> Job:
    backfilling = {"step": 1, "phase": Phase.BACKFILLING, "run": 1}
    return index_job(job_id, job_id, **{**backfilling, **fields})


def decided(*jobs: Job, running: Any = (), finished: Any = (), most: int = 4) -> Decision:
    return decide({j.job_id: j for j in jobs}, running, finished, backfills_max=most)


@pytest.mark.parametrize(
    "fields",
    [
        {"phase": Phase.DRAINING},
        {"phase": Phase.VERIFYING},
        {"status": Status.PAUSED},
        {"status": Status.ROLLING_BACK},
        {"status": Status.CANCELLED},
        {"chunks_ended": True},
        {"step": 0},
    ],
)
def test_only_a_running_backfill_step_wants_a_run(fields: dict[str, Any]) -> None:
    assert wanted_run(job(1)) == RunId(1, 1)
    assert wanted_run(job(1, **fields)) is None
    assert decided(job(1, **fields), running=[RunId(1, 1)]).stop == (RunId(1, 1),)


def test_a_validation_is_a_run_too() -> None:
    step = Step((), (), (9,), (9,))
    validating = job(1, steps=(step,), step=0, phase=Phase.VALIDATING, run=3)
    assert wanted_run(validating) == RunId(1, 3)
    assert wanted_run(replace(validating, chunks_ended=True)) is None
    assert wanted_run(replace(validating, status=Status.PAUSED)) is None
    assert wanted_run(job(1, phase=Phase.VALIDATING)) is None, "nothing to validate"


def test_starts_oldest_first_up_to_the_bound() -> None:
    jobs = [job(i) for i in (3, 1, 2)]
    assert decided(*jobs, most=2).start == (RunId(1, 1), RunId(2, 1))
    assert decided(*jobs, running=[RunId(2, 1)], most=2).start == (RunId(1, 1),)
    assert decided(*jobs, running=[RunId(1, 1), RunId(2, 1)], most=2).start == ()


def test_a_finished_run_is_not_started_again_but_the_next_one_is() -> None:
    assert decided(job(1), finished=[RunId(1, 1)]).start == ()
    assert decided(job(1, run=2), finished=[RunId(1, 1)]).start == (RunId(1, 2),)


def test_the_next_run_waits_for_the_end_of_the_one_before() -> None:
    decision = decided(job(1, run=2), running=[RunId(1, 1)])
    assert decision == Decision((), (RunId(1, 1),), ())


def test_a_job_that_vanished_is_stopped() -> None:
    assert decided(running=[RunId(1, 1)]).stop == (RunId(1, 1),)


def test_an_ended_job_is_forgotten_once_nothing_of_it_runs() -> None:
    ended = job(1, status=Status.SUCCEEDED)
    assert decided(ended, running=[RunId(1, 1)]).forget == ()
    assert decided(ended).forget == (1,)


def test_a_replayed_batch_is_counted_once(tmp_path: Path) -> None:
    folder = RunFolder(DiskFolder(tmp_path), RunId(1, 1))
    assert folder.totals_before(0) == Totals()
    folder.count(0, Totals(), Totals(10, 1))
    folder.count(1, Totals(10, 1), Totals(30, 3))
    again = RunFolder(DiskFolder(tmp_path), RunId(1, 1))
    assert again.totals_before(1) == Totals(10, 1)
    assert again.totals_before(2) == Totals(30, 3)
    assert again.totals() == Totals(30, 3)


def test_the_end_is_kept_and_a_torn_file_is_as_good_as_none(tmp_path: Path) -> None:
    folder = RunFolder(DiskFolder(tmp_path), RunId(1, 1))
    assert folder.ended() is None
    folder.end(Totals(30, 3))
    assert RunFolder(DiskFolder(tmp_path), RunId(1, 1)).ended() == Totals(30, 3)
    (tmp_path / "1-1" / "ended.json").write_text('{"rows": 3')
    assert folder.ended() is None


def test_forgetting_a_job_leaves_the_others() -> None:
    names = [run.name for run in (RunId(1, 1), RunId(1, 2), RunId(11, 1))]
    assert runs_of_job(names, 1) == ["1-1", "1-2"]


def test_facts_are_in_a_folder_of_each_micro_batch_or_of_each_of_its_rounds(tmp_path: Path) -> None:
    folder = RunFolder(DiskFolder(tmp_path), RunId(1, 1))
    assert folder.all_facts() == []
    folder.empty_facts(0)
    (tmp_path / "1-1" / "facts" / "0" / "part-0.parquet").touch()
    for name in ("round-0", "round-2"):
        folder.empty_facts(1)
        (tmp_path / "1-1" / "facts" / "1" / name).mkdir()
    facts = f"file:{tmp_path}/1-1/facts"
    assert folder.all_facts() == [f"{facts}/0", f"{facts}/1/round-2"], "what was there is gone"
