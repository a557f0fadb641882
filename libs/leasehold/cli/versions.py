"""The command `leasehold versions`: what every table is now and was before, for people and in
schema languages.

leasehold versions [TABLE] [--follow] [--format text|avro|json-schema]
leasehold versions TABLE --as-of LSN [--format …]
leasehold versions diff TABLE FROM TO
leasehold versions history TABLE
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from leasehold.adapters.kafka.whole_topic import read_history
from leasehold.admin.report import event_report, table_report
from leasehold.admin.version_history import TableHistory, event_at, history_of
from leasehold.admin.view import ClusterView, TableView, VersionChange
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.cli.command import Subparsers, add
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.looking import looking
from leasehold.cli.output import Output, clock_time
from leasehold.events.json_schema import json_schema
from leasehold.events.version_diff import public_diff
from leasehold.model.errors import UnknownTable
from leasehold.model.records.events import VersionEvent
from leasehold.settings.client import ClientSettings

FOLLOW_EVERY_S = 1.0
USAGE: Final = (
    "leasehold versions [TABLE] [--follow] [--format text|avro|json-schema] [--json]\n"
    "       leasehold versions TABLE --as-of LSN [--format …] [--json]\n"
    "       leasehold versions diff TABLE FROM TO [--json]\n"
    "       leasehold versions history TABLE [--json]"
)


def _avro_schema(descriptor: Descriptor) -> dict[str, Any]:
    # Its defaults are computed, for which all of SQL's functions are loaded: nobody else waits.
    from leasehold.events.avro_schema import avro_schema

    return avro_schema(descriptor)


FORMATS: Final[Mapping[str, Callable[[Descriptor], dict[str, Any]]]] = {
    "avro": _avro_schema,
    "json-schema": json_schema,
}


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "versions", run)
    parser.usage = USAGE
    parser.add_argument(
        "words",
        nargs="*",
        metavar="TABLE",
        help="only this table; or diff TABLE FROM TO; or history TABLE",
    )
    parser.add_argument(
        "--follow", action="store_true", help="then print every new version, until stopped"
    )
    parser.add_argument(
        "--format",
        choices=("text", *FORMATS),
        default="text",
        help="the public shape as an Avro schema or a JSON Schema, one object per table",
    )
    parser.add_argument(
        "--as-of",
        type=int,
        metavar="LSN",
        help="the table that was called TABLE at that LSN, as it was then",
    )
    parser.set_defaults(refuse=parser.error)


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    if len(args.words) > 1 and (args.follow or args.format != "text"):
        args.refuse("--follow and --format are for the newest versions")
    if args.as_of is not None:
        if len(args.words) != 1 or args.follow:
            args.refuse("--as-of wants one table, and nothing to follow")
        return _show_as_of(args, settings, output)
    # The number of words tells the actions apart from tables that are named like them.
    match args.words:
        case [] | [_] as words:
            return _show_newest(args, words[0] if words else None, settings, output)
        case ["diff", table, first, second] if first.isdecimal() and second.isdecimal():
            return _show_diff(_read_history(settings, table), int(first), int(second), output)
        case ["history", table]:
            return _show_history(_read_history(settings, table), output)
    args.refuse("expected a table, or diff TABLE FROM TO, or history TABLE")
    raise AssertionError("argparse has ended the process")


# ------------------------------------------------------------------ the newest


def _show_newest(
    args: argparse.Namespace, table: str | None, settings: ClientSettings, output: Output
) -> int:
    with looking(settings, output, follows=args.follow) as (watch, view):
        tables = [t for _, t in sorted(view.tables.items()) if _is_called(t.event, table)]
        if table is not None and not tables and not args.follow:
            raise UnknownTable(f"table {table!r} does not exist", table=table)
        for one in tables:
            _show(view, one, args.format, output)
        if not tables and not output.as_json:
            output.line('no table yet: try leasehold ddl "CREATE TABLE …"', "dim")
        if args.follow:
            _follow(watch, view, table, args.format, output)
    return ExitCode.OK


def _show(view: ClusterView, table: TableView, form: str, output: Output) -> None:
    if form in FORMATS:
        _show_schema(table.descriptor, form, output)
    elif output.as_json:
        output.json(table_report(view, table))
    else:
        _show_table(table_report(view, table), output)


def _show_schema(descriptor: Descriptor, form: str, output: Output) -> None:
    schema = FORMATS[form](descriptor)
    if output.as_json:
        output.json(schema)
    else:
        output.line(json.dumps(schema, ensure_ascii=False, indent=2))


def _show_table(table: dict[str, Any], output: Output) -> None:
    former = f", until now {table['former_name']}" if table["former_name"] else ""
    state = "" if table["state"] == "public" else f" ({table['state']})"
    output.line(f"{table['table']} version {table['version']}{former}{state}", "bold")
    output.line(f"  since {clock_time(table['commit_us'])} · LSN {table['lsn']:,}", "dim")
    rows = [
        [
            f"  {element['name']}",
            kind,
            element["definition"] + (" · key" if element["name"] in keys else ""),
            "" if element["state"] == "public" else element["state"],
        ]
        for kind, position, keys in (
            ("column", "columns", table["primary_key"]),
            ("index", "indexes", ()),
            ("check", "checks", ()),
            ("lock", "locks", ()),
            ("foreign key", "foreign_keys", ()),
        )
        for element in table[position]
    ]
    output.table(["  element", "kind", "definition", "state"], rows, "  no element")


def _follow(
    watch: ClusterWatch, first: ClusterView, table: str | None, form: str, output: Output
) -> None:
    followed = Followed(first, table)
    output.note("following; stop with Ctrl-C")
    for view in watch.views(FOLLOW_EVERY_S):
        for change in followed.news(view):
            event = change.event
            if form in FORMATS:
                _show_schema(from_wire(event.body), form, output)
            else:
                _show_change(change, output)


class Followed:
    """The versions that have come since a first view. ⚠ Tables are known by their ids once these
    are known: one may be renamed meanwhile, and another one may get its name."""

    def __init__(self, first: ClusterView, table: str | None) -> None:
        self._table = table
        self._shown = {(c.event.table_id, c.event.version) for c in first.recent}
        self._ids = {t for t, one in first.tables.items() if _is_called(one.event, table)}

    def news(self, view: ClusterView) -> list[VersionChange]:
        found = []
        for change in view.recent:
            event = change.event
            if _is_called(event, self._table):
                self._ids.add(event.table_id)
            if event.table_id in self._ids and (event.table_id, event.version) not in self._shown:
                found.append(change)
        self._shown |= {(c.event.table_id, c.event.version) for c in found}
        return found


def _is_called(event: VersionEvent, table: str | None) -> bool:
    """Return whether a table has that name, or either of its names while a rename is under way."""
    return table in (None, event.name, event.body.get("alias") or None)


def _show_change(change: VersionChange, output: Output) -> None:
    told = event_report(change)
    if output.as_json:
        output.json(told)
        return
    words = "; ".join(told["words"]) or "no element changed"
    job = f"  (job {told['job']}, step {told['job_step']}/{told['job_steps']})"
    output.line(
        f"{clock_time(told['commit_us'])}  {told['table']} version {told['version']}: {words}"
        + (job if told["job"] else "")
    )


# ------------------------------------------------------------------ before


def _show_as_of(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    events = read_history(settings.kafka, settings.topics)
    event = event_at(events, args.words[0], args.as_of)
    _show(ClusterView(), TableView(event), args.format, output)
    return ExitCode.OK


def _read_history(settings: ClientSettings, table: str) -> TableHistory:
    return history_of(read_history(settings.kafka, settings.topics), table)


def _show_diff(history: TableHistory, first: int, second: int, output: Output) -> int:
    told = public_diff(first, history.between(first, second))
    if output.as_json:
        output.json({"table": history.newest.name, "to": second, **told})
        return ExitCode.OK
    for words in told["words"]:
        output.line(words)
    if not told["words"]:
        output.line(f"versions {first} and {second} are the same", "dim")
    return ExitCode.OK


def _show_history(history: TableHistory, output: Output) -> int:
    for change in history.changes():
        _show_change(change, output)
    return ExitCode.OK
