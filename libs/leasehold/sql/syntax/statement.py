"""A statement that is converted: its tree, and the words of its text, for what the tree leaves out.

PostgreSQL's tree says where most nodes begin and where none ends, and of a list of names nothing at
all. So the place of a name, and the text of an expression that is kept, come from the words.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

from leasehold.model.errors import FeatureNotSupported
from leasehold.sql.syntax.accounting import NODES, Body, Sentence, location_of, refuse_unread
from leasehold.sql.syntax.enum_names import ANY_NAME
from leasehold.sql.syntax.marks import Mark, find_end
from leasehold.sql.syntax.own_schema_words import EXPLAINED_CHANGE
from leasehold.sql.syntax.parsing import Parsed
from leasehold.sql.syntax.scanning import Token, tokens_of
from leasehold.sql.syntax.source import Source


class Expression(NamedTuple):
    """An expression that is kept: its `text` without comments, words in lower case, one space where
    there was any."""

    text: str
    position: int


class Span(NamedTuple):
    """Words by their numbers, `end` not among them."""

    first: int
    end: int


class Words:
    """The words of a whole text, told apart when somebody asks for the first."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._tokens: list[Token] | None = None
        self._begins: list[int] = []

    @property
    def tokens(self) -> list[Token]:
        if self._tokens is None:
            self._tokens = tokens_of(self._source)
            self._begins = [token.begin for token in self._tokens]
        return self._tokens

    def at(self, location: int) -> int:
        """The word that begins there, or the next one."""
        return bisect_left(self._begins, location) if self.tokens else 0


class Reading:
    """A statement that is converted. `zone` is that of the session that says it, "" = UTC; `enums`
    are the enum types that it may name. Places are numbers of words."""

    def __init__(self, parsed: Parsed, words: Words, zone: str = "") -> None:
        self.parsed = parsed
        self.source = parsed.source
        self.zone = zone
        self.enums = ANY_NAME
        self.schema = ""
        """That of the table that it makes or changes, "" = public: those of its indexes and
        constraints lie there, too."""
        self._words = words

    def read(self, kind: str, body: Body, near: int = 0) -> Body:
        """The body, which holds nothing that its line does not name."""
        if not body.keys() <= NODES[kind].read:
            self._refuse_unread(kind, body, near)
        return body

    def _refuse_unread(self, kind: str, body: Body, near: int) -> NoReturn:
        word_index = self.at(location_of(body, near))
        for name in body:
            what = NODES[kind].refused.get(name)
            if isinstance(what, Sentence):
                self.refuse(what, self.next(word_index, *what.words))
        refuse_unread(self.source, kind, body, near)

    def refuse(self, sentence: str, word_index: int) -> NoReturn:
        raise FeatureNotSupported(sentence, position=self.position(word_index))

    def refuse_listed(self, sentences: Mapping[str, str], word_index: int) -> None:
        """Raises the sentence of the phrase that stands there, if any does."""
        for phrase, sentence in sentences.items():
            if self.said(word_index, *phrase.split()):
                self.refuse(sentence, word_index)

    def next(self, word_index: int, *phrase: str) -> int:
        """Return where these words stand next; `word_index` if they don't."""
        places = range(word_index, self.span.end)
        return next((one for one in places if self.said(one, *phrase)), word_index)

    @property
    def text(self) -> str:
        """Return the statement's own text, from its first word to its last."""
        first, end = self.span
        return self.source.encoded[self.tokens[first].begin : self.tokens[end - 1].end].decode()

    @property
    def offset(self) -> int:
        """How many characters of the source stand before it."""
        return self.source.character(self.parsed.begin)

    # ---------------------------------------------------------- places

    @property
    def tokens(self) -> list[Token]:
        return self._words.tokens

    @cached_property
    def span(self) -> Span:
        return Span(self.at(self.parsed.begin), self.at(self.parsed.end))

    @property
    def verb(self) -> int:
        """The statement's first word, behind EXPLAIN of a change."""
        first = self.span.first
        explained = self.mark(EXPLAINED_CHANGE, first)
        return first if explained is None else first + len(explained.tokens)

    def at(self, location: int) -> int:
        """The word at a location of the tree."""
        return self._words.at(location)

    def position(self, word_index: int) -> int:
        """Characters from 1; of no word, the end of the statement."""
        if word_index >= len(self.tokens):
            return self.source.position(self.parsed.end)
        return self.source.position(self.tokens[word_index].begin)

    def word(self, word_index: int) -> str:
        return self.tokens[word_index].word if word_index < len(self.tokens) else ""

    def said(self, word_index: int, *phrase: str) -> bool:
        return all(self.word(word_index + n) == word for n, word in enumerate(phrase))

    def behind(self, word_index: int, *optional: str) -> int:
        """Over each of these phrases that stands there, in their order."""
        for phrase in optional:
            words = phrase.split()
            if self.said(word_index, *words):
                word_index += len(words)
        return word_index

    def behind_name(self, word_index: int) -> int:
        """Over a name, with what it is qualified by."""
        while True:
            word_index = (
                word_index + 3 if self.word(word_index + 1) == "uescape" else word_index + 1
            )
            if self.word(word_index) != ".":
                return word_index
            word_index += 1

    def name(self, word_index: int) -> str:
        """Return the name that a word is."""
        return self.tokens[word_index].name

    def closed(self, word_index: int) -> int:
        """Return the place behind the parenthesis that closes the one at `word_index`."""
        return find_end(self.tokens, word_index)

    def opening(self, word_index: int) -> int:
        """The next opening parenthesis."""
        end = self.span.end
        while word_index < end and self.word(word_index) != "(":
            word_index += 1
        return word_index

    def within(self, opening: int) -> Span:
        """What stands between the parenthesis at `opening` and the one that closes it."""
        return Span(opening + 1, self.closed(opening) - 1)

    def listed(self, span: Span) -> Iterator[Span]:
        """What stands between commas, each with a word at least."""
        depth, first = 0, span.first
        for word_index in range(span.first, span.end):
            word = self.word(word_index)
            depth += (word in ("(", "[")) - (word in (")", "]"))
            if word == "," and depth == 0:
                yield Span(first, word_index)
                first = word_index + 1
        yield Span(first, span.end)

    def mark(self, kind: str, word_index: int) -> Mark | None:
        """What was said there in words of our own."""
        found = self._marks.get(self.tokens[word_index].begin)
        return found if found is not None and found.kind == kind else None

    @cached_property
    def _marks(self) -> dict[int, Mark]:
        return {mark.begin: mark for mark in self.parsed.marks}

    # ---------------------------------------------------------- expressions

    def kept(self, span: Span) -> Expression:
        parts: list[str] = []
        end = self.tokens[span.first].begin
        for token in self.tokens[span.first : span.end]:
            if token.begin > end:
                parts.append(" ")
            parts.append(token.word)
            end = token.end
        return Expression("".join(parts), self.position(span.first))

    def enclosed(self, opening: int) -> Expression:
        """Return the expression of ( expression )."""
        return self.kept(self.within(opening))


def names_of(nodes: list[Any]) -> tuple[str, ...]:
    """Return the names of a list of strings."""
    return tuple(node["String"].get("sval", "") for node in nodes)


def only(node: Any) -> tuple[str, Body]:
    """A node's kind and its body."""
    ((kind, body),) = node.items()
    return kind, body
