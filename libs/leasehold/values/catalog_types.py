"""Types of the system catalog, of expressions alone: oid, name, "char", and those whose value is
the oid of something that is shown by its name (regclass …).

Storage values: whole numbers from 0 to 2³² - 1 for oids, texts of 63 bytes at most for name, of one
character at most for "char".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported, InvalidText, OutOfRange
from leasehold.values.letters import BLANKS, is_digits
from leasehold.values.types import Type

OID: Final = Type("oid")
NAME: Final = Type("name")
REGCLASS: Final = Type("regclass")
REGISTERED: Final = frozenset(
    {
        *("regclass", "regtype", "regproc", "regprocedure", "regoper", "regoperator"),
        *("regnamespace", "regrole"),
    }
)
NUMBERED: Final = REGISTERED | {"oid"}
"""Types whose storage value is an oid."""
LETTERED: Final = frozenset({"name", '"char"'})
SYSTEM_TYPES: Final = NUMBERED | LETTERED
_NAME_BYTES_MAX: Final = 63
OIDS: Final = 1 << 32

Convert = Callable[..., Any]


def oid_of_number(value: int) -> int:
    """Negative ones stand for those that 32 bits with a sign make of large ones."""
    if not -OIDS // 2 <= value < OIDS:
        raise OutOfRange("OID out of range")
    return value % OIDS


def oid_of_text(text: str) -> int:
    digits = text.strip(BLANKS)
    if not is_digits(digits.removeprefix("-").removeprefix("+")) or len(digits) > 20:
        raise InvalidText(f'invalid input syntax for type oid: "{text:.80}"')
    try:
        return oid_of_number(int(digits))
    except OutOfRange as error:
        raise OutOfRange(f'value "{text:.80}" is out of range for type oid') from error


def name_of_text(text: str) -> str:
    """What is longer is cut, as PostgreSQL cuts it."""
    return text.encode()[:_NAME_BYTES_MAX].decode(errors="ignore")


def letter_of_text(text: str) -> str:
    if text[:1] > "\x7f":
        raise FeatureNotSupported('a "char" that is no ASCII character is not supported')
    return text[:1]


TEXT_INPUT: Final[dict[str, Convert]] = {
    "oid": oid_of_text,
    "name": name_of_text,
    '"char"': letter_of_text,
}
