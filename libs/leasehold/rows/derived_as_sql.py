"""The value of a column that follows another one as SQL, where it is known that SQLite makes of it
what the compiled expression does: a whole number as text or as a double, and what is the same in
both types. Whole numbers, doubles and texts are stored as SQLite's own, and none of this can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from leasehold.catalog.elements import Source
from leasehold.model.errors import Refused
from leasehold.sql.expressions.expression import column_of_expression
from leasehold.values.types import INTEGER_BITS, Type, holds_all_of

_TEXTS: Final = frozenset({"text", "varchar"})


def write_value(
    expression: str, kind: Type, columns: Iterable[Source], column_in_sql: Callable[[int], str]
) -> str | None:
    """Return SQL that gives the value of type `kind`; None: it has to be computed by the compiled
    expression. `column_in_sql`: an element's column. Nothing of the expression is in it."""
    try:
        name = column_of_expression(expression)
    except Refused:
        return None
    source = next((column for column in columns if column.name == name), None)
    if source is None:
        return None
    own = column_in_sql(source.element_id)
    if source.type.name in INTEGER_BITS:
        if kind.name in _TEXTS and kind.length is None:
            return f"CAST({own} AS TEXT)"
        if kind.name == "double precision":
            return f"CAST({own} AS REAL)"
    return own if holds_all_of(kind, source.type) and kind.name != "numeric" else None
