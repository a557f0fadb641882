"""A client that carries out schema changes of every kind: the items of `tests/matrix`, each on
tables of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tests.faults.workload.history import Told
from tests.faults.workload.sql_clients import SqlClient
from tests.faults.workload.sql_sessions import SqlFailure
from tests.matrix.definition import TABLE, Definition, names, read

SUCCEEDED: Final = "succeeded"


class MenuClient(SqlClient):
    """Carries out one item after the other, in an order of its seed, each in a schema of its own
    which is there until the round ends. `fills`: whether there is Spark, which fills what rows
    need; else the tables of the items are empty."""

    pace_s = 0.3

    def __init__(self, *given: Any, fills: bool) -> None:
        super().__init__(*given)
        self._fills = fills
        self._waiting = self._items()

    def _items(self) -> Iterator[Definition]:
        """Yield all of them in an order that is drawn, again and again."""
        while True:
            order = names()
            self._rng.shuffle(order)
            for name in order:
                item = read(name)
                if self._fills or item.ends == SUCCEEDED:
                    yield item

    def act(self) -> None:
        item = next(self._waiting)
        schema = self._tables.menu(self._values.next())
        made = self._recorder.begin(self.name, "menu", {"schema": schema, "item": item.name})
        session = self.session()
        rows = item.rows if self._fills else ()
        try:
            session.run(f"CREATE SCHEMA {schema}")
            session.run(f"SET search_path TO {schema}")
            for text in (*_apart(item.table), *item.setup, *insert_all(rows)):
                session.run(text)
        except SqlFailure as error:
            self._recorder.end(made, error.told, error.sqlstate)
            raise
        self._recorder.end(made, Told.YES)
        value = {
            "schema": schema,
            "item": item.name,
            "after": list(item.after),
            "rows": 0 if item.anew else len(rows),
        }
        op = self._recorder.begin(self.name, "change", {**value, "ends": item.ends})
        self.single(op, item.statement, lambda _: {})


def _apart(text: str) -> list[str]:
    """Return the statements of a text that has no semicolon within one."""
    return [statement for part in text.split(";") if (statement := part.strip())]


def insert_all(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return statements that insert rows: one for those that give the same columns."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        values = ", ".join(map(literal, row.values()))
        alike.setdefault(tuple(row), []).append(f"({values})")
    return [
        f"INSERT INTO {TABLE} ({', '.join(columns)}) VALUES {', '.join(values)}"
        for columns, values in alike.items()
    ]


def literal(value: Any) -> str:
    """Return a value of an item as SQL has it."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    return str(value)
