"""`leasehold versions`: the newest version of every table, and each new one as it comes."""

from __future__ import annotations

import argparse
from typing import Any

from leasehold.cli.command import Subparsers, add
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.looking import looking, now_us
from leasehold.cli.output import Output, clock_time
from leasehold.client.client_settings import ClientSettings
from leasehold.client.cluster_report import event_report, report
from leasehold.client.cluster_view import ClusterView
from leasehold.client.cluster_watch import ClusterWatch

FOLLOW_EVERY_S = 1.0


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "versions", run, "list tables with their version, columns and indexes")
    parser.add_argument("table", nargs="?", help="only this table")
    parser.add_argument(
        "--follow", action="store_true", help="then print every new version, until stopped"
    )


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    with looking(settings) as (watch, view):
        tables = [
            table
            for table in report(view, now_us())["tables"]
            if args.table in (None, table["table"])
        ]
        if output.as_json:
            for table in tables:
                output.json(table)
        else:
            _show(tables, output)
        if args.follow:
            _follow(watch, view, args.table, output)
    return ExitCode.OK if tables or args.table is None else ExitCode.NOT_RIGHT


def _show(tables: list[dict[str, Any]], output: Output) -> None:
    if not tables:
        output.line('no table yet: try leasehold ddl "CREATE TABLE …"', "dim")
    for table in tables:
        output.line(f"{table['table']} version {table['version']}", "bold")
        output.line(f"  since {clock_time(table['commit_us'])} · LSN {table['lsn']:,}", "dim")
        rows = [
            [
                f"  {element['name']}",
                kind,
                element["definition"] + (" · key" if element["name"] in keys else ""),
                "" if element["state"] == "public" else element["state"],
            ]
            for kind, keys in (("column", table["primary_key"]), ("index", ()))
            for element in table["columns" if kind == "column" else "indexes"]
        ]
        output.table(["  element", "kind", "definition", "state"], rows, "  no element")


def _follow(watch: ClusterWatch, first: ClusterView, table: str | None, output: Output) -> None:
    shown = {(c.event.table_id, c.event.version) for c in first.recent}
    output.note("following; stop with Ctrl-C")
    for view in watch.views(FOLLOW_EVERY_S):
        for change in view.recent:
            name = (change.event.table_id, change.event.version)
            if name in shown or table not in (None, change.event.name):
                continue
            shown.add(name)
            told = event_report(change)
            if output.as_json:
                output.json(told)
                continue
            words = "; ".join(told["words"]) or "no element changed"
            output.line(
                f"{clock_time(told['commit_us'])}  {told['table']} version {told['version']}: "
                f"{words}"
            )
