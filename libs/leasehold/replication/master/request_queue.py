"""Requests that the master has read and not decided, in the order of their queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Final

from leasehold.model.errors import Refused
from leasehold.model.ports import Codec
from leasehold.model.records.requests import ChangeRequest
from leasehold.replication.effects import QueueRead
from leasehold.replication.master.refusals import internal_failure

READ_AHEAD_BYTES_MAX: Final = 256 * 1024
SHORT_BYTES_MAX: Final = 8 * 1024
"""A body of so many bytes is read in a moment, unless it is packed."""
PACKED: Final = "+zlib"


class RequestQueue:
    """The first of them may be decoded before their turn: while a record travels, the master has
    nothing else to do, and what is done then the next record need not wait for. Decoding is a
    function of the message alone, so when it is done makes no difference to what is decided."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._messages: deque[QueueRead] = deque()
        self._decoded: deque[ChangeRequest | Refused] = deque()  # of the first messages
        self._decoded_bytes = 0
        self._bytes = 0
        self._reading: Generator[None, None, ChangeRequest] | None = None
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

    def append(self, message: QueueRead) -> None:
        self._messages.append(message)
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
        if known and (
            self._messages[known].content_type.endswith(PACKED)
            or self._messages[known - 1].content_type.endswith(PACKED)
        ):
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

    def pop(self) -> None:
        """Take the oldest message out, which is decided. Raises IndexError."""
        message = self._messages.popleft()
        self._bytes -= len(message.body)
        if self._decoded:
            self._decoded.popleft()
            self._decoded_bytes -= len(message.body)
        else:
            self._reading = None

    def _read(self, message: QueueRead, is_over: Callable[[], bool]) -> bool:
        """Decode the first message that is not decoded, until `is_over`; return whether it is."""
        said: ChangeRequest | Refused
        try:
            if len(message.body) <= SHORT_BYTES_MAX and not message.content_type.endswith(PACKED):
                said = self._codec.decode_request(message.content_type, message.body)
            else:
                found = self._read_on(message, is_over)
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

    def _read_on(self, message: QueueRead, is_over: Callable[[], bool]) -> ChangeRequest | None:
        reading = self._reading
        if reading is None:
            reading = self._reading = self._codec.decode_request_in_slices(
                message.content_type, message.body
            )
        try:
            while True:
                next(reading)
                if is_over():
                    return None
        except StopIteration as end:
            request: ChangeRequest = end.value
            return request


def _never() -> bool:
    return False
