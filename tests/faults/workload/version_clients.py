"""Clients that look at what versions of a table do to its rows and its users: one stays in a
transaction, one writes under an older version, one sets to NULL what was filled."""

from __future__ import annotations

from typing import Any, Final

from tests.faults.workload.sql_clients import SqlClient
from tests.faults.workload.sql_sessions import Session, SqlFailure
from tests.faults.workload.tables import ACCOUNTS, ROWS

LOOKS: Final = 3
"""Of a transaction that stays open, at the same row."""
UNDEFINED_COLUMN: Final = "42703"
DUPLICATE_COLUMN: Final = "42701"


class Stayer(SqlClient):
    """Reads all columns of a row again and again in one transaction, `between_s` apart: it has the
    version of its first use to its end (D8), so there are always as many."""

    def __init__(self, *given: Any, between_s: float) -> None:
        super().__init__(*given)
        self._between_s = between_s

    def act(self) -> None:
        accounts, account = self._tables.accounts, self._rng.randrange(ACCOUNTS)
        op = self._recorder.begin(self.name, "stay", {"table": accounts})

        def work(session: Session) -> dict[str, Any]:
            widths = []
            for _ in range(LOOKS):
                (row,) = session.run(f"SELECT * FROM {accounts} WHERE id = {account}")
                widths.append(len(row))
                self._stopping.wait(self._between_s)
            return {"widths": widths}

        self.block(op, "BEGIN", work)


class Widener(SqlClient):
    """Adds columns to `wide`, one after the other, which `ColumnWriter` writes and `OlderWriter`
    does not know yet."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._number = 1

    def act(self) -> None:
        text = f"ALTER TABLE {self._tables.wide} ADD COLUMN {column_of(self._number)} bigint"
        op = self._recorder.begin(self.name, "schema", {"sql": text})
        try:
            self.single(op, text, lambda _: {})
        except SqlFailure as error:
            if error.sqlstate != DUPLICATE_COLUMN:  # a try of which nobody was told
                raise
        self._number += 1


class ColumnWriter(SqlClient):
    """Writes each column that `Widener` adds, as soon as it is there, once in each row."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._column, self._row = 1, 0

    def act(self) -> None:
        table, column, value = self._tables.wide, column_of(self._column), self._values.next()
        kept = {"table": table, "column": column, "ids": [self._row], "value": value}
        op = self._recorder.begin(self.name, "kept", kept)
        try:
            self.single(
                op, f"UPDATE {table} SET {column} = {value} WHERE id = {self._row}", lambda _: {}
            )
        except SqlFailure as error:
            if error.sqlstate == UNDEFINED_COLUMN:
                return
            self._go_on()
            raise
        self._go_on()

    def _go_on(self) -> None:
        self._row = (self._row + 1) % ROWS
        self._column += not self._row


class OlderWriter(SqlClient):
    """Writes rows of `wide` in transactions that have used the table for a while: under a version
    that lacks what others write in the same rows (T0)."""

    def act(self) -> None:
        wide = self._tables.wide
        op = self._recorder.begin(self.name, "older", {"table": wide})

        def work(session: Session) -> dict[str, Any]:
            session.run(f"SELECT v FROM {wide} WHERE id = 0")
            self._stopping.wait(self._rng.uniform(0.5, 2.0))
            session.run(f"UPDATE {wide} SET v = v + 1")
            return {}

        self.block(op, "BEGIN", work)


class Clearer(SqlClient):
    """Adds columns that Spark fills, and sets them to NULL once that is done: nobody fills them
    again, whatever chunk of the job comes late."""

    def act(self) -> None:
        table, column = self._tables.filled, column_of(self._values.next())
        text = f"ALTER TABLE {table} ADD COLUMN {column} text DEFAULT md5(random()::text)"
        op = self._recorder.begin(self.name, "schema", {"sql": text})
        self.single(op, text, lambda _: {})
        kept = {"table": table, "column": column, "ids": list(range(ROWS)), "value": None}
        op = self._recorder.begin(self.name, "kept", kept)
        self.single(op, f"UPDATE {table} SET {column} = NULL", lambda _: {})


def column_of(number: int) -> str:
    """Return the name of a column that comes during a round."""
    return f"x{number}"
