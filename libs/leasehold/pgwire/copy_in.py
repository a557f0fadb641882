"""COPY … FROM STDIN: between the statement that begins it and its tag."""

from __future__ import annotations

from leasehold.pgwire.batch import Batch
from leasehold.pgwire.copy.input import CopyRows
from leasehold.pgwire.messages import backend
from leasehold.pgwire.messages.frontend import READERS, CopyData, CopyFail
from leasehold.pgwire.named_objects import NamedPortal
from leasehold.pgwire.wire_errors import Canceled


class CopyIn:
    """The COPY that takes rows, if one does."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._copy: tuple[NamedPortal, CopyRows] | None = None

    def begin(self, portal: NamedPortal) -> None:
        """Ask the client for the rows of a portal whose statement is COPY."""
        batch, target = self._batch, portal.portal.copy
        assert target is not None
        self._copy = (portal, CopyRows(target, batch.session.zone, batch.limits))
        batch.replies.say(backend.copy_in(len(target.columns), binary=target.format.binary))
        batch.replies.flush()

    def take(self, kind: int, body: bytes) -> tuple[NamedPortal, str] | None:
        """Take one message of data; return the portal and its tag at the end of the data. Raises
        Canceled where the client gives up, and what is wrong with the rows."""
        message = READERS[kind](body, self._batch.limits)
        assert self._copy is not None
        portal, rows = self._copy
        if isinstance(message, CopyData):
            rows.feed(message.data)
            return None
        if isinstance(message, CopyFail):
            raise Canceled(f"COPY from stdin failed: {message.reason}")
        rows.finish()
        tag = portal.portal.fetch(1).tag
        assert tag is not None, "COPY ends with one fetch"
        portal.tag = tag
        self.drop()
        return portal, tag

    def drop(self) -> None:
        """Close the portal of the COPY, if there is one."""
        copy, self._copy = self._copy, None
        if copy is not None:
            copy[0].portal.close()
