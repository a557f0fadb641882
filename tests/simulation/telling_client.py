"""A client that tells its requests to the master and is told their answers, while that works: as
`client/request_transport.py` does it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from leasehold.adapters.codec.request_bytes import MESSAGE_PACK
from leasehold.in_process.bus import Message
from leasehold.in_process.driver import TERM_HEADER
from leasehold.model.records.requests import Result, ResultBatch
from leasehold.replication.effects import RequestsReceived
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.replication.fast_path.requests import Asking, FastRequestSettings, RequestPath
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED
from tests.simulation.client import MS, Asked, Client

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

LOOK_MS: Final = 10


class TellingClient(Client):
    def __init__(
        self,
        name: str,
        number: int,
        sim: Simulation,
        rng: random.Random,
        *,
        asks_again: bool,
        settings: FastRequestSettings,
    ) -> None:
        super().__init__(name, number, sim, rng, asks_again=asks_again)
        self._ways = RequestPath(settings)
        self._chance = random.Random(f"{sim.seed}/{name} tells")
        self._key = self._chance.randbytes(16)
        self._held: list[Asked] = []
        self._looks = False
        self.told_requests = 0
        """How many were told alone."""
        self.held_requests = 0
        sim.cluster.pubsub.subscribe_to_answers(self._key, self._told)

    # ------------------------------------------------------------ requests

    def _go(self, asked: Asked) -> None:
        pubsub, ways = self._sim.cluster.pubsub, self._ways
        asking = ways.ask((asked.id,), len(asked.body), self._now(), connected=not pubsub.away)
        self._held.append(asked)
        self._ask_again()
        if asking.held:
            self.held_requests += 1
        else:
            self._let_go(asking)
        self._look_later()

    def _let_go(self, asking: Asking) -> None:
        """What was held back, which the new one is part of."""
        group, self._held = self._held, []
        if asking.number != NOT_PUBLISHED:
            requests = tuple((MESSAGE_PACK, asked.body) for asked in group)
            said = RequestsReceived(self._key, asking.run, asking.number, requests)
            self._tell(self._ways.term, said)
        for asked in group:
            if asking.by_kafka:
                self._put(asked.body)
            else:
                self.told_requests += 1

    def _go_on(self) -> None:
        self._ask_again()
        pubsub = self._sim.cluster.pubsub
        asking = self._ways.release(self._now(), connected=not pubsub.away)
        if asking is not None:
            self._let_go(asking)
            self._look_later()

    def _tell(self, term: Term, said: RequestsReceived) -> None:
        outcome = self._outcome()

        def arrive() -> None:
            pubsub = self._sim.cluster.pubsub
            if pubsub.away:
                return
            heard = outcome == "lost" or pubsub.publish_requests(term, said)
            if outcome == "twice":
                self._later(arrive_again)
            if outcome != "unanswered":
                self._soon(lambda: answer(heard=heard))

        def arrive_again() -> None:
            self._sim.cluster.pubsub.publish_requests(term, said)

        def answer(*, heard: bool) -> None:
            self._ways.confirm(said.run, said.number, self._now(), received=heard)
            self._go_on()

        self._soon(arrive)

    def _ask_again(self) -> None:
        again, self._ways.again = self._ways.again, []
        for request_id in again:
            self._put(self.asked[request_id].body)

    def _look_later(self) -> None:
        if not self._looks:
            self._looks = True
            self._sim.scheduler.later(LOOK_MS * MS, self._look)

    def _look(self) -> None:
        self._looks = False
        self._ways.tick(self._now())
        self._go_on()
        if self._ways.asks:
            self._look_later()

    # ------------------------------------------------------------ answers

    def _read(self, message: Message) -> None:
        for result in self._sim.codec.decode(message.value or b"").results:
            self._take(result, told=False)
        epoch, _, incarnation = message.headers.get(TERM_HEADER, "").partition(":")
        term = (int(epoch), bytes.fromhex(incarnation)) if epoch else NOBODY
        self._ways.follow(term, self._now())
        self._go_on()

    def _told(self, batch: ResultBatch) -> None:
        def receive() -> None:
            for result in batch.results:
                self._take(result, told=True)
            self._go_on()

        outcome = self._outcome()
        if outcome != "lost":
            self._soon(receive)
        if outcome == "twice":
            self._later(receive)

    def _take(self, result: Result, *, told: bool) -> None:
        self._ways.answered(result.request_id, result.outcome, self._now(), published=told)
        self._answered(result)  # repeats are judged, too

    # ------------------------------------------------------------ chance

    def _now(self) -> int:
        return self._sim.scheduler.now_ns

    def _soon(self, action: Callable[[], None]) -> None:
        self._sim.scheduler.later(self._chance.randrange(MS // 20, 2 * MS), action)

    def _outcome(self) -> str:
        if self._chance.random() >= self._sim.weather.untold:
            return "ok"
        return self._chance.choice(("lost", "unanswered", "twice"))
