"""The simulation's random menu on real parts: the same statements, rows and predictions."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from leasehold import ChangeProducer, Replica
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.descriptor import Descriptor
from leasehold.client.pending import Pending
from leasehold.model.records.requests import Outcome
from tests.simulation.menu import Menu
from tests.support.cluster.system_load import settled

IN_FLIGHT_MAX: Final = 50
PAUSE_S: Final = 0.02


class Asker:
    """Stands for the simulation's client: `ask` submits, `hear` gives outcomes to who asked."""

    def __init__(self, producer: ChangeProducer) -> None:
        self._producer = producer
        self._open: list[tuple[Pending, Callable[[Outcome], None]]] = []
        self.codes: Counter[str] = Counter()

    def ask(
        self, fields: Mapping[str, Any], done: Callable[[Outcome], None] = lambda _: None
    ) -> None:
        self._open.append((self._producer.submit(fields), done))

    def receive(self, *, all_of_them: bool = False) -> None:
        """Those that have come; raises what `done` raises for one that was not foreseen."""
        waiting, self._open = self._open, []
        for pending, done in waiting:
            if pending.outcome is None and not all_of_them:
                self._open.append((pending, done))
                continue
            outcome = settled(pending)
            self.codes[outcome.code if not outcome.lsn else "ok"] += 1
            done(outcome)

    @property
    def waiting(self) -> int:
        return len(self._open)


class RealMenu(Menu):
    """As the simulation's, on tables as an embedded replica has them."""

    client: Asker  # type: ignore[assignment]

    def __init__(
        self,
        rng: random.Random,
        producer: ChangeProducer,
        replica: Replica,
        watch: ClusterWatch,
    ) -> None:
        self.rng = rng
        self.client = Asker(producer)
        self._replica = replica
        self._watch = watch
        self._timers: list[tuple[float, Callable[[], None]]] = []
        self._pause = threading.Event()  # never set: it paces the acts

    def run(self, seconds: float, meanwhile: Callable[[], None]) -> None:
        """`meanwhile` is called with every act."""
        self.setup()
        self.client.receive(all_of_them=True)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.client.waiting < IN_FLIGHT_MAX:
                self.act()
            self._tick()
            meanwhile()
            self._pause.wait(PAUSE_S)
        self.client.receive(all_of_them=True)

    def end_jobs(self, done: Callable[[], bool]) -> None:
        """Resumes what was paused until `done`."""
        for job in self.jobs:
            self._resume(job)
        while not done():
            self._tick()
            self._pause.wait(PAUSE_S)

    def _tick(self) -> None:
        self.client.receive()
        now = time.monotonic()
        due = [each for each in self._timers if each[0] <= now]
        self._timers = [each for each in self._timers if each[0] > now]
        for _, action in due:
            action()

    def later(self, ms: int, action: Callable[[], None]) -> None:
        self._timers.append((time.monotonic() + ms / 1e3, action))

    def _too_large(self) -> set[str]:
        return set()

    def _tables(self) -> Sequence[Descriptor]:
        return self._replica.tables()

    def _seen_table(self, name: str) -> Descriptor | None:
        return self._newest(name)

    def _resume(self, job: int) -> None:
        found = self._watch.view.jobs.get(job)
        if found is not None and found.job.status.value == "paused":
            self._control(job, "resume")
        if found is None or not found.job.status.ended:
            self.later(1_000, lambda: self._resume(job))
