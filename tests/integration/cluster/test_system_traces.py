"""Goal: one trace holds all that a statement or a change request passes, from the client's span to
the answer, told by different processes; a request that Spark brings back stays in it.

Method: real processes that send their spans to a receiver of OTLP in this one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from typing import Final

import psycopg
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer
from leasehold.model.traces import TraceContext
from tests.support.cluster.secure_suite import dsn_of
from tests.support.cluster.system_cluster import SPARK, Beside, settings_of
from tests.support.tracing.otlp_receiver import OtlpReceiver, ReceivedSpan

pytestmark = pytest.mark.integration

STATIONS: Final = {"queue", "decide", "append", "apply r1", "answer"}
REQUESTS: Final = 30
WHOLE: Final = "decide request"


@pytest.fixture(scope="module")
def receiver() -> Iterator[OtlpReceiver]:
    made = OtlpReceiver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def cluster(beside: Beside, receiver: OtlpReceiver) -> Iterator[LocalCluster]:
    environ = {**os.environ, "LEASEHOLD_TRACES_ENDPOINT": receiver.url}
    with beside.running("traces", ("m1", "r1"), environ) as made:
        with psycopg.connect(dsn_of(made, 0), autocommit=True) as client:
            client.execute("create table seats (id integer primary key, n integer not null)")
            client.execute("insert into seats values (1, 0), (2, 0), (3, 0)")
        yield made


def asks() -> TraceContext:
    """Return a place in a trace that nobody else has."""
    return TraceContext(secrets.token_hex(16), secrets.token_hex(8), sampled=True)


def spans_of(receiver: OtlpReceiver, place: TraceContext, *names: str) -> dict[str, ReceivedSpan]:
    """Return the spans of a trace by name, once those have come."""
    receiver.wait_for({*names}, place.trace_id)
    return {span.name: span for span in receiver.spans() if span.trace_id == place.trace_id}


def check_stations(found: dict[str, ReceivedSpan]) -> None:
    """The stations stand below the request, one behind the other, and were told by the master."""
    whole = found[WHOLE]
    stations = [found[name] for name in ("queue", "decide", "append", "answer")]
    assert {found[name].parent for name in STATIONS} == {whole.span_id}
    begins = [span.begin_ns for span in stations]
    assert begins == sorted(begins)
    assert whole.begin_ns <= begins[0]
    assert found["apply r1"].end_ns <= whole.end_ns
    assert {found[name].resource["service.name"] for name in STATIONS} == {"leasehold-master"}
    assert whole.attributes["leasehold.lsn"] > 0


def test_a_statement_and_what_it_asks_for_are_one_trace(
    cluster: LocalCluster, receiver: OtlpReceiver
) -> None:
    place = asks()
    with psycopg.connect(dsn_of(cluster, 0), autocommit=True) as client:
        client.execute(
            f"update seats set n = n + 1 where id = 1 /*traceparent='{place.to_text()}'*/"
        )
    found = spans_of(receiver, place, "UPDATE", WHOLE, *STATIONS)
    statement = found["UPDATE"]
    assert statement.parent == place.span_id
    assert statement.resource["service.name"] == "leasehold-replicant"
    assert statement.resource["service.instance.id"] == "r1"
    assert found[WHOLE].parent == statement.span_id
    check_stations(found)


def test_a_block_of_a_driver_is_one_trace(cluster: LocalCluster, receiver: OtlpReceiver) -> None:
    place = asks()
    comment = f"/*traceparent='{place.to_text()}'*/"
    with psycopg.connect(dsn_of(cluster, 0)) as client:
        client.execute(f"update seats set n = n + 1 where id = %s {comment}", (2,))
        client.commit()
    found = spans_of(receiver, place, "UPDATE", "COMMIT", WHOLE, *STATIONS)
    assert found["UPDATE"].parent == found["COMMIT"].parent == place.span_id
    assert found[WHOLE].parent == found["COMMIT"].span_id
    check_stations(found)


def test_a_program_with_an_open_span_has_its_requests_in_its_trace(
    cluster: LocalCluster, receiver: OtlpReceiver
) -> None:
    """Some are published through Redis by now, and some stand on Kafka."""
    tracer = TracerProvider().get_tracer("a program")
    with (
        ChangeProducer(settings_of(cluster, "program")) as changes,
        tracer.start_as_current_span("its work") as span,
    ):
        context = span.get_span_context()
        place = TraceContext(f"{context.trace_id:032x}", f"{context.span_id:016x}", sampled=True)
        update = {"table": "seats", "op": "update", "key": [3]}
        for number in range(1, REQUESTS + 1):
            assert changes.submit({**update, "values": {"n": number}}).result().lsn
    assert not trace.get_current_span().get_span_context().is_valid
    receiver.wait_for({WHOLE, *STATIONS}, place.trace_id, REQUESTS)
    spans = [span for span in receiver.spans() if span.trace_id == place.trace_id]
    wholes = [span for span in spans if span.name == WHOLE]
    assert {span.parent for span in wholes} == {place.span_id}
    for whole in wholes:
        below = {span.name: span for span in spans if span.parent == whole.span_id}
        check_stations({WHOLE: whole, **below})


@pytest.mark.long("a Spark driver of its own")
def test_a_request_that_spark_brings_back_stays_in_its_trace(
    cluster: LocalCluster, receiver: OtlpReceiver
) -> None:
    cluster.start(SPARK)
    place = asks()
    stale = {
        "table": "seats",
        "op": "update",
        "key": [1],
        "values": {"n": {"expr": "n + 1"}},
        "expect": 1,
    }
    tracer = TracerProvider().get_tracer("a program")
    context = trace.set_span_in_context(
        trace.NonRecordingSpan(
            trace.SpanContext(
                int(place.trace_id, 16),
                int(place.span_id, 16),
                is_remote=True,
                trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
            )
        )
    )
    with (
        ChangeProducer(settings_of(cluster, "program")) as changes,
        tracer.start_as_current_span("its work", context),
    ):
        outcome = changes.submit(stale).result(90.0)
    assert (outcome.lsn > 0, outcome.attempt) == (True, 2)
    receiver.wait_for({"wait for retry", "answer"}, place.trace_id)
    receiver.wait_for({WHOLE}, place.trace_id, 2)
    told = [span for span in receiver.spans() if span.trace_id == place.trace_id]
    attempts = {
        span.attributes["leasehold.request.attempt"]: span for span in told if span.name == WHOLE
    }
    assert set(attempts) == {1, 2}
    assert attempts[1].error == "40001"
    assert attempts[2].parent == attempts[1].parent
    (waited,) = [span for span in told if span.name == "wait for retry"]
    assert waited.resource["service.name"] == "leasehold-spark"
    assert attempts[1].begin_ns < waited.begin_ns < attempts[2].end_ns
