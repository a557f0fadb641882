"""PostgreSQL's advanced regular expressions, by RE2: time is linear in the text.

The pattern is read here and rewritten in RE2's words. What RE2 has not, or would find elsewhere
than PostgreSQL, is refused (0A000); what is no pattern at all is 2201B. PostgreSQL finds the
longest of the leftmost matches, and in it the longest for each part from the left: RE2 finds the
former; the latter is the same where `_Part.sure` says so, and parts are told only then. Classes
(\\w, [:alpha:]) are of the Unicode that RE2 brings, of which every node has the same version;
PostgreSQL's are of the server's locale.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NoReturn

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidArgument,
    InvalidRegularExpression,
    TooComplex,
)
from leasehold.values.integers import whole
from leasehold.values.letters import ascii_lower, is_digits, is_letter_or_digit

PATTERN_MAX: Final = 8_192
NESTING_MAX: Final = 60
REPEAT_MAX: Final = 255

_WORD: Final = r"\p{L}\p{N}_"
_SPACE: Final = r"\t-\r \x{85}\p{Z}"
_CLASSES: Final = {
    "alpha": r"\p{L}",
    "alnum": r"\p{L}\p{N}",
    "digit": "0-9",
    "xdigit": "0-9A-Fa-f",
    "lower": r"\p{Ll}",
    "upper": r"\p{Lu}",
    "space": _SPACE,
    "blank": r" \t",
    "punct": r"\p{P}\p{S}",
    "cntrl": r"\p{Cc}",
    "word": _WORD,
}
_SHORT: Final = {"d": "0-9", "s": _SPACE, "w": _WORD}
_PLAIN: Final = {
    "a": "\a",
    "b": "\b",
    "B": "\\",
    "e": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_BOUNDS: Final = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_HEX: Final = re.compile(r"x([0-9a-fA-F]+)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|0[0-7]{0,2}")
_OPTIONS: Final = re.compile(r"\(\?([a-z]+)\)")


class Flags(NamedTuple):
    """The flags of a pattern. `fold`: letters are equal in either case; `lines`: . and [^a] stop at
    a line's end, ^ and $ are at each line; `every`: all matches are meant."""

    fold: bool = False
    lines: bool = False
    every: bool = False


def flags_of(text: str) -> Flags:
    """Raises InvalidArgument, FeatureNotSupported."""
    flags = Flags()
    for letter in text:
        if letter not in "gicnmspqwxtbe":
            raise InvalidArgument(f'invalid regular expression option: "{letter}"')
        if letter not in "gicnms":
            raise FeatureNotSupported(f'the regular expression option "{letter}" is not supported')
        match letter:
            case "g":
                flags = flags._replace(every=True)
            case "i" | "c":
                flags = flags._replace(fold=letter == "i")
            case _:
                flags = flags._replace(lines=letter != "s")
    return flags


class _Part(NamedTuple):
    """A part of a pattern in RE2's words. `width` counts the characters that it always takes, None
    where that varies; `one`: it is one character; `literal` is the text that it is; `empty`: it may
    take none. `sure`: there is one way to divide a match among its parentheses, or the first one
    found is PostgreSQL's."""

    text: str
    width: int | None
    one: bool = False
    literal: str | None = None
    empty: bool = False
    sure: bool = True


class PatternReader:
    def __init__(self, pattern: str, flags: Flags) -> None:
        self.pattern = pattern
        self.at = 0
        self.depth = 0
        self.groups = 0
        self.variable = 0
        self.lazy = False
        self.branched = False
        self.ascii_only = False
        self.fold, self.lines = flags.fold, flags.lines

    def whole(self) -> _Part:
        if self.pattern.startswith("***"):
            raise FeatureNotSupported("a regular expression that begins with *** is not supported")
        options = _OPTIONS.match(self.pattern)
        if options is not None:
            self.at = options.end()
            found = flags_of(options[1])
            if found.every:
                self._invalid("invalid embedded option")
            self.fold = found.fold if {"i", "c"} & set(options[1]) else self.fold
            self.lines = found.lines if set("nms") & set(options[1]) else self.lines
        part = self._branches(top=True)
        if self.at < len(self.pattern):
            self._invalid("parentheses () not balanced")
        return part

    def _invalid(self, why: str) -> NoReturn:
        raise InvalidRegularExpression(f"invalid regular expression: {why}")

    def _said(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def _take(self, text: str) -> bool:
        if not self._said(text):
            return False
        self.at += len(text)
        return True

    # ---------------------------------------------------------- structure

    def _branches(self, *, top: bool) -> _Part:
        self.depth += 1
        if self.depth > NESTING_MAX:
            raise TooComplex("the regular expression is nested too deeply")
        parts = [self._sequence(top=top)]
        while self._take("|"):
            parts.append(self._sequence(top=False))
        self.depth -= 1
        if len(parts) == 1:
            return parts[0]
        self.branched = True
        widths = {part.width for part in parts}
        width = widths.pop() if len(widths) == 1 else None
        texts = [part.literal for part in parts]
        apart = None not in texts and not any(
            a.startswith(b)
            for n, a in enumerate(texts)
            for m, b in enumerate(texts)
            if n != m and a is not None and b is not None
        )
        sure = (width is not None or apart) and all(part.sure for part in parts)
        text = "|".join(part.text for part in parts)
        one = all(part.one for part in parts)
        return _Part(f"(?:{text})", width, one, None, any(p.empty for p in parts), sure)

    def _sequence(self, *, top: bool) -> _Part:
        parts: list[_Part] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            parts.append(self._piece())
        widths = [part.width for part in parts]
        known = [width for width in widths if width is not None]
        width = sum(known) if len(known) == len(parts) else None
        variable = [part for part in parts if part.width is None]
        # Inside of parentheses the whole must be as long as can be before its first part is.
        sure = all(p.sure for p in parts) and (
            top or len(variable) < 2 or all(part.one for part in variable)
        )
        literals = [part.literal for part in parts]
        literal = None if None in literals else "".join(text for text in literals if text)
        one = len(parts) == 1 and parts[0].one
        empty = all(part.empty for part in parts)
        return _Part("".join(p.text for p in parts), width, one, literal, empty, sure)

    def _piece(self) -> _Part:
        if self.pattern[self.at] in "*+?":
            self._invalid("quantifier operand invalid")
        anchored = self.pattern[self.at] in "^$" or self.pattern[self.at : self.at + 2] in (
            *("\\A", "\\Z", "\\y", "\\Y"),
        )
        atom = self._atom()
        bounds = self._quantifier()
        if bounds is None:
            return atom
        if anchored:
            self._invalid("quantifier operand invalid")
        low, high, lazy = bounds
        if self._quantifier() is not None:
            self._invalid("quantifier operand invalid")
        fixed = low == high and not lazy
        if not fixed:
            self.variable += 1
            self.lazy |= lazy
        most = "" if high is None else str(high)
        shown = f"{{{low}}}" if low == high else f"{{{low},{most}}}"
        text = f"(?:{atom.text}){shown}{'?' if lazy else ''}"
        width = atom.width * low if fixed and atom.width is not None else None
        optional = (low, high) == (0, 1)
        sure = atom.sure and (
            (atom.one and not atom.empty)  # (a?)+: PostgreSQL ends with an empty one
            or (fixed and atom.width is not None)
            or (not atom.empty and (optional or atom.width is not None))
        )
        return _Part(text, width, atom.one, None, low == 0 or atom.empty, sure)

    def _quantifier(self) -> tuple[int, int | None, bool] | None:
        """Return the least and the most number of times, None for any, and whether few are wanted;
        None where no quantifier follows."""
        for sign, low, high in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self._take(sign):
                return low, high, self._take("?")
        if not self._said("{") or not is_digits(self.pattern[self.at + 1 : self.at + 2]):
            return None
        found = _BOUNDS.match(self.pattern, self.at)
        if found is None:
            self._invalid("invalid repetition count(s)")
        self.at = found.end()
        low = whole(found[1])
        high = low if found[2] is None else whole(found[3]) if found[3] else None
        if max(low, high or 0) > REPEAT_MAX or (high is not None and low > high):
            self._invalid("invalid repetition count(s)")
        return low, high, self._take("?")

    def _atom(self) -> _Part:
        character = self.pattern[self.at]
        self.at += 1
        match character:
            case "(":
                return self._group()
            case "[":
                return _Part(self._brackets(), 1, one=True)
            case ".":
                return _Part(r"[^\n]" if self.lines else "(?s:.)", 1, one=True)
            case "^":
                return _Part("(?m:^)" if self.lines else r"\A", 0, empty=True)
            case "$":
                return _Part("(?m:$)" if self.lines else r"\z", 0, empty=True)
            case "\\":
                return self._escape()
        return _literal(character)

    def _group(self) -> _Part:
        captures = not self._take("?:")
        if captures and self._said("?"):
            if any(map(self._said, ("?=", "?!", "?<=", "?<!"))):
                raise FeatureNotSupported("lookahead and lookbehind constraints are not supported")
            self._invalid("quantifier operand invalid")
        self.groups += captures
        part = self._branches(top=False)
        if not self._take(")"):
            self._invalid("parentheses () not balanced")
        return part._replace(text=f"({'' if captures else '?:'}{part.text})", literal=None)

    # ---------------------------------------------------------- characters

    def _escape(self) -> _Part:
        if self.at == len(self.pattern):
            self._invalid("invalid escape \\ sequence")
        letter = self.pattern[self.at]
        if letter in "dsw":
            self.at += 1
            return _Part(f"[{_SHORT[letter]}]", 1, one=True)
        if letter in "DSW":
            self.at += 1
            line = r"\n" if self.lines and letter != "S" else ""
            return _Part(f"[^{_SHORT[ascii_lower(letter)]}{line}]", 1, one=True)
        if letter in "AZ":
            self.at += 1
            return _Part(r"\A" if letter == "A" else r"\z", 0, empty=True)
        if letter in "yY":
            self.at += 1
            self.ascii_only = True
            return _Part(r"\b" if letter == "y" else r"\B", 0, empty=True)
        if letter in "mM":
            raise FeatureNotSupported(rf"\{letter} in a regular expression is not supported: \y is")
        if letter in "123456789":
            raise FeatureNotSupported("back references in a regular expression are not supported")
        return _literal(self._escaped())

    def _escaped(self) -> str:
        """The character of an escape, from behind the backslash."""
        numbered = _HEX.match(self.pattern, self.at)
        if numbered is not None:
            self.at = numbered.end()
            digits = numbered[1] or numbered[2] or numbered[3]
            code = int(digits, 16) if digits else int(numbered[0], 8)
            if not 0 < code < 0x110000 or 0xD800 <= code < 0xE000:
                self._invalid("invalid escape \\ sequence")
            return chr(code)
        letter = self.pattern[self.at]
        self.at += 1
        if letter == "c" and self.at < len(self.pattern):
            self.at += 1
            return chr(ord(self.pattern[self.at - 1]) & 31)
        if letter in _PLAIN:
            return _PLAIN[letter]
        if is_letter_or_digit(letter):
            self._invalid("invalid escape \\ sequence")
        return letter

    def _brackets(self) -> str:
        """Read a class from behind [ on, and return it in RE2's words."""
        negated = self._take("^")
        parts: list[str] = []
        first = True
        while first or not self._said("]"):
            first = False
            if self.at >= len(self.pattern):
                self._invalid("brackets [] not balanced")
            parts.append(self._range())
        self.at += 1
        line = r"\n" if negated and self.lines else ""
        return f"[{'^' if negated else ''}{''.join(parts)}{line}]"

    def _range(self) -> str:
        low = self._element()
        if isinstance(low, _Class):
            if self._said("-") and not self._said("-]"):
                self._invalid("invalid character range")
            return low.text
        if not self._said("-") or self._said("-]"):
            return _in_class(low)
        self.at += 1
        high = self._element()
        if isinstance(high, _Class) or high < low:
            self._invalid("invalid character range")
        return f"{_in_class(low)}-{_in_class(high)}"

    def _element(self) -> str | _Class:
        if self.at >= len(self.pattern):
            self._invalid("brackets [] not balanced")
        if self._take("[:"):
            end = self.pattern.find(":]", self.at)
            name = self.pattern[self.at : end]
            if end >= 0 and name in ("<", ">"):
                raise FeatureNotSupported("[[:<:]] and [[:>:]] are not supported")
            if end >= 0 and name in ("graph", "print"):
                raise FeatureNotSupported(f"[:{name}:] is not supported")
            if end < 0 or name not in _CLASSES:
                self._invalid("invalid character class")
            self.at = end + 2
            folded = self.fold and name in ("lower", "upper")
            return _Class(_CLASSES["alpha" if folded else name])
        if self._said("[.") or self._said("[="):
            raise FeatureNotSupported("collating elements in a regular expression")
        if not self._take("\\"):
            self.at += 1
            return self.pattern[self.at - 1]
        letter = self.pattern[self.at : self.at + 1]
        if letter in ("d", "s", "w"):
            self.at += 1
            return _Class(_SHORT[letter])
        if letter in ("D", "S", "W"):
            raise FeatureNotSupported(rf"\{letter} inside of brackets is not supported")
        if not letter or letter in "AZmMyY123456789":
            self._invalid("invalid escape \\ sequence")
        return self._escaped()


class _Class(NamedTuple):
    """Several characters, inside of RE2's brackets."""

    text: str


def _literal(character: str) -> _Part:
    return _Part(_quoted(character), 1, one=True, literal=character)


def _quoted(character: str) -> str:
    plain = character.isascii() and is_letter_or_digit(character)
    return character if plain else f"\\x{{{ord(character):x}}}"


_in_class = _quoted
