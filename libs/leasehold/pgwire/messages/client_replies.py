"""What a server said, read from its bytes; for the client's side of a connection."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from leasehold.pgwire.messages.backend import Field
from leasehold.pgwire.messages.frontend import Body
from leasehold.pgwire.wire_errors import ProtocolViolation

_HEAD: Final = struct.Struct("!cI")
_FIELD: Final = struct.Struct("!IHIhih")
MESSAGE_BYTES_MAX: Final = 1 << 30


class Columns(NamedTuple):
    fields: Sequence[Field]


class Row(NamedTuple):
    """Values as text; None: NULL."""

    values: Sequence[str | None]


class Complete(NamedTuple):
    """The end of one statement. An empty text has the tag ""."""

    tag: str


class Told(NamedTuple):
    """A notice, or the error that has ended the text. By PostgreSQL's letters: S severity, C
    SQLSTATE, M message, D detail, H hint, P position …"""

    failed: bool
    fields: Mapping[str, str]


class Notified(NamedTuple):
    """What was told to a channel (NOTIFY) by the session of a process, 0 = of another node."""

    process: int
    channel: str
    payload: str


class CopyWanted(NamedTuple):
    """COPY … FROM STDIN: data is to be sent."""


class Copied(NamedTuple):
    """COPY … TO STDOUT: a part of its data."""

    data: bytes


class Ready(NamedTuple):
    """The end of the answers: nothing more comes until something is asked. `status` is I, T or
    E."""

    status: str


class Key(NamedTuple):
    """What a cancel request names."""

    process: int
    key: bytes


class Parameter(NamedTuple):
    name: str
    value: str


class Authentication(NamedTuple):
    """A step of the login. `code` is 0 (let in), 10 (SASL mechanisms), 11 (SASL goes on) or 12
    (SASL's last word)."""

    code: int
    data: bytes

    @property
    def mechanisms(self) -> list[str]:
        return [name.decode(errors="replace") for name in self.data.split(b"\0") if name]


Said: TypeAlias = (
    Columns
    | Row
    | Complete
    | Told
    | Notified
    | CopyWanted
    | Copied
    | Ready
    | Key
    | Parameter
    | Authentication
)


class Hearing:
    """Bytes in, messages out. Raises ProtocolViolation for what is none of a server's."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._at = 0

    def feed(self, data: bytes) -> None:
        del self._data[: self._at]
        self._at = 0
        self._data += data

    def next(self) -> Said | None:
        """Return the next message, or None until one is whole; those that tell nothing are left
        out."""
        while len(self._data) - self._at >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._data, self._at)
            if not 4 <= length <= MESSAGE_BYTES_MAX:
                raise ProtocolViolation(f"a message of {length} bytes: this is no PostgreSQL port")
            end = self._at + 1 + length
            if len(self._data) < end:
                return None
            body = bytes(self._data[self._at + _HEAD.size : end])
            self._at = end
            said = _read(kind, body)
            if said is not None:
                return said
        return None


def _read(kind: bytes, data: bytes) -> Said | None:
    body = Body(data)
    match kind:
        case b"D":
            values = body.read_values(body.read_short())
            return Row([None if v is None else v.decode(errors="replace") for v in values])
        case b"T":
            return Columns([_field(body) for _ in range(body.read_short())])
        case b"C":
            return Complete(body.read_text())
        case b"I":
            return Complete("")
        case b"E" | b"N":
            return Told(kind == b"E", _fields(data))
        case b"Z":
            return Ready(body.take(1).decode(errors="replace"))
        case b"K":
            return Key(struct.unpack("!I", body.take(4))[0], data[4:])
        case b"S":
            return Parameter(body.read_text(), body.read_text())
        case b"R":
            return Authentication(struct.unpack("!I", body.take(4))[0], data[4:])
        case b"G":
            return CopyWanted()
        case b"d":
            return Copied(data)
        case b"H" | b"c":  # COPY's data begins and ends: what comes between says so
            return None
        case b"A":
            process = struct.unpack("!i", body.take(4))[0]
            return Notified(process, body.read_text(), body.read_text())
        case b"1" | b"2" | b"n":  # a statement is parsed and bound; it has no columns
            return None
        case b"v":  # a newer minor version: nothing is made of it
            return None
    raise ProtocolViolation(f"message type {kind!r} is not expected from a server")


def _field(body: Body) -> Field:
    return Field(body.read_text(), *_FIELD.unpack(body.take(_FIELD.size)))


def _fields(data: bytes) -> dict[str, str]:
    pieces = [piece.decode(errors="replace") for piece in data.split(b"\0") if piece]
    return {piece[0]: piece[1:] for piece in pieces}
