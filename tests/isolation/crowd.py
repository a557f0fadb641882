"""Many SQL clients on two replicants, their statements interleaved, with a nemesis or without.

What they do is a workload's; here is who is at work when, and what breaks meanwhile. Each
statement is asked at one moment of the crowd's own clock, so that it is known which answers were
given before what was asked.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from leasehold.model.errors import Refused
from leasehold.transaction.isolation import ISOLATION, Isolation, Level
from tests.isolation.sql_stage import SQL_NODES, SqlStage
from tests.isolation.sql_told import BEGIN, Answered
from tests.simulation.simulation import MS
from tests.support.sql_session.sql_client import SqlClient

CLIENTS: Final = 5
TRANSACTIONS: Final = 30
CALM: Final = 6
"""Transactions after everything is healed, of which some must commit."""

StatementBatch = Generator[str, Answered, bool]
"""One transaction: gives each statement, gets its answer; in the end whether it is to commit."""


@dataclass(slots=True)
class Attempt:
    """A transaction. `begun`, `ended`: moments of the crowd's clock; `seen`: what it noted."""

    number: int
    begun: int
    ended: int = 0
    committed: bool = False
    seen: dict[str, Any] = field(default_factory=dict)


class Workload(Protocol):
    """`setup` makes its tables; `script` is the next transaction, which notes in `attempt` what it
    was shown; `wrong` tells in words what must not have been."""

    setup: str

    def script(self, attempt: Attempt) -> StatementBatch: ...
    def wrong(self, attempts: list[Attempt], rows: Callable[[str], list[Any]]) -> list[str]: ...


@dataclass(slots=True)
class _Client:
    attempt: Attempt
    script: StatementBatch
    client: SqlClient
    said: str = ""
    """The next statement, "" = the block is to end."""


class Crowd:
    """`run()`, then `wrong()`, then `close()`. `ended`: SQLSTATEs of those that did not commit."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        level: Level,
        make: Callable[[Isolation, random.Random], Workload],
        *,
        nemesis: bool,
    ) -> None:
        self._rng = random.Random(f"{make.__name__}/{seed}/{level.value}/{nemesis}")
        self._level = level
        self._nemesis = nemesis
        self.workload = make(ISOLATION[level], self._rng)
        self.stage = SqlStage(folder)
        self.stage.repeats = 0.25 if nemesis else 0.0
        self.attempts: list[Attempt] = []
        self.ended: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self._at_work: list[_Client] = []
        self._clock = 0
        self.stage.ask_sql("r1", self.workload.setup)

    # ------------------------------------------------------------ the run

    def run(self) -> None:
        self._transactions(TRANSACTIONS, faulty=self._nemesis)
        self._heal()
        before = len(self.attempts)
        self._transactions(before + CALM, faulty=False)
        assert any(each.committed for each in self.attempts[before:]), (
            "no progress when all is well"
        )

    def _transactions(self, count: int, *, faulty: bool) -> None:
        rng = self._rng
        while len(self.attempts) < count or self._at_work:
            if len(self._at_work) < CLIENTS and len(self.attempts) < count:
                self._at_work.append(self._begun())
            self._clock += 1
            self._step(rng.choice(self._at_work))
            if rng.random() < 0.5:
                self.stage.passing(rng.choice((1, 1, 2, 5)))
            if faulty and rng.random() < 0.03:
                self._fault()

    def _begun(self) -> _Client:
        self._clock += 1
        attempt = Attempt(len(self.attempts), self._clock)
        self.attempts.append(attempt)
        client = SqlClient(self.stage, self._rng.choice(SQL_NODES))
        script = self.workload.script(attempt)
        return _Client(attempt, script, client, BEGIN[self._level])

    def _step(self, at: _Client) -> None:
        """Its next statement, and what it makes of the answer."""
        try:
            if not at.said:
                at.client.ask("commit")
                self._end(at, committed=True)
                return
            beginning = at.said == BEGIN[self._level]
            rows = at.client.ask(at.said)
            try:
                told = None if beginning else Answered(at.client.tags[-1], rows)
                at.said = next(at.script) if told is None else at.script.send(told)
            except StopIteration as end:
                at.said = ""
                if not end.value:
                    at.client.ask("rollback")
                    self._end(at, committed=False)
        except Refused as error:
            self.ended[error.sqlstate] += 1
            self._end(at, committed=False)
            self.stage.passing(20)

    def _end(self, at: _Client, *, committed: bool) -> None:
        self._clock += 1
        at.attempt.committed, at.attempt.ended = committed, self._clock
        at.client.session.close()
        self._at_work.remove(at)

    # ------------------------------------------------------------ the nemesis

    def _fault(self) -> None:
        rng, stage = self._rng, self.stage
        kinds = (self._crash, self._unsure, self._pause, self._cut_off, self._clock_jumps)
        master = stage.master
        if master is not None:
            rng.choice(kinds)(master.settings.name)

    def _crash(self, master: str) -> None:
        """With what it has not told yet."""
        self.faults["crashes"] += 1
        self.stage.node(master).crash()
        back_ms = self._rng.choice((30, 300, 1_500))
        self.stage.scheduler.later(back_ms * MS, lambda: self.stage.restart(master))

    def _unsure(self, master: str) -> None:
        self.faults["appends lost or late"] += 1
        hops = self.stage.scripted[master]
        hops.late_ms = self._rng.choice((0, 5, 100, 1_000))
        hops.fates.append(self._rng.choice(("lost", "unknown")))

    def _pause(self, master: str) -> None:
        self.faults["pauses"] += 1
        name = self._rng.choice((master, *SQL_NODES))
        self.stage.node(name).pause(self._until())

    def _cut_off(self, master: str) -> None:
        self.faults["partitions"] += 1
        name = self._rng.choice((master, *SQL_NODES))
        self.stage.node(name).isolate(self._until())

    def _clock_jumps(self, master: str) -> None:
        self.faults["clock jumps"] += 1
        name = self._rng.choice((master, *SQL_NODES))
        self.stage.node(name).clock.wall_shift_us = self._rng.randrange(-20_000, 20_000) * 1_000

    def _until(self) -> int:
        span_ms = self._rng.choice((20, 200, 700, 1_500))
        return self.stage.scheduler.now_ns + span_ms * MS

    def _heal(self) -> None:
        stage = self.stage
        for hops in stage.scripted.values():
            hops.fates.clear()
        for name, node in stage.cluster.nodes.items():
            node.heal()
            node.clock.wall_shift_us = 0
            stage.restart(name)
        stage.passing(2_000)
        well = lambda: stage.master is not None and len(stage.coherent()) == 2  # noqa: E731
        stage.until(well, "a master and coherent replicants", virtual_ms=60_000)

    # ------------------------------------------------------------ what it shows

    def wrong(self) -> list[str]:
        self.stage.passing(200)
        return self.workload.wrong(self.attempts, self._rows)

    def _rows(self, text: str) -> list[Any]:
        """What is committed, on both replicants."""
        found = [self.stage.ask_sql(node, text) for node in SQL_NODES]
        assert found[0] == found[1], "replicas hold the same"
        return found[0]

    def close(self) -> None:
        self.stage.close()
