"""LIKE and ILIKE: what fits, and that no text makes them go over another one again and again."""

from __future__ import annotations

from random import Random

import pytest

from leasehold.model.errors import InvalidEscapeSequence, TooComplex
from leasehold.sql.functions.texts import like_search
from leasehold.sql.functions.texts.like import is_ilike, is_like

SEED = 20_261_127
TEXT, WIDE = 262_144, 131_072


def fits_plainly(text: str, pattern: str) -> bool:
    """Each part of the pattern at each place, one by one."""
    places = {0}
    parts = iter(pattern)
    for part in parts:
        if part == "%":
            places = set(range(min(places), len(text) + 1)) if places else places
            continue
        wanted = None if part == "_" else next(parts) if part == "\\" else part
        places = {p + 1 for p in places if p < len(text) and wanted in (None, text[p])}
    return len(text) in places


@pytest.mark.parametrize("by_bits", [False, True], ids=["tried one by one", "followed by bits"])
def test_fits_what_a_plain_comparison_fits(by_bits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: both ways of looking for a piece find what comparing character by character finds."""
    if by_bits:
        monkeypatch.setattr(like_search, "_WORK_PER_CHARACTER", -1)
        monkeypatch.setattr(like_search, "_WINDOW_LEAST", 3)
    random = Random(SEED)
    fitting = 0
    for _ in range(12_000):
        letters = random.choice(["ab", "abc", "aB\n", "aé漢"])
        text = "".join(random.choices(letters, k=random.randrange(25)))
        shapes = [*letters, "%", "_", "_", "\\_", "\\%", "\\\\", "\\a"]
        pattern = "".join(random.choices(shapes, k=random.randrange(10)))
        wanted = fits_plainly(text, pattern)
        assert is_like(text, pattern) == wanted, (SEED, text, pattern)
        assert is_ilike(text.upper(), pattern) == fits_plainly(text.lower(), pattern.lower())
        fitting += wanted
    assert fitting > 300


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("a" * TEXT, "%" + "_" * WIDE + "b%"),
        ("a" * TEXT, "%" + "a_" * (WIDE // 2) + "b%"),
        ("ab" * (TEXT // 2), "%" + "a_" * (WIDE // 2) + "_a_b%"),
        ("a" * TEXT, "%" + "a" * (WIDE // 2) + "_ab%"),
        ("a" * TEXT, "%" + "_b%" * 40_000),
        ("ab" * (TEXT // 2), "%" + ("a_" * 1_000 + "b_a%") * 40),
    ],
    ids=["blanks", "every second", "alternating", "long literal", "many pieces", "long pieces"],
)
def test_answers_where_text_and_pattern_are_long(text: str, pattern: str) -> None:
    """Goal: n × m comparisons, 34 billion here, are made for none of them."""
    assert is_like(text, pattern) == 0


def test_refuses_what_would_take_too_long() -> None:
    """Goal: texts of many million characters are refused where following them would take long."""
    text = "ab" * 8_000_000
    with pytest.raises(TooComplex):
        is_like(text, "%" + "a_" * 1_000_000 + "_a_b%")
    assert is_like(text, "%a_ab%") == 1


def test_refuses_a_pattern_that_ends_in_its_escape_character() -> None:
    """Goal: as before, whatever the text is."""
    with pytest.raises(InvalidEscapeSequence):
        is_like("x", "y\\")
