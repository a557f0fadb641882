"""`{1,2,NULL,"a b"}`: arrays of one dimension as PostgreSQL reads them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported, InvalidText

# An element: in quotes, or up to a comma or brace; a backslash takes the next character as it is.
_ELEMENT: Final = re.compile(
    r"""\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^",{}\\\s]|\\.)(?:(?:[^",{}\\]|\\.)*(?:[^",{}\\\s]|\\.))?))\s*""",
    re.DOTALL | re.ASCII,
)
_BLANKS: Final = " \t\n\r\v\f"
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def array_of_text(text: str, element: Callable[[str], Any], elements_max: int) -> tuple[Any, ...]:
    """Storage values of the elements. Raises InvalidText; FeatureNotSupported for arrays of arrays
    and above `elements_max`; and whatever `element` raises."""
    trimmed = text.strip(_BLANKS)
    if trimmed[:1] == "[":
        raise FeatureNotSupported("array bounds are not supported: leave them out")
    if len(trimmed) < 2 or trimmed[0] != "{" or trimmed[-1] != "}":
        raise InvalidText("malformed array literal: it begins with { and ends with }")
    inner, made, at = trimmed[1:-1], [], 0
    if not inner.strip(_BLANKS):
        return ()
    if inner.lstrip(_BLANKS)[0] == "{":
        raise FeatureNotSupported("arrays of arrays are not supported")
    while True:
        found = _ELEMENT.match(inner, at)
        if found is None:
            raise InvalidText(f"malformed array literal: no element at character {at + 2}")
        made.append(_value(found, element))
        if len(made) > elements_max:
            raise FeatureNotSupported(f"an array may have {elements_max} elements")
        at = found.end()
        if at == len(inner):
            return tuple(made)
        if inner[at] != ",":
            raise InvalidText(f"malformed array literal: no comma at character {at + 2}")
        at += 1


def _value(found: re.Match[str], element: Callable[[str], Any]) -> Any:
    quoted, bare = found.groups()
    if quoted is None and bare.lower() == "null":
        return None
    return element(_ESCAPED.sub(r"\1", bare if quoted is None else quoted))
