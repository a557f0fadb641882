"""A receiver of OTLP over HTTP, which reads spans by OpenTelemetry's published messages."""

from __future__ import annotations

import gzip
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1 import trace_pb2


class ReceivedSpan(NamedTuple):
    """A span as it has come. Ids are hexadecimal, times unix ns, `error` the status' message."""

    trace_id: str
    span_id: str
    parent: str
    name: str
    kind: str
    begin_ns: int
    end_ns: int
    attributes: dict[str, Any]
    resource: dict[str, Any]
    error: str


class OtlpReceiver:
    """Listens on a free port until `close`. `status`: what it answers, 200 = it has taken them."""

    def __init__(self) -> None:
        self.status = 200
        self._spans: list[ReceivedSpan] = []
        self._came = Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if receiver.status == 200:
                    receiver._take(body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(receiver.status)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/traces"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def spans(self) -> list[ReceivedSpan]:
        """Return what has come so far."""
        with self._came:
            return list(self._spans)

    def wait_for(
        self, names: set[str], trace_id: str, count: int = 1, timeout_s: float = 60.0
    ) -> None:
        """Return when `count` spans of each of those names have come, of a trace. Raises
        AssertionError."""

        def came() -> Counter[str]:
            return Counter(span.name for span in self._spans if span.trace_id == trace_id)

        with self._came:
            if not self._came.wait_for(lambda: all(came()[n] >= count for n in names), timeout_s):
                raise AssertionError(f"{count} of each of {names} have not come; {came()} have")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        found = [
            _read(span, _values(sent.resource.attributes))
            for sent in request.resource_spans
            for scope in sent.scope_spans
            for span in scope.spans
        ]
        with self._came:
            self._spans += found
            self._came.notify_all()


def _read(span: Any, resource: dict[str, Any]) -> ReceivedSpan:
    return ReceivedSpan(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        trace_pb2.Span.SpanKind.Name(span.kind),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _values(span.attributes),
        resource,
        span.status.message,
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
