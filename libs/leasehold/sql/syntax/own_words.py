"""The words that PostgreSQL's grammar does not have, written so that it reads over them.

A rule looks at the tokens of one statement and says which bytes become which others, of the same
number, so that everything else stands where it stood. It knows where it is in its statement: a
column may be called selectv. Texts without one of the words cost a look for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from leasehold.sql.syntax.marks import Mark, Rule, find_end, make_mark, skip_explain
from leasehold.sql.syntax.own_schema_words import find_explained_change, find_locks
from leasehold.sql.syntax.own_session_words import find_own_modes, find_verifyretry
from leasehold.sql.syntax.scanning import Token, tokens_of
from leasehold.sql.syntax.source import Source

SELECTV: Final = "SELECTV"


def _verified_selects(tokens: list[Token]) -> list[Mark]:
    """SELECTV where a statement's SELECT may stand, and those beside it with UNION and its like."""
    first = _verb(tokens)
    if first is None or tokens[first].word != "selectv" or tokens[first].quoted:
        return []
    found = [first]
    depth = 0
    for index in range(first + 1, len(tokens)):
        word = tokens[index].word
        depth += (word in ("(", "[")) - (word in (")", "]"))
        if depth == 0 and word == "selectv" and not tokens[index].quoted:
            before = index - 1
            if tokens[before].word in ("all", "distinct"):
                before -= 1
            if tokens[before].word in ("union", "intersect", "except"):
                found.append(index)
    return [make_mark(SELECTV, "SELECT", tokens[index : index + 1]) for index in found]


def _verb(tokens: list[Token]) -> int | None:
    """Return where a statement's own verb stands: behind EXPLAIN, DECLARE … FOR and WITH."""
    index, end = skip_explain(tokens), len(tokens)
    if index < end and tokens[index].word == "declare":
        while index < end and tokens[index].word != "for":
            index += 1
        index += 1
    if index < end and tokens[index].word == "with":
        index += 1
        while index < end:
            if tokens[index].word == "(":
                index = find_end(tokens, index)
                if index < end and tokens[index].word not in (",", "as"):
                    break
            else:
                index += 1
    return index if index < end else None


RULES: Final[dict[str, Rule]] = {
    "selectv": _verified_selects,
    "lock": find_locks,
    "explain": find_explained_change,
    "isolation": find_own_modes,
    "of": find_own_modes,
    "verifyretry": find_verifyretry,
}
"""By a word that the text has to hold, in any case."""

_TRIGGERS: Final = re.compile(rf"\b({'|'.join(RULES)})\b", re.IGNORECASE | re.ASCII)


def replace_own_words(source: Source) -> tuple[bytes, tuple[Mark, ...]]:
    """The text in PostgreSQL's words, as many bytes, and what was said in ours. Raises what the
    scanner refuses."""
    if _TRIGGERS.search(source.text) is None:
        return source.encoded, ()
    said = {RULES[found.lower()] for found in _TRIGGERS.findall(source.text)}
    marks: list[Mark] = []
    for statement in _statements(tokens_of(source)):
        for rule in said:
            marks += rule(statement)
    marks.sort(key=attrgetter("begin"))
    written = bytearray(source.encoded)
    for one in marks:
        written[one.begin : one.end] = one.written.encode().ljust(one.end - one.begin)
    return bytes(written), tuple(marks)


def _statements(tokens: list[Token]) -> Iterable[list[Token]]:
    one: list[Token] = []
    for token in tokens:
        if token.word != ";":
            one.append(token)
        elif one:
            yield one
            one = []
    if one:
        yield one
