"""The shell of the feeds: orders in, events out, and what they rest on kept.

What a feed tells is sent in the changefeed's own transactions, with the place of the log and the
feed's state beside it (L6). The rows before lie in a file, whose transaction ends after Kafka's: a
process that ends in between finds it at another place than the log's, and fills it from the rows
topics, which at that place have those very rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from leasehold import __version__
from leasehold.adapters.http.schema_registry import SchemaRegistry
from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.reader import STEADY_WAIT_MS, Record, TopicReader
from leasehold.adapters.kafka.whole_topic import read_events, read_to_end
from leasehold.adapters.os.clock import unix_us
from leasehold.adapters.sqlite.fed_rows import FedRows
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.schema_names import PUBLIC
from leasehold.changefeed.feed_messages import (
    FeedMessage,
    Prepared,
    messages_of,
    prepare_row,
    prepare_until_held,
)
from leasehold.changefeed.feed_schemas import NO_HEADS, FeedSchemas
from leasehold.changefeed.held_feeds import HeldEvent, HeldFeeds, LateMessages
from leasehold.changefeed.rows_loading import RowsLoading
from leasehold.events.debezium.definition import (
    FEEDS_MAX,
    CreateFeed,
    DropFeed,
    Order,
    SnapshotSignal,
    decode_order,
)
from leasehold.model.closing import Closing
from leasehold.model.errors import (
    BusUnavailable,
    InvalidArgument,
    LeaseholdError,
    MalformedRequest,
    TableBusy,
    UnknownTable,
)
from leasehold.model.records.log import Decisions, LogPosition
from leasehold.model.topics import Topics
from leasehold.replication.feed_state import ENCODED_FORMAT, FORMAT, HELD_FORMAT, Feed
from leasehold.replication.table_feeds import RowTold, TableFeeds, Told
from leasehold.settings.changefeed import ChangefeedSettings
from leasehold.settings.environment import KafkaSettings
from leasehold.settings.schema_registry import SchemaRegistrySettings

STATE_PREFIX: Final = b"feed/"
ORDERS_KEY: Final = b"feed-orders"
FOLLOWED_KEY: Final = b"feed-place"
FOLLOWED_KEYS: Final = {
    FORMAT: FOLLOWED_KEY,
    ENCODED_FORMAT: b"feed-place/2",
    HELD_FORMAT: b"feed-place/3",
}
"""By the format of feeds' states. Stored with every place while there are such feeds: what has
another one was published by an earlier release, which knows of none."""
CLIENT_ID: Final = "changefeed-feeds"
HELD: Final = "held"
"""As people are told the status of a feed that is on and held."""
ORDERS_MAX: Final = 100
REPORTED_MAX: Final = 50
WAITING_BYTES_MAX: Final = 16 * 1024 * 1024
"""Of images that wait for a transaction, reached by whole log records."""
LOAD_TIMEOUT_S: Final = 24 * 3600.0
_HOUR_MS: Final = 3_600_000
NO_REGISTRY: Final = SchemaRegistrySettings()
LOG: Final = logging.getLogger("leasehold.changefeed")


class FeedShell(Closing):
    """All feeds of a database, for one thread: `open`, then `follow` each record that counts, and
    `turn` between records. `messages` and `list_changes` are what the next transaction has of them;
    after it `published`. Raises BusUnavailable, and StoreUnwritable."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Topics,
        settings: ChangefeedSettings,
        admin: TopicAdmin,
        give_up: Callable[[], bool],
        registry: SchemaRegistrySettings = NO_REGISTRY,
    ) -> None:
        self._kafka = kafka
        self._topics = topics
        self._settings = settings
        self._admin = admin
        self._give_up = give_up
        asked = SchemaRegistry(registry, give_up=give_up) if registry.urls else None
        self._schemas = FeedSchemas(asked, give_up)
        self._held = HeldFeeds(kafka, topics, settings, admin, give_up, asked)
        self._orders: TopicReader | None = None
        self._taken = 0  # the next offset of the topic of orders
        self._taken_stored = 0
        self._rows: FedRows | None = None
        self._feeds: TableFeeds | None = None
        self._states: dict[str, Feed] = {}  # those that are refused, too
        self._gone: set[str] = set()  # dropped, and their states not yet
        self._partitions: dict[str, int] = {}  # of the feeds' topics
        self._found: list[Record] = []  # orders, not carried out yet
        self._loading: RowsLoading | None = None  # for the first of them
        self._waiting: list[Prepared | HeldEvent | LateMessages] = []
        self._bytes_before = 0

    @property
    def waiting(self) -> int:
        """How many events wait for a transaction."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether what waits has many bytes."""
        moved = 0 if self._rows is None else self._rows.bytes_moved
        return moved - self._bytes_before >= WAITING_BYTES_MAX

    @property
    def is_changed(self) -> bool:
        """Whether a state is to be stored, even where no event waits."""
        return (
            bool(self._gone)
            or self._taken != self._taken_stored
            or any(feed.changed for feed in self._states.values())
        )

    @property
    def has_snapshot(self) -> bool:
        """Whether rows of a snapshot are to be told."""
        return self._feeds is not None and self._feeds.has_snapshot

    @property
    def report(self) -> tuple[tuple[str, str, str], ...]:
        """Name, status and words of feeds: of some, where there are many; first of those that don't
        go on."""
        feeds = sorted(
            self._states.values(), key=lambda feed: (feed.is_on and feed.hold is None, feed.name)
        )
        return tuple(_said_of(feed) for feed in feeds[:REPORTED_MAX])

    @property
    def held(self) -> tuple[int, int]:
        """How many feeds are held, and the bytes that are kept of them."""
        holds = [feed.hold for feed in list(self._states.values()) if feed.hold is not None]
        return len(holds), sum(hold.bytes for hold in holds)

    def open(
        self, stored: Mapping[bytes, bytes | None], position: LogPosition, place: bytes
    ) -> None:
        """Go on with the feeds in `stored`, the changefeed's topic by key, at the log's `position`,
        which encoded is `place`. Without the right to make or read the topic of orders these go
        on, and no others come."""
        self._taken = self._taken_stored = _offset_of(stored.get(ORDERS_KEY))
        try:
            self._admin.create([self._topics.feeds], self._topics.replication_factor)
            self._orders = TopicReader(
                self._kafka,
                CLIENT_ID,
                fetch_wait_ms=STEADY_WAIT_MS,
                give_up=self._give_up,
                may_lose=(self._topics.feeds.name,),
            )
            self._orders.start(self._topics.feeds.name, 0, self._taken)
        except AccessDenied as error:
            self._read_no_orders(error)
        for key, value in stored.items():
            if key.startswith(STATE_PREFIX) and value:
                try:
                    feed = Feed.restore(self._topics.database, __version__, value)
                    self._states[feed.name] = feed
                except MalformedRequest as error:
                    LOG.error("the state under %r is left out: %s", key, error.message)
        self._held.sweep(self._states.values())
        for feed in self._states.values():
            followed = _offset_of(stored.get(FOLLOWED_KEYS[feed.format]))
            if feed.is_on and followed != position.offset:
                feed.fail(
                    f"an earlier release has published the log from offset {followed} to"
                    f" {position.offset}, and nothing of it here: make the feed anew"
                )
        if any(feed.is_on for feed in self._states.values()):
            self._begin(place)

    def _begin(self, place: bytes) -> TableFeeds:
        """Open the file of rows, and bring it to `place`."""
        rows = self._rows = FedRows(self._settings.rows)
        on = [feed for feed in self._states.values() if feed.is_on]
        feeds = self._feeds = TableFeeds(rows, on, self._read_tables() if on else ())
        if rows.place() != place:
            rows.keep_only(())
            for table_id in feeds.tables:
                self._load(table_id)
        rows.keep_only(feeds.tables)
        self._make_topics(on)
        rows.commit(place)
        return feeds

    def close(self) -> None:
        if self._orders is not None:
            self._orders.close()
        if self._loading is not None:
            self._loading.close()
        self._held.close()
        if self._rows is not None:
            self._rows.close()

    def follow(self, record: Decisions, offset: int) -> int:
        """Take the events of a record, and return how many there are."""
        if self._feeds is None:
            return 0
        return self._take(self._feeds.follow(record, offset))

    def _take(self, events: Sequence[Told]) -> int:
        before, place = len(self._waiting), 0
        while True:
            place, error = prepare_until_held(events, place, self._schemas, self._waiting)
            if place == len(events):
                return len(self._waiting) - before
            event = events[place]
            assert isinstance(event, RowTold), "nothing else has a schema, or is held"
            if error is not None:
                self._held.begin(event.feed, error)
            self._keep(event)
            place += 1

    def _keep(self, event: RowTold) -> None:
        """Keep an event of a feed that is held."""
        if not event.feed.is_on:
            return
        prepared = prepare_row(event, NO_HEADS)
        if prepared is not None:
            rows = prepared.before, prepared.after
            self._waiting += self._held.keep(event, prepared.key, rows, self._partitions)

    def tell_held(self) -> None:
        """Take what can be told of what was kept, where there is room for it."""
        self._waiting += self._held.tend(self._states.values())

    @property
    def is_loading(self) -> bool:
        """Whether the rows of a table are read for a new feed."""
        return self._loading is not None

    def has_orders(self) -> bool:
        """Look for orders, and return whether one can be carried out by `obey`, when nothing waits.
        One for a feed whose table's rows are not there yet has them read first, piece by piece."""
        if self._loading is not None:
            self._loading.go_on()
            return self._loading.is_near
        if self._orders is None:
            return False
        if self._found:
            return True
        try:
            self._found = self._orders.read(ORDERS_MAX, 0.0)
        except AccessDenied as error:
            self._read_no_orders(error)
            return False
        topic = self._topics.feeds.name
        if (topic, 0) in self._orders.lost:
            first, _ = self._orders.offsets(topic, 0)
            LOG.warning(
                "offset %d of %s is gone: orders are read from %d", self._taken, topic, first
            )
            self._orders.start(topic, 0, first)
            self._taken = first
        return bool(self._found)

    def _read_no_orders(self, error: AccessDenied) -> None:
        """Go on without orders: with rights from before there were feeds all else must go on."""
        LOG.warning("orders about feeds are not read (leasehold setup-acls): %s", error.message)
        if self._orders is not None:
            self._orders.close()
        self._orders = None

    def obey(self, position: LogPosition, place: bytes) -> None:
        """Carry out the orders that were found. Everything up to `position` is published."""
        assert not self._waiting, "rows topics have all that was followed"
        while self._found:
            record = self._found[0]
            try:
                order = decode_order(record.value or b"")
                if not self._carry_out(order, position, place):
                    return  # it is carried out when the rows are there, and those behind it then
            except MalformedRequest as error:
                LOG.warning("the order about feeds at offset %d: %s", record.offset, error.message)
            self._taken = record.offset + 1
            del self._found[0]

    def snapshot(self, position: LogPosition) -> int:
        """Take the next rows of a snapshot that is under way, and return how many there are."""
        if self._feeds is None or not self._feeds.has_snapshot:
            return 0
        return self._take(self._feeds.snapshot(position.lsn, position.offset))

    def messages(self) -> Iterator[FeedMessage]:
        """Yield the messages of the next transaction; the same again when it is made again."""
        transactions, now_us = self._topics.feed_transactions.name, unix_us()
        for prepared in self._waiting:
            if isinstance(prepared, HeldEvent):
                yield FeedMessage(prepared.topic, None, prepared.record, 0)
            elif isinstance(prepared, LateMessages):
                yield from prepared.messages
            else:
                yield from messages_of(prepared, self._partitions, transactions, now_us)

    def list_changes(self, position: LogPosition) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield (key, value) of what the next transaction, up to `position`, stores of the
        feeds."""
        for form in sorted({feed.format for feed in self._states.values() if feed.is_on}):
            yield FOLLOWED_KEYS[form], b"%d" % position.offset
        for feed in self._states.values():
            if feed.changed:
                yield STATE_PREFIX + feed.name.encode(), feed.to_json()
        for name in self._gone:
            yield STATE_PREFIX + name.encode(), None
        if self._taken != self._taken_stored:
            yield ORDERS_KEY, b"%d" % self._taken

    def published(self, place: bytes) -> None:
        """Note that the transaction up to `place` is over."""
        for feed in self._states.values():
            feed.changed = False
        self._gone.clear()
        self._taken_stored = self._taken
        self._waiting.clear()
        self._held.published()
        if self._rows is not None:
            self._rows.commit(place)
            self._bytes_before = self._rows.bytes_moved

    # ------------------------------------------------------------------ orders

    def _carry_out(self, order: Order, position: LogPosition, place: bytes) -> bool:
        """Return whether the order is carried out, or refused; else rows are to be read first."""
        match order:
            case CreateFeed():
                return self._create(order, position, place)
            case DropFeed():
                self._drop(order.table)
            case SnapshotSignal():
                for feed in self._states.values():
                    if feed.is_on and feed.name in order.tables:
                        feed.stop_snapshot() if order.stop else feed.start_snapshot()
        return True

    def _create(self, order: CreateFeed, position: LogPosition, place: bytes) -> bool:
        feed = Feed(self._topics.database, __version__, order.definition, order.order)
        known = self._states.get(feed.name)
        if known is not None and known.is_on:
            LOG.warning(
                "there is a feed of %s already: the order for another is left out", feed.name
            )
            return True
        try:
            self._refuse_name(feed)
            table = self._find(feed.name)
            self._make_topics([feed])
            feed.begin(table, position.lsn)
            self._schemas.begin(feed)
        except LeaseholdError as error:
            if isinstance(error, BusUnavailable) and not isinstance(error, AccessDenied):
                raise
            LOG.warning("no feed of %s: %s", feed.name, error.message)
            feed.refuse(error.message)
            self._put_state(feed)
            self._end_loading()
            return True
        # First the file: where it was left at this very place it has the rows of other feeds.
        feeds = self._feeds or self._begin(place)
        if table.table_id not in feeds.tables and not self._has_loaded(table.table_id):
            return False
        self._put_state(feed)
        feeds.add(feed, table)
        LOG.info("the feed %s begins behind LSN %d", feed.topic, position.lsn)
        return True

    def _has_loaded(self, table_id: int) -> bool:
        """Return whether the rows of a table are there as of what is published; else begin to read
        them. ⚠ Nothing is published between that and the feed's begin."""
        assert self._rows is not None
        loading, self._loading = self._loading, None
        if loading is not None:
            with loading:
                if loading.table_id == table_id:
                    loading.finish()
                    return True
            self._rows.clear(loading.table_id)  # another table has the name by now
        topic = self._topics.rows(table_id).name
        if topic not in self._admin.list_names(self._topics.changefeed.name):
            self._rows.clear(table_id)
            return True
        self._loading = RowsLoading(self._kafka, topic, table_id, self._rows, self._give_up)
        return False

    def _end_loading(self) -> None:
        if self._loading is not None:
            assert self._rows is not None
            self._rows.clear(self._loading.table_id)
            self._loading.close()
            self._loading = None

    def _put_state(self, feed: Feed) -> None:
        self._gone.discard(feed.name)
        self._states[feed.name] = feed

    def _refuse_name(self, feed: Feed) -> None:
        """Raises MalformedRequest where the topic would be another one's, or the feeds are too
        many."""
        if any(
            each.topic == feed.topic and each.name != feed.name for each in self._states.values()
        ):
            raise MalformedRequest(f"topic {feed.topic} is another feed's")
        if len(feed.topic) > 249 or feed.topic == self._topics.feed_transactions.name:
            raise MalformedRequest(f"{feed.topic} can't be a feed's topic")
        if len(self._states) >= FEEDS_MAX:
            raise MalformedRequest(f"there are {FEEDS_MAX} feeds: drop one of them first")

    def _drop(self, name: str) -> None:
        if self._states.pop(name, None) is None:
            LOG.warning("there is no feed of %s to be dropped", name)
            return
        self._gone.add(name)
        self._schemas.forget(name)
        if self._feeds is not None:
            self._feeds.drop(name)

    def _find(self, name: str) -> Descriptor:
        schema, _, table = name.partition(".")
        tables = self._read_tables()
        wanted = table if schema == PUBLIC else name
        within = "" if schema == PUBLIC else schema
        found = [each for each in tables if wanted in each.names and each.schema == within]
        if not found:
            raise UnknownTable(f"table {name!r} does not exist")
        (one,) = found[:1]
        if one.mirror or any(each.mirror == one.table_id for each in tables):
            raise TableBusy(f"the primary key of {name} is being changed: try again after that")
        return one

    def _read_tables(self) -> list[Descriptor]:
        """Return the newest version of every table, as of what is published."""
        records = read_to_end(
            self._kafka, CLIENT_ID, self._topics.versions.name, give_up=self._give_up
        )
        newest = {record.key: record.value for record in records}
        tables = []
        for value in newest.values():
            try:
                tables += [from_wire(event.body) for event in read_events([value])]
            except MalformedRequest as error:
                LOG.error("a version that can't be read is left out: %s", error.message)
        return tables

    def _load(self, table_id: int) -> None:
        """Fill the rows of a table from its rows topic, which has all that is published."""
        assert self._rows is not None
        topic = self._topics.rows(table_id).name
        if topic not in self._admin.list_names(self._topics.changefeed.name):
            self._rows.clear(table_id)
            return
        records = read_to_end(
            self._kafka, CLIENT_ID, topic, timeout_s=LOAD_TIMEOUT_S, give_up=self._give_up
        )
        count = self._rows.load(table_id, ((record.key, record.value) for record in records))
        LOG.info("%d records of %s were read for its feed", count, topic)

    def _make_topics(self, feeds: Iterable[Feed]) -> None:
        wanted = []
        for feed in feeds:
            definition = feed.definition
            kept_ms = definition.kept_hours * _HOUR_MS or -1
            wanted.append(self._topics.feed(feed.topic, definition.partitions, kept_ms))
            if definition.transactions:
                wanted.append(self._topics.feed_transactions)
        self._admin.create(wanted, self._topics.replication_factor)
        names = [topic.name for topic in wanted]
        self._partitions |= self._admin.partitions(names) if names else {}
        for feed in feeds:
            there, said = self._partitions[feed.topic], feed.definition.partitions
            if there != said and not feed.table_id:
                raise InvalidArgument(
                    f"topic {feed.topic} is there, with {there} partitions: say --partitions"
                    f" {there}, or delete it first"
                )


def _said_of(feed: Feed) -> tuple[str, str, str]:
    """Return name, status and words of a feed for people."""
    if feed.hold is None or not feed.is_on:
        return feed.name, feed.status, feed.words[:200]
    kept = feed.hold.written - feed.hold.told
    return feed.name, HELD, f"{kept} records wait for the schema registry: {feed.hold.words[:150]}"


def _offset_of(value: bytes | None) -> int:
    return int(value) if value and value.isdigit() and len(value) < 19 else 0
