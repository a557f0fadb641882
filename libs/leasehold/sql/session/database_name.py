"""Names behind the session's own database (`db.schema.table`, as dbt writes them all): the database
says nothing, and blanks stand in its place, so that each place of the text stays where it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from leasehold.model.errors import Refused
from leasehold.sql.syntax.accounting import location_of
from leasehold.sql.syntax.parsing import Parsed, parse
from leasehold.sql.syntax.scanning import Token
from leasehold.sql.syntax.statement import Words

_PARTS: Final = 3
"""Of a table's name behind its schema and database, and of a column's behind its table and
schema."""
KEPT_CHARS_MAX: Final = 4_096
KEPT_TEXTS_MAX: Final = 500


def without_database(text: str, database: str) -> str:
    """Return a text with blanks where a relation, or a column, is named behind `database`. A text
    that can't be read stays as it is."""
    if not _may_name(text, database):
        return text  # as nearly all
    if len(text) <= KEPT_CHARS_MAX:
        return _kept(text, database)
    return _without(text, database)


def _may_name(text: str, database: str) -> bool:
    if f"{database}." in text or f'"{database}".' in text:
        return True
    return f"{database}." in text.lower()


def _without(text: str, database: str) -> str:
    try:
        parsed = parse(text)
    except Refused:
        return text  # whoever reads it says why
    if not parsed:
        return text
    words = Words(parsed[0].source)
    tokens = words.tokens
    columns = {words.at(place) for one in parsed for place in _find_columns(one)}
    source = parsed[0].source
    parts: list[str] = []
    at = 0
    for first in _find_first(tokens, database, columns):
        begin, end = tokens[first].begin, tokens[first + 2].begin
        parts += (source.written(at, begin), " " * len(source.written(begin, end)))
        at = end
    return "".join((*parts, source.written(at, len(source.encoded)))) if parts else text


_kept: Final = lru_cache(KEPT_TEXTS_MAX)(_without)


def _find_first(tokens: Sequence[Token], database: str, columns: set[int]) -> list[int]:
    """Return the tokens that are the database's name before those of a relation and its schema."""
    found = []
    for index, token in enumerate(tokens):
        if token.name != database or not (token.is_name or token.keyword):
            continue
        if index and tokens[index - 1].word == ".":
            continue
        count = 1
        while _is_dot(tokens, index + 2 * count - 1):
            count += 1
        # Of a column three parts are its schema, its table and its own.
        of_column = index in columns or _is_commented(tokens, index)
        if count > _PARTS or (count == _PARTS and not of_column):
            found.append(index)
    return found


def _is_dot(tokens: Sequence[Token], index: int) -> bool:
    return index + 1 < len(tokens) and tokens[index].word == "."


def _is_commented(tokens: Sequence[Token], index: int) -> bool:
    """Return whether it is what COMMENT ON COLUMN names."""
    before = [token.word for token in tokens[max(index - 3, 0) : index]]
    return before == ["comment", "on", "column"]


def _find_columns(parsed: Parsed) -> list[int]:
    """Return where columns begin that are named in a query. The tree may be deep: it is walked
    without recursion."""
    found: list[int] = []
    left: list[Any] = [parsed.body]
    while left:
        node = left.pop()
        if isinstance(node, list):
            left += node
        elif isinstance(node, dict):
            if "ColumnRef" in node:
                found.append(location_of(node["ColumnRef"]))
            left += node.values()
    return found
