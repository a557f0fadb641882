"""What operations on numbers of many digits are charged, by the digits that they go through.

Multiplying and dividing take time in proportion to the digits, or nearly so; turning a number into
an int, or an int into a number, goes with their square.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from leasehold.model.budget import charge

FREE_DIGITS: Final = 2_000
"""Numbers of fewer digits, all operands together, are computed in less time than a charge may be
wrong by."""
_PRODUCT_WORK: Final = 4
_QUOTIENT_WORK: Final = 15
_ROOT_WORK: Final = 150
_LOGARITHM_WORK: Final = 1.2
_EXPONENTIAL_PARTS: Final = 12
_COMMON_PARTS: Final = 200
_FACTOR_WORK: Final = 100


def charge_product(digits: int) -> None:
    """Charge for a product of operands of so many digits together."""
    if digits > FREE_DIGITS:
        charge(_PRODUCT_WORK * digits)


def charge_quotient(left: Decimal, right: Decimal, right_digits: int, scale: int) -> None:
    """Charge for a quotient with so many digits behind the point, or for the rest of one."""
    digits = max(left.adjusted() - right.adjusted() + scale, 0) + right_digits
    if digits > FREE_DIGITS:
        charge(_QUOTIENT_WORK * digits)


def charge_root(digits: int) -> None:
    """Charge for a root of so many digits."""
    if digits > FREE_DIGITS // 2:
        charge(_ROOT_WORK * digits)


def charge_logarithm(digits: int) -> None:
    """Charge for a logarithm of so many digits: it goes with their square."""
    if digits > FREE_DIGITS // 4:
        charge(int(_LOGARITHM_WORK * digits * digits))


def charge_exponential(digits: int) -> None:
    """Charge for a power of e with so many digits: it goes with their square."""
    if digits > FREE_DIGITS // 2:
        charge(digits * digits // _EXPONENTIAL_PARTS)


def charge_power(base_digits: int, exponent: int, digits: int) -> None:
    """Charge for a power by squaring, whose result has at most so many digits: after each step the
    base's digits have doubled, as far as there is room."""
    if digits <= FREE_DIGITS:
        return
    work, size = 0, base_digits
    for bit in bin(abs(exponent))[3:]:
        work += 2 * _PRODUCT_WORK * size
        size = min(2 * size, digits)
        if bit == "1":
            work += _PRODUCT_WORK * (size + base_digits)
            size = min(size + base_digits, digits)
    charge(work)


def charge_common_divisor(digits: int) -> None:
    """Charge for the steps of Euclid over two ints of so many digits each."""
    if digits > FREE_DIGITS:
        charge(digits * digits // _COMMON_PARTS)


def charge_common_multiple(digits: int) -> None:
    """Charge as `charge_common_divisor`, and for an int of the digits of both."""
    charge_common_divisor(digits * 3 // 2)


def charge_factorial(factors: int) -> None:
    """Charge for a product of so many numbers, one behind the other."""
    if factors > FREE_DIGITS:
        charge(_FACTOR_WORK * factors)
