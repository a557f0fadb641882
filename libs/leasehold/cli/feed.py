"""The command `leasehold feed`: which feeds of tables there are, and orders to the changefeed about
them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final

from leasehold.admin.feeds import Feeds
from leasehold.cli.command import Subparsers, add, add_timeout, finish
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output, clock_time
from leasehold.events.debezium.column_types import Decimals
from leasehold.events.debezium.definition import (
    DAY_HOURS,
    KEPT_HOURS_MAX,
    PARTITIONS_MAX,
    Compatibility,
    Definition,
    Encoding,
    decode_definition,
)
from leasehold.model.errors import ConfigurationError, MalformedRequest
from leasehold.settings.client import ClientSettings

CREATE_TIMEOUT_S: Final = 60.0
PUBLIC: Final = "public"
HELD: Final = "held"
_HEADS: Final = (
    *("table", "topic", "format", "status"),
    *(">since LSN", "snapshot", "rows and columns", "words"),
)
MORE: Final = """\
A feed is a topic DATABASE.feed.SCHEMA.TABLE with each change of the table's rows in Debezium's
envelope, for any stream processor. Read it with isolation.level=read_committed.
"""


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "feed", list_feeds, MORE)
    actions = parser.add_subparsers(metavar="ACTION")
    listed = actions.add_parser("list", help="list feeds (also without an action)")
    finish(listed, list_feeds)
    created = actions.add_parser("create", help="make a feed of a table")
    created.add_argument("table", help="TABLE, or SCHEMA.TABLE")
    created.add_argument(
        "--columns", default="", metavar="NAME,…", help="only these, and those of the primary key"
    )
    created.add_argument(
        "--where", default="", metavar="CONDITION", help="only rows that make it true"
    )
    created.add_argument(
        "--schemas", action="store_true", help="each message with its schema of Kafka Connect"
    )
    created.add_argument(
        "--format",
        choices=[each.value for each in Encoding],
        default=Encoding.JSON.value,
        help="of keys and values; avro and protobuf by the schema registry that the changefeed"
        " knows (default: json)",
    )
    created.add_argument(
        "--compatibility",
        choices=[each.value for each in Compatibility],
        default=Compatibility.REGISTRY.value,
        help="what new schemas in the registry must keep of earlier ones (default: registry, as it"
        " is set to)",
    )
    created.add_argument(
        "--decimals",
        choices=[each.value for each in Decimals],
        default=Decimals.STRING.value,
        help="the form of numeric, as Debezium's decimal.handling.mode (default: string)",
    )
    created.add_argument(
        "--no-tombstones", action="store_true", help="no empty message behind a delete"
    )
    created.add_argument(
        "--transactions",
        action="store_true",
        help="tell begin and end of transactions on DATABASE.feed.transaction",
    )
    created.add_argument(
        "--no-snapshot",
        action="store_true",
        help="begin with what changes, without the rows of now",
    )
    created.add_argument(
        "--partitions",
        type=int,
        default=1,
        help=f"of its topic, 1 to {PARTITIONS_MAX}; with more than 1 the order is that of each key"
        " (default: 1)",
    )
    created.add_argument(
        "--kept-hours",
        type=int,
        default=7 * DAY_HOURS,
        help=f"how long its topic keeps a message, 0 = for ever, at most {KEPT_HOURS_MAX}"
        " (default: a week)",
    )
    add_timeout(created, CREATE_TIMEOUT_S, "the changefeed's word")
    finish(created, create)
    dropped = actions.add_parser("drop", help="end a feed; its topic stays")
    dropped.add_argument("table", help="TABLE, or SCHEMA.TABLE, as it is listed")
    finish(dropped, drop)
    told = actions.add_parser(
        "snapshot", help="tell every row of feeds once more, beside what changes"
    )
    told.add_argument("tables", nargs="+", metavar="TABLE", help="as they are listed")
    told.add_argument("--stop", action="store_true", help="end snapshots that are under way")
    finish(told, snapshot)


def list_feeds(_: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    states = Feeds(settings).states()
    if output.as_json:
        output.json(list(states.values()))
        return ExitCode.OK
    output.table(
        _HEADS,
        [
            [
                name,
                state["topic"],
                state["definition"].get("encoding", Encoding.JSON.value),
                HELD if "held" in state else state["status"],
                f"{state['since_lsn']:,}",
                _snapshot_words(state),
                _definition_words(state),
                _words(state),
            ]
            for name, state in states.items()
        ],
        "no feed (leasehold feed create TABLE)",
    )
    return ExitCode.OK


def _words(state: Mapping[str, Any]) -> str:
    held = state.get("held")
    if held is None:
        return str(state["words"])
    return (
        f"since {clock_time(int(held['since_us']))}, {held['written'] - held['told']:,} records"
        f" wait for the schema registry: {held['words']}"
    )


def _snapshot_words(state: Mapping[str, Any]) -> str:
    snapshot = state["snapshot"]
    return "" if snapshot is None else f"{snapshot['rows']:,} rows told"


def _definition_words(state: Mapping[str, Any]) -> str:
    columns = ", ".join(name for _, name in state["columns"]) or "all"
    return columns + (f" where {state['where']}" if state["where"] else "")


def create(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    definition = Definition(
        table=_qualified(args.table),
        columns=tuple(name.strip() for name in args.columns.split(",") if name.strip()),
        where=args.where,
        schemas=args.schemas,
        decimals=Decimals(args.decimals),
        tombstones=not args.no_tombstones,
        transactions=args.transactions,
        snapshot=not args.no_snapshot,
        partitions=args.partitions,
        kept_hours=args.kept_hours,
        encoding=Encoding(args.format),
        compatibility=Compatibility(args.compatibility),
    )
    try:
        decode_definition(definition.to_json())
    except MalformedRequest as error:
        raise ConfigurationError(error.message) from None
    feeds = Feeds(settings)
    known = feeds.states().get(definition.table)
    if known is not None and known["status"] == "on":
        output.error(f"there is a feed of {definition.table} already (leasehold feed drop)")
        return ExitCode.NOT_RIGHT
    state = feeds.create(definition, args.timeout)
    if output.as_json:
        output.json(state)
    elif state["status"] == "on":
        output.line(f"{state['topic']} begins behind LSN {state['since_lsn']:,}", "green")
    else:
        output.error(f"no feed of {definition.table}: {state['words']}")
    return ExitCode.OK if state["status"] == "on" else ExitCode.NOT_RIGHT


def drop(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    feeds, name = Feeds(settings), _qualified(args.table)
    if name not in feeds.states():
        output.error(f"there is no feed of {name}")
        return ExitCode.NOT_RIGHT
    feeds.drop(name)
    output.json({"table": name}) if output.as_json else output.line(f"the feed of {name} will end")
    return ExitCode.OK


def snapshot(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    feeds = Feeds(settings)
    names = tuple(_qualified(table) for table in args.tables)
    states = feeds.states()
    missing = [name for name in names if name not in states or states[name]["status"] != "on"]
    if missing:
        output.error(f"there is no feed of {', '.join(missing)} that goes on")
        return ExitCode.NOT_RIGHT
    feeds.signal(names, stop=args.stop)
    if output.as_json:
        output.json({"tables": list(names), "stop": args.stop})
    else:
        output.line(f"{'no more' if args.stop else 'every'} row of {', '.join(names)} will be told")
    return ExitCode.OK


def _qualified(table: str) -> str:
    return table if "." in table else f"{PUBLIC}.{table}"
