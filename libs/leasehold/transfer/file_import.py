"""Imports the rows of a file into a table that is there: CSV, Parquet.

The file is cut into batches, the same ones each time that it is read, and these are dealt out to
STRIPES in turn. Each stripe is a part of the import: it has one batch under way, and keeps how many
of its own are there. So an import that was cut off reads the file again and sends what is missing.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

from leasehold.model.errors import (
    ConfigurationError,
    InvalidText,
    Refused,
    UnknownColumn,
    UnknownTable,
)
from leasehold.pgwire.copy.format import CopyFormat
from leasehold.pgwire.copy.lines import CopyLines
from leasehold.settings.extras import need_extra
from leasehold.transfer import progress
from leasehold.transfer.batches import BATCH_BYTES, BATCH_ROWS, LINE_BYTES_MAX
from leasehold.transfer.column_types import find_reader
from leasehold.transfer.progress import Part, move_part
from leasehold.transfer.quoting import quote_text
from leasehold.transfer.target import Sent, Target, is_moved_elsewhere

STRIPES: Final = 4
READ_BYTES: Final = 256 * 1024
KNOWN_BYTES: Final = 1_000_000
"""Of a file's beginning, by which it is known again."""
Row = Sequence[Any]


class FileBatch(NamedTuple):
    """Rows that go together. `first`: number of the first one, from 1."""

    first: int
    rows: Sequence[Row]


class FileRows(NamedTuple):
    """What a file holds: names of its columns, and its rows in batches."""

    columns: Sequence[str]
    batches: Iterator[FileBatch]


def columns_of(target: Target, table: str) -> Mapping[str, str]:
    """Return types by name of a table's columns. Raises UnknownTable."""
    rows = target.rows(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a"
        " JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
        f" WHERE n.nspname = 'public' AND c.relname = {quote_text(table)} AND c.relkind = 'r'"
        " AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    )
    if not rows:
        raise UnknownTable(f"table {table!r} does not exist: make it first", table=table)
    return {str(name): str(kind) for name, kind in rows}


# ---------------------------------------------------------------- CSV


@contextmanager
def open_csv(
    path: Path, how: CopyFormat, names: Sequence[str] | None, types: Mapping[str, str]
) -> Iterator[FileRows]:
    """Open a file in CSV, packed by gzip where its name ends in .gz. `names`: of its columns; None:
    its first line says them. Raises ConfigurationError, InvalidCopyText, UnknownColumn."""
    with _opened(path) as file:
        lines = _lines(file, CopyLines(how, LINE_BYTES_MAX))
        if names is None:
            names = [name or "" for name in next(lines, [])]
        _check_columns(names, types)
        yield FileRows(names, _csv_batches(lines, names, types))


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as raw:
            packed = path.suffix == ".gz"
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror or error}") from error


def _lines(file: IO[bytes], reading: CopyLines) -> Iterator[list[str | None]]:
    while data := file.read(READ_BYTES):
        yield from reading.feed(data)
    yield from reading.finish()


def _check_columns(names: Sequence[str], types: Mapping[str, str]) -> None:
    if not names:
        raise ConfigurationError("the file is empty: its first line has to name the columns")
    for name in names:
        if name not in types:
            raise UnknownColumn(
                f"the table has no column {name!r} (--columns names those of a file without a"
                " first line)",
                column=name,
            )
    if len(set(names)) < len(names):
        raise ConfigurationError("the file names a column twice")


def _csv_batches(
    lines: Iterable[list[str | None]], names: Sequence[str], types: Mapping[str, str]
) -> Iterator[FileBatch]:
    readers = [find_reader(types[name]) for name in names]
    held: list[Row] = []
    size = first = 0
    for number, fields in enumerate(lines, 1):
        if len(fields) != len(names):
            raise InvalidText(f"row {number} has {len(fields)} fields, not {len(names)}")
        first = first or number
        size += sum(len(field) for field in fields if field is not None)
        held.append(_read_row(fields, names, readers, number))
        if len(held) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield FileBatch(first, held)
            held, size, first = [], 0, 0
    if held:
        yield FileBatch(first, held)


def _read_row(
    fields: Sequence[str | None],
    names: Sequence[str],
    readers: Sequence[Callable[[str], Any] | None],
    number: int,
) -> Row:
    made: list[Any] = []
    for name, field, read in zip(names, fields, readers, strict=True):
        try:
            made.append(field if field is None or read is None else read(field))
        except ValueError as error:
            raise InvalidText(f"row {number}, column {name!r}: {field!r:.80} can't be read") from (
                error
            )
    return made


# ---------------------------------------------------------------- Parquet


@contextmanager
def open_parquet(path: Path, types: Mapping[str, str]) -> Iterator[FileRows]:
    """Open a file in Parquet. Raises ConfigurationError, UnknownColumn."""
    need_extra("import", "a file in Parquet", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            _check_columns(names, types)
            yield FileRows(names, _parquet_batches(file))
    except (OSError, pa.ArrowInvalid) as error:
        raise ConfigurationError(f"{path} can't be read as Parquet: {error}") from error


def _parquet_batches(file: Any) -> Iterator[FileBatch]:
    import pyarrow as pa

    first = 1
    for batch in file.iter_batches(batch_size=BATCH_ROWS):
        columns = []
        for column in batch.columns:
            if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
                column = column.cast(pa.timestamp("us", column.type.tz))
            values = column.to_pylist()
            if pa.types.is_nested(column.type):  # what goes into jsonb
                values = [None if v is None else json.dumps(v, default=str) for v in values]
            columns.append(values)
        yield FileBatch(first, list(zip(*columns, strict=True)))
        first += batch.num_rows


# ---------------------------------------------------------------- bringing them


class FileImport:
    """The import of one file into a table, under a name. `tell` hears of rows that came."""

    def __init__(
        self, target: Target, name: str, table: str, path: Path, tell: Callable[[int], None]
    ) -> None:
        self._target, self._name, self._table = target, name, table
        self._path = path
        self._tell = tell

    def run(self, rows: FileRows) -> int:
        """Bring what isn't there yet; return how many rows the file has. Raises Refused,
        ConfigurationError where the name stands for another file."""
        parts = self._begin(rows.columns)
        under: list[tuple[Sent, Part, FileBatch] | None] = [None] * STRIPES
        count = 0
        for number, batch in enumerate(rows.batches):
            stripe, place = number % STRIPES, number // STRIPES
            count += len(batch.rows)
            waited = under[stripe]
            if waited is not None:
                parts[stripe] = self._settle(*waited)
                under[stripe] = None
            part = parts[stripe]
            if place < part.step:
                continue
            assert place == part.step, (place, part)
            after = part.moved(part.place, len(batch.rows))
            insert = {
                "table": self._table,
                "op": "insert",
                "columns": list(rows.columns),
                "rows": batch.rows,
            }
            operations = [insert, *move_part(self._name, part, after)]
            under[stripe] = (self._target.send(operations), after, batch)
        for each in under:
            if each is not None:
                self._settle(*each)
        return count

    def _begin(self, columns: Sequence[str]) -> list[Part]:
        """Return the stripes, which are kept from the first time on, with what says how the file is
        cut into batches."""
        cut = {"columns": list(columns), "rows": BATCH_ROWS, "row_bytes": BATCH_BYTES}
        known = json.dumps({"table": self._table, **cut, **_known_by(self._path)})
        kept = self._target.parts(self._name)
        names = [f"file/{stripe}" for stripe in range(STRIPES)]
        if names[0] not in kept:
            if kept:
                raise ConfigurationError(
                    f"import {self._name!r} is one of a PostgreSQL; give this one another --name"
                )
            self._target.apply((), progress.CREATE)
            parts = [Part(name, 0, known) for name in names]
            self._target.begin_parts(self._name, parts)
            return parts
        if kept[names[0]].place != known:
            raise ConfigurationError(
                f"import {self._name!r} was of another file, table or columns; give this one a name"
                " of its own (--name)"
            )
        return [kept[name] for name in names]

    def _settle(self, sent: Sent, after: Part, batch: FileBatch) -> Part:
        last = batch.first + len(batch.rows) - 1
        try:
            self._target.settle(sent)
        except Refused as error:
            now = self._target.part(self._name, after.name) if is_moved_elsewhere(error) else None
            if now is not None and now.step == after.step:
                return after  # this very batch, of a run that was killed while it was under way
            made = Refused(
                f"rows {batch.first} to {last} are refused with {error.sqlstate}: {error.message}"
            )
            made.detail = error.detail
            raise made from error
        self._tell(len(batch.rows))
        return after


def _known_by(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            begin = blake2b(file.read(KNOWN_BYTES), digest_size=16).hexdigest()
        return {"bytes": path.stat().st_size, "begin": begin}
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from error
