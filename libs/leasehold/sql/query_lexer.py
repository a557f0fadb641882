"""The words of a query: PostgreSQL's lexical rules, and a place among them to read from.

Not sqlglot's tokens: it cuts `.5`, reads `0x1f` and `1a` as something PostgreSQL 15 refuses, and
decodes E'…' its own way, none of which could be told afterwards.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NoReturn

from leasehold.model.errors import FeatureNotSupported, OutOfRange, SyntaxInvalid
from leasehold.sql.parse import checked_name
from leasehold.sql.words import RESERVED

QUERY_BYTES_MAX: Final = 1 << 20
QUERY_NESTING_MAX: Final = 24
"""Parentheses and CASE; reading descends about 14 frames for each."""
OPERANDS_DEEP_MAX: Final = 48
"""Levels of an expression's tree, which may be deep without parentheses: 1 + 1 + …"""

WORD, NAME, STRING, NUMBER, PARAMETER, SIGN, END = range(7)


class Word(NamedTuple):
    """`text`: a word in lower case, a name without its quotes, a string decoded, else the source.
    `at`: characters from 1."""

    kind: int
    text: str
    at: int
    source: str


_PATTERN: Final = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*)
  | (?P<comment>/\*)
  | (?P<escaped>[eE]'(?:[^'\\]|''|\\.)*')
  | (?P<foreign>(?:[uU]&['"]|[xXbBnN]'))
  | (?P<string>'(?:[^']|'')*')
  | (?P<name>"(?:[^"]|"")*")
  | (?P<parameter>\$[0-9]+)
  | (?P<dollar>\$(?P<tag>(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)?)\$)
  | (?P<number>(?:[0-9]+\.(?!\.)[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*)
  | (?P<sign>::|:=|=>|\.\.|[(),;.:\[\]])
  | (?P<operator>[-+*/<>=~!@\#%^&|`?]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_AFTER_NUMBER: Final = re.compile(r"[A-Za-z_\x80-\U0010ffff$]")
_ESCAPE: Final = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_MAY_END_IN_SIGN: Final = frozenset("~!@#%^&|`?")


def words_of(text: str) -> list[Word]:
    """The words of one text, an END at last. Raises SyntaxInvalid, OutOfRange."""
    size = len(text.encode(errors="replace"))
    if size > QUERY_BYTES_MAX:
        raise OutOfRange(f"the text has {size} bytes; at most {QUERY_BYTES_MAX} are read")
    for place, character in enumerate(text, start=1) if not text.isascii() or "\0" in text else ():
        if character == "\0" or "\ud800" <= character <= "\udfff":
            raise SyntaxInvalid("the text holds a character that is no text", position=place)
    found: list[Word] = []
    place = depth = 0
    while place < len(text):
        matched = _PATTERN.match(text, place)
        if matched is None:
            raise _unread(text, place)
        kind, source = matched.lastgroup, matched[0]
        if kind == "tag":
            kind = "dollar"
        end = matched.end()
        if kind == "comment":
            end = _comment_end(text, place)
        elif kind != "space":
            word, end = _word(text, place, str(kind), source, end)
            depth += (word.source in ("(", "[")) + (word.kind == WORD and word.text == "case")
            depth -= (word.source in (")", "]")) + (word.kind == WORD and word.text == "end")
            if depth > QUERY_NESTING_MAX:
                raise OutOfRange(f"nested more than {QUERY_NESTING_MAX} deep", position=word.at)
            found.append(word)
        place = end
    found.append(Word(END, "", len(text.rstrip()) + 1, ""))
    return found


def _word(text: str, place: int, kind: str, source: str, end: int) -> tuple[Word, int]:
    at = place + 1
    match kind:
        case "word":
            return Word(WORD, source.lower(), at, source), end
        case "name":
            return Word(NAME, source[1:-1].replace('""', '"'), at, source), end
        case "string":
            return _string(text, at, source[1:-1].replace("''", "'"), source, end)
        case "escaped":
            return _string(text, at, _unescaped(source[2:-1], at), source, end)
        case "dollar":
            close = text.find(source, end)
            if close < 0:
                raise SyntaxInvalid("unterminated dollar-quoted string", position=at)
            end = close + len(source)
            return Word(STRING, text[place + len(source) : close], at, text[place:end]), end
        case "number":
            if _AFTER_NUMBER.match(text, end):
                raise SyntaxInvalid("trailing junk after numeric literal", position=at)
            return Word(NUMBER, source, at, source), end
        case "parameter":
            if _AFTER_NUMBER.match(text, end):
                raise SyntaxInvalid("trailing junk after parameter", position=at)
            return Word(PARAMETER, source[1:], at, source), end
        case "foreign":
            raise FeatureNotSupported(
                f"constants that begin with {source!r} are not supported", position=at
            )
        case "operator":
            source = _operator(source)
            return Word(SIGN, "<>" if source == "!=" else source, at, source), place + len(source)
    return Word(SIGN, source, at, source), end


_CONTINUED: Final = re.compile(r"[ \t\f\r]*(?:--[^\n]*)?\n\s*'((?:[^']|'')*)'")


def _string(text: str, at: int, value: str, source: str, end: int) -> tuple[Word, int]:
    """Constants with a new line between them are one."""
    while (more := _CONTINUED.match(text, end)) is not None:
        value, end = value + more[1].replace("''", "'"), more.end()
    return Word(STRING, value, at, source), end


def _operator(source: str) -> str:
    """PostgreSQL's longest operator: it ends before a comment, and in + or - only if it holds one
    of ~ ! @ # % ^ & | ` ?"""
    for comment in ("--", "/*"):
        if (found := source.find(comment)) > 0:
            source = source[:found]
    while len(source) > 1 and source[-1] in "+-" and _MAY_END_IN_SIGN.isdisjoint(source[:-1]):
        source = source[:-1]
    return source


def _comment_end(text: str, place: int) -> int:
    depth, end = 0, place
    for found in re.compile(r"/\*|\*/").finditer(text, place):
        depth += 1 if found[0] == "/*" else -1
        end = found.end()
        if depth == 0:
            return end
    raise SyntaxInvalid("unterminated /* comment", position=place + 1)


def _unescaped(body: str, at: int) -> str:
    def one(found: re.Match[str]) -> str:
        octal, hexa, short, long, plain = found.groups()
        if plain is not None:
            return _ESCAPES.get(plain, str(plain))
        code = int(octal, 8) if octal else int(hexa or short or long, 16)
        surrogate = 0xD800 <= code <= 0xDFFF
        if code == 0 or code > 0x10FFFF or surrogate or (code > 127 and not (short or long)):
            raise FeatureNotSupported(f"the escape {found[0]!r} is not supported", position=at)
        return chr(code)

    return _ESCAPE.sub(one, body.replace("''", "'"))


def _unread(text: str, place: int) -> SyntaxInvalid:
    character = text[place]
    if character in "'eE":
        return SyntaxInvalid("unterminated quoted string", position=place + 1)
    if character == '"':
        return SyntaxInvalid("unterminated quoted identifier", position=place + 1)
    return SyntaxInvalid(f"syntax error at or near {character!r}", position=place + 1)


class Words:
    """A place among the words of a text; `at` looks, `take` and `expect` move it."""

    def __init__(self, words: list[Word]) -> None:
        self._words = words
        self._next = 0

    def peek(self, ahead: int = 0) -> Word:
        place = min(self._next + ahead, len(self._words) - 1)
        return self._words[place]

    @property
    def position(self) -> int:
        return self.peek().at

    def said(self, ahead: int = 0) -> str:
        """The word or sign that stands there; "" for names in quotes and constants."""
        found = self.peek(ahead)
        return found.text if found.kind in (WORD, SIGN) else ""

    def at(self, *phrase: str) -> bool:
        return all(self.said(n) == word for n, word in enumerate(phrase))

    def take(self, *phrase: str) -> bool:
        if not self.at(*phrase):
            return False
        self._next += len(phrase)
        return True

    def expect(self, *phrase: str) -> None:
        for word in phrase:
            if not self.take(word):
                raise self.unexpected()

    def advance(self) -> Word:
        found = self.peek()
        self._next += 1
        return found

    def unexpected(self) -> SyntaxInvalid:
        found = self.peek()
        place = "at end of input" if found.kind == END else f"at or near {found.source!r:.80}"
        return SyntaxInvalid(f"syntax error {place}", position=found.at)

    def refuse(self, what: str) -> NoReturn:
        raise FeatureNotSupported(f"{what} is not supported", position=self.position)

    def is_name(self, ahead: int = 0) -> bool:
        found = self.peek(ahead)
        return found.kind == NAME or (found.kind == WORD and found.text not in RESERVED)

    def name(self) -> str:
        if not self.is_name():
            raise self.unexpected()
        found = self.advance()
        return checked_name(found.text, found.at)

    def label(self) -> str:
        """After AS, where every word is a name."""
        if self.peek().kind not in (WORD, NAME):
            raise self.unexpected()
        found = self.advance()
        return checked_name(found.text, found.at)
