"""System relations as tables of SQLite: their rows are those of the statement that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import apsw

from leasehold.sql.system_catalog.relations import Relation
from leasehold.sql.system_catalog.system_relations import System

_GUESSED_ROWS: Final = 1_000
_GUESSED_FOUND: Final = 3

Systems = Callable[[], System]


def install(connection: apsw.Connection, name: str, relation: Relation, system: Systems) -> None:
    """Make the relation a table of the connection. `system` returns the rows of the statement that
    runs on it."""
    connection.create_module(
        name,
        cast(Any, _Module(relation, system)),  # what only tables that are made by name need is out
        use_bestindex_object=True,
        eponymous=True,
        eponymous_only=True,
        read_only=True,
    )


class _Module:
    def __init__(self, relation: Relation, system: Systems) -> None:
        self._relation, self._system = relation, system

    def Connect(  # noqa: N802 - the names are those of apsw's interface
        self, connection: apsw.Connection, module: str, database: str, table: str, *values: Any
    ) -> tuple[str, _Table]:
        columns = ", ".join(f"c{n}" for n in range(len(self._relation.columns)))
        return f"CREATE TABLE x({columns})", _Table(self._relation, self._system)


class _Table:
    def __init__(self, relation: Relation, system: Systems) -> None:
        self._relation, self._system = relation, system

    def BestIndexObject(self, info: Any) -> bool:  # noqa: N802
        """Search by the columns that are equal to something. SQLite compares again what is
        found."""
        places: list[int] = []
        for number in range(info.nConstraint):
            position = info.get_aConstraint_iColumn(number)
            equal = info.get_aConstraint_op(number) == apsw.SQLITE_INDEX_CONSTRAINT_EQ
            if equal and position >= 0 and info.get_aConstraint_usable(number):
                places.append(position)
                info.set_aConstraintUsage_argvIndex(number, len(places))
        rows = _GUESSED_FOUND if places else _GUESSED_ROWS
        info.idxStr = ",".join(map(str, places))
        info.estimatedRows = rows
        info.estimatedCost = float(rows)
        return True

    def Open(self) -> _Cursor:  # noqa: N802
        return _Cursor(self._relation, self._system)

    def Disconnect(self) -> None:  # noqa: N802
        pass

    Destroy = Disconnect


class _Cursor:
    def __init__(self, relation: Relation, system: Systems) -> None:
        self._relation, self._system = relation, system
        self._rows: Iterator[tuple[Any, ...]] = iter(())
        self._row: tuple[Any, ...] | None = None
        self._number = 0

    def Filter(self, number: int, text: str, values: tuple[Any, ...]) -> None:  # noqa: N802
        system = self._system()
        if not text:
            rows = system.rows(self._relation)
        elif None in values:
            rows = []  # nothing is equal to NULL
        else:
            places = tuple(map(int, text.split(",")))
            rows = system.found(self._relation, places).get(values, [])
        self._rows = iter(rows)
        self._number = -1
        self.Next()

    def Eof(self) -> bool:  # noqa: N802
        return self._row is None

    def Next(self) -> None:  # noqa: N802
        self._row = next(self._rows, None)
        self._number += 1

    def Rowid(self) -> int:  # noqa: N802
        return self._number

    def Column(self, number: int) -> Any:  # noqa: N802
        assert self._row is not None
        return self._number if number < 0 else self._row[number]

    def Close(self) -> None:  # noqa: N802
        pass
