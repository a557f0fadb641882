"""The command `leasehold import`: schema and rows of a PostgreSQL."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from leasehold.adapters.postgres.client import PasswordWanted, SqlConnection
from leasehold.adapters.postgres.source import Source, SourceConnection
from leasehold.cli.command import Subparsers, add, read_text_file
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.cli.sql import add_address_options, address_of
from leasehold.cli.transfer.progress_bars import RowProgress
from leasehold.client.change_producer import ChangeProducer
from leasehold.settings.client import ClientSettings
from leasehold.transfer.copying import Copying
from leasehold.transfer.cut_over import cut_over, read_lsn
from leasehold.transfer.following import Following, Lag
from leasehold.transfer.postgres_import import (
    COPIED,
    COPYING,
    READY,
    Compared,
    Options,
    PostgresImport,
    Whole,
    check_plan,
    read_plan,
)
from leasehold.transfer.schema_plan import Kind, Plan
from leasehold.transfer.target import Requests, Target

Connect: TypeAlias = Callable[[], SqlConnection]
NAME: Final = "default"
WORKERS: Final = 4
WORKERS_MAX: Final = 64
STYLES: Final = {Kind.CHANGED: "yellow", Kind.LEFT_OUT: "yellow", Kind.REFUSED: "red"}
MORE: Final = """\
SOURCE is postgresql://user@host:port/database, with whatever libpq takes behind it
(?sslmode=verify-full&…); a password comes from --source-password-file, PGPASSFILE or ~/.pgpass.

The tables of a schema are made, their rows copied by ranges of their keys, indexes and constraints
made behind them, sequences set, and both sides compared. --plan says before what would be changed,
left out or refused. A command that was ended is given again: it goes on where it was, and no row
comes twice.

With --follow the source's changes are applied, too, until the command is ended (Ctrl-C); give it
again to go on. Writers may stay at the source until --cut-over, which holds them back there,
applies what is left, sets sequences, compares both sides, and takes away what the import had made
in the source; then they go to the target. It needs wal_level = logical there, and a role that may
replicate.

Rows and schema changes go by Kafka, as those of leasehold submit do; what is asked goes to a node's
port for SQL, as leasehold sql's."""


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "import", run, MORE)
    parser.add_argument("source", metavar="SOURCE", help="postgresql://user@host:port/database")
    parser.add_argument("--plan", action="store_true", help="show what would be done; do nothing")
    parser.add_argument("--name", default=NAME, help=f"of the import, to go on with it ({NAME})")
    parser.add_argument("--schema", default="public", help="the source's schema (public)")
    parser.add_argument(
        "--table", action="append", default=[], metavar="TABLE", help="only this one; repeatable"
    )
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="TABLE", help="not this one; repeatable"
    )
    parser.add_argument(
        "--as-text",
        action="store_true",
        help="take columns of types that there are not here as text",
    )
    parser.add_argument(
        "--leave-out",
        action="store_true",
        help="begin although --plan lists what would be left out",
    )
    parser.add_argument(
        "--workers",
        type=_workers,
        default=WORKERS,
        metavar="N",
        help=f"ranges that are copied at once ({WORKERS})",
    )
    parser.add_argument(
        "--follow", action="store_true", help="apply what changes in the source, until Ctrl-C"
    )
    parser.add_argument(
        "--cut-over", action="store_true", help="end the following: the target takes over"
    )
    parser.add_argument(
        "--no-lock",
        action="store_true",
        help="--cut-over takes no locks in the source: nobody writes there any more",
    )
    parser.add_argument("--no-verify", action="store_true", help="don't compare rows at the end")
    parser.add_argument(
        "--abandon",
        action="store_true",
        help="forget how far the import is; its tables stay as they are",
    )
    parser.add_argument(
        "--source-password-file", metavar="FILE", help="holds the password for the source"
    )
    add_address_options(parser)


def _workers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= WORKERS_MAX:
        raise argparse.ArgumentTypeError(f"expected 1 to {WORKERS_MAX}")
    return int(text)


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    password = ""
    if args.source_password_file:
        password = read_text_file(args.source_password_file).rstrip("\r\n")
    source = Source(args.source, password)
    if args.plan:
        return show_plan(source, options_of(args), output)
    connect = connector(args, settings.cluster.database)
    connect().close()  # what is wrong with the way there is told before anything is read
    with ChangeProducer(settings) as changes:
        return run_import(args, source, changes, connect, output)


def connector(args: argparse.Namespace, default: str) -> Connect:
    """Return what makes connections to the node's port; a person is asked for a password once."""
    address, database = address_of(args), args.database or default

    def connect() -> SqlConnection:
        nonlocal address
        try:
            return SqlConnection(address, database, application="leasehold import")
        except PasswordWanted:
            if not sys.stdin.isatty():
                raise
        given = getpass.getpass(f"password of {address.user}: ")
        address = replace(address, password=given)
        return SqlConnection(address, database, application="leasehold import")

    return connect


def options_of(args: argparse.Namespace) -> Options:
    return Options(
        args.name,
        args.schema,
        tuple(args.table),
        tuple(args.exclude),
        args.as_text,
        args.leave_out,
        args.workers,
    )


def show_plan(source: Source, options: Options, output: Output) -> int:
    """Tell what would be done; the exit code is 1 where the import would not begin."""
    with source.connect() as connection:
        plan = read_plan(connection, options)
    if output.as_json:
        output.json(_plan_report(plan))
    else:
        rows = [
            [
                table.name,
                max(0, table.rows_about),
                ", ".join(table.key) or "none",
                len(table.columns),
                len(table.after),
            ]
            for table in plan.tables
        ]
        heads = ["table", ">rows about", "primary key", ">columns", ">indexes and constraints"]
        output.table(heads, rows, "there is no table to import")
        for finding in plan.findings:
            words = f"{finding.kind}: {finding.what}: {finding.words}"
            output.line(words, STYLES[finding.kind])
    check_plan(plan, options)
    return ExitCode.OK


def _plan_report(plan: Plan) -> dict[str, Any]:
    return {
        "tables": [
            {
                "table": table.name,
                "rows_about": table.rows_about,
                "key": list(table.key),
                "statements": list(table.before),
                "then": dict(table.after),
                "cannot_follow": table.follow_refusal,
            }
            for table in plan.tables
        ],
        "sequences": [sequence.name for sequence in plan.sequences],
        "findings": [
            {"kind": finding.kind.value, "what": finding.what, "words": finding.words}
            for finding in plan.findings
        ],
    }


def run_import(
    args: argparse.Namespace,
    source: Source,
    requests: Requests,
    connect: Connect,
    output: Output,
) -> int:
    """Import, from the beginning or from where an earlier run was."""
    target = Target(requests, connect)
    options = options_of(args)
    with source.connect() as connection:
        if args.abandon:
            return _abandon(source, target, options, connection, output)
        plan = read_plan(connection, options)
        told = RowProgress(output, {table.name: table.rows_about for table in plan.tables})
        importing = PostgresImport(source, target, options, told)
        following = _following(source, target, options, plan, told.lag)
        found: list[Compared] = []
        if args.cut_over:
            with told.shown():
                equal = cut_over(
                    importing, following, plan, connection, found.append, lock=not args.no_lock
                )
        else:
            if args.follow:
                following.check(connection)
            whole = importing.begin(plan)
            importing.check_follows(follows=args.follow)
            if args.follow:
                following.begin(connection)
            with told.shown():
                _bring(importing, plan, whole, connection, told, following if args.follow else None)
            output.note(f"{told.came:,} rows came in this run, {told.per_second:,.0f}/s")
            if args.follow:
                return _follow(following, told, output)
            equal = args.no_verify or _verify(importing, plan, connection, found, output)
    target.close()
    tell_end(options.name, found, told, output, equal=equal)
    if args.cut_over and equal:
        output.note("cut over: both sides are equal; writers may go to the target")
    return ExitCode.OK if equal else ExitCode.NOT_RIGHT


def _following(
    source: Source,
    target: Target,
    options: Options,
    plan: Plan,
    tell: Callable[[Lag], None] = lambda _: None,
) -> Following:
    return Following(source, target.again(), options.name, options.schema, plan, tell)


def _abandon(
    source: Source,
    target: Target,
    options: Options,
    connection: SourceConnection,
    output: Output,
) -> int:
    _following(source, target, options, Plan((), (), ())).drop(connection)
    PostgresImport(source, target, options, RowProgress(output, {})).abandon()
    output.note(f"import {options.name} is forgotten; its tables are as they were")
    return ExitCode.OK


def _follow(following: Following, told: RowProgress, output: Output) -> int:
    output.note("following the source; Ctrl-C ends it, --cut-over takes over")
    with told.shown():
        try:
            following.follow()
        except KeyboardInterrupt:
            following.stop()
    output.note("ended; give the command again to go on following")
    return ExitCode.OK


def _bring(
    importing: PostgresImport,
    plan: Plan,
    whole: Whole,
    connection: SourceConnection,
    told: RowProgress,
    following: Following | None,
) -> None:
    """Take the steps that are left. Indexes and constraints come when the stream has passed the
    last range that was read: before, rows of different times stand side by side."""
    if whole.phase == COPYING:
        options = importing.options
        copying = Copying(
            importing.source, importing.target, options.name, options.schema, told.rows
        )
        try:
            importing.copy(plan, connection, copying)
        except KeyboardInterrupt:
            copying.stop()
            raise
        whole = importing.move(whole, COPIED, lsn=read_lsn(connection) if following else 0)
    if whole.phase == COPIED:
        if following is not None:
            told.note("applying what has changed while rows were copied")
            following.follow(whole.more["lsn"])
        importing.finish_schema(plan)
        importing.set_sequences(plan, connection)
        importing.move(whole, READY)


def _verify(
    importing: PostgresImport,
    plan: Plan,
    connection: SourceConnection,
    found: list[Compared],
    output: Output,
) -> bool:
    output.note("comparing both sides …")
    connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        return importing.compare(plan, connection, found.append)
    finally:
        connection.run("ROLLBACK")


def tell_end(
    name: str, found: Sequence[Compared], told: RowProgress, output: Output, *, equal: bool
) -> None:
    """Tell what was compared, and which rows differ."""
    if output.as_json:
        output.json(
            {
                "import": name,
                "rows": told.came,
                "rows_per_second": round(told.per_second),
                "equal": equal if found else None,
                "tables": [_report(each) for each in found],
            }
        )
        return
    heads = ["table", ">rows there", ">rows here", "checksum there", "checksum here", ""]
    rows = [
        [
            each.table,
            each.source_rows,
            each.target_rows,
            each.source_checksum,
            each.target_checksum,
            "equal" if each.equal else "different",
        ]
        for each in found
    ]
    if found:
        output.table(heads, rows, "nothing was compared")
    for each in found:
        for difference in each.differences:
            output.line(f"{each.table}: row {difference.key}: {difference.words}", "red")
    if found and not equal:
        output.error(
            "the sides differ: rows of the source were changed while they were copied, or somebody"
            " writes here; look at the rows named"
        )


def _report(each: Compared) -> dict[str, Any]:
    return {**each._asdict(), "differences": [d._asdict() for d in each.differences]}
