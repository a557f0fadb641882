# ruff: noqa: E501 - a statement stands in one line
"""Goal: what stands behind LATERAL in FROM is computed for each row of the tables before it, is
found by indexes, and is refused where PostgreSQL refuses it.

Method: tables of queries with their rows, and of refusals with their SQLSTATE;
`tests/integration/postgres_compat/test_lateral_postgres.py` holds such queries against a
PostgreSQL."""

from __future__ import annotations

from typing import Any, Final

import pytest

from leasehold.model.errors import Refused
from leasehold.sql.functions.aggregates.gathered_rows import COLUMNS_MAX, gathered, rows_of
from leasehold.values.types import Type
from tests.support.sql.asked import Asked

ROWS: Final[dict[str, list[tuple[Any, ...]]]] = {
    "SELECT f.id, b.seat FROM flights f, LATERAL (SELECT seat FROM bookings WHERE flight = f.id) b"
    " ORDER BY 1, 2": [(1, "1A"), (1, "1B"), (2, "9F")],
    "SELECT b.seat, b.name FROM flights f, LATERAL (SELECT seat, name FROM bookings WHERE flight = f.id)"
    " b WHERE f.id = 1 ORDER BY 1": [("1A", "Ann"), ("1B", None)],
    "SELECT f.id, b.seat FROM flights f LEFT JOIN LATERAL (SELECT seat FROM bookings WHERE flight ="
    " f.id ORDER BY seat DESC LIMIT 1) b ON true WHERE f.id < 4 ORDER BY 1": [
        (1, "1B"),
        (2, "9F"),
        (3, None),
    ],
    "SELECT f.id, b.seat FROM flights f LEFT JOIN LATERAL (SELECT seat, f.seats AS n FROM bookings"
    " WHERE flight = f.id) b ON b.n > 10 WHERE f.id < 3 ORDER BY 1": [(1, None), (2, "9F")],
    "SELECT f.id, x.n FROM flights f, LATERAL (SELECT count(*) AS n FROM bookings b WHERE b.flight ="
    " f.id) x ORDER BY 1": [(1, 2), (2, 1), (3, 0), (4, 0), (5, 0)],
    "SELECT f.id, x.n FROM flights f, LATERAL (SELECT flight, count(*) AS n FROM bookings b WHERE"
    " b.flight = f.id GROUP BY 1 HAVING count(*) > 1) x": [(1, 2)],
    "SELECT f.id, v.x FROM flights f CROSS JOIN LATERAL (VALUES (f.id), (f.seats)) v(x) WHERE f.id ="
    " 1 ORDER BY 2": [(1, 1), (1, 10)],
    "SELECT f.id, l.p, l.d, l.o FROM flights f, LATERAL (SELECT price AS p, day AS d, open AS o) l"
    " WHERE l.p > 99 AND f.id = 1": [(1, "99.50", "2024-01-31", True)],
    # The second uses the first; a table in parentheses with what uses a table outside of these.
    "SELECT f.id, y.b FROM flights f, LATERAL (SELECT f.id + 1 AS a) x, LATERAL (SELECT x.a * 2 AS b)"
    " y WHERE f.id < 3 ORDER BY 1": [(1, 4), (2, 6)],
    "SELECT f.id, b.seat, x.s FROM flights f, bookings b JOIN LATERAL (SELECT f.id || b.seat AS s) x"
    " ON b.seat <> '2C' WHERE b.flight = f.id ORDER BY 3": [
        (1, "1A", "11A"),
        (1, "1B", "11B"),
        (2, "9F", "29F"),
    ],
    "SELECT f.id, x.s FROM flights f, bookings b LEFT JOIN LATERAL (SELECT b.seat AS s WHERE f.id ="
    " b.flight) x ON true WHERE f.id = 2 ORDER BY 2 NULLS FIRST": [
        (2, None),
        (2, None),
        (2, None),
        (2, "9F"),
    ],
    "SELECT f.id, u FROM flights f, (bookings b CROSS JOIN LATERAL unnest(ARRAY[f.id]) u) WHERE"
    " b.flight = f.id ORDER BY 1": [(1, 1), (1, 1), (2, 2)],
    "SELECT f.id, x FROM flights f, lower(f.carrier) AS x WHERE f.id < 3 ORDER BY 1": [
        (1, "aa"),
        (2, "aa"),
    ],
    "SELECT f.id, g FROM flights f, generate_series(1, f.id) g WHERE f.id < 3 ORDER BY 1, 2": [
        (1, 1),
        (2, 1),
        (2, 2),
    ],
    "SELECT f.id, x.v FROM flights f, LATERAL (WITH w AS (SELECT seat FROM bookings WHERE flight ="
    " f.id) SELECT a.seat || b.seat AS v FROM w a, w b) x WHERE f.id = 2": [(2, "9F9F")],
    # Each row of the query before gets numbers of its own.
    "SELECT count(DISTINCT r) FROM flights f, LATERAL (SELECT random() AS r WHERE f.id > 0) x": [
        (5,)
    ],
    "SELECT f.id, x.r = x.r AS same FROM flights f, LATERAL (SELECT random() + f.id AS r) x WHERE"
    " f.id = 1": [(1, True)],
    "SELECT f.id, (SELECT max(l.s) FROM bookings b, LATERAL (SELECT b.seat || f.carrier AS s) l WHERE"
    " b.flight = f.id) FROM flights f WHERE f.id < 3 ORDER BY 1": [(1, "1BAA"), (2, "9Faa")],
    "SELECT id FROM flights f WHERE EXISTS (SELECT FROM bookings b, LATERAL (SELECT b.flight AS n) l"
    " WHERE l.n = f.id) ORDER BY 1": [(1,), (2,)],
    "SELECT f.id FROM flights f, LATERAL (SELECT) x WHERE f.id = 1": [(1,)],
    "SELECT f.id FROM flights f, LATERAL (SELECT FROM bookings WHERE flight = f.id) x ORDER BY 1": [
        (1,),
        (1,),
        (2,),
    ],
    "SELECT x.n, count(*) FROM flights f, LATERAL (SELECT f.id % 2 AS n) x GROUP BY x.n ORDER BY 1": [
        (0, 2),
        (1, 3),
    ],
    "SELECT d.data FROM flights f LEFT JOIN LATERAL (SELECT coalesce(json_agg(json_build_array(b.seat"
    ") ORDER BY b.seat), '[]') AS data FROM (SELECT * FROM bookings s WHERE s.flight = f.id) b) d ON"
    " true WHERE f.id IN (1, 3) ORDER BY f.id": [('[["1A"], ["1B"]]',), ("[]",)],
}


@pytest.mark.parametrize("text", ROWS)
def test_what_a_lateral_query_gives(asked: Asked, text: str) -> None:
    shown = [tuple(map(_plain, row)) for row in asked.rows(text)]
    assert shown == ROWS[text]


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | str | None) else str(value)


REFUSED: Final = {
    "SELECT * FROM flights f RIGHT JOIN LATERAL (SELECT f.id) x ON true": "42P10",
    "SELECT * FROM flights f FULL JOIN unnest(ARRAY[f.id]) x ON true": "42P10",
    "SELECT * FROM flights f, LATERAL (SELECT count(f.id)) x": "42803",
    "SELECT * FROM flights f, (SELECT f.id) x": "42P01",
    "SELECT * FROM LATERAL (SELECT f.id) x, flights f": "42P01",
    "SELECT * FROM flights f, LATERAL (SELECT nothing) x": "42703",
    "UPDATE flights SET seats = 1 FROM LATERAL (SELECT flights.id) x": "42P01",
    "SELECT * FROM flights f LEFT JOIN (bookings b JOIN LATERAL (SELECT f.id) x ON true) ON true": (
        "0A000"
    ),
    "SELECT * FROM flights f, LATERAL (SELECT b.seat FROM bookings b WHERE b.flight = f.id FOR UPDATE"
    " SKIP LOCKED) x": "0A000",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(asked: Asked, text: str) -> None:
    with pytest.raises(Refused) as caught:
        asked.rows(text)
    assert caught.value.sqlstate == REFUSED[text]


def test_a_lateral_query_finds_its_rows_by_an_index(asked: Asked) -> None:
    plan = asked.plan(
        "SELECT * FROM bookings b LEFT JOIN LATERAL (SELECT id FROM flights WHERE carrier = b.name)"
        " x ON true"
    )
    assert "by_carrier" in plan, plan


def test_a_wide_query_is_refused_with_what_to_do(asked: Asked) -> None:
    columns = ", ".join(f"f.id AS c{n}" for n in range(COLUMNS_MAX))
    text = "SELECT x.* FROM flights f, LATERAL (SELECT {}) x WHERE f.id = 1"
    assert asked.rows(text.format(columns)) == [(1,) * COLUMNS_MAX]
    with pytest.raises(Refused, match="name those that are used") as caught:
        asked.rows(text.format(f"{columns}, 1"))
    assert caught.value.sqlstate == "0A000"


def test_every_storage_value_comes_out_as_it_went_in() -> None:
    rows = [
        (1 << 62, -1.5, 0.1, float("inf"), "NaN", 'a"\\é\n', b"\0\xff", None),
        (0, 1e300, -0.0, float("-inf"), "", "", b"", None),
    ]
    made = gathered((Type("bigint"),) * 8)
    state = made.start()
    for row in rows:
        state = made.step(state, *row)
    assert rows_of(made.finish(state)) == rows
    assert rows_of(made.finish(made.start())) == []
