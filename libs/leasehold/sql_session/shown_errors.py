"""Errors that name a table of a schema beside public, as PostgreSQL's clients read them."""

from __future__ import annotations

from leasehold.catalog.access import Access
from leasehold.catalog.namespaces import SEPARATOR, bare
from leasehold.model.errors import LeaseholdError

_BROKEN = "23"
"""The class of errors that name a constraint: there PostgreSQL says names without their schema."""


def show_names(error: LeaseholdError, access: Access) -> None:
    """Tell the schema of an error's table in a field of its own."""
    said = error.detail.get("table")
    if not access.namespaces or not isinstance(said, str):
        return
    schema, dot, table = said.partition(SEPARATOR)
    if not dot or schema not in access.namespaces_by_name:
        return
    shown = {**error.detail, "schema": schema, "table": table}
    for name in ("constraint", "index"):
        if isinstance(shown.get(name), str):
            shown[name] = bare(schema, str(shown[name]))
    if error.sqlstate.startswith(_BROKEN):
        begin = schema + SEPARATOR
        words = shown.get("detail")
        error.message = _without(error.message, begin)
        if isinstance(words, str):
            shown["detail"] = _without(words, begin)
    error.detail = shown


def _without(words: str, begin: str) -> str:
    """Return words whose names in quotes don't begin with a schema's."""
    return words.replace(f'"{begin}', '"').replace(f"'{begin}", "'")
