"""Feeds of tables: what of the log each of them tells, with the row before. Pure.

A feed begins between two records of the log, with the rows as they are there; from then on each
record gives its events, in the order of commits and, within one, of its changes. The same log gives
the same events whatever the batches, as long as `FedRows` has the rows as of the record before.
A feed is of a table id: it goes on through a new name of the table or of a column, through another
type and another primary key (where rows and name go over to another id), and ends with its table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.states import State
from leasehold.events.debezium.table_form import Block, Image, Source, TableForm
from leasehold.model.keys import Key
from leasehold.model.records.events import RowImage
from leasehold.model.records.log import (
    Backfill,
    ChangeKind,
    Commit,
    Decisions,
    DescriptorWrite,
    RowChange,
    TableTruncated,
)
from leasehold.replication.changefeed import copied_images
from leasehold.replication.feed_state import Feed

SNAPSHOT_ROWS: Final = 1_000
"""Told at a time; between them stands what the log brings."""


class FedRows(Protocol):
    """The rows of the tables that have feeds, as of the last record that was followed."""

    def get(self, table_id: int, key: Key) -> Image | None: ...

    def put(self, image: RowImage) -> None: ...

    def remove(self, table_id: int, key: Key) -> None: ...

    def clear(self, table_id: int) -> None:
        """Remove all rows of a table."""
        ...

    def after(self, table_id: int, place: bytes, rows_max: int) -> Sequence[tuple[bytes, Image]]:
        """Return the next rows behind a place, "" = from the first on, each with its own; few where
        they are large, none where there is none."""
        ...


class RowTold(NamedTuple):
    """An event of a feed: op is c, u, d, r or t (every row is gone; no key). `form`: that of the
    table's version at the event."""

    feed: Feed
    form: TableForm
    op: str
    key: Key
    before: Image | None
    after: Image | None
    source: Source
    block: Block | None = None


class TransactionTold(NamedTuple):
    """The begin of a transaction, or its end, with how many events there were of each table."""

    transaction: str
    commit_us: int
    counts: Mapping[str, int] | None


Told: TypeAlias = RowTold | TransactionTold


class TableFeeds:
    """All feeds of a database. `feeds`: by name, ended ones among them until they are dropped."""

    def __init__(
        self, rows: FedRows, feeds: Iterable[Feed] = (), tables: Iterable[Descriptor] = ()
    ) -> None:
        """Go on with `feeds`; `tables` has the newest version of every table of theirs."""
        self._rows = rows
        self.feeds = {feed.name: feed for feed in feeds}
        self._tables: dict[int, Descriptor] = {}
        self._by_table: dict[int, list[Feed]] = {}
        self._marks = False  # whether a feed takes part in the topic of transactions
        self._index()
        # One that takes over from another may come before it.
        for table in sorted(tables, key=lambda table: table.table_id):
            if self._concerns(table):
                self._tables[table.table_id] = table
        for feed in self._on():
            known = self._tables.get(feed.table_id)
            if known is None:
                feed.end("nothing is known of its table any more")
            else:
                feed.adapt(known)
        self._index()

    @property
    def tables(self) -> tuple[int, ...]:
        """The ids of all tables whose rows are kept, those among them that are to take over."""
        return tuple(self._tables)

    def add(self, feed: Feed, table: Descriptor) -> None:
        """Take a new feed; FedRows has its table's rows."""
        self.feeds[feed.name] = feed
        self._tables[table.table_id] = table
        self._index()

    def drop(self, name: str) -> None:
        """Forget a feed, and the rows that nobody else needs."""
        self.feeds.pop(name, None)
        self._forget_tables()

    def follow(self, record: Decisions, offset: int) -> list[Told]:
        """Return the events of a record that counts. `offset`: its place in the log."""
        told: list[Told] = []
        if not self._tables:
            return told
        for lsn, commit in enumerate(record.commits, record.first_lsn):
            events = self._events_of(commit, lsn, offset)
            told += _with_marks(events, commit, f"{lsn}:{offset}") if self._marks else events
            told += self._take_versions(commit, lsn, offset)
        return told

    def snapshot(self, lsn: int, offset: int) -> list[Told]:
        """Return the next rows of a snapshot that is under way, none where there is none. They are
        as of the record before `offset`, the commit `lsn`."""
        for feed in self._on():
            if feed.snapshot is not None and feed.hold is None:
                return list(self._snapshot_of(feed, lsn, offset))
        return []

    @property
    def has_snapshot(self) -> bool:
        """Whether a snapshot is under way; that of a feed which is held waits."""
        return any(feed.snapshot is not None and feed.hold is None for feed in self._on())

    def _snapshot_of(self, feed: Feed, lsn: int, offset: int) -> Iterator[Told]:
        snapshot = feed.snapshot
        assert snapshot is not None, feed.name
        found = self._rows.after(feed.table_id, snapshot.place, SNAPSHOT_ROWS)
        last = not found or not self._rows.after(feed.table_id, found[-1][0], 1)
        shown = [(place, image) for place, image in found if feed.shows(image)]
        for number, (_, image) in enumerate(shown, 1):
            word = "incremental" if snapshot.on_demand else "true"
            if last and number == len(shown) and not snapshot.on_demand:
                word = "last"
            source = Source(
                lsn,
                snapshot.rows + number,
                max(offset - 1, 0),
                image.commit_us,
                b"",
                feed.form.descriptor.version,
                word,
            )
            yield RowTold(feed, feed.form, "r", image.key, None, image, source)
        feed.snapshot_went_on(found[-1][0] if found else b"", len(shown), last=last)

    def _events_of(self, commit: Commit, lsn: int, offset: int) -> list[RowTold]:
        telling = _Telling(commit, lsn, offset)
        for write in commit.catalog:
            if isinstance(write, TableTruncated) and write.table_id in self._tables:
                self._rows.clear(write.table_id)
                for feed in self._by_table.get(write.table_id, ()):
                    telling.tell(feed, "t", (), None, None)
        for change in commit.changes:
            table_id = change.table_id
            if table_id not in self._tables:
                continue
            key = change.key
            # Of a row that is inserted there is none: that was verified.
            is_new = change.kind is ChangeKind.INSERT
            before = None if is_new else self._rows.get(table_id, key)
            after = _image_of(change, lsn, commit.commit_us)
            if after is not None:
                self._rows.put(after)
            elif before is not None:
                self._rows.remove(table_id, key)
            if before is not None or after is not None:
                shown = bool(change.locks) or after is None
                self._tell(telling, table_id, key, before, after, shown=shown)
        for backfill in commit.backfills:
            if backfill.table_id in self._tables:
                self._tell_filled(telling, backfill)
        return telling.told

    def _tell_filled(self, telling: _Telling, backfill: Backfill) -> None:
        at = telling.lsn, backfill.version, telling.commit.commit_us
        for key, values in zip(backfill.keys, backfill.images, strict=False):
            filled = RowImage(backfill.table_id, key, {}, *at, values)
            self._tell_image(telling, filled)
        for copied in copied_images(backfill, telling.lsn, telling.commit.commit_us):
            self._tell_image(telling, copied)

    def _tell_image(self, telling: _Telling, after: RowImage) -> None:
        """Tell of a row that a fill has changed, where a feed's columns show it."""
        before = self._rows.get(after.table_id, after.key)
        self._rows.put(after)
        self._tell(telling, after.table_id, after.key, before, after, shown=False)

    def _tell(
        self,
        telling: _Telling,
        table_id: int,
        key: Key,
        before: Image | None,
        after: Image | None,
        *,
        shown: bool,
    ) -> None:
        """Tell of a row to the feeds of its table; `shown`: whatever their columns show."""
        for feed in self._by_table.get(table_id, ()):
            event = feed.event_of(before, after, shown=shown)
            if event is not None:
                telling.tell(feed, event.op, key, event.before, event.after)

    def _take_versions(self, commit: Commit, lsn: int, offset: int) -> list[RowTold]:
        """Take what the commit makes of these tables, and those that are to take over from them.
        Rows that have another key from here on are told anew, behind an event that all are gone:
        nobody can tell which of them were under which key."""
        told: list[RowTold] = []
        changed: list[Descriptor] = []
        for write in commit.catalog:
            if not isinstance(write, DescriptorWrite):
                continue
            named = {write.table_id, write.body.get("twin", 0), write.body.get("former", 0)}
            if named.isdisjoint(self._tables):
                continue
            table = from_wire(write.body)
            self._tables[table.table_id] = table
            changed.append(table)
        if not changed:
            return told
        heirs = {table.former: table for table in changed if table.former and _is_public(table)}
        for feed in self._on():
            table = self._tables[feed.table_id]
            if not _is_public(table):
                heir = heirs.get(feed.table_id)
                if heir is None:
                    feed.end(f"table {table.name} was dropped")
                    continue
                feed.adapt(heir)
                if feed.is_on:
                    feed.start_snapshot()
                    at = offset, commit.commit_us, commit.request_id, heir.version
                    source = Source(lsn, len(told) + 1, *at)
                    told.append(RowTold(feed, feed.form, "t", (), None, None, source))
            else:
                feed.adapt(table)
        self._forget_tables()
        return told

    def _forget_tables(self) -> None:
        self._index()
        needed = {table_id for table_id, table in self._tables.items() if self._concerns(table)}
        for table_id in self._tables.keys() - needed:
            del self._tables[table_id]
            self._rows.clear(table_id)

    def _concerns(self, table: Descriptor) -> bool:
        """Whether a feed is of this table, or of one whose rows it is about to take over."""
        return table.table_id in self._by_table or table.mirror in self._by_table

    def _index(self) -> None:
        self._by_table = {}
        for feed in self._on():
            self._by_table.setdefault(feed.table_id, []).append(feed)
        self._marks = any(feed.definition.transactions for feed in self._on())

    def _on(self) -> Iterator[Feed]:
        return (feed for feed in list(self.feeds.values()) if feed.is_on)


class _Telling:
    """The events of a commit, in their order."""

    def __init__(self, commit: Commit, lsn: int, offset: int) -> None:
        self.commit = commit
        self.lsn = lsn
        self.told: list[RowTold] = []
        self._offset = offset

    def tell(
        self, feed: Feed, op: str, key: Key, before: Image | None, after: Image | None
    ) -> None:
        """Add an event of a feed."""
        form, commit = feed.form, self.commit
        source = Source(
            self.lsn,
            len(self.told) + 1,
            self._offset,
            commit.commit_us,
            commit.request_id,
            form.descriptor.version,
        )
        self.told.append(RowTold(feed, form, op, key, before, after, source))


def _is_public(table: Descriptor) -> bool:
    return table.state is State.PUBLIC


def _image_of(change: RowChange, lsn: int, commit_us: int) -> RowImage | None:
    if change.image is None:
        return None
    at = lsn, change.version, commit_us
    return RowImage(change.table_id, change.key, {}, *at, change.image)


def _with_marks(events: Sequence[RowTold], commit: Commit, transaction: str) -> list[Told]:
    """Return the events of a commit between its begin and its end, where a feed takes part."""
    told: list[Told] = []
    if not any(event.feed.definition.transactions for event in events):
        told += events
        return told
    counts: dict[str, int] = {}
    for event in events:
        if event.feed.definition.transactions:
            table = ".".join(event.form.name)
            counts[table] = counts.get(table, 0) + 1
            block = Block(transaction, sum(counts.values()), counts[table])
            told.append(event._replace(block=block))
        else:
            told.append(event)
    begin = TransactionTold(transaction, commit.commit_us, None)
    return [begin, *told, TransactionTold(transaction, commit.commit_us, counts)]
