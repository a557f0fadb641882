"""The words of a text, as PostgreSQL's scanner tells them apart."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from postgast import PgQueryError
from postgast import scan as scanned
from postgast.pg_query_pb2 import KeywordKind
from postgast.pg_query_pb2 import Token as Kind

from leasehold.sql.syntax.failures import failure
from leasehold.sql.syntax.source import Source

_COMMENTS: Final = frozenset({Kind.SQL_COMMENT, Kind.C_COMMENT})
_FCONST: Final = Kind.FCONST
_IDENT: Final = Kind.IDENT
_UIDENT: Final = Kind.UIDENT
_UNRESERVED: Final = KeywordKind.UNRESERVED_KEYWORD
_NAMES: Final = frozenset({_IDENT, _UIDENT})


class Token(NamedTuple):
    """A token. `word` is in lower case what needs no quotes (a keyword or a name), else the sign or
    constant as it is written. `begin` and `end` are bytes; `quoted`: it is a name in quotes, of
    which `word` has them. `kind` is PostgreSQL's number of it; `keyword` says how far it is
    reserved, 0 for no keyword."""

    word: str
    begin: int
    end: int
    kind: int
    quoted: bool
    keyword: int = 0

    @property
    def is_name(self) -> bool:
        """Return whether it is a name and no keyword, with quotes or without."""
        return self.kind in _NAMES

    @property
    def name(self) -> str:
        """Return a name without its quotes."""
        return self.word[1:-1].replace('""', '"') if self.quoted else self.word

    @property
    def is_plain(self) -> bool:
        """A name, or a keyword that is one everywhere: what PostgreSQL puts no quotes around."""
        return not self.quoted and (self.kind == _IDENT or self.keyword == _UNRESERVED)

    @property
    def is_inexact(self) -> bool:
        """A number with a point or an exponent."""
        return self.kind == _FCONST and not self.word.isdecimal()


class Kinds(NamedTuple):
    """PostgreSQL's numbers of a text's tokens, without comments, and the byte that each begins
    with: what is asked of a long text, at a fraction of what its tokens cost."""

    kinds: list[int]
    begins: list[int]


def kinds_of(source: Source) -> Kinds:
    """Raises what PostgreSQL's scanner refuses."""
    kinds: list[int] = []
    begins: list[int] = []
    for token in _scanned(source):
        kind = token.token
        if kind not in _COMMENTS:
            kinds.append(kind)
            begins.append(token.start)
    return Kinds(kinds, begins)


def _scanned(source: Source) -> Any:
    try:
        return scanned(source.text).tokens
    except PgQueryError as error:
        offset = source.of_character(error.cursorpos) if error.cursorpos > 0 else 0
        raise failure(error.message, offset) from None


def tokens_of(source: Source) -> list[Token]:
    """Return the tokens of a text, without comments. Raises what PostgreSQL's scanner refuses."""
    tokens: list[Token] = []
    for token in _scanned(source):
        kind, keyword = token.token, token.keyword_kind
        if kind in _COMMENTS:
            continue
        begin, end = token.start, token.end
        word = source.written(begin, end)
        quoted = kind == _UIDENT or (kind == _IDENT and word[0] == '"')
        if keyword or (kind == _IDENT and not quoted):
            word = fold(word)
        tokens.append(Token(word, begin, end, kind, quoted, keyword))
    return tokens


def comments_of(source: Source) -> list[tuple[int, int]]:
    """Return where the comments to the end of a line begin and end, in bytes. Raises what
    PostgreSQL's scanner refuses."""
    return [(t.start, t.end) for t in _scanned(source) if t.token == Kind.SQL_COMMENT]


def fold(word: str) -> str:
    """Return a word in lower case, of ASCII's letters alone, as PostgreSQL folds a name in
    UTF-8."""
    return word.lower() if word.isascii() else word.encode().lower().decode()


def offset_of(source: Source, begin: int, *words: str) -> int:
    """Return where the first of these words stands from `begin` on, in bytes; `begin` where none
    does. It is for a refusal of what has no place in the tree."""
    found = (token.begin for token in tokens_of(source) if token.word in words and not token.quoted)
    return next((offset for offset in found if offset >= begin), begin)


def offset_before(source: Source, end: int, word: str) -> int:
    """Return where the last such word before `end` stands, `end` where none does."""
    found = [token.begin for token in tokens_of(source) if token.word == word and token.begin < end]
    return found[-1] if found else end
