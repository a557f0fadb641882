"""Sends spans to an OpenTelemetry collector by OTLP over HTTP, by OpenTelemetry's own SDK.

Whoever has a span waits for nothing: it goes into a bounded queue, from which the SDK's thread
sends batches. A collector that is away costs the spans of that time, and nothing else; it is said
once when it begins and once when it ends.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from threading import Thread
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags
from opentelemetry.trace import SpanKind as OtelSpanKind

from leasehold import __version__
from leasehold.adapters.os.clock import boottime_ns, fresh_seed
from leasehold.model import metrics
from leasehold.model.measures import Measures, Sample
from leasehold.model.traces import NO_SPAN, Span, SpanKind, TraceContext

QUEUED_MAX: Final = 4_096
"""Spans that wait. One has about a kilobyte."""
BATCH_MAX: Final = 512
DELAY_MS: Final = 500
TIMEOUT_S: Final = 5.0
CLOSE_S: Final = 2.0
CLOCK_SET_NS: Final = 5_000_000
"""A wall clock that is so far from where it was against the monotonic one was set."""
DRAWN_BYTES: Final = 6
"""Of the trace's random id, that say whether it is one of those that are followed."""
LOG: Final = logging.getLogger("leasehold.traces")
_KINDS: Final = {
    SpanKind.SERVER: OtelSpanKind.SERVER,
    SpanKind.PRODUCER: OtelSpanKind.PRODUCER,
    SpanKind.CONSUMER: OtelSpanKind.CONSUMER,
    SpanKind.INTERNAL: OtelSpanKind.INTERNAL,
}
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


class OtlpSpans:
    """A `SpanSink` of one process; `close` sends what waits, for two seconds at most."""

    is_on: Final = True

    def __init__(
        self, endpoint: str, sample: float, service: str, instance: str, database: str
    ) -> None:
        """Send to the URL `endpoint`. `sample`: part of what nobody has asked to follow that begins
        a trace, 0 to 1. `service`, `instance` and `database` name the process that
        sends: what it is, its node, and whose it is."""
        # What becomes of batches is said here, in words, and not for each of them.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._sample = sample
        self._offset_ns = 0
        self._resource = Resource.create(
            {
                "service.name": service,
                "service.namespace": database,
                "service.instance.id": instance,
                "service.version": __version__,
            }
        )
        self._scope = InstrumentationScope("leasehold", __version__)
        self._sending = _Counted(OTLPSpanExporter(endpoint=endpoint, timeout=TIMEOUT_S), endpoint)
        self._waiting = BatchSpanProcessor(
            self._sending,
            max_queue_size=QUEUED_MAX,
            schedule_delay_millis=DELAY_MS,
            max_export_batch_size=BATCH_MAX,
        )

    def begin_trace(self) -> TraceContext | None:
        """Return the beginning of a trace for one of so many as LEASEHOLD_TRACES_SAMPLE says."""
        if not self._sample:
            return None
        trace_id = fresh_seed()
        if int.from_bytes(trace_id[:DRAWN_BYTES], "big") >= self._sample * (1 << 8 * DRAWN_BYTES):
            return None
        return TraceContext(trace_id.hex(), NO_SPAN, True)

    def record(self, span: Span) -> None:
        """Put a span where it waits to be sent; in the place of the oldest if there is no room."""
        self._waiting.on_end(self._readable(span))

    def samples(self) -> list[Sample]:
        """Return what a scrape is told; from any thread."""
        return self._sending.samples()

    def flush(self) -> None:
        """Send what waits now, and wait for that."""
        self._waiting.force_flush()

    def close(self) -> None:
        """Send what waits, and stop; after CLOSE_S what is left is lost."""
        # ⚠ The SDK's own limit is half a minute, and whoever ends this process waits for it.
        ending = Thread(target=self._waiting.shutdown, name="leasehold-traces", daemon=True)
        ending.start()
        ending.join(CLOSE_S)

    def _wall_offset_ns(self) -> int:
        """Return what to add to this host's monotonic clock for unix ns: the same for all spans
        until the wall clock is set, so that one that holds another does so in what is sent, too."""
        offset_ns = time.time_ns() - boottime_ns()
        if abs(offset_ns - self._offset_ns) > CLOCK_SET_NS:
            self._offset_ns = offset_ns
        return self._offset_ns

    def _readable(self, span: Span) -> ReadableSpan:
        wall_ns = self._wall_offset_ns()
        place = span.place
        parent = None
        if span.parent:
            parent = _context(place._replace(span_id=span.parent))
        status = Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET)
        return ReadableSpan(
            span.name,
            _context(place),
            parent,
            self._resource,
            dict(span.attributes),
            kind=_KINDS[span.kind],
            status=status,
            start_time=span.begin_ns + wall_ns,
            end_time=max(span.begin_ns, span.end_ns) + wall_ns,
            instrumentation_scope=self._scope,
        )


class _Counted(SpanExporter):
    """An exporter that counts what becomes of spans, and says when a collector goes away and comes
    back. Used by the SDK's thread."""

    def __init__(self, exporter: SpanExporter, endpoint: str) -> None:
        self._exporter = exporter
        self._endpoint = endpoint
        self._measures = Measures()
        self._is_away = False
        self._lost = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans; return whether the collector has taken them."""
        result = self._exporter.export(spans)
        sent = result is SpanExportResult.SUCCESS
        what = "sent" if sent else "lost"
        self._measures.add(metrics.SPANS, len(spans), (what,))
        if sent and self._is_away:
            LOG.info("spans are sent to %s again; %d were lost", self._endpoint, self._lost)
        elif not sent and not self._is_away:
            LOG.warning(
                "spans can't be sent to %s and are lost meanwhile: is a collector there that takes"
                " OTLP over HTTP? Nothing else waits for it",
                self._endpoint,
            )
        self._is_away = not sent
        self._lost = 0 if sent else self._lost + len(spans)
        return result

    def samples(self) -> list[Sample]:
        return self._measures.samples()

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True


def _context(place: TraceContext) -> SpanContext:
    return SpanContext(int(place.trace_id, 16), int(place.span_id, 16), True, _SAMPLED)
