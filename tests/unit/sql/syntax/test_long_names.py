"""Goal: of a name that is too long as many characters are left as PostgreSQL leaves, and all else
of the text means what it meant and stands where it stood."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.sql.syntax.long_names import with_short_names
from leasehold.sql.syntax.scanning import Token, tokens_of
from leasehold.sql.syntax.source import Source

LONG = "a" * 70
CUT = "a" * 63


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"select 1 as {LONG}", f"select 1 as {CUT}       "),
        (f"select {LONG}.b", f"select {CUT}       .b"),
        (f'select "{LONG}"', f'select "{CUT}"       '),
        (f'select "{"q" * 60}""xx"', f'select "{"q" * 60}""xx"'),
        (f'select "{"q" * 62}""xx"', f'select "{"q" * 62}"""  '),
        (f"select {'Ü' * 40}", f"select {'Ü' * 31}{' ' * 9}"),
        (f"select x{'Ü' * 40}", f"select x{'Ü' * 31}{' ' * 9}"),
        (f"select '{LONG}', $${LONG}$$ -- {LONG}", f"select '{LONG}', $${LONG}$$ -- {LONG}"),
        (f"select '{LONG}", f"select '{LONG}"),
    ],
)
def test_names_are_cut_where_they_stand(text: str, expected: str) -> None:
    found, cuts = with_short_names(text)
    assert found == expected
    assert bool(cuts) == (text != expected)


def words_of(text: str) -> list[tuple[Token, int]]:
    source = Source(text)
    return [(token, source.character(token.begin)) for token in tokens_of(source)]


def test_a_notice_names_both() -> None:
    _, cuts = with_short_names(f"select {LONG}, 1 as {LONG.upper()}")
    assert [cut.notice for cut in cuts] == [f'identifier "{LONG}" will be truncated to "{CUT}"'] * 2


@given(
    st.lists(
        st.one_of(
            st.text("aÜ漢_$", max_size=70).map("x".__add__),
            st.text('aÜ" ', max_size=70).map(lambda t: f'"b{t.replace(chr(34), chr(34) * 2)}"'),
            st.text("aÜ'", max_size=70).map(lambda t: f"'{t.replace(chr(39), chr(39) * 2)}'"),
            st.sampled_from([".", ",", "1", "(", ")"]),
        ),
        max_size=8,
    ).map(" ".join)
)
def test_all_else_is_as_it_was(text: str) -> None:
    found, cuts = with_short_names(text)
    assert len(found) == len(text)
    before, after = words_of(text), words_of(found)
    assert [place for _, place in before] == [place for _, place in after]
    names = [word.name.encode() for word, _ in before if word.is_name]
    short = [name[:63].decode(errors="ignore") for name in names]
    assert [word.name for word, _ in after if word.is_name] == short
    assert len(cuts) == sum(len(name) > 63 for name in names)
    others = [word.word for word, _ in before if not word.is_name]
    assert [word.word for word, _ in after if not word.is_name] == others
    assert with_short_names(found) == (found, ())
