"""Settings of traces: where a process sends spans, and of what it begins traces."""

from __future__ import annotations

from dataclasses import dataclass

from leasehold.settings.setting import http_url, ratio, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSettings:
    """The settings of traces. Without an endpoint none are told; what a client asks to be followed
    is passed on all the same."""

    endpoint: str | None = setting(
        "LEASEHOLD_TRACES_ENDPOINT",
        "URL to which spans are sent by OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces;"
        " headers and certificates are those of OpenTelemetry's OTEL_EXPORTER_OTLP_… variables",
        default=None,
        parse=http_url,
        in_repr=False,
    )
    sample: float = setting(
        "LEASEHOLD_TRACES_SAMPLE",
        "part of the SQL statements without a traceparent of their own that begin a trace, 0 to 1",
        default=0.0,
        parse=ratio,
    )
