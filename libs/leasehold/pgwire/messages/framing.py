"""Bytes → messages' kinds and bodies, cut by their lengths; a limit before anything gathers."""

from __future__ import annotations

import struct
from typing import Final

from leasehold.pgwire.limits import Limits
from leasehold.pgwire.messages.frontend import LARGE, READERS
from leasehold.pgwire.wire_errors import ProtocolViolation

_HEAD: Final = struct.Struct("!BI")
_LENGTH: Final = struct.Struct("!I")


class Framing:
    """What arrived and is not yet taken. Both `next_…` return None until a message is whole, and
    raise ProtocolViolation for one that can't be: after that nothing can be read any more."""

    __slots__ = ("_at", "_data", "_limits", "_most")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        small, large = limits.small_message_bytes_max, limits.message_bytes_max
        self._most = {kind: large if kind in LARGE else small for kind in READERS}
        # What came in one piece is cut as it is; only a message that comes in several is gathered.
        self._data: bytes | bytearray = b""
        self._at = 0

    def feed(self, data: bytes) -> None:
        if self._at == len(self._data):
            self._data = data
        elif isinstance(self._data, bytearray) and not self._at:
            self._data += data
        else:
            self._data = bytearray(self._data[self._at :]) + data
        self._at = 0

    def next_startup(self) -> bytes | None:
        """The body of a startup packet, which has no kind."""
        if self.left < 4:
            return None
        (length,) = _LENGTH.unpack_from(self._data, self._at)
        if not 8 <= length <= self._limits.startup_bytes_max:
            raise ProtocolViolation(f"invalid length of startup packet: {length}")
        return self._cut(4, length - 4)

    def next_message(self) -> tuple[int, bytes] | None:
        """Kind (a byte) and body."""
        data, start = self._data, self._at
        if len(data) < start + 5:
            return None
        kind, length = _HEAD.unpack_from(data, start)
        most = self._most.get(kind)
        if most is None:
            raise ProtocolViolation(f"invalid frontend message type {kind}")
        if not 4 <= length <= most:
            raise ProtocolViolation(
                f"invalid message length: {length} bytes for type {chr(kind)!r}, "
                f"which may have {most}"
            )
        end = start + 1 + length
        if len(data) < end:
            return None
        self._at = end
        return kind, bytes(data[start + 5 : end])

    @property
    def left(self) -> int:
        """Bytes that are not yet taken."""
        return len(self._data) - self._at

    def take_rest(self) -> bytes:
        """Everything that is not yet taken; nothing is left here."""
        piece = bytes(self._data[self._at :])
        self._data, self._at = b"", 0
        return piece

    def _cut(self, head: int, size: int) -> bytes | None:
        start = self._at + head
        if len(self._data) < start + size:
            return None
        self._at = start + size
        return bytes(self._data[start : start + size])
