"""Feeds that are held: their schema registry is away, and all else goes on.

The events of such a feed are made as far as they can be without the number of their schema, and
kept on a topic of its own, in the changefeed's transactions. When the registry answers they are
read back from there, told in their order, and then the feed goes on; in between, what comes is kept
behind them. How many were kept and told stands in the feed's state, in the same transactions, so
that each is told once, whatever ends the process (L6).

The registry is asked by a thread of its own: a feed that is held holds up nobody.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Lock
from typing import Any, Final, NamedTuple
from uuid import uuid4

import msgpack

from leasehold.adapters.http.schema_registry import SchemaRegistry
from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.leader_wait import ask_once_led
from leasehold.adapters.kafka.reader import STEADY_WAIT_MS, TopicReader
from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.adapters.os.worker_threads import WorkerThreads
from leasehold.changefeed.feed_messages import FeedMessage, PreparedRow, messages_of
from leasehold.changefeed.feed_schemas import Heads
from leasehold.events.debezium.binary_form import BinaryForm
from leasehold.model import byte_limits
from leasehold.model.closing import Closing
from leasehold.model.errors import BusUnavailable, LeaseholdError, RegistryUnavailable
from leasehold.model.time_units import NS_PER_S
from leasehold.model.topics import Topics
from leasehold.replication.feed_state import Feed, Hold
from leasehold.replication.table_feeds import RowTold
from leasehold.settings.changefeed import ChangefeedSettings
from leasehold.settings.environment import KafkaSettings

CLIENT_ID: Final = "changefeed-held"
READ_MAX: Final = 500
AGAIN_NS: Final = 2 * NS_PER_S
"""How often a registry that is away is asked."""
ROOM: Final = byte_limits.ENVELOPE
"""What a record has beside its messages at most."""
US_PER_HOUR: Final = 3_600_000_000
_SCHEMA, _EVENT = "schema", "event"
LOG: Final = logging.getLogger("leasehold.changefeed")


class HeldEvent(NamedTuple):
    """A record for the topic of what is kept."""

    topic: str
    record: bytes


class LateMessages(NamedTuple):
    """Messages of a feed that were kept, as they are told."""

    messages: tuple[FeedMessage, ...]


class _Schema(NamedTuple):
    """The schemas of kept events. `key_text` "": there are no keys."""

    kind: str
    indexes: bytes
    key_subject: str
    key_text: str
    value_subject: str
    value_text: str

    def subjects(self) -> Iterator[tuple[str, str]]:
        """Yield subject and text of each."""
        if self.key_text:
            yield self.key_subject, self.key_text
        yield self.value_subject, self.value_text


class _Backlog:
    """What is read back of one feed."""

    def __init__(self, hold: str, topic: str, reader: TopicReader) -> None:
        self.hold = hold
        self.topic = topic
        self.reader = reader
        self.records: deque[list[Any]] = deque()
        self.schemas: dict[int, _Schema] = {}
        self.again_ns = 0


class Numbers(Closing):
    """Numbers of schemas, asked for on a thread."""

    def __init__(self, registry: SchemaRegistry | None) -> None:
        self._registry = registry
        self._workers = WorkerThreads("schema-numbers", 1)
        self._lock = Lock()
        self._asked: set[tuple[str, str]] = set()
        self._answers: dict[tuple[str, str], int | LeaseholdError] = {}

    def find(self, subject: str, kind: str, text: str) -> int | None:
        """Return the number of a schema, None while it is asked for. Raises what the registry has
        answered, once."""
        name = (subject, text)
        with self._lock:
            answer = self._answers.pop(name, None)
            asks = answer is None and name not in self._asked and self._registry is not None
            if asks:
                self._asked.add(name)
        if asks:
            self._workers.submit(lambda: self._ask(subject, kind, text))
        if isinstance(answer, LeaseholdError):
            raise answer
        return answer

    def _ask(self, subject: str, kind: str, text: str) -> None:
        """Ask; on the thread of questions, so it never raises."""
        assert self._registry is not None, "who asks has one"
        answer: int | LeaseholdError
        try:
            answer = self._registry.number_of(subject, kind, text)
        except LeaseholdError as error:
            answer = error
        except Exception as error:  # a defect must not end the thread
            LOG.exception("asking for a schema of %s failed inside", subject)
            answer = RegistryUnavailable(f"asking failed inside: {error!r:.200}")
        with self._lock:
            self._asked.discard((subject, text))
            self._answers[subject, text] = answer

    def close(self) -> None:
        """End the thread, and wait a moment for it."""
        self._workers.stop(0.5)


class HeldFeeds(Closing):
    """All feeds of a changefeed that are held. For one thread."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Topics,
        settings: ChangefeedSettings,
        admin: TopicAdmin,
        give_up: Callable[[], bool],
        registry: SchemaRegistry | None,
    ) -> None:
        """Begin without any. `registry` None: there is none."""
        self._kafka = kafka
        self._topics = topics
        self._settings = settings
        self._admin = admin
        self._give_up = give_up
        self._numbers = Numbers(registry)
        self._backlogs: dict[str, _Backlog] = {}
        self._forms: dict[str, tuple[str, BinaryForm, int]] = {}  # as they were kept last
        self._over: list[str] = []  # topics that go when the transaction is over

    def sweep(self, feeds: Iterable[Feed]) -> None:
        """Delete, with the next transaction, topics that a process has left of feeds which are not
        held any more. Raises BusUnavailable."""
        free = [feed for feed in feeds if feed.definition.encoding.needs_registry and not feed.hold]
        names = [self._topics.held(feed.topic).name for feed in free]
        if names:
            there = self._admin.list_names(self._topics.changefeed.name)
            self._over += [name for name in names if name in there]

    def begin(self, feed: Feed, error: RegistryUnavailable) -> None:
        """Hold a feed from its next event on. Raises BusUnavailable."""
        topic = self._topics.held(feed.topic)
        try:
            self._admin.create([topic], self._topics.replication_factor)
        except AccessDenied as denied:
            feed.fail(f"{error.message}; and it can't be held: {denied.message}")
            LOG.error("the feed %s ends: %s", feed.name, feed.words)
            return
        # ⚠ One of a hold that is over may be about to go, and is this one's from here on.
        self._over = [name for name in self._over if name != topic.name]
        feed.set_hold(Hold(str(uuid4()), unix_us(), error.message[:300]))
        LOG.warning(
            "the feed %s is held, and all else goes on: %s. Its events are kept on %s, and told"
            " when the registry answers",
            feed.name,
            error.message,
            topic.name,
        )

    def keep(
        self, told: RowTold, key: bytes | None, rows: tuple[Any, Any], partitions: Mapping[str, int]
    ) -> Iterator[HeldEvent]:
        """Yield what is kept of an event, whose `key` has nothing before it; nothing where the feed
        fails by it."""
        feed, form = told.feed, told.form
        assert isinstance(form, BinaryForm), feed.name
        assert feed.hold is not None, feed.name
        topic = self._topics.held(feed.topic).name
        known = self._forms.get(feed.name)
        if known is None or known[0] != feed.hold.id or known[1] is not form:
            number = feed.hold.written + 1
            record = _pack(feed.hold.id, number, _SCHEMA, list(_schema_of(form)))
            self._forms[feed.name] = feed.hold.id, form, number
            self._count(feed, len(record))
            yield HeldEvent(topic, record)
        number = self._forms[feed.name][2]
        prepared = PreparedRow(told, key, *rows, b"")
        made = messages_of(prepared, partitions, "", unix_us(), ROOM)
        messages = [[each.partition, each.key, each.value] for each in made]
        record = _pack(feed.hold.id, feed.hold.written + 1, _EVENT, [number, messages])
        if feed.hold.bytes + len(record) > self._settings.held_bytes_max:
            LOG.error("the feed %s ends: too much is kept of it", feed.name)
            feed.fail(
                f"its schema registry was away for too long: more than {self._settings.held_mb} MB"
                " of events are kept (LEASEHOLD_FEED_HELD_MB); make it anew"
            )
            return
        self._count(feed, len(record))
        yield HeldEvent(topic, record)

    def _count(self, feed: Feed, size: int) -> None:
        hold = feed.hold
        assert hold is not None, feed.name
        feed.set_hold(hold._replace(written=hold.written + 1, bytes=hold.bytes + size))

    def tend(self, feeds: Iterable[Feed]) -> Iterator[LateMessages]:
        """Yield what can be told by now of what was kept, some of it, and let those feeds go on of
        which nothing more is there. Raises BusUnavailable."""
        held = [feed for feed in feeds if feed.is_on and feed.hold is not None]
        self._forget({feed.name for feed in held})
        for feed in held:
            yield from self._tend(feed)

    def _tend(self, feed: Feed) -> Iterator[LateMessages]:
        hold = feed.hold
        assert hold is not None, feed.name
        if unix_us() - hold.since_us > self._settings.held_hours * US_PER_HOUR:
            LOG.error("the feed %s ends: it was held for too long", feed.name)
            hours = self._settings.held_hours
            feed.fail(
                f"its schema registry was away for more than {hours} hours"
                " (LEASEHOLD_FEED_HELD_HOURS); make it anew"
            )
            return
        backlog = self._backlog(feed, hold)
        if boottime_ns() < backlog.again_ns:
            return
        if not backlog.records:
            self._read(backlog)
        while backlog.records and feed.hold is not None:
            _, number, kind, body = backlog.records[0]
            if kind == _SCHEMA:
                backlog.schemas[number] = _Schema(*body)
            elif number > feed.hold.told:
                heads = self._heads(feed, backlog, body[0])
                if heads is None:
                    return
                yield LateMessages(tuple(_messages(feed, heads, body[1])))
            backlog.records.popleft()
            if number > feed.hold.told:
                feed.set_hold(feed.hold._replace(told=number))
        if feed.hold is not None and feed.hold.told == feed.hold.written:
            if not feed.hold.written and not self._answers(feed, backlog):
                return
            self._end(feed)

    def _answers(self, feed: Feed, backlog: _Backlog) -> bool:
        """Return whether the registry answers by now, where nothing was kept that needs it."""
        form = feed.form
        assert isinstance(form, BinaryForm), feed.name
        backlog.schemas[0] = _schema_of(form)
        return self._heads(feed, backlog, 0) is not None

    def _end(self, feed: Feed) -> None:
        hold = feed.hold
        assert hold is not None, feed.name
        seconds = (unix_us() - hold.since_us) // 1_000_000
        LOG.warning(
            "the feed %s goes on, after %d s: %d records were kept of it",
            feed.name,
            seconds,
            hold.written,
        )
        feed.set_hold(None)

    def _heads(self, feed: Feed, backlog: _Backlog, number: int) -> Heads | None:
        """Return what stands before messages with a schema; None while that is not known. What the
        registry refuses ends the feed."""
        schema = backlog.schemas.get(number)
        if schema is None:
            feed.fail(f"schema {number} of what was kept is not there: make it anew")
            return None
        heads: list[bytes] = []
        for subject, text in schema.subjects():
            known = feed.schema_id(subject, text)
            if known is None:
                try:
                    known = self._numbers.find(subject, schema.kind, text)
                except RegistryUnavailable as error:
                    backlog.again_ns = boottime_ns() + AGAIN_NS
                    assert feed.hold is not None, feed.name
                    if feed.hold.words != error.message[:300]:
                        feed.set_hold(feed.hold._replace(words=error.message[:300]))
                    return None
                except LeaseholdError as error:
                    LOG.error("the feed %s has no schema, and ends: %s", feed.name, error.message)
                    feed.fail(error.message)
                    return None
                if known is None:
                    return None
                feed.keep_schema_id(subject, text, known)
            heads.append(b"\x00" + known.to_bytes(4, "big") + schema.indexes)
        return Heads(heads[0] if len(heads) > 1 else b"", heads[-1])

    def _backlog(self, feed: Feed, hold: Hold) -> _Backlog:
        found = self._backlogs.get(feed.name)
        if found is None or found.hold != hold.id:
            if found is not None:
                found.reader.close()
            reader = TopicReader(
                self._kafka,
                CLIENT_ID,
                read_committed=True,
                fetch_wait_ms=STEADY_WAIT_MS,
                give_up=self._give_up,
            )
            topic = self._topics.held(feed.topic).name
            found = self._backlogs[feed.name] = _Backlog(hold.id, topic, reader)
            reader.start(topic, 0, ask_once_led(lambda: reader.first_offset(topic, 0)))
        return found

    def _read(self, backlog: _Backlog) -> None:
        for record in backlog.reader.read(READ_MAX, 0.0):
            try:
                body = msgpack.unpackb(record.value or b"", use_list=True)
                if body[0] == backlog.hold:  # else of a hold that is over
                    backlog.records.append(body)
            except (ValueError, TypeError, LookupError, msgpack.UnpackException) as error:
                LOG.error("offset %d of %s is passed over: %r", record.offset, record.topic, error)

    def _forget(self, held: set[str]) -> None:
        """Leave what was kept of feeds that are not held any more."""
        for name in self._backlogs.keys() - held:
            backlog = self._backlogs.pop(name)
            backlog.reader.close()
            self._forms.pop(name, None)
            self._over.append(backlog.topic)

    def published(self) -> None:
        """Delete topics of which nothing is needed any more: the transaction that says so is over.
        One that can't be deleted is of no harm."""
        while self._over:
            topic = self._over.pop()
            try:
                self._admin.delete(topic)
            except BusUnavailable as error:
                LOG.warning("topic %s, which nobody needs any more, stays: %s", topic, error)

    def close(self) -> None:
        for backlog in self._backlogs.values():
            backlog.reader.close()
        self._numbers.close()


def _schema_of(form: BinaryForm) -> _Schema:
    wire = form.wire
    return _Schema(
        wire.SCHEMA_TYPE,
        wire.MESSAGE_INDEXES,
        f"{form.topic}-key",
        form.key_schema if form.key_columns else "",
        f"{form.topic}-value",
        form.value_schema,
    )


def _pack(*record: Any) -> bytes:
    return msgpack.packb(list(record))  # type: ignore[no-any-return]


def _messages(feed: Feed, heads: Heads, kept: Iterable[list[Any]]) -> Iterator[FeedMessage]:
    for partition, key, value in kept:
        told_key = None if key is None else heads.key + key
        yield FeedMessage(
            feed.topic, told_key, None if value is None else heads.value + value, partition
        )
