"""Change requests from a file: JSON lines, or a stream of MessagePack objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NamedTuple

import msgpack

from leasehold.adapters.codec.json_text import parse_json
from leasehold.model import byte_limits

LINE_BYTES_MAX: Final = byte_limits.MESSAGE
_THE_REST: Final = "; nothing behind it was read"
_JSON_STARTS: Final = b"{[ \t\r\n\xef"  # 0xEF: a byte-order mark


class FileRequest(NamedTuple):
    """What stands at one place of a file. `where` is "line 7" or "object 7"; `fields` is None where
    `error` says why."""

    where: str
    fields: dict[str, Any] | None
    error: str
    bytes_read: int


def looks_like_json(head: bytes) -> bool:
    """Return whether a file that begins so is JSON: MessagePack maps begin with 0x80-0x8f, 0xde or
    0xdf, JSON lines with a brace or a space."""
    return not head or head[:1] in [_JSON_STARTS[i : i + 1] for i in range(len(_JSON_STARTS))]


def read_requests(source: BinaryIO, *, as_json: bool) -> Iterator[FileRequest]:
    """Yield each request in order. What is no request is told with its place and skipped; only
    broken MessagePack ends the reading, because nothing tells where the next object begins."""
    return _read_json_lines(source) if as_json else _read_message_pack(source)


def _read_json_lines(source: BinaryIO) -> Iterator[FileRequest]:
    read = 0
    number = 0
    while line := source.readline(LINE_BYTES_MAX + 1):
        number += 1
        read += len(line)
        if not line.strip():
            continue
        where = f"line {number}"
        if len(line) > LINE_BYTES_MAX:
            while not line.endswith(b"\n") and (line := source.readline(LINE_BYTES_MAX)):
                read += len(line)
            yield FileRequest(where, None, f"is longer than {LINE_BYTES_MAX} bytes", read)
            continue
        try:
            fields = parse_json(line.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            yield FileRequest(where, None, f"is no JSON: {error}", read)
            continue
        yield _check_fields(where, fields, read)


class _Counted:
    """A source that knows how much of it was read."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self.bytes_read = 0

    def read(self, size: int) -> bytes:
        found = self._source.read(size)
        self.bytes_read += len(found)
        return found


def _read_message_pack(source: BinaryIO) -> Iterator[FileRequest]:
    counted = _Counted(source)
    # Whatever is a map is one object, so that one with other keys does not hide those behind it.
    unpacker = msgpack.Unpacker(counted, max_buffer_size=2 * LINE_BYTES_MAX, strict_map_key=False)
    number = 0
    ended_at = 0
    while True:
        number += 1
        where = f"object {number}"
        try:
            fields = unpacker.unpack()
        except msgpack.OutOfData:
            if counted.bytes_read > ended_at:  # else the file ends with an object
                yield FileRequest(where, None, "is cut short: the file ends in it", ended_at)
            return
        except msgpack.BufferFull:
            words = f"is longer than {2 * LINE_BYTES_MAX} bytes{_THE_REST}"
            yield FileRequest(where, None, words, counted.bytes_read)
            return
        except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
            words = f"is no MessagePack: {str(error) or type(error).__name__}{_THE_REST}"
            yield FileRequest(where, None, words, unpacker.tell())
            return
        ended_at = unpacker.tell()
        yield _check_fields(where, fields, ended_at)


def _check_fields(where: str, fields: Any, read: int) -> FileRequest:
    if isinstance(fields, dict) and all(isinstance(name, str) for name in fields):
        return FileRequest(where, fields, "", read)
    return FileRequest(where, None, "is no object with named fields", read)
