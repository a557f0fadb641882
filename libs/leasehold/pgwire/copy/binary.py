"""COPY's binary form: a header, rows of counted fields, a trailer."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from leasehold.pgwire.wire_errors import InvalidCopyText

_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
_COUNTS: Final = struct.Struct("!II")
_SHORT: Final = struct.Struct("!h")
_LONG: Final = struct.Struct("!i")
HEADER: Final = _SIGNATURE + _COUNTS.pack(0, 0)
TRAILER: Final = _SHORT.pack(-1)
_OID_FLAG: Final = 1 << 16
_CRITICAL: Final = 0xFFFF_0000


class BinaryRows:
    """Gathers bytes and gives whole rows. `number`: of the row that was given last or is refused,
    from 1. `line`: it has no text."""

    line: Final = None

    def __init__(self, row_bytes_max: int) -> None:
        self._most = row_bytes_max
        self._data = bytearray()
        self._begun = self._ended = False
        self.number = 0

    def feed(self, data: bytes) -> Iterator[list[bytes | None]]:
        """Raises InvalidCopyText."""
        self._data += data
        at = 0 if self._begun else self._header()
        while at is not None and not self._ended:
            try:
                found = self._row(at)
            except InvalidCopyText:
                self.number += 1
                raise
            if found is None:
                break
            at, fields = found
            if fields is None:
                self._ended = True
                break
            self.number += 1
            yield fields
        if at:
            del self._data[:at]
        if self._ended and self._data:
            raise InvalidCopyText("received copy data after EOF marker")
        if len(self._data) > self._most:
            self.number += 1
            raise InvalidCopyText(f"a row of COPY is longer than {self._most} bytes")

    def finish(self) -> Iterator[list[bytes | None]]:
        """The trailer may be missing; nothing may be cut."""
        if not self._begun:
            raise InvalidCopyText("COPY file signature not recognized")
        if self._data:
            self.number += 1
            raise InvalidCopyText("unexpected EOF in COPY data")
        yield from ()

    def _header(self) -> int | None:
        """Return where the rows begin, or None until the header is whole."""
        data = bytes(self._data[: len(HEADER)])
        if data[: len(_SIGNATURE)] != _SIGNATURE[: len(data)]:
            raise InvalidCopyText("COPY file signature not recognized")
        if len(data) < len(HEADER):
            return None
        flags, extension = _COUNTS.unpack_from(data, len(_SIGNATURE))
        if flags & _OID_FLAG:
            raise InvalidCopyText("invalid COPY file header (WITH OIDS)")
        if flags & _CRITICAL:
            raise InvalidCopyText("unrecognized critical flags in COPY file header")
        if extension > self._most:
            raise InvalidCopyText("invalid COPY file header (wrong length)")
        end = len(HEADER) + int(extension)
        if len(self._data) < end:
            return None
        self._begun = True
        return end

    def _row(self, at: int) -> tuple[int, list[bytes | None] | None] | None:
        """Return where the row ends that begins at `at`, and its fields (None for the trailer), or
        None until it is whole."""
        data = self._data
        if len(data) < at + _SHORT.size:
            return None
        (count,) = _SHORT.unpack_from(data, at)
        at += _SHORT.size
        if count < 0:
            if count != -1:
                raise InvalidCopyText("invalid field count in COPY data")
            return at, None
        fields: list[bytes | None] = []
        for _ in range(count):
            if len(data) < at + _LONG.size:
                return None
            (length,) = _LONG.unpack_from(data, at)
            at += _LONG.size
            if length < -1:
                raise InvalidCopyText("invalid field size")
            if length > self._most:
                raise InvalidCopyText(f"a field of COPY is longer than {self._most} bytes")
            if length == -1:
                fields.append(None)
                continue
            if len(data) < at + length:
                return None
            fields.append(bytes(data[at : at + length]))
            at += length
        return at, fields
