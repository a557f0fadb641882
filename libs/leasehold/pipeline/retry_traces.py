"""Spans of requests that have waited for their next attempt. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.ids import format_request_id
from leasehold.model.records.requests import Conflict
from leasehold.model.time_units import NS_PER_MS
from leasehold.model.traces import TRACEPARENT, Span, SpanKind, trace_of
from leasehold.pipeline.retry_state import Waiting, jitter
from leasehold.transaction.retry import backoff_ms

_MARK: Final = f"{TRACEPARENT}=".encode()


def retry_spans(
    codec: MessagePackCodec, ready: Iterable[Waiting], now_ms: int, mono_ns: int
) -> Iterator[Span]:
    """Yield a span for each of these that is to be followed: from when its conflict came to now,
    which is `now_ms` (unix ms) and `mono_ns` (this host's monotonic clock)."""
    for entry in ready:
        if _MARK not in entry.conflict:  # most are not: nothing is decoded for it
            continue
        asks = trace_of(codec.decode_as(Conflict, entry.conflict).content_type)
        if asks is None:
            continue
        request_id, attempt = entry.request_id, entry.attempt
        came_ms = entry.due_ms - backoff_ms(attempt, jitter(request_id, attempt))
        yield Span(
            "wait for retry",
            SpanKind.INTERNAL,
            asks.child("retry", request_id, attempt),
            asks.span_id,
            mono_ns - max(0, now_ms - came_ms) * NS_PER_MS,
            mono_ns,
            {
                "leasehold.request.id": format_request_id(request_id),
                "leasehold.request.attempt": attempt,
            },
        )
