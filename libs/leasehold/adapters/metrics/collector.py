"""The collector that prometheus_client asks, in a process of ours or in a program with a replica.

prometheus_client is an extra: nothing else of the library imports it, and this module only where
somebody wants metrics.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric as Family
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from leasehold.adapters.metrics.exposition import Exposition
from leasehold.model.measures import Distribution, Kind, Labels, Metric


class ExpositionCollector(Collector):
    """A collector for a `prometheus_client.CollectorRegistry`."""

    def __init__(self, exposition: Exposition) -> None:
        """Begin. `exposition`: whose values it gives."""
        self._exposition = exposition

    def describe(self) -> list[Family]:
        """Return nothing: what there is is known when it is asked for, and names don't clash."""
        return []

    def collect(self) -> Iterator[Family]:
        """Yield a family for each metric that has a value."""
        values = self._exposition.collect()
        for metric in sorted(values, key=lambda each: each.name):
            name = metric.name
            if metric.kind is Kind.COUNTER:
                name = name.removesuffix("_total")
            family = Family(name, f"{metric.help}.", metric.kind.value)
            for labels, value in values[metric].items():
                _add(family, metric, labels, value)
            yield family


def _add(family: Family, metric: Metric, labels: Labels, value: float | Distribution) -> None:
    named = dict(zip(metric.labels, labels, strict=True))
    if not isinstance(value, Distribution):
        family.add_sample(metric.name, named, value)
        return
    below = 0
    bounds = [*map(floatToGoString, metric.bounds), "+Inf"]
    for bound, count in zip(bounds, list(value.counts), strict=True):
        below += count
        family.add_sample(f"{metric.name}_bucket", {**named, "le": bound}, below)
    family.add_sample(f"{metric.name}_count", named, below)
    family.add_sample(f"{metric.name}_sum", named, value.total)
