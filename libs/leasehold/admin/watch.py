"""Looks at a running database: folds what its topics and its ledger say into a ClusterView.

Two threads, so that a ledger that hangs does not hide the log. It reads heads of log records, not
their bodies, and joins no consumer group: any number of watchers cost the master nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.admin.view import (
    ClusterView,
    Event,
    LedgerSeen,
    TopicsRead,
    Unreachable,
    fold_all,
)
from leasehold.lease.commands import Command, Holders, Snapshot
from leasehold.lease.replies import HolderList, Holding, Reply, SnapshotReport
from leasehold.model.closing import Closing
from leasehold.model.errors import LeaseholdError, LedgerUnavailable
from leasehold.settings.client import ClientSettings

LEDGER_EVERY_S: Final = 0.5
LOG: Final = logging.getLogger("leasehold.watch")
LEDGER_PAUSE: Final = 20
"""How many times as long as a look at the ledger took the next one waits at least: with thousands
of tables it is work for Redis, which agents wait for, and for this process."""
AWAY_RETRY_S: Final = 1.0
NOTHING_READ: Final[Mapping[str, int]] = {"acks": -1, "jobs": -1, "log": -1, "versions": -1}
READ_TIMEOUT_S: Final = 0.2
LISTED_TABLES_MAX: Final = 256
"""Of so many tables a view names the holders; of the others it shows counts only."""


class EventSource(Protocol):
    """Events of one database; `admin/kafka_events.py` in practice."""

    def events(self, timeout_s: float) -> list[Event]:
        """Raises BusUnavailable while Kafka can't be reached."""
        ...

    @property
    def not_read(self) -> Mapping[str, int]:
        """Topics of which not everything that stood there when it began has been given out, with
        how many records are left, about (-1: not known yet)."""
        ...

    def close(self) -> None: ...


class Ledger(Protocol):
    def call(self, command: Command) -> Reply: ...

    def call_all(self, commands: Sequence[Command]) -> list[Reply]: ...

    def close(self) -> None: ...


def _say_left_out(event: Event, error: Exception) -> None:
    what, why = type(event).__name__, type(error).__name__
    LOG.error("a %s is left out, which can't be used (%s)", what, why)


class ClusterWatch(Closing):
    """A thread that follows a cluster. `view` is the newest state at any time; it is immutable and
    may be kept."""

    def __init__(
        self,
        settings: ClientSettings,
        *,
        source: EventSource | None = None,
        ledger: Ledger | None = None,
        brief: bool = False,
    ) -> None:
        """Begin to follow. `brief`: whoever looks waits for the first view, and will not look for
        long."""
        self._stopping = threading.Event()
        self._source = source or _kafka_source(settings, self._stopping.is_set, brief=brief)
        self._ledger = ledger or _redis_ledger(settings)
        self._changed = threading.Condition()
        self._view = ClusterView(not_read=NOTHING_READ)
        self._number = 0
        self._bus_seen = False
        self._ledger_seen = False
        self._threads = [
            threading.Thread(target=self._follow, name="leasehold-watch", daemon=True),
            threading.Thread(target=self._ask_ledger, name="leasehold-watch-ledger", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def view(self) -> ClusterView:
        return self._view

    def first_look(self, timeout_s: float) -> ClusterView:
        """The view once all that stands on the topics has been read and the ledger has answered,
        or either was found to be away; whatever there is after `timeout_s`."""
        with self._changed:
            self._changed.wait_for(lambda: self._bus_seen and self._ledger_seen, timeout_s)
            return self._view

    def wait_for(self, wanted: Callable[[ClusterView], bool], timeout_s: float) -> bool:
        """Wait until the view is as wanted. Return False when that took longer than `timeout_s`."""
        with self._changed:
            return self._changed.wait_for(lambda: wanted(self._view), timeout_s)

    def views(self, every_s: float) -> Iterator[ClusterView]:
        """The newest view each time it has changed, and at least every `every_s`."""
        number = -1
        while not self._stopping.is_set():
            with self._changed:
                seen = number
                self._changed.wait_for(lambda: self._number != seen, every_s)  # noqa: B023
                number, view = self._number, self._view
            yield view

    def close(self) -> None:
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._source.close()
        self._ledger.close()

    # --- threads -------------------------------------------------------------------------------

    def _take(self, *events: Event, bus: bool = False, ledger: bool = False) -> None:
        now_us = unix_us()
        with self._changed:
            self._view = fold_all(self._view, events, now_us, unusable=_say_left_out)
            # That topics were read, and had nothing new, is no change that anybody waits for.
            self._number += any(not isinstance(event, TopicsRead) for event in events)
            self._bus_seen = self._bus_seen or bus
            self._ledger_seen = self._ledger_seen or ledger
            self._changed.notify_all()

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                events = self._source.events(READ_TIMEOUT_S)
            except LeaseholdError as error:
                self._take(Unreachable("kafka", error.message), bus=True)
                self._stopping.wait(AWAY_RETRY_S)
                continue
            left = self._source.not_read
            self._take(*events, TopicsRead(left), bus=not left)

    def _ask_ledger(self) -> None:
        while not self._stopping.is_set():
            began_ns = boottime_ns()
            try:
                reply = self._ledger.call(Snapshot())
                assert isinstance(reply, SnapshotReport), reply
                self._take(LedgerSeen(reply, self._holders(reply)), ledger=True)
            except LedgerUnavailable as error:
                self._take(Unreachable("ledger", error.message), ledger=True)
            took_s = (boottime_ns() - began_ns) / 1e9
            self._stopping.wait(max(LEDGER_EVERY_S - took_s, LEDGER_PAUSE * took_s))

    def _holders(self, report: SnapshotReport) -> dict[int, tuple[Holding, ...]]:
        tables = [s.table for s in report.tables[:LISTED_TABLES_MAX] if s.leases]
        replies = self._ledger.call_all([Holders(table) for table in tables])
        return {
            table: reply.holders
            for table, reply in zip(tables, replies, strict=True)
            if isinstance(reply, HolderList)
        }


def _kafka_source(
    settings: ClientSettings, give_up: Callable[[], bool], *, brief: bool
) -> EventSource:
    from leasehold.admin.kafka_events import KafkaEvents

    return KafkaEvents(settings.kafka, settings.topics, give_up, brief=brief)


def _redis_ledger(settings: ClientSettings) -> Ledger:
    from leasehold.adapters.redis.ledger import RedisLedger

    return RedisLedger(settings.redis, settings.cluster.database)
