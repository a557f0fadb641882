"""Arrays of one dimension as PostgreSQL reads and writes them: `{1,2,NULL,"a b"}`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from leasehold.model.budget import charge, charge_each
from leasehold.model.errors import InvalidText
from leasehold.values.arrays import (
    check_number,
    collect,
    elements_of,
    refuse_bounds,
    refuse_dimensions,
    stored_form,
)
from leasehold.values.letters import BLANKS, ascii_lower

# An element: in quotes, or up to a comma or brace; a backslash takes the next character as it is.
_ELEMENT: Final = re.compile(
    r"""\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^",{}\\\s]|\\.)(?:(?:[^",{}\\]|\\.)*(?:[^",{}\\\s]|\\.))?))\s*""",
    re.DOTALL | re.ASCII,
)
_PLAIN: Final = re.compile(r"[\w.+-]++(?:,[\w.+-]++)*+")
"""Without anything that has to be read one by one: as numbers come, by the thousand."""
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_ELEMENT_WORK: Final = 150
"""Of an element that is read or shown."""
_ELEMENTS_AT_ONCE: Final = 256
_NEEDS_QUOTES: Final = frozenset('{}",\\ \t\n\r\v\f')


def array_of_text(text: str, element: Callable[[str], Any]) -> str:
    """Return the storage value; `element` reads one element. Raises InvalidText;
    FeatureNotSupported for arrays of arrays and for bounds, RequestTooLarge for too many elements;
    and whatever `element` raises."""
    trimmed = text.strip(BLANKS)
    if trimmed[:1] == "[":
        refuse_bounds()
    if len(trimmed) < 2 or trimmed[0] != "{" or trimmed[-1] != "}":
        raise InvalidText(
            f'malformed array literal: "{text:.80}": an array begins with {{ and ends with }}'
        )
    inner, made, at = trimmed[1:-1], [], 0
    if not inner.strip(BLANKS):
        return stored_form(())
    if inner.lstrip(BLANKS)[0] == "{":
        refuse_dimensions()
    if _PLAIN.fullmatch(inner):
        check_number(inner.count(",") + 1)
        parts = inner.split(",")
        return stored_form(
            [
                None if _is_null(part) else element(part)
                for part in charge_each(parts, _ELEMENT_WORK)
            ]
        )
    while True:
        found = _ELEMENT.match(inner, at)
        if found is None:
            raise InvalidText(f"malformed array literal: no element at character {at + 2}")
        made.append(_value(found, element))
        check_number(len(made))
        if not len(made) % _ELEMENTS_AT_ONCE:
            charge(_ELEMENTS_AT_ONCE * _ELEMENT_WORK)
        at = found.end()
        if at == len(inner):
            return stored_form(made)
        if inner[at] != ",":
            raise InvalidText(f"malformed array literal: no comma at character {at + 2}")
        at += 1


def _is_null(word: str) -> bool:
    return ascii_lower(word) == "null"


def _value(found: re.Match[str], element: Callable[[str], Any]) -> Any:
    quoted, bare = found.groups()
    if quoted is None and _is_null(bare):
        return None
    return element(_ESCAPED.sub(r"\1", bare if quoted is None else quoted))


def text_of_array(stored: str, element: Callable[[Any], str]) -> str:
    """Return the array's text; `element` returns that of one element."""
    shown = collect(
        "NULL" if v is None else _quoted(element(v))
        for v in charge_each(elements_of(stored), _ELEMENT_WORK)
    )
    return "{" + ",".join(shown) + "}"


def _quoted(text: str) -> str:
    if text and not _is_null(text) and _NEEDS_QUOTES.isdisjoint(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
