"""Clients that put change requests on the topic: rows, registers, a counter that never stops."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from leasehold import ChangeProducer
from leasehold.adapters.os.clock import new_request_id
from leasehold.client.pending import Pending
from leasehold.model.errors import BusUnavailable, OutcomeUnknown
from leasehold.model.records.requests import Outcome
from tests.faults.workload.history import Op, Told
from tests.faults.workload.recorder import Recorder
from tests.faults.workload.sql_clients import Values
from tests.faults.workload.tables import REGISTERS, RETRIED_ROW, Tables

PACE_S: Final = 0.15
PROBE_S: Final = 0.05
ASK_AGAIN_S: Final = 1.0
GIVE_UP_S: Final = 90.0
GIVE_UP_RETRIED_S: Final = 240.0
"""Spark's driver may be started anew meanwhile."""
OLD_GENID: Final = 1
"""Of no row that there is: genids go on from the log's begin."""


class RequestClient(threading.Thread):
    """One client of a producer; it waits for each outcome, asking again under the same id (T5)."""

    give_up_s: ClassVar[float] = GIVE_UP_S
    ask_again_s: ClassVar[float] = ASK_AGAIN_S

    def __init__(
        self,
        name: str,
        recorder: Recorder,
        tables: Tables,
        producer: ChangeProducer,
        seed: int,
        values: Values,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._recorder = recorder
        self._tables = tables
        self._producer = producer
        self._rng = random.Random(f"{seed}/{name}")
        self._values = values
        self._stopping = threading.Event()
        self.pace_s = PACE_S
        self.asked: dict[str, dict[str, Any]] = {}
        self.defect: BaseException | None = None

    def stop(self) -> None:
        """Let it end once the outcome of its request is known."""
        self._stopping.set()

    def run(self) -> None:
        try:
            while not self._stopping.wait(self.pace_s):
                op, request = self.next()
                outcome = self.ask(request)
                told = Told.YES if outcome.lsn else Told.NO
                self._recorder.end(op, told, outcome.code, answer=answer_of(outcome))
        except Exception as error:  # noqa: BLE001 - the harness raises it again
            self.defect = error

    def next(self) -> tuple[Op, dict[str, Any]]:
        """Return the operation as it is written down, and its request."""
        if self._rng.random() < 0.5:
            key, value = self._rng.randrange(REGISTERS), self._values.next()
            op = self._begin("write", {"key": key, "value": value})
            fields = {"op": "update", "key": {"id": key}, "values": {"value": value}}
            return op, {"table": self._tables.registers, **fields}
        number = -self._values.next()  # requests name their keys: no number of the sequence
        tag = f"{self.name}{number}"
        op = self._begin("insert", {"tag": tag, "number": number})
        fields = {"op": "insert", "key": {"number": number}, "values": {"tag": tag}}
        return op, {"table": self._tables.members, **fields}

    def _begin(self, kind: str, value: Mapping[str, Any]) -> Op:
        return self._recorder.begin(self.name, kind, value)

    def ask(self, request: dict[str, Any]) -> Outcome:
        """Return the outcome. What it asked is kept, to be asked again in the end."""
        asked = {"id": new_request_id(), **request}
        self.asked[asked["id"].hex()] = asked
        return outcome_of(self._producer, asked, self.give_up_s, self.ask_again_s)


class WriteProbe(RequestClient):
    """Adds one to a row again and again: how long are writers without an answer? A new master has
    one of its first requests, while leases of its predecessor may run."""

    ask_again_s = 0.25

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.pace_s = PROBE_S

    def next(self) -> tuple[Op, dict[str, Any]]:
        op = self._begin("count", {})
        values = {"n": {"expr": "n + 1"}}
        fields = {"op": "update", "key": {"id": 0}, "values": values}
        return op, {"table": self._tables.counter, **fields}


class RetriedClient(RequestClient):
    """Adds one to a row, each time as if it had seen an older state of it: the master refuses it,
    Spark tries it again on the newest row, until one attempt is taken."""

    give_up_s = GIVE_UP_RETRIED_S

    def next(self) -> tuple[Op, dict[str, Any]]:
        op = self._begin("retried", {})
        fields = {"op": "update", "key": {"id": RETRIED_ROW}, "values": {"n": {"expr": "n + 1"}}}
        return op, {"table": self._tables.counter, "expect": OLD_GENID, **fields}


def answer_of(outcome: Outcome) -> dict[str, Any]:
    """Return what is the same however often one asks (L5)."""
    return {"lsn": outcome.lsn, "code": outcome.code, "decided_us": outcome.decided_us}


def outcome_of(
    producer: ChangeProducer,
    request: Mapping[str, Any],
    give_up_s: float = GIVE_UP_S,
    ask_again_s: float = ASK_AGAIN_S,
) -> Outcome:
    """Ask until the outcome is known; raises OutcomeUnknown when that takes longer."""
    pending: Pending | None = None
    for _ in range(round(give_up_s / ask_again_s)):
        try:
            if pending is None:
                pending = producer.submit(request, timeout_s=ask_again_s)
            else:
                pending.ask_again()
            return pending.result(ask_again_s)
        except (OutcomeUnknown, BusUnavailable):
            continue
    raise OutcomeUnknown(f"request {request['id'].hex()}: no outcome in {give_up_s:g} s")
