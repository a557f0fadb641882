"""Goal: what the changefeed publishes is a function of the log alone.

Method: synthetic logs, stepped whole, in parts, and with what must be read over between.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.catalog.job import Phase, Status, job_from_wire
from leasehold.model.errors import LogStopped
from leasehold.model.ids import SEQUENCES_FROM, genid
from leasehold.model.records.events import RowImage, RowsTruncated, VersionEvent
from leasehold.model.records.jobs import JobEvent
from leasehold.model.records.log import (
    Backfill,
    ChangeKind,
    ChunkDecided,
    DescriptorWrite,
    Disposition,
    JobForgotten,
    JobWrite,
    RowChange,
    TableForgotten,
    TableTruncated,
)
from leasehold.model.records.requests import DeadLetter
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.changefeed import (
    Changefeed,
    Feed,
    FeedPublication,
    ForgottenJob,
    ForgottenTable,
    Publication,
    RowPublication,
    TruncationPublication,
)
from leasehold.replication.log.foreign import WAIT_MS
from tests.support.changefeed.made_log import MadeLog, descriptor_body, job

CODEC = MessagePackCodec()


def follow(feed: Changefeed, log: MadeLog, first: int = 0) -> list[Publication]:
    publications: list[Publication] = []
    for offset in range(first, len(log.records)):
        data = log.records[offset][0]
        publications += feed.step(CODEC.decode_log(data), offset, CODEC.digest(data)).publications
    return publications


def rows(publications: list[Publication]) -> list[Any]:
    return [
        (p.table_id, p.key, p.image and (p.image.lsn, p.image.values))
        for p in publications
        if isinstance(p, RowPublication)
    ]


def expected(log: MadeLog) -> list[Any]:
    return [(table, key, image and (lsn, image)) for table, key, lsn, image in log.rows]


def begun() -> MadeLog:
    log = MadeLog()
    log.claim()
    log.create_table(1)
    return log


def test_every_change_gives_one_image_in_order() -> None:
    log = begun()
    for _ in range(50):
        log.write_rows(1, commits=5, keys=20)
    found = rows(follow(Changefeed(), log))
    assert found == expected(log)
    assert any(image is None for *_, image in found), "the log must hold deletes"


def test_a_truncation_stands_between_the_images_before_it_and_those_of_its_own_commit() -> None:
    log = begun()
    log.write_rows(1, commits=1, keys=3)
    again = RowChange(ChangeKind.INSERT, 1, 1, (7,), {1: 7}, {}, (0,))
    log.decide((log.commit((again,), catalog=(TableTruncated(1),)),))
    told = follow(Changefeed(), log)
    at = next(n for n, p in enumerate(told) if isinstance(p, TruncationPublication))
    gone = told[at]
    assert isinstance(gone, TruncationPublication)
    assert gone.record == RowsTruncated(1, log.lsn, log.commit_us)
    assert len(rows(told[at:])) == 1
    assert rows(told) == expected(log)


def test_rows_may_come_with_their_table() -> None:
    log = begun()
    row = RowChange(ChangeKind.INSERT, 2, 1, (7,), {1: 7}, {}, (0,))
    write = DescriptorWrite(2, 1, descriptor_body(2))
    log.decide((log.commit((row,), catalog=(write,)),))
    told = follow(Changefeed(), log)
    assert [p.table_id for p in told if isinstance(p, RowPublication)][-1] == 2
    events = [p.record for p in told if isinstance(p, FeedPublication)]
    assert [(e.table_id, e.version) for e in events if isinstance(e, VersionEvent)][-1] == (2, 1)


def test_sequences_are_nobodys_but_the_nodes() -> None:
    """No topic, no version and no row of one, beside those of the table that draws from it."""
    log = begun()
    before = len(log.records)
    sequence = SEQUENCES_FROM | 1
    changes = (
        RowChange(ChangeKind.INSERT, sequence, 1, (0,), {1: 5}, {}, (0,)),
        RowChange(ChangeKind.INSERT, 1, 1, (5,), {1: 5}, {}, (0,)),
    )
    made = DescriptorWrite(sequence, 1, descriptor_body(sequence))
    feed = Changefeed()
    follow(feed, log)
    log.decide((log.commit(changes, catalog=(made, TableTruncated(sequence))),))
    told = follow(feed, log, before)
    assert [p.table_id for p in told if isinstance(p, RowPublication)] == [1]
    assert len(told) == 1


def test_an_image_names_everything_about_its_row() -> None:
    log = begun()
    first = RowChange(ChangeKind.INSERT, 1, 1, (7,), {1: 7}, {}, (0,))
    second = RowChange(ChangeKind.UPDATE, 1, 1, (8,), {1: 8}, {0: 5, 3: 6}, (3,))
    commit = log.commit((first, second))
    log.decide((commit,))
    images = [p.image for p in follow(Changefeed(), log) if isinstance(p, RowPublication)]
    assert images[0] is not None
    assert images[1] is not None
    assert images[0]._asdict() == {
        "table_id": 1,
        "key": (7,),
        "genids": {0: genid(log.lsn, 0)},
        "lsn": log.lsn,
        "version": 1,
        "commit_us": commit.commit_us,
        "values": {1: 7},
    }
    # Position 1 in its commit; the lock that the change did not cover keeps its genid.
    assert images[1].genids == {0: 5, 3: genid(log.lsn, 1)}


def test_a_fill_keeps_genids_and_has_an_lsn_of_its_own() -> None:
    log = begun()
    backfill = RowChange(ChangeKind.BACKFILL, 1, 1, (7,), {1: 7, 2: 0}, {0: 99}, ())
    log.decide((log.commit((backfill,)),))
    (publication,) = [p for p in follow(Changefeed(), log) if isinstance(p, RowPublication)]
    assert publication.image is not None
    assert publication.image.genids == {0: 99}
    assert publication.image.lsn == log.lsn


def test_rows_filled_by_image_are_told_under_the_lsn_of_the_fill() -> None:
    """One entry of the log; a reader of images has no other way to the value."""
    log = begun()
    images = ({1: 7, 2: 0}, {1: 8, 2: 1})
    backfill = Backfill(1, 1, 2, ((7,), (8,)), images, ({0: 99}, {0: 98, 3: 5}))
    by_key = Backfill(1, 1, 2, ((9,),))
    commit = log.commit(())._replace(backfills=(backfill, by_key))
    log.decide((commit,))
    told = [p for p in follow(Changefeed(), log) if isinstance(p, RowPublication)]
    assert [p.image for p in told] == [
        RowImage(1, (7,), {0: 99}, log.lsn, 1, commit.commit_us, images[0]),
        RowImage(1, (8,), {0: 98, 3: 5}, log.lsn, 1, commit.commit_us, images[1]),
    ]


def test_l1_what_does_not_count_is_not_published() -> None:
    log = begun()
    log.claim()
    log.write_rows(1, 3, 5)
    log.stale()
    log.barrier()
    log.write_rows(1, 1, 5)
    found = rows(follow(Changefeed(), log))
    assert found == expected(log)


def test_l2_a_record_delivered_twice_is_published_once() -> None:
    log = begun()
    log.write_rows(1, 3, 5)
    feed = Changefeed()
    follow(feed, log)
    position = feed.position
    assert follow(feed, log) == []
    assert feed.position == position


def test_l2_a_missing_record_stops_the_feed() -> None:
    log = begun()
    log.write_rows(1, 3, 5)
    log.write_rows(1, 3, 5)
    log.write_rows(1, 3, 5)
    del log.records[-3]
    feed = Changefeed()
    published = rows(follow(feed, log))
    assert published == [row for row in log.rows if row[2] <= feed.position.lsn], "and no more"
    feed.check(WAIT_MS * NS_PER_MS - 1)
    with pytest.raises(LogStopped, match="L2"):
        feed.check(WAIT_MS * NS_PER_MS)


@pytest.mark.parametrize("cut", range(12))
def test_l6_going_on_from_a_stored_position_gives_the_rest(cut: int) -> None:
    log = begun()
    log.write_rows(1, 2, 5)
    log.run_job(3, 1, chunks=3)
    log.write_rows(1, 2, 5)
    log.refuse(Disposition.DEAD_LETTER)
    whole = follow(Changefeed(), log)
    first = MadeLog()
    first.records = log.records[:cut]
    before = Changefeed()
    published = follow(before, first)
    jobs: dict[bytes, Any] = {
        p.key: p.record.body
        for p in published
        if isinstance(p, FeedPublication) and isinstance(p.record, JobEvent)
    }
    after = Changefeed(before.position, jobs.values())
    assert published + follow(after, log, first=after.position.offset) == whole


def test_a_table_is_announced_before_its_first_image() -> None:
    log = begun()
    log.write_rows(1, 1, 5)
    first = follow(Changefeed(), log)[0]
    assert isinstance(first, FeedPublication)
    assert first.key == b"1"


def test_a_version_event_carries_the_commits_time_and_its_job() -> None:
    log = begun()
    log.run_job(3, 1, chunks=1)
    publications = follow(Changefeed(), log)
    created, published = [
        p.record
        for p in publications
        if isinstance(p, FeedPublication) and isinstance(p.record, VersionEvent)
    ]
    assert (created.job_id, created.step) == (0, "")
    assert (published.job_id, published.step) == (3, "delete-only")
    assert (published.table_id, published.name, published.version) == (1, "table_1", 2)
    begun_job = job(3, 1, 2)
    assert published.job == {
        "kind": begun_job.kind,
        "subject": begun_job.subject,
        "sql": begun_job.sql,
        "status": "running",
        "step": 1,
        "steps": len(begun_job.steps),
    }
    (edit,) = begun_job.steps[0].edits
    assert [edited[:3] for edited in published.edits] == [edit.to_wire()[:3]]
    assert (created.job, created.edits) == ({}, ())
    assert published.body["modified_us"] == published.commit_us > created.commit_us


def test_job_events_fold_the_counts_of_their_own_run() -> None:
    log = begun()
    log.run_job(3, 1, chunks=2)
    late = ChunkDecided(3, 77, 1_000, 1_000, True)
    log.decide((log.commit(catalog=(late,)),))
    events = [
        job_from_wire(p.record.body)
        for p in follow(Changefeed(), log)
        if isinstance(p, FeedPublication) and isinstance(p.record, JobEvent)
    ]
    assert [(e.rows_read, e.rows_applied, e.chunks_ended) for e in events] == [
        (0, 0, False),
        (100, 90, False),
        (200, 180, True),
    ]


def test_a_chunk_of_an_unknown_job_is_not_told_of() -> None:
    """Its event on the topic of jobs was one that nobody can read: the feed goes on."""
    log = begun()
    before = len(follow(Changefeed(), log))
    log.decide((log.commit(catalog=(ChunkDecided(8, 0, 1, 1, False),)),))
    assert len(follow(Changefeed(), log)) == before


def test_an_ended_job_is_no_longer_named_by_versions() -> None:
    log = begun()
    ended = replace(job(3, 1, 2), status=Status.SUCCEEDED)
    log.decide((log.commit(catalog=(JobWrite(3, ended.to_wire()),)),))
    log.decide((log.commit(catalog=(DescriptorWrite(1, 2, descriptor_body(1, 2)),)),))
    event = [
        p.record
        for p in follow(Changefeed(), log)
        if isinstance(p, FeedPublication) and isinstance(p.record, VersionEvent)
    ][-1]
    assert event.job_id == 0


@pytest.mark.parametrize("disposition", list(Disposition))
def test_only_dead_letters_go_to_the_dead_letter_topic(disposition: Disposition) -> None:
    log = begun()
    refusal = log.refuse(disposition)
    found = [p for p in follow(Changefeed(), log) if isinstance(p, FeedPublication)][1:]
    if disposition is not Disposition.DEAD_LETTER:
        assert found == []
        return
    (publication,) = found
    assert publication.feed is Feed.DEAD_LETTER
    assert publication.key == refusal.request_id
    assert isinstance(publication.record, DeadLetter)
    shared = set(DeadLetter._fields) & set(refusal._fields)
    assert shared == set(DeadLetter._fields)
    for field in shared:
        assert getattr(publication.record, field) == getattr(refusal, field), field


def test_only_the_begin_of_a_run_over_the_rows_is_urgent() -> None:
    """All else that somebody waits for he hears from the master (notices)."""
    log = begun()
    log.write_rows(1, 1, 5)
    log.run_job(3, 1, chunks=2)
    backfilling = next(n for n, step in enumerate(job(3, 1, 2).steps) if step.backfills)
    for phase in Phase:
        now = job(3, 1, 2, step=backfilling, phase=phase)
        log.decide((log.commit(catalog=(JobWrite(3, now.to_wire()),)),))
    feed = Changefeed()
    urgent = []
    for offset, (data, record) in enumerate(log.records):
        urgent.append(feed.step(record, offset, CODEC.digest(data)).urgent)
    #             claim, table, rows, job, version, chunk, last chunk
    assert not any(urgent[:7])
    assert urgent[7:] == [phase is Phase.BACKFILLING for phase in Phase]


def test_what_the_log_forgets_loses_its_keys_and_its_topic() -> None:
    """Of a job what Spark has told of its runs, too; a sequence has neither key nor topic."""
    log = begun()
    ended = job(3, 1, 2, run=2, status=Status.SUCCEEDED, phase=Phase.DONE)
    log.decide((log.commit(catalog=(JobWrite(3, ended.to_wire()),)),))
    feed = Changefeed()
    before = len(log.records)
    follow(feed, log)
    gone = (JobForgotten(3), TableForgotten(1), TableForgotten(SEQUENCES_FROM | 4))
    log.decide((log.commit(catalog=gone),))
    keys = (b"job/3", b"progress/3/1", b"progress/3/2")
    told = [ForgottenJob(3, keys), ForgottenTable(1)]
    assert sorted(follow(feed, log, before), key=repr) == told
    assert feed._jobs == {}
    # One that starts over has read back what is left of the jobs; the record may come to it again.
    anew = Changefeed()
    follow(anew, log)
    assert anew._jobs == {}
