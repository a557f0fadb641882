"""What a text says in words that PostgreSQL's grammar does not have, and how these are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from leasehold.sql.syntax.scanning import Token


class Mark(NamedTuple):
    """A phrase of our own in a text. `kind` says what was said; `begin` and `end` where, in
    bytes; `tokens` are its tokens. `written` stands there for PostgreSQL's parser, filled up
    with blanks."""

    kind: str
    begin: int
    end: int
    written: str
    tokens: tuple[Token, ...] = ()


Rule = Callable[[list[Token]], Iterable[Mark]]
"""From a statement's tokens, at least one."""


def find_end(tokens: Sequence[Token], place: int) -> int:
    """Return the place behind the parenthesis that closes the one that opens at `place`."""
    depth = 0
    while place < len(tokens):
        depth += (tokens[place].word == "(") - (tokens[place].word == ")")
        place += 1
        if depth == 0:
            break
    return place


def skip_explain(tokens: Sequence[Token]) -> int:
    """Return where the statement begins that EXPLAIN and its options stand before; 0 without
    them."""
    place, end = 0, len(tokens)
    if tokens[place].word != "explain":
        return place
    place += 1
    if place < end and tokens[place].word == "(":
        place = find_end(tokens, place)
    while place < end and tokens[place].word in ("analyze", "analyse", "verbose"):
        place += 1
    return place


def has_words(tokens: Sequence[Token], place: int, *phrase: str) -> bool:
    """Do these words stand there?"""
    found = tokens[place : place + len(phrase)]
    return len(found) == len(phrase) and all(
        token.word == word for token, word in zip(found, phrase, strict=True)
    )


def make_mark(kind: str, written: str, tokens: Sequence[Token]) -> Mark:
    begin, end = tokens[0].begin, tokens[-1].end
    assert len(written) <= end - begin, (kind, written)
    return Mark(kind, begin, end, written, tuple(tokens))
