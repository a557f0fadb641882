"""generate_series over integers as a table-valued function of SQLite: lh_series(start, stop,
step)."""

from __future__ import annotations

from typing import Any, Final, cast

import apsw

from leasehold.model.errors import InvalidArgument

_SCHEMA: Final = "CREATE TABLE x(value, start HIDDEN, stop HIDDEN, step HIDDEN)"
_VALUE: Final = 0
_GUESSED_ROWS: Final = 1_000


def install(connection: apsw.Connection) -> None:
    connection.create_module(
        "lh_series",
        cast(Any, _Module()),  # what only tables that are made by name need is left out
        use_bestindex_object=True,
        eponymous=True,
        eponymous_only=True,
        read_only=True,
    )


class _Module:
    def Connect(  # noqa: N802 - the names are those of apsw's interface
        self, connection: apsw.Connection, module: str, database: str, table: str, *values: Any
    ) -> tuple[str, _Table]:
        return _SCHEMA, _Table()


class _Table:
    def BestIndexObject(self, info: Any) -> bool:  # noqa: N802
        """Every argument must be known before: where one comes from another table, that one goes
        first."""
        taken = []
        for number in range(info.nConstraint):
            column = info.get_aConstraint_iColumn(number)
            if (
                column == _VALUE
                or info.get_aConstraint_op(number) != apsw.SQLITE_INDEX_CONSTRAINT_EQ
            ):
                continue
            if not info.get_aConstraint_usable(number):
                return False
            taken.append((column, number))
        for place, (_, number) in enumerate(sorted(taken), 1):
            info.set_aConstraintUsage_argvIndex(number, place)
            info.set_aConstraintUsage_omit(number, True)
        info.estimatedRows = _GUESSED_ROWS
        info.estimatedCost = float(_GUESSED_ROWS)
        return True

    def Open(self) -> _Cursor:  # noqa: N802
        return _Cursor()

    def Disconnect(self) -> None:  # noqa: N802
        pass

    Destroy = Disconnect


class _Cursor:
    def __init__(self) -> None:
        self._values: range = range(0)
        self._at = 0

    def Filter(self, number: int, text: str, arguments: tuple[Any, ...]) -> None:  # noqa: N802
        start, stop, step = (*arguments, 1)[:3]
        self._at = 0
        if start is None or stop is None or step is None:
            self._values = range(0)
            return
        if step == 0:
            raise InvalidArgument("step size cannot equal zero")
        self._values = range(start, stop + (1 if step > 0 else -1), step)

    def Eof(self) -> bool:  # noqa: N802
        return self._at >= len(self._values)

    def Next(self) -> None:  # noqa: N802
        self._at += 1

    def Rowid(self) -> int:  # noqa: N802
        return self._at

    def Column(self, number: int) -> Any:  # noqa: N802
        return self._values[self._at] if number == _VALUE else None

    def Close(self) -> None:  # noqa: N802
        pass
