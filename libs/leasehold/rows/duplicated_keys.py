"""Words about rows that have one key of a unique index, where it is made over them: as a finding of
a node that has looked through the entries, and as PostgreSQL's DETAIL of the statement. PURE."""

from __future__ import annotations

from typing import Any, Final

from leasehold.values.text_io import to_text
from leasehold.values.types import Type, sort_key_of, words_of

VALUE_CHARACTERS_MAX: Final = 200
"""An error is read by people, and a value may have a million."""
_EQUALS: Final = ") = ("
_END: Final = " is in another row, too"


def show_value(kind: Type, value: Any) -> str:
    """Return a value of a key as PostgreSQL's errors show it."""
    if value is None:
        return "null"
    # What is compared by a sort key may be one here, and no value.
    shown = to_text(kind, value) if sort_key_of(kind) is None else words_of(kind, value)
    return shown[:VALUE_CHARACTERS_MAX]


def tell_duplicated(index: str, names: str, values: str) -> str:
    """Return the words of a finding about a row: that another one has its key. `names`: of the
    columns; `values`: as people read them."""
    return f"unique index {index!r}: ({names}{_EQUALS}{values}){_END}"


def read_detail(words: str) -> str:
    """Return the DETAIL of a finding's words, which names the key; "" where they are no words of
    `tell_duplicated`, or were cut."""
    _, _, said = words.partition(": (")
    if not said.endswith(_END):
        return ""
    names, equals, values = said.removesuffix(_END).partition(_EQUALS)
    return f"Key ({names})=({values} is duplicated." if equals else ""
