"""Change requests from a file: JSON lines, or a stream of MessagePack objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NamedTuple

import msgpack

from leasehold.adapters.json_form import parse_json

LINE_BYTES_MAX: Final = 8 * 1024 * 1024
_JSON_STARTS: Final = b"{[ \t\r\n\xef"  # 0xEF: a byte-order mark


class FileRequest(NamedTuple):
    """`place` is "line 7" or "object 7"; `fields` is None where `error` says why."""

    place: str
    fields: dict[str, Any] | None
    error: str
    bytes_read: int


def looks_like_json(head: bytes) -> bool:
    """MessagePack maps begin with 0x80-0x8f, 0xde or 0xdf; JSON lines with a brace or a space."""
    return not head or head[:1] in [_JSON_STARTS[i : i + 1] for i in range(len(_JSON_STARTS))]


def read_requests(source: BinaryIO, *, as_json: bool) -> Iterator[FileRequest]:
    """Each request in order. What is no request is told with its place and skipped; only broken
    MessagePack ends the reading, because nothing tells where the next object begins."""
    return _json_lines(source) if as_json else _message_pack(source)


def _json_lines(source: BinaryIO) -> Iterator[FileRequest]:
    read = 0
    number = 0
    while line := source.readline(LINE_BYTES_MAX + 1):
        number += 1
        read += len(line)
        if not line.strip():
            continue
        place = f"line {number}"
        if len(line) > LINE_BYTES_MAX:
            yield FileRequest(place, None, f"is longer than {LINE_BYTES_MAX} bytes", read)
            return
        try:
            fields = parse_json(line.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            yield FileRequest(place, None, f"is no JSON: {error}", read)
            continue
        yield _checked(place, fields, read)


def _message_pack(source: BinaryIO) -> Iterator[FileRequest]:
    unpacker = msgpack.Unpacker(source, max_buffer_size=2 * LINE_BYTES_MAX)
    number = 0
    while True:
        number += 1
        place = f"object {number}"
        try:
            fields = unpacker.unpack()
        except msgpack.OutOfData:
            return
        except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
            words = str(error) or type(error).__name__
            yield FileRequest(place, None, f"is no MessagePack: {words}", unpacker.tell())
            return
        yield _checked(place, fields, unpacker.tell())


def _checked(place: str, fields: Any, read: int) -> FileRequest:
    if isinstance(fields, dict) and all(isinstance(name, str) for name in fields):
        return FileRequest(place, fields, "", read)
    return FileRequest(place, None, "is no object with named fields", read)
