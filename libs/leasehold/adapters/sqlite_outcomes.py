"""Remembered outcomes of request ids (L5), part of the store and hence the same on every node."""

from __future__ import annotations

import apsw
import msgpack

from leasehold.model.records import Outcome

_GET = "SELECT body FROM outcomes WHERE request_id = ?"
_PUT = "INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?)"
# In a fixed order, so that a bounded collection forgets the same ones on every node.
_COLLECT = """
DELETE FROM outcomes WHERE request_id IN (
    SELECT request_id FROM outcomes WHERE decided_us < ?
    ORDER BY decided_us, request_id LIMIT ?)
"""


class Outcomes:
    """Outcomes as the writer sees them, uncommitted ones included."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._execute = connection.cursor().execute
        self._pack = msgpack.Packer().pack

    def get(self, request_id: bytes) -> Outcome | None:
        found = self._execute(_GET, (request_id,)).fetchall()
        if not found:
            return None
        # Not strict: fields that a newer program appended are unknown here.
        values = msgpack.unpackb(found[0][0], strict_map_key=False)
        return Outcome(*values[: len(Outcome._fields)])

    def put(self, request_id: bytes, outcome: Outcome) -> None:
        self._execute(_PUT, (request_id, outcome.decided_us, self._pack(outcome)))

    def collect(self, decided_before_us: int, rows_max: int) -> int:
        """Forget at most `rows_max` outcomes, oldest first; the number forgotten."""
        assert rows_max > 0
        self._connection.execute(_COLLECT, (decided_before_us, rows_max))
        return self._connection.changes()
