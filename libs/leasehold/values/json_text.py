"""json: a text that is kept as it was said, blanks, order, repeated names and digits included.

Its storage value is that text. What is looked for inside is a part of the text again, so the text
is taken apart by places, never read as values and written anew.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from leasehold.model import byte_limits
from leasehold.model.budget import charge_size
from leasehold.model.errors import InvalidText, OutOfRange, TooLong, UntranslatableCharacter

TEXT_CHARACTERS_MAX: Final = byte_limits.VALUE
NESTING_MAX: Final = 500
_READ_WORK: Final = 40
"""Of a character that is looked at."""
_TOKEN: Final = re.compile(
    r'[ \t\n\r]*+(?:(?P<text>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")'
    r"|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![0-9A-Za-z_.+-]))"
    r"|(?P<word>true|false|null)(?![0-9A-Za-z_])|(?P<mark>[{}\[\]:,]))"
)
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*+"')
_BLANKS: Final = " \t\n\r"
_KINDS: Final = {"true": "boolean", "false": "boolean", "null": "null"}


class Part(NamedTuple):
    """A part of a json text: `kind` is what json_typeof says, `raw` the text. `names` are an
    object's, in quotes, and `parts` the values behind them, or an array's elements."""

    kind: str
    raw: str
    names: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()


class _Open:
    """An object or array whose end has not come yet."""

    def __init__(self, mark: str, start: int) -> None:
        self.mark = mark
        self.start = start
        self.names: list[str] = []
        self.parts: list[Part] = []


def part_of(text: str) -> Part:
    """Return a json text taken apart. Raises InvalidText (22P02), OutOfRange, TooLong."""
    if not isinstance(text, str):  # a damaged store may hold it
        raise InvalidText(f"{text!r:.80} is no JSON")
    if len(text) > TEXT_CHARACTERS_MAX:
        raise TooLong(f"{len(text)} characters of JSON; at most {TEXT_CHARACTERS_MAX} are stored")
    if "\x00" in text:
        raise InvalidText("text must not contain the character U+0000")
    charge_size(len(text), _READ_WORK)
    stack: list[_Open] = []
    wants = "value"  # or: name, first name, first value, colon, more
    at = 0
    while True:
        found = _TOKEN.match(text, at)
        if found is None:
            raise _invalid(text)
        said = found[found.lastgroup or 0]
        start, at = found.end() - len(said), found.end()
        made: Part | None = None
        if said in ("{", "[") and wants in ("value", "first value"):
            stack.append(_Open(said, start))
            if len(stack) > NESTING_MAX:
                raise OutOfRange(f"JSON is nested deeper than {NESTING_MAX} levels")
            wants = "first name" if said == "{" else "first value"
            continue
        if said in ("}", "]"):
            closes = stack and stack[-1].mark == ("{" if said == "}" else "[")
            if not closes or wants not in ("more", "first name", "first value"):
                raise _invalid(text)
            done = stack.pop()
            kind = "object" if said == "}" else "array"
            made = Part(kind, text[done.start : at], tuple(done.names), tuple(done.parts))
        elif said == "," and wants == "more" and stack:
            wants = "name" if stack[-1].mark == "{" else "value"
            continue
        elif said == ":" and wants == "colon":
            wants = "value"
            continue
        elif found["text"] and wants in ("name", "first name"):
            stack[-1].names.append(said)
            wants = "colon"
            continue
        elif not found["mark"] and wants in ("value", "first value"):
            kind = "string" if found["text"] else "number" if found["number"] else _KINDS[said]
            made = Part(kind, said)
        else:
            raise _invalid(text)
        if stack:
            stack[-1].parts.append(made)
            wants = "more"
            continue
        if text[at:].strip(_BLANKS):
            raise _invalid(text)
        return made


def stored_form(text: str) -> str:
    """Return the storage value: the text itself. Raises as `part_of` does."""
    part_of(text)
    return text


def is_stored_form(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(part_of(value))
    except (InvalidText, OutOfRange, TooLong):
        return False


def readable_part(text: str) -> Part:
    """Return a json text taken apart of which every string can be read, as PostgreSQL asks for
    where it looks inside. Raises as `part_of` and `unquoted` do."""
    part = part_of(text)
    if "\\u" in text:
        for found in _STRING.finditer(text):
            unquoted(found[0])
    return part


def unquoted(raw: str) -> str:
    """Return the string that a text in quotes says. Raises InvalidText, UntranslatableCharacter
    (22P05)."""
    if "\\" not in raw:
        return raw[1:-1]
    found = json.loads(raw)
    if "\x00" in found:
        raise UntranslatableCharacter("\\u0000 cannot be converted to text")
    try:
        found.encode()
    except UnicodeEncodeError as error:
        raise InvalidText("a Unicode surrogate in JSON stands alone") from error
    return str(found)


def _invalid(text: str) -> InvalidText:
    return InvalidText(f'invalid input syntax for type json: "{text:.80}"')
