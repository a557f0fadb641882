"""Subscriber: version events of every table, and rows of the chosen ones under the version held.

It has no store, so a lease is all that makes its reading safe (D3): rows are decoded only while
the agent holds a valid lease on their table. Without one they wait, those of other tables do not,
and they are decoded under the version that the next lease names. What waits when its table is
dropped is left out: the version event of that says so.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from leasehold.adapters.os.clock import boottime_ns
from leasehold.catalog.descriptor import Descriptor, read_descriptor
from leasehold.catalog.states import READABLE, State
from leasehold.client.agent import Agent
from leasehold.events.avro_schema import avro_schema
from leasehold.events.json_schema import json_schema
from leasehold.events.rows import RowEvent, RowRecord, TruncationEvent, read_row
from leasehold.events.version_diff import ElementChange, diff
from leasehold.model.closing import Closing
from leasehold.model.errors import MalformedRequest, NotCoherent, UnknownTable
from leasehold.model.records.events import RowsTruncated, VersionEvent
from leasehold.settings.client import ClientSettings

POLL_S: Final = 0.2
LEASE_WAIT_S: Final = 0.2
BATCH_ROWS_MAX: Final = 1_000
LOG: Final = logging.getLogger("leasehold.subscriber")
NEWS_MAX: Final = 10_000
"""Version events kept for a subscriber that reads rows only; the oldest are dropped beyond it."""
WAITING_ROWS_MAX: Final = 10_000
"""Rows that wait for leases; with more of them nothing is read."""


class RowStream(Protocol):
    """Row images in; `adapters/kafka/row_stream.py` in practice."""

    def follow(self, table_id: int) -> None:
        """Read this table's rows from the topic's beginning on."""
        ...

    def rows(self, timeout_s: float, rows_max: int) -> list[RowRecord]: ...

    def close(self) -> None: ...


class VersionNotice(NamedTuple):
    """A published version and what it changed since the one heard of before (`changes` are every
    element of the first one heard of); `str()` is a line for people."""

    event: VersionEvent
    descriptor: Descriptor
    changes: tuple[ElementChange, ...]

    @property
    def avro(self) -> dict[str, Any]:
        """The public shape as an Avro schema."""
        return avro_schema(self.descriptor)

    @property
    def json_schema(self) -> dict[str, Any]:
        """The public shape as a JSON Schema."""
        return json_schema(self.descriptor)

    def __str__(self) -> str:
        words = "; ".join(str(change) for change in self.changes) or "no element changed"
        return f"{self.event.name} version {self.event.version}: {words}"


News: TypeAlias = VersionNotice | RowEvent | TruncationEvent


class Subscriber(Closing):
    """Iterate it, from one thread::

        with Subscriber(ClientSettings.read(), tables=["flights"]) as news:
            for each in news:
                print(each)

    An agent that was given is left open by `close`; one made from settings is closed.
    """

    def __init__(
        self,
        source: Agent | ClientSettings | None = None,
        tables: Sequence[str] = (),
        *,
        row_source: RowStream | None = None,
    ) -> None:
        self._owns_agent = not isinstance(source, Agent)
        self.agent = source if isinstance(source, Agent) else Agent(source)
        if self._owns_agent:
            self.agent.role = "subscriber"
        self._row_source = row_source or _kafka_rows(self.agent.settings)
        self._tables = dict.fromkeys(tables)
        self._followed: dict[int, str] = {}
        self._versions: deque[VersionEvent] = deque(maxlen=NEWS_MAX)
        self._before: dict[int, Descriptor] = {}
        self._undecoded: dict[int, deque[RowRecord]] = {}  # by table; the one that is next first
        self._unreadable: MalformedRequest | None = None  # told once what stood before it is
        self._truncated: dict[int, int] = {}  # table id → LSN of the newest truncation told of
        self._news: list[News] = []  # to be given out by the call that raises nothing
        self._closed = False
        self._heard = Event()
        self.agent.on_version(self._hear)

    def __iter__(self) -> Iterator[News]:
        """Everything, for ever (until `close`); waits while there is nothing."""
        while not self._closed:
            yield from self.poll(POLL_S)

    def poll(self, timeout_s: float) -> list[News]:
        """What has come: version events first, then rows, in the order of their topics. Waits up
        to `timeout_s` for the first of them. Raises MalformedRequest for a record that nobody can
        read, of whomever: the next call goes on behind it, and has the version events that had
        come."""
        deadline_ns = boottime_ns() + int(timeout_s * 1e9)
        self._news += self._take_versions()
        while True:
            left_s = max(0.0, (deadline_ns - boottime_ns()) / 1e9)
            self._news += self._take_rows(0.0 if self._news else left_s)
            if not self._news:
                self._news += self._take_versions()
            if self._news or not left_s or self._closed:
                news, self._news = self._news, []
                return news

    def _take_rows(self, timeout_s: float) -> list[News]:
        """Waits for rows, or for a version event where there are none to wait for."""
        self._heard.clear()
        if not self._followed:
            if not self._versions:
                self._heard.wait(timeout_s)
            return []
        self._read_rows(0.0 if self._undecoded else timeout_s)
        decoded = self._decode(timeout_s)
        if decoded or self._versions:
            return decoded
        if self._undecoded:
            self._heard.wait(min(timeout_s, LEASE_WAIT_S))  # a lease may be refused at once
        elif self._unreadable is not None:
            error, self._unreadable = self._unreadable, None
            raise error
        return decoded

    def _read_rows(self, timeout_s: float) -> None:
        if self._unreadable is not None or self._waiting_rows >= WAITING_ROWS_MAX:
            return
        try:
            found = self._row_source.rows(timeout_s, BATCH_ROWS_MAX)
        except MalformedRequest as error:
            self._unreadable = error
            return
        for record in found:
            self._undecoded.setdefault(record.table_id, deque()).append(record)

    @property
    def _waiting_rows(self) -> int:
        return sum(map(len, self._undecoded.values()))

    @property
    def waits_for_lease(self) -> bool:
        """Rows are here that must not be decoded before a lease is held again (D3)."""
        return bool(self._undecoded)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.agent.off_version(self._hear)
        self._heard.set()
        self._row_source.close()
        if self._owns_agent:
            self.agent.close()

    # --- inside --------------------------------------------------------------------------------

    def _hear(self, event: VersionEvent) -> None:
        self._versions.append(event)
        self._heard.set()

    def _take_versions(self) -> Iterator[VersionNotice]:
        while self._versions:
            event = self._versions.popleft()
            before = self._before.get(event.table_id)
            if before is not None and before.version >= event.version:
                continue
            try:
                descriptor = read_descriptor(event.body)
                notice = VersionNotice(event, descriptor, diff(before, descriptor))
            except Exception as error:  # noqa: BLE001 - no other event waits for this one
                words = "version %d of table %.80r is left out: its event can't be used (%s)"
                LOG.error(words, event.version, event.name, type(error).__name__)
                continue
            self._before[event.table_id] = descriptor
            # Not before it is public: one that is to take another's place has its rows already.
            named = descriptor.name in self._tables and descriptor.state in READABLE
            if named and event.table_id not in self._followed:
                self._followed[event.table_id] = event.name
                self._row_source.follow(event.table_id)
            elif event.table_id in self._followed and descriptor.names:
                self._followed[event.table_id] = descriptor.name  # it has another name since
            yield notice

    def _decode(self, timeout_s: float) -> list[News]:
        """Rows of the first table that a lease can be had for."""
        wait_s = min(timeout_s, LEASE_WAIT_S)
        for table_id in list(self._undecoded):
            decoded = self._decode_table(table_id, wait_s)
            if decoded:
                return decoded
            wait_s = 0.0  # one has been waited for
        return []

    def _decode_table(self, table_id: int, wait_s: float) -> list[News]:
        """Rows of one table, under one lease."""
        name = self._followed[table_id]
        try:
            use = self.agent.acquire(name, wait_s, label="a subscriber decodes rows")
        except (NotCoherent, UnknownTable):
            if self._before[table_id].state is State.ABSENT:
                del self._undecoded[table_id]
            return []
        waiting = self._undecoded.pop(table_id)
        decoded: list[News] = []
        try:
            if use.descriptor.table_id != table_id:
                # Another table has taken this one's name, under another primary key: its topic
                # tells of every row.
                waiting.clear()
            while waiting:
                try:
                    row = self._decoded(use.descriptor, waiting[0])
                except MalformedRequest:
                    if decoded:
                        break  # which have gone out of the queue: they come first
                    waiting.popleft()
                    raise
                # D3: looked at after decoding, so nothing is given out that was read without one.
                if not self.agent.is_valid(use):
                    break
                waiting.popleft()
                if isinstance(row, TruncationEvent):
                    self._truncated[table_id] = row.lsn
                if row is not None:
                    decoded.append(row)
        finally:
            self.agent.release(use)
            if waiting:
                self._undecoded[table_id] = waiting  # behind those of other tables
        return decoded

    def _decoded(
        self, descriptor: Descriptor, record: RowRecord
    ) -> RowEvent | TruncationEvent | None:
        """Decode a record; None for what a truncation has taken of which the subscriber was told
        already: each partition tells of it, and one may be behind another."""
        image, known = record.image, self._truncated.get(record.table_id, 0)
        if isinstance(image, RowsTruncated):
            if image.lsn <= known:
                return None
            return TruncationEvent(descriptor.name, image.lsn, image.commit_us)
        if image is not None and image.lsn < known:
            return None
        return read_row(descriptor, record.key, image)


def _kafka_rows(settings: ClientSettings) -> RowStream:
    from leasehold.adapters.kafka.row_stream import KafkaRowStream

    return KafkaRowStream(settings.kafka, settings.topics)
