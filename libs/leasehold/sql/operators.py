"""What operators and functions do to storage values, with PostgreSQL's meaning.

Integers are checked to the width of their type (22003), division truncates and refuses zero
(22012), % takes the sign of the dividend, doubles refuse to become infinite. NULL is None; every
function here is called with values that are not NULL.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

from leasehold.model.errors import DivisionByZero, OutOfRange, TooLong, WrongType
from leasehold.schema.types import INTEGER_BITS, TEXT_BYTES_MAX, Type
from leasehold.sql.casts import made_cast

DOUBLE: Final = Type("double precision")
TEXT: Final = Type("text")
BOOLEAN: Final = Type("boolean")
INTEGER: Final = Type("integer")
BIGINT: Final = Type("bigint")
_WIDENING: Final = (*INTEGER_BITS, "double precision")

Two = Callable[[Any, Any], Any]
One = Callable[[Any], Any]


def is_integer(kind: Type) -> bool:
    return kind.name in INTEGER_BITS


def is_number(kind: Type) -> bool:
    return kind.name in _WIDENING


def is_text(kind: Type) -> bool:
    return kind.name in ("text", "varchar")


def common_type(kinds: list[Type]) -> Type:
    """The type that values of all `kinds` are brought to; text where there is none. WrongType."""
    if not kinds:
        return TEXT
    if all(is_number(kind) for kind in kinds):
        return max(kinds, key=lambda kind: _WIDENING.index(kind.name))
    if all(is_text(kind) for kind in kinds):
        return TEXT
    names = list(dict.fromkeys(kind.name for kind in kinds))
    if len(names) > 1:
        raise WrongType(f"types {' and '.join(names)} do not match; CAST one of them")
    return kinds[0]


def _ranged(kind: Type, compute: Callable[[int, int], int]) -> Two:
    limit = 1 << INTEGER_BITS[kind.name] - 1

    def checked(left: int, right: int) -> int:
        value = compute(left, right)
        if not -limit <= value < limit:
            raise OutOfRange(f"{value} is out of range for {kind}")
        return value

    return checked


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise DivisionByZero("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _modulo(left: int, right: int) -> int:
    if right == 0:
        raise DivisionByZero("division by zero")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def _finite(compute: Callable[[float, float], float], *, shrinks: bool = False) -> Two:
    def checked(left: float, right: float) -> float:
        try:
            value = compute(left, right)
        except ZeroDivisionError as error:
            raise DivisionByZero("division by zero") from error
        if not math.isfinite(value) and math.isfinite(left) and math.isfinite(right):
            raise OutOfRange("value is out of range for double precision: overflow")
        if shrinks and value == 0.0 and left != 0.0 and math.isfinite(right) and right != 0.0:
            raise OutOfRange("value is out of range for double precision: underflow")
        if math.isnan(value):
            raise OutOfRange("the result is not a number, which can't be stored")
        return value

    return checked


def arithmetic(sign: str, kind: Type) -> Two:
    """`sign` (+ - * / %) over two values of `kind`. Raises WrongType at once, never later."""
    if is_integer(kind):
        integers: dict[str, Callable[[int, int], int]] = {
            "+": operator.add,
            "-": operator.sub,
            "*": operator.mul,
            "/": _divide,
            "%": _modulo,
        }
        return _ranged(kind, integers[sign])
    if kind == DOUBLE:
        doubles: dict[str, Two] = {
            "+": _finite(operator.add),
            "-": _finite(operator.sub),
            "*": _finite(operator.mul, shrinks=True),
            "/": _finite(operator.truediv, shrinks=True),
        }
        if sign in doubles:
            return doubles[sign]
    raise WrongType(f"there is no operator {kind} {sign} {kind}")


def negate(kind: Type) -> One:
    if is_integer(kind):
        subtract = arithmetic("-", kind)
        return lambda value: subtract(0, value)
    if kind == DOUBLE:
        return operator.neg
    raise WrongType(f"there is no operator - {kind}")


def absolute(kind: Type) -> One:
    if not is_number(kind):
        raise WrongType(f"there is no function abs({kind})")
    change_sign = negate(kind)
    return lambda value: change_sign(value) if value < 0 else value


COMPARISONS: Final[dict[str, Two]] = {
    "=": lambda a, b: int(a == b),
    "<>": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
}


def random_uuid(seed: bytes, number: int) -> str:
    """A UUID of version 4 whose random bits are of `seed` (up to 64 bytes) and `number`."""
    value = bytearray(blake2b(number.to_bytes(4, "big"), key=seed, digest_size=16).digest())
    value[6] = value[6] & 0x0F | 0x40
    value[8] = value[8] & 0x3F | 0x80
    return str(UUID(bytes=bytes(value)))


def concatenate(left: str, right: str) -> str:
    if len(left) + len(right) > TEXT_BYTES_MAX:
        raise TooLong(f"the text would have more than {TEXT_BYTES_MAX} characters")
    return left + right


# ------------------------------------------------------------------ casts


DAY_US: Final = 86_400_000_000


def assign(source: Type, target: Type) -> One | None:
    """How a value of `source` is stored in a column of `target`; None: only by an explicit cast."""
    found = made_cast(source, target, "assignment")
    return None if found is None else found.compute


def cast(source: Type, target: Type) -> One | None:
    """CAST(… AS target); None where there is no such cast (or not yet)."""
    found = made_cast(source, target, "explicit")
    return None if found is None else found.compute
