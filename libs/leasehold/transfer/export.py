"""Exports tables and queries of a node as files: CSV, Parquet, SQL.

Rows come by COPY, in its text form or CSV's, and are written as they come: what is held is a batch.
A file has its name only when it is whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeAlias

from leasehold.model.errors import ConfigurationError, Refused, UnknownTable
from leasehold.pgwire.copy.format import CopyFormat
from leasehold.pgwire.copy.lines import CopyLines
from leasehold.settings.extras import need_extra
from leasehold.transfer.batches import LINE_BYTES_MAX
from leasehold.transfer.quoting import quote_name, quote_names, quote_text
from leasehold.transfer.schema_plan import plan_schema
from leasehold.transfer.source_tables import SourceSchema

GROUP_ROWS: Final = 50_000
GROUP_BYTES: Final = 32_000_000
"""Of a row group in Parquet, as text: so much is held of a table."""
INSERT_ROWS: Final = 500
INSERT_BYTES: Final = 200_000
"""Of one INSERT: a text of SQL is at most five times as long."""
_ELSEWHERE: Final = """
SELECT DISTINCT 'schema ' || schemaname FROM pg_tables
WHERE schemaname NOT IN ('public', 'leasehold', 'pg_catalog', 'information_schema') ORDER BY 1
"""
DIGITS_MAX: Final = 38
"""Of a decimal in Parquet; a numeric of more, or without a precision, is text there."""


CopyOut: TypeAlias = Callable[[str, str], Iterable[bytes]]
"""Gives what COPY of a query writes, with these options."""


class Exported(NamedTuple):
    """What is written: a table or a query. `columns`: names and types in the order of `query`."""

    name: str
    query: str
    columns: Sequence[tuple[str, str]]


def find_tables(names: Sequence[str], schema: SourceSchema, *, loadable: bool) -> list[Exported]:
    """Return the tables that are to be written, all of them without `names`. `loadable`: without
    what is computed when a row is loaded again. Raises UnknownTable."""
    tables = {table.name: table for table in schema.tables}
    found = []
    for name in names or tables:
        if name not in tables:
            raise UnknownTable(f"table {name!r} does not exist", table=name)
        table = tables[name]
        kept = [column for column in table.columns if not (loadable and column.generated)]
        query = f"SELECT {quote_names(column.name for column in kept)} FROM {quote_name(name)}"
        if table.key:
            query += f" ORDER BY {quote_names(table.key)}"
        found.append(Exported(name, query, [(column.name, column.type) for column in kept]))
    return found


def check_all_in_public(ask: Callable[[str], Sequence[Sequence[Any]]]) -> None:
    """Check that all tables of a node lie in public, whose tables are written where none are named.
    Raises ConfigurationError."""
    elsewhere = [str(name) for (name,) in ask(_ELSEWHERE)]
    if elsewhere:
        raise ConfigurationError(
            f"tables of schema public are exported, and {', '.join(elsewhere)} has others: name the"
            " tables of public that are to be written, and take --query for each of the others"
        )


def sequence_statements(
    ask: Callable[[str], Sequence[Sequence[Any]]], schema: SourceSchema
) -> list[str]:
    """Return what has sequences go on where they are now."""
    made = []
    for sequence in schema.sequences:
        name = quote_name(sequence.name)
        ((last, called),) = ask(f"SELECT last_value, is_called FROM {name}")
        made.append(f"SELECT setval({quote_text(name)}, {last}, {str(called).lower()})")
    return made


@contextmanager
def written(path: Path, *, replace: bool) -> Iterator[IO[bytes]]:
    """Give a file that gets its name when the block has ended well. Raises ConfigurationError where
    it is there already and not to be replaced, or can't be written."""
    if path.exists() and not replace:
        raise ConfigurationError(f"{path} is there already; --replace writes it anew")
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{path} can't be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


class Count:
    """Counts rows as they are written."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self.rows = 0
        self._tell = tell

    def add(self, rows: int) -> None:
        self.rows += rows
        self._tell(rows)


def write_csv(what: Exported, copy_out: CopyOut, file: IO[bytes], count: Count) -> None:
    """Write rows as CSV with the names of the columns in the first line, as COPY writes it. NULL is
    nothing, an empty text is in quotes."""
    reading = CopyLines(CopyFormat(csv=True, header=True), LINE_BYTES_MAX)
    for data in copy_out(what.query, "(FORMAT csv, HEADER)"):
        file.write(data)
        count.add(sum(1 for _ in reading.feed(data)))


def read_rows(what: Exported, copy_out: CopyOut) -> Iterator[list[str | None]]:
    """Yield the rows as texts."""
    reading = CopyLines(CopyFormat(), LINE_BYTES_MAX)
    for data in copy_out(what.query, ""):
        yield from reading.feed(data)
    yield from reading.finish()


# ---------------------------------------------------------------- SQL


def schema_statements(schema: SourceSchema) -> tuple[list[str], list[str]]:
    """Return the statements that make the tables of a node, and those that come behind the rows:
    indexes, constraints, foreign keys last."""
    plan = plan_schema(schema)
    before = [text for table in plan.tables for text in table.before]
    after = [text for table in plan.tables for text in table.after.values()]
    for finding in plan.findings:
        before.insert(0, f"-- {finding.kind}: {finding.what}: {finding.words}")
    return before, sorted(after, key=lambda text: " FOREIGN KEY " in text)


def write_sql(what: Exported, copy_out: CopyOut, file: IO[bytes], count: Count) -> None:
    """Write rows as INSERT statements of several rows each, which keep identity columns."""
    names = quote_names(name for name, _ in what.columns)
    head = f"INSERT INTO {quote_name(what.name)} ({names}) OVERRIDING SYSTEM VALUE VALUES\n"
    held: list[str] = []
    size = 0
    for row in read_rows(what, copy_out):
        text = f"({', '.join(map(quote_text, row))})"
        held.append(text)
        size += len(text.encode())
        if len(held) >= INSERT_ROWS or size >= INSERT_BYTES:
            _write_insert(file, head, held, count)
            held, size = [], 0
    if held:
        _write_insert(file, head, held, count)


def _write_insert(file: IO[bytes], head: str, rows: Sequence[str], count: Count) -> None:
    file.write((head + ",\n".join(rows) + ";\n").encode())
    count.add(len(rows))


# ---------------------------------------------------------------- Parquet


def write_parquet(what: Exported, copy_out: CopyOut, file: IO[bytes], count: Count) -> None:
    """Write rows as Parquet, packed by zstd. Raises ConfigurationError without the extra, Refused
    for a value that Parquet's type can't hold."""
    need_extra("import", "a file in Parquet", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = [(name, *_arrow_type(kind)) for name, kind in what.columns]
    schema = pa.schema([(name, kind) for name, kind, _ in fields])
    readers = [read for _, _, read in fields]
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for group in _groups(read_rows(what, copy_out)):
            columns = []
            for place, (read, field) in enumerate(zip(readers, schema, strict=True)):
                texts = [row[place] for row in group]
                try:
                    values = [None if t is None else read(t) for t in texts] if read else texts
                    columns.append(pa.array(values, field.type))
                except (ValueError, ArithmeticError, pa.ArrowException) as error:
                    raise Refused(
                        f"{what.name}, column {field.name!r}: {error}; Parquet's {field.type} can't"
                        " hold it (a query may cast the column to text)"
                    ) from error
            writer.write_table(pa.table(columns, schema=schema))
            count.add(len(group))


def _groups(rows: Iterable[list[str | None]]) -> Iterator[list[list[str | None]]]:
    held: list[list[str | None]] = []
    size = 0
    for row in rows:
        held.append(row)
        size += sum(len(text) for text in row if text is not None)
        if len(held) >= GROUP_ROWS or size >= GROUP_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _arrow_type(kind: str) -> tuple[Any, Callable[[str], Any] | None]:
    """Return the type that a column has in Parquet, and what makes its values of texts."""
    import pyarrow as pa

    if kind.startswith("numeric("):
        digits, _, scale = kind.removeprefix("numeric(").rstrip(")").partition(",")
        if int(digits) <= DIGITS_MAX:
            return pa.decimal128(int(digits), int(scale or 0)), Decimal
        return pa.string(), None
    plain = (pa.timestamp("us"), datetime.fromisoformat)
    zoned = (pa.timestamp("us", "UTC"), datetime.fromisoformat)
    types: Mapping[str, tuple[Any, Callable[[str], Any] | None]] = {
        "smallint": (pa.int16(), int),
        "integer": (pa.int32(), int),
        "bigint": (pa.int64(), int),
        "boolean": (pa.bool_(), lambda text: text == "t"),
        "real": (pa.float32(), float),
        "double precision": (pa.float64(), float),
        "date": (pa.date32(), date.fromisoformat),
        **dict.fromkeys(("timestamp", "timestamp without time zone"), plain),
        **dict.fromkeys(("timestamptz", "timestamp with time zone"), zoned),
        "bytea": (pa.binary(), lambda text: bytes.fromhex(text[2:])),
    }
    return types.get(kind, (pa.string(), None))
