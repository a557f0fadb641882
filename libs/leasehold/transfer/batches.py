"""Rows of COPY's text form as operations of change requests, in batches of bounded size.

PURE. What is held of a batch is its bytes and as many rows, each about ten times its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from leasehold.pgwire.copy.lines import text_splitter
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.wire_errors import InvalidCopyText
from leasehold.transfer.column_types import find_reader
from leasehold.transfer.schema_plan import PlannedTable

BATCH_ROWS: Final = 5_000
BATCH_BYTES: Final = 1_000_000
"""Of a batch in the source's text form; a row beyond it is a batch of its own."""
LINE_BYTES_MAX: Final = Limits().message_bytes_max


class Batch(NamedTuple):
    """Rows of a table: values in the order of its copied columns, and the key of the last one
    as the source writes it."""

    rows: Sequence[Sequence[Any]]
    last: tuple[str, ...]
    bytes: int


def gather(table: PlannedTable, lines: Iterable[bytes]) -> Iterator[Batch]:
    """Yield batches of the rows that are written in `lines`, each with its line end. Raises
    InvalidCopyText for what is none of a server's."""
    readers = [find_reader(column.type) for column in table.copied]
    split, keys = text_splitter(), len(table.key)
    rows: list[list[Any]] = []
    size = 0
    for line in lines:
        if len(line) > LINE_BYTES_MAX:
            raise InvalidCopyText(f"a line of COPY is longer than {LINE_BYTES_MAX} bytes")
        rows.append(split(line[:-1]))
        size += len(line)
        if size >= BATCH_BYTES or len(rows) >= BATCH_ROWS:
            yield _make_batch(rows, readers, keys, size)
            rows, size = [], 0
    if rows:
        yield _make_batch(rows, readers, keys, size)


def _make_batch(
    rows: list[list[Any]], readers: Sequence[Callable[[str], Any] | None], keys: int, size: int
) -> Batch:
    last = tuple([text or "" for text in rows[-1][:keys]])
    for place, read in enumerate(readers):
        if read is None:
            continue
        for row in rows:
            text = row[place]
            if text is not None:
                row[place] = read(text)
    return Batch(rows, last, size)


def insert_rows(table: PlannedTable, batch: Batch) -> dict[str, Any]:
    """Return the operation that inserts a batch."""
    columns = [column.name for column in table.copied]
    return {"table": table.name, "op": "insert", "columns": columns, "rows": batch.rows}
