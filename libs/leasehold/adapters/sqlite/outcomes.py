"""Remembered outcomes of request ids (L5), part of the store and hence the same on every node."""

from __future__ import annotations

from typing import Any, Final

import apsw
import msgpack

from leasehold.model.ids import first_id
from leasehold.model.records.requests import Outcome

_GET = "SELECT body FROM outcomes WHERE request_id = ?"
_GET_UNTIMELY = "SELECT body FROM untimely WHERE request_id = ?"
_GREATEST = "SELECT max(request_id) FROM outcomes"
_LEAST = "SELECT min(request_id) FROM outcomes"
_GREATEST_UNTIMELY = "SELECT max(request_id) FROM untimely"
_PUT = "INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?)"
_TAKE = "DELETE FROM outcomes WHERE request_id = ?"
_PUT_UNTIMELY = "INSERT OR REPLACE INTO untimely VALUES (?, ?, ?)"
# Of ids that were refused for their own time: forgotten by that of the refusal.
_MAKE = """
CREATE TABLE IF NOT EXISTS untimely (
    request_id BLOB NOT NULL PRIMARY KEY, decided_us INTEGER NOT NULL, body BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS untimely_by_age ON untimely (decided_us);
"""
_OLDEST = "SELECT body FROM outcomes ORDER BY decided_us, request_id LIMIT ?"
# In a fixed order, so that a bounded collection forgets the same ones on every node.
_COLLECT = """
DELETE FROM outcomes WHERE request_id IN (
    SELECT request_id FROM outcomes WHERE request_id < ? ORDER BY request_id LIMIT ?)
"""
_COLLECT_UNTIMELY = """
DELETE FROM untimely WHERE request_id IN (
    SELECT request_id FROM untimely WHERE decided_us < ? ORDER BY decided_us, request_id LIMIT ?)
"""
_COLLECT_DECIDED = """
DELETE FROM outcomes WHERE request_id IN (
    SELECT request_id FROM outcomes WHERE decided_us < ?
    ORDER BY decided_us, request_id LIMIT ?)
"""
# Records of an earlier program forget by it. Once there is an id horizon none follows, and it would
# cost each outcome another tree to keep.
_NO_INDEX = "DROP INDEX IF EXISTS outcomes_by_age"
_MANY = "SELECT 1 FROM outcomes LIMIT 1 OFFSET 10000"
NEWEST_KEPT: Final = 20_000
"""Ids in memory, up to twice as many: of a few seconds, and 5 MB at most."""


class _Newest:
    """The newest ids that may have an outcome, those above `floor`. Ids rise with time (UUIDv7), so
    of one that is new this tells that there is none, without a look into the file: a master asks
    for each request, and nearly all are new. Ids that were put and rolled back may stay, which
    costs a look each. An id far ahead of its time, which was refused, raises the floor above all
    others some day: then each is looked for in the file."""

    def __init__(self, floor: bytes) -> None:
        self._floor = floor
        self._ids: set[bytes] = set()
        self._ids_before: set[bytes] = set()

    def may_have(self, request_id: bytes) -> bool:
        return (
            request_id <= self._floor or request_id in self._ids or request_id in self._ids_before
        )

    def add(self, request_id: bytes) -> None:
        self._ids.add(request_id)
        if len(self._ids) >= NEWEST_KEPT:
            self._floor = max(self._floor, max(self._ids_before, default=b""))
            self._ids_before, self._ids = self._ids, set()


class Outcomes:
    """Outcomes as the writer sees them, uncommitted ones included."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._execute = connection.cursor().execute
        self._pack = msgpack.Packer().pack
        self._newest: _Newest | None = None  # begins with the first question: followers ask none
        connection.execute(_MAKE)
        self._looked = False  # whether the index may go
        if connection.execute("SELECT id_horizon_us FROM position").get:
            connection.execute(_NO_INDEX)

    def get(self, request_id: bytes) -> Outcome | None:
        if self._newest is None:
            greatest: bytes = self._execute(_GREATEST).get or b""
            untimely: bytes = self._execute(_GREATEST_UNTIMELY).get or b""
            self._newest = _Newest(max(greatest, untimely))
        if not self._newest.may_have(request_id):
            return None
        found: list[Any] = self._execute(_GET, (request_id,)).fetchall()
        if found:
            return _outcome(found[0][0])
        refused: list[Any] = self._execute(_GET_UNTIMELY, (request_id,)).fetchall()
        return _outcome(refused[0][0]) if refused else None

    def put(self, request_id: bytes, outcome: Outcome) -> None:
        if self._newest is not None:
            self._newest.add(request_id)
        self._execute(_PUT, (request_id, outcome.decided_us, self._pack(outcome)))

    def put_untimely(self, request_id: bytes, outcome: Outcome) -> None:
        if self._newest is not None:
            self._newest.add(request_id)
        self._execute(_TAKE, (request_id,))  # that of an attempt before
        self._execute(_PUT_UNTIMELY, (request_id, outcome.decided_us, self._pack(outcome)))

    def least(self) -> bytes | None:
        found: bytes | None = self._execute(_LEAST).get
        return found

    def oldest(self, count: int) -> list[Outcome]:
        """Return the outcomes that were decided first."""
        found: list[Any] = self._execute(_OLDEST, (count,)).fetchall()
        return [_outcome(body) for (body,) in found]

    def collect(self, id_horizon_us: int, rows_max: int) -> int:
        """Forget outcomes below the id horizon, as StoreWriter.collect_outcomes says."""
        assert rows_max > 0
        if not self._looked:
            self._looked = True
            # A large one goes at the next start, when nobody waits for it.
            if not self._execute(_MANY).fetchall():
                self._execute(_NO_INDEX)
        self._execute(_COLLECT_UNTIMELY, (id_horizon_us, rows_max))
        self._execute(_COLLECT, (first_id(id_horizon_us), rows_max))
        return self._connection.changes()

    def collect_decided(self, decided_before_us: int, rows_max: int) -> int:
        """Forget outcomes by the time of their decision, as records without an id horizon have
        it."""
        assert rows_max > 0
        self._connection.execute(_COLLECT_DECIDED, (decided_before_us, rows_max))
        return self._connection.changes()


def _outcome(body: bytes) -> Outcome:
    # Not strict: fields that a newer program appended are unknown here.
    values = msgpack.unpackb(body, strict_map_key=False)
    return Outcome(*values[: len(Outcome._fields)])
