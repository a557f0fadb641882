"""Functions and operators over bytea and uuid."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import uuid
from functools import partial
from typing import Any, Final

from leasehold.catalog.elements import CommitContext
from leasehold.model.budget import charge_each, charge_long
from leasehold.model.errors import InvalidArgument, InvalidText, TooLong
from leasehold.sql.functions.function import BYTEA, INTEGER, TEXT, UUID, Function
from leasehold.sql.functions.texts.text import (
    MADE_CHARACTERS_MAX,
    check_length,
    cut_part,
    find_place,
    too_long,
)
from leasehold.values.letters import ascii_lower
from leasehold.values.types import TEXT_BYTES_MAX

_CHARACTERS_PER_BYTE: Final = 4
"""Of a text that is decoded, at most."""
_BYTE_WORK: Final = 20
_AS_THEY_ARE: Final = bytes(range(1, 0x80))
"""Bytes that `escape` has a character for, or two of a backslash; others are three digits."""
_OCTAL: Final = re.compile(r"\\(\\|[0-3][0-7][0-7])")


def _joined(left: bytes, right: bytes) -> bytes:
    if len(left) + len(right) > TEXT_BYTES_MAX:
        raise _too_long(TEXT_BYTES_MAX)
    return left + right


def _encode(data: bytes, form: str, *, most: int = TEXT_BYTES_MAX) -> str:
    """Raises TooLong above `most` characters."""
    size = 2 * len(data)
    match ascii_lower(form):
        case "base64":
            size = len(data)
        case "escape":
            size = len(data) + data.count(b"\\") + 3 * len(data.translate(None, _AS_THEY_ARE))
    if size > most:
        raise too_long(most)
    return check_length(_encoded(data, form), most)


def _encoded(data: bytes, form: str) -> str:
    match ascii_lower(form):
        case "hex":
            return data.hex()
        case "base64":
            text = base64.b64encode(data).decode()
            return "\n".join(text[at : at + 76] for at in range(0, len(text), 76))
        case "escape":
            return "".join(_escaped(byte) for byte in charge_each(data, _BYTE_WORK))
    raise _unknown(form)


def _escaped(byte: int) -> str:
    if byte == 0x5C:
        return "\\\\"
    return chr(byte) if 0 < byte < 0x80 else f"\\{byte:03o}"


def _decode(text: str, form: str, *, most: int = TEXT_BYTES_MAX) -> bytes:
    """Raises TooLong above `most` bytes."""
    if len(text) > _CHARACTERS_PER_BYTE * most:
        raise _too_long(most)
    data = _decoded(text, form)
    if len(data) > most:
        raise _too_long(most)
    return data


def _too_long(most: int) -> TooLong:
    return TooLong(f"there would be more than {most} bytes")


def _decoded(text: str, form: str) -> bytes:
    try:
        match ascii_lower(form):
            case "hex":
                return bytes.fromhex(re.sub(r"[ \t\n\r]", "", text))
            case "base64":
                return base64.b64decode(re.sub(r"[ \t\n\r]", "", text), validate=True)
            case "escape":
                charge_long(len(text), _BYTE_WORK)
                if "\\" in _OCTAL.sub("", text):
                    raise InvalidText("invalid input syntax for type bytea")
                return b"".join(
                    _unescaped(piece) for piece in re.findall(r"\\\\|\\[0-7]{3}|[^\\]+", text)
                )
    except (ValueError, binascii.Error) as error:
        raise InvalidArgument(f"invalid {ascii_lower(form)} data: {error}") from error
    raise _unknown(form)


def _unescaped(piece: str) -> bytes:
    if piece == "\\\\":
        return b"\\"
    return bytes([int(piece[1:], 8)]) if piece.startswith("\\") else piece.encode()


def _unknown(form: str) -> InvalidArgument:
    return InvalidArgument(f'unrecognized encoding: "{form:.40}"')


def random_uuid(seed: bytes, number: int) -> str:
    """A UUID of version 4 whose random bits are of `seed` (up to 64 bytes) and `number`."""
    data = number.to_bytes(4, "big")
    value = bytearray(hashlib.blake2b(data, key=seed, digest_size=16).digest())
    value[6] = value[6] & 0x0F | 0x40
    value[8] = value[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(value)))


def _uuid_at(context: CommitContext) -> str:
    return random_uuid(context.seed[:64], 1)


def _digest(name: str) -> Any:
    return lambda data: hashlib.new(name, data, usedforsecurity=False).digest()


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("length", (BYTEA,), INTEGER, len),
    Function("octet_length", (BYTEA,), INTEGER, len),
    Function("bit_length", (BYTEA,), INTEGER, lambda data: len(data) * 8),
    Function("substring", (BYTEA, INTEGER), BYTEA, cut_part),
    Function("substring", (BYTEA, INTEGER, INTEGER), BYTEA, cut_part),
    Function("substr", (BYTEA, INTEGER), BYTEA, cut_part),
    Function("substr", (BYTEA, INTEGER, INTEGER), BYTEA, cut_part),
    Function("position", (BYTEA, BYTEA), INTEGER, find_place),
    Function(
        "encode",
        (BYTEA, TEXT),
        TEXT,
        _encode,
        computes_more=partial(_encode, most=MADE_CHARACTERS_MAX),
    ),
    Function(
        "decode",
        (TEXT, TEXT),
        BYTEA,
        _decode,
        computes_more=partial(_decode, most=MADE_CHARACTERS_MAX // _CHARACTERS_PER_BYTE),
    ),
    Function("md5", (BYTEA,), TEXT, lambda data: _digest("md5")(data).hex()),
    *(Function(name, (BYTEA,), BYTEA, _digest(name)) for name in ("sha224", "sha256", "sha384")),
    Function("sha512", (BYTEA,), BYTEA, _digest("sha512")),
    Function("gen_random_uuid", (), UUID, _uuid_at, volatility="volatile"),
    Function("uuid_generate_v4", (), UUID, _uuid_at, volatility="volatile"),
)
OPERATORS: Final[tuple[Function, ...]] = (Function("||", (BYTEA, BYTEA), BYTEA, _joined),)
