"""PEP 249's cursor, and the result of a statement that it goes over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from leasehold.dbapi.errors import InterfaceError, ProgrammingError
from leasehold.dbapi.placeholders import numbered
from leasehold.model.closing import Closing
from leasehold.values.storage import from_storage
from leasehold.values.types import STORED_AS_THEY_ARE

if TYPE_CHECKING:
    from leasehold.dbapi.connection import Connection


class ColumnDescription(NamedTuple):
    """PEP 249's seven items; `type_code` is the SQL type's name."""

    name: str
    type_code: str
    display_size: None = None
    internal_size: None = None
    precision: int | None = None
    scale: int | None = None
    null_ok: None = None


class Result(NamedTuple):
    description: list[ColumnDescription] | None
    rows: list[tuple[Any, ...]]
    rowcount: int


NOTHING: Final = Result(None, [], -1)


class Shape:
    """What a statement's rows look like in Python."""

    def __init__(self, columns: Sequence[Any] | None) -> None:
        self._described: list[ColumnDescription] | None = None
        self._changes: list[tuple[int, Callable[[Any], Any]]] = []
        if columns is not None:
            self._described = [
                ColumnDescription(
                    c.name, str(c.type), precision=c.type.precision, scale=c.type.scale
                )
                for c in columns
            ]
            self._changes = [
                (ordinal, partial(from_storage, column.type))
                for ordinal, column in enumerate(columns)
                if column.type.name not in STORED_AS_THEY_ARE
            ]

    def result(self, rows: Sequence[Sequence[Any]], tag: str = "SELECT") -> Result:
        if self._described is None:
            number = tag.rpartition(" ")[2]
            return Result(None, [], int(number) if number.isdecimal() else -1)
        made = list(map(self._python, rows)) if self._changes else list(map(tuple, rows))
        return Result(self._described, made, len(made))

    def _python(self, row: Sequence[Any]) -> tuple[Any, ...]:
        values = list(row)
        for ordinal, change in self._changes:
            values[ordinal] = change(values[ordinal])
        return tuple(values)


class Cursor(Closing):
    """The rows of one statement, all fetched when it is run; it goes over them itself."""

    lastrowid: None = None
    """Rows are known by their primary keys: RETURNING tells them."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self._result = NOTHING
        self._next = 0
        self._closed = False

    @property
    def description(self) -> list[ColumnDescription] | None:
        return self._result.description

    @property
    def rowcount(self) -> int:
        return self._result.rowcount

    def execute(self, operation: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """Run a statement. `%s` is a parameter and `%%` a percent sign where parameters are given;
        `$1` may be written instead. Raises the errors of PEP 249, each with its `sqlstate`."""
        self._check_open()
        self._result, self._next = NOTHING, 0
        text = operation if parameters is None else numbered(operation, len(parameters))
        self._result = self.connection.run(text, parameters or ())
        return self

    def executemany(self, operation: str, rows: Iterable[Sequence[Any]]) -> Cursor:
        """Run a statement once for each; `rowcount` is the sum, and rows that come back are not
        kept."""
        self._check_open()
        count = 0
        for parameters in rows:
            self.execute(operation, parameters)
            count += max(self.rowcount, 0)
        self._result = Result(None, [], count)
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        self._check_rows()
        rows, at = self._result.rows, self._next
        if at >= len(rows):
            return None
        self._next = at + 1
        return rows[at]

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        self._check_rows()
        wanted = self.arraysize if size is None else size
        if wanted < 0:
            raise ProgrammingError(f"{wanted} rows can't be fetched")
        first, self._next = self._next, min(self._next + wanted, len(self._result.rows))
        return self._result.rows[first : self._next]

    def fetchall(self) -> list[tuple[Any, ...]]:
        self._check_rows()
        first, self._next = self._next, len(self._result.rows)
        return self._result.rows[first:]

    @property
    def rownumber(self) -> int | None:
        """The number of the row that comes next, from 0."""
        return None if self._result.description is None else self._next

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> tuple[Any, ...]:
        found = self.fetchone()
        if found is None:
            raise StopIteration
        return found

    def close(self) -> None:
        self._closed = True
        self._result = NOTHING

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing: types are the statement's."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: values are of any size."""

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self.connection.check_open()

    def _check_rows(self) -> None:
        self._check_open()
        if self._result.description is None:
            raise ProgrammingError("there are no rows: the last statement gave none")
