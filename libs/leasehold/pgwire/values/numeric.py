"""numeric in PostgreSQL's binary form: groups of four decimal digits, base 10,000.

int16 groups, int16 weight (of the first group, as a power of 10,000), uint16 sign, int16 scale
(digits shown behind the point), then the groups
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Final

from leasehold.pgwire.wire_errors import InvalidBinary, ProtocolViolation
from leasehold.values.numeric import (
    EXACT,
    INFINITY,
    NAN,
    SCALE_MAX,
    WHOLE_DIGITS_MAX,
    decimal_of,
    stored_form,
)

POSITIVE: Final = 0x0000
NEGATIVE: Final = 0x4000
_SPECIAL: Final = {0xC000: NAN, 0xD000: INFINITY, 0xF000: "A0"}
_SIGN_OF_SPECIAL: Final = {form: sign for sign, form in _SPECIAL.items()}
_SCALE_OF_INFINITE: Final = 32  # it means nothing, and is what PostgreSQL says
_HEAD: Final = struct.Struct("!hhHh")
_GROUP: Final = 4
_BASE: Final = 10_000


def numeric_binary(stored: str) -> bytes:
    special = _SIGN_OF_SPECIAL.get(stored)
    if special is not None:
        return _HEAD.pack(0, 0, special, 0 if stored == NAN else _SCALE_OF_INFINITE)
    text = format(decimal_of(stored), "f")
    whole, _, fraction = text.lstrip("-").partition(".")
    scale = len(fraction)
    whole = whole.zfill(-(-len(whole) // _GROUP) * _GROUP)
    digits = whole + fraction.ljust(-(-scale // _GROUP) * _GROUP, "0")
    groups = [int(digits[at : at + _GROUP]) for at in range(0, len(digits), _GROUP)]
    weight = len(whole) // _GROUP - 1
    while groups and groups[0] == 0:
        del groups[0]
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    if not groups:
        return _HEAD.pack(0, 0, POSITIVE, scale)
    sign = NEGATIVE if text[0] == "-" else POSITIVE
    return _HEAD.pack(len(groups), weight, sign, scale) + struct.pack(f"!{len(groups)}H", *groups)


def numeric_of_binary(data: bytes) -> str:
    """The storage value. Raises ProtocolViolation, InvalidBinary, OutOfRange."""
    if len(data) < _HEAD.size:
        raise ProtocolViolation("insufficient data left in message: numeric")
    count, weight, sign, scale = _HEAD.unpack_from(data)
    if sign in _SPECIAL:
        return _SPECIAL[sign]
    if sign not in (POSITIVE, NEGATIVE) or count < 0 or not 0 <= scale <= SCALE_MAX:
        raise InvalidBinary('invalid sign or scale in external "numeric" value')
    if len(data) != _HEAD.size + 2 * count:
        short = len(data) < _HEAD.size + 2 * count
        kind = ProtocolViolation if short else InvalidBinary
        raise kind('incorrect number of digits in external "numeric" value')
    groups = struct.unpack_from(f"!{count}H", data, _HEAD.size)
    if any(group >= _BASE for group in groups):
        raise InvalidBinary('invalid digit in external "numeric" value')
    if abs(weight) * _GROUP > WHOLE_DIGITS_MAX:
        raise InvalidBinary('invalid weight in external "numeric" value')
    digits = "".join([f"{group:04}" for group in groups]) or "0"
    exponent = (weight + 1 - count) * _GROUP if count else 0
    mark = "-" if sign == NEGATIVE else ""
    value = Decimal(f"{mark}{digits}E{exponent}")
    # Digits behind the scale that is shown are cut off, as PostgreSQL's input does.
    shown = value.quantize(Decimal((0, (1,), -scale)), rounding="ROUND_DOWN", context=EXACT)
    return stored_form(shown or shown.copy_abs())
