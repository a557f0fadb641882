"""Words behind EXPLAIN: (READS), and PostgreSQL's options. Those that only say how much is told are
taken and change nothing; what would run the statement, or tell it in another form, is refused."""

from __future__ import annotations

from typing import Final

from leasehold.model.errors import InvalidArgument, SyntaxInvalid
from leasehold.sql.query_lexer import Words

_TOLD_LESS_OR_MORE: Final = frozenset({"verbose", "costs", "settings", "buffers", "summary"})
_WITH_ANALYZE: Final = frozenset({"wal", "timing"})
_TRUE: Final = frozenset({"on", "true", "1"})
_FALSE: Final = frozenset({"off", "false", "0"})
_QUERIES: Final = frozenset({"select", "values", "with", "table", "("})


def reads_asked(words: Words) -> bool:
    """Behind EXPLAIN, up to the statement; was (READS) among it?"""
    if words.at("(") and words.said(1) not in _QUERIES:
        return _options(words)
    if words.at("analyze"):
        words.refuse("EXPLAIN ANALYZE")
    words.take("verbose")
    return False


def _options(words: Words) -> bool:
    words.expect("(")
    reads = _option(words)
    while words.take(","):
        reads |= _option(words)
    words.expect(")")
    return reads


def _option(words: Words) -> bool:
    at = words.position
    name = words.label()
    if name == "reads":
        return True
    if name == "format":
        if not words.take("text"):
            words.refuse("EXPLAIN in another format than TEXT")
        return False
    wanted = _is_on(words, name)
    if name == "analyze":
        if wanted:
            words.refuse("EXPLAIN ANALYZE")
    elif name in _WITH_ANALYZE:
        if wanted:
            raise InvalidArgument(f"EXPLAIN option {name.upper()} requires ANALYZE")
    elif name not in _TOLD_LESS_OR_MORE:
        raise SyntaxInvalid(f'unrecognized EXPLAIN option "{name:.63}"', position=at)
    return False


def _is_on(words: Words, name: str) -> bool:
    if words.said() in (",", ")"):
        return True
    found = words.peek()
    said = found.text.lower()
    if said not in _TRUE | _FALSE:
        raise SyntaxInvalid(f"{name} requires a Boolean value", position=found.at)
    words.advance()
    return said in _TRUE
