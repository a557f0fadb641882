"""The command `leasehold ddl "…"`: one schema change, and its job's progress until it ends."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from leasehold.adapters.os.clock import random_bytes
from leasehold.admin.durations import span
from leasehold.admin.feed_compatibility import FeedGate, FeedVerdict, encoded_feeds, judge_feeds
from leasehold.admin.feeds import Feeds, concern_feeds
from leasehold.cli.command import Subparsers, add, add_timeout
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.job_watch import watch_jobs
from leasehold.cli.looking import looking
from leasehold.cli.output import Output
from leasehold.client.change_producer import ChangeProducer
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.requests import ChangeRequest, JobControl, OnConflict, Outcome
from leasehold.pgwire.auth.scram_server import SALT_BYTES
from leasehold.schema_change.job.estimate import NOT_KNOWN, total
from leasehold.schema_change.plan.answers import read_all_told, read_jobs
from leasehold.settings.client import ClientSettings
from leasehold.settings.schema_registry import OFF
from leasehold.sql.ddl.passwords import with_verifiers


def register(subparsers: Subparsers) -> None:
    parser = add(
        subparsers,
        "ddl",
        run,
        "CREATE, ALTER and DROP TABLE and INDEX, TRUNCATE (docs/reference/ddl.md lists them).\n"
        "A CREATE TABLE is there at once; other changes are jobs, whose progress is shown until\n"
        "they end. Stopping the command does not stop the job (leasehold jobs cancel N does).\n"
        "A job whose new element or constraint does not hold for every row fails, names rows, and\n"
        "leaves the table as it was.",
    )
    parser.add_argument(
        "sql",
        help='the statement, e.g. "CREATE INDEX by_dest ON flights (dest)"; several between'
        " semicolons are one commit, or refused whole",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="show the steps, what each waits for, about how many rows and how long, the point of"
        " no return, and what consumers of the table's feeds will find changed; change nothing",
    )
    parser.add_argument(
        "--gentle",
        action="store_true",
        help="users who write meanwhile feel half of it, which takes the longer (leasehold jobs set"
        " N --no-gentle ends that)",
    )
    parser.add_argument(
        "--allow-incompatible",
        action="store_true",
        help="also where a schema registry takes what a feed of the table would tell for"
        " incompatible, or does not answer (LEASEHOLD_REGISTRY_CHECK)",
    )
    parser.add_argument("--no-wait", action="store_true", help="return when the job is accepted")
    add_timeout(parser, 30.0, "the job to be accepted")


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    said = with_verifiers(args.sql, lambda: random_bytes(SALT_BYTES))
    with ChangeProducer(settings) as changes:
        if not args.explain:

            def explain(sql: str) -> Outcome:
                request = {"sql": sql, "on_conflict": OnConflict.FAIL.value}
                return changes.submit(request).result(args.timeout)

            FeedGate(settings).check(said, explain, allow=args.allow_incompatible)
        sql = f"EXPLAIN {said}" if args.explain else said
        request = {"sql": sql, "on_conflict": OnConflict.FAIL.value}
        outcome = changes.submit(request).result(args.timeout)
        for job in read_jobs(outcome.answer) if args.gentle and outcome.lsn else ():
            control = JobControl(job, "set", {"gentle": 1})
            # One that has ended meanwhile needs it no more.
            changes.submit(ChangeRequest(b"", control=control)).result(args.timeout)
    if not outcome.lsn:
        own = str(outcome.detail.get("hint") or "") or None
        output.error(_refusal_words(outcome), outcome.code, own)
        return ExitCode.NOT_RIGHT
    if isinstance(outcome.answer, dict) and "plan" in outcome.answer:
        _show_plan(outcome.answer["plan"], output)
        _show_feeds(outcome.answer, settings, output)
        return ExitCode.OK
    jobs = read_jobs(outcome.answer)
    if not jobs or args.no_wait:
        _show_accepted(outcome, jobs, output)
        return ExitCode.OK
    for told in read_all_told(outcome.answer):
        output.note(told.words)
    for job in jobs:
        output.note(f"job {job} accepted at LSN {outcome.lsn:,}")
    with looking(settings, output, follows=True) as (watch, _):
        return watch_jobs(watch, set(jobs), output)


def _refusal_words(outcome: Outcome) -> str:
    """Return the words of a refusal with what depends on what was to be dropped."""
    more = outcome.detail.get("detail")
    return f"{outcome.code}: {outcome.message}" + (f"\n{more}" if more else "")


def _show_plan(steps: Sequence[dict[str, Any]], output: Output) -> None:
    if output.as_json:
        output.json(list(steps))
        return
    rows = [
        [
            str(step["step"]),
            str(step["version"]),
            step["changes"],
            step["rows"] if step["rows"] >= 0 else None,
            _about_words(step["seconds"]),
            step["waits_for"] + (" · point of no return" if step["point_of_no_return"] else ""),
        ]
        for step in steps
    ]
    heads = [">step", ">version", "changes", ">rows", ">takes", "then waits for"]
    output.table(heads, rows, "nothing to do")
    whole = total(step["seconds"] for step in steps)
    if whole == NOT_KNOWN:
        output.line("no job has ended yet that would tell how long this takes", "dim")
    else:
        output.line(f"in all {_about_words(whole)}, as recent jobs took", "dim")


def _show_feeds(answer: dict[str, Any], settings: ClientSettings, output: Output) -> None:
    """Show what consumers of the tables' feeds will find changed, and what a schema registry says
    of those that have their schemas there. (A master of an earlier release says nothing of it.)"""
    if not answer.get("readers"):
        return
    try:
        states = Feeds(settings).states()
    except BusUnavailable as error:
        output.note(f"what feeds there are can't be read: {error.message}")
        return
    told = concern_feeds(states, answer["readers"])
    verdicts: list[FeedVerdict] = []
    if settings.registry.urls is not None and settings.registry.check != OFF:
        feeds, tables = encoded_feeds(states), answer.get("tables", ())
        verdicts = judge_feeds(feeds, tables, settings.registry, settings.cluster.database)
    if (told or verdicts) and output.as_json:
        output.json({"feeds": told, "registry": [verdict._asdict() for verdict in verdicts]})
        return
    for each in told:
        style = "yellow" if each["breaks"] else ""
        end = ": its consumers can't go on as before" if each["breaks"] else ""
        output.line(f"feed {each['feed']}: {each['words']}{end}", style)
    for verdict in verdicts:
        output.line(verdict.words, "" if verdict.compatible else "yellow")


def _about_words(seconds: float) -> str | None:
    return None if seconds == NOT_KNOWN else f"about {span(seconds * 1_000)}"


def _show_accepted(outcome: Outcome, jobs: Sequence[int], output: Output) -> None:
    if output.as_json:
        output.json({"lsn": outcome.lsn, "answer": outcome.answer})
        return
    notices = read_all_told(outcome.answer)
    for told in notices:
        output.line(told.words, "green")
    for job in jobs:
        output.line(f"job {job} accepted at LSN {outcome.lsn:,} (leasehold jobs watch {job})")
    if not notices and not jobs:
        output.line(f"done at LSN {outcome.lsn:,}", "green")
