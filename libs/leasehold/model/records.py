"""Everything that travels between processes, as immutable tuples.

NamedTuples because MessagePack packs them as arrays without a conversion step, and building one
from an unpacked array is a single C call; the log carries tens of thousands of these a second.
Field order is the wire order: append fields, never reorder them.

Values of columns are *storage values* (`values/storage.py`): int, float, str, bytes or None.
An image is a mapping element id → storage value; an element id that is missing, or None, is a
pair that is not there (a NULL and an absent pair are the same physical fact).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from leasehold.model.keys import Key as Key
from leasehold.model.keys import Keys

Image: TypeAlias = Mapping[int, Any]
Genids: TypeAlias = Mapping[int, int]  # lock id → genid


class Lane(StrEnum):
    """A topic from which the master takes work, each with its own decided_through offset (L3)."""

    REQUESTS = "requests"
    BACKFILL = "backfill"


# ---------------------------------------------------------------- change requests


class OperationKind(StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    UPSERT = "upsert"


ANY_GENID = 0
"""As `expect`: the row must be there, whatever its genid (no row ever has genid 0)."""
ARGUMENTS_MAX = 100
"""Of an expression."""


class Operation(NamedTuple):
    """One row operation of a change request, as asked, names not yet resolved.

    `key`: column name → value, or a bare tuple of values in primary-key order.
    `values`: column name → value, or `Expression` for an update over the row.
    `expect`: genid the writer has seen (max over the locks it concerns, or over all of the row's),
    or genid by lock name; None = none checked.
    `schema_version`: version the names and the operation belong to, None = the master's newest.
    `arbiters`: of an insert that comes of ON CONFLICT: by these unique indexes ("": the primary
    key) no row was in its way. One that is there by now is a verify error, and no duplicate.
    """

    kind: OperationKind
    table: str
    key: Mapping[str, Any] | Key
    values: Mapping[str, Any]
    expect: int | Mapping[str, int] | None = None
    schema_version: int | None = None
    arbiters: tuple[str, ...] = ()


class Expression(NamedTuple):
    """An update value computed from the row: `{"expr": "seats - 1"}`, or with arguments, which are
    no part of the text: `{"expr": "seats - $1", "args": [1], "types": ["integer"]}`."""

    text: str
    args: tuple[Any, ...] = ()
    types: tuple[str, ...] = ()

    def fields(self) -> dict[str, Any]:
        """As a request has it."""
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
    """A row as SELECTV has shown it: (lock id, genid) of all its locks."""

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

    def giving_up(self) -> ChangeRequest:
        """The attempt after this one, which only says that there will be no other (L5). It brings
        the operations along: a request of none is malformed."""
        return self._replace(attempt=self.attempt + 1, give_up=True, used={}, reads=None)


class JobControl(NamedTuple):
    """`action`: pause, resume, cancel, dismiss, set (`settings`: of
    `schema_change/job/control.py`)."""

    job: int
    action: str
    settings: Mapping[str, int] = {}


# ---------------------------------------------------------------- the log


class ChangeKind(IntEnum):
    INSERT = 1
    UPDATE = 2
    DELETE = 3
    FILL = 4  # a row that a backfill has filled: genids unchanged; written by older masters alone


class RowChange(NamedTuple):
    """One decided row operation with its composed after-image (T0).

    `version` is the descriptor version it was made under: which pairs and entries it touches is
    `key_values` at that version, on every node alike. `image` is every pair of the row after the
    operation, those the writer can't see too; None for a delete. `before` are the genids verified
    (empty for an insert). `locks` get the new genid `genid(lsn, position)`; none for a FILL.
    `carried` are genids that other locks get as they are: what they took over from an old lock of
    their columns, before that one is written for another column's sake (Claim 8). A row that
    follows another one in its table's twin has all of that one's genids in it, and no lock.
    """

    kind: ChangeKind
    table_id: int
    version: int
    key: Key
    image: Image | None
    before: Genids
    locks: tuple[int, ...]
    carried: Mapping[int, int] = {}


class Fill(NamedTuple):
    """A decided chunk of rows that get an element's pair, each node by its own row: an index entry,
    or the value of a column that is `missing` there.

    Rows of `keys` that are gone or have the pair already stay as they are, so a chunk that arrives
    twice is harmless. It is no image: genids and the LSN of a row's last write stay.

    `images`, one for each key where readers of images must be told the value: every pair of the
    row after it. Then all of `keys` are there and lack the pair, `genids` are theirs, and the
    changefeed tells the images under this commit's LSN. In the stores it is no write all the same:
    whoever reads as of an earlier LSN reads a version in which the column is not public.
    """

    table_id: int
    version: int
    element_id: int
    keys: Keys
    images: tuple[Image, ...] = ()
    genids: tuple[Genids, ...] = ()


class DescriptorWrite(NamedTuple):
    """`body` is `Descriptor.to_wire()`; `ModificationTime` is the commit's time."""

    table_id: int
    version: int
    body: Any


class JobWrite(NamedTuple):
    """`body` is `Job.to_wire()`."""

    job_id: int
    body: Any


class MinVersion(NamedTuple):
    """From this record on, requests that used an older version are refused (D5)."""

    table_id: int
    version: int


class LedgerRun(NamedTuple):
    """The ledger's run id on record, written only after the grace of D6 has passed."""

    run_id: str


class ChunkDecided(NamedTuple):
    """Progress of a job's backfill: rows of the chunk, rows that changed; `end` = end marker."""

    job_id: int
    run: int
    rows: int
    applied: int
    end: bool


class TableTruncated(NamedTuple):
    """Every row of the table is gone, and every entry of its indexes, before the first change of
    the same commit."""

    table_id: int


class TableForgotten(NamedTuple):
    """A table that was dropped long ago leaves the catalog: nothing names it, and nothing of it can
    be read. Its id is not given again."""

    table_id: int


class JobForgotten(NamedTuple):
    """A job that ended long ago leaves the catalog."""

    job_id: int


class FindingsDecided(NamedTuple):
    """What became of the findings of a job's validation, which has ended with this: `rows` were
    looked at, `dropped` findings were no longer true. `words` says which rows break the constraint
    now, "" when none does; `findings` are the first of them, as in a CheckReport, and `code` is the
    SQLSTATE of the first. Of a backfill: a row has no value that could be filled in, which ends it.
    """

    job_id: int
    run: int
    rows: int
    dropped: int
    words: str
    findings: tuple[tuple[int, int, Key, str], ...]
    code: str = ""


CatalogWrite: TypeAlias = (
    DescriptorWrite
    | JobWrite
    | MinVersion
    | LedgerRun
    | ChunkDecided
    | TableTruncated
    | FindingsDecided
    | TableForgotten
    | JobForgotten
)


class Commit(NamedTuple):
    """One committed transaction. Its LSN is the record's `first_lsn` + its position in it.

    `commit_us`: unix µs, strictly rising over all masters (L9), but where an operator has set the
    log's time back. `versions`: table id → version
    used, tables it only read included (D5). A commit with catalog writes stands last in its
    record, so that one record's rows are all applied under one catalog.
    """

    request_id: bytes
    attempt: int
    commit_us: int
    versions: Mapping[int, int]
    changes: tuple[RowChange, ...]
    rows_affected: int
    reply_to: int = -1
    fills: tuple[Fill, ...] = ()
    catalog: tuple[CatalogWrite, ...] = ()
    answer: Any = None  # what the result carries beyond counts, e.g. {"job": 7}


class Disposition(IntEnum):
    """What becomes of a refused request."""

    FINAL = 1  # the requester has its answer; nothing more happens
    CONFLICT = 2  # on the conflicts topic: Spark recomputes and resubmits
    REPLAY = 3  # the requester replays
    DEAD_LETTER = 4  # final, and kept for people on the dead-letter topic


class Refusal(NamedTuple):
    """A decided refusal; in the log so that nothing is decided twice or skipped (L3).

    `body` is the request as received where somebody needs it later (conflict, dead-letter).
    `image` is the row that refused it, with its genids, for a verify error.
    `lane` and `offset` say where the request stood; offset -1: nowhere, it was told to the master.
    `request_id` is empty when it had none.
    """

    request_id: bytes
    attempt: int
    disposition: Disposition
    code: str
    message: str
    detail: Mapping[str, Any]
    decided_us: int
    reply_to: int
    lane: str
    offset: int
    content_type: str
    body: bytes | None
    image: RowImage | None


class Grant(NamedTuple):
    """A coherency lease: runs `duration_ms` from `asked_ns` on the requester's own clock (C3)."""

    node: str
    incarnation: bytes
    asked_ns: int
    duration_ms: int


class Claim(NamedTuple):
    """A node's bid for an epoch: a compare-and-set on `previous`, the last digest it applied."""

    epoch: int
    incarnation: bytes
    previous: bytes
    node: str


class Attempt(NamedTuple):
    """What a master says of a lane's message before it decides it, alone (L10): it is about to, and
    `lost` terms will have ended over it if this one does. `rows`: of a chunk, those that are
    decided. Said again with a smaller number it is taken back."""

    lane: str
    offset: int
    rows: int
    lost: int


class Decisions(NamedTuple):
    """One batch of decisions; with nothing to decide it carries grants and is the heartbeat.

    `sequence` is dense within (epoch, incarnation), from 1. `previous` is the digest of the
    counting record before (L2). `decided_through`: lane → next offset (L3). `answered_through`:
    log offset below which results and conflicts were given (L7). `closed_us`: every commit after
    this record has a later time (L9). `id_horizon_us`: from this record on ids of an earlier time
    are refused, and their outcomes may be forgotten (L5). 0 in both: an older master says nothing.
    `reset_us`, unless 0: before this record's commits the log's time, and what it has closed,
    become that; and the id horizon becomes this record's, where else it never goes back.
    `lane_topics`: lane → id of the topic that its `decided_through` counts in from here on, where
    that is news. `attempts`: messages that the master is about to decide alone (L10).
    """

    epoch: int
    incarnation: bytes
    sequence: int
    previous: bytes
    first_lsn: int
    commits: tuple[Commit, ...]
    refusals: tuple[Refusal, ...]
    decided_through: Mapping[str, int]
    answered_through: int
    grants: tuple[Grant, ...]
    closed_us: int = 0
    id_horizon_us: int = 0
    reset_us: int = 0
    lane_topics: Mapping[str, str] = {}
    attempts: tuple[Attempt, ...] = ()


class CheckSlice(NamedTuple):
    """The first `rows_max` above `after` (() = from the first on): rows of a table by primary key;
    where `part` is an index id, that index's entries by entry, as they lie in the store."""

    part: int
    after: Key
    rows_max: int


class Barrier(NamedTuple):
    """Decides nothing and needs no epoch (T6). With `check` = table id (-1: every table) each
    node that meets it checks its store at exactly this position and reports. `repair` names a node
    that then puts those entries of the table right that its own rows prove wrong. With `part` only
    that slice is checked."""

    id: bytes
    check: int | None = None
    repair: str = ""
    part: CheckSlice | None = None


LogRecord: TypeAlias = Claim | Decisions | Barrier


class LogPosition(NamedTuple):
    """Where a reader of the log stands; stored with what it read in one transaction (L6).

    `offset` is the next offset to read; `digest` that of the last counting record. `closed_us`,
    `id_horizon_us` and `reset_us`: the newest of the records so far, see Decisions. `attempts`:
    those said of messages that are not decided yet, one of a lane (L10).
    """

    offset: int = 0
    epoch: int = 0
    incarnation: bytes = b""
    sequence: int = 0
    digest: bytes = b""
    lsn: int = 0
    commit_us: int = 0
    decided_through: Mapping[str, int] = {}
    answered_through: int = 0
    longest_grant_ms: int = 0
    closed_us: int = 0
    id_horizon_us: int = 0
    reset_us: int = 0
    lane_topics: Mapping[str, str] = {}
    attempts: tuple[Attempt, ...] = ()

    @property
    def time_us(self) -> int:
        """The log's time: every commit up to here has it or an earlier one, and every later commit
        a later one."""
        return max(self.commit_us, self.closed_us)


# ---------------------------------------------------------------- answers


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


class Result(NamedTuple):
    """What is put on the results topic: outcome of a request id; readers drop repeats (L7)."""

    request_id: bytes
    offset: int  # of the log record it was decided in
    outcome: Outcome


class ResultBatch(NamedTuple):
    """One message on a partition of the results topic: what one log record decided for it.

    A message per result would cost a Kafka message per transaction on both sides.
    """

    results: tuple[Result, ...]


class Conflict(NamedTuple):
    """On the conflicts topic: a request with the row image and genids that refused it."""

    request_id: bytes
    attempt: int
    offset: int
    table: str
    content_type: str
    body: bytes
    image: RowImage | None
    message: str


# ---------------------------------------------------------------- acknowledgements (db.acks)


class Ack(NamedTuple):
    """A node's applied position, its state, and (when `asked_ns` > 0) its ask for a lease (C3)."""

    node: str
    incarnation: bytes
    role: str  # master | standby | replicant
    offset: int  # every record below is applied
    epoch: int
    lsn: int
    asked_ns: int
    coherent: bool
    serves: str  # host:port of the snapshot server, "" = none
    sent_us: int


class LeaseAck(NamedTuple):
    """An agent has moved its users off versions below `version`; only wakes the waiter (D4)."""

    agent: str
    table_id: int
    version: int


class HoldingReport(NamedTuple):
    """Why an agent still holds a version that its new users do not get any more; for people only.

    Sent while it lasts, and not at all for a wait that is over in a moment. All ages are by the
    agent's own clock: `held_ms` since it took the version up, `old_ms` since it has a newer one,
    `expires_ms` until its session ends (below 0: it has ended). `users` counts all; `work` has the
    oldest of those that have a name: (label, SQL or "", age in ms). `session` 0: none is open.
    """

    agent: str
    session: int
    table_id: int
    version: int
    users: int
    held_ms: int
    old_ms: int
    expires_ms: int
    work: tuple[tuple[str, str, int], ...]
    sent_us: int


class CheckReport(NamedTuple):
    """What one node found when it checked a table at one log position.

    `subject` is the barrier's id, or `b"job:…"` for the verification of a job's element.
    `findings`: (condition 1-7, element id, key, words), at most `findings_max` of them;
    `findings_total` counts all; `code`: the SQLSTATE of the first, "" = none tells it.
    `checksum` covers every row and entry at that position, `rows_checksum` the rows alone (b""
    from an earlier program, and where no row was summed).
    `repaired`: entries put right afterwards, -1 = no repair was asked for. `until`: the last key of
    the slice that was checked; None when nothing lies behind it.
    """

    subject: bytes
    node: str
    incarnation: bytes
    offset: int
    lsn: int
    table_id: int
    version: int
    rows: int
    entries: Mapping[int, int]
    checksum: bytes
    findings_total: int
    findings: tuple[tuple[int, int, Key, str], ...]
    took_ms: int
    error: str = ""
    rows_checksum: bytes = b""
    repaired: int = -1
    until: Key | None = None
    code: str = ""


Acknowledgement: TypeAlias = Ack | LeaseAck | HoldingReport | CheckReport


# ---------------------------------------------------------------- what the changefeed publishes


class RowImage(NamedTuple):
    """A row as of `lsn`, by element id; the value of the compacted rows topic."""

    table_id: int
    key: Key
    genids: Genids
    lsn: int
    version: int
    commit_us: int
    values: Image


class RowLeftOut(NamedTuple):
    """In the place of an image that no message has room for: the row is there, and a node has its
    values. `image_bytes`: what the image would have. The fields before it are those of RowImage."""

    table_id: int
    key: Key
    genids: Genids
    lsn: int
    version: int
    commit_us: int
    image_bytes: int


class RowsTruncated(NamedTuple):
    """On every partition of a rows topic, under the empty key: what stands before it is gone."""

    table_id: int
    lsn: int
    commit_us: int


class VersionEvent(NamedTuple):
    """A published descriptor version. `body` is `Descriptor.to_wire()`; job 0 = no job.

    `job`: kind, subject, sql, status, step (from 1), steps, of the job that published it. `edits`:
    what its step changed (`Edit.to_wire()`); with none, version 1 is all new and any other is the
    same as the one before. Not kept on `versions`, which carries the difference made of them.
    """

    table_id: int
    name: str
    version: int
    lsn: int
    commit_us: int
    body: Any
    job_id: int
    step: str
    job: Mapping[str, Any] = {}
    edits: tuple[Any, ...] = ()


class JobEvent(NamedTuple):
    """Job state from the log, under key `job/<id>`. `body` is `Job.to_wire()`."""

    job_id: int
    lsn: int
    commit_us: int
    body: Any


FAILING: Final = "failing: "
"""How a run's phase begins that has failed and is tried again; why stands behind it."""


class JobProgress(NamedTuple):
    """Spark's progress of one run, under key `progress/<id>/<run>`: rows read and chunks sent."""

    job_id: int
    run: int
    rows: int
    chunks: int
    rows_per_second: float
    phase: str
    sent_us: int


class SparkReport(NamedTuple):
    """Spark's driver is at work: on `jobs`, under key `spark`, every few seconds. `trouble`: why
    the stream that retries requests does not run; empty when it does, or has nothing to do."""

    sent_us: int
    trouble: str


class ChangefeedReport(NamedTuple):
    """The changefeed is at work: on `jobs`, under key `changefeed`, every few seconds, in the
    transaction that publishes the log up to `offset`, whether there was anything new or not."""

    sent_us: int
    offset: int
    lsn: int


class DeadLetter(NamedTuple):
    """A request that can't be applied, and why; never dropped silently."""

    request_id: bytes
    attempt: int
    code: str
    message: str
    detail: Mapping[str, Any]
    decided_us: int
    lane: str
    offset: int
    content_type: str
    body: bytes | None


# ---------------------------------------------------------------- the backfill lane


class Chunk(NamedTuple):
    """Rows of one backfill micro-batch, bounded in bytes. Taken only while that job's run is in
    that step and the element is write-only (the ⚠ rule on late chunks).

    It names keys alone: the pair itself is derived by each node from its own row at the chunk's
    position in the log, so that no image, however old, can write anything wrong.
    """

    job_id: int
    run: int
    table_id: int
    version: int
    element_id: int
    keys: Keys


class ChunksEnd(NamedTuple):
    """Every chunk of this run stands before this marker in the lane."""

    job_id: int
    run: int
    rows: int
    chunks: int


class Findings(NamedTuple):
    """Ends the run of a validation: rows that seemed to break a constraint when `rows` images had
    been looked through. Taken only while that job's run is validating (⚠ late findings).

    `found`: (element id of the constraint, primary key), the first of `total`. Whether it is so,
    and what the row holds, the master sees in its own row.
    """

    job_id: int
    run: int
    table_id: int
    version: int
    rows: int
    total: int
    found: tuple[tuple[int, Key], ...]


BackfillMessage: TypeAlias = Chunk | ChunksEnd | Findings
