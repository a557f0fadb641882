"""How deep the tree of a text may be, and how large, by its tokens, before anybody makes it.

What is counted is never less than a third of the tree's levels (a query of two words has three).
Within a parenthesis (or CASE … END) each token may be a level above those behind it, or over those
before it; what stands on the two sides of a comma, or of AND and OR, of which PostgreSQL makes one
list, is beside each other. What goes on over those, as a chain of UNION or of JOIN does, is counted
up to the parenthesis that ends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from postgast.pg_query_pb2 import Token as Kind

from leasehold.model.errors import TooComplex
from leasehold.sql.syntax.scanning import Kinds
from leasehold.sql.syntax.source import Source

TOKENS_DEEP_MAX: Final = 8_000
"""In C a level takes some 130 bytes of a stack of 8 MiB (measured: 65,000 levels end the process).
A token has a byte at least, so a text of so many bytes is not looked at."""

COPIES_MAX: Final = 200_000
"""Tokens: of SET (a, b, …) = (…) the tree holds the right side once for each column. A text of 6 kB
may ask for 1.5 GB so."""
# Of a wrapper that looks each name up by a function: it is asked once.
_PARENTHESIS: Final = Kind.ASCII_40
_CLOSED: Final = Kind.ASCII_41
_OPENING: Final = frozenset({_PARENTHESIS, Kind.ASCII_91})
_CLOSING: Final = frozenset({_CLOSED, Kind.ASCII_93})
_COMMA: Final = Kind.ASCII_44
_POINT: Final = Kind.ASCII_46
_SEMICOLON: Final = Kind.ASCII_59
_EQUAL: Final = Kind.ASCII_61
_AND: Final = Kind.AND
_BETWEEN: Final = Kind.BETWEEN
_CASE: Final = Kind.CASE
_END: Final = Kind.END_P
_SET: Final = Kind.SET
_BESIDE: Final = frozenset({_COMMA, _SEMICOLON, _AND, Kind.OR, Kind.WHEN, Kind.THEN, Kind.ELSE})
_GOING_ON: Final = frozenset({Kind.UNION, Kind.INTERSECT, Kind.EXCEPT, Kind.JOIN})
_BEHIND_VALUES: Final = frozenset({_COMMA, _SEMICOLON, Kind.WHERE, Kind.FROM, Kind.RETURNING})


@dataclass(slots=True)
class _Level:
    """A level between two brackets. `within` counts levels since the last comma or its like, `most`
    those before it, `over` levels that stand over all of them, `ranges` BETWEEN whose AND is still
    to come."""

    is_case: bool
    within: int = 0
    most: int = 0
    over: int = 0
    ranges: int = 0

    def depth(self) -> int:
        return self.over + max(self.within, self.most)


def too_deep(position: int | None = None) -> TooComplex:
    sentence = "the text is nested too deeply"
    return TooComplex(sentence) if position is None else TooComplex(sentence, position=position)


def refuse_depth(said: Kinds, source: Source, most: int = TOKENS_DEEP_MAX) -> None:
    """Raises TooComplex above `most` levels."""
    level = _Level(is_case=False)
    outer: list[_Level] = []
    open_levels = 0  # of all that is open
    before = 0
    for index, token in enumerate(said.kinds):
        kind = 0 if before == _POINT else token  # a.case is a column
        before = token
        level.within += 1
        open_levels += 1
        if kind in _OPENING or kind == _CASE:
            outer.append(level)
            level = _Level(kind == _CASE)
        elif kind in _CLOSING or (kind == _END and level.is_case):
            while outer:
                closed, level = level, outer.pop()
                level.within += closed.depth()
                open_levels += closed.depth() - closed.over - closed.within
                if kind == _END or not closed.is_case:
                    break
        elif kind == _BETWEEN:
            level.ranges += 1
        elif kind == _AND and level.ranges:
            level.ranges -= 1
        elif kind in _BESIDE:
            open_levels -= level.within
            level.most = max(level.most, level.within)
            level.within = 0
        elif kind in _GOING_ON:
            level.over += 1
            open_levels += 1
        if open_levels > most:
            raise too_deep(source.position(said.begins[index]))
    for one in (*outer, level):
        if one.depth() > most:
            raise too_deep()


def may_be_copied(source: Source) -> bool:
    """Could `refuse_copies` refuse this text?"""
    text = source.text
    return (text.count(",") + 1) * len(source.encoded) > COPIES_MAX and "set" in text.lower()


def refuse_copies(said: Kinds, source: Source) -> None:
    """Raises TooComplex where the right sides of SET (a, b, …) = are more than COPIES_MAX tokens,
    each taken once for each of its columns."""
    kinds = said.kinds
    opened: list[int] = []
    copied = 0
    for index, kind in enumerate(kinds[:-1]):
        if kind == _PARENTHESIS:
            opened.append(index)
        elif kind == _CLOSED and opened:
            begin = opened.pop()
            if kinds[index + 1] == _EQUAL and kinds[begin - 1] in (_SET, _COMMA):
                columns = (index - begin) // 2
                copied += columns * _length(kinds, index + 2)
                if copied > COPIES_MAX:
                    raise TooComplex(
                        "SET (…) = (…) has too many columns and values: assign the columns one"
                        " by one",
                        position=source.position(said.begins[begin]),
                    )


def _length(kinds: list[int], begin: int) -> int:
    """Tokens up to the comma or the end that is not within, as far as COPIES_MAX."""
    depth = length = 0
    for index in range(begin, min(begin + COPIES_MAX + 1, len(kinds))):
        kind = kinds[index]
        depth += (kind == _PARENTHESIS) - (kind == _CLOSED)
        if depth < 0 or (depth == 0 and kind in _BEHIND_VALUES):
            break
        length += 1
    return length
