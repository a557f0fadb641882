"""What Redis says (RESP2), read from bytes that come in pieces; and what is said to it."""

from __future__ import annotations

from typing import Any, Final

REPLY_BYTES_MAX: Final = 64 * 1024
_ARRAY_MAX: Final = 64
_CRLF: Final = b"\r\n"
_NOT_ALL: Final = object()


class Malformed(Exception):
    """What came begins no reply, or is larger than any that is wanted: nothing that follows can be
    read."""


class Failure(str):
    """An error that Redis answered with; its first word names the kind."""

    __slots__ = ()


def packed(*words: bytes) -> bytes:
    """A command."""
    parts = [b"*%d\r\n" % len(words)]
    parts += (b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    return b"".join(parts)


class Replies:
    """Of one connection."""

    def __init__(self) -> None:
        self._bytes = b""
        self._at = 0

    def take(self, data: bytes) -> list[Any]:
        """What is whole by now: int, str, Failure, bytes, None, or a list of those. Raises
        Malformed."""
        self._bytes += data
        found = []
        whole = 0
        while whole < len(self._bytes):
            self._at = whole
            value = self._one(nested=False)
            if value is _NOT_ALL:
                break
            found.append(value)
            whole = self._at
        self._bytes = self._bytes[whole:]
        if len(self._bytes) > REPLY_BYTES_MAX:
            raise Malformed(f"a reply of more than {REPLY_BYTES_MAX} bytes")
        return found

    def _one(self, *, nested: bool) -> Any:
        end = self._bytes.find(_CRLF, self._at)
        if end < 0:
            return _NOT_ALL
        kind, line = self._bytes[self._at : self._at + 1], self._bytes[self._at + 1 : end]
        self._at = end + 2
        if kind == b"+":
            return line.decode("utf-8", "replace")
        if kind == b"-":
            return Failure(line.decode("utf-8", "replace"))
        number = _number(line)
        if kind == b":":
            return number
        if kind == b"$":
            return self._bulk(number)
        if kind != b"*" or nested or number > _ARRAY_MAX:
            raise Malformed(f"{kind + line[:40]!r} begins no reply")
        values = []
        for _ in range(number):
            value = self._one(nested=True)
            if value is _NOT_ALL:
                return _NOT_ALL
            values.append(value)
        return values

    def _bulk(self, size: int) -> Any:
        if size < 0:
            return None
        if size > REPLY_BYTES_MAX:
            raise Malformed(f"a reply of {size} bytes")
        end = self._at + size
        if len(self._bytes) < end + 2:
            return _NOT_ALL
        value = self._bytes[self._at : end]
        self._at = end + 2
        return value


def _number(line: bytes) -> int:
    digits = line.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > 20:
        raise Malformed(f"{line[:40]!r} is no number")
    return int(line)
