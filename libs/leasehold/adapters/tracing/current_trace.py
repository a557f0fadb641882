"""The trace in which the calling program is, if it uses OpenTelemetry."""

from __future__ import annotations

import sys
from typing import Final

from leasehold.model.traces import TraceContext

_MODULE: Final = "opentelemetry.trace"


def current_traceparent() -> str:
    """Return the `traceparent` of the span that is open where this is called, "" without one.

    OpenTelemetry is not imported for it: who has an open span has imported it.
    """
    trace = sys.modules.get(_MODULE)
    if trace is None:
        return ""
    context = trace.get_current_span().get_span_context()
    if not (context.is_valid and context.trace_flags.sampled):
        return ""
    return TraceContext(f"{context.trace_id:032x}", f"{context.span_id:016x}", True).to_text()
