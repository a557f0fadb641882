"""How strongly operators bind, as PostgreSQL has it.

Low to high: OR, AND, NOT, IS, comparison, BETWEEN IN LIKE, other operators, + -, * / %,
^, AT TIME ZONE, COLLATE, a sign, ::. Those from IS to LIKE don't associate: a = b = c is an error.
"""

from __future__ import annotations

from typing import Final

OR, AND, NOT, IS, COMPARISON, MATCH, OTHER, SUM, PRODUCT, POWER, ZONE, COLLATION, PREFIX = range(
    1, 14
)
SIGNS: Final = {
    **dict.fromkeys(("<", ">", "=", "<=", ">=", "<>"), COMPARISON),
    **dict.fromkeys("+-", SUM),
    **dict.fromkeys("*/%", PRODUCT),
    "^": POWER,
}
MATCHES: Final = frozenset({"between", "in", "like", "ilike", "similar"})
NOT_ASSOCIATIVE: Final = frozenset({IS, COMPARISON, MATCH})
