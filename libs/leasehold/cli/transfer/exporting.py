"""The command `leasehold export`: tables and queries of a node as files."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from leasehold.cli.command import Subparsers, add
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.cli.sql import add_address_options
from leasehold.cli.transfer.progress_bars import RowProgress
from leasehold.cli.transfer.sql_connections import connector
from leasehold.model.errors import ConfigurationError
from leasehold.settings.client import ClientSettings
from leasehold.transfer import progress
from leasehold.transfer.export import (
    CopyOut,
    Count,
    Exported,
    check_all_in_public,
    find_tables,
    schema_statements,
    sequence_statements,
    write_csv,
    write_parquet,
    write_sql,
    written,
)
from leasehold.transfer.source_catalog import read_relations
from leasehold.transfer.source_tables import SourceSchema
from leasehold.transfer.target import TargetReader

Writer: TypeAlias = Callable[[Exported, CopyOut, IO[bytes], Count], None]
WRITERS: Final[Mapping[str, Writer]] = {
    "csv": write_csv,
    "parquet": write_parquet,
    "sql": write_sql,
}
SCHEMA_FILE: Final = "schema.sql"
AFTER_FILE: Final = "indexes.sql"
MORE: Final = """\
Each table becomes a file of its name in the folder TO. With --format sql there are schema.sql,
which makes the tables, and indexes.sql, for indexes, constraints and numbers of sequences, beside
the rows: leasehold sql takes the files in this order, and so does psql.

Each table is read at a moment of its own; with --together all are read at one, which has to be
within LEASEHOLD_ROW_HISTORY_MS (72000 otherwise).

  leasehold export --to backup --format parquet
  leasehold export --to out --query "SELECT day, count(*) FROM flights GROUP BY day" --name days"""


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "export", run, MORE)
    parser.add_argument("table", metavar="TABLE", nargs="*", help="these tables (all)")
    parser.add_argument("--to", metavar="FOLDER", type=Path, required=True, help="is made")
    parser.add_argument("--format", choices=tuple(WRITERS), default="csv", help="of files (csv)")
    parser.add_argument("--query", metavar="SQL", help="the rows of a query instead")
    parser.add_argument("--name", help="of the file of --query")
    parser.add_argument("--together", action="store_true", help="all as of one moment")
    parser.add_argument("--replace", action="store_true", help="write files that are there anew")
    add_address_options(parser)


def check(args: argparse.Namespace) -> None:
    """Raise ConfigurationError for options that don't go together."""
    if (args.query is None) != (args.name is None) or (args.query and args.table):
        raise ConfigurationError("--query goes with --name, and without tables")
    if args.query and args.format == "sql":
        raise ConfigurationError("the rows of a query belong to no table: take csv or parquet")


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    check(args)
    with TargetReader(connector(args, settings.cluster.database, "leasehold export")) as node:
        return export(args, node, output)


def export(args: argparse.Namespace, node: TargetReader, output: Output) -> int:
    """Write the files."""
    schema = without_own(read_relations(node.typed_rows, "public"))
    if args.query is not None:
        wanted = [Exported(args.name, args.query, node.columns(args.query))]
    else:
        if not args.table:
            check_all_in_public(node.typed_rows)
        wanted = find_tables(args.table, schema, loadable=args.format == "sql")
    try:
        args.to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"{args.to} can't be made: {error.strerror}") from error
    told = RowProgress(output, {})
    files: list[dict[str, Any]] = []
    if args.together:
        node.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    with told.shown():
        if args.format == "sql":
            before, after = schema_statements(schema)
            write_statements(args.to / SCHEMA_FILE, before, replace=args.replace)
        for what in wanted:
            path = args.to / f"{file_name(what.name)}.{args.format}"
            count = Count(partial(_tell, told, what.name))
            with written(path, replace=args.replace) as file:
                WRITERS[args.format](what, node.copy_out, file, count)
            files.append({"name": what.name, "file": str(path), "rows": count.rows})
        if args.format == "sql":
            after += sequence_statements(node.typed_rows, schema)
            write_statements(args.to / AFTER_FILE, after, replace=args.replace)
    if output.as_json:
        output.json(files)
    else:
        rows = [[each["name"], each["rows"], each["file"]] for each in files]
        output.table(["table", ">rows", "file"], rows, "there is no table")
    return ExitCode.OK


def _tell(told: RowProgress, name: str, rows: int) -> None:
    told.rows(name, rows, rows)


def without_own(schema: SourceSchema) -> SourceSchema:
    """Return the schema without what an import keeps for itself."""
    tables = [table for table in schema.tables if table.name != progress.TABLE]
    return schema._replace(tables=tables)


def file_name(table: str) -> str:
    """Return a table's name as that of a file: what can't stand there is written as %xx."""
    return "".join(c if c.isalnum() or c in "_- " else f"%{ord(c):02x}" for c in table)


def write_statements(path: Path, statements: list[str], *, replace: bool) -> None:
    with written(path, replace=replace) as file:
        for text in statements:
            end = "" if text.startswith("--") else ";"
            file.write(f"{text}{end}\n".encode())
