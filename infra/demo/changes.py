"""The demo's schema changes: submitted as change requests, followed with live progress."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.admin.report import report
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.job import Job, Phase, Status
from leasehold.cli.job_watch import progress_words
from leasehold.client.change_producer import ChangeProducer
from leasehold.client.subscriber import Subscriber, VersionNotice
from leasehold.model.errors import OutcomeUnknown
from leasehold.settings.client import ClientSettings

STILL_S: Final = 120.0
"""Longest without anything new of a job, or of the load. How long a whole one takes is the
machine's affair: with writers that take all there is, minutes on a slow one."""
JOB_TIMEOUT_S: Final = 1_800.0
EVERY_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Change:
    """A finished schema change. `steps`: (to, publish ms, drain ms)."""

    sql: str
    job: Job
    begin_ns: int
    end_ns: int
    steps: tuple[tuple[str, float, float], ...]
    rows_per_second: float


def follow(
    producer: ChangeProducer,
    watch: ClusterWatch,
    console: Console,
    sql: str,
    when: Callable[[dict[str, Any]], None],
    end: Status = Status.SUCCEEDED,
) -> Change:
    """Submit DDL, draw its job's progress, call `when` with every look at the job, until it ends.

    Raises RuntimeError when the job stands still or does not end in time, or not with the status
    `end`.
    """
    begin_ns = boottime_ns()
    pending = producer.submit({"sql": sql})
    try:
        outcome = pending.result(30)
    except OutcomeUnknown:
        outcome = pending.ask_again().result(30)
    if not outcome.lsn:
        raise RuntimeError(f"{sql}: {outcome.message}")
    number = outcome.answer["job"]
    columns = (
        TextColumn("  job {task.fields[job]}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[words]}"),
    )
    console.print(f"[bold]{sql}[/bold]")
    with Progress(*columns, console=console, transient=False) as progress:
        task = progress.add_task("", total=1.0, job=number, words="accepted")
        said = ""
        patience = Patience(begin_ns)
        for view in watch.views(EVERY_S):
            if (trouble := patience.lost(boottime_ns())) is not None:
                raise RuntimeError(f"{sql}: job {number} {trouble}")
            looks = [j for j in report(view, unix_us())["jobs"] if j["job"] == number]
            if not looks:
                continue
            look = looks[0]
            words = progress_words(look)
            progress.update(task, completed=look["fraction"], words=words)
            place = f"{look['step']} {look['doing']}"
            if not console.is_terminal and place != said:
                said = place
                console.print(f"  job {number}: {words}")
            when(look)
            job = view.jobs[number].job
            moves = [look[name] for name in ("rows", "rows_read", "merging")]
            patience.told((job.status, job.marks, job.looked, moves), boottime_ns())
            if job.status.ended:
                break
    if job.status is not end:
        raise RuntimeError(f"{sql}: job {number} {job.status.value}: {job.error}")
    return Change(sql, job, begin_ns, boottime_ns(), steps_of(job), rows_per_second(job))


class Patience:
    """The patience with a job, or the load: it lasts as long as there is something new of it. Times
    are ns of one clock."""

    def __init__(self, begin_ns: int) -> None:
        self._begin_ns = self._moved_ns = begin_ns
        self._told: object = None

    def told(self, what: object, now_ns: int) -> None:
        if what != self._told:
            self._told, self._moved_ns = what, now_ns

    def lost(self, now_ns: int) -> str | None:
        """Return why it is lost, None while it is not."""
        if now_ns - self._moved_ns > STILL_S * 1e9:
            return f"has stood still for {STILL_S:g} s"
        if now_ns - self._begin_ns > JOB_TIMEOUT_S * 1e9:
            return f"did not end in {JOB_TIMEOUT_S:g} s"
        return None


def steps_of(job: Job) -> tuple[tuple[str, float, float], ...]:
    """Publish: from the intent to the descriptor in the log; drain: from there to the fence."""
    found = []
    for (step, phase, at_us), after in pairwise(job.marks):
        if phase == Phase.PUBLISHING.value:
            publish_ms = (after[2] - at_us) / 1_000
        elif phase == Phase.DRAINING.value:
            found.append((job.steps[step].label, publish_ms, (after[2] - at_us) / 1_000))
    return tuple(found)


def rows_per_second(job: Job) -> float:
    """Backfill rows by the time from the fence to the end of verification."""
    begin = next((at for _, phase, at in job.marks if phase == Phase.BACKFILLING.value), 0)
    end = next((at for _, phase, at in job.marks if begin and phase == "verifying"), 0)
    return job.rows_read / ((end - begin) / 1e6) if end > begin else 0.0


class EventPrinter:
    """A subscriber in a thread: prints version events as any service would see them."""

    def __init__(self, settings: ClientSettings, console: Console) -> None:
        self._console = console
        self.events: list[VersionNotice] = []
        self._stop = threading.Event()
        self._subscriber = Subscriber(settings)
        self._thread = threading.Thread(target=self._print, name="events", daemon=True)
        self._thread.start()

    def _print(self) -> None:
        while not self._stop.is_set():
            for news in self._subscriber.poll(0.2):
                if isinstance(news, VersionNotice):
                    self.events.append(news)
                    self._console.print(f"  [cyan]event[/cyan] {news}")

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._subscriber.close()
