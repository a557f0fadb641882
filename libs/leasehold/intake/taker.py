"""The loop of an intake: events in, change requests out, exactly once.

One Kafka transaction has the requests that events became, the dead letters of those that became
none, and the places behind them. Whatever happens in between, the next start reads the places back
and goes on there; what a master has decided of a transaction without an end it decides once, by the
ids (`places.py`).

A partition whose next event has to wait is *held*: it is read again from that event, each few
seconds, and the others go on.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from threading import Event as Flag
from typing import Final, NamedTuple

from leasehold import __version__
from leasehold.adapters.http.schema_registry import SchemaRegistry
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.leader_wait import ask_once_led
from leasehold.adapters.kafka.reader import Record, TopicReader
from leasehold.adapters.kafka.transaction import TransactionAborted, TransactionWriter
from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.events.foreign.row_events import Layout
from leasehold.events.foreign.row_operations import Rules
from leasehold.events.foreign.source_values import Units
from leasehold.intake.decoding import Decoder, Held, Schemas
from leasehold.intake.event_messages import EventMessages, Outgoing
from leasehold.intake.places import Course, Place, event_id, read_place
from leasehold.intake.tables import Tables
from leasehold.model import byte_limits, metrics
from leasehold.model.closing import Closing
from leasehold.model.errors import BusUnavailable, MalformedRequest
from leasehold.model.measures import Measures, Sample
from leasehold.model.signatures import Signer
from leasehold.model.time_units import NS_PER_MS, NS_PER_S, US_PER_MS
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings
from leasehold.settings.intake import BEFORE, IGNORE, LATEST, IntakeSettings
from leasehold.settings.schema_registry import SchemaRegistrySettings

CLIENT_ID: Final = "intake"
PLACE_PREFIX: Final = "place"
STATE_PREFIX: Final = "state"
READ_MAX: Final = 1_000
IDLE_WAIT_S: Final = 0.1
BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of a transaction's messages, reached by whole events."""
READ_AHEAD_KBYTES: Final = byte_limits.MESSAGE * 4 // 1024
HELD_AGAIN_NS: Final = 2_000_000_000
"""How often an event that has to wait is looked at again."""
LOOK_EVERY_NS: Final = 10_000_000_000
"""How often it is looked whether a topic is there by now, has more partitions, or is another."""
REPORT_EVERY_NS: Final = 5_000_000_000
RESEND_MAX: Final = 100
ANSWER_S: Final = 5.0
ALL: Final = -1
"""Instead of a partition: those of a topic that is not there."""
Partition = tuple[str, int]
LOG: Final = logging.getLogger("leasehold.intake")


class Hold(NamedTuple):
    """The reason why a partition, or a whole topic (ALL), is not read on."""

    words: str
    since_us: int
    again_ns: int
    is_tried: bool = False
    """Whether its next event is looked at again now."""


class Taker(Closing):
    """An intake: `open`, then `run` until `stop()`. Both raise LeaseholdError; then `close` it and
    begin with a new one."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Topics,
        settings: IntakeSettings,
        sign: Signer,
        stop: Callable[[], bool],
        registry: SchemaRegistrySettings,
        measures: Measures | None = None,
    ) -> None:
        """Make ready to open. `sign` signs requests; `measures`: where it counts."""
        self._kafka = kafka
        self._topics = topics
        self._settings = settings
        self._stop = stop
        self._measures = measures or Measures()
        self._routes = settings.tables()
        self._admin = TopicAdmin(kafka, CLIENT_ID)
        self._reader = TopicReader(
            kafka,
            CLIENT_ID,
            read_committed=True,
            queued_kbytes_max=READ_AHEAD_KBYTES,
            give_up=stop,
            may_lose=tuple(self._routes),
        )
        self._writer = TransactionWriter(
            kafka,
            CLIENT_ID,
            transactional_id=f"leasehold-intake.{topics.database}.{settings.name}",
            topic=topics.requests.name,
            give_up=stop,
        )
        self._tables = Tables(kafka, topics.versions.name, stop)
        asked = SchemaRegistry(registry, ANSWER_S, stop) if registry.urls else None
        self._schemas = Schemas(asked)
        self._messages = EventMessages(
            settings.name,
            topics,
            self._routes,
            Layout(settings.layout),
            Rules(
                settings.verify == BEFORE,
                settings.unknown_columns == IGNORE,
                Units(settings.units),
            ),
            Decoder(settings.encoding, self._schemas),
            self._tables.find,
            sign,
        )
        self._known: dict[Partition, Place] = {}  # as they were stored when it began
        self._courses: dict[Partition, Course] = {}
        self._read: deque[Record] = deque()
        self._batch: list[Outgoing] = []
        self._bytes = 0
        self._touched: set[Partition] = set()
        self._begun_ns = 0  # when the first event of the batch was taken
        self._held: dict[Partition, Hold] = {}
        self._looked_ns = 0
        self._reported_ns = 0
        self._counts = {"events": 0, "requests": 0, "letters": 0, "passed_over": 0}
        self._pause = Flag()  # never set

    # ------------------------------------------------------------------ begin and end

    def open(self) -> None:
        """Take over, and read back where to go on."""
        # First the takeover: it ends the transaction of a process that was killed, so that ends of
        # topics asked afterwards bound what that one can have sent.
        self._writer.open()
        topic = self._topics.intake
        self._admin.create([topic], self._topics.replication_factor)
        stored = read_compacted(self._kafka, CLIENT_ID, topic.name, give_up=self._stop)
        prefix = f"{PLACE_PREFIX}/{self._settings.name}/"
        for key, value in stored.items():
            name = key.decode("utf-8", "replace")
            if not name.startswith(prefix):
                continue
            source, _, partition = name.removeprefix(prefix).rpartition("/")
            try:
                if partition.isdecimal():
                    self._known[source, int(partition)] = read_place(value)
            except MalformedRequest as error:
                # Begun anew it would apply everything twice: a person has to decide.
                raise BusUnavailable(
                    f"the place {name!r} on topic {topic.name} can't be read: {error.message}"
                ) from error
        self._tables.read_all()
        self._look_for_topics()

    def run(self) -> None:
        """Take events until `stop()`; what was taken by then is sent."""
        while not self._stop():
            now_ns = boottime_ns()
            if now_ns - self._looked_ns >= LOOK_EVERY_NS:
                self._look_for_topics()
            self._tables.follow()
            self._release_held(now_ns)
            self._read_on()
            self._take()
            if self._is_due(boottime_ns()):
                self._commit()
        self._commit(ends=True)

    def close(self) -> None:
        """End without waiting for what is under way."""
        self._writer.close()
        self._admin.close()
        self._reader.close()
        self._tables.close()
        self._schemas.close()

    def samples(self) -> Iterator[Sample]:
        """Yield what a scrape is told; from any thread."""
        yield from self._measures.samples()
        lags: dict[str, int] = dict.fromkeys(self._routes, 0)
        for (topic, partition), course in list(self._courses.items()):
            end = self._reader.known_end(topic, partition)
            lags[topic] += max(0, (end or 0) - course.next)
        held = {topic for topic, _ in list(self._held)}
        for topic, lag in lags.items():
            yield Sample(metrics.INTAKE_LAG, (topic,), lag)
            yield Sample(metrics.INTAKE_HELD, (topic,), int(topic in held))

    # ------------------------------------------------------------------ topics

    def _look_for_topics(self) -> None:
        """Begin partitions that are there and are not read yet; of a topic that was made anew all
        of them."""
        self._looked_ns = boottime_ns()
        there = self._admin.list_names(self._topics.requests.name)
        for topic in self._routes:
            if topic not in there:
                self._lose_topic(topic)
                continue
            is_back = (topic, ALL) in self._held
            self._go_on((topic, ALL))
            topic_id = self._admin.topic_id(topic, self._stop)
            for partition in range(self._reader.partitions(topic)):
                where = (topic, partition)
                course = self._courses.get(where)
                if course is None or course.stored.topic_id != topic_id:
                    self._begin(where, topic_id)
                elif is_back:
                    self._reader.start(topic, partition, course.next)

    def _lose_topic(self, topic: str) -> None:
        """Read no more of a topic that is not there."""
        if (topic, ALL) not in self._held:
            for where in self._courses:
                if where[0] == topic:
                    self._drop_read(where)
                    self._reader.stop(*where)
        self._hold((topic, ALL), f"topic {topic!r}, which does not exist")

    def _begin(self, where: Partition, topic_id: str) -> None:
        """Begin a partition at its place, or where the settings say."""
        topic, partition = where
        known = self._known.pop(where, None)
        if where in self._courses:
            self._commit()
            self._drop_read(where)
            known = self._courses[where].stored
        first, end = ask_once_led(lambda: self._reader.offsets(topic, partition))
        if known is None:
            begin = end if self._settings.begin == LATEST else first
            known = Place(topic_id, begin)
            LOG.info("partition %d of %s is begun at offset %d", partition, topic, begin)
        elif known.topic_id != topic_id:
            LOG.warning(
                "topic %s was made anew: partition %d is read from its beginning (its place was"
                " offset %d of the one before)",
                topic,
                partition,
                known.next,
            )
            known = Place(topic_id, first)
        course = self._courses[where] = Course(known, end, unix_us() // US_PER_MS)
        if course.was_expired:
            LOG.warning(
                "partition %d of %s: an intake was ended in the middle of a transaction long ago;"
                " events from offset %d on that it had sent are applied a second time",
                partition,
                topic,
                known.next,
            )
        self._reader.start(topic, partition, course.next)

    def _drop_read(self, where: Partition) -> None:
        """Forget what was read of a partition and not taken."""
        self._read = deque(r for r in self._read if (r.topic, r.partition) != where)

    def _skip_lost(self) -> None:
        """Go on behind what was deleted before it was read, and leave a dead letter that says
        so."""
        self._look_for_topics()  # one that was made anew has lost nothing
        for topic, partition in list(self._reader.lost):
            where = (topic, partition)
            course = self._courses[where]
            self._commit()
            first, end = self._reader.offsets(topic, partition)
            words = (
                f"offsets {course.next} to {first - 1} were deleted before they were read"
                if first > course.next
                else f"offset {course.next} is beyond the end {end}: the broker has lost records"
            )
            LOG.error("partition %d of %s: %s", partition, topic, words)
            now_us = unix_us()
            lost = Record(topic, partition, course.next, None, None, ())
            named = event_id(
                self._settings.name,
                topic,
                course.stored._replace(ids_ms=now_us // US_PER_MS),
                partition,
                course.next,
            )
            letter = self._messages.letter(lost, named, MalformedRequest(words), now_us)
            course.next = first if first > course.next else end
            self._add(where, letter)
            self._commit()
            self._drop_read(where)
            self._reader.start(topic, partition, course.next)

    # ------------------------------------------------------------------ events

    def _read_on(self) -> None:
        """Read what is there, unless much was read and not taken."""
        if self._reader.lost:
            self._skip_lost()
        if len(self._read) >= READ_MAX:
            return
        if not self._courses:
            self._pause.wait(IDLE_WAIT_S)
            return
        waits = not self._read and not self._batch
        self._read.extend(self._reader.read(READ_MAX, IDLE_WAIT_S if waits else 0.0))

    def _take(self) -> None:
        """Take events that were read into the batch, as many as it has room for."""
        while self._read and not self._is_full:
            record = self._read[0]
            where = (record.topic, record.partition)
            course = self._courses[where]
            hold = self._held.get(where)
            if record.offset < course.next or (hold is not None and not hold.is_tried):
                self._read.popleft()
                continue
            now_us = unix_us()
            if not course.may_send(record.offset, now_us // US_PER_MS):
                self._commit()
                self._store(where, course.reserve(record.offset, now_us // US_PER_MS))
            named = event_id(
                self._settings.name, record.topic, course.stored, record.partition, record.offset
            )
            try:
                message = self._messages.message_of(record, named, now_us)
            except Held as held:
                self._read.popleft()
                self._drop_read(where)
                self._reader.stop(*where)
                self._hold(where, held.words)
                continue
            self._read.popleft()
            self._go_on(where)
            course.take(record.offset)
            self._add(where, message)

    def _add(self, where: Partition, message: Outgoing | None) -> None:
        if not self._touched:
            self._begun_ns = boottime_ns()
        self._touched.add(where)
        self._counts["events"] += 1
        outcome = "passed_over"
        if message is not None:
            self._batch.append(message)
            self._bytes += len(message.key) + len(message.value)
            outcome = "letters" if message.is_letter else "requests"
            if message.is_letter:
                self._measures.add(metrics.INTAKE_LETTERS, 1, (where[0],))
        self._counts[outcome] += 1
        self._measures.add(metrics.INTAKE_EVENTS, 1, (where[0],))

    @property
    def _is_full(self) -> bool:
        return len(self._batch) >= self._settings.events_max or self._bytes >= BATCH_BYTES_MAX

    def _is_due(self, now_ns: int) -> bool:
        if now_ns - self._reported_ns >= REPORT_EVERY_NS:
            return True
        if not self._touched:
            return False
        waited_ns = now_ns - self._begun_ns
        return self._is_full or waited_ns >= self._settings.linger_ms * NS_PER_MS

    # ------------------------------------------------------------------ holding

    def _hold(self, where: Partition, words: str) -> None:
        """Note that a partition has to wait, and say so once."""
        before = self._held.get(where)
        again_ns = boottime_ns() + HELD_AGAIN_NS
        if before is None:
            LOG.warning("%s waits for %s; the others go on", _named(where), words)
        since_us = unix_us() if before is None else before.since_us
        self._held[where] = Hold(words, since_us, again_ns)

    def _go_on(self, where: Partition) -> None:
        hold = self._held.pop(where, None)
        if hold is not None:
            waited_s = (unix_us() - hold.since_us) // 1_000_000
            LOG.warning("%s goes on, after %d s", _named(where), waited_s)

    def _release_held(self, now_ns: int) -> None:
        """Read held partitions again from the event that has to wait, where it is time."""
        for where, hold in list(self._held.items()):
            if where[1] != ALL and not hold.is_tried and now_ns >= hold.again_ns:
                self._held[where] = hold._replace(is_tried=True)
                self._reader.start(*where, self._courses[where].next)

    # ------------------------------------------------------------------ transactions

    def _store(self, where: Partition, place: Place) -> None:
        """Write a transaction of a place alone."""
        self._write([], {where: place})

    def _commit(self, *, ends: bool = False) -> None:
        """Write the transaction of what was taken. `ends`: nothing follows it."""
        now_ms = unix_us() // US_PER_MS
        places = {where: self._courses[where].place(now_ms) for where in self._touched}
        due = boottime_ns() - self._reported_ns >= REPORT_EVERY_NS
        if self._touched or due or ends:
            began_ns = boottime_ns()
            self._write(self._batch, places, report=True)
            if self._touched:
                spent_s = (boottime_ns() - began_ns) / NS_PER_S
                self._measures.observe(metrics.INTAKE_S, spent_s)
        self._batch, self._bytes = [], 0
        self._touched.clear()
        if ends:
            self._write([], {w: course.sealed() for w, course in self._courses.items()})

    def _write(
        self, messages: list[Outgoing], places: Mapping[Partition, Place], *, report: bool = False
    ) -> None:
        topic = self._topics.intake.name
        for _attempt in range(RESEND_MAX):
            try:
                self._writer.begin()
                for each in messages:
                    self._writer.send(each.topic, 0, each.key, each.value, each.headers)
                for (source, partition), place in places.items():
                    key = f"{PLACE_PREFIX}/{self._settings.name}/{source}/{partition}"
                    self._writer.send(topic, 0, key.encode(), place.to_json())
                if report:
                    key = f"{STATE_PREFIX}/{self._settings.name}"
                    self._writer.send(topic, 0, key.encode(), self._report())
                self._writer.commit()
                break
            except TransactionAborted as error:
                self._measures.add(metrics.INTAKE_ABORTS)
                LOG.warning("Kafka transaction failed and is sent again: %s", error)
        else:
            raise BusUnavailable(f"Kafka aborted {RESEND_MAX} transactions in a row")
        if report:
            self._reported_ns = boottime_ns()
        for where, place in places.items():
            self._courses[where].store(place)

    def _report(self) -> bytes:
        """Return the state of the intake, for `leasehold intake status`."""
        settings = self._settings
        body = {
            "name": settings.name,
            "release": __version__,
            "at_us": unix_us(),
            "routes": dict(self._routes),
            "layout": settings.layout,
            "verify": settings.verify,
            "counts": self._counts,
            "held": [
                {
                    "topic": topic,
                    "partition": None if partition == ALL else partition,
                    "since_us": hold.since_us,
                    "waits_for": hold.words[:500],
                }
                for (topic, partition), hold in sorted(self._held.items())
            ],
        }
        return json.dumps(body, ensure_ascii=False).encode()


def _named(where: Partition) -> str:
    topic, partition = where
    return f"topic {topic}" if partition == ALL else f"partition {partition} of {topic}"
