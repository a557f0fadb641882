"""The Faust application that counts: an agent for the log and one for jobs, windowed tables that
their changelogs bring back, and a topic on which each window is told once it is over.

It joins a group, so that of several dashboards one counts and another takes over from it; all of
them read what it tells. Nothing is exactly once but what windows count: each says through which
offset it has (`windows.py`), so what is read again after a restart changes nothing.
"""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import faust
from faust.types import TP

from leasehold.adapters.codec.log_activity import read_activity
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.os.clock import boottime_ns
from leasehold.dashboard.activity.log_order import LogOrder
from leasehold.dashboard.activity.windows import (
    MINUTE_S,
    SECOND_S,
    Counted,
    Window,
    fold_steps,
    fold_writes,
    new_phases,
    steps_event,
    writes_event,
)
from leasehold.model import byte_limits
from leasehold.model.errors import LogStopped, MalformedRequest
from leasehold.model.records.jobs import JobEvent
from leasehold.model.topics import ACTIVITY_MINUTES, ACTIVITY_SECONDS, Topics
from leasehold.replication.changefeed import job_of_key
from leasehold.settings.environment import KafkaSettings

LOG: Final = logging.getLogger("leasehold.activity")
RECORDS_MAX: Final = 2_000
WITHIN_S: Final = 0.25
"""So long records are gathered: a window is written to its changelog once for all of them."""
SECONDS_KEPT_S: Final = 120.0
MINUTES_KEPT_S: Final = 900.0
"""What was told stands on the topic: tables need what is not over, and what was before."""
AHEAD_S: Final = 60
"""So far behind the first record after a start something may be counted already."""
LOOK_BACK: Final = 5
"""Windows before the first one after a start in which one is looked for that was never told."""
SESSION_TIMEOUT_S: Final = 12.0
FETCH_BYTES_MAX: Final = 2 * byte_limits.MESSAGE
"""Of a partition at once: the largest record of the log, and some."""
END_STATUS: Final = frozenset({"succeeded", "failed", "cancelled"})
KEY: Final = "all"


def activity_app(
    kafka: KafkaSettings,
    topics: Topics,
    folder: Path,
    beat: Callable[[], None] = lambda: None,
    fail: Callable[[BaseException], None] = lambda error: None,
) -> faust.App:
    """Return the application. `folder` is there; Faust wants one, and keeps its own state in it.
    `beat` is called whenever records were counted, `fail` with what has ended an agent, which
    Faust begins anew."""
    app = faust.App(
        f"{topics.database}.activity",
        broker=[f"kafka://{each.strip()}" for each in kafka.bootstrap.split(",")],
        broker_credentials=make_credentials(kafka),
        store="memory://",
        datadir=str(folder),
        # What is older was counted before, or is not missed: it begins with what happens now.
        consumer_auto_offset_reset="latest",
        consumer_max_fetch_size=FETCH_BYTES_MAX,
        # Whoever makes topics has made these, too (`leasehold topics`).
        topic_allow_declare=False,
        topic_disable_leader=True,
        Table=OnePartitionTable,
        stream_wait_empty=False,
        # One that was killed keeps its partitions for so long; who comes after it waits.
        broker_session_timeout=SESSION_TIMEOUT_S,
        broker_heartbeat_interval=SESSION_TIMEOUT_S / 4,
        web_enabled=False,
    )
    told = app.topic(topics.activity.name, key_serializer="raw", value_serializer="raw")
    seconds = _WrittenWindows(app, told, "seconds", SECOND_S, SECONDS_KEPT_S, ACTIVITY_SECONDS)
    minutes = _WrittenWindows(app, told, "minutes", MINUTE_S, MINUTES_KEPT_S, ACTIVITY_MINUTES)
    steps = _StepWindows(app, told)
    order = LogOrder()
    log = app.topic(topics.log.name, key_serializer="raw", value_serializer="raw", internal=False)
    jobs = app.topic(topics.jobs.name, key_serializer="raw", value_serializer="raw", internal=False)

    @contextmanager
    def saying_failures() -> Iterator[None]:
        try:
            yield
        except Exception as error:
            fail(error)
            raise

    @app.agent(log)
    async def count_writes(stream: Any) -> None:
        async for events in stream.take_events(RECORDS_MAX, within=WITHIN_S):
            with saying_failures():
                if order.next is None:
                    # A group that was cut off early has committed nothing, and begins at the end;
                    # and one of its tables may have been written further than the other.
                    found = (seconds.find_next(events[0]), minutes.find_next(events[0]))
                    order.next = min(filter(None, found), default=None)
                offsets = [event.message.offset for event in events]
                follow, missing = order.follow(offsets, boottime_ns() / 1e9)
                if missing is not None:
                    LOG.info("records of the log from offset %d on are read again", missing)
                    await app.consumer.seek(TP(topics.log.name, 0), missing)
                if follow:
                    await seconds.count(events[:follow])
                    await minutes.count(events[:follow])
            beat()

    @app.agent(jobs)
    async def count_steps(stream: Any) -> None:
        async for event in stream.events():
            with saying_failures():
                await steps.count(event)

    return app


def make_credentials(kafka: KafkaSettings) -> Any:
    """Return how Faust's client says who it is; None where nobody asks."""
    context = None
    if kafka.uses_tls:
        context = ssl.create_default_context(cafile=kafka.ca)
        if kafka.certificate is not None:
            context.load_cert_chain(kafka.certificate, kafka.key, kafka.key_password)
    if kafka.uses_sasl:
        return faust.SASLCredentials(
            username=kafka.username,
            password=kafka.password,
            mechanism=kafka.sasl_mechanism,
            ssl_context=context,
        )
    return None if context is None else faust.SSLCredentials(context)


class OnePartitionTable(faust.Table[Any, Any]):
    """A table whose changelog has one partition, whatever event it is changed for: what is counted
    is gathered from many."""

    def partition_for_key(self, key: Any) -> int:
        return 0


class _WrittenWindows:
    """Windows of one length over the log, the newest of which is open."""

    def __init__(
        self, app: faust.App, told: Any, name: str, length_s: int, kept_s: float, partition: int
    ) -> None:
        self._length_s = length_s
        self._told = told
        self._partition = partition
        self._kept_windows = int(kept_s) // length_s
        self._open_s: int | None = None
        self._table = app.Table(name, default=dict, partitions=1, help="writes")
        self._windows = self._table.tumbling(float(length_s), expires=kept_s).relative_to_stream()

    async def count(self, events: list[Any]) -> None:
        for from_s, group in groupby(events, key=self._begin_of):
            of_window = list(group)
            if self._open_s is None:
                await self._tell_left_over(of_window[0])
            elif from_s > self._open_s:
                await self._tell(self._open_s, self._value_at(of_window[0], self._open_s))
            self._fold(from_s, of_window)
            if self._open_s is not None and from_s < self._open_s:
                # Of a master whose clock is behind: what was told of that window was too little.
                await self._tell(from_s, self._value_at(of_window[0], from_s))
            self._open_s = max(from_s, self._open_s or from_s)

    def find_next(self, event: Any) -> int | None:
        """Return the offset behind what was counted before this event, by a process before this
        one; None where nothing of late was."""
        begin_s = self._begin_of(event)
        looked = (
            self._value_at(event, begin_s - back * self._length_s)
            for back in range(-AHEAD_S // self._length_s, self._kept_windows + 1)
        )
        return max((value["through"] for value in looked if value), default=None)

    def _begin_of(self, event: Any) -> int:
        at_s = int(event.message.timestamp)
        return at_s - at_s % self._length_s

    def _fold(self, from_s: int, events: list[Any]) -> None:
        records = list(filter(None, map(_counted, events)))
        now = self._value_at(events[-1], from_s)
        before = self._value_at(events[-1], self._open_s) if self._open_s is not None else {}
        value = fold_writes(now, before, records)
        if value != now:
            self._windows[KEY].apply(lambda _old, new: new, value, events[-1])

    def _value_at(self, event: Any, from_s: int) -> Window:
        back_s = self._begin_of(event) - from_s
        found: Window = self._windows[KEY].delta(float(back_s), event)
        return found

    async def _tell_left_over(self, event: Any) -> None:
        """Tell the newest window before this event's: a process that has ended may not have."""
        begin_s = self._begin_of(event)
        for back in range(1, LOOK_BACK + 1):
            from_s = begin_s - back * self._length_s
            value = self._value_at(event, from_s)
            if value:
                await self._tell(from_s, value)
                self._open_s = from_s
                return

    async def _tell(self, from_s: int, value: Window) -> None:
        if not value:
            return
        await _send(self._told, self._partition, writes_event(value, from_s, self._length_s))


def _counted(event: Any) -> Counted | None:
    message = event.message
    try:
        activity = read_activity(event.value or b"")
    except LogStopped:
        return None  # nodes stop there and say so
    if activity is None:
        return None
    return Counted(message.offset, int(message.timestamp * 1_000), activity)


class _StepWindows:
    """Phases of jobs by the minute in which they ended."""

    def __init__(self, app: faust.App, told: Any) -> None:
        self._told = told
        self._codec = MessagePackCodec()
        self._open_s: int | None = None
        table = app.Table("steps", default=dict, partitions=1, help="phases")
        self._windows = table.tumbling(float(MINUTE_S), expires=MINUTES_KEPT_S).relative_to_stream()
        self._marks = app.Table("jobs", partitions=1, help="marks that were counted")

    async def count(self, event: Any) -> None:
        at_s = int(event.message.timestamp)
        from_s = at_s - at_s % MINUTE_S
        if self._open_s is not None and from_s > self._open_s:
            value = self._windows[KEY].delta(float(from_s - self._open_s), event)
            if value:
                await _send(
                    self._told, ACTIVITY_MINUTES, steps_event(value, self._open_s, MINUTE_S)
                )
        self._open_s = max(from_s, self._open_s or from_s)
        if event.value is None:
            job = job_of_key(event.key or b"")
            if job is not None:
                self._marks.pop(str(job), None)
            return
        try:
            told = self._codec.decode(event.value)
        except MalformedRequest:
            return  # of a newer release
        if isinstance(told, JobEvent):
            self._count_job(event, told)

    def _count_job(self, event: Any, told: JobEvent) -> None:
        name = str(told.job_id)
        marks = told.body.get("marks") or []
        phases = new_phases(marks, self._marks.get(name))
        if phases:
            now = self._windows[KEY].value(event)
            value = fold_steps(now, event.message.offset, phases)
            self._windows[KEY].apply(lambda _old, new: new, value, event)
        if told.body.get("status") in END_STATUS:
            self._marks.pop(name, None)
        elif self._marks.get(name) != len(marks):
            self._marks[name] = len(marks)


async def _send(topic: Any, partition: int, told: dict[str, Any]) -> None:
    key = f"{told['what']}/{told['window_s']}/{told['from_s']}"
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    await topic.send(key=key.encode(), value=text.encode(), partition=partition)
