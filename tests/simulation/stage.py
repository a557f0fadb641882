"""A calm simulation driven by hand: interleavings that are written down, not drawn.

Everything the simulation watches for is watched for here too, so a scenario needs no assertion of
its own where a Harm shows by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from leasehold.catalog.part import Part
from leasehold.in_process.network import Hops
from leasehold.in_process.node import MemoryNode
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.requests import Outcome, ResultBatch
from tests.simulation.harm import demand
from tests.simulation.plan import SHAPE, Plan
from tests.simulation.simulation import MS, Simulation

ASKER: Final = 0


class ScriptedHops(Hops):
    """Every hop takes 1 ms unless one says otherwise. `fates` are those of the next appends,
    `late_ms` is how late the ones of unknown fate arrive."""

    def __init__(self) -> None:
        self.fates: list[str] = []
        self.late_ms = 0
        self.produce_ms = 1
        self.deliver_ms = 1

    def deliver_ns(self) -> int:
        return self.deliver_ms * MS

    def produce_ns(self) -> int:
        return self.produce_ms * MS

    def ledger_ns(self) -> int:
        return MS

    def survives_crash(self) -> bool:
        return False

    def late_ns(self) -> int:
        return self.late_ms * MS

    def append_outcome(self) -> str:
        return self.fates.pop(0) if self.fates else "ok"


class Stage(Simulation):
    """m1 is master, m2 stands by, r1 and r2 are coherent; table t (id, a) exists, rows 1 and 2."""

    events_of_last = 0
    """Events of the stage that was made last, for the summary of rules turned off."""

    def __init__(
        self,
        parts: Mapping[str, Part] | None = None,
        **shape: Any,
    ) -> None:
        """`parts`: what partial replicas hold, by their names."""
        self.scripted: dict[str, ScriptedHops] = {}
        changed = replace(SHAPE, **{"subscribers": 0, **shape})
        super().__init__(0, Plan(shape=changed, parts=parts or {}))
        for name, node in self.cluster.nodes.items():
            node.driver.hops = self.scripted[name] = ScriptedHops()
            node.clock.rate = 1.0
        self.results: dict[bytes, list[Outcome]] = {}
        results = self.cluster.topics.results.name
        self.cluster.bus.subscribe(results, ASKER, 0, lambda m: self._result(m.value or b""))
        self.cluster.start()
        self.until(lambda: self.master is not None and len(self.coherent()) == 2, "a master")
        self.settle({"sql": "create table t (id bigint primary key, a bigint not null)"})
        for key in (1, 2):
            self.settle({"table": "t", "op": "insert", "key": {"id": key}, "values": {"a": 10}})

    def _result(self, data: bytes) -> None:
        try:
            batch = self.codec.decode_as(ResultBatch, data)
        except MalformedRequest:
            return  # a stranger's
        for result in batch.results:
            self.results.setdefault(result.request_id, []).append(result.outcome)

    # ------------------------------------------------------------ asking

    def ask(self, fields: dict[str, Any]) -> bytes:
        return self.cluster.submit({"reply_to": ASKER, **fields})

    def answer(self, request_id: bytes) -> Outcome:
        """The final answer, waited for."""

        def final() -> bool:
            return any(o.lsn or o.final for o in self.results.get(request_id, []))

        self.until(final, f"an answer to {request_id.hex()}", "L7")
        return next(o for o in self.results[request_id] if o.lsn or o.final)

    def settle(self, fields: dict[str, Any]) -> Outcome:
        return self.answer(self.ask(fields))

    def pass_barrier(self, node: MemoryNode) -> None:
        """Return once the node has read all that was answered before (T6)."""
        asked = self.ask({"barrier": [None]})
        while not self.comes_true(lambda: asked in self.results, 2_000):
            self.ask({"barrier": [None], "id": asked})
        running, lsn = node.node, self.results.pop(asked)[0].lsn
        assert running is not None, "it is up"
        self.until(lambda: running.sees_below(lsn), "its own barrier")

    def update(self, key: int, value: int, **more: Any) -> dict[str, Any]:
        values = {"a": value}
        return {"table": "t", "op": "update", "key": {"id": key}, "values": values, **more}

    # ------------------------------------------------------------ looking

    @property
    def master(self) -> MemoryNode | None:
        return self.cluster.master()

    def node(self, name: str) -> MemoryNode:
        return self.cluster.nodes[name]

    def coherent(self) -> list[str]:
        return [node.settings.name for node in self.cluster.replicants() if node.reads()]

    def row(self, key: int) -> dict[int, Any]:
        """Pairs by element id, as the log implies them."""
        held = self.reference.store.contents.row(1, (key,))
        return {} if held is None else dict(held.values)

    def genid(self, key: int) -> int:
        held = self.reference.store.contents.row(1, (key,))
        assert held is not None, f"row {key} is there"
        return max(held.genids.values())

    def job(self, number: int) -> Any:
        return self.reference.catalog.jobs[number]

    # ------------------------------------------------------------ time

    def passing(self, virtual_ms: int) -> None:
        self._pass(virtual_ms)

    def _pass(self, virtual_ms: int) -> None:
        try:
            super()._pass(virtual_ms)
        finally:
            Stage.events_of_last = self.scheduler.events

    def comes_true(self, reached: Callable[[], bool], virtual_ms: int = 1_000) -> bool:
        """Within that time."""
        end_ns = self.scheduler.now_ns + virtual_ms * MS
        while not reached() and self.scheduler.now_ns < end_ns:
            self._pass(1)
        return reached()

    def until(
        self,
        reached: Callable[[], bool],
        words: str,
        invariant: str = "liveness",
        virtual_ms: int = 20_000,
    ) -> None:
        end_ns = self.scheduler.now_ns + virtual_ms * MS
        while not reached():
            demand(self.scheduler.now_ns < end_ns, invariant, f"waited in vain for {words}")
            self._pass(1)
