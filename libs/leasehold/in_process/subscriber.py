"""A subscriber without a store on the in-memory bus and ledger: version events in, leases by the
real holder, row images decoded only under a valid lease (D3)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Final

from leasehold.adapters.codec.published import restore_image
from leasehold.adapters.codec.records import MessagePackCodec, restore_row_key
from leasehold.catalog.descriptor import Descriptor, read_descriptor
from leasehold.events.rows import RowEvent, RowRecord, read_row
from leasehold.in_process.bus import MemoryBus, Message, Scheduler
from leasehold.in_process.ledger import MemoryLedger
from leasehold.in_process.network import Hops, NodeClock
from leasehold.in_process.task import MemoryTask
from leasehold.lease.agent.events import (
    Acknowledge,
    Answered,
    Event,
    Idle,
    LedgerAway,
    Send,
    TimePassed,
    VersionKnown,
    Wake,
    Want,
)
from leasehold.lease.agent.held_leases import HeldLease
from leasehold.lease.agent.holder import Holder
from leasehold.lease.agent.old_version_report import OldLeases
from leasehold.lease.agent.session import HolderLimits
from leasehold.model.errors import LedgerUnavailable, MalformedRequest
from leasehold.model.records.acks import HoldingReport, LeaseAck
from leasehold.model.records.events import RowsTruncated, VersionEvent
from leasehold.model.topics import Topics

CODEC: Final = MessagePackCodec()


class MemorySubscriber(MemoryTask):
    """An agent with its users. `on_row` gets what was decoded, and the lease that was used."""

    def __init__(
        self,
        name: str,
        topics: Topics,
        scheduler: Scheduler,
        bus: MemoryBus,
        ledger: MemoryLedger,
        session_ids: Iterator[int],
        limits: HolderLimits | None = None,
        hops: Hops | None = None,
    ) -> None:
        super().__init__(scheduler)
        self.name = name
        self._topics = topics
        self._bus = bus
        self._ledger = ledger
        self._session_ids = session_ids
        self._limits = limits
        self._hops = hops or Hops()
        self.clock = NodeClock()
        self._rows: dict[int, deque[RowRecord]] = {}
        self._descriptors: dict[tuple[int, int], Descriptor] = {}
        self._tokens = count(1)
        self._waking_ns = 0
        self.isolated_until_ns = 0
        self.paused_until_ns = 0
        self.holder: Holder | None = None
        self._held: list[HeldLease] = []
        self.hold_ns: Callable[[], int] = lambda: 0  # how long a user works under its lease
        self.on_row: Callable[[MemorySubscriber, RowEvent, HeldLease], None] = lambda *_: None

    def now_ns(self) -> int:
        return self.clock.now(self.scheduler).mono_ns

    def start(self) -> None:
        self.begin()
        self._rows, self._descriptors, self._held, self._waking_ns = {}, {}, [], 0
        self.holder = Holder(
            self.name,
            self._session_ids,
            has_store=False,
            limits=self._limits,
        )
        self._old = OldLeases(self.holder)
        self._subscribe(self._topics.versions_history.name, 0, self._version_read)

    def crash(self) -> None:
        super().crash()
        self.holder = None

    def heal(self) -> None:
        self.isolated_until_ns = self.paused_until_ns = 0

    def in_use(self) -> list[HeldLease]:
        """Leases with a user now that are valid by this agent's own clock (D3)."""
        if self.holder is None:
            return []
        leases, now_ns = self.holder.leases, self.now_ns()
        return [lease for lease in self._held if leases.is_valid(lease, now_ns)]

    def _subscribe(self, topic: str, partition: int, read: Callable[[Message], None]) -> None:
        def deliver(message: Message) -> None:
            self._soon(lambda: read(message), network=True)

        subscription = self._bus.subscribe(topic, partition, 0, deliver, self._hops.deliver_ns)
        self.subscriptions[f"{topic}/{partition}"] = subscription

    def _soon(self, action: Callable[[], None], *, network: bool) -> None:
        def run() -> None:
            until_ns = max(self.paused_until_ns, self.isolated_until_ns if network else 0)
            if self.scheduler.now_ns < until_ns:
                self.scheduler.at(until_ns, in_this_life)
                return
            action()

        in_this_life = self.in_this_life(run)
        in_this_life()

    def _version_read(self, message: Message) -> None:
        try:
            event = CODEC.decode_as(VersionEvent, message.value or b"")
            descriptor = read_descriptor(event.body)
        except MalformedRequest:
            return
        table_id = event.table_id
        self._descriptors[table_id, event.version] = descriptor
        self._step(VersionKnown(table_id, event.version))
        if table_id not in self._rows:
            self._rows[table_id] = deque()
            rows = self._topics.rows(table_id)
            for partition in range(rows.partitions):
                self._subscribe(rows.name, partition, lambda m: self._row_read(table_id, m))
            self._step(Want(table_id, next(self._tokens)))

    def _row_read(self, table_id: int, message: Message) -> None:
        try:
            key = restore_row_key(message.key)
            image = None if message.value is None else restore_image(key, message.value)
        except MalformedRequest:
            return  # a Subscriber raises it, and goes on behind it
        if isinstance(image, RowsTruncated):
            return  # of which there is nothing to decode
        self._rows[table_id].append(RowRecord(table_id, key, image))
        self._decode(table_id)

    def _decode(self, table_id: int) -> None:
        assert self.holder is not None, "only while it runs"
        rows, leases = self._rows.get(table_id), self.holder.leases
        if not rows:
            return
        lease = leases.acquire(table_id, self.now_ns())
        if lease is None:
            return
        descriptor = self._descriptors.get((table_id, lease.version))
        while rows and descriptor is not None and leases.is_valid(lease, self.now_ns()):
            record = rows.popleft()
            assert not isinstance(record.image, RowsTruncated), "left out above"
            with suppress(MalformedRequest):  # a Subscriber raises it, and goes on behind it
                self.on_row(self, read_row(descriptor, record.key, record.image), lease)
        self._soon_released(lease)

    def _soon_released(self, lease: HeldLease) -> None:
        hold_ns = self.hold_ns()

        def release() -> None:
            assert self.holder is not None, "only while it runs"
            self._held.remove(lease)
            if self.holder.leases.release(lease):
                self._step(Idle())

        self._held.append(lease)
        if hold_ns:
            self.later(hold_ns, release)
        else:
            release()

    def _step(self, event: Event) -> None:
        assert self.holder is not None, "only while it runs"
        for effect in self.holder.step(event, self.now_ns()):
            match effect:
                case Send(command):
                    self._call(command)
                case Acknowledge(table, version):
                    self._acknowledge(LeaseAck(self.name, table, version))
                case Wake(lease=HeldLease() as lease):
                    if self.holder.leases.release(lease):
                        self._step(Idle())
        for table_id in list(self._rows):
            self._decode(table_id)
        for report in self._old.reports(self.clock.now(self.scheduler)):
            self._acknowledge(report)
        self._plan_wake()

    def _acknowledge(self, ack: LeaseAck | HoldingReport) -> None:
        def arrive() -> None:
            self._bus.append(self._topics.acks.name, 0, self.name.encode(), CODEC.encode(ack))

        self.scheduler.later(self._hops.produce_ns(), lambda: self._bus.once_there(arrive))

    def _plan_wake(self) -> None:
        assert self.holder is not None, "only while it runs"
        dues = [due for due in (self.holder.due_ns(), self._old.due_ns()) if due is not None]
        if not dues:
            return
        due_ns = min(dues)
        at_ns = max(self.clock.virtual_ns(due_ns), self.scheduler.now_ns + 1)
        if self.scheduler.now_ns < self._waking_ns <= at_ns:
            return
        self._waking_ns = at_ns

        def woken() -> None:
            self._soon(lambda: self._step(TimePassed()), network=False)

        self.scheduler.at(at_ns, self.in_this_life(woken))

    def _call(self, command: object) -> None:
        calling = self.life

        def answer(event: Event) -> None:
            def arrived() -> None:
                if self.life == calling:
                    self._soon(lambda: self._step(event), network=False)

            self.scheduler.later(self._hops.ledger_ns(), arrived)

        def call() -> None:
            try:
                reply = self._ledger.call(command)  # type: ignore[arg-type]
            except LedgerUnavailable:
                answer(LedgerAway())
                return
            cut_off = self.scheduler.now_ns < self.isolated_until_ns
            answer(LedgerAway() if cut_off else Answered(reply))

        if self.scheduler.now_ns < self.isolated_until_ns:
            answer(LedgerAway())
        else:
            self.scheduler.later(self._hops.ledger_ns(), call)
