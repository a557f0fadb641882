"""A simple Query: its statements one after the other, as one batch."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported
from leasehold.pgwire.batch import Batch
from leasehold.pgwire.copy_in import CopyIn
from leasehold.pgwire.messages import backend
from leasehold.pgwire.messages.frontend import READERS, Query
from leasehold.pgwire.named_objects import NamedPortal, NamedStatement
from leasehold.pgwire.phases import Outcome
from leasehold.pgwire.values.formats import ALL_BINARY, ALL_TEXT
from leasehold.pgwire.wire_errors import UnknownParameter

_FUNCTION_CALL: Final = ord("F")
_DONE: Final = Outcome.DONE


class SimpleQuery:
    """The Query that runs. A statement waits in `_queue`, runs as the batch's `running` portal, and
    has `_ended` until its tag is said: each of these steps may have to wait (WouldBlock), and
    `run` of the same message then goes on with that step."""

    def __init__(self, batch: Batch, copy_in: CopyIn) -> None:
        self._batch = batch
        self._copy_in = copy_in
        self._queue: deque[Any] = deque()
        self._text_bytes = 0
        self._ended: tuple[NamedPortal, str] | None = None

    def run(self, kind: int, body: bytes) -> Outcome:
        """Run a message to ReadyForQuery, or to a COPY's demand for rows; go on if it has begun."""
        batch = self._batch
        if self._queue or self._ended or batch.running:
            return self._run_queue()
        if kind == _FUNCTION_CALL:
            raise FeatureNotSupported("function calls by message are not supported: use SELECT")
        query = READERS[kind](body, batch.limits)
        assert isinstance(query, Query)
        batch.objects.drop_statement("")
        batch.objects.drop_portal("")
        self._text_bytes = len(query.text)
        self._queue.extend(batch.session.statements(query.text))
        batch.take_reports()
        if not self._queue:
            self._end_transaction()
            batch.replies.say(backend.EMPTY_QUERY)
        return self._run_queue()

    def go_on_after_copy(self, portal: NamedPortal, tag: str) -> Outcome:
        """Run what follows a COPY whose rows are all there."""
        self._ended = portal, tag
        return self._run_queue()

    def drop(self) -> None:
        """Forget what was still to be run."""
        self._ended = None
        self._queue.clear()

    def _run_queue(self) -> Outcome:
        batch = self._batch
        while self._queue or self._ended or batch.running:
            if self._ended is None:
                portal = batch.running
                if portal is None:
                    portal = self._bind_next()
                    if portal.portal.copy is not None:
                        self._copy_in.begin(portal)
                        return Outcome.COPY_BEGINS_SIMPLE
                    batch.running = portal
                    if not (portal.copies or portal.statement.prepared.answers_whole):
                        batch.describe_rows(portal)
                tag = batch.send_rows(portal, 0)
                assert tag is not None
                batch.close_running()
                self._ended = portal, tag
            if not self._queue:  # the end may be an error, so it comes before the last tag
                batch.session.answer_held = batch.statements == 1
                self._end_transaction()
            batch.complete(*self._ended)
            self._ended = None
        batch.become_ready()
        return _DONE

    def _bind_next(self) -> NamedPortal:
        """Return the portal of the statement whose turn it is."""
        batch = self._batch
        batch.steps += 1
        prepared = batch.session.prepare(self._queue[0], ())
        if prepared.parameters:
            raise UnknownParameter("there is no parameter $1")
        statement: NamedStatement = batch.objects.with_codecs(prepared, self._text_bytes)
        formats = ALL_BINARY if prepared.binary else ALL_TEXT
        result = statement.result(formats, batch.session.zone)
        portal = NamedPortal(statement, batch.session.bind(prepared, ()), result)
        self._queue.popleft()
        batch.begin_statement()
        return portal

    def _end_transaction(self) -> None:
        """End the batch's transaction. Raises WouldBlock: what is said behind it waits with it."""
        waits = self._batch.end_transaction()
        if waits is not None:
            raise waits
