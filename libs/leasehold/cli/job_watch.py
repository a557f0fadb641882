"""Jobs as they go: bars for a terminal, lines for a file, JSON for programs."""

from __future__ import annotations

import re
from typing import Any, Final

from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn

from leasehold.adapters.os.clock import unix_us
from leasehold.admin.durations import span
from leasehold.admin.job_report import one_job_report
from leasehold.admin.watch import ClusterWatch
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.cli.terminal_text import escape_control

EVERY_S: Final = 0.5
ENDED: Final = ("succeeded", "failed", "cancelled")
FINDINGS_SHOWN_MAX: Final = 5
NUMBERS: Final = re.compile(r"[0-9.,]+")


def watch_jobs(watch: ClusterWatch, wanted: set[int], output: Output) -> int:
    """Show progress until every wanted job has ended; return OK when all succeeded, else
    NOT_RIGHT."""
    statuses: dict[int, str] = {}
    said: dict[int, tuple[Any, ...]] = {}
    columns = (
        TextColumn("{task.fields[name]}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[words]}", markup=False),
    )
    with output.progress(*columns) as progress:
        tasks: dict[int, TaskID] = {}
        for view in watch.views(EVERY_S):
            for number in sorted(wanted):
                job = None
                if statuses.get(number) not in ENDED:
                    job = one_job_report(view, number, view.as_of_us(unix_us()))
                if job is None:
                    continue
                statuses[number] = job["status"]
                if number not in tasks:
                    name = escape_control(f"job {number} {job['table']}")
                    tasks[number] = progress.add_task("", total=1.0, name=name, words="")
                words = escape_control(progress_words(job))
                progress.update(tasks[number], completed=job["fraction"], words=words)
                _say(job, said, output)
            if len(statuses) == len(wanted) and all(s in ENDED for s in statuses.values()):
                break
    return ExitCode.OK if set(statuses.values()) == {"succeeded"} else ExitCode.NOT_RIGHT


def progress_words(job: dict[str, Any]) -> str:
    """Return ``step 2/3 → write-only: filling rows, 120,000 of about 336,776, 84,000/s, 3 s
    left``."""
    if job["status"] in ENDED:
        return f"{job['status']}{': ' + job['error'] if job['error'] else ''}"
    words = [f"step {job['step']}/{job['steps']} → {job['to']}: {job['doing']}"]
    if job["attempts"] > 1:
        words.append(f"try {job['attempts']}")
    if job["phase"] in ("backfilling", "validating"):
        words.append(f"{rows_words(job)} rows")
        if job["rows_per_second"]:
            words.append(f"{job['rows_per_second']:,.0f}/s")
    left = left_words(job)
    if left is not None:
        words.append(f"{left} left")
    if job["waits_for"]:
        more = len(job["waits_for"]) - 1
        words.append(f"waits: {job['waits_for'][0]}" + (f" and {more} more" if more else ""))
    return ", ".join(words)


def rows_words(job: dict[str, Any]) -> str:
    """Return ``120,000 of about 336,776``: what the backfill, or verification in slices, has
    read."""
    of = (
        f" of about {job['rows_total']:,}"
        if job["rows_total"] and (job["phase"] == "backfilling" or job["in_slices"])
        else ""
    )
    return f"{job['rows']:,}{of}"


def left_words(job: dict[str, Any]) -> str | None:
    """Return the time left of the backfill under way, and of the whole job where recent ones tell;
    None if it is not known."""
    known = [job[name] for name in ("eta_s", "ends_in_s") if job[name] is not None]
    if not known:
        return None
    words = f"about {span(known[0] * 1_000)}"
    return (
        words
        if len(known) == 1 or known[0] == known[1]
        else f"{words}, in all {span(known[1] * 1_000)}"
    )


def _say(job: dict[str, Any], said: dict[int, tuple[Any, ...]], output: Output) -> None:
    """Write a line at each change of state, not at each row, where no bar is drawn."""
    waits = tuple(NUMBERS.sub("", words) for words in job["waits_for"])  # time alone is no change
    state = (job["status"], job["step"], job["phase"], waits)
    if said.get(job["job"]) == state:
        return
    said[job["job"]] = state
    if output.as_json:
        output.json(job)
    elif not output.is_terminal or job["status"] in ENDED:
        output.line(f"job {job['job']} {job['table']}: {progress_words(job)}")
        for words in finding_words(job):
            output.line(f"  {words}", "red")


def finding_words(job: dict[str, Any]) -> list[str]:
    """Return a line for each row that was to blame, at most FINDINGS_SHOWN_MAX of those kept."""
    found = job["findings"] if job["status"] in ENDED else []
    said = [
        f"row {', '.join(map(str, finding['key']))}: {finding['words']}"
        for finding in found[:FINDINGS_SHOWN_MAX]
    ]
    if len(found) > FINDINGS_SHOWN_MAX:
        said.append(f"… {len(found)} are kept, in leasehold jobs --json")
    return said
