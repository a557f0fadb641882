"""inet and cidr: an address of IPv4 or IPv6 with the length of its network's mask.

The storage value is a text that is ordered as PostgreSQL orders the type: the family, the bits of
the network, the mask's length, then all of the address, in hex digits. It says all of the value.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Final, NamedTuple

from leasehold.model.errors import InvalidText
from leasehold.values.letters import BLANKS

BITS: Final = {4: 32, 6: 128}
_DIGITS: Final = {4: 8, 6: 32}
_V4: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}")
_LENGTH: Final = re.compile(r"[0-9]{1,3}")
_STORED: Final = re.compile(r"([46])([0-9a-f]{8}|[0-9a-f]{32})([0-9a-f]{2})([0-9a-f]{8,32})")


class Address(NamedTuple):
    """An address of a family, 4 or 6, as a number; `length`: bits of its network."""

    family: int
    number: int
    length: int

    @property
    def bits(self) -> int:
        return BITS[self.family]

    @property
    def mask(self) -> int:
        """The bits of the network as a number."""
        return (1 << self.bits) - (1 << (self.bits - self.length))


def stored_form(address: Address) -> str:
    digits = _DIGITS[address.family]
    network = address.number & address.mask
    return f"{address.family}{network:0{digits}x}{address.length:02x}{address.number:0{digits}x}"


def address_of(stored: str) -> Address:
    family = int(stored[0])
    digits = _DIGITS[family]
    return Address(family, int(stored[-digits:], 16), int(stored[1 + digits : 3 + digits], 16))


def is_stored_form(value: object) -> bool:
    if not isinstance(value, str) or not _STORED.fullmatch(value):
        return False
    if len(value) != 3 + 2 * _DIGITS[int(value[0])]:
        return False
    address = address_of(value)
    return address.length <= address.bits and stored_form(address) == value


def is_stored_network(value: object) -> bool:
    """Whether a text is a storage value of cidr: no bit is set behind the mask."""
    if not isinstance(value, str) or not is_stored_form(value):
        return False
    address = address_of(value)
    return not address.number & ~address.mask


def address_of_text(text: str, kind: str) -> Address:
    """Return the address that a text says: 10.1.2.3/8, ::1; of cidr also 10.1, whose mask follows
    from its parts. Raises InvalidText."""
    said, slash, length_text = text.strip(BLANKS).partition("/")
    if slash and not _LENGTH.fullmatch(length_text):
        raise _invalid(text, kind)
    length = int(length_text) if slash else None
    made = _v6(said, length) if ":" in said else _v4(said, length, kind)
    if made is None:
        raise _invalid(text, kind)
    if kind == "cidr" and made.number & ~made.mask:
        raise InvalidText(
            f'invalid cidr value: "{text:.80}": it has bits set to the right of its mask'
        )
    return made


def _v6(said: str, length: int | None) -> Address | None:
    try:
        number = int(ipaddress.IPv6Address(said)) if "%" not in said else None
    except ValueError:
        return None
    length = 128 if length is None else length
    return None if number is None or length > 128 else Address(6, number, length)


def _v4(said: str, length: int | None, kind: str) -> Address | None:
    if not _V4.fullmatch(said):
        return None
    parts = [int(part) for part in said.split(".")]
    # An inet without a mask has all four parts.
    if max(parts) > 255 or (len(parts) < 4 and kind == "inet" and length is None):
        return None
    if length is None:
        length = 32 if len(parts) == 4 and kind == "inet" else _length_by_class(parts)
    if length > 32:
        return None
    number = int.from_bytes(bytes([*parts, 0, 0, 0][:4]))
    return Address(4, number, length)


def _length_by_class(parts: list[int]) -> int:
    """Return the mask of a network of which only some parts are said, by the classes that networks
    once had; never less than the parts that are said."""
    first = parts[0]
    by_class = 32 if first >= 240 else 8 if first >= 224 else 24 if first >= 192 else 0
    by_class = by_class or (16 if first >= 128 else 8)
    length = max(by_class, 8 * len(parts))
    return 4 if length == 8 and first == 224 else length


def _invalid(text: str, kind: str) -> InvalidText:
    return InvalidText(f'invalid input syntax for type {kind}: "{text:.80}"')


def text_of(stored: str, *, whole: bool = False) -> str:
    """Return the text of an inet, whose mask is not shown where it is all of the address; `whole`:
    of a cidr, which shows it always."""
    address = address_of(stored)
    shown = host_text(address)
    return shown if address.length == address.bits and not whole else f"{shown}/{address.length}"


def host_text(address: Address) -> str:
    """Return an address without its mask."""
    if address.family == 4:
        return str(ipaddress.IPv4Address(address.number))
    made = ipaddress.IPv6Address(address.number)
    if address.number >> 32 in (0, 0xFFFF) and address.number >> 16:
        last = ipaddress.IPv4Address(address.number & 0xFFFFFFFF)
        return f"::ffff:{last}" if address.number >> 32 else f"::{last}"
    return str(made)


def python_of(stored: str) -> Any:
    """Return an address of Python's ipaddress, with its network where that is not all of it."""
    address = address_of(stored)
    kind = ipaddress.IPv4Interface if address.family == 4 else ipaddress.IPv6Interface
    made = kind((address.number, address.length))
    return made.ip if address.length == address.bits else made


def python_network_of(stored: str) -> Any:
    address = address_of(stored)
    kind = ipaddress.IPv4Network if address.family == 4 else ipaddress.IPv6Network
    return kind((address.number, address.length))


def address_of_python(value: Any) -> Address | None:
    """Return the address of an object of Python's ipaddress, None for another one."""
    if isinstance(value, ipaddress.IPv4Interface | ipaddress.IPv6Interface):
        return Address(value.version, int(value.ip), value.network.prefixlen)
    if isinstance(value, ipaddress.IPv4Address | ipaddress.IPv6Address):
        return Address(value.version, int(value), value.max_prefixlen)
    if isinstance(value, ipaddress.IPv4Network | ipaddress.IPv6Network):
        return Address(value.version, int(value.network_address), value.prefixlen)
    return None
