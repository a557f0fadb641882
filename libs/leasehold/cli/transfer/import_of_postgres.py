"""The command `leasehold import postgresql://…`: schema, rows and changes of a PostgreSQL."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from leasehold.adapters.postgres.source import Source, SourceConnection
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.cli.transfer.progress_bars import RowProgress
from leasehold.transfer.copying import Copying
from leasehold.transfer.cut_over import cut_over, read_lsn
from leasehold.transfer.following import Following
from leasehold.transfer.postgres_import import (
    COPIED,
    COPYING,
    CUT_OVER,
    MAKING,
    READY,
    Compared,
    Options,
    PostgresImport,
    Whole,
    check_plan,
    read_plan,
)
from leasehold.transfer.schema_plan import Kind, Plan
from leasehold.transfer.target import Target

NAME: Final = "default"
STYLES: Final = {Kind.CHANGED: "yellow", Kind.LEFT_OUT: "yellow", Kind.REFUSED: "red"}


def options_of(args: argparse.Namespace) -> Options:
    return Options(
        args.name or NAME,
        args.schema,
        tuple(args.table),
        tuple(args.exclude),
        args.as_text,
        args.leave_out,
        args.workers,
    )


def show_plan(args: argparse.Namespace, source: Source, output: Output) -> int:
    """Tell what would be done; the exit code is 1 where the import would not begin."""
    options = options_of(args)
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
        for table in plan.tables if args.follow else ():
            if table.follow_refusal:
                output.line(f"can't be followed: table {table.name}: {table.follow_refusal}", "red")
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


def run_import(args: argparse.Namespace, source: Source, target: Target, output: Output) -> int:
    """Import, from the beginning or from where an earlier run was."""
    options = options_of(args)
    with source.connect() as connection:
        if args.abandon:
            return _abandon(source, target, options, connection, output)
        plan = read_plan(connection, options)
        told = RowProgress(output, {table.name: table.rows_about for table in plan.tables})
        importing = PostgresImport(source, target, options, told)
        following = Following(source, target, options.name, options.schema, plan, told.lag)
        found: list[Compared] = []
        if args.cut_over:
            with told.shown():
                equal = cut_over(
                    importing, following, plan, connection, found.append, lock=not args.no_lock
                )
        else:
            follows = following if args.follow else None
            if follows is not None:
                follows.check(connection)
            whole = importing.begin(plan)
            if whole.phase == CUT_OVER:
                output.note(f"import {options.name} has been cut over: there is nothing to do")
                return ExitCode.OK
            importing.check_follows(follows=args.follow)
            if follows is not None:
                follows.begin(connection)
            with told.shown():
                _bring(importing, plan, whole, connection, told, follows)
            output.note(f"{told.came:,} rows came in this run, {told.per_second:,.0f}/s")
            if follows is not None:
                return _follow(follows, told, output)
            equal = args.no_verify or _verify(importing, plan, connection, found, output)
    tell_end(options.name, found, told, output, equal=equal)
    if args.cut_over and equal:
        output.note("cut over: both sides are equal; writers may go to the target")
    return ExitCode.OK if equal else ExitCode.NOT_RIGHT


def _abandon(
    source: Source,
    target: Target,
    options: Options,
    connection: SourceConnection,
    output: Output,
) -> int:
    nothing = Plan((), (), ())
    Following(source, target, options.name, options.schema, nothing, lambda _: None).drop(
        connection
    )
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
    if whole.phase == MAKING:
        importing.make_tables(plan)
        whole = importing.move(whole, COPYING)
    if whole.phase == COPYING:
        options = importing.options
        copying = Copying(
            importing.source, importing.target, options.name, options.schema, told.rows
        )
        importing.copy(plan, connection, copying)
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
