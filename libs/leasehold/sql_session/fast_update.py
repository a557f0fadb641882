"""An UPDATE of one row by its key that is a transaction by itself, done in a hurry: where its
values may be computed at commit (`transaction/commit_time_updates.py`) the statement itself is
what is sent, and a snapshot only has to show that the row is there, and that nothing of it fails.

Such an update has no write set, pins nothing (D3) and is no step. Whoever wants one of these, the
next statement of its batch or a replay, gets the transaction that it would have been
(`SqlTransaction.goes_on_from`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from leasehold.adapters.sqlite.short_statements import brief_rows
from leasehold.adapters.sqlite.write import Found, RowWrite, Written, found_in
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Moment
from leasehold.model.keys import Key
from leasehold.model.ports import Row
from leasehold.model.records.requests import (
    ANY_GENID,
    ChangeRequest,
    OnConflict,
    Operation,
    OperationKind,
)
from leasehold.replica.replay_log import Asked
from leasehold.sql.planning.plan import Write
from leasehold.sql_session.fast_read import SingleReads
from leasehold.sql_session.portals import PreparedStatement
from leasehold.transaction.isolation import Isolation
from leasehold.values.storage import to_json

ROWS_MAX: Final = 1  # that have one key


class SingleUpdate:
    """Of the row `found`, which it looks up, too, for the transaction that goes on from it. No
    dataclass, as with `Sent`."""

    def __init__(
        self, asked: Asked, write: Write, found: Found, isolation: Isolation, moment: Moment
    ) -> None:
        self.asked = asked
        self.write = write
        self.found = found
        self.isolation = isolation
        self.moment = moment

    @property
    def descriptor(self) -> Descriptor:
        return self.write.bound.descriptor

    def request(self, request_id: bytes) -> ChangeRequest:
        """The one that its transaction would send first."""
        descriptor, computed = self.descriptor, self.write.computed
        assert computed is not None
        before = self.found.before
        key = tuple([to_json(c.type, before[c.element_id]) for c in descriptor.key_columns])
        operation = Operation(
            OperationKind.UPDATE,
            descriptor.name,
            key,
            computed.values(self.asked.values),
            ANY_GENID,
            descriptor.version,
        )
        used = {descriptor.name: descriptor.version}
        return ChangeRequest(request_id, (operation,), on_conflict=OnConflict.REPLAY, used=used)

    # ------------------------------------------------------------ for a transaction

    @property
    def written(self) -> Written:
        """Made anew each time: `goes_on_from` and the `get` that it leads to are all who ask."""
        before, genids, new, _ = self.found
        key = tuple(before[e] for e in self.descriptor.primary_key)
        return Written([RowWrite(key, before, {**before, **new}, genids, frozenset(new))])

    def newest(self, table: str) -> Descriptor:
        assert table == self.descriptor.name, "it has used no other one"
        return self.descriptor

    def versions(self, table_id: int) -> Sequence[Descriptor]:
        assert table_id == self.descriptor.table_id, "it has used no other one"
        return (self.descriptor,)

    def get(self, descriptor: Descriptor, key: Key) -> Row:
        (write,) = self.written.writes
        assert descriptor is self.descriptor
        assert key == write.key, "it has looked for no other one"
        assert self.found.genids is not None, "nobody else's row is without"
        return Row(self.found.before, self.found.genids, 0)


class SingleUpdates:
    """Of one session, beside its queries."""

    def __init__(self, reads: SingleReads) -> None:
        self._reads = reads

    def found(
        self,
        prepared: PreparedStatement,
        values: Sequence[Any],
        isolation: Isolation,
        zone: ZoneInfo,
        moment: Moment,
    ) -> SingleUpdate | None:
        """None: it is to run in a transaction, as if nobody had looked. Raises WouldBlock,
        CachedResultChanged, and what comes of its values."""
        with self._reads.snapshot() as snapshot:
            plan, simple = self._reads.planned(prepared, snapshot, zone)
            if not simple:
                return None
            rows = brief_rows(snapshot, plan, values, ROWS_MAX)
        if not rows:
            return None  # it is not there, or took long
        assert plan.write is not None
        bound = plan.write.bound
        found = found_in(bound, rows[0])
        if any(found.new.get(e, found.before.get(e)) is None for e in bound.required):
            return None  # with an error, and all that follows from one
        asked = Asked(prepared.statement.text, prepared.types, tuple(values))
        return SingleUpdate(asked, plan.write, found, isolation, moment)
