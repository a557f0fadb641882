"""Four writers in a process of their own: `python -m infra.demo.writers producers|replica`.

They change flights, hot ones too, at a steady pace until standard input is closed; then they wait
for every outcome and print one line of JSON: counts, and (end, latency) of every write.

producers: only change requests, each expecting the genid its writer saw last; what meets a verify
error is retried by Spark. replica: `transact` on an embedded replica, which replays.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from dataclasses import dataclass, field
from typing import Any, Final

import leasehold
from leasehold.adapters.os.clock import boottime_ns
from leasehold.client.change_producer import ChangeProducer
from leasehold.client.pending import Pending
from leasehold.model.errors import LeaseholdError, OutcomeUnknown
from leasehold.model.ids import genid
from leasehold.model.records.requests import Outcome
from leasehold.settings.client import ClientSettings

WRITERS: Final = 4
OUTCOME_TIMEOUT_S: Final = 90.0
ASKS_MAX: Final = 5


@dataclass
class Tally:
    """What one writer's requests came to."""

    submitted: int = 0
    committed: int = 0
    refused: int = 0
    dead_lettered: int = 0
    unknown: int = 0
    replays: int = 0
    retried: int = 0
    times: list[tuple[int, float]] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)

    def count(self, outcome: Outcome) -> None:
        if outcome.lsn:
            self.committed += 1
        elif outcome.dead_lettered:
            self.dead_lettered += 1
        else:
            self.refused += 1
        if not outcome.lsn:
            self.errors[outcome.code] = self.errors.get(outcome.code, 0) + 1

    def time(self, began_ns: int) -> None:
        ended = boottime_ns()
        self.times.append((ended, (ended - began_ns) / 1e6))


class Flights:
    """The flights that a writer changes, in a random order: one in three changes goes to a hot
    one."""

    def __init__(self, keys: list[list[Any]], seed: int) -> None:
        self._keys = keys
        self._hot = keys[:: max(1, len(keys) // 24)][:24]
        self._random = random.Random(seed)  # noqa: S311 - which flight, no secret

    def next(self) -> tuple[Any, ...]:
        pool = self._hot if self._random.random() < 1 / 3 else self._keys
        return tuple(self._random.choice(pool))


def known(pending: Pending) -> Outcome | None:
    """The outcome; asks again under the same id while it is not known (T5)."""
    for _ in range(ASKS_MAX):
        try:
            return pending.result(OUTCOME_TIMEOUT_S / ASKS_MAX)
        except OutcomeUnknown:
            try:
                pending.ask_again()
            except LeaseholdError:
                continue
    return None


def produce(
    producer: ChangeProducer, flights: Flights, pause_s: float, stop: threading.Event, tally: Tally
) -> None:
    """Change requests one after the other; what Spark retries is waited for beside the loop."""
    seen: dict[tuple[Any, ...], int] = {}
    open_requests: list[tuple[tuple[Any, ...], Pending, int]] = []
    while not stop.wait(pause_s):
        key = flights.next()
        began = boottime_ns()
        request: dict[str, Any] = {
            "table": "flights",
            "op": "update",
            "key": dict(zip(("time_hour", "carrier", "flight"), key, strict=True)),
            "values": {"changes": {"expr": "changes + 1"}},
        }
        if key in seen:
            request["expect"] = seen[key]
        tally.submitted += 1
        open_requests.append((key, producer.submit(request), began))
        open_requests = [each for each in open_requests if not _settled(each, seen, tally)]
    for key, pending, began in open_requests:
        outcome = known(pending)
        if outcome is None:
            tally.unknown += 1
        else:
            _take(key, outcome, began, seen, tally)


def _settled(
    each: tuple[tuple[Any, ...], Pending, int], seen: dict[tuple[Any, ...], int], tally: Tally
) -> bool:
    key, pending, began = each
    if pending.outcome is None:
        return False
    _take(key, pending.outcome, began, seen, tally)
    return True


def _take(
    key: tuple[Any, ...],
    outcome: Outcome,
    began: int,
    seen: dict[tuple[Any, ...], int],
    tally: Tally,
) -> None:
    tally.count(outcome)
    tally.retried += outcome.attempt - 1
    if outcome.lsn:
        # What others did since is not known here, so the next change may meet a verify error.
        seen[key] = genid(outcome.lsn, 0)


def transact(
    replica: leasehold.Replica,
    flights: Flights,
    pause_s: float,
    stop: threading.Event,
    tally: Tally,
) -> None:
    while not stop.wait(pause_s):
        key = flights.next()

        def work(tx: Any, key: tuple[Any, ...] = key) -> None:
            row = tx.get("flights", key)
            tx.update("flights", key, {"changes": row["changes"] + 1})

        tally.submitted += 1
        began = boottime_ns()
        try:
            done = replica.transact(work, timeout_s=OUTCOME_TIMEOUT_S)
        except OutcomeUnknown:
            tally.unknown += 1
        except LeaseholdError as error:
            tally.refused += 1
            tally.errors[error.sqlstate] = tally.errors.get(error.sqlstate, 0) + 1
        else:
            tally.committed += 1
            tally.replays += done.attempts - 1
            tally.time(began)


def main(kind: str, per_second: float) -> int:
    keys = json.loads(sys.stdin.readline())
    settings = ClientSettings.read(os.environ)
    stop = threading.Event()
    tallies = [Tally() for _ in range(WRITERS)]
    pause_s = WRITERS / per_second
    seeds = range(WRITERS) if kind == "producers" else range(100, 100 + WRITERS)
    work = [Flights(keys, seed) for seed in seeds]
    if kind == "producers":
        with ChangeProducer(settings) as producer:
            _run(
                [
                    threading.Thread(target=produce, args=(producer, f, pause_s, stop, t))
                    for f, t in zip(work, tallies, strict=True)
                ],
                stop,
            )
    else:
        with leasehold.open_replica(settings) as replica:
            _run(
                [
                    threading.Thread(target=transact, args=(replica, f, pause_s, stop, t))
                    for f, t in zip(work, tallies, strict=True)
                ],
                stop,
            )
    print(json.dumps([t.__dict__ for t in tallies]), flush=True)
    return 0


def _run(threads: list[threading.Thread], stop: threading.Event) -> None:
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
