"""The command `leasehold jobs`: schema changes on their way; watch them, pause, resume, cancel,
set."""

from __future__ import annotations

import argparse
from typing import Any

from leasehold.adapters.os.clock import unix_us
from leasehold.admin.durations import span
from leasehold.admin.job_report import ENDED_TOLD_MAX, jobs_report, recent_jobs_report
from leasehold.catalog.roles import FIRST_ROLE
from leasehold.cli.command import Subparsers, add, finish, seconds
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.hints import UNKNOWN_JOB
from leasehold.cli.job_watch import left_words, rows_words, watch_jobs
from leasehold.cli.looking import looking
from leasehold.cli.output import Output, clock_time, show_outcome
from leasehold.client.change_producer import ChangeProducer
from leasehold.model.records.requests import ChangeRequest, JobControl
from leasehold.schema_change.job.control import refuse_unaskable
from leasehold.settings.client import ClientSettings

RESULT_TIMEOUT_S = 30.0


def register(subparsers: Subparsers) -> None:
    parser = add(
        subparsers,
        "jobs",
        list_jobs,
        "Up to its point of no return (leasehold ddl --explain shows it) a job can be cancelled;\n"
        "the table is then as it was before. Whom it waits for is named: agent, version, session.",
    )
    actions = parser.add_subparsers(metavar="ACTION")
    listed = actions.add_parser("list", help="list jobs, newest last (also without an action)")
    finish(listed, list_jobs)
    for each in (parser, listed):
        each.add_argument(
            "--all",
            action="store_true",
            help=f"also jobs that ended before the last {ENDED_TOLD_MAX}, as --json anyway",
        )
    watched = actions.add_parser(
        "watch", help="progress of one job, or of all that run, until they end"
    )
    watched.add_argument("job", nargs="?", type=int, help="number of the job")
    finish(watched, watch)
    for action, words in (
        ("pause", "stop a job where it is, to be resumed"),
        ("resume", "let a paused job go on"),
        ("cancel", "roll a job back, before its point of no return; the table becomes as it was"),
        ("postpone", "let a job do all its work, then wait before its point of no return"),
        ("complete", "let a postponed job go on"),
        ("dismiss", "you know of a job that failed: `leasehold status` says no more of it"),
    ):
        controlled = actions.add_parser(action, help=words)
        controlled.add_argument("job", type=int, help="number of the job")
        finish(controlled, control).set_defaults(action=action)
    changed = actions.add_parser("set", help="change a job's speed and patience while it runs")
    changed.add_argument("job", type=int, help="number of the job")
    changed.add_argument("--rows-per-second", type=int, help="0 = as fast as it goes")
    changed.add_argument("--chunk-rows", type=int, help="rows per chunk")
    changed.add_argument(
        "--gentle",
        action=argparse.BooleanOptionalAction,
        help="users who write meanwhile feel half of it, which takes the longer",
    )
    changed.add_argument(
        "--cancel-blockers-after",
        type=seconds,
        metavar="SECONDS",
        help="as 30s or 2m: refuse the renewals of agents that hold it up for longer, so that they"
        " let go when their session ends; 0 = wait for them",
    )
    finish(changed, control).set_defaults(action="set")


def list_jobs(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    with looking(settings, output) as (_, view):
        now_us = view.as_of_us(unix_us())
        everything = args.all or output.as_json
        jobs = (jobs_report if everything else recent_jobs_report)(view, now_us)
        older = len(view.jobs) - len(jobs)
    if output.as_json:
        output.json(jobs)
        return ExitCode.OK
    roles = any(job["asked_by"] != FIRST_ROLE.name for job in jobs)
    output.table(
        [
            ">job",
            "table",
            "status",
            "step",
            ">try",
            ">done",
            ">rows",
            ">rows/s",
            ">left",
            ">age",
            "started",
            *(("asked by",) if roles else ()),
            "sql",
        ],
        [_row(job, with_role=roles) for job in jobs],
        'no job yet: try leasehold ddl "CREATE INDEX … ON …"',
    )
    for job in jobs:
        for words in job["waits_for"]:
            output.line(f"job {job['job']} waits: {words}", "yellow")
        if job["error"]:
            more = f" (rows: leasehold jobs watch {job['job']})" if job["findings"] else ""
            output.line(f"job {job['job']}: {job['error']}{more}", "red")
    if older:
        output.line(f"{older:,} more have ended before: leasehold jobs --all", "dim")
    return ExitCode.OK


def _row(job: dict[str, Any], *, with_role: bool) -> list[Any]:
    return [
        str(job["job"]),
        job["table"],
        job["status"],
        f"{job['step']}/{job['steps']} {job['phase']}",
        job["attempts"],
        f"{job['fraction'] * 100:.0f} %",
        rows_words(job),
        round(job["rows_per_second"]) or None,
        left_words(job),
        span(job["age_ms"]),
        clock_time(job["created_us"]),
        *((job["asked_by"],) if with_role else ()),
        job["sql"],
    ]


def watch(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    with looking(settings, output, follows=True) as (seen, view):
        if args.job is not None and args.job not in view.jobs:
            output.error(f"there is no job {args.job}", hint=UNKNOWN_JOB)
            return ExitCode.NOT_RIGHT
        wanted = (
            {args.job}
            if args.job is not None
            else {number for number, job in view.jobs.items() if not job.status.ended}
        )
        if not wanted:
            output.note("no job is running")
            return ExitCode.OK
        return watch_jobs(seen, wanted, output)


def control(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    action, given = _read_wishes(args)
    if action == "set" and not given:
        output.error(
            "nothing to set: give --rows-per-second, --chunk-rows, --gentle or"
            " --cancel-blockers-after"
        )
        return ExitCode.USAGE
    asked = JobControl(args.job, action, given)
    refuse_unaskable(asked)
    request = ChangeRequest(b"", control=asked)
    with ChangeProducer(settings) as changes:
        outcome = changes.submit(request).result(RESULT_TIMEOUT_S)
    words = f"job {args.job}: {args.action} is in the log at LSN {outcome.lsn:,}"
    return show_outcome(outcome, output, lambda: words, job=args.job, action=args.action)


def _read_wishes(args: argparse.Namespace) -> tuple[str, dict[str, int]]:
    """Return the action as the master knows it, and what it sets."""
    if args.action in ("postpone", "complete"):
        return "set", {"postpone": int(args.action == "postpone")}
    patience_s = getattr(args, "cancel_blockers_after", None)
    gentle = getattr(args, "gentle", None)
    wishes = {
        "gentle": None if gentle is None else int(gentle),
        "rows_per_second": getattr(args, "rows_per_second", None),
        "chunk_rows": getattr(args, "chunk_rows", None),
        "cancel_blockers_after_ms": None if patience_s is None else int(patience_s * 1_000),
    }
    return args.action, {name: value for name, value in wishes.items() if value is not None}
