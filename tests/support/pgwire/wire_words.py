"""Front-end messages as bytes, and what a server said as short words.

T(a,b)  D(1,x)  C(SELECT 1)  E(22012)  N(00000)  Z(I)  S(TimeZone=UTC)  1 2 3 n s I t(23)  G
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def text(*parts: str) -> bytes:
    return b"".join(part.encode() + b"\0" for part in parts)


def query(sql: str) -> bytes:
    return message(b"Q", text(sql))


def parse(sql: str, name: str = "", types: Sequence[int] = ()) -> bytes:
    return message(b"P", text(name, sql) + struct.pack(f"!H{len(types)}I", len(types), *types))


def bind(
    *values: bytes | str | None,
    portal: str = "",
    name: str = "",
    formats: Sequence[int] = (),
    results: Sequence[int] = (),
) -> bytes:
    body = text(portal, name) + struct.pack(f"!H{len(formats)}H", len(formats), *formats)
    body += struct.pack("!H", len(values))
    for value in values:
        data = value.encode() if isinstance(value, str) else value
        body += struct.pack("!i", -1) if data is None else struct.pack("!i", len(data)) + data
    return message(b"B", body + struct.pack(f"!H{len(results)}H", len(results), *results))


def describe(name: str = "", *, portal: bool = False) -> bytes:
    return message(b"D", (b"P" if portal else b"S") + text(name))


def execute(portal: str = "", rows_max: int = 0) -> bytes:
    return message(b"E", text(portal) + struct.pack("!i", rows_max))


def close(name: str = "", *, portal: bool = False) -> bytes:
    return message(b"C", (b"P" if portal else b"S") + text(name))


def copy_data(data: bytes) -> bytes:
    return message(b"d", data)


def copy_fail(reason: str) -> bytes:
    return message(b"f", text(reason))


SYNC = message(b"S")
FLUSH = message(b"H")
COPY_DONE = message(b"c")
TERMINATE = message(b"X")


def startup(version: int = 196608, **parameters: str) -> bytes:
    body = struct.pack("!I", version)
    for name, value in parameters.items():
        body += text(name, value)
    return struct.pack("!I", len(body) + 5) + body + b"\0"


def short(code: int, more: bytes = b"") -> bytes:
    """SSLRequest, GSSENCRequest, CancelRequest."""
    return struct.pack("!II", len(more) + 8, code) + more


def messages(data: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("!cI", data, at)
        assert at + 1 + length <= len(data), "a message is cut off"
        yield kind.decode(), data[at + 5 : at + 1 + length]
        at += 1 + length


def said(data: bytes) -> list[str]:
    return [_word(kind, body) for kind, body in messages(data)]


def fields(body: bytes) -> dict[str, str]:
    """Of an ErrorResponse or NoticeResponse."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def error_of(data: bytes) -> dict[str, str]:
    """Fields of the one error in it."""
    (found,) = [fields(body) for kind, body in messages(data) if kind == "E"]
    return found


def rows(data: bytes) -> list[list[bytes | None]]:
    return [_values(body) for kind, body in messages(data) if kind == "D"]


def columns(data: bytes) -> list[tuple[str, int, int, int, int]]:
    """Name, oid, size, modifier, format of every column described."""
    found = []
    for kind, body in messages(data):
        if kind == "T":
            at = 2
            while at < len(body):
                end = body.index(b"\0", at)
                _, _, oid, size, modifier, form = struct.unpack_from("!IHIhih", body, end + 1)
                found.append((body[at:end].decode(), oid, size, modifier, form))
                at = end + 19
    return found


def _values(body: bytes) -> list[bytes | None]:
    found: list[bytes | None] = []
    at = 2
    while at < len(body):
        (length,) = struct.unpack_from("!i", body, at)
        found.append(None if length < 0 else body[at + 4 : at + 4 + length])
        at += 4 + max(length, 0)
    return found


def _word(kind: str, body: bytes) -> str:
    match kind:
        case "T":
            names = ",".join(column[0] for column in columns(message(b"T", body)))
            return f"T({names})"
        case "D":
            shown = ("NULL" if v is None else v.decode(errors="replace") for v in _values(body))
            return f"D({','.join(shown)})"
        case "C" | "Z":
            return f"{kind}({body.rstrip(bytes(1)).decode()})"
        case "E" | "N":
            return f"{kind}({fields(body)['C']})"
        case "S":
            name, value, _ = body.decode().split("\0")
            return f"S({name}={value})"
        case "t":
            return f"t({','.join(map(str, struct.unpack(f'!{(len(body) - 2) // 4}I', body[2:])))})"
        case "R":
            return f"R({struct.unpack('!I', body[:4])[0]})"
    return kind
