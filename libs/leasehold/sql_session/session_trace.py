"""The trace of a session's statements: under which it asks the master, and what is told of them."""

from __future__ import annotations

from typing import Final

from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.records.requests import ChangeRequest
from leasehold.model.traces import (
    NO_SPAN,
    Span,
    SpanKind,
    SpanSink,
    TraceContext,
    read_traceparent,
)
from leasehold.sql.session.trace_comment import take_trace_comment

NAME_CHARACTERS_MAX: Final = 20
OTHER: Final = "SQL"


class SessionTrace:
    """What is followed of one session: a text of a client's, from its arrival to the end of its
    batch, with the COMMIT that ends it.

    A trace is named by the comment of a text. In a block that of the last text that had one counts
    for those behind it: a driver's COMMIT has none.
    """

    def __init__(self, spans: SpanSink, process: int, database: str, node: str) -> None:
        """Follow nothing yet. `process`: the number of the session on its node."""
        self._spans = spans
        self._session = f"{node} {process}"
        self._told = {"db.system.name": "postgresql", "db.namespace": database}
        self._told |= {"leasehold.node": node}
        self._asks: TraceContext | None = None  # of the text that runs, or of the block
        self._place: TraceContext | None = None  # of the span that is open
        self._name = OTHER
        self._begun_ns = 0
        self._number = 0
        self._error = ""

    def read(self, text: str) -> str:
        """Return a text without the comment that names its trace, and follow it, if it is to be."""
        text, traceparent = take_trace_comment(text)
        if traceparent:
            self._asks = read_traceparent(traceparent)
        if not self._spans.is_on:
            return text
        begins = self._place is None
        if begins and self._asks is None:
            self._asks = self._spans.begin_trace()
        asks = self._asks
        if begins and asks is not None and asks.sampled:
            self._number += 1
            self._begun_ns = boottime_ns()
            self._name = _operation_of(text)
            self._place = asks.child("statement", self._session, self._number, self._begun_ns)
        return text

    def mark(self, request: ChangeRequest) -> ChangeRequest:
        """Return a request as one of the statement that runs."""
        place = self._place or self._asks
        if place is None or not place.sampled:
            return request
        return request._replace(traceparent=place.to_text())

    def failed(self, sqlstate: str) -> None:
        """Take it that what runs has failed."""
        self._error = sqlstate

    def end(self, *, in_block: bool) -> None:
        """Tell of what has run. `in_block`: what comes next belongs to the same transaction."""
        place, asks, error = self._place, self._asks, self._error
        self._error = ""
        if not in_block:
            self._asks = None
        if place is None or asks is None:
            return
        self._place = None
        told: dict[str, str | int] = {**self._told, "db.operation.name": self._name}
        if error:
            told["db.response.status_code"] = error
        name, begun_ns = self._name, self._begun_ns
        parent = "" if asks.span_id == NO_SPAN else asks.span_id
        span = Span(name, SpanKind.SERVER, place, parent, begun_ns, boottime_ns(), told, error)
        self._spans.record(span)


def _operation_of(text: str) -> str:
    """Return the first word of a text, in upper case."""
    words = text[: 4 * NAME_CHARACTERS_MAX].split(None, 1)
    word = words[0].rstrip(";") if words else ""
    return word.upper() if word.isalpha() and len(word) <= NAME_CHARACTERS_MAX else OTHER
