"""Goal: what `lower`, `upper`, `initcap` and ILIKE give is the same in every Python.

Method: all of Unicode beside a digest, and beside this Python's own tables where they are of the
version that ours are of; texts whose own methods answer as another Python's might.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

import pytest

from infra.unicode_tables import TARGET, characters, render, simple_lower, simple_upper
from leasehold.sql.functions.texts.like import is_ilike
from leasehold.sql.functions.texts.text import FUNCTIONS as TEXTS
from leasehold.values.letters import (
    ascii_lower,
    ascii_upper,
    is_digits,
    is_letter_or_digit,
    lower,
    upper,
)
from leasehold.values.unicode_tables import VERSION

DIGEST: Final = "8230ba2f6123af9abadfa523003d1691"
"""Of each character's capital, small letter and whether it is one: what indexes were computed with.
Another one changes what they mean."""


def test_every_character_is_what_stored_entries_were_computed_with() -> None:
    said = blake2b(digest_size=16)
    for character in characters():
        forms = upper(character) + lower(character) + "-+"[is_letter_or_digit(character)]
        said.update(forms.encode())
    assert said.hexdigest() == DIGEST


@pytest.mark.skipif(unicodedata.unidata_version != VERSION, reason="another version's tables")
def test_the_tables_are_those_of_unicode() -> None:
    for character in characters():
        assert upper(character) == simple_upper(character)
        assert lower(character) == simple_lower(character)
        assert is_letter_or_digit(character) == character.isalnum()
    assert TARGET.read_text(encoding="utf-8") == render()


class Foreign(str):
    """As another Python may have it: it answers otherwise wherever letters beyond ASCII are."""

    __slots__ = ()

    def _other(self, *_: Any) -> Any:
        raise AssertionError("this Python's own tables were asked")

    title = capitalize = swapcase = casefold = _other
    isalpha = isalnum = isdigit = isdecimal = isnumeric = isspace = isprintable = _other

    def lower(self) -> str:
        return super().lower() if self.isascii() else self._other()

    def upper(self) -> str:
        return super().upper() if self.isascii() else self._other()


def compute(name: str) -> Callable[..., Any]:
    return next(f.compute for f in TEXTS if f.name == name)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (lambda: compute("lower")(Foreign("ÄRGER İΣ Ⱥ")), "ärger iσ ⱥ"),
        (lambda: compute("upper")(Foreign("ärger ßŉ ǆ")), "ÄRGER ßŉ Ǆ"),
        (lambda: compute("initcap")(Foreign("élan VITAL_ǆ9x ⓐb")), "Élan Vital_Ǆ9x ⓐB"),
        (lambda: is_ilike(Foreign("ΟΔΟΣ"), Foreign("οδο_")), 1),
        (lambda: is_ilike(Foreign("ΟΔΟΣ"), Foreign("%σ")), 1),
        (lambda: is_ilike(Foreign("İ"), Foreign("_")), 1),
        (lambda: ascii_lower(Foreign("ÄB\u212a")), "Äb\u212a"),
        (lambda: ascii_upper(Foreign("äbſ")), "äBſ"),
        (lambda: lower("A" * 40_000 + "Ä"), "a" * 40_000 + "ä"),
        # Letters since Unicode 15 and 16: 3.11 has none of them, later Pythons do.
        (lambda: lower("\ua7cb\ua7dc"), "\ua7cb\ua7dc"),
        (lambda: upper("\u0264\u019b"), "\u0264\u019b"),
        (lambda: is_letter_or_digit("\U00011f50"), False),
        (lambda: [is_digits(text) for text in ("12", "", "1२", "+1")], [True] + [False] * 3),
    ],
)
def test_texts_are_not_asked_for_their_letters(asked: Callable[[], Any], answer: Any) -> None:
    assert asked() == answer
