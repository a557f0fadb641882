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


def find_end(tokens: Sequence[Token], index: int) -> int:
    """Return the place behind the parenthesis that closes the one that opens at `index`."""
    depth = 0
    while index < len(tokens):
        depth += (tokens[index].word == "(") - (tokens[index].word == ")")
        index += 1
        if depth == 0:
            break
    return index


def skip_explain(tokens: Sequence[Token]) -> int:
    """Return where the statement begins that EXPLAIN and its options stand before; 0 without
    them."""
    index, end = 0, len(tokens)
    if tokens[index].word != "explain":
        return index
    index += 1
    if index < end and tokens[index].word == "(":
        index = find_end(tokens, index)
    while index < end and tokens[index].word in ("analyze", "analyse", "verbose"):
        index += 1
    return index


def has_words(tokens: Sequence[Token], index: int, *phrase: str) -> bool:
    """Do these words stand there?"""
    found = tokens[index : index + len(phrase)]
    return len(found) == len(phrase) and all(
        token.word == word for token, word in zip(found, phrase, strict=True)
    )


def make_mark(kind: str, written: str, tokens: Sequence[Token]) -> Mark:
    begin, end = tokens[0].begin, tokens[-1].end
    assert len(written) <= end - begin, (kind, written)
    return Mark(kind, begin, end, written, tuple(tokens))
