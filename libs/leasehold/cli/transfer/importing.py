"""The command `leasehold import`: schema and rows of a PostgreSQL."""

from __future__ import annotations

import argparse
from typing import Final

from leasehold.adapters.postgres.source import SCHEMES, Source
from leasehold.cli.command import Subparsers, add, read_text_file
from leasehold.cli.output import Output
from leasehold.cli.sql import add_address_options
from leasehold.cli.transfer.import_of_file import import_file
from leasehold.cli.transfer.import_of_postgres import NAME, run_import, show_plan
from leasehold.cli.transfer.sql_connections import connector
from leasehold.client.change_producer import ChangeProducer
from leasehold.settings.client import ClientSettings
from leasehold.transfer.target import Target

WORKERS: Final = 4
WORKERS_MAX: Final = 64
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

SOURCE may be a file, whose rows go into a table that is there (--table): CSV as COPY reads it, or
Parquet. Given again, it goes on, too.

Rows and schema changes go by Kafka, as those of leasehold submit do; what is asked goes to a node's
port for SQL, as leasehold sql's."""


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "import", run, MORE)
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="postgresql://user@host:port/database, or a file: .csv, .csv.gz, .parquet",
    )
    parser.add_argument("--plan", action="store_true", help="show what would be done; do nothing")
    parser.add_argument(
        "--name", help=f"of the import, to go on with it ({NAME}; of a file: its own name)"
    )
    parser.add_argument("--schema", default="public", help="the source's schema (public)")
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="TABLE",
        help="only this one; repeatable (of a file: into this one)",
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
        "--columns",
        metavar="A,B",
        type=lambda text: text.split(","),
        help="of a file in CSV whose first line doesn't name them",
    )
    parser.add_argument("--delimiter", default=",", metavar="C", help="of CSV (,)")
    parser.add_argument("--null", default="", metavar="TEXT", help="what is NULL in CSV (nothing)")
    parser.add_argument(
        "--source-password-file", metavar="FILE", help="holds the password for the source"
    )
    add_address_options(parser)


def _workers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= WORKERS_MAX:
        raise argparse.ArgumentTypeError(f"expected 1 to {WORKERS_MAX}")
    return int(text)


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    named = args.source.partition(":")[0]
    if named in SCHEMES:
        password = ""
        if args.source_password_file:
            password = read_text_file(args.source_password_file).rstrip("\r\n")
        source = Source(args.source, password)
        if args.plan:
            return show_plan(args, source, output)
    connect = connector(args, settings.cluster.database, "leasehold import")
    connect().close()  # what is wrong with the way there is told before anything is read
    with ChangeProducer(settings) as changes, Target(changes, connect) as target:
        if named in SCHEMES:
            return run_import(args, source, target, output)
        return import_file(args, target, output)
