"""Requests that the master has read and not decided, in the order of their queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Final, NamedTuple

from leasehold.model.errors import NotAuthentic, Refused
from leasehold.model.ports import Codec
from leasehold.model.records.requests import ChangeRequest, Queue
from leasehold.model.signatures import OPEN, Verifier
from leasehold.replication.effects import QueueRead
from leasehold.replication.master.refusals import internal_failure

READ_AHEAD_BYTES_MAX: Final = 256 * 1024
_REQUESTS: Final = Queue.REQUESTS.value
SHORT_BYTES_MAX: Final = 8 * 1024
"""A body of so many bytes is read in a moment, unless it is packed."""
READ_UNPROVEN_BYTES_MAX: Final = 1 << 20
"""Of a message that nobody has proven: of a longer one is not looked who waits for its answer."""
PACKED: Final = "+zlib"


class Taken(NamedTuple):
    """A message that was taken out. `request_id` is b"" where nobody has read it, or it has none;
    `arrived_ns`: when it came."""

    content_type: str
    request_id: bytes
    attempt: int
    arrived_ns: int


class RequestQueue:
    """The first of them may be decoded before their turn: while a record travels, the master has
    nothing else to do, and what is done then the next record need not wait for. Decoding is a
    function of the message alone, so when it is done makes no difference to what is decided."""

    def __init__(self, codec: Codec, verifier: Verifier = OPEN) -> None:
        self._codec = codec
        self._verifier = verifier
        self._messages: deque[QueueRead] = deque()
        self._arrived: deque[int] = deque()  # when each of them did
        self._decoded: deque[ChangeRequest | Refused] = deque()  # of the first messages
        self._decoded_bytes = 0
        self._bytes = 0
        self._reading: _Reading | None = None
        """Of the first message that is not decoded: what is left to do."""

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def waiting_bytes(self) -> int:
        """How many bytes the messages hold that wait."""
        return self._bytes

    @property
    def is_reading(self) -> bool:
        """Whether a message is decoded in part."""
        return self._reading is not None

    def append(self, message: QueueRead, now_ns: int = 0) -> None:
        self._messages.append(message)
        self._arrived.append(now_ns)
        self._bytes += len(message.body)

    def read_ahead(self, requests_max: int, is_over: Callable[[], bool]) -> None:
        """Decode the first messages, so many of them if there are, of `READ_AHEAD_BYTES_MAX` at
        most, until `is_over`: a read-back that comes meanwhile waits for it."""
        while self.may_read_ahead(requests_max):
            if not self._read(self._messages[len(self._decoded)], is_over) or is_over():
                return

    @property
    def first_is_read(self) -> bool:
        """Whether the oldest message is decoded."""
        return bool(self._decoded)

    def read_first(self, is_over: Callable[[], bool]) -> bool:
        """Decode the oldest message until `is_over`; return whether it is decoded. Raises
        IndexError."""
        return bool(self._decoded) or self._read(self._messages[0], is_over)

    def may_read_ahead(self, requests_max: int) -> bool:
        known = len(self._decoded)
        if known >= min(requests_max, len(self._messages)):
            return False
        if known and (_is_packed(self._messages[known]) or _is_packed(self._messages[known - 1])):
            return False  # unpacked it has a hundred times its bytes, perhaps: one at a time
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
            self._read(message, _never)
        return message, self._decoded[0]

    def pop(self) -> Taken:
        """Take the oldest message out, which is decided. Raises IndexError."""
        message = self._messages.popleft()
        self._bytes -= len(message.body)
        request_id, attempt = b"", 0
        if self._decoded:
            decoded = self._decoded.popleft()
            if isinstance(decoded, ChangeRequest):
                request_id, attempt = decoded.id, decoded.attempt
            self._decoded_bytes -= len(message.body)
        else:
            self._reading = None
        return Taken(message.content_type, request_id, attempt, self._arrived.popleft())

    def _read(self, message: QueueRead, is_over: Callable[[], bool]) -> bool:
        """Decode the first message that is not decoded, until `is_over`; return whether it is."""
        said: ChangeRequest | Refused
        try:
            found = self._decode(message, is_over)
            if found is None:
                return False
            said = found
        except Refused as error:
            said = error
        except Exception as error:  # noqa: BLE001 - every master would come to it
            said = internal_failure(error)
        self._reading = None
        self._decoded.append(said)
        self._decoded_bytes += len(message.body)
        return True

    def _decode(self, message: QueueRead, is_over: Callable[[], bool]) -> ChangeRequest | None:
        """Return the request of a message, in the name of whom it proves; None: it is read on when
        this is called again. Raises Refused."""
        reading = self._reading
        if reading is None:
            media_type, role, number = self._prove(message)
            body = message.body
            if len(body) <= SHORT_BYTES_MAX and not media_type.endswith(PACKED):
                return _in_name_of(self._codec.decode_request(media_type, body), role, number)
            slices = self._codec.decode_request_in_slices(media_type, body)
            reading = self._reading = _Reading(slices, role, number)
        try:
            while True:
                next(reading.slices)
                if is_over():
                    return None
        except StopIteration as end:
            return _in_name_of(end.value, reading.role, reading.key_number)

    def _prove(self, message: QueueRead) -> tuple[str, str, str]:
        """Return a message's media type, and whose it is, by which key. Raises NotAuthentic."""
        content_type, body = message.content_type, message.body
        if self._verifier.is_open and ";" not in content_type:
            return content_type, "", ""
        try:
            media_type, (role, number) = self._verifier.read(_REQUESTS, content_type, body)
        except NotAuthentic as error:
            error.detail = {**error.detail, **self._requester(content_type, body)}
            raise
        return media_type, role, number

    def _requester(self, content_type: str, body: bytes) -> dict[str, object]:
        """Return who is to be told, so far as the bytes show it: ⚠ anybody may have written them,
        so nothing is read for it that takes long."""
        media_type = content_type.partition(";")[0]
        if len(body) > READ_UNPROVEN_BYTES_MAX or media_type.endswith(PACKED):
            return {}
        try:
            request = self._codec.decode_request(media_type, body)
        except Refused as error:
            told = error.detail
            return {name: told[name] for name in ("request_id", "reply_to") if name in told}
        told = {"request_id": request.id, "reply_to": request.reply_to}
        return {**told, "attempt": request.attempt}


class _Reading(NamedTuple):
    """A message that is decoded in part, and in whose name it is."""

    slices: Generator[None, None, ChangeRequest]
    role: str
    key_number: str


def _in_name_of(request: ChangeRequest, role: str, key_number: str) -> ChangeRequest:
    return request._replace(principal=role, key_number=key_number) if role else request


def _is_packed(message: QueueRead) -> bool:
    return message.content_type.partition(";")[0].endswith(PACKED)


def _never() -> bool:
    return False
