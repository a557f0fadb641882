"""What a client says once it is let in, and how its bytes are read.

Every reader raises ProtocolViolation for a body that does not have the shape of its message;
InvalidBytes for text that is not UTF-8.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from leasehold.pgwire.limits import Limits
from leasehold.pgwire.wire_errors import InvalidBytes, LimitExceeded, ProtocolViolation


class Query(NamedTuple):
    text: str


class Parse(NamedTuple):
    """A text to be prepared. `types` are oids of its first parameters; 0 leaves one to the
    server."""

    name: str
    text: str
    types: tuple[int, ...]


class Bind(NamedTuple):
    """Formats: none = all text, one = for all, else one each; 0 text, 1 binary."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


class Describe(NamedTuple):
    """A demand for a description of the portal or prepared statement with that name."""

    portal: bool
    name: str


class Execute(NamedTuple):
    """A demand for rows of a portal, `rows_max` at most; 0 means all."""

    portal: str
    rows_max: int


class Close(NamedTuple):
    portal: bool
    name: str


class Plain(NamedTuple):
    """A message whose kind says everything: Sync, Flush, Terminate, CopyDone, and a function's
    call, which is refused unread."""


class CopyData(NamedTuple):
    data: bytes


class CopyFail(NamedTuple):
    reason: str


class Proof(NamedTuple):
    """An answer to an authentication request; what it holds depends on the request."""

    data: bytes


Message: TypeAlias = (
    Query | Parse | Bind | Describe | Execute | Close | Plain | CopyData | CopyFail | Proof
)
Reader = Callable[[bytes, Limits], Message]

_UNNAMED_ALL: Final = bytes(5)
_EXECUTE_ALL: Final = Execute("", 0)
_UNNAMED_PORTAL: Final = b"P\0"
_DESCRIBE_PORTAL: Final = Describe(True, "")
"""What nearly every client says, again and again."""
_SHORT: Final = struct.Struct("!H")
_LONG: Final = struct.Struct("!I")
_SIGNED: Final = struct.Struct("!i")


class Body:
    """Reads one message's body from its start to its end."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read_text(self) -> str:
        """A text that ends in a zero byte."""
        return as_text(self._zero_ended())

    def read_name(self, limits: Limits) -> str:
        data, start = self._data, self._at
        if start < len(data) and not data[start]:  # most have none
            self._at = start + 1
            return ""
        piece = self._zero_ended()
        if len(piece) > limits.name_bytes_max:
            raise LimitExceeded(
                f"a name of a statement or portal may have {limits.name_bytes_max} bytes; "
                f"this one has {len(piece)}"
            )
        return as_text(piece)

    def _zero_ended(self) -> bytes:
        start = self._at
        end = self._data.find(0, start)
        if end < 0:
            raise ProtocolViolation("invalid string in message: it has no end")
        self._at = end + 1
        return self._data[start:end]

    def read_byte(self) -> bytes:
        return self.take(1)

    def read_short(self) -> int:
        return int(_SHORT.unpack(self.take(2))[0])

    def read_signed(self) -> int:
        return int(_SIGNED.unpack(self.take(4))[0])

    def read_shorts(self, limits: Limits, what: str) -> tuple[int, ...]:
        count = self.read_count(limits, what)
        return struct.unpack(f"!{count}H", self.take(2 * count)) if count else ()

    def read_longs(self, limits: Limits, what: str) -> tuple[int, ...]:
        count = self.read_count(limits, what)
        return struct.unpack(f"!{count}I", self.take(4 * count)) if count else ()

    def read_count(self, limits: Limits, what: str) -> int:
        data, start = self._data, self._at
        self._at = start + 2
        if self._at > len(data):
            raise ProtocolViolation("insufficient data left in message")
        count = data[start] << 8 | data[start + 1]
        if count > limits.parameters_max:
            raise LimitExceeded(f"{count} {what}; at most {limits.parameters_max} are taken")
        return count

    def read_value(self) -> bytes | None:
        """A length and so many bytes; length -1: NULL."""
        return self.read_values(1)[0]

    def read_values(self, count: int) -> list[bytes | None]:
        """Return `count` values. In one loop: this is where a Bind spends its time."""
        data, at, size = self._data, self._at, len(self._data)
        found: list[bytes | None] = []
        for _ in range(count):
            start = at + 4
            if start > size:
                raise ProtocolViolation("insufficient data left in message")
            (length,) = _SIGNED.unpack_from(data, at)
            if length == -1:
                found.append(None)
                at = start
                continue
            at = start + length
            if length < 0:
                raise ProtocolViolation(f"a value's length is {length}")
            if at > size:
                raise ProtocolViolation("insufficient data left in message")
            found.append(data[start:at])
        self._at = at
        return found

    def take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise ProtocolViolation("insufficient data left in message")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def take_rest(self) -> bytes:
        piece = self._data[self._at :]
        self._at = len(self._data)
        return piece

    def check_end(self) -> None:
        if self._at != len(self._data):
            raise ProtocolViolation(
                f"invalid message format: {len(self._data) - self._at} bytes are left over"
            )


def as_text(data: bytes) -> str:
    """Raises InvalidBytes with the bytes that are no UTF-8, or 0, as PostgreSQL words it."""
    try:
        text = data.decode()
        if "\0" in text:
            raise InvalidBytes('invalid byte sequence for encoding "UTF8": 0x00')
        return text
    except UnicodeDecodeError as error:
        shown = " ".join(f"0x{byte:02x}" for byte in data[error.start : error.start + 4])
        raise InvalidBytes(f'invalid byte sequence for encoding "UTF8": {shown}') from None


def _query(data: bytes, limits: Limits) -> Query:
    body = Body(data)
    text = body.read_text()
    body.check_end()
    return Query(text)


def _parse(data: bytes, limits: Limits) -> Parse:
    body = Body(data)
    message = Parse(
        body.read_name(limits), body.read_text(), body.read_longs(limits, "parameter types")
    )
    body.check_end()
    return message


def _bind(data: bytes, limits: Limits) -> Bind:
    body = Body(data)
    portal, statement = body.read_name(limits), body.read_name(limits)
    formats = body.read_shorts(limits, "parameter formats")
    values = tuple(body.read_values(body.read_count(limits, "parameters")))
    result_formats = body.read_shorts(limits, "result formats")
    body.check_end()
    return Bind(portal, statement, formats, values, result_formats)


def _of_portal(body: Body) -> bool:
    kind = body.read_byte()
    if kind not in (b"S", b"P"):
        raise ProtocolViolation(f"subtype {kind[0]} of the message is neither S nor P")
    return kind == b"P"


def _describe(data: bytes, limits: Limits) -> Describe:
    if data == _UNNAMED_PORTAL:
        return _DESCRIBE_PORTAL
    body = Body(data)
    message = Describe(_of_portal(body), body.read_name(limits))
    body.check_end()
    return message


def _execute(data: bytes, limits: Limits) -> Execute:
    if data == _UNNAMED_ALL:
        return _EXECUTE_ALL
    body = Body(data)
    message = Execute(body.read_name(limits), max(body.read_signed(), 0))
    body.check_end()
    return message


def _close(data: bytes, limits: Limits) -> Close:
    body = Body(data)
    message = Close(_of_portal(body), body.read_name(limits))
    body.check_end()
    return message


def _copy_fail(data: bytes, limits: Limits) -> CopyFail:
    body = Body(data)
    message = CopyFail(body.read_text())
    body.check_end()
    return message


def _plain(data: bytes, limits: Limits) -> Plain:
    Body(data).check_end()
    return Plain()


READERS: Final[Mapping[int, Reader]] = {
    ord("Q"): _query,
    ord("P"): _parse,
    ord("B"): _bind,
    ord("D"): _describe,
    ord("E"): _execute,
    ord("C"): _close,
    ord("S"): _plain,
    ord("H"): _plain,
    ord("X"): _plain,
    ord("d"): lambda data, limits: CopyData(data),
    ord("c"): _plain,
    ord("f"): _copy_fail,
    ord("F"): lambda data, limits: Plain(),
    ord("p"): lambda data, limits: Proof(data),
}
LARGE: Final = frozenset(b"QPBdF")
"""Messages that may be as long as `message_bytes_max`; all others are small."""
