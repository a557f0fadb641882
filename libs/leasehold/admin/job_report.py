"""Schema changes as plain data: how far each is, how long it will take, whom it waits for. PURE.

Every name of the result is part of the command's promise to programs: add names, never change one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from leasehold.admin.blocker_report import holding_report, holding_words, seconds_words
from leasehold.admin.merge_progress import (
    Merging,
    backfills_by_range,
    count_merged,
    find_merging,
    merging_words,
)
from leasehold.admin.sender_clocks import SPARK
from leasehold.admin.view import SILENT_AFTER_US, ClusterView, JobView, TableView
from leasehold.catalog.job import Job, Phase, Status
from leasehold.catalog.roles import FIRST_ROLE
from leasehold.lease.replies import Holding
from leasehold.model.records.jobs import FAILING, JobProgress
from leasehold.schema_change.coordinator.verification import list_parts, make_subject
from leasehold.schema_change.job.control import DISMISSED
from leasehold.schema_change.job.estimate import (
    NOT_KNOWN,
    RECENT_JOBS_MAX,
    Pace,
    measure_pace,
    seconds_left,
    total,
)
from leasehold.schema_change.job.transitions import can_turn_back
from leasehold.values.storage import to_json

ENDED_TOLD_MAX: Final = 100
"""Of thousands of jobs that have ended, those that somebody may look for."""
FAILED_TOLD_US: Final = 24 * 3_600_000_000
BEHIND_LSN_SAID: Final = 1_000
"""Acks come several times a second, so a node that keeps up is seen a little behind."""
LINGERING_MS: Final = 1_000
"""A step's leases end in milliseconds: before that their holders are in nobody's way, and named in
`blockers` alone."""
LATE_SAID_MS: Final = 5_000
SPARK_SILENT_SAID_MS: Final = 15_000
SPARK_RETRY_MS: Final = 30_000
"""Longest that Spark pauses before it tries a run again that has failed."""
_WORK: Final = {
    Phase.PUBLISHING: "publishing the next version",
    Phase.DRAINING: "waiting until nobody holds the older version",
    Phase.BACKFILLING: "filling rows",
    Phase.VALIDATING: "looking for rows that break the constraint",
    Phase.VERIFYING: "every coherent node compares rows and element",
    Phase.DONE: "done",
}


def jobs_report(view: ClusterView, now_us: int) -> list[dict[str, Any]]:
    """Return what is known of every job, by its number."""
    return _reports(view, (seen for _, seen in sorted(view.jobs.items())), now_us)


def running_jobs_report(view: ClusterView, now_us: int, most: int) -> list[dict[str, Any]]:
    """Return the same of those that have not ended: `most` at most, the oldest."""
    going = (seen for _, seen in sorted(view.jobs.items()) if not seen.status.ended)
    return _reports(view, islice(going, most), now_us)


def recent_jobs_report(
    view: ClusterView, now_us: int, ended_max: int = ENDED_TOLD_MAX
) -> list[dict[str, Any]]:
    """Return the same of those that somebody may have to know of, by their numbers: what has not
    ended; the newest that have, up to `ended_max`; as many that failed in the last day, each with
    the newest job that has made the same change since, if one has."""
    ended = [(n, seen) for n, seen in sorted(view.jobs.items(), reverse=True) if seen.status.ended]
    failed = [
        seen
        for _, seen in ended
        if seen.status is Status.FAILED and now_us - seen.event.commit_us <= FAILED_TOLD_US
    ][:ended_max]
    made_again: dict[Any, JobView] = {}
    if failed:
        for _, seen in ended:
            if seen.status is Status.SUCCEEDED:
                made_again.setdefault(_change_of(seen), seen)
    wanted = [
        *(seen for seen in view.jobs.values() if not seen.status.ended),
        *(seen for _, seen in ended[:ended_max]),
        *failed,
        *(made_again[_change_of(seen)] for seen in failed if _change_of(seen) in made_again),
    ]
    by_id = {seen.event.job_id: seen for seen in wanted}
    return _reports(view, (by_id[number] for number in sorted(by_id)), now_us)


def _change_of(seen: JobView) -> tuple[Any, ...]:
    """Return what the job changes, which another one may have done since."""
    body = seen.event.body
    return body.get("table_id"), body.get("kind"), body.get("subject")


def count_ended(view: ClusterView) -> int:
    """Return how many jobs are known that have ended."""
    return sum(1 for seen in view.jobs.values() if seen.status.ended)


def _reports(view: ClusterView, seen: Iterable[JobView], now_us: int) -> list[dict[str, Any]]:
    newest = (one for _, one in sorted(view.jobs.items(), reverse=True))
    done = (one.job for one in newest if one.status is Status.SUCCEEDED and one.readable)
    pace = measure_pace(islice(done, RECENT_JOBS_MAX))
    return [job_report(view, one, pace, now_us) for one in seen if one.readable]


def one_job_report(view: ClusterView, number: int, now_us: int) -> dict[str, Any] | None:
    """Return what is known of one job, None where that is nothing."""
    seen = view.jobs.get(number)
    told = [] if seen is None else _reports(view, (seen,), now_us)
    return told[0] if told else None


def job_report(view: ClusterView, seen: JobView, pace: Pace, now_us: int) -> dict[str, Any]:
    """Return what people and programs are shown of a job; None stands for what is not known.

    `fraction` is 0 to 1 over all steps. `rows` of `rows_total` are those of the backfill or
    validation under way, or rows and entries of a verification in slices (`in_slices`: the nodes
    look at the table one slice after the other). In a backfill by range they are those of the node
    that is slowest to merge what was read (`rows_read`), and `merging` are all that have to.
    `eta_s` is the rest of that work, `ends_in_s` of the whole job by what recent ones took; neither
    is known while the job waits for a person or somebody's lease. `attempts`: how often the phase
    has begun; `phase_ms`: how long it has lasted. `spark_fails`: why Spark has to try its run
    again, "" where it has not. `blockers`: whose leases are in the way (`holding_report`).

    `dismissed`: it has failed, and somebody knows. `ended_us`: when it ended. `point_of_no_return`:
    the step (from 1) that publishes what can't be taken back; `can_cancel`: it is not published
    yet. `findings`: which rows a failed verification blames. `asked_by`: the role.
    """
    job = seen.job
    merging = find_merging(view, seen)
    rows, total_rows, rate = _read(view, job, merging, now_us)
    reading = job.phase in (Phase.BACKFILLING, Phase.VALIDATING) or job.look is not None
    reading = reading and job.status is Status.RUNNING  # paused, it takes as long as a person does
    holders = [
        holding_report(view, holding, _table_name(view, job, holding.table), now_us)
        for holding in holders_in_the_way(view, job)
    ]
    eta_s = _eta_s(job, rows, total_rows, rate, pace) if reading else NOT_KNOWN
    return {
        "job": job.job_id,
        "sql": job.sql,
        "asked_by": job.principal or FIRST_ROLE.name,
        "table": job.table,
        "table_id": job.table_id,
        "kind": job.kind,
        "subject": job.subject,
        "status": job.status.value,
        "phase": job.phase.value,
        "step": min(job.step + 1, len(job.steps)),
        "steps": len(job.steps),
        "to": job.current.label if job.step < len(job.steps) else "",
        "point_of_no_return": job.point + 1,
        "can_cancel": can_turn_back(job),
        "postponed": job.postponed,
        "doing": _doing(job),
        "phase_ms": _phase_ms(view, job, now_us) if not job.status.ended else None,
        "waits_for": waits_for(view, seen, holders, now_us),
        "merging": [each._asdict() for each in merging],
        "spark_fails": spark_fails(view, job, now_us),
        "blockers": holders,
        "fraction": _fraction(job, rows, total_rows),
        "run": job.run,
        "rows": rows,
        "rows_read": _rows_read(view, job),
        "rows_applied": job.rows_applied,
        "rows_total": max(total_rows, rows) if total_rows else 0,
        "rows_per_second": rate,
        "in_slices": job.look is not None,
        "eta_s": _known(eta_s),
        "ends_in_s": None if holders else _known(_ends_in_s(job, eta_s, total_rows, pace)),
        "attempts": _attempts(job),
        "settings": dict(job.settings),
        "findings_dropped": job.dropped,
        "error": job.error,
        "findings": [
            {
                "condition": condition,
                "element": element,
                "key": _key_report(view.tables.get(job.table_id), key),
                "words": words,
            }
            for condition, element, key, words in job.findings
        ],
        "dismissed": bool(job.settings.get(DISMISSED)),
        "created_us": job.created_us,
        "ended_us": job.marks[-1][2] if job.status.ended and job.marks else None,
        "age_ms": max(0, seen.event.commit_us - job.created_us) // 1_000
        if job.status.ended
        else max(0, view.log_now_us(now_us) - job.created_us) // 1_000,
        "changed_us": seen.event.commit_us,
        "marks": [list(mark) for mark in job.marks],
    }


def _table_name(view: ClusterView, job: Job, table_id: int) -> str:
    """Return the name of a table that the job changes, be it the job's own or another."""
    if table_id == job.table_id:
        return job.table
    known = view.tables.get(table_id)
    return known.event.name if known else f"table {table_id}"


def _read(
    view: ClusterView, job: Job, merging: list[Merging], now_us: int
) -> tuple[int, int, float]:
    """How much of the work under way is done, of how much (0 = not known), and how fast."""
    total_rows = job.rows if job.rows >= 0 else view.ends.get(f"rows/{job.table_id}", 0)
    if job.look is not None:
        table = view.tables.get(job.table_id)
        parts = len(list_parts(job, table.descriptor)) if table is not None else 1
        return job.looked, parts * total_rows, _rate(view, job, job.looked, now_us)
    merged = count_merged(view, job, merging)
    if merged is not None:
        return min(merged, total_rows or merged), total_rows, _rate(view, job, merged, now_us)
    if job.copies_rows and job.phase is Phase.BACKFILLING:
        # The master says in the log how far it is.
        return job.rows_read, total_rows, _rate(view, job, job.rows_read, now_us)
    current = _progress(view, job)
    reading = job.phase in (Phase.BACKFILLING, Phase.VALIDATING) and job.status is Status.RUNNING
    rate = current.rows_per_second if current and reading else 0.0
    return _rows_read(view, job), total_rows, rate


def _progress(view: ClusterView, job: Job) -> JobProgress | None:
    """Return what Spark has told last of the run under way."""
    progress = view.progress.get(job.job_id)
    return progress if progress is not None and progress.run == job.run else None


def _rows_read(view: ClusterView, job: Job) -> int:
    progress = _progress(view, job)
    return max(job.rows_read, progress.rows if progress else 0)


def _rate(view: ClusterView, job: Job, done: int, now_us: int) -> float:
    """Return how much of it is done a second, of what has begun with the job's phase."""
    phase_ms = _phase_ms(view, job, now_us) if job.status is Status.RUNNING else 0
    return round(done * 1_000 / phase_ms, 1) if phase_ms > 0 else 0.0


def _known(seconds: float) -> float | None:
    return None if seconds == NOT_KNOWN else round(seconds, 1)


def _eta_s(job: Job, rows: int, total_rows: int, rate: float, pace: Pace) -> float:
    """Return the seconds left at the rate of this run, or else of recent jobs; never above the set
    limit."""
    if not total_rows:
        return NOT_KNOWN
    left, limit = max(0, total_rows - rows), job.settings.get("rows_per_second", 0)
    if rate > 0:
        return left / (min(rate, limit) if limit else rate)
    work = {Phase.BACKFILLING: pace.backfill, Phase.VALIDATING: pace.validate}
    return work.get(job.phase, pace.verify).seconds(left, limit)


def _ends_in_s(job: Job, eta_s: float, rows: int, pace: Pace) -> float:
    if job.status.ended or _waits_for_somebody(job):
        return NOT_KNOWN
    step, limit = job.current, job.settings.get("rows_per_second", 0)
    verifying = [pace.verify.seconds(rows, limit)] * bool(step.verifies)
    validating = [pace.validate.seconds(rows, limit)] * bool(step.validates)
    match job.phase:
        case Phase.BACKFILLING:
            backfills_after = len(step.backfills) - job.backfill - 1
            backfilling = [pace.backfill.seconds(rows, limit)] * backfills_after
            in_step = total((eta_s, *backfilling, *validating, *verifying))
        case Phase.VALIDATING:
            in_step = total((eta_s, *verifying))
        case Phase.VERIFYING:
            in_step = total(verifying) if job.look is None else eta_s
        case _:
            in_step = pace.step_seconds(step, rows, limit)
    return seconds_left(job, pace, rows, in_step)


def _waits_for_somebody(job: Job) -> bool:
    """Now, or before it can end: how long a person takes nobody knows."""
    postponed = bool(job.settings.get("postpone")) and can_turn_back(job)
    return job.status is Status.PAUSED or postponed


def _attempts(job: Job) -> int:
    """How often the phase that the job is in has begun in this step: 1 = at the first try."""
    if job.status is Status.ROLLING_BACK:
        return 1  # the marks of the way forth are beside its own, and nothing of it can fail
    begun = sum(1 for step, phase, _ in job.marks if (step, phase) == (job.step, job.phase.value))
    backfills_before = job.backfill if job.phase is Phase.BACKFILLING else 0
    return max(1, begun - backfills_before)


def _key_report(table: TableView | None, key: Iterable[Any]) -> list[Any]:
    """A primary key in its JSON form; as text while nothing is known of the table."""
    columns = table.descriptor.key_columns if table is not None else ()
    values = list(key)
    if len(columns) != len(values):  # a finding may be about no row
        return [str(value) for value in values]
    return [to_json(column.type, v) for column, v in zip(columns, values, strict=True)]


def _doing(job: Job) -> str:
    if job.status.ended:
        return job.error or job.status.value
    if job.status is Status.PAUSED:
        return "paused; leasehold jobs resume " + str(job.job_id)
    if job.postponed:
        return "postponed; leasehold jobs complete " + str(job.job_id)
    words = _WORK[job.phase]
    if job.copies_rows and job.phase is Phase.BACKFILLING:
        words = "rows are copied under the other key"
    if backfills_by_range(job) and job.chunks_ended:
        words = "every coherent node merges what was read"
    return f"rolling back: {words}" if job.status is Status.ROLLING_BACK else words


def _fraction(job: Job, rows: int, total: int) -> float:
    """Steps count alike; within a step publishing, draining and its work do."""
    if job.status.ended:
        return 1.0  # on whichever way, it has come to its end
    if not job.steps or job.step >= len(job.steps):
        return 0.0
    backfill = job.current.backfill
    read = min(1.0, rows / total if total else 0.0)
    if job.phase is Phase.BACKFILLING and backfill:
        read = (job.backfill + read) / len(job.current.backfills)  # one backfill after the other
    # Behind a fill, or Spark's look, it has what that leaves: the bar never goes back.
    verifying = 0.9 if backfill or job.current.validates else 0.5
    within = {
        Phase.PUBLISHING: 0.0,
        Phase.DRAINING: 0.05 if backfill else 0.5,
        Phase.BACKFILLING: 0.1 + 0.8 * read,
        Phase.VALIDATING: 0.9 if backfill else 0.5 + 0.4 * read,
        Phase.VERIFYING: verifying + (1 - verifying) * read * (job.look is not None),
        Phase.DONE: 1.0,
    }[job.phase]
    # A backfill is the long part: it gets the room of four steps.
    weights = [4.0 if step.backfill else 1.0 for step in job.steps]
    done = sum(weights[: job.step]) + weights[job.step] * within
    return round(done / sum(weights), 4)


def waits_for(
    view: ClusterView, seen: JobView, holders: Iterable[dict[str, Any]], now_us: int
) -> list[str]:
    """What a job waits for, each with what one can do about it; empty when nothing is in its way.
    `holders`: those whose leases are, as `holding_report` tells of them."""
    job = seen.job
    if job.status.ended:
        return []
    if job.status is Status.PAUSED:
        return [f"a person paused it (leasehold jobs resume {job.job_id})"]
    if job.postponed:
        return [f"a person postponed it (leasehold jobs complete {job.job_id})"]
    if nobody := _masterless(view, now_us):
        return [nobody]
    if job.phase is Phase.VERIFYING:
        return _unverified(view, seen, now_us)
    if job.phase in (Phase.BACKFILLING, Phase.VALIDATING):
        return _unread(view, seen, now_us)
    if "ledger" in view.unreachable:
        return ["the lease ledger is away; schema changes wait for it, reads and writes go on"]
    if view.ledger is None:
        return []
    if not view.ledger.report.ready:
        return ["the ledger's grace after a restart: agents register again what they hold (D6)"]
    if _phase_ms(view, job, now_us) < LINGERING_MS:
        return []
    return [holding_words(told) for told in holders]


def _masterless(view: ClusterView, now_us: int) -> str:
    """Return a sentence that no master writes; "" while one does (an idle one writes, too), or
    while Kafka is away and nobody could know."""
    silent_us = now_us - view.log.seen_us
    if not view.log.seen_us or "kafka" in view.unreachable or silent_us <= SILENT_AFTER_US:
        return ""
    words = f"nothing is heard of a master for {seconds_words(silent_us // 1_000)}"
    return f"{words}; the next one goes on with it"


def _unverified(view: ClusterView, seen: JobView, now_us: int) -> list[str]:
    """Return a sentence for each coherent node whose report on the verification is missing.

    Each slice is asked for by a record of its own, and the reports on it have that record's LSN.
    """
    job, asked = seen.job, seen.event
    reports = view.checks.get(make_subject(job), {}).values()
    said = {report.node for report in reports if report.lsn >= asked.lsn}
    since_ms = max(0, view.log_now_us(now_us) - asked.commit_us) // 1_000
    late = min(since_ms, _phase_ms(view, job, now_us)) > LATE_SAID_MS
    found = []
    for name, node in sorted(view.nodes.items()):
        behind = view.log.lsn - node.ack.lsn
        if node.ack.coherent and behind > BEHIND_LSN_SAID:
            found.append(f"node {name} is {behind:,} transactions behind")
        elif node.ack.coherent and late and name not in said:
            found.append(f"node {name} is still verifying {job.subject}")
    return found


def _unread(view: ClusterView, seen: JobView, now_us: int) -> list[str]:
    """Spark writes its progress every few seconds, unless the job is paused: so from the newest
    record on it, which has let it go on, if nothing else."""
    job = seen.job
    progress = view.progress.get(job.job_id)
    heard = progress is not None and progress.run == job.run
    changed_ms = max(0, view.log_now_us(now_us) - seen.event.commit_us) // 1_000
    since_ms = silent_ms = min(_phase_ms(view, job, now_us), changed_ms)
    if heard and progress is not None:
        silent_ms = min(silent_ms, view.age_us(SPARK, progress.sent_us, now_us) // 1_000)
    backfilling = job.phase is Phase.BACKFILLING
    if backfilling and job.chunks_ended:
        if since_ms < LINGERING_MS:
            return []
        return merging_words(job, find_merging(view, seen), max(job.rows, job.rows_read), since_ms)
    which = f"run {job.run} of the {'backfill' if backfilling else 'validation'}"
    if why := spark_fails(view, job, now_us):
        return [f"Spark fails at {which} and tries again: {why}"]
    if silent_ms <= SPARK_SILENT_SAID_MS:
        return []
    words = "has stopped telling of" if heard else "has not begun"
    return [f"Spark {words} {which}, for {seconds_words(silent_ms)}"]


def spark_fails(view: ClusterView, job: Job, now_us: int) -> str:
    """Return why the run under way makes no progress although Spark is at work; "" where it does,
    or nobody knows."""
    progress = view.progress.get(job.job_id)
    reading = job.status is Status.RUNNING and job.phase in (Phase.BACKFILLING, Phase.VALIDATING)
    if not reading or progress is None or progress.run != job.run:
        return ""
    silent_ms = view.age_us(SPARK, progress.sent_us, now_us) // 1_000
    if silent_ms > SPARK_SILENT_SAID_MS + SPARK_RETRY_MS or not progress.phase.startswith(FAILING):
        return ""
    return progress.phase.removeprefix(FAILING)


def _phase_ms(view: ClusterView, job: Job, now_us: int) -> int:
    """Return how long the job has been in its phase, 0 where no mark tells."""
    return max(0, view.log_now_us(now_us) - job.marks[-1][2]) // 1_000 if job.marks else 0


def holders_in_the_way(view: ClusterView, job: Job) -> list[Holding]:
    """Leases that keep the job's step from going on, whatever else it waits for."""
    waiting = job.phase in (Phase.PUBLISHING, Phase.DRAINING) and not job.status.ended
    if view.ledger is None or not waiting:
        return []
    return [
        holding
        for table_id, version in sorted(job.versions.items())
        for holding in view.ledger.holders.get(table_id, ())
        if _in_the_way(holding, version, job.phase)
    ]


def _in_the_way(holding: Holding, version: int, phase: Phase) -> bool:
    # Draining waits until nobody is below the version just published; publishing it needs only
    # that nobody is below the one before (D2).
    return holding.version < (version if phase is Phase.DRAINING else version - 1)
