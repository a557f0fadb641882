"""The boundary of the pure core: what it asks of stores, clocks and codecs, as Protocols.

One implementation touches the world (`adapters/sqlite/store.py`, `adapters/codec/records.py`),
another runs in memory for models; both must pass the same conformance tests.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, MutableSet, Sequence
from typing import Any, NamedTuple, Protocol

from leasehold.model.budget import Budget, RangeLooks
from leasehold.model.errors import Refused
from leasehold.model.keys import Key
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.events import Genids, Image
from leasehold.model.records.log import (
    Backfill,
    CheckSlice,
    Commit,
    CopiedRows,
    KeySpan,
    LogPosition,
    LogRecord,
    RoleOrAccessWrite,
    RowChange,
    Unreadable,
)
from leasehold.model.records.requests import ChangeRequest, Outcome, ReadRange


class Now(NamedTuple):
    """A reading of both clocks, taken once per step.

    `mono_ns`: CLOCK_BOOTTIME of this host, for leases and waits (never CLOCK_MONOTONIC, which
    stops while a machine sleeps). `wall_us`: unix time, for commit times and people only.
    """

    mono_ns: int
    wall_us: int


class Row(NamedTuple):
    """A stored row. `lsn` is that of its last image, which a genid alone does not tell."""

    values: Image
    genids: Genids
    lsn: int


class RowSource(Protocol):
    def row(self, descriptor: Any, key: Key) -> Row | None:
        """The row as of now, None when there is none."""
        ...


class Schema(Protocol):
    """What a store needs of a descriptor; `leasehold.catalog.descriptor.Descriptor` in practice."""

    @property
    def table_id(self) -> int: ...
    @property
    def version(self) -> int: ...


class RangeWaiting(NamedTuple):
    """The index of the range that a store merges next, of those that it has noted."""

    table_id: int
    version: int
    element_id: int


class Merged(NamedTuple):
    """Rows that a merge has passed, about, 0 where it could not begin yet; and for how long nothing
    more should be merged, for the sake of who waits for a processor."""

    rows: int
    pause_ns: int


class CopyRange(NamedTuple):
    """A range of a table's key, and which rows a copy of it would add to that table."""

    span: KeySpan
    copied: CopiedRows


class StoredCatalog(NamedTuple):
    """Descriptors (wire form, every kept version), min versions, jobs (wire form), run id; the last
    write of each role, membership and list of privileges, and the id of the next role, 0 = the
    first there can be."""

    descriptors: Sequence[Any]
    min_versions: Mapping[int, int]
    jobs: Sequence[Any]
    ledger_run: str
    access: Sequence[RoleOrAccessWrite] = ()
    next_role_id: int = 0


class StoreWriter(Protocol):
    """A node's store as its single writer sees it. All changes lie between begin and commit.

    Master: begin; for each request savepoint, change…, release or rollback_to; append; read back;
    commit(position). Follower: begin; change… for every commit of a record; commit(position).
    L6: what is applied and the position it came from are durable together or not at all.
    """

    def position(self) -> LogPosition:
        """The position of the last commit; LogPosition() for an empty store."""
        ...

    def catalog(self) -> StoredCatalog: ...

    def begin(self) -> None: ...
    def commit(self, position: LogPosition) -> None: ...
    def rollback(self) -> None: ...
    def savepoint(self) -> None: ...
    def release(self) -> None: ...
    def rollback_to(self) -> None: ...

    @property
    def part(self) -> Any:
        """What of the database this store has the rows of (`catalog.part.Part`)."""
        ...

    @property
    def taken_out(self) -> MutableSet[tuple[int, Key]]:
        """Table ids and keys of rows that the newest transaction has deleted from tables that are
        held by a value of a column: in the log it need not be a deletion."""
        ...

    def put_part(self, part: Any) -> None:
        """Keep, in the transaction, that it has more from here on."""
        ...

    def prepare(self, descriptor: Any) -> None:
        """Make the physical tables and columns that a new descriptor version needs (cheap)."""
        ...

    def row(self, descriptor: Any, key: Key) -> Row | None:
        """The row as this writer sees it now, uncommitted changes included; every pair, those
        the descriptor's version can't see too."""
        ...

    def lacks(self, descriptor: Any, keys: Sequence[Key]) -> bool:
        """Say whether surely none of the rows with these keys is there, as this writer sees it now.
        It takes one look, so that False says nothing."""
        ...

    def is_empty(self, table_id: int) -> bool:
        """Say whether the table has no row, as this writer sees it now."""
        ...

    def count_lacking(self, descriptor: Any, element_id: int) -> int:
        """Return how many rows have no pair of a column."""
        ...

    def rows_about(self, table_id: int) -> int:
        """How many rows a table has, for estimates: kept, never counted when asked."""
        ...

    def holders(self, descriptor: Any, index_id: int, values: Key, rows_max: int) -> Sequence[Key]:
        """Primary keys of rows whose entry in an index has exactly the key `values`, at most
        `rows_max`."""
        ...

    def change(
        self, descriptor: Any, change: RowChange, lsn: int, position: int, before: Row | None
    ) -> None:
        """Apply one decided change under `descriptor` (the version it was made under): the row,
        its genids `genid(lsn, position)` for `change.locks`, its image LSN, its index entries by
        `key_values.entries`. `before` saves a read where the caller has it (None: read it).
        Raises StoreCorrupted when the row's genids are not those of `change.before`."""
        ...

    def insert(
        self, descriptor: Any, changes: Sequence[RowChange], lsn: int, position: int
    ) -> None:
        """Apply inserts of one table as `change` does, one after the other; the first one stands at
        `position`. Raises StoreCorrupted for a row that is there."""
        ...

    def truncate(self, table_id: int, lsn: int) -> None:
        """Take every row and entry of a table away at once. What they occupy may go later, outside
        transactions (`remove_dead`); readers with an older snapshot go on seeing them."""
        ...

    def backfill(self, descriptor: Any, backfill: Backfill) -> int:
        """Put the missing entries, or pairs, of the named rows from the rows themselves and the
        descriptor, or from `backfill.images`; count those put. A row that gets a pair keeps its
        genids and its LSN. Raises StoreCorrupted when a row's genids are not those of
        `backfill.genids`. With `backfill.span` it may be noted only: then `merge_entries` puts
        them, and `end_ranges` at the latest."""
        ...

    def read_copy(self, source: Any, target: Any, after: Key, rows_max: int) -> CopyRange:
        """Return the range behind `after`, of the key of `target`, that has `rows_max` rows of
        `source`, or ends nowhere; and which of them `target` has not."""
        ...

    def copy_rows(self, source: Any, target: Any, backfill: Backfill, lsn: int) -> int:
        """Put the rows of `source` in the range `backfill.span` of the key of `target` that are not
        in it, with their genids, under the LSN `lsn`, and their entries; count them. Raises
        StoreCorrupted when they are others than `backfill.copied` says."""
        ...

    def ranges_waiting(self, table_id: int | None = None) -> int:
        """How many backfills by range are noted and not merged, of all tables or of one."""
        ...

    def next_range(self) -> RangeWaiting | None:
        """What `merge_entries` would go on with, None: nothing waits."""
        ...

    def merge_entries(self, descriptor: Any, rows_max: int | None = None) -> Merged:
        """Put, outside a transaction, some of the missing entries of `next_range`, under that
        version, of at most so many rows. Which of those that wait are there already is nobody's to
        rely on."""
        ...

    def range_failure(self, table_id: int, element_id: int) -> tuple[Key, Refused] | None:
        """Return a row that has no value to be put into that column, and why, as far as this store
        has met one in a range that has not ended."""
        ...

    def end_ranges(self, descriptor: Any, element_id: int, lsn: int, *, complete: bool) -> None:
        """End, in the transaction that applies the commit `lsn`, what waits of an index or a
        column: all entries, or pairs, of its ranges are there now, each as its row has it; or,
        unless `complete`, nobody wants them. Then entries that are there go, too; pairs of a column
        that nobody has seen go with it (`Descriptor.filled_apart`)."""
        ...

    def outcome(self, request_id: bytes) -> Outcome | None: ...
    def put_outcome(self, request_id: bytes, outcome: Outcome) -> None: ...

    def put_untimely(self, request_id: bytes, outcome: Outcome) -> None:
        """Remember the outcome of an id which was refused for its own time: `outcome` tells it as
        any."""
        ...

    def oldest_outcomes(self, count: int) -> Sequence[Outcome]:
        """Return the outcomes decided first, but for the untimely ones."""
        ...

    def oldest_id(self) -> bytes | None:
        """Return, of the ids whose outcomes are remembered, that of the earliest time, but for the
        untimely ones."""
        ...

    def collect_outcomes(self, id_horizon_us: int, rows_max: int) -> int:
        """Forget outcomes of ids whose own time is before, at most `rows_max`, oldest first, and as
        many untimely ones that were refused before; every node does so at the same log position
        (L5). From the first time on `oldest_outcomes` and `collect_decided_outcomes` may be slow.
        → how many of the former."""
        ...

    def collect_decided_outcomes(self, decided_before_us: int, rows_max: int) -> int:
        """The same by the time of the decision: for records of an earlier program."""
        ...

    def keep_rows(self, on: bool) -> None:
        """Say, outside a transaction, whether old images of rows are kept, for reads as of an
        earlier LSN, or not? Kept is what is replaced from now on; what was kept is given up."""
        ...

    def put_commit_times(self, times: Sequence[tuple[int, int]]) -> None:
        """Note (LSN, commit time), of a record's first commit and wherever the time does not just
        rise by 1 µs."""
        ...

    def reset_commit_times(self, lsn: int, time_us: int) -> None:
        """Note that after commit `lsn` the log's time was set to that: nothing before that commit
        can be read any more, by its time or its LSN."""
        ...

    def collect_rows(self, before_us: int, newest_lsn: int) -> None:
        """Rows as they were before the last commit at or before that time can't be read any more;
        every node says so at the same log position. `newest_lsn`: of all that is applied."""
        ...

    def kept_from(self, table_id: int) -> int | None:
        """The LSN from which on it is known what a table's rows were, None when nothing is."""
        ...

    def last_write(self, table_id: int) -> int:
        """LSN of the last write of any row of a table, 0 where it lies before what is kept. This
        and the next two see uncommitted changes; a backfill's fill is no write."""
        ...

    def written_in(
        self, descriptor: Any, index_id: int, part: ReadRange, lsn: int, looks: RangeLooks
    ) -> Key | None:
        """A row in that range now, of the primary key (index id 0) or an index, that was written
        after `lsn`. Raises RangeTooLong when `looks` are used up; so does the next one."""
        ...

    def gone_from(
        self, descriptor: Any, index_id: int, part: ReadRange, lsn: int, looks: RangeLooks
    ) -> Key | None:
        """A row that was in that range at `lsn` and was written, or deleted, since."""
        ...

    def put_descriptor(self, table_id: int, version: int, body: Any) -> None: ...
    def collect_descriptor(self, table_id: int, version: int, until_lsn: int) -> None:
        """Forget a version of the past, which was current until just before `until_lsn`: nothing
        before that can be read any more. What it named stays known as left over."""
        ...

    def put_min_version(self, table_id: int, version: int) -> None: ...
    def forget_table(self, table_id: int) -> None:
        """Forget a table that was dropped: its last version, and all that is known of it. What of
        its rows is still in the way goes with what is dead."""
        ...

    def put_job(self, job_id: int, body: Any) -> None: ...
    def forget_job(self, job_id: int) -> None: ...
    def put_ledger_run(self, run_id: str) -> None: ...
    def put_access(self, write: RoleOrAccessWrite, next_role_id: int) -> None:
        """Keep a role, a membership or a list of privileges as it is said, or forget it; and which
        id the next role has."""
        ...

    def remove_dead(self, rows_max: int) -> bool:
        """Take away, outside a transaction, about `rows_max` rows' worth of what no version in use
        names (D5); say whether there is more. Every node does so at its own pace; readers see no
        difference."""
        ...

    def check(
        self,
        subject: bytes,
        table_ids: Sequence[int],
        elements: Sequence[int],
        *,
        repairs_max: int = 0,
        part: CheckSlice | None = None,
    ) -> None:
        """Open a read snapshot of what is committed now and check it beside the apply loop; the
        reports (one per table) come out of `checked()`. With `elements` only those elements, as if
        they were public already; with `part` only that slice; else everything. With `repairs_max`
        so many entries that are not as their rows say are remembered for `repair`."""
        ...

    def give_way(self, *, beside_users: bool, gentle: bool) -> None:
        """Whether users write at the moment: then what the store does beside the apply loop takes
        longer rather than have them wait for it; twice as long where it is to be `gentle`."""
        ...

    def tidy(self) -> None:
        """Do what commits have put off, a little at a time, between transactions, when nobody waits
        for this store. To be called again and again; nothing depends on it."""
        ...

    def repair(self, descriptor: Any, subject: bytes, entries_max: int) -> tuple[int, bool]:
        """Take, in a transaction, the next of the entries remembered by a check, and make them what
        the row has them be *now*, under `descriptor`. Return how many changed, and whether there
        are more."""
        ...

    def checked(self) -> Sequence[CheckReport]:
        """Reports finished since the last call; node and incarnation are filled in by the node."""
        ...


class StoreSnapshot(Protocol):
    """A read snapshot: rows, descriptors and position of a single LSN. Close it soon: an open
    snapshot keeps the WAL from being reset."""

    def __enter__(self) -> StoreSnapshot: ...
    def __exit__(self, *_: object) -> None: ...
    @property
    def lsn(self) -> int:
        """The LSN as of which everything is answered."""
        ...

    @property
    def part(self) -> Any:
        """What of the database the store has (`catalog.part.Part`)."""
        ...

    def position(self) -> LogPosition: ...
    def min_version(self, table_id: int) -> int: ...
    def newest(self, table: str) -> Any: ...
    def tables(self) -> Sequence[Any]:
        """The newest version of every table that is not absent, by table id."""
        ...

    def versions(self, table_id: int) -> Sequence[Any]:
        """Kept versions of a table, oldest first; () when there is none."""
        ...

    def descriptor_at(self, table: str, lsn: int) -> Any:
        """The version of the table called `table` at `lsn` that was current then. Raises what
        `schema.history.History.table_at` raises."""
        ...

    def as_of(self, lsn: int) -> StoreSnapshot:
        """The same as of an earlier LSN: `newest` is what was current then, rows are what they
        were. Close one of the two. Raises SnapshotTooOld (72000) below what is kept, here or when
        a table is read that was truncated since; NotCoherent above the newest commit."""
        ...

    def keeps_rows(self) -> bool:
        """Say whether anything of the past is kept, so that `as_of` can be asked for."""
        ...

    def lsn_at(self, time_us: int) -> int:
        """The LSN of the last commit at or before a time; 0 when that is no longer known."""
        ...

    def get(self, descriptor: Any, key: Key) -> Row | None: ...

    def scan(
        self, descriptor: Any, low: Key | None, high: Key | None, *, rows_max: int
    ) -> Iterator[tuple[Key, Row]]:
        """Rows with low <= key < high (prefixes of the key are fine), in key order."""
        ...

    def get_by(
        self, descriptor: Any, index_id: int, values: Key, *, rows_max: int
    ) -> Iterator[tuple[Key, Row]]:
        """Rows whose index columns start with `values`, through the entries of a public index."""
        ...

    def close(self) -> None: ...


class Snapshots(Protocol):
    """A store as its readers see it, from any thread."""

    @property
    def part(self) -> Any:
        """What of the database it has (`catalog.part.Part`)."""
        ...

    def open_snapshot(self, *, brief: bool = False) -> StoreSnapshot:
        """Open a read snapshot. `brief`: for statements that surely end soon and make nothing."""
        ...

    def open_budget(self) -> Budget:
        """Return the budget of a transaction on this store, which is the caller's to close."""
        ...


class Codec(Protocol):
    """Records ↔ bytes. `pack_*` make the parts that a Decisions record is joined from, so that
    its size is known before it is closed (L8)."""

    def pack_commit(self, commit: Commit) -> bytes: ...
    def pack_refusal(self, refusal: Any) -> bytes: ...
    def zipped_bytes(self, packed: bytes) -> int: ...
    def join_decisions(
        self, header: Any, commits: Sequence[bytes], refusals: Sequence[bytes]
    ) -> bytes: ...
    def encode(self, record: Any) -> bytes: ...
    def decode(self, data: bytes) -> Any: ...
    def decode_log(self, data: bytes) -> LogRecord: ...
    def read_log(self, data: bytes) -> LogRecord | Unreadable: ...
    def digest(self, data: bytes) -> bytes: ...
    def decode_request(self, content_type: str, data: bytes) -> ChangeRequest: ...
    def decode_request_in_slices(
        self, content_type: str, data: bytes
    ) -> Generator[None, None, ChangeRequest]: ...
