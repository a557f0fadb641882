"""Remembered outcomes of request ids (L5), part of the store and hence the same on every node."""

from __future__ import annotations

from typing import Final

import apsw
import msgpack

from leasehold.model.records import Outcome

_GET = "SELECT body FROM outcomes WHERE request_id = ?"
_GREATEST = "SELECT max(request_id) FROM outcomes"
_PUT = "INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?)"
# In a fixed order, so that a bounded collection forgets the same ones on every node.
_COLLECT = """
DELETE FROM outcomes WHERE request_id IN (
    SELECT request_id FROM outcomes WHERE decided_us < ?
    ORDER BY decided_us, request_id LIMIT ?)
"""
NEWEST_KEPT: Final = 20_000
"""Ids in memory, up to twice as many: of a few seconds, and 5 MB at most."""


class _Newest:
    """Which ids above `floor` may have an outcome. Ids rise with time (UUIDv7), so of one that is
    new this tells that there is none, without a look into the file: a master asks for each request,
    and nearly all are new. Ids that were put and rolled back may stay, which costs a look each.
    An id far ahead of its time, which was refused, raises the floor above all others some day: then
    each is looked for in the file."""

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

    def get(self, request_id: bytes) -> Outcome | None:
        if self._newest is None:
            self._newest = _Newest(self._execute(_GREATEST).get or b"")
        if not self._newest.may_have(request_id):
            return None
        found = self._execute(_GET, (request_id,)).fetchall()
        if not found:
            return None
        # Not strict: fields that a newer program appended are unknown here.
        values = msgpack.unpackb(found[0][0], strict_map_key=False)
        return Outcome(*values[: len(Outcome._fields)])

    def put(self, request_id: bytes, outcome: Outcome) -> None:
        if self._newest is not None:
            self._newest.add(request_id)
        self._execute(_PUT, (request_id, outcome.decided_us, self._pack(outcome)))

    def collect(self, decided_before_us: int, rows_max: int) -> int:
        """Forget at most `rows_max` outcomes, oldest first; the number forgotten."""
        assert rows_max > 0
        self._connection.execute(_COLLECT, (decided_before_us, rows_max))
        return self._connection.changes()
