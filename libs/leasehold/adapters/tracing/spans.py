"""Opens what takes the spans of a process: a collector, or nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from leasehold.model.traces import NO_SPANS, SpanSink
from leasehold.settings.extras import need_extra
from leasehold.settings.traces import TraceSettings


@contextmanager
def open_spans(
    settings: TraceSettings, service: str, instance: str, database: str
) -> Iterator[SpanSink]:
    """Yield where the spans of this process go: to LEASEHOLD_TRACES_ENDPOINT, or nowhere. Raises
    ConfigurationError."""
    if settings.endpoint is None:
        yield NO_SPANS
        return
    need_extra("traces", "LEASEHOLD_TRACES_ENDPOINT", "opentelemetry")
    # Imported late: who sends no spans need not have it.
    from leasehold.adapters.tracing.otlp import OtlpSpans

    spans = OtlpSpans(settings.endpoint, settings.sample, service, instance, database)
    try:
        yield spans
    finally:
        spans.close()
