"""Settings of the measurements, read from the environment."""

from __future__ import annotations

from dataclasses import dataclass

from leasehold.settings.setting import integer, setting


@dataclass(frozen=True, slots=True)
class BenchSettings:
    rows: int = setting(
        "LEASEHOLD_BENCH_ROWS",
        "rows of the bulk load and of CREATE INDEX; fewer for a trial",
        default=1_000_000,
        parse=integer(1_000, 100_000_000, "rows"),
    )
    replicants: int = setting(
        "LEASEHOLD_BENCH_REPLICANTS",
        "replicants of the groups commit, rate, index and stall",
        default=3,
        parse=integer(1, 3, "replicants"),
    )
    clients: int = setting(
        "LEASEHOLD_BENCH_CLIENTS",
        "client processes that share the load of group rate",
        default=1,
        parse=integer(1, 16, "processes"),
    )
    seconds: int = setting(
        "LEASEHOLD_BENCH_SECONDS",
        "seconds measured for each rate, after the warm-up",
        default=10,
        parse=integer(1, 3_600, "seconds"),
    )
