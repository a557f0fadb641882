"""Backfill on real Kafka and Spark: every key arrives in chunks, whatever happens on the way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from leasehold.catalog.job import Status
from leasehold.model.records.jobs import Chunk, ChunksEnd, JobProgress
from tests.support.cluster.spark_pipeline import (
    CODEC,
    Pipeline,
    backfill_job,
    chunk_of,
    ended,
    keys_of,
)


def test_every_key_arrives_and_the_marker_is_last(pipeline: Pipeline) -> None:
    """Goal: 50,000 images, and one key with two images; each key is named, in chunks of the job's
    size, with the end marker behind them all."""
    pipeline.publish_images(1, range(50_000))
    pipeline.publish_images(1, [77], lsn=5)
    job = backfill_job(1, 1, chunk_rows=2_000)
    pipeline.publish_job(job)

    messages = pipeline.records(pipeline.topics.backfill.name, ended(1))

    chunks = [chunk_of(m) for m in messages[:-1]]
    keys: set[tuple[Any, ...]] = set()
    for chunk in chunks:
        assert isinstance(chunk, Chunk)
        assert chunk[:5] == (1, 1, 1, 3, 9)
        assert 1 <= len(chunk.keys) <= 2_000
        keys.update(chunk.keys)
    assert sorted(keys) == [(key, f"city {key % 97}") for key in range(50_000)]
    marker = chunk_of(messages[-1])
    assert marker == ChunksEnd(1, 1, sum(len(c.keys) for c in chunks), len(chunks))
    assert all(m.partition() == 0 for m in messages)


def test_progress_is_told_to_the_end(pipeline: Pipeline) -> None:
    """Goal: the run's progress stands under its own key and ends with phase `ended`."""

    def until(messages: list[Any]) -> bool:
        return any(
            m.key() == b"progress/1/1" and CODEC.decode(m.value()).phase == "ended"
            for m in messages
        )

    messages = pipeline.records(pipeline.topics.jobs.name, until)
    told = [CODEC.decode(m.value()) for m in messages if m.key() == b"progress/1/1"]
    assert all(isinstance(p, JobProgress) for p in told)
    assert told[-1].rows >= 50_000
    assert told[-1].chunks >= 25
    assert any(p.rows_per_second > 0 for p in told)
    assert told[0].phase == "backfilling"


def test_a_table_without_images_ends_at_once(pipeline: Pipeline) -> None:
    pipeline.publish_job(backfill_job(2, 2))
    messages = pipeline.records(pipeline.topics.backfill.name, ended(2))
    assert [chunk_of(m) for m in messages] == [ChunksEnd(2, 1, 0, 0)]


def test_few_images_are_read_without_a_query(pipeline: Pipeline) -> None:
    """Goal: of a topic of no more than 1,000 offsets the same comes as of others, and nothing of a
    checkpoint: no query was there. One more, and there is one."""
    pipeline.publish_images(6, range(999))
    pipeline.publish_images(6, [77], lsn=5)
    pipeline.publish_job(backfill_job(6, 6, chunk_rows=100))
    messages = pipeline.records(pipeline.topics.backfill.name, ended(6))
    chunks = [chunk_of(m) for m in messages[:-1]]
    assert {key for c in chunks for key in c.keys} == {(n, f"city {n % 97}") for n in range(999)}
    assert max(len(chunk.keys) for chunk in chunks) == 100
    marker = chunk_of(messages[-1])
    assert marker == ChunksEnd(6, 1, sum(len(c.keys) for c in chunks), len(chunks))
    assert not list(pipeline.data.rglob("6-1/checkpoint"))

    pipeline.publish_images(6, [78], lsn=6)
    pipeline.publish_job(replace(backfill_job(6, 6), run=2))
    messages = pipeline.records(
        pipeline.topics.backfill.name,
        lambda m: bool(m) and chunk_of(m[-1])[:2] == (6, 2) and ended(6)(m),
    )
    assert len(set(keys_of(messages))) == 999
    assert list(pipeline.data.rglob("6-2/checkpoint"))


def test_by_range_no_key_is_sent(pipeline: Pipeline) -> None:
    """Goal: a job that fills by range gets the end marker alone, with how many rows there are, of
    a table that is one range. The driver counts a part; with a rate set a query reads all of it, as
    slowly as that says, and puts what tells where larger ones are cut into the run's folder."""
    pipeline.publish_images(7, range(20_000))
    job = replace(backfill_job(7, 7), by_range=True)
    pipeline.publish_job(job)
    messages = pipeline.records(pipeline.topics.backfill.name, ended(7))
    (end,) = (chunk_of(m) for m in messages)
    assert (end.run, end.chunks, 20_000 <= end.rows < 21_000) == (1, 0, True)
    assert not sampled(pipeline, "7-1")
    assert not list(pipeline.data.rglob("7-1/checkpoint"))

    pipeline.publish_job(replace(job, run=2, settings={"rows_per_second": 1_000_000}))
    messages = pipeline.records(
        pipeline.topics.backfill.name,
        lambda m: bool(m) and chunk_of(m[-1])[:2] == (7, 2) and ended(7)(m),
    )
    assert chunk_of(messages[-1]) == ChunksEnd(7, 2, 20_000, 0)
    assert 5 <= len(sampled(pipeline, "7-2")) <= 50, "one key of 1,024"

    pipeline.publish_images(11, range(500))
    pipeline.publish_job(replace(backfill_job(11, 11), by_range=True))
    messages = pipeline.records(pipeline.topics.backfill.name, ended(11))
    assert [chunk_of(m) for m in messages] == [ChunksEnd(11, 1, 500, 0)]


@pytest.mark.long("400,000 images; where ranges are cut by a sample has unit tests")
def test_of_a_table_of_several_ranges_keys_are_sampled(pipeline: Pipeline) -> None:
    """The driver reads a part of it, without a query."""
    pipeline.publish_images(12, range(400_000))
    pipeline.publish_job(replace(backfill_job(12, 12), by_range=True))
    messages = pipeline.records(pipeline.topics.backfill.name, ended(12))
    assert chunk_of(messages[-1]).chunks == 1, "one border between two ranges"
    assert 64 <= len(sampled(pipeline, "12-1")) <= 4_096
    assert not list(pipeline.data.rglob("12-1/checkpoint"))


def sampled(pipeline: Pipeline, run: str) -> set[str]:
    """Return the keys that a run has sampled."""
    folders = pipeline.data.rglob(f"{run}/samples")
    files = [file for folder in folders for file in folder.glob("*.json")]
    return {key for file in files for key in json.loads(file.read_text())}


def test_the_rate_changes_while_it_runs(pipeline: Pipeline) -> None:
    """Goal: a job that would take a quarter of an hour ends at once when its limit is lifted, and
    the run is the same one: chunks before the change are not sent again from the start."""
    pipeline.publish_images(3, range(20_000))
    job = backfill_job(3, 3, rows_per_second=20)
    pipeline.publish_job(job)
    before = pipeline.records(pipeline.topics.backfill.name, lambda m: len(m) >= 3)
    assert all(len(chunk_of(m).keys) <= 4 for m in before)  # small chunks under a small rate

    pipeline.publish_job(replace(job, settings={"rows_per_second": 0}))
    after = pipeline.records(pipeline.topics.backfill.name, ended(3))
    keys = keys_of(before) + keys_of(after)
    assert sorted(set(keys)) == list(range(20_000))
    assert len(keys) < 20_400


def test_paused_and_resumed(pipeline: Pipeline) -> None:
    """Goal: a pause ends the query; after resume the run goes on and every key arrives."""
    pipeline.publish_images(4, range(3_000))
    job = backfill_job(4, 4, rows_per_second=100)
    pipeline.publish_job(job)
    before = pipeline.records(pipeline.topics.backfill.name, lambda m: len(m) >= 2)
    pipeline.publish_job(replace(job, status=Status.PAUSED))

    def stopped(messages: list[Any]) -> bool:
        return any(
            m.key() == b"progress/4/1" and CODEC.decode(m.value()).phase == "stopped"
            for m in messages
        )

    pipeline.records(pipeline.topics.jobs.name, stopped)
    pipeline.publish_job(replace(job, settings={"rows_per_second": 0}))
    after = pipeline.records(pipeline.topics.backfill.name, ended(4))
    assert sorted(set(keys_of(before) + keys_of(after))) == list(range(3_000))


def test_beside_users_a_window_is_read_when_the_log_has_the_one_before(pipeline: Pipeline) -> None:
    """Goal: LSNs between the job's events that are not its own are users' commits. Then one window
    is sent, half of a micro-batch of two partitions, and no other until the log has its rows: two
    jobs over a few rows begin and end meanwhile. With each that is decided the next comes."""
    queue = pipeline.topics.backfill.name
    pipeline.publish_images(8, range(20_000))
    job, lsn = backfill_job(8, 8), 100
    pipeline.publish_job(job, lsn)
    pipeline.publish_job(job, lsn := lsn + 2)
    messages = pipeline.records(queue, bool)
    for other in (9, 10):
        pipeline.publish_images(other, range(10))
        pipeline.publish_job(backfill_job(other, other))
        messages += pipeline.records(queue, ended(other))

    def sent() -> list[int]:
        return keys_of([m for m in messages if chunk_of(m).job_id == 8])

    assert 4_000 <= len(sent()) <= 6_000
    while not ended(8)(messages):
        pipeline.publish_job(replace(job, rows_read=len(sent())), lsn := lsn + 2)
        messages += pipeline.records(queue, bool)
    assert sorted(sent()) == list(range(20_000))
    # Nobody has committed beside it for more than a second: what comes next is alone again.
    pipeline.publish_job(replace(job, status=Status.SUCCEEDED), lsn + 1, 2_000_000)


@pytest.mark.long("30 s; the pipeline of retries is killed in make test")
def test_killed_in_the_middle_and_started_again(pipeline: Pipeline) -> None:
    """Goal: SIGKILL while chunks flow, start again: all keys arrive; what was done before the last
    micro-batch is not done again; a run that ended is not started again."""
    pipeline.publish_images(5, range(50_000))
    pipeline.publish_job(backfill_job(5, 5, rows_per_second=15_000))
    before = pipeline.records(
        pipeline.topics.backfill.name, lambda m: bool(m) and len(keys_of(m)) >= 12_000
    )
    pipeline.kill()
    pipeline.start()
    pipeline.publish_job(backfill_job(5, 5))
    after = pipeline.records(pipeline.topics.backfill.name, ended(5))

    sent_before, sent_after = keys_of(before), keys_of(after)
    assert sorted(set(sent_before + sent_after)) == list(range(50_000))
    assert len(sent_after) < 50_000, "it went on from the checkpoint, not from the start"
    # Job 1 is still in phase backfilling: its marker comes once more, its chunks do not.
    others = [r for m in after if (r := chunk_of(m)).job_id == 1]
    assert all(isinstance(r, ChunksEnd) for r in others)
