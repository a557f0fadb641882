"""Texts of SQL in a form in which those that say the same are equal: blanks, the case of words and
superfluous parentheses are gone."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

from leasehold.model.errors import LeaseholdError
from leasehold.sql.syntax.parsing import parse

KEPT_MAX: Final = 4_096
"""Texts whose form is remembered."""
_PLACES: Final = frozenset({"location", "stmt_location", "stmt_len", "rexpr_list_start"})
_PLACES_MORE: Final = frozenset({"rexpr_list_end", "list_start", "list_end"})


@lru_cache(KEPT_MAX)
def canonical_expression(text: str) -> str:
    """Return what is equal of expressions that say the same; "" of no expression."""
    return canonical_query(f"SELECT {text}") if text else ""


@lru_cache(KEPT_MAX)
def canonical_query(text: str) -> str:
    """Return what is equal of queries that say the same. A text that can't be read is its own."""
    try:
        parsed = parse(text)
    except LeaseholdError:
        return text
    trees = [_without_places(one.body) for one in parsed]
    marks = [tuple(token.word for token in mark.tokens) for one in parsed for mark in one.marks]
    return json.dumps([trees, marks], sort_keys=True)


def _without_places(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {
            name: _without_places(value)
            for name, value in tree.items()
            if name not in _PLACES and name not in _PLACES_MORE
        }
    if isinstance(tree, list):
        return [_without_places(each) for each in tree]
    return tree
