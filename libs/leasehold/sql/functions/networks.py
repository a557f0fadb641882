"""Functions, operators and casts over inet and cidr."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported, InvalidArgument, OutOfRange
from leasehold.sql.functions.function import (
    BIGINT,
    BOOLEAN,
    CIDR,
    INET,
    INTEGER,
    TEXT,
    Function,
    unchanged,
)
from leasehold.values.networks import Address, address_of, host_text, stored_form, text_of

_BIGINT_LIMIT: Final = 1 << 63


def _network(stored: str) -> str:
    address = address_of(stored)
    return stored_form(address._replace(number=address.number & address.mask))


def _broadcast(stored: str) -> str:
    address = address_of(stored)
    behind = (1 << (address.bits - address.length)) - 1
    return stored_form(address._replace(number=address.number | behind))


def _netmask(stored: str) -> str:
    address = address_of(stored)
    return stored_form(Address(address.family, address.mask, address.bits))


def _hostmask(stored: str) -> str:
    address = address_of(stored)
    behind = (1 << (address.bits - address.length)) - 1
    return stored_form(Address(address.family, behind, address.bits))


def _with_length(stored: str, length: int, *, network: bool) -> str:
    address = address_of(stored)
    length = address.bits if length == -1 else length
    if not 0 <= length <= address.bits:
        raise InvalidArgument(f"invalid mask length: {length}")
    made = address._replace(length=length)
    return stored_form(made._replace(number=made.number & made.mask) if network else made)


def _abbreviated(stored: str) -> str:
    """Return a cidr without the parts behind its mask: 10.1/16."""
    address = address_of(stored)
    if address.family == 6:
        raise FeatureNotSupported("abbrev of a network of IPv6 is not supported: CAST it AS text")
    parts = host_text(address).split(".")[: max(-(-address.length // 8), 1)]
    return f"{'.'.join(parts)}/{address.length}"


def _merged(left: str, right: str) -> str:
    one, other = address_of(left), address_of(right)
    if one.family != other.family:
        raise InvalidArgument("cannot merge addresses from different families")
    same = one.bits - (one.number ^ other.number).bit_length()
    length = min(one.length, other.length, same)
    made = one._replace(length=length)
    return stored_form(made._replace(number=made.number & made.mask))


# ------------------------------------------------------------------ one in another


def _is_in(inner: str, outer: str, *, strictly: bool) -> int:
    one, other = address_of(inner), address_of(outer)
    longer = one.length > other.length if strictly else one.length >= other.length
    same = one.family == other.family
    return int(same and longer and not (one.number ^ other.number) & other.mask)


def _overlap(left: str, right: str) -> int:
    return int(_is_in(left, right, strictly=False) or _is_in(right, left, strictly=False))


# ------------------------------------------------------------------ arithmetic


def _moved(stored: str, by: int) -> str:
    address = address_of(stored)
    number = address.number + by
    if not 0 <= number < 1 << address.bits:
        raise OutOfRange("result is out of range")
    return stored_form(address._replace(number=number))


def _distance(left: str, right: str) -> int:
    one, other = address_of(left), address_of(right)
    if one.family != other.family:
        raise InvalidArgument("cannot subtract inet values of different sizes")
    between = one.number - other.number
    if not -_BIGINT_LIMIT <= between < _BIGINT_LIMIT:
        raise OutOfRange("result is out of range")
    return between


def _inverted(stored: str) -> str:
    address = address_of(stored)
    return stored_form(address._replace(number=~address.number & ((1 << address.bits) - 1)))


def _bitwise(compute: Callable[[int, int], int], word: str) -> Callable[[str, str], str]:
    def made(left: str, right: str) -> str:
        one, other = address_of(left), address_of(right)
        if one.family != other.family:
            raise InvalidArgument(f"cannot {word} inet values of different sizes")
        length = max(one.length, other.length)
        return stored_form(Address(one.family, compute(one.number, other.number), length))

    return made


CASTS: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    ("cidr", "inet"): unchanged,
    ("inet", "cidr"): _network,
}
FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("host", (INET,), TEXT, lambda stored: host_text(address_of(stored))),
    Function("family", (INET,), INTEGER, lambda stored: address_of(stored).family),
    Function("masklen", (INET,), INTEGER, lambda stored: address_of(stored).length),
    Function("network", (INET,), CIDR, _network),
    Function("broadcast", (INET,), INET, _broadcast),
    Function("netmask", (INET,), INET, _netmask),
    Function("hostmask", (INET,), INET, _hostmask),
    Function("set_masklen", (INET, INTEGER), INET, lambda s, n: _with_length(s, n, network=False)),
    Function("set_masklen", (CIDR, INTEGER), CIDR, lambda s, n: _with_length(s, n, network=True)),
    Function("abbrev", (INET,), TEXT, text_of),
    Function("abbrev", (CIDR,), TEXT, _abbreviated),
    Function(
        "inet_same_family",
        (INET, INET),
        BOOLEAN,
        lambda left, right: int(address_of(left).family == address_of(right).family),
    ),
    Function("inet_merge", (INET, INET), CIDR, _merged),
)
OPERATORS: Final[tuple[Function, ...]] = (
    Function("<<", (INET, INET), BOOLEAN, lambda a, b: _is_in(a, b, strictly=True)),
    Function("<<=", (INET, INET), BOOLEAN, lambda a, b: _is_in(a, b, strictly=False)),
    Function(">>", (INET, INET), BOOLEAN, lambda a, b: _is_in(b, a, strictly=True)),
    Function(">>=", (INET, INET), BOOLEAN, lambda a, b: _is_in(b, a, strictly=False)),
    Function("&&", (INET, INET), BOOLEAN, _overlap),
    Function("~", (INET,), INET, _inverted),
    Function("&", (INET, INET), INET, _bitwise(lambda a, b: a & b, "AND")),
    Function("|", (INET, INET), INET, _bitwise(lambda a, b: a | b, "OR")),
    Function("+", (INET, BIGINT), INET, _moved),
    Function("+", (BIGINT, INET), INET, lambda by, stored: _moved(stored, by)),
    Function("-", (INET, BIGINT), INET, lambda stored, by: _moved(stored, -by)),
    Function("-", (INET, INET), BIGINT, _distance),
)
