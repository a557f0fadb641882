"""The cursors of a session: DECLARE runs a query and puts its rows aside, FETCH and MOVE go over
them, and COMMIT, ROLLBACK and CLOSE end them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from leasehold.adapters.os.clock import unix_us
from leasehold.adapters.os.row_spool import SPOOL_BATCH_ROWS, SpoolRoom
from leasehold.adapters.os.temp_room import TempRoom
from leasehold.adapters.sqlite.query import Rows
from leasehold.model.errors import RequestTooLarge
from leasehold.pgwire.session import Column, NoPortals, OpenPortals
from leasehold.pgwire.wire_errors import DuplicatePortal, UnknownPortal
from leasehold.replica.replay_log import Asked, Shown
from leasehold.sql.syntax.cursor_movement import CursorWalk
from leasehold.sql.syntax.session_statements import DeclareCursor
from leasehold.sql_session.spooled_rows import SpooledRows, SpooledRowsInTurn

CURSORS_MAX: Final = 100
"""Of a session; each has a file."""


class SqlCursor:
    """A cursor with its rows, which were put aside on DECLARE. `sequence` rises from one to the
    next of a session. It is the `Reached` of its walk."""

    def __init__(
        self,
        said: DeclareCursor,
        text: str,
        columns: Sequence[Column],
        asked: Asked,
        room: SpoolRoom,
    ) -> None:
        self.said, self.text, self.columns, self.asked = said, text, columns, asked
        self._room, self.rows, self.closed = room, SpooledRows(room), False
        self.shown: Shown | None = None
        self.walk = CursorWalk(scrolls=said.scrolls is not False)
        self.made_us = unix_us()
        self.sequence = 0
        self.held = False
        self.failed = False

    def reach(self, number: int | None) -> int:
        rows = self.rows
        ended = number is None or number > rows.count
        if self.shown is not None:
            self._shown_until(rows.count if number is None else min(number, rows.count))
        if ended and rows.error is not None:
            raise rows.error
        if self.shown is not None:
            self.shown.ended |= ended
        return rows.count

    def _shown_until(self, number: int) -> None:
        """Keep for a replay that the client knows these rows, or that they were there."""
        assert self.shown is not None
        while self.shown.count < number:
            wanted = min(number - self.shown.count, SPOOL_BATCH_ROWS)
            self.shown.add(self.fetch(self.shown.count, wanted))

    def fetch(self, first: int, count: int) -> list[tuple[Any, ...]]:
        """Return `count` rows from number `first` (from 0) on. Raises DiskFull."""
        return self.rows.fetch(first, count)

    def close(self) -> None:
        self.closed = True
        self.rows.close()

    # ------------------------------------------------------------ in a replay (T2)

    def read_again(self, rows: Rows) -> Shown:
        """Return what of `rows`, found by a replay, its client would have been shown.

        A cursor that is to outlive its transaction goes on with these: those that it had were found
        by an attempt that was refused, and are no longer of use to anybody.
        """
        assert self.shown is not None
        if not self.said.hold or self.closed:
            return self.shown.again(rows.fetch)
        self.rows.close()
        self.rows = SpooledRows(self._room)
        self.rows.take(rows)
        if self.rows.error is not None:
            raise self.rows.error
        anew = SpooledRowsInTurn(self.rows)
        return self.shown.again(lambda count: anew.fetch_part(count)[0])


class SqlCursors:
    """The cursors of one session."""

    def __init__(self, node: TempRoom) -> None:
        """Begin, without any. Their rows are put aside in the room of the node."""
        self.room = SpoolRoom(node)
        self.portals: OpenPortals = NoPortals()
        self._open: dict[str, SqlCursor] = {}
        self._made = 0

    def find(self, name: str) -> SqlCursor:
        found = self._open.get(name)
        if found is None:
            raise UnknownPortal(f'cursor "{name}" does not exist')
        return found

    def columns(self, name: str) -> Sequence[Column] | None:
        """Return the columns of a cursor; None: there is no such one."""
        found = self._open.get(name)
        return None if found is None else found.columns

    def check_room(self, name: str) -> None:
        """Raises DuplicatePortal, RequestTooLarge."""
        if name in self._open:
            raise DuplicatePortal(f'cursor "{name}" already exists')
        if len(self._open) >= CURSORS_MAX:
            raise RequestTooLarge(f"a session has at most {CURSORS_MAX} cursors: CLOSE some")

    def keep(self, cursor: SqlCursor) -> None:
        self._made += 1
        cursor.sequence = self._made
        self._open[cursor.said.name] = cursor

    def close(self, name: str | None) -> bool:
        """Close the cursor of a name, or all (None). Returns whether there was any."""
        gone = [*self._open] if name is None else [name] if name in self._open else []
        for each in gone:
            self._open.pop(each).close()
        return bool(gone)

    # ------------------------------------------------------------ with the transaction

    def mark(self) -> tuple[int, int]:
        """Return a savepoint's mark, for `back_to`."""
        return self._made, self.portals.mark()

    def back_to(self, mark: tuple[int, int]) -> None:
        """Close cursors declared since the mark, and portals bound since; the others stay where
        they are, as in PostgreSQL."""
        declared, bound = mark
        self._drop(lambda cursor: cursor.sequence > declared and not cursor.held)
        self.portals.back_to(bound)

    def check_held(self) -> None:
        """Raise what a cursor ends with that is to outlive the COMMIT which comes: it has to be
        whole."""
        for cursor in self._open.values():
            if cursor.said.hold and not cursor.held and cursor.rows.error is not None:
                raise cursor.rows.error

    def end(self, *, committed: bool) -> None:
        self._drop(lambda cursor: not (cursor.held or (committed and cursor.said.hold)))
        for cursor in self._open.values():
            cursor.held, cursor.shown = True, None

    def _drop(self, goes: Callable[[SqlCursor], bool]) -> None:
        for name in [name for name, cursor in self._open.items() if goes(cursor)]:
            self.close(name)

    # ------------------------------------------------------------ as the catalog tells of them

    def told(self) -> Iterator[Mapping[str, Any]]:
        for cursor in self._open.values():
            yield {
                "name": cursor.said.name,
                "statement": cursor.text,
                "is_holdable": int(cursor.said.hold),
                "is_binary": int(cursor.said.binary),
                "is_scrollable": int(cursor.walk.scrolls),
                "creation_time": cursor.made_us,
            }
