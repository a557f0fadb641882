"""INTERVAL '1' DAY, INTERVAL '1-2' YEAR TO MONTH: a constant whose units the words behind it
say."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from leasehold.model.errors import Refused, SyntaxInvalid
from leasehold.sql.parse import placed
from leasehold.sql.query_lexer import NUMBER, Word, Words
from leasehold.sql.syntax.tree import Cast, Constant
from leasehold.values.interval import span_of_fields, stored_form, text_of

_UP_TO: Final = {
    "year": ("month",),
    "day": ("hour", "minute", "second"),
    "hour": ("minute", "second"),
    "minute": ("second",),
}
_DIGITS_MAX: Final = 6


def with_fields(words: Words, node: Cast, said: Word) -> Cast:
    """`node`: the cast of the text `said`, behind which `words` stand at the first field. Raises
    what is wrong with the text."""
    first = last = words.advance().text
    if words.take("to"):
        last = words.said()
        if last not in _UP_TO.get(first, ()):
            raise words.unexpected()
        words.advance()
    digits = _digits(words) if last == "second" and words.take("(") else None
    try:
        span = span_of_fields(said.text, first, last, digits)
        text = text_of(stored_form(span))
    except Refused as error:
        raise placed(error, said.at) from error
    return replace(node, operand=Constant(said.at, "string", text))


def _digits(words: Words) -> int:
    found = words.advance()
    if found.kind != NUMBER or not found.text.isdecimal():
        raise SyntaxInvalid(f"syntax error at or near {found.source!r:.80}", position=found.at)
    words.expect(")")
    return min(int(found.text[:9]), _DIGITS_MAX)
