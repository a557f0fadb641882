"""SASLprep (RFC 4013) as PostgreSQL does it: a password that it forbids is taken as it is."""

from __future__ import annotations

import stringprep
import unicodedata
from typing import Final

_PROHIBITED: Final = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def saslprep(password: str) -> str:
    if password.isascii():
        return password
    mapped = "".join(
        " " if stringprep.in_table_c12(character) else character
        for character in password
        if not stringprep.in_table_b1(character)
    )
    made = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    return made if made and _allowed(made) else password


def _allowed(text: str) -> bool:
    if any(forbids(character) for character in text for forbids in _PROHIBITED):
        return False
    if any(stringprep.in_table_a1(character) for character in text):
        return False
    right_to_left = [stringprep.in_table_d1(character) for character in text]
    if not any(right_to_left):
        return True
    if any(stringprep.in_table_d2(character) for character in text):
        return False
    return right_to_left[0] and right_to_left[-1]
