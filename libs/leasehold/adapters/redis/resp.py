"""What Redis says (RESP2), read from bytes that come in pieces; and what is said to it."""

from __future__ import annotations

from typing import Any, Final

import hiredis

REPLY_BYTES_MAX: Final = 64 * 1024
"""Of a reply that is not whole yet. Who reads hands over at most as many bytes at once, so no whole
one has twice that."""
_ARRAY_MAX: Final = 64
_KEPT_BYTES_MAX: Final = 1_024
"""hiredis keeps so much of what it has read, at most."""


class Malformed(Exception):
    """Raised for bytes that begin no reply, or one larger than any that is wanted: nothing that
    follows can be read."""


class Failure(str):
    """The text of an error that Redis answered with; its first word names the kind."""

    __slots__ = ()


def pack_command(*words: bytes) -> bytes:
    """Return a command as bytes."""
    parts = [b"*%d\r\n" % len(words)]
    parts += (b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    return b"".join(parts)


class Replies:
    """The replies of one connection, taken from bytes."""

    def __init__(self) -> None:
        # What `replyError` gives is a value among others, and no exception.
        self._reader = hiredis.Reader(protocolError=Malformed, replyError=Failure)  # type: ignore[arg-type]
        self._unfinished = 0  # bytes since the last whole reply, or a little more

    def take(self, data: bytes) -> list[Any]:
        """Return what is whole by now: int, bytes, Failure, None, or a list of those. Raises
        Malformed."""
        reader = self._reader
        reader.feed(data)
        found: list[Any] = []
        try:
            while (reply := reader.gets()) is not False:
                if type(reply) is list:
                    _check_array(reply)
                found.append(reply)
        except MemoryError:
            raise Malformed("an array of more replies than there is memory for") from None
        # ⚠ By what came, not by what the reader has left: the beginning of an array is no longer in
        # its buffer, and grows all the same.
        self._unfinished += len(data)
        if found:
            self._unfinished = min(self._unfinished, reader.len())
        if self._unfinished > REPLY_BYTES_MAX + _KEPT_BYTES_MAX:
            raise Malformed(f"a reply of more than {REPLY_BYTES_MAX} bytes")
        return found


def _check_array(reply: list[Any]) -> None:
    """Raises Malformed for one that no command or channel gives."""
    if len(reply) > _ARRAY_MAX or any(type(part) is list for part in reply):
        raise Malformed(f"an array of {len(reply)} replies, or of arrays")
