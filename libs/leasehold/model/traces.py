"""Traces: one request followed through its stations, each of which is told as a span.

Who asks names the trace and its own span in the form `traceparent` of W3C Trace Context
(https://www.w3.org/TR/trace-context/). It travels behind the content type of a request:

    application/msgpack; role=shop; signature=…; traceparent=00-4bf9…4736-00f0…02b7-01

so that it goes wherever the request does: through Kafka and Redis, into the refusal that the log
keeps, to Spark and back. It stands behind the signature, and is no part of what is signed: whoever
changes it changes what is told, and nothing that is decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from hashlib import blake2b
from typing import Final, NamedTuple, Protocol

from leasehold.model.measures import Sample

TRACEPARENT: Final = "traceparent"
"""Name of the header of W3C Trace Context, in HTTP, Kafka and SQL comments alike."""
TRACEPARENT_CHARACTERS: Final = 55
_BEHIND: Final = f"; {TRACEPARENT}="
_TRACE_DIGITS: Final = 32
_SPAN_DIGITS: Final = 16
_HEX: Final = frozenset("0123456789abcdef")
_SAMPLED: Final = 1
NO_SPAN: Final = "0" * _SPAN_DIGITS
"""The span of a trace that begins here: its first span has none above it."""


class TraceContext(NamedTuple):
    """A place in a trace: the trace (32 hexadecimal digits), the span (16), and whether spans below
    it are to be recorded."""

    trace_id: str
    span_id: str
    sampled: bool

    def to_text(self) -> str:
        """Return its `traceparent`."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"

    def child(self, *names: bytes | str | int) -> TraceContext:
        """Return the place of a span below this one. Its id follows from the names, so that a
        station which is passed again, by a replay or a new master, has the same one."""
        digest = blake2b(f"{self.trace_id}{self.span_id}".encode(), digest_size=_SPAN_DIGITS // 2)
        for name in names:
            digest.update(b"\0" + (name if isinstance(name, bytes) else str(name).encode()))
        return TraceContext(self.trace_id, digest.hexdigest(), self.sampled)


def read_traceparent(text: str) -> TraceContext | None:
    """Return what a `traceparent` says; None for one that can't be read, which counts as none."""
    if len(text) < TRACEPARENT_CHARACTERS:
        return None
    version, trace_id, span_id, flags = text[:2], text[3:35], text[36:52], text[53:55]
    dashes = text[2] == text[35] == text[52] == "-"
    if not (dashes and _HEX.issuperset(version + trace_id + span_id + flags)):
        return None
    longer = len(text) > TRACEPARENT_CHARACTERS
    if version == "ff" or (longer and (version == "00" or text[TRACEPARENT_CHARACTERS] != "-")):
        return None
    if trace_id == "0" * _TRACE_DIGITS or span_id == NO_SPAN:
        return None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))


# ---------------------------------------------------------------- behind a content type


def add_trace(content_type: str, traceparent: str) -> str:
    """Return a content type with a `traceparent` behind it, in the place of one that is there.
    What can't be read is left out, so that nobody's header makes a message unreadable."""
    if read_traceparent(traceparent) is None:
        return content_type
    return f"{split_trace(content_type)[0]}{_BEHIND}{traceparent[:TRACEPARENT_CHARACTERS]}"


def split_trace(content_type: str) -> tuple[str, str]:
    """Return a content type without its `traceparent`, and that, "" where there is none."""
    if _BEHIND not in content_type:
        return content_type, ""
    before, _, traceparent = content_type.rpartition(_BEHIND)
    return before, traceparent


def trace_of(content_type: str) -> TraceContext | None:
    """Return the place in a trace under which a message was sent, None if nothing is to be recorded
    of it."""
    if _BEHIND not in content_type:
        return None
    context = read_traceparent(split_trace(content_type)[1])
    return context if context is not None and context.sampled else None


# ---------------------------------------------------------------- spans


class SpanKind(StrEnum):
    """Kinds of spans, as OpenTelemetry has them."""

    SERVER = "server"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    INTERNAL = "internal"


class Span(NamedTuple):
    """A station of a request. `parent`: the id of the span above it, "" = there is none. Times
    are those of this host's monotonic clock, in ns. `error`: why it failed, "" = it did not."""

    name: str
    kind: SpanKind
    place: TraceContext
    parent: str
    begin_ns: int
    end_ns: int
    attributes: Mapping[str, str | int] = {}
    error: str = ""


class SpanSink(Protocol):
    """Takes spans for whoever collects them."""

    @property
    def is_on(self) -> bool:
        """Whether anybody wants them."""
        ...

    def begin_trace(self) -> TraceContext | None:
        """Return the beginning of a trace (`span_id` NO_SPAN) for what nobody has asked to follow;
        None: it is not to be followed either."""
        ...

    def record(self, span: Span) -> None:
        """Take a span; from any thread, without waiting. It may be lost."""
        ...

    def samples(self) -> list[Sample]:
        """Return what a scrape is told; from any thread."""
        ...


class NoSpans:
    """A `SpanSink` for nobody."""

    is_on: Final = False

    def begin_trace(self) -> TraceContext | None:
        return None

    def record(self, span: Span) -> None: ...

    def samples(self) -> list[Sample]:
        return []


NO_SPANS: Final = NoSpans()
