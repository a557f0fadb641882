"""Functions and operators of regular expressions; what a pattern means is in
`regexp_translation.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported, InvalidArgument
from leasehold.sql.functions.function import BOOLEAN, INTEGER, TEXT, Function
from leasehold.sql.functions.texts.like import negated
from leasehold.sql.functions.texts.regexp_matching import Match, regular, similar_pattern
from leasehold.sql.functions.texts.regexp_translation import Flags, flags_of
from leasehold.sql.functions.texts.text import check_length, too_long
from leasehold.values.arrays import ELEMENTS_MAX, stored_form
from leasehold.values.letters import is_digits
from leasehold.values.types import TEXT_BYTES_MAX, array_of

_TEXTS: Final = array_of(TEXT)
_FOLDED: Final = Flags(fold=True)
_REPLACEMENT: Final = re.compile(r"\\([1-9&\\])")


def _flags(name: str, text: str) -> Flags:
    """Return the flags of a function that has no use for g. Raises InvalidArgument,
    FeatureNotSupported."""
    flags = flags_of(text)
    if flags.every:
        raise InvalidArgument(f'{name}() does not support the "global" option')
    return flags


def is_like(text: str, pattern: str, flags: str = "") -> int:
    return int(regular(pattern, _flags("regexp_like", flags)).found_in(text))


def _folded(text: str, pattern: str) -> int:
    return int(regular(pattern, _FOLDED).found_in(text))


def _count_from(name: str, start: int, number: int = 1) -> None:
    for what, value in (("start", start), ("n", number)):
        if value < (1 if what == "start" else 0):
            raise InvalidArgument(f'invalid value for parameter "{what}" of {name}: {value}')


def _piece(text: str, span: tuple[int, int]) -> str | None:
    return None if span[0] < 0 else text[span[0] : span[1]]


def _match(text: str, pattern: str, flags: str = "") -> str | None:
    """The text of each pair of parentheses, or of the whole match where there is none."""
    compiled = regular(pattern, _flags("regexp_match", flags))
    found = next(compiled.matches(text, parts=True), None)
    if found is None:
        return None
    if not compiled.groups:
        return stored_form([text[found.start : found.end]])
    return stored_form([_piece(text, span) for span in found.groups])


def substring(text: str, pattern: str) -> str | None:
    """The first pair of parentheses, else the whole match."""
    compiled = regular(pattern)
    found = next(compiled.matches(text, parts=True), None)
    if found is None:
        return None
    return _piece(text, found.groups[0] if compiled.groups else (found.start, found.end))


# ------------------------------------------------------------------ replacing


def _replaced(text: str, pattern: str, by: str, flags: Flags, number: int) -> str:
    """The match of that number, 0: each."""
    uses_parts = any(found[1] in "123456789" for found in _REPLACEMENT.finditer(by))
    made: list[str] = []
    end = size = 0
    for count, match in enumerate(regular(pattern, flags).matches(text, parts=uses_parts), 1):
        if number and count != number:
            continue
        for piece in (text[end : match.start], _filled(text, match, by)):
            if piece:
                made.append(piece)
                size += len(piece)
        if size > 2 * TEXT_BYTES_MAX:
            break
        end = match.end
        if number:
            break
    made.append(text[end:])
    return check_length("".join(made))


def _filled(text: str, match: Match, by: str) -> str:
    def one(found: re.Match[str]) -> str:
        if found[1] == "&":
            return text[match.start : match.end]
        if found[1] == "\\":
            return "\\"
        offset = int(found[1]) - 1
        span = match.groups[offset] if offset < len(match.groups) else (-1, -1)
        return _piece(text, span) or ""

    parts = by.count("\\")
    if parts * (match.end - match.start) > TEXT_BYTES_MAX:
        # Most of it are parts of the match: how many characters is known before they are put.
        made = sum(len(one(found)) for found in _REPLACEMENT.finditer(by))
        if made > TEXT_BYTES_MAX:
            raise too_long()
    return check_length(_REPLACEMENT.sub(one, by))


def _replace(text: str, pattern: str, by: str, flags: str = "") -> str:
    if is_digits(flags[:1]) and flags.isascii():
        raise InvalidArgument(
            f'invalid regular expression option: "{flags[0]}": if you meant to use regexp_replace()'
            " with a start parameter, cast the fourth argument to integer explicitly"
        )
    found = flags_of(flags)
    return _replaced(text, pattern, by, found, 0 if found.every else 1)


def _replace_from(
    text: str, pattern: str, by: str, start: int, number: int = 1, flags: str = ""
) -> str:
    _count_from("regexp_replace", start, number)
    if start > 1:
        raise FeatureNotSupported("regexp_replace from a place behind the first is not supported")
    return _replaced(text, pattern, by, flags_of(flags), number)


# ------------------------------------------------------------------ splitting, counting


def _split(name: str) -> Callable[..., str]:
    def compute(text: str, pattern: str, flags: str = "") -> str:
        """Empty matches at either end, or right behind another match, divide nothing."""
        pieces: list[str] = []
        end = 0
        for match in regular(pattern, _flags(name, flags)).matches(text, parts=False):
            empty = match.start == match.end
            if empty and (match.start == end or match.start >= len(text)):
                continue
            pieces.append(text[end : match.start])
            if len(pieces) > ELEMENTS_MAX:
                break  # one too many is refused
            end = match.end
        return stored_form([*pieces, text[end:]])

    return compute


def _count(text: str, pattern: str, start: int = 1, flags: str = "") -> int:
    _count_from("regexp_count", start)
    if start > 1:
        raise FeatureNotSupported(
            "regexp_count from a place behind the first is not supported: cut the text before"
            " (substr)"
        )
    compiled = regular(pattern, _flags("regexp_count", flags))
    return sum(1 for _ in compiled.matches(text, parts=False))


def _substr(
    text: str, pattern: str, start: int = 1, number: int = 1, flags: str = ""
) -> str | None:
    _count_from("regexp_substr", start, number - 1 if number < 1 else number)
    if start > 1:
        raise FeatureNotSupported(
            "regexp_substr from a place behind the first is not supported: cut the text before"
            " (substr)"
        )
    compiled = regular(pattern, _flags("regexp_substr", flags))
    found = next(islice(compiled.matches(text, parts=False), number - 1, None), None)
    return None if found is None else text[found.start : found.end]


def _shapes(
    name: str, result: Any, compute: Callable[..., Any], *optional: Any, texts: int = 2
) -> tuple[Function, ...]:
    """Return a function with none, one … all of the optional arguments."""
    return tuple(
        Function(name, (*(TEXT,) * texts, *optional[:n]), result, compute)
        for n in range(len(optional) + 1)
    )


FUNCTIONS: Final[tuple[Function, ...]] = (
    *_shapes("regexp_like", BOOLEAN, is_like, TEXT),
    *_shapes("regexp_match", _TEXTS, _match, TEXT),
    *_shapes("regexp_replace", TEXT, _replace, TEXT, texts=3),
    *_shapes("regexp_replace", TEXT, _replace_from, INTEGER, INTEGER, TEXT, texts=3)[1:],
    *_shapes("regexp_split_to_array", _TEXTS, _split("regexp_split_to_array"), TEXT),
    *_shapes("regexp_count", INTEGER, _count, INTEGER, TEXT),
    *_shapes("regexp_substr", TEXT, _substr, INTEGER, INTEGER, TEXT),
    Function("substring", (TEXT, TEXT), TEXT, substring),
    *_shapes("similar_to_escape", TEXT, similar_pattern, TEXT, texts=1),
)
SETS: Final = _shapes("regexp_split_to_table", _TEXTS, _split("regexp_split_to_table"), TEXT)
"""Of `set_returning.py`."""
OPERATORS: Final[tuple[Function, ...]] = (
    Function("~", (TEXT, TEXT), BOOLEAN, is_like),
    Function("!~", (TEXT, TEXT), BOOLEAN, negated(is_like)),
    Function("~*", (TEXT, TEXT), BOOLEAN, _folded),
    Function("!~*", (TEXT, TEXT), BOOLEAN, negated(_folded)),
)
