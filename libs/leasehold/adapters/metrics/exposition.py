"""All that a process tells of itself, gathered from its parts when somebody asks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from typing import Final

from leasehold.adapters.metrics.health import Health
from leasehold.model import metrics
from leasehold.model.measures import Distribution, Kind, Labels, Measures, Metric, Sample, Source

LOG: Final = logging.getLogger("leasehold.metrics")


class Exposition:
    """The parts of one process, and whether it lives and is ready (`health`). All methods may be
    called from any thread.

    A part that can't be read is left out, counted, and told in the log once: the others are worth
    as much without it.
    """

    def __init__(self) -> None:
        """Begin without parts."""
        self.health = Health()
        self._lock = threading.Lock()
        self._parts: dict[str, Source] = {}
        self._told: set[str] = set()
        self._failures = Measures()

    def add(self, part: str, source: Source) -> None:
        """Read `source` from now on; one that was added as that part before no longer."""
        with self._lock:
            self._parts = {**self._parts, part: source}

    def remove(self, part: str) -> None:
        """Read that part no longer: it is about to be closed."""
        with self._lock:
            self._parts = {name: each for name, each in self._parts.items() if name != part}

    def collect(self) -> dict[Metric, dict[Labels, float | Distribution]]:
        """Return the value of each series. Counters and distributions of several parts are added
        up; of a gauge the last part's counts."""
        with self._lock:
            gathered = _Gathered()
            for part, source in self._parts.items():
                try:
                    samples = list(source())
                except Exception as error:  # noqa: BLE001 - see above
                    self._failed(part, error)
                else:
                    gathered.take(samples)
            gathered.take(self._failures.samples())
            return gathered.values

    def _failed(self, part: str, error: Exception) -> None:
        self._failures.add(metrics.SCRAPE_FAILURES, 1, (part,))
        if part not in self._told:
            self._told.add(part)
            LOG.warning("metrics of %s are left out: %s: %s", part, type(error).__name__, error)


class _Gathered:
    def __init__(self) -> None:
        self.values: dict[Metric, dict[Labels, float | Distribution]] = {}

    def take(self, samples: Iterable[Sample]) -> None:
        for metric, labels, value in samples:
            series = self.values.setdefault(metric, {})
            if isinstance(value, Distribution):
                together = series.get(labels)
                if not isinstance(together, Distribution):
                    together = series[labels] = Distribution(metric.bounds)
                together.join(value)
                continue
            before = series.get(labels)
            adds = metric.kind is Kind.COUNTER and isinstance(before, (int, float))
            series[labels] = value + before if adds else value  # type: ignore[operator]
