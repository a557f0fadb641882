"""Goal: what is counted is told as it is, in bounded memory; each metric is declared by the rules.

Method: measures by hand; the declarations, one by one, against Prometheus' conventions.
"""

from __future__ import annotations

import re

import pytest

from leasehold.model.measures import OTHERS, SERIES_MAX, Distribution, Kind, Measures, Metric
from leasehold.model.metrics import GROUPS, METRICS

CALLS = Metric("calls_total", Kind.COUNTER, "calls", ("way",))
TIMES = Metric("times_seconds", Kind.HISTOGRAM, "times", (), (1.0, 2.0))
UNITS = ("seconds", "bytes", "total", "max", "info")


def test_counters_add_up_by_label() -> None:
    measures = Measures()
    measures.add(CALLS, 2, ("a",))
    measures.add(CALLS, 1, ("b",))
    measures.add(CALLS, 3, ("a",))
    assert measures.value(CALLS, ("a",)) == 5
    assert {sample.labels: sample.value for sample in measures.samples()} == {("a",): 5, ("b",): 1}


def test_an_observation_lies_in_the_first_bucket_that_takes_it() -> None:
    measures = Measures()
    for value in (0.5, 1.0, 1.5, 7.0):
        measures.observe(TIMES, value)
    found = measures.distribution(TIMES)
    assert (found.counts, found.total) == ([2, 1, 1], 10.0)


def test_what_has_too_many_labels_is_counted_together() -> None:
    """A client may choose what it sends: a scrape stays as small as before."""
    measures = Measures()
    for number in range(SERIES_MAX + 50):
        measures.add(CALLS, 1, (str(number),))
    assert len(measures.samples()) == SERIES_MAX + 1
    assert measures.value(CALLS, (OTHERS,)) == 50
    measures.add(CALLS, 1, ("3",))
    assert measures.value(CALLS, ("3",)) == 2


def test_measures_of_two_are_joined() -> None:
    one, other = Measures(), Measures()
    one.add(CALLS, 1, ("a",))
    one.observe(TIMES, 0.5)
    other.add(CALLS, 2, ("a",))
    other.observe(TIMES, 5.0)
    one.join(other)
    assert one.value(CALLS, ("a",)) == 3
    assert one.distribution(TIMES).counts == [1, 0, 1]
    other.observe(TIMES, 5.0)
    assert one.distribution(TIMES).counts == [1, 0, 1], "a copy, and no part of the other"


def test_an_observation_may_count_several_times() -> None:
    found = Distribution((1.0,))
    found.observe(0.5, 3)
    assert (found.counts, found.total) == ([3, 0], 1.5)


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_a_metric_is_declared_by_the_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"leasehold_[a-z][a-z_]*[a-z]", metric.name)
    assert (metric.kind is Kind.COUNTER) == metric.name.endswith("_total")
    assert bool(metric.bounds) == (metric.kind is Kind.HISTOGRAM)
    assert list(metric.bounds) == sorted(set(metric.bounds))
    assert metric.help
    assert not metric.help.endswith("."), "the exporter ends the sentence"
    assert "le" not in metric.labels
    assert "ms" not in metric.name.split("_"), "seconds and bytes are the units"


def test_no_name_is_declared_twice() -> None:
    assert sum(len(group.metrics) for group in GROUPS) == len(METRICS)
