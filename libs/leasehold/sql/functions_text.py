"""Functions and operators over text."""

from __future__ import annotations

from typing import Final

from leasehold.model.errors import TooLong
from leasehold.schema.types import TEXT_BYTES_MAX
from leasehold.sql.function import (
    INTEGER,
    TEXT,
    Function,
)


def bounded(text: str) -> str:
    """Raises TooLong (22001): nothing longer than what is stored is ever made."""
    if len(text) > TEXT_BYTES_MAX:
        raise TooLong(f"the text would have more than {TEXT_BYTES_MAX} characters")
    return text


def joined(left: str, right: str) -> str:
    if len(left) + len(right) > TEXT_BYTES_MAX:
        raise TooLong(f"the text would have more than {TEXT_BYTES_MAX} characters")
    return left + right


FUNCTIONS: Final = (
    Function("length", (TEXT,), INTEGER, len),
    Function("char_length", (TEXT,), INTEGER, len),
    Function("character_length", (TEXT,), INTEGER, len),
    Function("upper", (TEXT,), TEXT, str.upper),
    Function("lower", (TEXT,), TEXT, str.lower),
)
OPERATORS: Final = (Function("||", (TEXT, TEXT), TEXT, joined),)
