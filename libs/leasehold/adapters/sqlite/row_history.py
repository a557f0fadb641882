"""The rows of the past in a store's file: each old image with the LSNs that it was valid from and
until, written in the transaction that replaces it.

`h<table id>` has the columns of `t<table id>`: `lsn` is where an image became valid, and `id` =
`genid(until, position)`, so that images lie in the order in which they were replaced: writing
appends, forgetting takes from the front, and "since LSN n" is a range. What is older than a floor
is refused at one log position on every node; each takes it out of its file at its own pace.
"""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import apsw

from leasehold.adapters.sqlite.history import history_floor
from leasehold.adapters.sqlite.layout import (
    ASIDE,
    history_name,
    history_tables,
    make_past,
    physical_columns,
    tables_of_rows,
)
from leasehold.model.ids import genid

# `until_lsn`: up to which LSN this program has kept rows. An earlier one that opens the file in
# between keeps none, and what follows would have a hole.
_MAKE: Final = """
CREATE TABLE IF NOT EXISTS rows_kept (
    one INTEGER PRIMARY KEY CHECK (one = 1), from_lsn INTEGER NOT NULL, until_lsn INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS row_history (
    table_id INTEGER PRIMARY KEY, floor_lsn INTEGER NOT NULL, written_lsn INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS commit_times (lsn INTEGER PRIMARY KEY, commit_us INTEGER NOT NULL);
"""
_WRITTEN: Final = """
INSERT INTO row_history VALUES (?1, 0, ?2)
ON CONFLICT (table_id) DO UPDATE SET written_lsn = max(written_lsn, ?2)
"""
_EMPTIED: Final = """
INSERT INTO row_history VALUES (?1, ?2, ?2)
ON CONFLICT (table_id) DO UPDATE SET floor_lsn = ?2, written_lsn = ?2
"""


LOOKED_AT_MAX: Final = 32
"""Tables that a step looks at where it finds nothing to do."""


class RowHistory:
    """The history as the writer keeps it. `keeps` says whether old images are kept at all;
    `written` holds table id → LSN of its last write, of this transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.written: dict[int, int] = {}
        self._saved: list[dict[int, int]] = []
        with connection:
            connection.execute(_MAKE)
            holes = "SELECT 1 FROM rows_kept WHERE until_lsn <> (SELECT lsn FROM position)"
            if connection.execute(holes).get:
                self._give_up()
        self.keeps = kept_from(connection) is not None
        # Tables that may have old images, and of these the ones that are yet to be looked at for
        # images below the floor.
        self._filled = set(history_tables(connection)) if self.keeps else set()
        self._due: list[int] = list(self._filled)

    def keep(self, on: bool) -> None:
        """Switch the history on or off, outside a transaction. What is kept begins with the LSN at
        which it was switched on."""
        if on == self.keeps:
            return
        with self._connection:
            if on:
                for table_id in tables_of_rows(self._connection):
                    make_past(self._connection, table_id)
                self._connection.execute("INSERT INTO rows_kept SELECT 1, lsn, lsn FROM position")
            else:
                self._give_up()
        self.keeps = on
        self._filled = set()
        self._due = []

    def _give_up(self) -> None:
        for table_id in history_tables(self._connection):
            self.set_aside(table_id)
        for name in ("rows_kept", "row_history", "commit_times"):
            self._connection.execute(f"DELETE FROM {name}")

    def set_aside(self, table_id: int) -> None:
        """Give a table's old images another name, by which the removal finds them."""
        name = history_name(table_id)
        if physical_columns(self._connection, name):
            number = self._connection.pragma("schema_version")
            self._connection.execute(f"ALTER TABLE {name} RENAME TO {ASIDE}{number}_{name}")

    # ------------------------------------------------------------ inside a transaction

    def last_write(self, table_id: int) -> int:
        """Return the LSN of the last write of any row of it, as far back as it is known (0: before
        that)."""
        pending = self.written.get(table_id)
        if pending is not None:
            return pending
        return last_write(self._connection, table_id)

    def emptied(self, table_id: int, lsn: int) -> None:
        """Begin the history of a truncated table anew: what its rows were before is not kept."""
        self.set_aside(table_id)
        make_past(self._connection, table_id)
        self.written.pop(table_id, None)
        self._connection.execute(_EMPTIED, (table_id, lsn))

    def forget(self, table_id: int) -> None:
        """Delete what is known of a table that is gone."""
        self.written.pop(table_id, None)
        self._connection.execute("DELETE FROM row_history WHERE table_id = ?", (table_id,))

    def lose(self, table_id: int) -> None:
        """Take it that the place of a table's old images goes."""
        self._filled.discard(table_id)

    def put_times(self, times: Sequence[tuple[int, int]]) -> None:
        self._connection.executemany("INSERT INTO commit_times VALUES (?, ?)", times)

    def reset_times(self, lsn: int, time_us: int) -> None:
        """Begin the commit times anew, since the log's time was set to `time_us` after commit
        `lsn`: times before say nothing of the order of commits any more. Rows are kept from there
        on."""
        self._connection.execute("UPDATE rows_kept SET from_lsn = max(from_lsn, ?)", (lsn,))
        self._connection.execute("DELETE FROM commit_times")
        self._connection.execute("INSERT INTO commit_times VALUES (?, ?)", (lsn, time_us))
        self._due = list(self._filled)

    def collect(self, before_us: int, newest_lsn: int) -> bool:
        """Raise the floor to the last commit before that time, and return whether it has risen.
        `newest_lsn` is that of all that is applied, committed or not."""
        floor = kept_from(self._connection)
        assert floor is not None, "no history is kept"
        until = lsn_at(self._connection, before_us, newest_lsn)
        if until > floor:
            self._connection.execute("UPDATE rows_kept SET from_lsn = ?", (until,))
            self._connection.execute(
                "DELETE FROM commit_times WHERE lsn <"
                " (SELECT max(lsn) FROM commit_times WHERE lsn <= ?)",
                (until,),
            )
            self._due = list(self._filled)
        return until > floor

    def commit(self, lsn: int) -> None:
        """Write what the transaction has changed, inside it, as it is about to end at `lsn`."""
        if not self.keeps:
            return
        self._connection.execute("UPDATE rows_kept SET until_lsn = ?", (lsn,))
        if self.written:
            self._connection.executemany(_WRITTEN, self.written.items())
            self._filled.update(self.written)
            self.written = {}

    def rollback(self) -> None:
        self.written = {}
        self._saved.clear()

    def savepoint(self) -> None:
        self._saved.append(dict(self.written))

    def release(self) -> None:
        self._saved.pop()

    def rollback_to(self) -> None:
        self.written = self._saved.pop()

    # ------------------------------------------------------------ beside the log

    def step(self, rows_max: int) -> bool:
        """Take some images below the floor out of the file, outside a transaction; returns whether
        there are more. After the floor has risen there may be some again."""
        floor = kept_from(self._connection) if self._due else None
        if floor is None:
            return False
        below = genid(floor + 1, 0)
        with self._connection:
            for _ in range(min(LOOKED_AT_MAX, len(self._due))):
                table_id = self._due[-1]
                if table_id in self._filled and self._collect(table_id, below, rows_max):
                    return True
                self._due.pop()
        return bool(self._due)

    def _collect(self, table_id: int, below: int, rows_max: int) -> bool:
        """Take images of a table out of the file, and return whether there may be more below."""
        name = history_name(table_id)
        self._connection.execute(
            f"DELETE FROM {name} WHERE id IN (SELECT id FROM {name} WHERE id < ? ORDER BY id LIMIT"
            " ?)",
            (below, rows_max),
        )
        if self._connection.changes() > 0:
            return True
        if not self._connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchall():
            self._filled.discard(table_id)
        return False


def kept_from(connection: apsw.Connection) -> int | None:
    """Return the LSN from which on rows of the past are kept, None when none are."""
    found: int | None = connection.execute("SELECT from_lsn FROM rows_kept").get
    return None if found is None else max(found, history_floor(connection))


def last_write(connection: apsw.Connection, table_id: int) -> int:
    """Return the LSN of the last write of a row of it that is kept, 0: before that."""
    found: int | None = connection.execute(
        "SELECT written_lsn FROM row_history WHERE table_id = ?", (table_id,)
    ).get
    return found or 0


def table_kept_from(connection: apsw.Connection, table_id: int) -> int:
    """Return the LSN of the table's last TRUNCATE, 0 without one."""
    found = connection.execute(
        "SELECT floor_lsn FROM row_history WHERE table_id = ?", (table_id,)
    ).get
    return found or 0


def lsn_at(connection: apsw.Connection, time_us: int, newest_lsn: int) -> int:
    """Return the LSN of the last commit at or before a time, 0 when that is no longer known.

    Commit times are kept where they do not just rise by 1 µs from one LSN to the next.
    """
    found: list[Any] = connection.execute(
        "SELECT lsn, commit_us FROM commit_times WHERE commit_us <= ? ORDER BY lsn DESC LIMIT 1",
        (time_us,),
    ).fetchall()
    if not found:
        return 0
    lsn, commit_us = found[0]
    after = connection.execute("SELECT min(lsn) FROM commit_times WHERE lsn > ?", (lsn,)).get
    return int(min(lsn + time_us - commit_us, after - 1 if after else newest_lsn))
