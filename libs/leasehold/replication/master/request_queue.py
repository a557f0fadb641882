"""Requests that the master has read and not decided, in the order of their queue."""

from __future__ import annotations

from collections import deque
from typing import Final

from leasehold.model.errors import NotAuthentic, Refused
from leasehold.model.ports import Codec
from leasehold.model.records.requests import ChangeRequest, Queue
from leasehold.model.signatures import OPEN, Verifier
from leasehold.replication.effects import QueueRead
from leasehold.replication.master.refusals import internal_failure

READ_AHEAD_BYTES_MAX: Final = 256 * 1024
_REQUESTS: Final = Queue.REQUESTS.value


class RequestQueue:
    """The first of them may be decoded before their turn: while a record travels, the master has
    nothing else to do, and what is done then the next record need not wait for. Decoding is a
    function of the message alone, so when it is done makes no difference to what is decided."""

    def __init__(self, codec: Codec, verifier: Verifier = OPEN) -> None:
        self._codec = codec
        self._verifier = verifier
        self._messages: deque[QueueRead] = deque()
        self._decoded: deque[ChangeRequest | Refused] = deque()  # of the first messages
        self._decoded_bytes = 0

    def __len__(self) -> int:
        return len(self._messages)

    def append(self, message: QueueRead) -> None:
        self._messages.append(message)

    def read_ahead(self, requests_max: int) -> None:
        """Decode the first messages, so many of them if there are, of `READ_AHEAD_BYTES_MAX` at
        most: a read-back that comes meanwhile waits for it."""
        while self.may_read_ahead(requests_max):
            self._read(self._messages[len(self._decoded)])

    def may_read_ahead(self, requests_max: int) -> bool:
        known = len(self._decoded)
        if known >= min(requests_max, len(self._messages)):
            return False
        next_bytes = len(self._messages[known].body)
        return self._decoded_bytes + next_bytes <= READ_AHEAD_BYTES_MAX

    def next(self) -> QueueRead:
        """Return the oldest message, not looked into. Raises IndexError."""
        return self._messages[0]

    def first(self) -> tuple[QueueRead, ChangeRequest | Refused]:
        """Return the oldest message, and what its bytes say, or why they say nothing. Raises
        IndexError."""
        message = self._messages[0]
        if not self._decoded:
            self._read(message)
        return message, self._decoded[0]

    def pop(self) -> None:
        """Take the oldest message out, which is decided. Raises IndexError."""
        message = self._messages.popleft()
        if self._decoded:
            self._decoded.popleft()
            self._decoded_bytes -= len(message.body)

    def _read(self, message: QueueRead) -> None:
        said: ChangeRequest | Refused
        try:
            said = self._decoded_of(message)
        except Refused as error:
            said = error
        except Exception as error:  # noqa: BLE001 - every master would come to it
            said = internal_failure(error)
        self._decoded.append(said)
        self._decoded_bytes += len(message.body)

    def _decoded_of(self, message: QueueRead) -> ChangeRequest:
        """Return the request of a message, in the name of whom it proves. Raises Refused."""
        content_type, body = message.content_type, message.body
        if self._verifier.is_open and ";" not in content_type:
            return self._codec.decode_request(content_type, body)
        try:
            media_type, (role, number) = self._verifier.read(_REQUESTS, content_type, body)
        except NotAuthentic as error:
            error.detail = {**error.detail, **self._requester(content_type, body)}
            raise
        request = self._codec.decode_request(media_type, body)
        return request._replace(principal=role, key_number=number) if role else request

    def _requester(self, content_type: str, body: bytes) -> dict[str, object]:
        """Return who is to be told, so far as the bytes show it: ⚠ anybody may have written
        them."""
        try:
            request = self._codec.decode_request(content_type.partition(";")[0], body)
        except Refused as error:
            told = error.detail
            return {name: told[name] for name in ("request_id", "reply_to") if name in told}
        told = {"request_id": request.id, "reply_to": request.reply_to}
        return {**told, "attempt": request.attempt}
