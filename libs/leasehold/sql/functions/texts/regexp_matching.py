"""Compiled regular expressions, by RE2, and the patterns of SIMILAR TO."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import re2

from leasehold.model.budget import charge
from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidEscapeSequence,
    TooComplex,
)
from leasehold.sql.functions.texts.regexp_translation import PATTERN_MAX, Flags, PatternReader

_KEPT_MAX: Final = 512

STEPS_PER_WORK: Final = 100
r"""Steps of a program over one character each in a unit of work: 4.5 ns a step were measured, so a
search ends after 4.5 s at worst. RE2 lets other threads run meanwhile, and hardly any pattern comes
near the worst: \w alone has 900 steps, of which a search looks at one or two."""
_COMPILE_WORK: Final = 1_000
"""Of a character of a pattern that is read, rewritten and compiled twice."""
CHARACTERS_PER_WORK: Final = 10
"""Of a search that goes by RE2's table of states."""


class Match(NamedTuple):
    """Places in the text, and of each pair of parentheses; (-1, -1): it took no part."""

    start: int
    end: int
    groups: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Regular:
    """A compiled pattern. `why_not`: why places can't be told, `why_no_parts`: why those of parts
    can't, "" where they can. `ascii_only`: of texts in ASCII alone."""

    tests: Any
    finds: Any
    groups: int
    why_not: str
    why_no_parts: str
    ascii_only: bool

    def found_in(self, text: str) -> bool:
        self._check(text)
        charge(self._work(self.tests, len(text)))
        return self.tests.search(text) is not None

    def matches(self, text: str, *, parts: bool) -> Iterator[Match]:
        """Give the matches from left to right, as PostgreSQL looks for the next one. Raises
        FeatureNotSupported."""
        self._check(text)
        why = self.why_not or (self.why_no_parts if parts and self.groups else "")
        if why:
            raise FeatureNotSupported(f"this regular expression is not supported here: {why}")
        charge(self._work(self.finds, len(text)))
        before: tuple[int, int] | None = None
        for found in self.finds.finditer(text):
            span = found.span()
            # The next search may read all that is left and still match at its begin.
            charge((len(text) - span[1]) // CHARACTERS_PER_WORK)
            if span == before and span[0] == span[1]:
                continue  # an empty match is found once
            before = span
            groups = tuple(found.span(n) for n in range(1, self.groups + 1)) if parts else ()
            yield Match(span[0], span[1], groups)

    @staticmethod
    def _work(compiled: Any, characters: int) -> int:
        """Return the work of one search at worst: RE2 follows all steps of the program at once
        where its table of states would grow too large. Others run meanwhile."""
        size: int = compiled.programsize
        return characters * size // STEPS_PER_WORK

    def _check(self, text: str) -> None:
        if self.ascii_only and not text.isascii():
            raise FeatureNotSupported(r"\y and \Y beside characters that are no ASCII")


@lru_cache(maxsize=_KEPT_MAX)
def regular(pattern: str, flags: Flags = Flags()) -> Regular:  # noqa: B008 - immutable
    """Raises InvalidRegularExpression (2201B), FeatureNotSupported, TooComplex."""
    if len(pattern) > PATTERN_MAX:
        raise _too_long()
    charge(len(pattern) * _COMPILE_WORK)
    reader = PatternReader(pattern, flags)
    whole = reader.whole()
    lazy = reader.lazy
    why = ""
    if lazy and (reader.variable > 1 or reader.branched):
        why = "a quantifier like *? must be its only one, without |"
    parts = "" if whole.sure else "more than one division of the text among its parts is possible"
    text = f"(?i:{whole.text})" if reader.fold else whole.text
    return Regular(
        _compiled(text, longest=False),
        _compiled(text, longest=not lazy),
        reader.groups,
        why,
        parts,
        reader.ascii_only,
    )


def _too_long() -> TooComplex:
    return TooComplex(f"a regular expression has at most {PATTERN_MAX} characters")


def _compiled(text: str, *, longest: bool) -> Any:
    options = re2.Options()
    options.longest_match = longest
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise TooComplex("the regular expression is too large") from error


def similar_pattern(pattern: str, escape: str = "\\") -> str:
    """The regular expression of a pattern of SIMILAR TO; escape "": there is none."""
    if len(escape) > 1:
        raise InvalidEscapeSequence("invalid escape string: it must be empty or one character")
    if len(pattern) > PATTERN_MAX:
        raise _too_long()
    made = ["^(?:"]
    brackets = escaped = False
    for character in pattern:
        if escaped:
            if character == '"':
                raise FeatureNotSupported('escape and " in a pattern of SIMILAR TO')
            made.append("\\" + character)
            escaped = False
        elif escape and character == escape:
            escaped = True
        elif brackets:
            made.append("\\\\" if character == "\\" else character)
            brackets = character != "]"
        elif character == "[":
            made.append(character)
            brackets = True
        elif character == "%":
            made.append(".*")
        elif character == "_":
            made.append(".")
        elif character == "(":
            made.append("(?:")
        elif character in "\\.^$":
            made.append("\\" + character)
        else:
            made.append(character)
    return "".join([*made, ")$"])
