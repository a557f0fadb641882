"""Records of the log as the bytes of a segment: each with its offset and length before it. PURE."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from leasehold.model.errors import BackupDamaged

_HEAD: Final = struct.Struct(">QI")


def frame(offset: int, data: bytes) -> bytes:
    """Return a record as it stands in a segment."""
    return _HEAD.pack(offset, len(data)) + data


def read_frames(segment: bytes, where: str) -> Iterator[tuple[int, bytes]]:
    """Yield offset and bytes of each record. Raises BackupDamaged where they are none."""
    at = 0
    while at < len(segment):
        if at + _HEAD.size > len(segment):
            raise BackupDamaged(f"{where} ends within a record", object=where)
        offset, size = _HEAD.unpack_from(segment, at)
        at += _HEAD.size
        if at + size > len(segment):
            raise BackupDamaged(f"{where} ends within the record of offset {offset}", object=where)
        yield offset, segment[at : at + size]
        at += size
