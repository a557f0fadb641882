"""A watcher's source of events: what log, acks, versions and jobs say (`admin/watch.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

from leasehold.adapters.codec.log_header import LogHeader, read_header
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.leader_wait import ask_once_led
from leasehold.adapters.kafka.reader import FETCH_WAIT_MS, TO_THE_END_MS, Record, TopicReader
from leasehold.adapters.kafka.topic_ends import TopicEndsReader
from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.admin.last_seen import last_heard
from leasehold.admin.sender_clocks import SenderClocks
from leasehold.admin.view import (
    LOG_TIME,
    SILENT_AFTER_US,
    ClaimSeen,
    Event,
    Heard,
    LogSeen,
    Reachable,
    TopicEnds,
)
from leasehold.model.errors import LogStopped, MalformedRequest
from leasehold.model.records.acks import (
    AccessReport,
    Ack,
    CheckReport,
    HoldingReport,
    MergeReport,
    NodeReport,
    PartReport,
    ProcessReport,
)
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import ChangefeedReport, JobEvent, JobProgress, SparkReport
from leasehold.model.records.log import JobForgotten
from leasehold.model.time_units import NS_PER_US
from leasehold.model.topics import Topics
from leasehold.replication.changefeed import job_of_key, number_of_key
from leasehold.settings.environment import KafkaSettings

RECORDS_MAX: Final = 2_000
BRIEF_WAIT_MS: Final = 20
"""An end is told when a fetch has found nothing for so long: a command waits for five of them."""
LOG_TAIL_RECORDS: Final = 300
"""Of the log, the last few records are enough to see where it stands and who writes it."""
ACKS_TAIL_RECORDS: Final = 2_000
"""Each node acknowledges many times a second when it works: room for the last one of every node
that lives. The last ones of others lie before it (`_silent`)."""
SILENT_LOOK_S: Final = 5.0
"""Longest that those are looked for: whoever asks for the state waits for it."""
ROWS_TABLES_MAX: Final = 256
"""Of so many tables it is asked how many rows their topics have about: those with the newest
versions, which jobs are at, and which people look at."""

_SHOWN: Final = (
    *(Ack, AccessReport, HoldingReport, CheckReport, NodeReport, PartReport),
    *(VersionEvent, JobEvent, JobProgress, SparkReport, ChangefeedReport, MergeReport),
    ProcessReport,
)


def shown_event(codec: MessagePackCodec, data: bytes, is_version: bool) -> Any:
    """Return what a record of a topic other than the log says; None for what is not shown, and for
    what can't be read, be it of a newer release or of nobody's."""
    try:
        event = codec.decode_as(VersionEvent, data) if is_version else codec.decode(data)
    except MalformedRequest:
        return None
    return event if isinstance(event, _SHOWN) else None


class KafkaEvents:
    """The events of a cluster's topics, for one thread.

    It connects when first asked, and again after Kafka was away.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        topics: Topics,
        give_up: Callable[[], bool] = lambda: False,
        *,
        brief: bool = False,
    ) -> None:
        """Connect to nothing yet. `give_up` is asked twice a second while a broker is waited for;
        when it returns true, BusUnavailable is raised. `brief`: somebody waits for the topics'
        ends, and does not read on for long."""
        self._topics = topics
        self._codec = MessagePackCodec()
        self._reader = TopicReader(
            settings,
            "leasehold-watch",
            read_committed=True,
            tell_ends=True,
            give_up=give_up,
            fetch_wait_ms=BRIEF_WAIT_MS if brief else FETCH_WAIT_MS,
        )
        self._settings = settings
        self._give_up = give_up
        self._begun = False
        self._found: list[Event] = []  # read, and not given out
        self._newest: dict[str, dict[bytes | None, Record]] = {}  # of topics not read to their ends
        self._acks_from = 0
        self._first_ends: dict[str, int] = {}
        self._heard: set[str] = set()
        self._read_to: dict[str, int] = {}  # the next offset of each topic
        self._looked_back = False
        self._clocks = SenderClocks()
        self._listens_until_ns = 0  # 0: not everything has been read that stood there
        self._ends: TopicEndsReader | None = None
        self._table_ids: dict[int, None] = {}  # the one with the newest version last

    def events(self, timeout_s: float) -> list[Event]:
        """Raises BusUnavailable while Kafka can't be reached."""
        if not self._begun:
            self._begin()
        found = self._found
        try:
            for record in self._reader.read(RECORDS_MAX, timeout_s):
                self._read_to[record.topic] = record.offset + 1
                newest = self._newest.get(record.topic)
                if newest is None:
                    found += self._decoded(record)
                else:
                    newest.pop(record.key, None)
                    newest[record.key] = record
            found += self._ended()
        except LogStopped:
            # What a watcher has not seen before it was deleted, it can do without.
            self._begun = False
        # Whatever is asked from here on may fail, and what was read comes only once.
        if not self._looked_back and self._at_ends:
            for ack in self._silent():
                found += (ack, *self._clocks.stand_before(ack))
            self._looked_back = True
            self._listens_until_ns = boottime_ns() + SILENT_AFTER_US * NS_PER_US
        found += self._topic_ends()
        self._found = []
        return found

    def _ended(self) -> list[Event]:
        """Return what the newest records say of each key of a compacted topic, once that has been
        read to its end: of those before, which are not compacted yet, nothing is decoded."""
        found: list[Event] = []
        for topic in [topic for topic in self._newest if (topic, 0) in self._reader.ended]:
            for record in self._newest.pop(topic).values():
                found += self._decoded(record)
        return found

    @property
    def not_read(self) -> dict[str, int]:
        """Return about how many records are left of each topic that was never read to its end (-1:
        not known yet), by the topic's name without the database's."""
        if self._at_ends and self._looked_back and not self._listens():
            return {}
        left = {}
        for topic in self._followed():
            if (topic, 0) not in self._reader.ended:
                end = self._first_ends.get(topic)
                read = self._reader.next_offset(topic, 0) if end is not None else 0
                left[topic.partition(".")[2]] = -1 if end is None else max(0, end - read)
        # The last words of those who have been silent for long stand there, too.
        return left or {self._topics.acks.name.partition(".")[2]: -1}

    def close(self) -> None:
        if self._ends is not None:
            self._ends.close()
        self._reader.close()

    def _followed(self) -> dict[str, int | None]:
        """How many of each topic's newest records are read; None: all."""
        topics = self._topics
        return {
            topics.log.name: LOG_TAIL_RECORDS,
            topics.acks.name: ACKS_TAIL_RECORDS,
            topics.versions.name: None,
            topics.jobs.name: None,
            topics.notices.name: 0,  # what versions and jobs say, sooner
        }

    # --- inside --------------------------------------------------------------------------------

    @property
    def _at_ends(self) -> bool:
        return self._begun and len(self._reader.ended) == len(self._followed())

    def _begin(self) -> None:
        self._newest = {self._topics.versions.name: {}, self._topics.jobs.name: {}}
        for topic, tail in self._followed().items():
            first, end = ask_once_led(partial(self._reader.offsets, topic, 0))
            # Behind what was read before, if it begins anew: each tells of itself in order.
            read = min(self._read_to.get(topic, 0), end)
            begin = first if tail is None else max(first, end - tail, read)
            self._reader.start(topic, 0, begin)
            self._first_ends[topic] = end
            if topic == self._topics.acks.name:
                self._acks_from = begin
        self._begun = True

    def _listens(self) -> bool:
        """Return whether it is not known yet who is silent, since nobody was heard so far: that
        takes a moment where anybody lives, and as long as one who lives may be still else."""
        return boottime_ns() < self._listens_until_ns and self._clocks.in_doubt(unix_us())

    def _topic_ends(self) -> list[Event]:
        """Return the topics' newest ends. Raises BusUnavailable: that is also how a broker that is
        away is noticed."""
        if self._ends is None:
            self._ends = TopicEndsReader(self._settings, self._topics, "leasehold-watch-ends")
        newest = list(islice(reversed(self._table_ids), ROWS_TABLES_MAX))
        ends = self._ends.poll(newest)
        return [] if ends is None else [TopicEnds(ends), Reachable("kafka")]

    def _silent(self) -> list[Ack]:
        """The last acknowledgement of each node that has not been heard of in the acks' tail: one
        that died may be a minute of others' work behind, and must not look as if it had never been
        there. One that took its leave says so in it."""
        topic = self._topics.acks.name
        acks = _AckWindows(self._settings, topic, self._codec, self._give_up)
        try:
            found = last_heard(
                acks.window, ACKS_TAIL_RECORDS, acks.first(), self._acks_from, self._heard
            )
        except LogStopped:
            return []  # deleted meanwhile: the next look begins later
        finally:
            acks.close()
        return list(found.values())

    def _decoded(self, record: Record) -> list[Event]:
        if record.value is None:
            return self._forgotten(record.topic, record.key or b"")
        if record.topic == self._topics.log.name:
            return [*self._log_event(record)]
        event = shown_event(self._codec, record.value, record.topic == self._topics.versions.name)
        if isinstance(event, VersionEvent):
            self._table_ids.pop(event.table_id, None)
            self._table_ids[event.table_id] = None
        elif isinstance(event, Ack):
            self._heard.add(event.node)
        return [] if event is None else [event, *self._clock_seen(record, event)]

    def _clock_seen(self, record: Record, event: Event) -> Iterable[Event]:
        """Return what a report says of its sender's clock."""
        if record.offset >= self._first_ends.get(record.topic, 0):
            return self._clocks.hear(event, unix_us())
        if record.topic == self._topics.acks.name:
            self._clocks.stand(event)
        return ()

    def _forgotten(self, topic: str, key: bytes) -> list[Event]:
        """A table, or a job, that is nobody's any more."""
        if topic == self._topics.versions.name:
            table_id = number_of_key(key, b"")
            if table_id is not None:
                self._table_ids.pop(table_id, None)
        elif topic == self._topics.jobs.name:
            job_id = job_of_key(key)
            if job_id is not None:  # else it is what Spark has told of a run
                return [JobForgotten(job_id)]
        return []

    def _log_event(self, record: Record) -> Iterator[Event]:
        assert record.value is not None
        try:
            header = read_header(record.value)
        except LogStopped:
            return  # nodes stop there and say so; a watcher shows who still moves
        if isinstance(header, LogHeader):
            seen = LogSeen(record.offset, *header)
            yield seen
            if seen.closed_us and record.offset >= self._first_ends.get(record.topic, 0):
                yield Heard(LOG_TIME, seen.closed_us - unix_us())
        elif header is not None:
            yield ClaimSeen(record.offset, header.epoch, header.node)


class _AckWindows:
    """Parts of the acks topic, read out of turn."""

    def __init__(
        self,
        settings: KafkaSettings,
        topic: str,
        codec: MessagePackCodec,
        give_up: Callable[[], bool],
    ) -> None:
        self._topic = topic
        self._codec = codec
        self._give_up = give_up
        self._until_ns = boottime_ns() + int(SILENT_LOOK_S * 1e9)
        self._reader = TopicReader(
            settings,
            "leasehold-watch-silent",
            tell_ends=True,
            give_up=give_up,
            fetch_wait_ms=TO_THE_END_MS,
        )

    def first(self) -> int:
        return ask_once_led(partial(self._reader.first_offset, self._topic, 0))

    def window(self, offset: int) -> dict[str, Ack]:
        """The last acknowledgement of each node among the records from `offset` on; of fewer of
        them, or none, once the time is over."""
        found: dict[str, Ack] = {}
        self._reader.start(self._topic, 0, offset)
        end = offset + ACKS_TAIL_RECORDS
        while self._reader.next_offset(self._topic, 0) < end and not self._reader.ended:
            if boottime_ns() > self._until_ns or self._give_up():
                break
            for record in self._reader.read(ACKS_TAIL_RECORDS, 0.1):
                ack = self._ack(record)
                if ack is not None and record.offset < end:
                    found[ack.node] = ack
        return found

    def _ack(self, record: Record) -> Ack | None:
        try:
            event: Any = self._codec.decode(record.value or b"")
        except MalformedRequest:
            return None
        return event if isinstance(event, Ack) else None

    def close(self) -> None:
        self._reader.close()
