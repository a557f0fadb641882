"""Our own words in schema statements: ADD and DROP LOCK in ALTER TABLE, and EXPLAIN of a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from postgast.pg_query_pb2 import KeywordKind

from leasehold.sql.syntax.marks import Mark, has_words, make_mark, skip_explain
from leasehold.sql.syntax.scanning import Token

ADD_LOCK: Final = "ADD LOCK"
DROP_LOCK: Final = "DROP LOCK"
EXPLAINED_CHANGE: Final = "EXPLAIN"

_NAMING: Final = frozenset({KeywordKind.UNRESERVED_KEYWORD, KeywordKind.COL_NAME_KEYWORD})
_CHANGES: Final = frozenset({"create", "drop", "alter", "truncate"})


def find_locks(tokens: Sequence[Token]) -> list[Mark]:
    """ADD LOCK l COVERING (…), which PostgreSQL's parser gets as UNIQUE (…), and DROP LOCK l, which
    it gets as the DROP of a column. A column that is called lock has neither behind it."""
    start = skip_explain(tokens)
    if not has_words(tokens, start, "alter", "table"):
        return []
    found: list[Mark] = []
    depth = 0
    for index in range(start + 2, len(tokens)):
        depth += (tokens[index].word in ("(", "[")) - (tokens[index].word in (")", "]"))
        if depth:
            continue
        # A table that is called add stands before its actions, and no comma before it.
        if has_words(tokens, index, "add", "lock") and has_words(
            tokens, index + 3, "covering", "("
        ):
            if _is_name(tokens, index + 2):
                found.append(make_mark(ADD_LOCK, "UNIQUE", tokens[index + 1 : index + 4]))
        elif has_words(tokens, index, "drop", "lock"):
            name = index + (4 if has_words(tokens, index + 2, "if", "exists") else 2)
            bare = name < len(tokens) and tokens[name].word in ("restrict", "cascade")
            if _is_name(tokens, name) and not bare:
                found.append(make_mark(DROP_LOCK, "", tokens[index + 1 : index + 2]))
    return found


def find_explained_change(tokens: Sequence[Token]) -> list[Mark]:
    """EXPLAIN and its options before a schema change, which PostgreSQL's parser gets alone."""
    start = skip_explain(tokens)
    if not 0 < start < len(tokens) or tokens[start].word not in _CHANGES:
        return []
    if has_words(tokens, 1, "(", ")"):
        return []
    return [make_mark(EXPLAINED_CHANGE, "", tokens[:start])]


def _is_name(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a word stands there that PostgreSQL takes for a column's name."""
    if index >= len(tokens):
        return False
    token = tokens[index]
    return token.is_name or token.keyword in _NAMING
