"""The short strategy of a transaction: one UPDATE of one row, computed at its commit."""

from __future__ import annotations

from collections.abc import Sequence

from leasehold.adapters.sqlite.write import Found, RowWrite, Written
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
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
from leasehold.sql.functions.system.session import caller_of
from leasehold.sql.planning.plan import Write
from leasehold.transaction.isolation import Isolation
from leasehold.values.storage import to_json


class CommitTimeUpdate:
    """A `Strategy`: the statement itself is sent, as expressions that the master computes.

    It has no write set, pins nothing (D3) and is no step. Whoever needs one of these, the next
    statement of its batch or a replay, makes it the transaction that it would have been
    (`ReplayableTransaction.continue_from`), for which it looks up its row `found` as a snapshot
    would. No dataclass, as with `Sent`.
    """

    has_written = True
    begins_jobs = False

    def __init__(
        self, asked: Asked, write: Write, found: Found, isolation: Isolation, context: CommitContext
    ) -> None:
        self.asked = asked
        self.write = write
        self.found = found
        self.isolation = isolation
        self.context = context

    @property
    def descriptor(self) -> Descriptor:
        return self.write.bound.descriptor

    def request(self, request_id: bytes, attempt: int, on_conflict: OnConflict) -> ChangeRequest:
        """Return what its `ReplayableTransaction` would send first."""
        assert on_conflict is OnConflict.REPLAY, "a row that is computed at commit is any row"
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
        principal, as_role = caller_of(self.context).asks_as
        return ChangeRequest(
            request_id,
            (operation,),
            on_conflict=on_conflict,
            attempt=attempt,
            used=used,
            principal=principal,
            as_role=as_role,
            fence=caller_of(self.context).fence(),
        )

    def close(self) -> None:
        """Do nothing: it holds nothing."""

    # ------------------------------------------------------------ a snapshot of its row

    @property
    def written(self) -> Written:
        """What it writes. Made anew each time: `continue_from` and its `get` are all who ask."""
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
