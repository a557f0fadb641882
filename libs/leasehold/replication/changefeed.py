"""Changefeed: turns the log into what the world outside reads. Pure; exactly once is the shell's.

Follows the log by the rule of every reader (L1, L2) and never looks at a store: after-images,
genids and descriptors are all in the log. The same log gives the same publications in the same
order, whatever the batches: that is what lets a shell repeat a step after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from leasehold.catalog.job import Job, job_from_wire
from leasehold.catalog.running_jobs import RunningJobs
from leasehold.model.ids import genid, is_sequence_id
from leasehold.model.keys import Key
from leasehold.model.records.events import RowImage, RowsTruncated, VersionEvent
from leasehold.model.records.jobs import JobEvent
from leasehold.model.records.log import (
    Backfill,
    ChangeKind,
    ChunkDecided,
    Commit,
    Decisions,
    DescriptorWrite,
    Disposition,
    FindingsDecided,
    JobForgotten,
    JobWrite,
    LogPosition,
    LogRecord,
    Refusal,
    RowChange,
    TableForgotten,
    TableTruncated,
    Unreadable,
)
from leasehold.model.records.requests import DeadLetter
from leasehold.replication.log.admission import Verdict, admit
from leasehold.replication.log.foreign import ForeignRecords


class Feed(StrEnum):
    """The topics of publications beside the rows topics."""

    VERSIONS = "versions"  # and versions-history: the same record on both
    JOBS = "jobs"
    DEAD_LETTER = "dead-letter"


class RowPublication(NamedTuple):
    """A record of the rows topic of `table_id`, under the row's key; `image` None is a tombstone.
    The topic is made for the first one: a table without rows has none."""

    table_id: int
    key: Key
    image: RowImage | None


class TruncationPublication(NamedTuple):
    """A record of every partition of the table's rows topic, under `codec.row_key(())`; none where
    it never had a row, and so no topic."""

    record: RowsTruncated


class FeedPublication(NamedTuple):
    """A record of a feed, under `key`."""

    feed: Feed
    key: bytes
    record: VersionEvent | JobEvent | DeadLetter


class ForgottenTable(NamedTuple):
    """A table whose key on `versions` is nobody's any more; and, when that is published, its rows
    topic."""

    table_id: int


class ForgottenJob(NamedTuple):
    """A job whose keys on `jobs` are nobody's any more: its own, and those of what Spark has told
    of its runs."""

    job_id: int
    keys: tuple[bytes, ...]


Publication: TypeAlias = (
    RowPublication | TruncationPublication | FeedPublication | ForgottenTable | ForgottenJob
)


class Step(NamedTuple):
    """What a record publishes. `urgent`: a step of a schema change waits for what is published
    here, and only there: a run over the rows begins with its job's event. Agents hear of versions,
    and who waits for a job of its end, from the master at once (`notices`); a transaction of its
    own for each of those records costs the broker more than all else of a step. `applied`: the
    record itself, where it counts and decides something."""

    publications: tuple[Publication, ...]
    urgent: bool
    applied: Decisions | None = None


START: Final = LogPosition()
_NOTHING: Final = Step((), urgent=False)


def version_key(table_id: int) -> bytes:
    """Return the key on the versions topics: the newest version per table is what compaction
    keeps."""
    return b"%d" % table_id


_JOB_PREFIX: Final = b"job/"
_DIGITS_MAX: Final = 19  # of a number of 63 bits


def job_key(job_id: int) -> bytes:
    return b"%s%d" % (_JOB_PREFIX, job_id)


def job_of_key(key: bytes) -> int | None:
    """Return the job whose state a key of the jobs topic names; None for other keys there."""
    return number_of_key(key, _JOB_PREFIX)


def number_of_key(key: bytes, prefix: bytes) -> int | None:
    """Return the number behind the prefix of a record's key; None for keys of another form, which
    anybody may have written."""
    number = key.removeprefix(prefix)
    named = key.startswith(prefix) and number.isdigit() and len(number) <= _DIGITS_MAX
    return int(number) if named else None


def progress_key(job_id: int, run: int) -> bytes:
    """Return the key on the jobs topic under which Spark tells how far a run of a job is."""
    return b"progress/%d/%d" % (job_id, run)


class Changefeed:
    """The state of the feed: `position` (L6), and the jobs whose counts it folds.

    A shell stores `position` together with what `step` gave; jobs come back from the newest
    JobEvents, which stand in the same transactions.
    """

    def __init__(self, position: LogPosition = START, jobs: Iterable[Any] = ()) -> None:
        """Begin at `position`. `jobs`: bodies (wire form) of the newest JobEvent per job."""
        self.position = position
        self._foreign = ForeignRecords()
        self._jobs: dict[int, Job] = {}
        self._running = RunningJobs()  # of them, those that have not ended
        for body in jobs:
            self._put_job(job_from_wire(body))

    def step(
        self, record: LogRecord | Unreadable, offset: int, digest: bytes, now_ns: int = 0
    ) -> Step:
        """Take the next record of the log, at `now_ns`. Raises LogStopped, as `check` does, which
        is to be called now and then (L1, L2, L9)."""
        before = self.position
        verdict, after = self._foreign.judge(admit, before, offset, record, digest, now_ns)
        assert after.offset >= before.offset, "a reader never goes back"
        self.position = after
        if verdict is not Verdict.APPLY:
            return _NOTHING
        assert isinstance(record, Decisions), "only decisions are applied"
        # L2: LSNs are dense, so what is published for them is neither repeated nor left out.
        assert record.first_lsn == before.lsn + 1
        assert after.lsn == before.lsn + len(record.commits)
        if not record.commits and not record.refusals:
            return _NOTHING
        return self._published(record)

    def check(self, now_ns: int) -> str:
        """Return what is to be said of records that were passed over, "" where nothing is. Raises
        LogStopped once the log does not go on from where this reader is."""
        self._foreign.check(now_ns)
        return self._foreign.warning(now_ns)

    def _published(self, record: Decisions) -> Step:
        publications: list[Publication] = []
        urgent = False
        lsn = record.first_lsn
        for commit in record.commits:
            for write in commit.catalog:
                if isinstance(write, TableTruncated) and not is_sequence_id(write.table_id):
                    gone = RowsTruncated(write.table_id, lsn, commit.commit_us)
                    publications.append(TruncationPublication(gone))
            row_images(commit, lsn, publications)
            if commit.catalog:
                urgent |= self._catalog(commit, lsn, publications)
            lsn += 1
        publications.extend(
            FeedPublication(Feed.DEAD_LETTER, refusal.request_id, dead_letter(refusal))
            for refusal in record.refusals
            if refusal.disposition is Disposition.DEAD_LETTER
        )
        return Step(tuple(publications), urgent, record)

    def _catalog(self, commit: Commit, lsn: int, publications: list[Publication]) -> bool:
        """Append version and job events of one commit; return whether a step may wait for them."""
        urgent = False
        # Jobs first: a version event names the job that published it.
        changed: dict[int, None] = {}
        for write in commit.catalog:
            if isinstance(write, JobWrite):
                job = self._put_job(job_from_wire(write.body))
                changed[write.job_id] = None
                urgent |= job.awaits_run
            elif isinstance(write, ChunkDecided | FindingsDecided) and self._count(write):
                changed[write.job_id] = None
        for write in commit.catalog:
            if isinstance(write, TableForgotten) and not is_sequence_id(write.table_id):
                publications.append(ForgottenTable(write.table_id))
            elif isinstance(write, JobForgotten):
                publications.append(self._forgotten(write.job_id))
        for write in commit.catalog:
            if isinstance(write, DescriptorWrite) and not is_sequence_id(write.table_id):
                event = self._version_event(write, commit, lsn)
                key = version_key(write.table_id)
                publications.append(FeedPublication(Feed.VERSIONS, key, event))
        for job_id in changed:
            state = JobEvent(job_id, lsn, commit.commit_us, self._jobs[job_id].to_wire())
            publications.append(FeedPublication(Feed.JOBS, job_key(job_id), state))
        return urgent

    def _forgotten(self, job_id: int) -> ForgottenJob:
        gone = self._jobs.pop(job_id, None)
        self._running.remove(job_id)
        runs = 0 if gone is None else gone.run
        progress = (progress_key(job_id, run) for run in range(1, runs + 1))
        return ForgottenJob(job_id, (job_key(job_id), *progress))

    def _count(self, work: ChunkDecided | FindingsDecided) -> bool:
        job = self._jobs.get(work.job_id)
        if job is None:
            # Nobody could read its event when the changefeed began. The log writes the job again at
            # its next step, with all that was counted; L2 has seen to it that no record is missed.
            return False
        if job.run != work.run:
            return False  # ⚠ late chunks: another run's rows are not this run's progress
        match work:
            case ChunkDecided(_, _, rows, applied, end):
                self._put_job(job.counted(rows, applied, end))
            case FindingsDecided():
                self._put_job(job.validated(work))
        return True

    def _put_job(self, job: Job) -> Job:
        self._jobs[job.job_id] = job
        self._running.put(job)
        return job

    def _version_event(self, write: DescriptorWrite, commit: Commit, lsn: int) -> VersionEvent:
        return version_event(write, commit, lsn, self._running.at(write.table_id))


def version_event(
    write: DescriptorWrite, commit: Commit, lsn: int, jobs: Iterable[Job]
) -> VersionEvent:
    """Return what subscribers are told of a descriptor; `jobs` as of this commit or before it."""
    body: Mapping[str, Any] = {**write.body, "modified_us": commit.commit_us}
    # At most one job changes a table (D9).
    running = (job for job in jobs if not job.status.ended)
    job = next((j for j in running if j.versions.get(write.table_id) == write.version), None)
    event = VersionEvent(
        table_id=write.table_id,
        name=body["name"],
        version=write.version,
        lsn=lsn,
        commit_us=commit.commit_us,
        body=body,
        job_id=0,
        step="",
    )
    if job is None:
        return event
    return event._replace(
        job_id=job.job_id,
        step=job.current.label,
        job={
            "kind": job.kind,
            "subject": job.subject,
            "sql": job.sql,
            "status": job.status.value,
            "step": job.step + 1,
            "steps": len(job.steps),
        },
        edits=tuple(edit.to_wire()[:4] for edit in job.edits_of(write.table_id)),
    )


def row_images(commit: Commit, lsn: int, publications: list[Publication]) -> None:
    """Append one publication per row change of the commit `lsn`, in its order, and per row that it
    has filled where images must tell."""
    for position, change in enumerate(commit.changes):
        if is_sequence_id(change.table_id):
            continue  # it is nobody's but the nodes'
        image = change.image
        if image is None:
            assert change.kind is ChangeKind.DELETE, change.kind
            publications.append(RowPublication(change.table_id, change.key, None))
            continue
        publications.append(
            RowPublication(
                change.table_id,
                change.key,
                RowImage(
                    change.table_id,
                    change.key,
                    genids_after(change, lsn, position),
                    lsn,
                    change.version,
                    commit.commit_us,
                    image,
                ),
            )
        )

    for backfill in commit.backfills:
        for key, values, genids in zip(
            backfill.keys, backfill.images, backfill.genids, strict=False
        ):
            told = RowImage(
                backfill.table_id, key, genids, lsn, backfill.version, commit.commit_us, values
            )
            publications.append(RowPublication(backfill.table_id, key, told))
        copied = copied_images(backfill, lsn, commit.commit_us)
        publications += (RowPublication(image.table_id, image.key, image) for image in copied)


def copied_images(backfill: Backfill, lsn: int, commit_us: int) -> Iterator[RowImage]:
    """Yield the image of each row that a table gets by a copied range."""
    copied = backfill.copied
    if copied is None or backfill.span is None:
        return
    table_id, version = backfill.table_id, backfill.version
    columns, locks, width = copied.columns, copied.locks, len(copied.columns)
    for row in copied.rows:
        values = {e: v for e, v in zip(columns, row, strict=False) if v is not None}
        genids = dict(zip(locks, row[width:], strict=False))
        key = row[: copied.key_width]
        yield RowImage(table_id, key, genids, lsn, version, commit_us, values)


def genids_after(change: RowChange, lsn: int, position: int) -> Mapping[int, int]:
    """Return the genids of a row after a change, by lock: those it had, and the new one of every
    lock that changed. A FILL changes none, and who follows a row of another table carries that
    one's."""
    if not change.locks:
        return {**change.before, **change.carried} if change.carried else change.before
    new = genid(lsn, position)
    return {**change.before, **change.carried, **dict.fromkeys(change.locks, new)}


def dead_letter(refusal: Refusal) -> DeadLetter:
    return DeadLetter(
        refusal.request_id,
        refusal.attempt,
        refusal.code,
        refusal.message,
        refusal.detail,
        refusal.decided_us,
        refusal.queue,
        refusal.offset,
        refusal.content_type,
        refusal.body,
        refusal.principal,
    )
