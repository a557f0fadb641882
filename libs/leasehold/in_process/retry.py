"""Spark's stand-in on the in-memory bus for the retry of conflicts, made of the same pure parts
(`leasehold.pipeline.retry_state`)."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.in_process.bus import MemoryBus, Scheduler
from leasehold.in_process.network import PipelineHops
from leasehold.in_process.task import MemoryTask
from leasehold.model.errors import MalformedRequest, Refused
from leasehold.model.signatures import NO_KEYS, RequestKeys
from leasehold.model.time_units import NS_PER_MS
from leasehold.model.topics import Topics
from leasehold.pipeline.retry_state import NextAttempts, Waiting, arrived_of, step

CODEC: Final = MessagePackCodec()
EARLY_MS: Final = 50


class MemoryRetry(MemoryTask):
    """The verify/retry stream: conflicts in, after their back-off the next attempts out."""

    def __init__(
        self,
        topics: Topics,
        scheduler: Scheduler,
        bus: MemoryBus,
        hops: PipelineHops | None = None,
        keys: RequestKeys | None = None,
    ) -> None:
        super().__init__(scheduler)
        self._topics = topics
        self._bus = bus
        self._hops = hops or PipelineHops()
        self._attempts = NextAttempts(CODEC, keys or NO_KEYS, topics.database)
        self._offset = 0  # durable, together with what waits
        self._waiting: tuple[Waiting, ...] = ()
        self._busy = False

    @property
    def idle(self) -> bool:
        return not self._waiting and self._offset >= self._bus.end(self._topics.conflicts.name)

    def start(self) -> None:
        self.begin()
        self._busy = False
        conflicts = self._topics.conflicts.name
        self.subscriptions[conflicts] = self._bus.subscribe(
            conflicts, 0, self._offset, lambda _: self._trigger(0)
        )
        self._trigger(0)

    def _trigger(self, delay_ns: int) -> None:
        self.later(delay_ns + self._hops.batch_ns(), self._batch)

    def _batch(self) -> None:
        if self._busy:
            return
        conflicts = self._bus.read(self._topics.conflicts.name, 0, self._offset)
        arrived = []
        for message in conflicts:
            with suppress(MalformedRequest):  # as Spark leaves it out, and says so
                arrived.append(arrived_of(CODEC, message.value or b""))
        after = step(self._waiting, arrived, self.scheduler.now().wall_us // 1_000, EARLY_MS)
        self._busy = True
        at_ns = self.scheduler.now_ns
        for entry in after.ready:
            try:
                encoded = self._attempts.encode(entry)[:2]
            except Refused:
                continue  # nobody's
            at_ns += self._hops.produce_ns()
            self.scheduler.at(at_ns, partial(self._append, *encoded))
        offset = self._offset + len(conflicts)

        def committed() -> None:
            self._busy = False
            self._offset, self._waiting = offset, after.waiting
            if self._offset < self._bus.end(self._topics.conflicts.name):
                self._trigger(0)
            elif after.next_due_ms is not None:
                wait_ms = after.next_due_ms - self.scheduler.now().wall_us // 1_000
                self._trigger(max(1, wait_ms) * NS_PER_MS)

        self.scheduler.at(at_ns, self.in_this_life(committed))

    def _append(self, content_type: str, body: bytes) -> None:
        headers = {"content-type": content_type}
        requests = self._topics.requests.name
        self._bus.once_there(partial(self._bus.append, requests, 0, b"", body, headers))
