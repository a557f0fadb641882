"""Messages of PostgreSQL's output plugin pgoutput (protocol version 1), read from their bytes.

PURE. Values are text, as the source writes it; what an update has not touched of a large value is
UNCHANGED. What is no such message raises ProtocolViolation.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from leasehold.pgwire.wire_errors import ProtocolViolation

_BEGIN: Final = struct.Struct("!QqI")
_COMMIT: Final = struct.Struct("!BQQq")
_INT: Final = struct.Struct("!I")
_SHORT: Final = struct.Struct("!H")


class Unchanged(Enum):
    """The value of a column that an update has left alone and the source did not write anew."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
Value: TypeAlias = str | Unchanged | None
Values: TypeAlias = Sequence[Value]


class Begin(NamedTuple):
    """The beginning of a transaction. `commit_lsn`: where its commit stands."""

    commit_lsn: int
    commit_us: int
    xid: int


class Commit(NamedTuple):
    """The end of a transaction. `end_lsn`: behind its commit."""

    commit_lsn: int
    end_lsn: int
    commit_us: int


class Relation(NamedTuple):
    """A table as the following messages mean it. `key`: columns of its replica identity."""

    relation_id: int
    schema: str
    name: str
    columns: tuple[str, ...]
    key: frozenset[str]


class Insert(NamedTuple):
    relation_id: int
    new: Values


class Update(NamedTuple):
    """A changed row. `old`: its key (other columns None) or, if `full`, all of it as it was; None
    where its key is the same."""

    relation_id: int
    old: Values | None
    new: Values
    full: bool = False


class Delete(NamedTuple):
    relation_id: int
    old: Values


class Truncate(NamedTuple):
    relation_ids: tuple[int, ...]


class Other(NamedTuple):
    """What tells nothing of rows: types, origins, logical messages."""

    kind: str


Message: TypeAlias = Begin | Commit | Relation | Insert | Update | Delete | Truncate | Other


class _Reader:
    """Takes pieces off the front of a message."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 1

    def take(self, layout: struct.Struct) -> tuple[int, ...]:
        end = self._at + layout.size
        if end > len(self._data):
            raise ProtocolViolation(f"a message of pgoutput ends too early: {self._data[:40]!r}")
        found = layout.unpack_from(self._data, self._at)
        self._at = end
        return found

    def number(self) -> int:
        return self.take(_INT)[0]

    def short(self) -> int:
        return self.take(_SHORT)[0]

    def kind(self) -> bytes:
        return self.bytes(1)

    def bytes(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise ProtocolViolation(f"a message of pgoutput ends too early: {self._data[:40]!r}")
        found = self._data[self._at : end]
        self._at = end
        return found

    def text(self) -> str:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise ProtocolViolation(f"a name of pgoutput has no end: {self._data[:40]!r}")
        found = self._data[self._at : end]
        self._at = end + 1
        return found.decode()

    def values(self) -> Values:
        return [self._value() for _ in range(self.short())]

    def _value(self) -> Value:
        match self.kind():
            case b"n":
                return None
            case b"u":
                return UNCHANGED
            case b"t":
                return self.bytes(self.number()).decode()
            case other:
                raise ProtocolViolation(f"pgoutput tells a value in the form {other!r}")


def read_message(data: bytes) -> Message:
    """Return what a message says. Raises ProtocolViolation."""
    try:
        return _read(data)
    except UnicodeDecodeError as error:
        raise ProtocolViolation("a message of pgoutput is not UTF-8") from error


def _read(data: bytes) -> Message:
    reader = _Reader(data)
    match data[:1]:
        case b"B":
            return Begin(*reader.take(_BEGIN))
        case b"C":
            return Commit(*reader.take(_COMMIT)[1:])
        case b"R":
            return _read_relation(reader)
        case b"I":
            relation_id = reader.number()
            _expect(reader.kind(), b"N")
            return Insert(relation_id, reader.values())
        case b"U":
            relation_id, old, kind = reader.number(), None, reader.kind()
            full = kind == b"O"
            if full or kind == b"K":
                old, kind = reader.values(), reader.kind()
            _expect(kind, b"N")
            return Update(relation_id, old, reader.values(), full)
        case b"D":
            relation_id = reader.number()
            _expect(reader.kind(), b"KO")
            return Delete(relation_id, reader.values())
        case b"T":
            count, _ = reader.number(), reader.kind()
            return Truncate(tuple(reader.number() for _ in range(count)))
        case b"O" | b"Y" | b"M":
            return Other(data[:1].decode())
    raise ProtocolViolation(f"pgoutput says {data[:1]!r}, which is not known here")


def _read_relation(reader: _Reader) -> Relation:
    relation_id, schema, name = reader.number(), reader.text(), reader.text()
    reader.kind()  # the replica identity: the columns of it are marked
    columns, key = [], set()
    for _ in range(reader.short()):
        flags, column = reader.kind(), reader.text()
        reader.number()
        reader.number()
        columns.append(column)
        if flags == b"\1":
            key.add(column)
    return Relation(relation_id, schema, name, tuple(columns), frozenset(key))


def _expect(kind: bytes, kinds: bytes) -> None:
    if not kind or kind not in kinds:
        raise ProtocolViolation(f"pgoutput says {kind!r} where one of {kinds!r} has to be")


def lsn_of_text(text: str) -> int:
    """Return an LSN as a number."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(lsn: int) -> str:
    """Return an LSN as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFF_FFFF:X}"
