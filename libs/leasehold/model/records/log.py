"""The records of the log: claims, decisions and barriers, and the writes that decisions hold."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

from leasehold.model.keys import Key, Keys
from leasehold.model.records.events import Genids, Image, RowImage
from leasehold.model.records.notifications import Notifications


class ChangeKind(IntEnum):
    INSERT = 1
    UPDATE = 2
    DELETE = 3
    # a row that a backfill has filled: genids unchanged; written by older masters alone
    BACKFILL = 4


class RowChange(NamedTuple):
    """A decided row operation with its composed after-image (T0).

    `version` is the descriptor version it was made under: which pairs and entries it touches is
    `key_values` at that version, on every node alike. `image` is every pair of the row after the
    operation, those the writer can't see too; None for a delete. `before` are the genids verified
    (empty for an insert). `locks` get the new genid `genid(lsn, position)`; none for a FILL.
    `carried` are genids that other locks get as they are: what they took over from an old lock of
    their columns, before that one is written for another column's sake (Claim 8). A row that
    follows another one in its table's mirror has all of that one's genids in it, and no lock.
    """

    kind: ChangeKind
    table_id: int
    version: int
    key: Key
    image: Image | None
    before: Genids
    locks: tuple[int, ...]
    carried: Mapping[int, int] = {}


class KeySpan(NamedTuple):
    """Rows by primary key: behind `after`, up to `through` and with it; () = from the first, or to
    the last that there can be. Keys are in the order of a store (`keys.order_of`)."""

    after: Key
    through: Key


class CopiedRows(NamedTuple):
    """What a range of rows adds to a table under another key, for those who have no rows of the
    other one: values of `columns`, the first `key_width` of which are the key, then the genids of
    `locks`, of each of `rows`.

    `digest` is over the genids (`rows/row_copies.py`): each store copies its own rows, and has to
    find the same ones."""

    columns: tuple[int, ...]
    key_width: int
    locks: tuple[int, ...]
    rows: tuple[tuple[Any, ...], ...]
    digest: int


class Backfill(NamedTuple):
    """A decided chunk of rows that get an element's pair, each node by its own row: an index entry,
    or the value of a column that is `missing` there.

    Rows of `keys` that are gone or have the pair already stay as they are, so a chunk that arrives
    twice is harmless. It is no image: genids and the LSN of a row's last write stay.

    `images`, one for each key where readers of images must be told the value: every pair of the
    row after it. Then all of `keys` are there and lack the pair, `genids` are theirs, and the
    changefeed tells the images under this commit's LSN. In the stores it is no write all the same:
    whoever reads as of an earlier LSN reads a version in which the column is not public.

    `span`: rows by range instead, for an index. `keys` is empty then. A node puts their entries in
    its own time (`StoreWriter.merge_entries`), at the latest when the job leaves the run.

    `copied`, where the table follows another one under another key: the span is of its own key, and
    every node copies the rows of that range from the other table at this very position
    (`StoreWriter.copy_rows`), but those that are there already: whoever wrote them wrote both.
    """

    table_id: int
    version: int
    element_id: int
    keys: Keys
    images: tuple[Image, ...] = ()
    genids: tuple[Genids, ...] = ()
    span: KeySpan | None = None
    copied: CopiedRows | None = None


class DescriptorWrite(NamedTuple):
    """A new version of a table's descriptor. `body` is `Descriptor.to_wire()`; the version's time
    is the commit's."""

    table_id: int
    version: int
    body: Any


class JobWrite(NamedTuple):
    """The new state of a job. `body` is `Job.to_wire()`."""

    job_id: int
    body: Any


class MinVersion(NamedTuple):
    """The fence: from this record on, requests that used an older version are refused (D5)."""

    table_id: int
    version: int


class LedgerRun(NamedTuple):
    """The ledger's run id on record, written only after the grace of D6 has passed."""

    run_id: str


class ChunkDecided(NamedTuple):
    """Progress of a job's backfill: rows of the chunk, rows that changed; `end` = end marker.
    `through`, of a backfill by range: the key up to which the log has ranges by now."""

    job_id: int
    run: int
    rows: int
    applied: int
    end: bool
    through: Key = ()


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


class RoleWrite(NamedTuple):
    """A role as it is from here on. `body` is `Role.to_wire()`; None: the role is gone, and its
    memberships with it. Its id is not given again."""

    role_id: int
    body: Any


class MembershipWrite(NamedTuple):
    """A membership as it is from here on. `body` is `Membership.to_wire()`; None: it is gone."""

    role_id: int
    member_id: int
    body: Any


class AccessWrite(NamedTuple):
    """An object's owner, and who may do what with it. `object_id`: a table, a sequence, 0 = the
    database; `element_id`: a column, 0 = all of it. `body` is `ObjectAccess.to_wire()`."""

    object_id: int
    element_id: int
    body: Any


class ViewWrite(NamedTuple):
    """A view as it is from here on. `body` is `View.to_wire()`; None: it is gone, with its owner
    and its list."""

    view_id: int
    body: Any


class EnumWrite(NamedTuple):
    """An enum type as it is from here on. `body` is `Enumeration.to_wire()`; None: it is gone, with
    its owner. Columns have their version of it in their tables' descriptors."""

    type_id: int
    body: Any


class NamespaceWrite(NamedTuple):
    """A schema as it is from here on. `body` is `Namespace.to_wire()`; None: it is gone, with its
    owner."""

    namespace_id: int
    body: Any


class CommentWrite(NamedTuple):
    """What COMMENT ON says of an object (`element_id` 0), of a column by its place, of an index, or
    (below zero) of a constraint. `text` None: nothing any more."""

    object_id: int
    element_id: int
    text: str | None


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


RoleOrAccessWrite: TypeAlias = (
    RoleWrite
    | MembershipWrite
    | AccessWrite
    | ViewWrite
    | CommentWrite
    | EnumWrite
    | NamespaceWrite
)
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
    | RoleWrite
    | MembershipWrite
    | AccessWrite
    | ViewWrite
    | CommentWrite
    | EnumWrite
    | NamespaceWrite
)


class Commit(NamedTuple):
    """A committed transaction. Its LSN is the record's `first_lsn` + its position in it.

    `commit_us`: unix µs, strictly rising over all masters (L9), but where an operator has set the
    log's time back. `versions`: table id → version used, tables it only read included (D5). A
    commit with catalog writes stands last in its record, so that one record's rows are all applied
    under one catalog. `principal`: the role that asked for those catalog writes, "" = the bootstrap
    role. `notifications`: what those are told who listen, once their nodes have applied it.
    """

    request_id: bytes
    attempt: int
    commit_us: int
    versions: Mapping[int, int]
    changes: tuple[RowChange, ...]
    rows_affected: int
    reply_to: int = -1
    backfills: tuple[Backfill, ...] = ()
    catalog: tuple[CatalogWrite, ...] = ()
    answer: Any = None  # what the result carries beyond counts, e.g. {"job": 7}
    principal: str = ""
    notifications: Notifications | None = None


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
    `queue` and `offset` say where the request stood; offset -1: nowhere, it was told to the master.
    `request_id` is empty when it had none. `principal`: the role that asked, "" = the bootstrap
    role, or nobody knows.
    """

    request_id: bytes
    attempt: int
    disposition: Disposition
    code: str
    message: str
    detail: Mapping[str, Any]
    decided_us: int
    reply_to: int
    queue: str
    offset: int
    content_type: str
    body: bytes | None
    image: RowImage | None
    principal: str = ""


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
    """What a master says of a queue's message before it decides it, alone (L10): it is about to,
    and `lost` terms will have ended over it if this one does. `rows`: of a chunk, those that are
    decided. Said again with a smaller number it is taken back."""

    queue: str
    offset: int
    rows: int
    lost: int


class Decisions(NamedTuple):
    """A batch of decisions; with nothing to decide it carries grants and is the heartbeat.

    `sequence` is dense within (epoch, incarnation), from 1. `previous` is the digest of the
    counting record before (L2). `decided_through`: queue → next offset (L3). `answered_through`:
    log offset below which results and conflicts were given (L7). `closed_us`: every commit after
    this record has a later time (L9). `id_horizon_us`: from this record on ids of an earlier time
    are refused, and their outcomes may be forgotten (L5). 0 in both: an older master says nothing.
    `reset_us`, unless 0: before this record's commits the log's time, and what it has closed,
    become that; and the id horizon becomes this record's, where else it never goes back.
    `queue_topics`: queue → id of the topic that its `decided_through` counts in from here on, where
    that is news. `attempts`: messages that the master is about to decide alone (L10). `barriers`:
    checks that requests of this record ask for, of each node at the position behind it.
    `feature_level`, unless 0: that of the database from here on (`model/features.py`).
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
    queue_topics: Mapping[str, str] = {}
    attempts: tuple[Attempt, ...] = ()
    barriers: tuple[Barrier, ...] = ()
    feature_level: int = 0


class CheckSlice(NamedTuple):
    """The first `rows_max` above `after` (() = from the first on): rows of a table by primary key;
    where `part` is an index id, that index's entries by entry, as they lie in the store."""

    part: int
    after: Key
    rows_max: int


class Barrier(NamedTuple):
    """Decides nothing. With `check` = table id (-1: every table) each node that meets it checks its
    store at exactly this position and reports. `repair` names a node that then puts those entries
    of the table right that its own rows prove wrong. With `part` only that slice is checked.

    A request asks for it (`BarrierRequest`), and the master has it in its record. Replicas of
    earlier releases append it as a record of its own, which needs no epoch (T6)."""

    id: bytes
    check: int | None = None
    repair: str = ""
    part: CheckSlice | None = None


LogRecord: TypeAlias = Claim | Decisions | Barrier


class Unreadable(NamedTuple):
    """What stands in the log and is no record that this release can read; `words` say why. The rest
    is what it still shows of itself: a place in a term (`sequence` 0: a Claim), and the digest that
    it names as the one before. `sequence` -1: nothing."""

    words: str
    epoch: int = 0
    incarnation: bytes = b""
    sequence: int = -1
    previous: bytes = b""


class LogPosition(NamedTuple):
    """The place of a reader in the log; stored with what it read in one transaction (L6).

    `offset` is the next offset to read; `digest` that of the last counting record. `closed_us`,
    `id_horizon_us` and `reset_us`: the newest of the records so far, see Decisions. `attempts`:
    those said of messages that are not decided yet, one of a queue (L10). `feature_level`: the
    highest of the records so far, 0 = the database has none.
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
    queue_topics: Mapping[str, str] = {}
    attempts: tuple[Attempt, ...] = ()
    feature_level: int = 0

    @property
    def time_us(self) -> int:
        """The log's time: every commit up to here has it or an earlier one, and every later commit
        a later one."""
        return max(self.commit_us, self.closed_us)
