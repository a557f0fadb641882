"""Change requests, and what becomes of them: outcomes, conflicts and dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from leasehold.model.errors import Refused, refused
from leasehold.model.keys import Key
from leasehold.model.records.events import RowImage
from leasehold.model.records.log import CheckSlice
from leasehold.model.records.notifications import Notifications


class Queue(StrEnum):
    """A topic from which the master takes work, each with its own decided_through offset (L3)."""

    REQUESTS = "requests"
    BACKFILL = "backfill"


class OperationKind(StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    UPSERT = "upsert"


ANY_GENID = 0
"""An `expect` that any genid meets: the row must be there (no row ever has genid 0)."""
ARGUMENTS_MAX = 100
"""The most arguments of an expression."""


class Operation(NamedTuple):
    """A row operation of a change request, as asked, names not yet resolved.

    `key`: column name → value, or a bare tuple of values in primary-key order. `values`: column
    name → value, or `Expression` for an update over the row. `expect`: genid the writer has seen
    (max over the locks it concerns, or over all of the row's), or genid by lock name; None = none
    checked. `schema_version`: version the names and the operation belong to, None = the master's
    newest. `arbiters`: of an insert that comes of ON CONFLICT: by these unique indexes ("": the
    primary key) no row was in its way. One that is there by now is a verify error, and no
    duplicate. `before`: of an update or a delete, values by column name that the row must have,
    for a writer who has seen it elsewhere and knows no genid; else it is a verify error.
    """

    kind: OperationKind
    table: str
    key: Mapping[str, Any] | Key
    values: Mapping[str, Any]
    expect: int | Mapping[str, int] | None = None
    schema_version: int | None = None
    arbiters: tuple[str, ...] = ()
    before: Mapping[str, Any] | None = None


class Expression(NamedTuple):
    """An update value computed from the row: `{"expr": "seats - 1"}`, or with arguments, which are
    no part of the text: `{"expr": "seats - $1", "args": [1], "types": ["integer"]}`."""

    text: str
    args: tuple[Any, ...] = ()
    types: tuple[str, ...] = ()

    def fields(self) -> dict[str, Any]:
        """Return its form in a request."""
        if not self.args:
            return {"expr": self.text}
        return {"expr": self.text, "args": list(self.args), "types": list(self.types)}


class OnConflict(StrEnum):
    RETRY = "retry"  # a verify error goes to the conflicts topic; Spark recomputes and resubmits
    FAIL = "fail"  # a verify error is the final answer
    REPLAY = "replay"  # the requester replays itself under the same id, attempt + 1


class ReadRange(NamedTuple):
    """Rows whose key begins with `equal` and goes on with low <= … < high (both prefixes, () = no
    bound): the primary key, or `by` an index its key. Values as they stand in the key."""

    by: str = ""
    equal: Key = ()
    low: Key = ()
    high: Key = ()


class Visited(NamedTuple):
    """A row as SELECTV or FOR UPDATE has shown it: (lock id, genid) of all its locks."""

    key: Key
    genids: tuple[tuple[int, int], ...]


class TableReads(NamedTuple):
    """What a transaction has read of a table, whose names belong to `version`: rows by primary key
    (there or not), ranges, or all of it."""

    table: str
    version: int
    keys: tuple[Key, ...] = ()
    ranges: tuple[ReadRange, ...] = ()
    whole: bool = False
    visited: tuple[Visited, ...] = ()


class ReadSet(NamedTuple):
    """What a transaction has read, all but `visited` as of `lsn` (T1)."""

    lsn: int
    tables: tuple[TableReads, ...]


class BarrierRequest(NamedTuple):
    """Asks for a place in the log behind all that was answered before it was asked (T6): its answer
    has an LSN below which all of that stands. It is never remembered: asked again, it is answered
    with a later place, which serves as well.

    With `check` (`Barrier`) every node checks its store there; that is done once for an id, and
    remembered as a commit without rows."""

    check: int | None = None
    repair: str = ""
    part: CheckSlice | None = None


class LockFence(NamedTuple):
    """Advisory locks under which a transaction was sent: the run id of the ledger that has granted
    them, the session of the node that holds them, and the lowest epoch under which one was
    granted."""

    ledger_run: str
    session: int
    epoch: int


class ChangeRequest(NamedTuple):
    """A validated change request: rows, or DDL, or both, or job control alone.

    `sql`: one or several statements; rows that stand beside it see what it makes (all of it is one
    commit, or refused whole).
    `attempt` counts from 1 (L5). `give_up` asks to record the final refusal of this attempt.
    `reply_to` is a partition of the results topic, -1 = nobody waits.
    `used` are descriptor versions the transaction used beyond those of its operations (D5).
    `reads` must not have been written since.
    `time_zones` are those of the sessions that said the statements of `sql`, one after the other,
    the last one of all that follow; () = UTC.
    `reset_clock` alone: the log's time is to be that of the master's clock again, if it is ahead.
    `principal`: the name of the role that asks, as a signature proves; "" = the first one
    (`BOOTSTRAP_ROLE`). `as_role`: the role whose rights it wants to have, after SET ROLE; "" = the
    principal's own. `key_number`: of the principal's key that has signed it; "" = the database's
    own have, for the principal.
    `barrier` alone: see `BarrierRequest`.
    `feature_level` alone, unless 0: the database is to be finalized up to that (`features.py`).
    `held`: `sql` is of a transaction whose rows come later: what it asks for is one job, which
    waits for them before its point of no return. `demands`: columns that were there, (table id,
    element id), which it sets NOT NULL behind rows of its own. `releases`: the id of that request,
    of the one that brings the rows; b"" = it is none.
    `fence`: it counts only while advisory locks are held.
    `notifications`: what is told to those who listen, if it is committed.
    `traceparent`: under which it is sent (`model/traces.py`); no part of what is asked.
    """

    id: bytes
    operations: tuple[Operation, ...] = ()
    sql: str | None = None
    control: JobControl | None = None
    on_conflict: OnConflict = OnConflict.RETRY
    attempt: int = 1
    give_up: bool = False
    reply_to: int = -1
    used: Mapping[str, int] = {}
    reads: ReadSet | None = None
    time_zones: tuple[str, ...] = ()
    reset_clock: bool = False
    principal: str = ""
    as_role: str = ""
    key_number: str = ""
    barrier: BarrierRequest | None = None
    held: bool = False
    releases: bytes = b""
    fence: LockFence | None = None
    demands: tuple[tuple[int, int], ...] = ()
    traceparent: str = ""
    feature_level: int = 0
    notifications: Notifications | None = None

    def giving_up(self) -> ChangeRequest:
        """The attempt after this one, which only says that there will be no other (L5). It brings
        the operations along: a request of none is malformed."""
        return self._replace(attempt=self.attempt + 1, give_up=True, used={}, reads=None)


class JobControl(NamedTuple):
    """What a person asks of a job. `action`: pause, resume, cancel, dismiss, or set, which gives
    `settings` (`schema_change/job/control.py`)."""

    job: int
    action: str
    settings: Mapping[str, int] = {}


class Outcome(NamedTuple):
    """The remembered answer of a request id (L5): the same on every node.

    `lsn` > 0: committed there. `lsn` == 0: refused at `attempt`; `final` tells whether for good.
    """

    attempt: int
    lsn: int
    rows_affected: int
    decided_us: int
    final: bool
    code: str = ""
    message: str = ""
    detail: Mapping[str, Any] = {}
    dead_lettered: bool = False
    answer: Any = None

    def settles(self, attempt: int) -> bool:
        """Return whether it is what became of that attempt (L7). ⚠ A refusal that is not final may
        be of an attempt before: a new master gives again what the one before it may not have
        given."""
        return bool(self.lsn) or self.final or self.attempt >= attempt

    def make_error(self) -> Refused:
        """Return what a refusal is raised as."""
        return refused(self.code, self.message, self.detail)


class Result(NamedTuple):
    """What is put on the results topic: outcome of a request id; readers drop repeats (L7)."""

    request_id: bytes
    offset: int  # of the log record it was decided in
    outcome: Outcome


class ResultBatch(NamedTuple):
    """A message on a partition of the results topic: all that one log record decided for it.

    A message per result would cost a Kafka message per transaction on both sides.
    """

    results: tuple[Result, ...]


class Conflict(NamedTuple):
    """A request that a verify error refused, with the image and the genids of the row that did; on
    the conflicts topic."""

    request_id: bytes
    attempt: int
    offset: int
    table: str
    content_type: str
    body: bytes
    image: RowImage | None
    message: str


class DeadLetter(NamedTuple):
    """A request that can't be applied, and why; never dropped silently. `principal`: see
    `Refusal`."""

    request_id: bytes
    attempt: int
    code: str
    message: str
    detail: Mapping[str, Any]
    decided_us: int
    queue: str
    offset: int
    content_type: str
    body: bytes | None
    principal: str = ""
