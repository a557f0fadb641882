"""A request's fields ↔ bytes: JSON or MessagePack from anybody, MessagePack to the master.

Every way in which bytes can fail to be fields ends in MalformedRequest or RequestTooLarge; no other
exception leaves this file.
"""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Generator, Mapping
from decimal import Decimal
from typing import Any, Final, NoReturn

import msgpack

from leasehold.adapters.codec.packing import Packing
from leasehold.adapters.codec.request_checks import describe_value, show_name
from leasehold.model import byte_limits
from leasehold.model.errors import MalformedRequest, RequestTooLarge
from leasehold.values.numeric import has_room
from leasehold.values.storage import plain_form

JSON: Final = "application/json"
MESSAGE_PACK: Final = "application/msgpack"
MESSAGE_PACK_NAMES: Final = frozenset(
    {MESSAGE_PACK, "application/x-msgpack", "application/vnd.msgpack"}
)
MESSAGE_PACK_ZLIB: Final = "application/msgpack+zlib"
"""MessagePack behind zlib: what a request of many rows travels as."""
REQUEST_BYTES_MAX: Final = byte_limits.REQUEST
"""Of a request, unpacked. What travels has to fit a record of Kafka, too (`ZIPPED_BYTES_MAX`)."""
ZIPPED_ABOVE_BYTES: Final = 128 * 1024
ZIPPED_BYTES_MAX: Final = byte_limits.REQUEST_SENT
"""Leaves room for headers, and for what a refusal keeps of a request beside it."""
SLICED_ABOVE_BYTES: Final = 1 << 20
"""MessagePack of more is read operation by operation where others wait for the same thread."""
SLICE_OPERATIONS: Final = 200
"""Read between two looks at the clock, of a request that is read in slices."""
OPERATIONS_MAX: Final = 250_000
MAP_LENGTH_MAX: Final = 2_000  # more than a table may have columns
DIGITS_SURE: Final = 15
"""A number of so many characters is what the double of it shows again."""
_UNREADABLE: Final = (ValueError, TypeError, LookupError, OverflowError, RecursionError)
_WRONG: Final = (MalformedRequest, msgpack.UnpackException, *_UNREADABLE)


def pack_fields(fields: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return (content type, bytes) that `read_fields` reads back; dates, timestamps, UUIDs and
    Decimals travel as text.

    Raises MalformedRequest for values without a wire form, RequestTooLarge.
    """
    try:
        data = _PACKING.pack(fields)
    except _UNREADABLE as error:
        raise MalformedRequest(f"the request has no wire form: {error}") from error
    if len(data) <= ZIPPED_ABOVE_BYTES:
        return MESSAGE_PACK, data
    zipped = zlib.compress(data, 1)
    if len(data) > REQUEST_BYTES_MAX or len(zipped) > ZIPPED_BYTES_MAX:
        raise RequestTooLarge(
            f"the request has {len(data)} bytes, {len(zipped)} when packed; at most"
            f" {REQUEST_BYTES_MAX} and {ZIPPED_BYTES_MAX} are taken: send fewer operations in one"
            " transaction"
        )
    return MESSAGE_PACK_ZLIB, zipped


def read_fields(content_type: str, data: bytes) -> dict[Any, Any]:
    """Return the fields of a request. `content_type` is the record's header, "" = none (then JSON).

    Raises MalformedRequest, RequestTooLarge.
    """
    packed = _packed_of(content_type, data)
    return _checked(_from_json(data) if packed is None else _from_message_pack(packed))


def read_fields_in_slices(content_type: str, data: bytes) -> Generator[None, None, dict[Any, Any]]:
    """Return what `read_fields` does, and raise as it does; yield now and then where there is
    much."""
    packed = _packed_of(content_type, data)
    if packed is None:
        return _checked(_from_json(data))
    if len(packed) > SLICED_ABOVE_BYTES:
        yield
        fields = yield from _transaction_in_slices(packed)
        if fields is not None:
            return fields
    return _checked(_from_message_pack(packed))


def _packed_of(content_type: str, data: bytes) -> bytes | None:
    """Return the MessagePack of a request; None: it is JSON."""
    if len(data) > REQUEST_BYTES_MAX:
        raise RequestTooLarge(
            f"the request has {len(data)} bytes; at most {REQUEST_BYTES_MAX} are taken. "
            "Send fewer operations in one transaction."
        )
    if content_type == MESSAGE_PACK:
        return data
    if content_type == MESSAGE_PACK_ZLIB:
        return _unzipped(data)
    name = content_type.partition(";")[0].strip().lower()
    if name in ("", JSON):
        return None
    if name in MESSAGE_PACK_NAMES:
        return data
    if name == MESSAGE_PACK_ZLIB:
        return _unzipped(data)
    raise MalformedRequest(
        f"content-type {content_type[:80]!r} is not known; expected {JSON} or {MESSAGE_PACK}",
        field="content-type",
    )


def _checked(fields: Any) -> dict[Any, Any]:
    if type(fields) is not dict:
        raise MalformedRequest(f"a request is an object with fields, not {describe_value(fields)}")
    return fields


def _unzipped(data: bytes) -> bytes:
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(data, REQUEST_BYTES_MAX)
    except zlib.error as error:
        raise MalformedRequest(f"the {len(data)} bytes are not zlib's: {error}") from error
    if reader.unconsumed_tail:
        raise RequestTooLarge(
            f"the request has more than {REQUEST_BYTES_MAX} bytes when it is unpacked. Send fewer"
            " operations in one transaction."
        )
    if not reader.eof:
        raise MalformedRequest(f"the {len(data)} bytes are not all of what zlib has packed")
    return found


def _from_message_pack(data: bytes) -> Any:
    try:
        return msgpack.unpackb(
            data,
            object_pairs_hook=_without_repeats,
            # An array's head may promise a length that its reader reserves memory for.
            max_array_len=min(OPERATIONS_MAX, len(data)),
            max_map_len=MAP_LENGTH_MAX,
        )
    except MalformedRequest:
        raise
    except _UNREADABLE as error:
        words = str(error)[:200] or type(error).__name__
        raise MalformedRequest(f"the {len(data)} bytes are no MessagePack: {words}") from error


def _transaction_in_slices(data: bytes) -> Generator[None, None, dict[Any, Any] | None]:
    """Return the fields of a request with a transaction, whose operations are read one by one; None
    where it is no such thing, or anything is wrong with it: who reads it as a whole says what."""
    found = msgpack.Unpacker(
        object_pairs_hook=_without_repeats,
        max_array_len=min(OPERATIONS_MAX, len(data)),
        max_map_len=MAP_LENGTH_MAX,
        max_buffer_size=REQUEST_BYTES_MAX,
    )
    pairs: list[tuple[Any, Any]] = []
    try:
        found.feed(data)
        for _ in range(found.read_map_header()):
            name = found.unpack()
            if type(name) is not str:
                return None
            if name != "transaction":
                pairs.append((name, found.unpack()))
                continue
            operations: list[Any] = []
            for number in range(found.read_array_header()):
                if number % SLICE_OPERATIONS == SLICE_OPERATIONS - 1:
                    yield
                operations.append(found.unpack())
            pairs.append((name, operations))
        if found.tell() != len(data):
            return None
        return _without_repeats(pairs)
    except _WRONG:
        return None


def _from_json(data: bytes) -> Any:
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_without_repeats,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except MalformedRequest:
        raise
    except UnicodeDecodeError as error:
        raise MalformedRequest(f"the JSON is not UTF-8 text (byte {error.start})") from error
    except RecursionError as error:
        raise MalformedRequest("the JSON is nested too deeply") from error
    except _UNREADABLE as error:
        raise MalformedRequest(f"the {len(data)} bytes are no JSON: {str(error)[:200]}") from error


def _without_repeats(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice = next(
            name for name, times in Counter(name for name, _ in pairs).items() if times > 1
        )
        raise MalformedRequest(
            f"{twice!r:.80} is given twice in one object", field=show_name(twice)
        )
    return fields


def _no_constant(text: str) -> NoReturn:
    raise MalformedRequest(
        f"{text} is not a JSON value; expected a number, text, true, false or null"
        f' (a double precision column takes the text "{text}")'
    )


def _finite(text: str) -> float | Decimal:
    """Return the number that a JSON text says. JSON has no infinity: what comes out as one was a
    number too large for a double. A number that no double is (0.12345678901234567891) keeps its
    digits, for a numeric column."""
    value = float(text)
    if math.isinf(value):
        raise MalformedRequest(f"the number {text[:40]} is too large")
    if len(text) <= DIGITS_SURE:
        return value
    exact = Decimal(text)
    return value if Decimal(repr(value)) == exact else exact


def _as_text(value: Any) -> Any:
    if isinstance(value, Decimal) and not has_room(value):
        raise ValueError("a number has more digits than a numeric")
    if isinstance(value, Mapping):
        return dict(value)
    plain = plain_form(value)
    if plain is value:
        raise TypeError(f"a {type(value).__name__} has no wire form")
    return plain


_PACKING: Final = Packing(_as_text)
