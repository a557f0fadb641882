"""Goal: the lines of a source's COPY come as batches of bounded size, each value as it was written.

Method: rows with NULLs and with every character that COPY escapes, written as a server writes them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.pgwire.copy.format import CopyFormat
from leasehold.pgwire.copy.lines import CopyLines, text_splitter
from leasehold.pgwire.wire_errors import InvalidBytes, InvalidCopyText
from leasehold.transfer.batches import BATCH_BYTES, BATCH_ROWS, LINE_BYTES_MAX, gather, insert_rows
from leasehold.transfer.schema_plan import PlannedColumn, PlannedTable

ESCAPED = {
    "\\": r"\\",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
}
TEXTS = st.text(st.sampled_from([*ESCAPED, "N", "x", "é", "."]), max_size=4)
FIELDS = st.lists(st.none() | TEXTS, min_size=1, max_size=4)
COLUMNS = [PlannedColumn(n, k, n) for n, k in (("v", "text"), ("id", "bigint"), ("ok", "boolean"))]
TABLE = PlannedTable("t", COLUMNS, ("id",), ("bigint",), (), {}, False, 0, 0)


def written(fields: Sequence[str | None], null: str = r"\N") -> bytes:
    """Return a line as a server writes it, without its end."""
    shown = (null if text is None else "".join(ESCAPED.get(c, c) for c in text) for text in fields)
    return "\t".join(shown).encode()


@given(FIELDS)
def test_each_field_is_what_was_written(fields: list[str | None]) -> None:
    assert text_splitter()(written(fields)) == fields


@given(FIELDS, st.sampled_from([r"\N", "", "NULL", r"\x", r"\N\N"]))
def test_null_is_what_stands_for_it(fields: list[str | None], null: str) -> None:
    """⚠ No field is taken for one that merely looks so once it is read."""
    sent = [
        None if text is not None and written([text]).decode() == null else text for text in fields
    ]
    (read,) = CopyLines(CopyFormat(null=null), 1_000).feed(written(sent, null) + b"\n")
    assert read == sent


def line(key: int, text: str | None = "x") -> bytes:
    return written([str(key), text, "t"]) + b"\n"


def test_values_have_their_kinds_and_the_key_stands_first() -> None:
    (batch,) = gather(TABLE, [line(1), line(2, None), line(3, "a\tb")])
    assert batch.rows == [[1, "x", True], [2, None, True], [3, "a\tb", True]]
    assert batch.last == ("3",)
    assert batch.bytes == len(line(1) + line(2, None) + line(3, "a\tb"))
    told = insert_rows(TABLE, batch)
    assert told["columns"] == ["id", "v", "ok"]
    assert told["rows"] == batch.rows


def test_batches_are_bounded_by_rows_and_by_bytes() -> None:
    found = list(gather(TABLE, (line(key) for key in range(2 * BATCH_ROWS + 1))))
    assert [len(batch.rows) for batch in found] == [BATCH_ROWS, BATCH_ROWS, 1]
    assert [batch.last for batch in found] == [(str(n),) for n in (4_999, 9_999, 10_000)]
    wide = [line(key, "x" * (BATCH_BYTES // 4)) for key in range(5)]
    assert [len(batch.rows) for batch in gather(TABLE, wide)] == [4, 1]
    assert not list(gather(TABLE, []))


def test_what_no_server_writes_is_refused() -> None:
    with pytest.raises(InvalidCopyText, match="longer than"):
        list(gather(TABLE, [line(1, "x" * LINE_BYTES_MAX)]))
    with pytest.raises(InvalidBytes):
        list(gather(TABLE, [b"1\t\xff\tt\n"]))
