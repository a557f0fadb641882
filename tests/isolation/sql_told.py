"""The sessions of Hermitage's stories in SQL, whatever brings the text to a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from leasehold.transaction.isolation import Level
from tests.isolation.said import EVERY, Said

BEGIN: Final = {
    Level.DEFAULT: "BEGIN ISOLATION LEVEL DEFAULT",
    Level.READ_COMMITTED: "BEGIN ISOLATION LEVEL READ COMMITTED",
    Level.SNAPSHOT: "BEGIN ISOLATION LEVEL REPEATABLE READ",
    Level.SERIALIZABLE: "BEGIN ISOLATION LEVEL SERIALIZABLE",
    Level.LINEARIZABLE: "BEGIN ISOLATION LEVEL LINEARIZABLE",
}


class Answered(NamedTuple):
    tag: str
    rows: list[Any]

    @property
    def rowcount(self) -> int:
        return int(self.tag.split()[-1])


Ask = Callable[[str], Answered]
"""Raises Refused with the SQLSTATE that came."""


class SqlTold:
    """`Told` in SQL."""

    def __init__(self, ask: Ask, level: str, *, table: str = "test") -> None:
        self.ask = ask
        self._level = Level(level)
        self._table = table

    def begin(self) -> SqlTold:
        self.ask(BEGIN[self._level])
        return self

    def get(self, key: int, *, selectv: bool = False) -> Any:
        """The row's value, None where there is no row."""
        found = self.select(Said(f"id = {key}", lambda _: True), selectv=selectv)
        return found.get(key)

    def select(self, where: Said = EVERY, *, selectv: bool = False) -> dict[int, Any]:
        verb = "SELECTV" if selectv else "SELECT"
        found = self.ask(f"{verb} id, value FROM {self._table} WHERE {where.sql}")
        return {int(key): int(value) for key, value in found.rows}

    def update(self, change: Said, where: Said = EVERY) -> int:
        text = f"UPDATE {self._table} SET value = {change.sql} WHERE {where.sql}"
        return self.ask(text).rowcount

    def put(self, key: int, value: Any) -> int:
        return self.ask(f"UPDATE {self._table} SET value = {value} WHERE id = {key}").rowcount

    def insert(self, key: int, value: Any) -> None:
        self.ask(f"INSERT INTO {self._table} VALUES ({key}, {value})")

    def delete(self, where: Said) -> int:
        return self.ask(f"DELETE FROM {self._table} WHERE {where.sql}").rowcount

    def abort(self) -> None:
        self.ask("ROLLBACK")

    def commit(self) -> None:
        self.ask("COMMIT")
