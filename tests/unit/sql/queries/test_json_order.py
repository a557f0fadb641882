"""Equality and order of jsonb: numbers go by value wherever values are compared."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.sql.asked import Asked

VALUES = (
    "(VALUES (1, '[1.0]'::jsonb), (2, '[1]'), (3, '{\"a\": 1.50}'), (4, '{\"a\": 1.5}'), (5,"
    " '1e2'), (6, '100.0'), (7, NULL), (8, '\"x\"')) AS v (id, j)"
)


OTHERS = VALUES.replace("AS v", "AS w")


def _ids(condition: str) -> str:
    return f"SELECT id FROM {VALUES} WHERE {condition} ORDER BY id"


def _rows(*ids: int) -> list[tuple[int]]:
    return [(number,) for number in ids]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT '[1.0]'::jsonb = '[1]'::jsonb, '[1.0]'::jsonb", [(True, "[1.0]")]),
        (_ids("j = '[1]'"), _rows(1, 2)),
        (_ids("j <> '{\"a\": 1.500}'"), _rows(1, 2, 5, 6, 8)),
        (_ids("j IN ('[1.00]', '100')"), _rows(1, 2, 5, 6)),
        (_ids("j NOT IN ('[1.00]', '100')"), _rows(3, 4, 8)),
        (_ids("j = ANY (ARRAY['[1.00]'::jsonb])"), _rows(1, 2)),
        (_ids("j IN (SELECT '100.00'::jsonb)"), _rows(5, 6)),
        (_ids("(id, j) = (2, '[1.0]')"), _rows(2)),
        (_ids("j IS NOT DISTINCT FROM '[1.0]'"), _rows(1, 2)),
        (_ids("j > '\"a\"' AND j < '[1]'"), _rows(5, 6, 8)),
        (f"SELECT count(DISTINCT j) FROM {VALUES}", [(4,)]),
        (f"SELECT count(*) FROM (SELECT DISTINCT j FROM {VALUES}) d", [(5,)]),
        (
            f"SELECT count(*), min(id) FROM {VALUES} GROUP BY j ORDER BY 2",
            [(2, 1), (2, 3), (2, 5), (1, 7), (1, 8)],
        ),
        (f"SELECT id FROM {VALUES} ORDER BY j, id", _rows(8, 5, 6, 1, 2, 3, 4, 7)),
        (f"SELECT id FROM {VALUES} ORDER BY j DESC, id", _rows(7, 3, 4, 1, 2, 5, 6, 8)),
        (
            f"SELECT v.id, w.id FROM {VALUES} JOIN {OTHERS} USING (j) WHERE v.id < w.id ORDER BY 1",
            [(1, 2), (3, 4), (5, 6)],
        ),
        ("SELECT '[1.0]'::jsonb UNION SELECT '[1]'", [("[1.0]",)]),
        ("SELECT '[1.0]'::jsonb INTERSECT SELECT '[1]'", [("[1.0]",)]),
        ("SELECT '[1.0]'::jsonb EXCEPT SELECT '[1]'", []),
        ("SELECT nullif('[1.0]'::jsonb, '[1]')", [(None,)]),
        ("SELECT greatest('[1]'::jsonb, '[2.0]', '[2]')", [("[2.0]",)]),
        ("SELECT '[1.0, [2.50]]'::jsonb @> '[[2.5]]'", [(True,)]),
    ],
)
def test_numbers_are_compared_by_value(
    asked: Asked, text: str, rows: list[tuple[Any, ...]]
) -> None:
    """Goal: 1.0 and 1 are one number for every comparison, and are shown as they were given."""
    assert asked.rows(text) == rows
