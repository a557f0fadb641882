"""A program that sends change requests and waits for their results, as its users would."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgpack

from leasehold.adapters.codec.request_bytes import MESSAGE_PACK
from leasehold.in_process.bus import Message
from leasehold.model.records.requests import Outcome, Result
from tests.simulation.harm import demand

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

MS = 1_000_000
ATTEMPTS_MAX = 12


@dataclass(slots=True)
class Asked:
    """One request. `again` makes the fields of its next attempt (on_conflict replay)."""

    id: bytes
    fields: dict[str, Any]
    asked_ns: int
    again: Callable[[], dict[str, Any] | None] | None = None
    done: Callable[[Outcome], None] | None = None
    body: bytes = b""
    attempt: int = 1
    final: Outcome | None = None
    answers: dict[int, Outcome] = field(default_factory=dict)  # by attempt


class Client:
    """`asks_again`: impatient, sends the same id once more when the answer takes long."""

    def __init__(
        self, name: str, number: int, sim: Simulation, rng: random.Random, *, asks_again: bool
    ) -> None:
        self.name = name
        self.number = number
        self._sim = sim
        self._rng = rng
        self.asks_again = asks_again
        self.asked: dict[bytes, Asked] = {}
        results = sim.cluster.topics.results.name
        sim.cluster.bus.subscribe(results, number, 0, self._read)

    @property
    def waiting(self) -> list[Asked]:
        return [asked for asked in self.asked.values() if asked.final is None]

    def ask(
        self,
        fields: Mapping[str, Any],
        *,
        again: Callable[[], dict[str, Any] | None] | None = None,
        done: Callable[[Outcome], None] | None = None,
    ) -> Asked:
        request_id = self._sim.cluster.fresh_id()
        sent = {**fields, "id": request_id, "reply_to": self.number}
        asked = Asked(request_id, sent, self._sim.scheduler.now_ns, again, done)
        self.asked[request_id] = asked
        self._send(asked)
        return asked

    def _send(self, asked: Asked) -> None:
        asked.body = msgpack.packb({**asked.fields, "attempt": asked.attempt})
        self._go(asked)
        if self._rng.random() < 0.05:
            self._later(lambda body=asked.body: self._put(body))  # type: ignore[misc]
        if self.asks_again:
            self._remind(asked)

    def _go(self, asked: Asked) -> None:
        self._put(asked.body)

    def _put(self, body: bytes) -> None:
        delay_ns = self._rng.randrange(MS // 10, 3 * MS)
        self._sim.scheduler.later(delay_ns, lambda: self._arrive(body))

    def _arrive(self, body: bytes) -> None:
        cluster = self._sim.cluster
        cluster.bus.once_there(lambda: cluster.put(MESSAGE_PACK, body))

    def _later(self, action: Callable[[], None]) -> None:
        self._sim.scheduler.later(self._rng.randrange(1, 2_000) * MS, action)

    def _remind(self, asked: Asked) -> None:
        def look() -> None:
            if asked.final is None:
                self.ask_again(asked)

        self._sim.scheduler.later(self._rng.randrange(300, 4_000) * MS, look)

    def ask_again(self, asked: Asked) -> None:
        """Send it once more, under the same id (T5)."""
        self._put(asked.body)
        self._remind(asked)

    def _read(self, message: Message) -> None:
        for result in self._sim.codec.decode(message.value or b"").results:
            self._answered(result)

    def _answered(self, result: Result) -> None:
        asked = self.asked.get(result.request_id)
        demand(asked is not None, "L7", f"{self.name} got an answer to what it never asked")
        assert asked is not None, "demanded"
        outcome = result.outcome
        settled = bool(outcome.lsn) or outcome.final
        before = asked.final if settled else asked.answers.get(outcome.attempt)
        if before is not None:
            demand(before == outcome, "L5", f"{self.name} was told {before}, then {outcome}")
        elif settled:
            asked.final = outcome
            if asked.done is not None:
                asked.done(outcome)
        elif asked.final is not None:
            # Of an attempt before it may be heard late: told, or given again by a later master when
            # the one that gave it died, and of what it had sent only the later part arrived (L7).
            earlier = outcome.attempt < asked.final.attempt
            demand(earlier, "L5", f"refused after the final answer: {outcome}")
            asked.answers[outcome.attempt] = outcome
        else:
            asked.answers[outcome.attempt] = outcome
            if asked.again is not None and outcome.attempt == asked.attempt:
                self._replay(asked)

    def _replay(self, asked: Asked) -> None:
        """L5: the same id, the next attempt; a replay carries no old version pin."""
        assert asked.again is not None, "looked at before"
        asked.attempt += 1
        fields = asked.again() if asked.attempt <= ATTEMPTS_MAX else None
        if fields is None:
            asked.fields = {**asked.fields, "give_up": True}
        else:
            asked.fields = {**fields, "id": asked.id, "reply_to": self.number}
        self._sim.scheduler.later(self._rng.randrange(1, 100) * MS, lambda: self._send(asked))
