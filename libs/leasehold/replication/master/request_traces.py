"""Spans of requests at the master: what those have passed that are to be followed (`model/traces`).

    queue ─▶ decide ─▶ append ─▶ apply on each coherent node ─▶ answer

A node's span is taken from its acknowledgement: it holds the record's way there, its commit in the
store, and the way back, which is what the answer waits for. *Not* told by the node itself: a record
of the log names no trace, and what is not in the log nobody has to read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from leasehold.model.ids import format_request_id
from leasehold.model.records.log import Decisions
from leasehold.model.traces import Span, SpanKind, SpanSink, TraceContext, trace_of
from leasehold.replication.coherency import CoherencyWatch
from leasehold.replication.master.request_queue import Taken

FOLLOWED_MAX: Final = 1_000
"""Requests that are followed at a time. What comes beyond is decided as ever, and not told."""


class _Followed(NamedTuple):
    """A request that is decided. `place`: of the span that holds those of its stations."""

    place: TraceContext
    parent: str
    request_id: bytes
    attempt: int
    arrived_ns: int
    begun_ns: int


class _Waiting:
    """A record that was read back, with the requests whose answers wait for nodes."""

    def __init__(self, offset: int, read_back_ns: int, followed: list[_Followed]) -> None:
        self.offset = offset
        self.read_back_ns = read_back_ns
        self.followed = followed
        self.applied: set[str] = set()
        self.ends: Mapping[bytes, tuple[int, str]] = {}
        """By request id: the LSN of its commit, or 0 and the SQLSTATE of its refusal."""


class RequestTraces:
    """The requests of one term that are followed. Times are this host's monotonic clock, in ns."""

    def __init__(self, sink: SpanSink, node: str, watch: CoherencyWatch) -> None:
        """Tell `sink` of the stations at the master `node`."""
        self._sink = sink
        self._node = node
        self._watch = watch
        self._deciding: list[_Followed] = []
        self._travelling: list[_Followed] = []
        self._waiting: deque[_Waiting] = deque()
        self._count = 0
        self._appended_ns = 0

    def decided(self, taken: Taken, begun_ns: int) -> None:
        """Follow a request which has just been decided, in a turn that began then, if its message
        asks for that."""
        if not self._sink.is_on or self._count >= FOLLOWED_MAX:
            return
        asks = trace_of(taken.content_type)
        if asks is None:
            return
        self._count += 1
        request_id, attempt, arrived_ns = taken.request_id, taken.attempt, taken.arrived_ns
        place = asks.child("decide request", request_id, attempt)
        begun_ns = max(begun_ns, arrived_ns)
        self._deciding.append(
            _Followed(place, asks.span_id, request_id, attempt, arrived_ns, begun_ns)
        )

    def appended(self, now_ns: int) -> None:
        """Take it that the record with all that was decided is on its way."""
        if self._deciding:
            self._travelling, self._deciding = self._deciding, []
            self._appended_ns = now_ns

    def read_back(self, record: Decisions, offset: int, now_ns: int) -> None:
        """Tell of the stations until the read-back of the record that was on its way."""
        followed, self._travelling = self._travelling, []
        if not followed:
            return
        for one in followed:
            self._tell(one, "queue", one.arrived_ns, one.begun_ns)
            self._tell(one, "decide", one.begun_ns, self._appended_ns)
            self._tell(one, "append", self._appended_ns, now_ns, {"leasehold.log.offset": offset})
        waiting = _Waiting(offset, now_ns, followed)
        ids = {one.request_id for one in followed}
        commits = {
            commit.request_id: (lsn, "")
            for lsn, commit in enumerate(record.commits, record.first_lsn)
            if commit.request_id in ids
        }
        refusals = {
            refusal.request_id: (0, refusal.code)
            for refusal in record.refusals
            if refusal.request_id in ids
        }
        waiting.ends = commits | refusals
        self._waiting.append(waiting)

    def heard(self, now_ns: int) -> None:
        """Tell which nodes have applied records since this was called last."""
        for waiting in self._waiting:
            for node in self._watch.applied_past(waiting.offset, now_ns) - waiting.applied:
                waiting.applied.add(node)
                for one in waiting.followed:
                    self._tell(
                        one,
                        f"apply {node}",
                        waiting.read_back_ns,
                        now_ns,
                        {"leasehold.node": node},
                    )

    def released(self, first_waiting: int | None, now_ns: int) -> None:
        """Tell of requests whose answers are given: those of records before that one; None: all."""
        if not self._waiting:
            return
        self.heard(now_ns)
        while self._waiting and (first_waiting is None or self._waiting[0].offset < first_waiting):
            waiting = self._waiting.popleft()
            self._count -= len(waiting.followed)
            for one in waiting.followed:
                self._answer(one, waiting, now_ns)

    def _answer(self, one: _Followed, waiting: _Waiting, now_ns: int) -> None:
        # A request that was decided before is answered from memory: the record has nothing of it.
        lsn, code = waiting.ends.get(one.request_id, (0, ""))
        attributes: dict[str, str | int] = {
            "leasehold.request.id": format_request_id(one.request_id) if one.request_id else "",
            "leasehold.request.attempt": one.attempt,
            "leasehold.node": self._node,
        }
        if lsn:
            attributes["leasehold.lsn"] = lsn
        if code:
            attributes["db.response.status_code"] = code
        self._tell(one, "answer", waiting.read_back_ns, now_ns)
        self._sink.record(
            Span(
                "decide request",
                SpanKind.CONSUMER,
                one.place,
                one.parent,
                one.arrived_ns,
                now_ns,
                attributes,
                code,
            )
        )

    def _tell(
        self,
        one: _Followed,
        name: str,
        begin_ns: int,
        end_ns: int,
        attributes: Mapping[str, str | int] = {},
    ) -> None:
        place, parent = one.place.child(name), one.place.span_id
        self._sink.record(
            Span(name, SpanKind.INTERNAL, place, parent, begin_ns, end_ns, attributes)
        )
