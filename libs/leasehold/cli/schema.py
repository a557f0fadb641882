"""The command `leasehold schema`: the difference between a declared schema and the living one as a
plan of online changes, and their execution."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from leasehold.adapters.os.clock import boottime_ns
from leasehold.admin.durations import span
from leasehold.cli.command import Subparsers, add, finish, read_text_file, wrap_paragraphs
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.hints import hint_for
from leasehold.cli.output import Output
from leasehold.cli.sql import add_address_options
from leasehold.cli.terminal_text import escape_control
from leasehold.cli.transfer.sql_connections import connector
from leasehold.model.errors import ConfigurationError, LeaseholdError, OutcomeUnknown
from leasehold.schema_change.declared.catalog_rows import LivingSchema
from leasehold.schema_change.declared.schema_plan import PlannedRequest, SchemaPlan, plan_schema
from leasehold.schema_change.declared.wanted import Wanted, line_of, read_wanted
from leasehold.schema_change.job.estimate import NOT_KNOWN, total
from leasehold.settings.client import ClientSettings
from leasehold.transfer.declared_schema import JobSeen, SchemaNode
from leasehold.values.time_zone import zone_of

APPLICATION: Final = "leasehold schema"
BETWEEN: Final = "\n;\n"
BUSY_LOOK_S: Final = 0.5
PLANS_MAX: Final = 3
"""How often a plan is made anew because somebody else has changed the schema meanwhile."""
HELP: Final = """\
FILE says what is to be there: CREATE TABLE, INDEX, SEQUENCE and VIEW, ALTER TABLE … ADD, COMMENT
ON, in any order. Roles and privileges are no part of it. A comment says what no statement can:

  -- leasehold: renamed from OLD      of a table, a column or a sequence
  -- leasehold: using EXPRESSION      how a column's values get their other type

A hint is of what begins on its line before it, else of what begins next. What has been renamed
needs it no more.

Whom it asks: LEASEHOLD_SQL_HOST, _PORT, _USER and so on, or the options below."""
DIFF_HELP: Final = """\
Exit code 0 when they are equal, 1 when they differ (or no statements lead from one to the other),
2 when a file or a setting is wrong, 3 when the node can't be reached. Nothing is changed."""
APPLY_HELP: Final = """\
Shows the plan, asks, and runs it request by request: each is one commit, or one job that is
followed to its end. The first one that fails ends it; what was done stays, and running it again
goes on from there. Tables, columns, sequences and views that are not in FILE are dropped only with
--allow-drop, else nothing is begun. Exit code 0 when the schema is what FILE says."""


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "schema", _show_usage, HELP)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    asked = actions.add_parser("diff", help="show the plan, and change nothing", **_more(DIFF_HELP))
    _add_options(asked)
    finish(asked, diff)
    done = actions.add_parser("apply", help="show the plan and run it", **_more(APPLY_HELP))
    _add_options(done)
    done.add_argument("--yes", action="store_true", help="ask nobody")
    done.add_argument(
        "--allow-drop", action="store_true", help="also what loses rows, values or objects for good"
    )
    finish(done, apply)


def _more(words: str) -> dict[str, Any]:
    formatter = argparse.RawDescriptionHelpFormatter
    return {"description": wrap_paragraphs(words), "formatter_class": formatter}


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="+", help="the schema; several are one; - = standard input"
    )
    parser.add_argument(
        "--time-zone",
        default="",
        metavar="ZONE",
        help="of constants in FILE that name no offset (UTC)",
    )
    add_address_options(parser)


def _show_usage(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    raise AssertionError("an action is required")


# ---------------------------------------------------------------- files


def read_files(names: Sequence[str], zone: str) -> Wanted:
    """Return the schema that the files say together. Raises ConfigurationError, with file and line,
    for what can't be read or is no declared schema."""
    if zone:
        try:
            zone_of(zone)
        except LeaseholdError as error:
            raise ConfigurationError(f"--time-zone: {error.message}") from error
    texts = [sys.stdin.read() if name == "-" else read_text_file(name) for name in names]
    whole = BETWEEN.join(texts)
    try:
        return read_wanted(whole, zone)
    except LeaseholdError as error:
        line, number = line_of(whole, error), 0
        while line > (lines := texts[number].count("\n") + BETWEEN.count("\n")):
            line, number = line - lines, number + 1
        words = f"{names[number]}, line {line}: {error.message}"
        raise ConfigurationError(words, **error.detail) from error


# ---------------------------------------------------------------- diff


def diff(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    wanted = read_files(args.file, args.time_zone)
    with _node(args, settings) as node:
        living = node.read()
    plan = _plan(living, wanted, args.time_zone)
    if output.as_json:
        output.json(plan_report(plan, living))
    else:
        show_plan(plan, living, output)
    return ExitCode.NOT_RIGHT if plan.requests else ExitCode.OK


@contextlib.contextmanager
def _node(args: argparse.Namespace, settings: ClientSettings) -> Iterator[SchemaNode]:
    connect = connector(args, settings.cluster.database, APPLICATION)
    with contextlib.closing(SchemaNode(connect, args.time_zone)) as node:
        yield node


def _plan(living: LivingSchema, wanted: Wanted, zone: str) -> SchemaPlan:
    return plan_schema(
        living.catalog,
        wanted,
        zone=zone,
        rows=living.rows,
        pace=living.pace,
    )


def plan_report(plan: SchemaPlan, living: LivingSchema) -> dict[str, Any]:
    """Return the plan as `--json` prints it."""
    return {
        "equal": not plan.requests,
        "lsn": living.lsn,
        "requests": [request_report(request) for request in plan.requests],
        "losses": plan.losses,
        "notes": list(plan.notes),
        "running_jobs": [
            {"job": job, "table": table} for job, table in sorted(living.jobs.items())
        ],
    }


def request_report(request: PlannedRequest) -> dict[str, Any]:
    """Return one request as `--json` prints it."""
    return {
        "table": request.table or None,
        "rows_about": None if request.rows < 0 else request.rows,
        "seconds_about": None if request.seconds == NOT_KNOWN else request.seconds,
        "statements": [
            {
                "sql": each.sql,
                "instant": each.instant,
                "backfills_rows": each.backfills,
                "looks_at_rows": each.looks,
                "loses": each.loses or None,
                "may_fail": each.may_fail or None,
            }
            for each in request.statements
        ],
    }


def show_plan(plan: SchemaPlan, living: LivingSchema, output: Output) -> None:
    """Show a plan to people."""
    for note in plan.notes:
        output.line(f"note: {note}", "dim")
    for job, table in sorted(living.jobs.items()):
        output.line(f"note: job {job} changes table {table} now; apply waits for it", "yellow")
    if not plan.requests:
        output.line(f"equal at LSN {living.lsn:,}", "green")
        return
    for number, request in enumerate(plan.requests, 1):
        output.line(f"{number}. {_head(request)}", "bold")
        for each in request.statements:
            output.line("   " + each.sql.replace("\n", "\n   ") + ";")
            if each.loses:
                output.line(f"   -- LOSES {each.loses}", "red")
            if each.may_fail:
                output.line(f"   -- may fail: {each.may_fail}", "yellow")
    count = sum(len(request.statements) for request in plan.requests)
    words = f"{_count(count, 'statement')} in {_count(len(plan.requests), 'request')}"
    seconds = total(request.seconds for request in plan.requests)
    if seconds != NOT_KNOWN and any(request.table for request in plan.requests):
        words += f", about {span(seconds * 1_000)} as recent jobs took"
    output.line(f"{words}; compared at LSN {living.lsn:,}", "dim")


def _head(request: PlannedRequest) -> str:
    if not request.table:
        return "at once"
    words = f"one job on table {request.table}"
    if all(each.instant for each in request.statements):
        return f"{words}, which touches no row"
    doing = [
        word
        for word, does in (
            ("fills", any(each.backfills for each in request.statements)),
            ("looks at", any(each.looks for each in request.statements)),
        )
        if does
    ]
    rows = f"about {_count(request.rows, 'row')}" if request.rows >= 0 else "its rows"
    about = "" if request.seconds == NOT_KNOWN else f", about {span(request.seconds * 1_000)}"
    return f"{words}, which {' and '.join(doing)} {rows}{about}"


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


# ---------------------------------------------------------------- apply


def apply(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    wanted = read_files(args.file, args.time_zone)
    if not args.yes and not (sys.stdin.isatty() and output.err.is_terminal):
        raise ConfigurationError(
            "nobody can be asked here: say --yes, or look at the plan first (leasehold schema diff)"
        )
    with _node(args, settings) as node:
        node.lock()
        for _ in range(PLANS_MAX):
            living = _wait_for_jobs(node, output)
            plan = _plan(living, wanted, args.time_zone)
            if output.as_json:
                output.json(plan_report(plan, living))
            else:
                show_plan(plan, living, output)
            if not plan.requests:
                return ExitCode.OK
            if plan.losses and not args.allow_drop:
                output.error(
                    f"nothing was done: the plan loses {_listed(plan.losses)}. --allow-drop lets"
                    " it; what only has another name needs `-- leasehold: renamed from OLD`"
                )
                return ExitCode.NOT_RIGHT
            if not args.yes and not _agreed(output):
                output.note("nothing was done")
                return ExitCode.NOT_RIGHT
            code = _run_all(node, plan.requests, output)
            if code is not ExitCode.OK:
                return code
        output.error("the schema was changed by others meanwhile, and is not what the file says")
        return ExitCode.NOT_RIGHT


def _listed(words: Sequence[str]) -> str:
    return "; ".join(words[:5]) + (f" and {len(words) - 5} more" if len(words) > 5 else "")


def _agreed(output: Output) -> bool:
    output.err.print("run this? [y/N] ", end="")
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _wait_for_jobs(node: SchemaNode, output: Output) -> LivingSchema:
    """Return the schema when no job changes it any more: one that an earlier run has begun goes on
    when that was stopped."""
    said: dict[int, str] = {}
    while (living := node.read()).jobs:
        for job in node.running():
            if said.get(job.job) != job.words:
                said[job.job] = job.words
                output.note(f"waiting for job {job.job} on table {job.table}: {job.words}")
        time.sleep(BUSY_LOOK_S)
    return living


def _run_all(node: SchemaNode, requests: Sequence[PlannedRequest], output: Output) -> ExitCode:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[words]}", markup=False),
    )
    count = len(requests)
    for number, request in enumerate(requests, 1):
        began_ns = boottime_ns()
        error: LeaseholdError | None = None
        with output.progress(*columns) as progress:
            words = escape_control(f"{number}/{count} {request.table or 'at once'}")
            task = progress.add_task(words, total=1.0, words="")
            said = _Teller(output)

            try:
                node.run(request, partial(_show_job, progress, task, said))
                progress.update(task, completed=1.0)
            except KeyboardInterrupt:
                output.note(_left_words(number - 1, count) + "; a job that was begun goes on")
                raise
            except LeaseholdError as caught:
                error = caught
        seconds = (boottime_ns() - began_ns) / 1e9
        _tell_request(number, count, seconds, error, output)
        if error is not None:
            unknown = isinstance(error, OutcomeUnknown)
            return ExitCode.UNKNOWN if unknown else ExitCode.NOT_RIGHT
    return ExitCode.OK


def _show_job(progress: Progress, task: TaskID, said: _Teller, job: JobSeen) -> None:
    progress.update(task, completed=job.fraction, words=escape_control(job.words))
    said.tell(job)


class _Teller:
    """Writes a line at each change of what a job does, where no bar is drawn."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._said = ""

    def tell(self, job: JobSeen) -> None:
        step = job.words.partition(",")[0]
        if step != self._said and not self._output.is_terminal:
            self._said = step
            self._output.note(f"job {job.job} on table {job.table}: {job.words}")


def _tell_request(
    number: int, count: int, seconds: float, error: LeaseholdError | None, output: Output
) -> None:
    state = "done" if error is None else "failed"
    if output.as_json:
        told: dict[str, Any] = {"request": number, "of": count, "state": state}
        output.json({**told, "seconds": round(seconds, 3)})
    elif error is None:
        output.line(f"{number}/{count} done in {span(seconds * 1_000)}", "green")
    if error is not None:
        more = [str(error.detail["detail"])] if error.detail.get("detail") else []
        words = f"request {number} of {count} failed: {error.message}"
        lines = [words, *more, _left_words(number - 1, count)]
        output.error("\n".join(lines), error.sqlstate, hint_for(error))


def _left_words(done: int, count: int) -> str:
    return (
        f"{done} of {count} requests are done and stay so, {count - done} are left; running this"
        " again goes on from there"
    )
