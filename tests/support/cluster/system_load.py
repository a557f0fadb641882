"""Writers that never stop by themselves: each adds one to a row, under an id of its own, and asks
again until it knows what became of it (T5). So at the end every sum can be told exactly."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple

from leasehold import ChangeProducer, Replica
from leasehold.adapters.os.clock import boottime_ns, new_request_id
from leasehold.client.pending import Pending
from leasehold.model.errors import LeaseholdError, OutcomeUnknown
from leasehold.model.records.requests import Outcome
from leasehold.settings.client import ClientSettings
from tests.support.cluster.system_cluster import SOON_S

IN_FLIGHT_MAX: Final = 8
ASK_AGAIN_S: Final = 15.0
ALONE: Final = 100
"""A row that no load changes, only the tests themselves."""
PACE_S: Final = 0.04
"""Between two requests of one writer: what is tested needs writes at any moment, not a machine
that has no time for anything else. At 0.01 two writers alone are half of two slow processors."""
SELDOM_S: Final = 0.08
"""Beside jobs that take minutes, which need processors, too."""
OFTEN_S: Final = 0.02
"""Of writers whose requests and acknowledgements are to come by Redis, which those of rarer writes
do not. Twice as many cost a broker a quarter of a processor."""

ROWS_AT_ONCE: Final = 500


class Answered(NamedTuple):
    """A request with the outcome it was told."""

    request: Mapping[str, Any]
    outcome: Outcome


class Sent(NamedTuple):
    """A request on its way, and when it was sent."""

    request: dict[str, Any]
    pending: Pending
    begun_ns: int


class Load:
    """Context manager; leaving it stops the writers and waits until each outcome is known."""

    def __init__(
        self,
        settings: ClientSettings,
        table: str,
        keys: Sequence[int],
        writers: int = 2,
        pace_s: float = PACE_S,
    ) -> None:
        self._producer = ChangeProducer(settings)
        self._table = table
        self._keys = keys
        self._pace_s = pace_s
        self._stop = threading.Event()
        self._known = threading.Condition()
        self.answered: list[Answered] = []
        self.errors: list[BaseException] = []
        self.longest_wait_s = 0.0
        """Of an answer, by who takes it when it is its turn."""
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"writer {number}")
            for number in range(writers)
        ]

    def more(self, count: int) -> None:
        """Until `count` more requests have been answered from now on."""
        with self._known:
            wanted = len(self.answered) + count
            met = self._known.wait_for(
                lambda: len(self.answered) >= wanted or bool(self.errors), SOON_S
            )
        assert not self.errors, self.errors
        assert met, f"{wanted - len(self.answered)} of {count} answers did not come"

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._producer.close()
        assert not self.errors, self.errors

    @property
    def committed(self) -> dict[int, int]:
        """Key → requests that were told they are committed."""
        counted = Counter(a.request["key"]["id"] for a in self.answered if a.outcome.lsn)
        return {key: counted[key] for key in self._keys}

    def assert_exact(self, replica: Replica) -> None:
        """Each acknowledged write is there, and none of them twice (L3, L5)."""
        replica.wait_coherent()
        found = {row["id"]: row["n"] for row in replica.scan(self._table)}
        assert {key: found[key] for key in self._keys} == self.committed
        refused = [a for a in self.answered if not a.outcome.lsn]
        assert not refused, refused[:3]

    def assert_same_answers(self, settings: ClientSettings, count: int = 100) -> None:
        """L5: asked again, each id gets the answer that it got."""
        step = max(1, len(self.answered) // count)
        sample = self.answered[::step]
        with ChangeProducer(settings) as producer:
            pending = [producer.submit(answered.request) for answered in sample]
            again = [each.result(SOON_S) for each in pending]
        assert again == [answered.outcome for answered in sample]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self, number: int) -> None:
        waiting: deque[Sent] = deque()
        turn = number
        try:
            while not self._stop.wait(self._pace_s):
                if len(waiting) < IN_FLIGHT_MAX:
                    key = self._keys[turn % len(self._keys)]
                    turn += 1
                    request = self._increment(key)
                    begun_ns = boottime_ns()
                    waiting.append(Sent(request, self._producer.submit(request), begun_ns))
                else:
                    self._take(waiting)
            while waiting:
                self._take(waiting)
        except BaseException as error:
            with self._known:
                self.errors.append(error)
                self._known.notify_all()
            raise

    def _increment(self, key: int) -> dict[str, Any]:
        return {
            "id": new_request_id(),
            "table": self._table,
            "op": "update",
            "key": {"id": key},
            "values": {"n": {"expr": "n + 1"}},
        }

    def _take(self, waiting: deque[Sent]) -> None:
        request, pending, begun_ns = waiting.popleft()
        outcome = settled(pending)
        with self._known:
            waited_s = (boottime_ns() - begun_ns) / 1e9
            self.longest_wait_s = max(self.longest_wait_s, waited_s)
            self.answered.append(Answered(request, outcome))
            self._known.notify_all()


def made_counters(settings: ClientSettings, keys: Iterable[int]) -> None:
    """The table `t` that a Load counts in, with a row for each key."""
    with ChangeProducer(settings) as producer:
        sql = "CREATE TABLE t (id bigint PRIMARY KEY, n int NOT NULL DEFAULT 0)"
        assert producer.submit({"sql": sql}).result().lsn
        for key in keys:
            fields = {"table": "t", "op": "insert", "key": {"id": key}, "values": {}}
            assert producer.submit(fields).result().lsn


def made_tables(producer: ChangeProducer, sql: str, inserts: Sequence[Mapping[str, Any]]) -> None:
    """Tables with rows, ROWS_AT_ONCE in a transaction."""
    assert producer.submit({"sql": sql}).result().lsn
    for first in range(0, len(inserts), ROWS_AT_ONCE):
        rows = inserts[first : first + ROWS_AT_ONCE]
        assert producer.submit({"transaction": rows}).result(90).lsn


def add_one(producer: ChangeProducer) -> int:
    """Add one to the row that only tests change, wait for the answer; → its LSN."""
    values = {"n": {"expr": "n + 1"}}
    request = {"table": "t", "op": "update", "key": {"id": ALONE}, "values": values}
    outcome = producer.submit(request).result(90)
    assert outcome.lsn, outcome
    return outcome.lsn


def settled(pending: Pending) -> Outcome:
    """The outcome; asks again under the same id while it is not known (T5)."""
    give_up_ns = boottime_ns() + int(2 * SOON_S * 1e9)
    while True:
        try:
            return pending.result(ASK_AGAIN_S)
        except OutcomeUnknown:
            assert boottime_ns() < give_up_ns, f"{pending}: {pending.trouble}"
            try:
                pending.ask_again()
            except LeaseholdError:
                continue
