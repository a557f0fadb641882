"""The checked tokens of a statement, taken one after another: what grammars are written with.

Nothing is ever skipped: what no grammar takes is the syntax error that PostgreSQL would report, at
the same place. sqlglot's own trees of statements are not used: it keeps a whole ALTER as raw text
when it does not know one of its actions, and reads over words that PostgreSQL refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from leasehold.model.errors import FeatureNotSupported, SyntaxInvalid
from leasehold.sql.parse import checked_name, tree_of
from leasehold.sql.words import RESERVED, is_word

T = TypeVar("T")


class Kind(Enum):
    WORD = "word"  # a keyword or a name without quotes
    NAME = "name"  # a name in quotes
    CONSTANT = "constant"
    SIGN = "sign"


_KINDS: Final = {
    TokenType.IDENTIFIER: Kind.NAME,
    TokenType.STRING: Kind.CONSTANT,
    TokenType.NUMBER: Kind.CONSTANT,
}


class Lexeme(NamedTuple):
    """`text`: a word in lower case, what is inside a name's quotes, else the source.

    `start` and `end` (exclusive) in characters; `token`: the number of the token it is part of
    (PRIMARY KEY is one token and two words).
    """

    kind: Kind
    text: str
    start: int
    end: int
    token: int


class Expression(NamedTuple):
    """`text` without comments, words in lower case, one space where there was any."""

    text: str
    position: int


def _lexemes(text: str, tokens: list[Token]) -> list[Lexeme]:
    found: list[Lexeme] = []
    for number, token in enumerate(tokens):
        start, end = int(token.start), int(token.end) + 1
        kind = _KINDS.get(token.token_type)
        source = text[start:end]
        parts = source.split()
        if kind is not None:
            said = token.text if kind is Kind.NAME else source
            found.append(Lexeme(kind, said, start, end, number))
        elif not all(is_word(part) for part in parts):
            found.append(Lexeme(Kind.SIGN, source, start, end, number))
        else:
            for part in parts:
                start = text.index(part, start)
                word = Lexeme(Kind.WORD, part.lower(), start, start + len(part), number)
                found.append(word)
                start = word.end
    return found


class Reader:
    """A place among the lexemes of a statement; `at` looks, `take` and `expect` move it. `zone`:
    that of the session that says it, "" = UTC."""

    def __init__(self, text: str, tokens: list[Token], zone: str = "") -> None:
        self.zone = zone
        self._text = text
        self._tokens = tokens
        self._lexemes = _lexemes(text, tokens)
        self._next = 0

    @property
    def position(self) -> int:
        """Where the next lexeme stands, or the text's end: characters from 1."""
        next_one = self.peek()
        return (next_one.start if next_one else self._lexemes[-1].end) + 1

    def peek(self, ahead: int = 0) -> Lexeme | None:
        place = self._next + ahead
        return self._lexemes[place] if place < len(self._lexemes) else None

    def word(self, ahead: int = 0) -> str:
        """The word or sign that stands there; "" where a name in quotes or a constant does."""
        found = self.peek(ahead)
        return found.text if found and found.kind in (Kind.WORD, Kind.SIGN) else ""

    def at(self, phrase: str) -> bool:
        """Do these words (or signs) come next?"""
        return all(self.word(n) == word for n, word in enumerate(phrase.split()))

    def take(self, phrase: str) -> bool:
        if not self.at(phrase):
            return False
        self._next += len(phrase.split())
        return True

    def expect(self, phrase: str) -> None:
        for word in phrase.split():
            if not self.take(word):
                raise self.unexpected(f"{phrase.upper()} is expected")

    def advance(self) -> None:
        """Over the lexeme that `peek` has shown."""
        self._next += 1

    def end(self) -> None:
        """Raises SyntaxInvalid when something is left."""
        if self.peek() is not None:
            raise self.unexpected()

    def unexpected(self, hint: str = "") -> SyntaxInvalid:
        found = self.peek()
        place = "at end of input" if found is None else f"at or near {self._source(found)!r:.80}"
        words = f"syntax error {place}"
        return SyntaxInvalid(f"{words}: {hint}" if hint else words, position=self.position)

    def refuse(self, sentences: Mapping[str, str]) -> None:
        """Raises FeatureNotSupported with the sentence of the phrase that comes next, if any."""
        for phrase, sentence in sentences.items():
            if self.at(phrase):
                raise FeatureNotSupported(sentence, position=self.position)

    def cascades(self) -> bool:
        """[CASCADE | RESTRICT], the latter if nothing is said."""
        if self.take("cascade"):
            return True
        self.take("restrict")
        return False

    def _source(self, lexeme: Lexeme) -> str:
        return self._text[lexeme.start : lexeme.end]

    # ---------------------------------------------------------- names

    def name(self, what: str = "a name") -> str:
        """A name, folded unless quoted. Raises SyntaxInvalid, OutOfRange (its length)."""
        found = self.peek()
        if found is None or found.kind not in (Kind.WORD, Kind.NAME):
            raise self.unexpected(f"{what} is expected")
        if found.kind is Kind.WORD and found.text in RESERVED:
            raise self.unexpected(f"{what} is expected; a reserved word needs quotes")
        checked = checked_name(found.text, self.position)
        self._next += 1
        return checked

    def qualified_name(self, what: str) -> str:
        """A name after which schema it is in; `public` may be named, there is no other."""
        position = self.position
        first = self.name(what)
        if not self.take("."):
            return first
        second = self.name(what)
        if self.at(".") or first != "public":
            raise FeatureNotSupported(
                f"schema {first!r} does not exist: a database has the schema public only",
                position=position,
            )
        return second

    def listed(self, one: Callable[[], T]) -> tuple[T, ...]:
        """( one, one … ): at least one."""
        self.expect("(")
        found = [one()]
        while self.take(","):
            found.append(one())
        self.expect(")")
        return tuple(found)

    def names(self) -> tuple[str, ...]:
        return self.listed(lambda: self.name("a column's name"))

    # ---------------------------------------------------------- expressions

    def enclosed_expression(self) -> Expression:
        """( expression ). Raises SyntaxInvalid when it can't be read as one."""
        self.expect("(")
        found = self.expression()
        self.expect(")")
        return found

    def expression(self, stops: frozenset[str] = frozenset()) -> Expression:
        """An expression up to a comma, a parenthesis that it does not open, or one of `stops`.

        `stops` are words that begin what may follow; the first word is always taken.
        """
        first = self._next
        depth = 0
        while self.peek() is not None:
            word = self.word()
            closes = word in (")", "]", "end")
            if depth == 0 and (closes or word == ","):
                break
            if depth == 0 and self._next > first and word in stops and not self._in_operation():
                break
            depth += (word in ("(", "[", "case")) - closes
            self._next += 1
        return self._read(first, is_open=depth > 0)

    def at_call(self) -> bool:
        """Does a function with its arguments come next?"""
        found = self.peek()
        return found is not None and found.kind is Kind.WORD and self.word(1) == "("

    def call(self) -> Expression:
        """A function with its arguments, up to the parenthesis that closes them."""
        assert self.at_call()
        first, depth = self._next, 0
        self._next += 1
        while self.peek() is not None:
            depth += (self.word() == "(") - (self.word() == ")")
            self._next += 1
            if depth == 0:
                break
        return self._read(first, is_open=depth > 0)

    def _read(self, first: int, *, is_open: bool) -> Expression:
        """The expression that was taken since the lexeme `first`."""
        taken = self._lexemes[first : self._next]
        if not taken or is_open:
            hint = "the expression is open" if taken else "an expression is expected"
            raise self.unexpected(hint)
        tree_of(self._text, self._tokens[taken[0].token : taken[-1].token + 1])
        return Expression(self._canonical(taken), taken[0].start + 1)

    def _in_operation(self) -> bool:
        """Is the last lexeme an operator, which an operand must follow (1 + NULL)?"""
        last = self._lexemes[self._next - 1]
        return last.kind is Kind.SIGN and last.text not in (")", "]")

    def _canonical(self, taken: list[Lexeme]) -> str:
        parts: list[str] = []
        end = taken[0].start
        for lexeme in taken:
            if lexeme.start > end:
                parts.append(" ")
            parts.append(lexeme.text if lexeme.kind is Kind.WORD else self._source(lexeme))
            end = lexeme.end
        return "".join(parts)
