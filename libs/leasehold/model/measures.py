"""Measures: counters and distributions that owners keep where a thing happens, and that anybody may
read.

The names are declared in `metrics.py`. One thread writes into a `Measures` object (or several that
hold the same lock anyway), so that counting needs no lock; readers on other threads copy what is
there, which Python does in one piece. What is a state, and no sum, is read from its owner when
somebody asks: a `Sample`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

Labels: TypeAlias = tuple[str, ...]

SERIES_MAX: Final = 100
"""Of one metric, in one process: what has further labels is counted together."""
OTHERS: Final = "(others)"
"""The label of what is counted together."""


class Kind(StrEnum):
    """The kinds of metrics, by Prometheus' names."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """A metric as it is declared. `help`: what it is, as a sentence. `labels`: their names.
    `bounds`: upper bounds of a histogram's buckets, rising."""

    name: str
    kind: Kind
    help: str
    labels: Labels = ()
    bounds: tuple[float, ...] = ()


class Distribution:
    """The observations of one histogram: how many lie in each bucket, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        """Begin with none. `bounds`: see `Metric`; above the last is one bucket more."""
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Take an observation that was made so many times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def join(self, other: Distribution) -> None:
        """Add the observations of another one with the same bounds."""
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        self.total += other.total


class Sample(NamedTuple):
    """The value of one series of a metric now."""

    metric: Metric
    labels: Labels
    value: float | Distribution


Source: TypeAlias = Callable[[], Iterable[Sample]]
"""What tells samples when it is asked, from any thread."""


class Measures:
    """Counters and distributions, by metric and labels. See above who may write and who may
    read."""

    def __init__(self) -> None:
        self._sums: dict[tuple[Metric, Labels], float] = {}
        self._distributions: dict[tuple[Metric, Labels], Distribution] = {}
        self._series: dict[Metric, int] = {}

    def add(self, metric: Metric, amount: float = 1, labels: Labels = ()) -> None:
        """Add to a counter."""
        key = (metric, labels)
        before = self._sums.get(key)
        if before is None:
            key = self._key(metric, labels)
            before = self._sums.get(key, 0)
        self._sums[key] = before + amount

    def observe(self, metric: Metric, value: float, labels: Labels = (), times: int = 1) -> None:
        """Take an observation of a histogram, made so many times."""
        distribution = self._distributions.get((metric, labels))
        if distribution is None:
            distribution = self._begin(metric, labels)
        distribution.observe(value, times)

    def value(self, metric: Metric, labels: Labels = ()) -> float:
        """Return what a counter has come to."""
        return self._sums.get((metric, labels), 0)

    def distribution(self, metric: Metric, labels: Labels = ()) -> Distribution:
        """Return the observations of a histogram so far."""
        return self._distributions.get((metric, labels)) or Distribution(metric.bounds)

    def join(self, other: Measures) -> None:
        """Add all that another one has counted."""
        for (metric, labels), amount in list(other._sums.items()):
            self.add(metric, amount, labels)
        for (metric, labels), distribution in list(other._distributions.items()):
            mine = self._distributions.get((metric, labels)) or self._begin(metric, labels)
            mine.join(distribution)

    def samples(self) -> list[Sample]:
        """Return all that is counted here; may be called from any thread."""
        found = [
            Sample(metric, labels, sum_) for (metric, labels), sum_ in list(self._sums.items())
        ]
        for (metric, labels), distribution in list(self._distributions.items()):
            found.append(Sample(metric, labels, distribution))
        return found

    def _begin(self, metric: Metric, labels: Labels) -> Distribution:
        key = self._key(metric, labels)
        distribution = self._distributions.get(key)
        if distribution is None:
            distribution = self._distributions[key] = Distribution(metric.bounds)
        return distribution

    def _key(self, metric: Metric, labels: Labels) -> tuple[Metric, Labels]:
        """Return the key of a new series, or of what is counted together once there are many."""
        assert len(labels) == len(metric.labels), metric.name
        count = self._series.get(metric, 0)
        if count >= SERIES_MAX:
            return metric, (OTHERS,) * len(labels)
        self._series[metric] = count + 1
        return metric, labels
