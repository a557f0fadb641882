"""Goal: what a process tells arrives at a receiver of OTLP as OpenTelemetry's own messages; one
that is away costs spans and nothing else.

Method: an HTTP server that reads what comes by OpenTelemetry's published protocol.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Final

import pytest

from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.tracing.otlp import OtlpSpans
from leasehold.adapters.tracing.spans import open_spans
from leasehold.model.traces import NO_SPAN, NO_SPANS, Span, SpanKind, TraceContext
from leasehold.settings.environment import from_environment
from leasehold.settings.traces import TraceSettings
from tests.support.tracing.otlp_receiver import OtlpReceiver

PLACE: Final = TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", sampled=True)
SPAN: Final = Span(
    "UPDATE", SpanKind.SERVER, PLACE, "b7ad6b7169203331", 0, 0, {"a": "b", "n": 7}, "40001"
)


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    made = OtlpReceiver()
    yield made
    made.close()


def test_a_span_arrives_as_it_was_told(receiver: OtlpReceiver) -> None:
    spans = OtlpSpans(receiver.url, 0.0, "leasehold-replicant", "r1", "demo")
    before_ns = time.time_ns()
    begun_ns = boottime_ns()
    spans.record(SPAN._replace(begin_ns=begun_ns, end_ns=begun_ns + 5_000_000))
    spans.close()
    (got,) = receiver.spans()
    assert (got.trace_id, got.span_id, got.parent) == (*PLACE[:2], "b7ad6b7169203331")
    assert (got.name, got.kind, got.error) == ("UPDATE", "SPAN_KIND_SERVER", "40001")
    assert got.attributes == {"a": "b", "n": 7}
    assert got.end_ns - got.begin_ns == 5_000_000
    assert abs(got.begin_ns - before_ns) < 60e9, "times are those of the wall clock"
    told = ("service.name", "service.namespace", "service.instance.id")
    assert [got.resource[name] for name in told] == ["leasehold-replicant", "demo", "r1"]
    samples = {sample.labels: sample.value for sample in spans.samples()}
    assert samples == {("sent",): 1}


def test_a_span_without_one_above_it_says_so(receiver: OtlpReceiver) -> None:
    spans = OtlpSpans(receiver.url, 0.0, "leasehold-master", "m1", "demo")
    spans.record(SPAN._replace(parent="", error=""))
    spans.close()
    (got,) = receiver.spans()
    assert (got.parent, got.error) == ("", "")


def test_a_receiver_that_refuses_is_told_of_once_and_once_more_when_it_is_back(
    receiver: OtlpReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "leasehold.traces")
    spans = OtlpSpans(receiver.url, 0.0, "leasehold-master", "m1", "demo")
    receiver.status = 400
    for _ in range(2):
        spans.record(SPAN)
        spans.flush()
    receiver.status = 200
    spans.record(SPAN)
    spans.close()
    words = [record.getMessage() for record in caplog.records]
    assert len(words) == 2
    assert "spans can't be sent" in words[0]
    assert "again; 2 were lost" in words[1]
    samples = {sample.labels: sample.value for sample in spans.samples()}
    assert samples == {("sent",): 1, ("lost",): 2}


def test_without_an_endpoint_nothing_is_sent() -> None:
    settings = from_environment(TraceSettings, {"LEASEHOLD_TRACES_SAMPLE": "1"})
    with open_spans(settings, "leasehold-master", "m1", "demo") as spans:
        assert spans is NO_SPANS
        assert not spans.is_on


def test_a_part_of_what_nobody_asks_for_begins_a_trace(receiver: OtlpReceiver) -> None:
    for sample, least, most in ((0.0, 0, 0), (1.0, 1_000, 1_000), (0.5, 300, 700)):
        spans = OtlpSpans(receiver.url, sample, "leasehold-master", "m1", "demo")
        begun = [found for found in (spans.begin_trace() for _ in range(1_000)) if found]
        spans.close()
        assert least <= len(begun) <= most
        assert len({found.trace_id for found in begun}) == len(begun)
        assert all(found.span_id == NO_SPAN and found.sampled for found in begun)
