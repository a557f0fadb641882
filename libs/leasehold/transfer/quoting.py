"""Names and constants as SQL text."""

from __future__ import annotations

from collections.abc import Iterable

from leasehold.sql.functions.polymorphic import quote_literal


def quote_name(name: str) -> str:
    """Return a name in quotes, as it is."""
    return '"' + name.replace('"', '""') + '"'


def quote_names(names: Iterable[str]) -> str:
    """Return names in quotes, between commas."""
    return ", ".join(map(quote_name, names))


def quote_text(text: str | None) -> str:
    """Return a constant that means the same whatever standard_conforming_strings says."""
    return "NULL" if text is None else quote_literal(text)
