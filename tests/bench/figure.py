"""What a measurement comes to: percentiles, a metric's line, the table with its target. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple


class Figure(NamedTuple):
    metric: str
    value: float
    unit: str

    def line(self) -> str:
        """The one line of standard output: `metric value unit`."""
        return f"{self.metric} {in_words(self.value)} {self.unit}"


class Target(NamedTuple):
    """`bound` in the metric's unit; `at_most` tells which side of it is good."""

    bound: float
    at_most: bool

    def is_met(self, value: float) -> bool:
        return value <= self.bound if self.at_most else value >= self.bound

    def __str__(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {in_words(self.bound)}"


_BESIDE: Final = ("during", "unique", "check", "computed", "default", "type")
TARGETS: Final = {
    "add_column_e2e": Target(50, at_most=True),
    "step_p50_100": Target(50, at_most=True),
    "commit_p50": Target(4, at_most=True),
    "txn_rate_1000": Target(10_000, at_most=False),
    "step_p50_10": Target(25, at_most=True),
    "backfill_rate": Target(100_000, at_most=False),
    "add_default_e2e": Target(100, at_most=True),
    "default_took_beside": Target(100, at_most=True),
    **{f"write_stall_{when}": Target(50, at_most=True) for when in _BESIDE},
    **{f"write_p99_ratio_{when}": Target(2, at_most=True) for when in _BESIDE},
    "held_lease": Target(1_000, at_most=True),
    "point_read": Target(15, at_most=True),
    "embedded_point_read": Target(15, at_most=True),
    "wire_read_p50": Target(300, at_most=True),
    "wire_read_rate": Target(8_000, at_most=False),
    "wire_update_rate": Target(3_000, at_most=False),
    "pgbench_init": Target(8, at_most=True),
    "create_table_p99_2000": Target(30, at_most=True),
    "tables_write_p99_ratio_2000": Target(2, at_most=True),
    "status_took_2000": Target(1_000, at_most=True),
    "jobs_took_2000": Target(1_000, at_most=True),
    "versions_took_2000": Target(1_000, at_most=True),
    "leases_took_2000": Target(1_000, at_most=True),
    "connect_took_2000": Target(1_000, at_most=True),
    "idle_cpu_2000": Target(0.2, at_most=True),
    "agents_step_p50": Target(300, at_most=True),
    "import_rate": Target(30_000, at_most=False),
    "backup_create": Target(30, at_most=True),
    "backup_restore": Target(30, at_most=True),
    **{
        f"rows_{cost}_growth": Target(4 / 3, at_most=True)
        for cost in ("load", "index", "check", "node", "replica")
    },
}


def in_words(value: float) -> str:
    """Three digits that count, and no exponent: 0.713, 3.21, 12345."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}"


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: the least value that `share` (0 … 1] of them do not exceed.

    It is always a value that was measured, never one between two. Raises ValueError for no values.
    """
    if not values:
        raise ValueError("no measurement, so no percentile")
    if not 0 < share <= 1:
        raise ValueError(f"a share above 0 and up to 1 is needed, not {share}")
    # A product such as 0.07 × 100 comes out a hair above the whole number that it is.
    rank = math.ceil(round(share * len(values), 9))
    return sorted(values)[rank - 1]


def latencies(what: str, when: str, found: Sequence[float]) -> Iterator[Figure]:
    """p50, p99 and the longest of `found`, in ms."""
    yield Figure(f"{what}_p50_{when}", percentile(found, 0.5), "ms")
    yield Figure(f"{what}_p99_{when}", percentile(found, 0.99), "ms")
    yield Figure(f"{what}_stall_{when}", max(found), "ms")


def table(figures: Sequence[Figure]) -> str:
    """For people: metric, value, unit, target, and whether it is met."""
    rows = [("metric", "value", "unit", "target", "")]
    for figure in figures:
        target = TARGETS.get(figure.metric)
        verdict = "" if target is None else "met" if target.is_met(figure.value) else "missed"
        words = "" if target is None else str(target)
        rows.append((figure.metric, in_words(figure.value), figure.unit, words, verdict))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join(
        f"{m:<{widths[0]}}  {v:>{widths[1]}} {u:<{widths[2]}}  {t:<{widths[3]}}  {w}".rstrip()
        for m, v, u, t, w in rows
    )
