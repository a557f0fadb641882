"""Group rate: verified single-row transactions per second with so many in flight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.bench.bench_settings import BenchSettings
from tests.bench.cpu import cpu_times, per_unit
from tests.bench.figure import Figure
from tests.bench.stand import Stand, replicants, say, stand

IN_FLIGHT: Final = (64, 1_000)
WARM_UP_S: Final = 3


def measure(settings: BenchSettings) -> Iterator[Figure]:
    with stand(["m1", *replicants(settings.replicants)], settings.warm_up) as where:
        for in_flight in IN_FLIGHT:
            yield Figure(f"txn_rate_{in_flight}", _rate(where, settings, in_flight), "txn/s")


def _rate(where: Stand, settings: BenchSettings, in_flight: int) -> float:
    table = f"t{in_flight}"
    where.submit(
        {"sql": f"CREATE TABLE {table} (id bigint PRIMARY KEY, n bigint NOT NULL DEFAULT 0)"}
    )
    share = in_flight // settings.clients
    clients = [
        where.child(
            f"client{number}",
            "rate_client",
            table,
            number * share,
            share,
            WARM_UP_S,
            settings.seconds,
        )
        for number in range(settings.clients)
    ]
    for client in clients:
        client.wait_ready()
    say(f"{in_flight} transactions in flight for {WARM_UP_S} + {settings.seconds} s")
    processes = ["kafka", "m1", *replicants(settings.replicants)]
    before = cpu_times(where.cluster, processes)
    for client in clients:
        client.go()
    answers = [client.answer(stop=False) for client in clients]
    after = cpu_times(where.cluster, processes)
    committed: int = sum(answer["committed"] for answer in answers)
    everything: int = sum(answer["all"] for answer in answers)
    client_us = sum(answer["cpu_s"] for answer in answers) / everything * 1e6
    spent = per_unit(before, after, everything)
    say(f"processor time per transaction, µs: clients {client_us:.0f}, {spent}")
    return committed / settings.seconds
