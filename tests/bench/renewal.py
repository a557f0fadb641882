"""Group renewal: what it costs an agent to keep leases on so many tables."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from leasehold.adapters.redis.ledger import RedisLedger
from leasehold.client.agent import Agent
from leasehold.lease.commands import Command, Renew
from leasehold.lease.replies import Reply
from tests.bench.bench_settings import BenchSettings
from tests.bench.figure import Figure, percentile
from tests.bench.stand import BenchFailure, Stand, say, stand

TABLES: Final = (10, 1_000)
RENEWALS: Final = 60
RENEW_EVERY_MS: Final = 200
TIMEOUT_S: Final = 60.0


class Timed:
    """A ledger that notes how long renewals take, in µs."""

    def __init__(self, inner: RedisLedger) -> None:
        self._inner = inner
        self.renewals: list[float] = []

    def call(self, command: Command) -> Reply:
        begin = time.perf_counter()
        reply = self._inner.call(command)
        if isinstance(command, Renew):
            self.renewals.append((time.perf_counter() - begin) * 1e6)
        return reply

    def close(self) -> None:
        self._inner.close()


def measure(settings: BenchSettings) -> Iterator[Figure]:
    with stand(["m1", "changefeed"], settings.warm_up) as where:
        for number in range(max(TABLES)):
            sql = f"CREATE TABLE t{number} (id bigint PRIMARY KEY)"
            where.producer.submit({"sql": sql})
        if not where.producer.wait(TIMEOUT_S):
            raise BenchFailure("tables were not created")
        for tables in TABLES:
            yield Figure(f"renewal_{tables}", _renewal_us(where, tables), "µs")


def _renewal_us(where: Stand, tables: int) -> float:
    named = where.named(f"keeper-{tables}")
    quick = replace(named, renew_every_ms=RENEW_EVERY_MS)
    ledger = Timed(RedisLedger(quick.redis, quick.cluster.database))
    with Agent(quick, ledger=ledger) as agent:
        for number in range(tables):
            with agent.lease(f"t{number}", TIMEOUT_S):
                pass
        say(f"leases on {tables} tables are held; {RENEWALS} renewals")
        ledger.renewals.clear()
        deadline = time.monotonic() + TIMEOUT_S
        while len(ledger.renewals) < RENEWALS:
            if time.monotonic() > deadline:
                raise BenchFailure(f"only {len(ledger.renewals)} renewals in {TIMEOUT_S:g} s")
            time.sleep(RENEW_EVERY_MS / 1e3)
        return percentile(ledger.renewals, 0.5)
