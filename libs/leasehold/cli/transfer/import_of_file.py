"""The command `leasehold import FILE`: the rows of a file into a table that is there."""

from __future__ import annotations

import argparse
from pathlib import Path

from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.cli.transfer.progress_bars import RowProgress
from leasehold.model.errors import ConfigurationError
from leasehold.pgwire.copy.format import CopyFormat
from leasehold.transfer.file_import import FileImport, columns_of, open_csv, open_parquet
from leasehold.transfer.target import Target


def import_file(args: argparse.Namespace, target: Target, output: Output) -> int:
    """Import the rows of a file."""
    path = Path(args.source)
    if len(args.table) != 1:
        raise ConfigurationError("name the table that the file's rows go into: --table TABLE")
    if path.suffix not in (".csv", ".gz", ".parquet"):
        raise ConfigurationError(
            f"{path} is neither postgresql://… nor a file that ends in .csv, .csv.gz or .parquet"
        )
    (table,) = args.table
    told = RowProgress(output, {})
    name = args.name or path.name
    importing = FileImport(target, name, table, path, lambda rows: told.rows(table, rows, rows))
    types = columns_of(target, table)
    how = CopyFormat(csv=True, delimiter=args.delimiter, null=args.null)
    opened = (
        open_parquet(path, types)
        if path.suffix == ".parquet"
        else open_csv(path, how, args.columns, types)
    )
    with opened as rows, told.shown():
        count = importing.run(rows)
    if output.as_json:
        output.json({"import": name, "rows": count, "came": told.came})
    else:
        output.line(f"{count:,} rows of {path.name} are there; {told.came:,} came in this run")
    return ExitCode.OK
