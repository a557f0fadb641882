"""A text of several statements: told apart as a node would, with the place of an error shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

SHOWN_CHARS_MAX: Final = 100
_PIECE: Final = re.compile(
    r"""
    (?P<closed>[eE]'(?:[^'\\]|''|\\.)*' | '(?:[^']|'')*' | "(?:[^"]|"")*")
  | (?P<space>\s+ | --[^\n]*)
  | (?P<comment>/\*)
  | (?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*)
  | (?P<dollar>\$(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)?\$)
  | (?P<end>;)
  | (?P<open>['"])
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT: Final = re.compile(r"/\*|\*/")


class Statement(NamedTuple):
    """A statement of a source. `line` is that of its first word, from 1."""

    text: str
    line: int


class Split(NamedTuple):
    """The statements of a text that has not ended. `rest` is what no semicolon has ended yet, empty
    where only blanks and comments are left. `open` says that it ends inside of a constant, a name
    or a comment."""

    statements: list[Statement]
    rest: str
    open: bool


def split(text: str) -> Split:
    found: list[Statement] = []
    first: int | None = None  # where the statement's first word stands
    offset = 0
    while offset < len(text):
        matched = _PIECE.match(text, offset)
        assert matched is not None, "each character is a piece at least"
        kind, end = matched.lastgroup, _end(text, matched)
        if kind == "end":
            if first is not None:
                line = text.count("\n", 0, first) + 1
                found.append(Statement(text[first:offset].rstrip(), line))
            first = None
        elif kind != "space":
            if end is None:
                return Split(found, text[offset if first is None else first :], True)
            if kind != "comment" and first is None:
                first = offset
        assert end is not None
        offset = end
    return Split(found, "" if first is None else text[first:], False)


def _end(text: str, matched: re.Match[str]) -> int | None:
    """Return where a piece ends, or None if it has no end."""
    match matched.lastgroup:
        case "open":
            return None
        case "dollar":
            close = text.find(matched[0], matched.end())
            return None if close < 0 else close + len(matched[0])
        case "comment":
            depth = 0
            for sign in _COMMENT.finditer(text, matched.start()):
                depth += 1 if sign[0] == "/*" else -1
                if not depth:
                    return sign.end()
            return None
    return matched.end()


def whole(text: str) -> list[Statement]:
    """Return the statements of a text that ends here: the last one needs no semicolon."""
    statements, rest, _ = split(text)
    if rest.strip():
        line = text.count("\n", 0, len(text) - len(rest)) + 1
        statements.append(Statement(rest.rstrip(), line))
    return statements


def error_words(fields: Mapping[str, str], statement: Statement) -> str:
    """Return the message with its SQLSTATE, the line with a caret under the place, detail and
    hint."""
    words = [f"{fields.get('M', 'no reason was given')} ({fields.get('C', '')})"]
    offset = fields.get("P", "")
    if offset.isdecimal() and 1 <= int(offset) <= len(statement.text) + 1:
        words += _caret(statement, int(offset) - 1)
    words += [f"{head}: {fields[key]}" for key, head in _MORE.items() if key in fields]
    return "\n".join(words)


_MORE: Final = {"D": "detail", "H": "hint", "W": "where"}


def _caret(statement: Statement, offset: int) -> list[str]:
    text = statement.text
    begin = text.rfind("\n", 0, offset) + 1
    stop = text.find("\n", offset)
    line, at = text[begin : len(text) if stop < 0 else stop], offset - begin
    cut = max(0, at - SHOWN_CHARS_MAX // 2) if len(line) > SHOWN_CHARS_MAX else 0
    shown = ("…" if cut else "") + line[cut : cut + SHOWN_CHARS_MAX]
    if len(line) > cut + SHOWN_CHARS_MAX:
        shown += "…"
    head = f"line {statement.line + text.count(chr(10), 0, offset)}: "
    before = shown[: at - cut + bool(cut)]
    blank = "".join("\t" if character == "\t" else " " for character in before)
    return [head + shown, " " * len(head) + blank + "^"]
