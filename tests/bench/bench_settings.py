"""Settings of the measurements, read from the environment."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
        "replicants of the groups commit, rate, index, stall and tables",
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
    tables: int = setting(
        "LEASEHOLD_BENCH_TABLES",
        "tables of group tables, which begins with a tenth of them",
        default=2_000,
        parse=integer(10, 100_000, "tables"),
    )
    agents: int = setting(
        "LEASEHOLD_BENCH_AGENTS",
        "agents of group agents, each with a session and a lease of its own",
        default=1_000,
        parse=integer(1, 10_000, "agents"),
    )
    warm_up: int = setting(
        "LEASEHOLD_BENCH_WARM_UP",
        "commits at most before a group measures, so that the broker has compiled itself",
        default=12_000,
        parse=integer(0, 1_000_000, "commits"),
    )

    def for_trial(self) -> BenchSettings:
        """As small as it works: whether a group runs, and nothing of what it measures."""
        return replace(self, rows=1_000, replicants=1, seconds=1, tables=10, agents=4, warm_up=0)
