"""COPY … FROM STDIN: bytes → storage values of the target's columns → the target, in portions."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

from leasehold.model.errors import ROW_NUMBER, DuplicateKey, LeaseholdError
from leasehold.pgwire.copy.binary import BinaryRows
from leasehold.pgwire.copy.lines import CopyLines
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.session import CopyTarget
from leasehold.pgwire.values.decoding import make_decoder, make_input
from leasehold.pgwire.values.encoding import BINARY
from leasehold.pgwire.wire_errors import InvalidCopyText

SHOWN_BYTES_MAX: Final = 100
"""Of a line or a value that an error's context shows, as in PostgreSQL."""
_make_decoder: Final = getincrementaldecoder("utf-8")


_Place: TypeAlias = tuple[int, bytes | None]
"""The number of a row's line, and how that begins, a byte more than is shown; None where it has no
text. ⚠ There is one for each row: a class of its own takes a tenth of a row's time."""


class CopyRows:
    """Errors carry `where`: the table, the line, and the column with its value, or the line's text
    where no column is meant, as PostgreSQL's context does."""

    def __init__(self, target: CopyTarget, zone: ZoneInfo, limits: Limits) -> None:
        self._target = target
        self._lines: CopyLines | BinaryRows
        self._inputs: list[Callable[[Any], Any]]
        if target.format.binary:
            self._inputs = [make_decoder(column.type, BINARY, zone) for column in target.columns]
            self._lines = BinaryRows(limits.copy_line_bytes_max)
        else:
            self._inputs = [make_input(column.type, zone) for column in target.columns]
            self._lines = CopyLines(target.format, limits.copy_line_bytes_max)
        how = target.format
        self._awaits_header = how.header and how.header_matches
        self._forced = [
            (column.name in how.force_null, column.name in how.force_not_null)
            for column in target.columns
            if how.force_null or how.force_not_null
        ]
        self._portion = limits.copy_rows_max
        self._rows: list[tuple[Any, ...]] = []
        self._places: list[_Place] = []
        """Of `_rows`."""
        self._column: str | None = None
        self._fields: Sequence[Any] = ()
        """Of the row that is read."""

    def feed(self, data: bytes) -> None:
        self._take(self._lines.feed(data))

    def finish(self) -> None:
        self._take(self._lines.finish())
        self._hand_over()

    def _take(self, lines: Iterable[Sequence[Any]]) -> None:
        reader, most = self._lines, SHOWN_BYTES_MAX + 1
        try:
            for fields in lines:
                if self._awaits_header:
                    self._awaits_header = False
                    self._check_header(fields)
                    continue
                self._rows.append(self._row(fields))
                line = reader.line
                self._places.append((reader.number, None if line is None else line[:most]))
                if len(self._rows) >= self._portion:
                    self._hand_over()
        except LeaseholdError as error:
            if self._lines.number:
                error.detail = {"where": self._where(), **error.detail}
            raise

    def _row(self, fields: Sequence[Any]) -> tuple[Any, ...]:
        columns = self._target.columns
        if self._target.format.binary and len(fields) != len(columns):
            raise InvalidCopyText(f"row field count is {len(fields)}, expected {len(columns)}")
        if len(fields) > len(columns):
            raise InvalidCopyText("extra data after last expected column")
        if len(fields) < len(columns):
            raise InvalidCopyText(f'missing data for column "{columns[len(fields)].name}"')
        if self._forced:
            fields = list(map(self._as_forced, fields, self._forced))
        self._fields = fields
        values = []
        for column, read, text in zip(columns, self._inputs, fields, strict=True):
            self._column = column.name
            values.append(None if text is None else read(text))
        self._column = None
        return tuple(values)

    def _as_forced(self, text: str | None, forced: tuple[bool, bool]) -> str | None:
        """The NULL string stands for itself, or for NULL also in quotes."""
        null, not_null = forced
        given = self._target.format.null
        if text is None:
            return given if not_null else None
        return None if null and text == given else text

    def _check_header(self, fields: Sequence[str | None]) -> None:
        columns = self._target.columns
        if len(fields) != len(columns):
            raise InvalidCopyText(
                f"wrong number of fields in header line: got {len(fields)}, expected {len(columns)}"
            )
        for number, (text, column) in enumerate(zip(fields, columns, strict=True), 1):
            if text == column.name:
                continue
            got = f'null value ("{self._target.format.null}")' if text is None else f'"{text:.80}"'
            raise InvalidCopyText(
                f"column name mismatch in header line field {number}: got {got}, expected"
                f' "{column.name}"'
            )

    def _hand_over(self) -> None:
        rows, places = self._rows, self._places
        self._rows, self._places = [], []
        if not rows:
            return
        try:
            self._target.take(rows)
        except LeaseholdError as error:
            number = error.detail.get(ROW_NUMBER)
            # Without one it is an error of all rows: the line that was read last is not its.
            place = places[number] if isinstance(number, int) else None
            if isinstance(error, DuplicateKey) and place is not None:
                place = place[0], None  # as in PostgreSQL, which looks when many wait
            error.detail = {**error.detail, "where": None if place is None else self._at(place)}
            raise

    def _where(self) -> str:
        number, line = self._lines.number, self._lines.line
        if self._column is None:
            return self._at((number, None if line is None else line[: SHOWN_BYTES_MAX + 1]))
        where = f"{self._at((number, None))}, column {self._column}"
        names = [column.name for column in self._target.columns]
        value = self._fields[names.index(self._column)]
        if not isinstance(value, str):
            return where
        return where + _shown(value[: SHOWN_BYTES_MAX + 1].encode())

    def _at(self, place: _Place) -> str:
        number, begin = place
        where = f"COPY {self._target.table}, line {number}"
        return where if begin is None else where + _shown(begin)


def _shown(data: bytes) -> str:
    """Return what stands behind the place: the text in quotes, cut between characters; nothing of
    bytes that are no text."""
    try:
        text = _make_decoder().decode(data[:SHOWN_BYTES_MAX])
    except UnicodeDecodeError:
        return ""
    if "\0" in text:
        return ""
    return f': "{text}{"..." if len(data) > SHOWN_BYTES_MAX else ""}"'
