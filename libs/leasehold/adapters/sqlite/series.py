"""Functions that give rows as table-valued functions of SQLite: lh_series(start, stop, step) over
integers, lh_elements(array, …) over arrays side by side, lh_members(array) for ANY and ALL,
lh_rows(text) over the rows that a query has been gathered to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, Final, cast

import apsw

from leasehold.model.errors import InvalidArgument
from leasehold.sql.binding.arrays import SIDE_BY_SIDE_MAX
from leasehold.sql.functions.aggregates.gathered_rows import COLUMNS_MAX, rows_of
from leasehold.values.arrays import elements_of

_GUESSED_ROWS: Final = 1_000

Rows = Sequence[Any]
"""A value for each row, or a tuple where there are several columns."""


def install(connection: apsw.Connection) -> None:
    _create(connection, "lh_series", ("value",), 3, _series)
    columns = tuple(f"v{n}" for n in range(SIDE_BY_SIDE_MAX))
    _create(connection, "lh_elements", columns, SIDE_BY_SIDE_MAX, _elements)
    _create(connection, "lh_members", ("v0",), 1, _members)
    columns = tuple(f"o{n}" for n in range(COLUMNS_MAX))
    _create(connection, "lh_rows", columns, 1, _gathered)


def _series(*arguments: Any) -> Rows:
    start, stop, step = (*arguments, 1)[:3]
    if start is None or stop is None or step is None:
        return ()
    if step == 0:
        raise InvalidArgument("step size cannot equal zero")
    return range(start, stop + (1 if step > 0 else -1), step)


def _elements(*arrays: str | None) -> Rows:
    lists = [() if stored is None else elements_of(stored) for stored in arrays]
    return lists[0] if len(lists) == 1 else list(zip_longest(*lists))


def _members(array: str | None) -> Rows:
    """What is compared with NULL instead of an array is NULL."""
    return (None,) if array is None else elements_of(array)


def _gathered(text: str | None) -> Rows:
    """NULL is what a query gives that has failed."""
    return () if text is None else rows_of(text)


def _create(
    connection: apsw.Connection,
    name: str,
    columns: tuple[str, ...],
    arguments: int,
    rows: Callable[..., Rows],
) -> None:
    """Columns, `ordinality` from 1, and the arguments as hidden columns."""
    hidden = [f"a{n} HIDDEN" for n in range(arguments)]
    schema = f"CREATE TABLE x({', '.join([*columns, 'ordinality', *hidden])})"
    connection.create_module(
        name,
        cast(Any, _Module(schema, len(columns), rows)),  # without what only named tables need
        use_bestindex_object=True,
        eponymous=True,
        eponymous_only=True,
        read_only=True,
    )


class _Module:
    def __init__(self, schema: str, columns: int, rows: Callable[..., Rows]) -> None:
        self._schema = schema
        self._columns = columns
        self._rows = rows

    def Connect(  # noqa: N802 - the names are those of apsw's interface
        self, connection: apsw.Connection, module: str, database: str, table: str, *values: Any
    ) -> tuple[str, _Table]:
        return self._schema, _Table(self._columns, self._rows)


class _Table:
    def __init__(self, columns: int, rows: Callable[..., Rows]) -> None:
        self._columns = columns
        self._rows = rows

    def BestIndexObject(self, info: Any) -> bool:  # noqa: N802
        """Every argument must be known before: where one comes from another table, that one goes
        first."""
        taken = []
        for number in range(info.nConstraint):
            column = info.get_aConstraint_iColumn(number)
            if (
                column <= self._columns
                or info.get_aConstraint_op(number) != apsw.SQLITE_INDEX_CONSTRAINT_EQ
            ):
                continue
            if not info.get_aConstraint_usable(number):
                return False
            taken.append((column, number))
        for position, (_, number) in enumerate(sorted(taken), 1):
            info.set_aConstraintUsage_argvIndex(number, position)
            info.set_aConstraintUsage_omit(number, True)
        info.estimatedRows = _GUESSED_ROWS
        info.estimatedCost = float(_GUESSED_ROWS)
        return True

    def Open(self) -> _Cursor:  # noqa: N802
        return _Cursor(self._columns, self._rows)

    def Disconnect(self) -> None:  # noqa: N802
        pass

    Destroy = Disconnect


class _Cursor:
    def __init__(self, columns: int, rows: Callable[..., Rows]) -> None:
        self._columns = columns
        self._make = rows
        self._rows: Rows = ()
        self._at = 0

    def Filter(self, number: int, text: str, arguments: tuple[Any, ...]) -> None:  # noqa: N802
        self._at = 0
        self._rows = self._make(*arguments)

    def Eof(self) -> bool:  # noqa: N802
        return self._at >= len(self._rows)

    def Next(self) -> None:  # noqa: N802
        self._at += 1

    def Rowid(self) -> int:  # noqa: N802
        return self._at

    def Column(self, number: int) -> Any:  # noqa: N802
        if number == self._columns:
            return self._at + 1
        if not 0 <= number < self._columns:
            return None
        row = self._rows[self._at]
        return row[number] if type(row) is tuple else row

    def Close(self) -> None:  # noqa: N802
        pass
