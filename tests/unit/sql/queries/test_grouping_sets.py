# ruff: noqa: E501 - a statement stands in one line
"""Goal: GROUPING SETS, ROLLUP, CUBE and GROUPING() mean what they mean in PostgreSQL, and so do
DISTINCT inside aggregates and INTERSECT and EXCEPT where equal values look different.

Method: statements with the rows that a PostgreSQL 15 gives; random ones are compared with it in
`tests/integration/postgres_compat/test_wide_postgres.py`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from leasehold.model.errors import Refused
from tests.support.sql.asked import Asked

D = Decimal

ROWS: list[tuple[str, list[tuple[Any, ...]]]] = [
    (
        (
            "SELECT carrier, open, count(*), grouping(carrier, open) FROM flights WHERE id > 2"
            " GROUP BY ROLLUP (carrier, open) ORDER BY 4, 1, 2"
        ),
        [
            ("BA", None, 1, 0),
            ("LH", False, 1, 0),
            ("LH", True, 1, 0),
            ("BA", None, 1, 1),
            ("LH", None, 2, 1),
            (None, None, 3, 3),
        ],
    ),
    (
        (
            "SELECT open, seats > 10 AS many, sum(seats) FROM flights WHERE seats IS NOT NULL"
            " GROUP BY CUBE (1, 2) HAVING count(*) > 1 ORDER BY 1, 2"
        ),
        [
            (False, True, 320),
            (False, None, 320),
            (True, False, 10),
            (True, None, 10),
            (None, False, 10),
            (None, True, 320),
            (None, None, 330),
        ],
    ),
    # The set of nothing has a row without any row; the others have none.
    ("SELECT carrier FROM flights WHERE false GROUP BY ROLLUP (carrier)", [(None,)]),
    ("SELECT 1 FROM flights WHERE false GROUP BY GROUPING SETS ((), (), (id))", [(1,), (1,)]),
    ("SELECT count(*) FROM flights GROUP BY ()", [(5,)]),
    ("SELECT 1 FROM flights GROUP BY () HAVING count(*) > 5", []),
    # What an aggregate is over is not NULL where its set has it not.
    (
        "SELECT seats, max(seats), sum(seats + 1) FROM flights GROUP BY GROUPING SETS ((), (open))"
        " HAVING grouping(open) = 1".replace("SELECT seats,", "SELECT grouping(open),"),
        [(1, 300, 334)],
    ),
    # Each set adds to those beside it, equal ones twice but for DISTINCT.
    (
        (
            "SELECT grouping(open, carrier), count(*) FROM flights"
            " GROUP BY ROLLUP (open), ROLLUP (carrier) HAVING grouping(open, carrier) = 3"
        ),
        [(3, 5)],
    ),
    (
        "SELECT open FROM flights GROUP BY GROUPING SETS (ROLLUP (open), ()) ORDER BY 1",
        [(False,), (True,), (None,), (None,), (None,)],
    ),
    (
        "SELECT open FROM flights GROUP BY DISTINCT GROUPING SETS (ROLLUP (open), ()) ORDER BY 1",
        [(False,), (True,), (None,), (None,)],
    ),
    (
        "SELECT DISTINCT grouping(id, open) FROM flights GROUP BY ROLLUP ((id, open)), ()",
        [(0,), (3,)],
    ),
    # A primary key that every set has tells the rest of its row.
    (
        "SELECT id, carrier FROM flights GROUP BY id, ROLLUP (open) ORDER BY 1 LIMIT 3",
        [(1, "AA"), (1, "AA"), (2, "aa")],
    ),
    # Above the groups: windows, queries, expressions and orders.
    (
        (
            "SELECT carrier || '!', rank() OVER (ORDER BY sum(seats) DESC NULLS LAST) FROM flights"
            " GROUP BY ROLLUP (carrier) ORDER BY 2, 1"
        ),
        [(None, 1), ("LH!", 2), ("aa!", 3), ("AA!", 4), ("BA!", 5)],
    ),
    (
        (
            "SELECT id, (SELECT count(*) FROM bookings b WHERE b.flight = f.id) FROM flights f"
            " WHERE id < 3 GROUP BY ROLLUP (id) ORDER BY grouping(id) DESC, id"
        ),
        [(None, 0), (1, 2), (2, 1)],
    ),
    (
        (
            "SELECT id, (SELECT string_agg(c, ',' ORDER BY c) FROM (SELECT carrier || count(*) AS c"
            " FROM flights g WHERE g.id <= f.id GROUP BY ROLLUP (carrier)) s) FROM flights f"
            " WHERE id < 3 ORDER BY 1"
        ),
        [(1, "AA1"), (2, "AA1,aa1")],
    ),
    (
        (
            "WITH w AS (SELECT open FROM flights) SELECT open, count(*) FROM w GROUP BY ROLLUP (open)"
            " UNION ALL SELECT NULL, 7 ORDER BY 2 DESC, 1 LIMIT 2"
        ),
        [(None, 7), (None, 5)],
    ),
    (
        "SELECT grouping(carrier), count(*) FROM flights GROUP BY carrier HAVING count(*) > 1",
        [(0, 2)],
    ),
    # What is random is so once for each row, whatever the sets.
    (
        (
            "SELECT count(*) FROM (SELECT r, grouping(r) FROM (SELECT random() AS r FROM flights) s"
            " GROUP BY GROUPING SETS ((r), (r)) HAVING count(*) = 1) t"
        ),
        [(10,)],
    ),
    (
        (
            "SELECT count(DISTINCT r) FROM (SELECT r FROM (SELECT random() AS r FROM flights) s"
            " GROUP BY GROUPING SETS ((r), (r))) t"
        ),
        [(5,)],
    ),
    # DISTINCT inside aggregates
    (
        (
            "SELECT count(DISTINCT x), sum(DISTINCT x), avg(DISTINCT x)"
            " FROM (VALUES (1.5), (1.50), (2), (NULL)) v(x)"
        ),
        [(2, D("3.5"), D("1.7500000000000000"))],
    ),
    (
        (
            "SELECT string_agg(DISTINCT carrier, '-' ORDER BY carrier DESC),"
            " string_agg(DISTINCT upper(carrier), '/') FROM flights"
        ),
        [("aa-LH-BA-AA", "AA/BA/LH")],
    ),
    (
        (
            "SELECT array_agg(DISTINCT seats ORDER BY seats DESC), array_agg(DISTINCT x)"
            " FROM flights, (VALUES (2.0), (1.5), (2)) v(x)"
        ),
        [([None, 300, 20, 10, 0], [D("1.5"), D("2.0")])],
    ),
    (
        (
            "SELECT count(DISTINCT i), count(DISTINCT j) FROM (VALUES (interval '1 mon', '[1]'::jsonb),"
            " (interval '30 days', '[1.0]')) v(i, j)"
        ),
        [(1, 1)],
    ),
    (
        "SELECT string_agg(DISTINCT s, ',') FILTER (WHERE s > 'a') FROM (VALUES ('b'), ('a'), ('b')) v(s)",
        [("b",)],
    ),
    # A sum of doubles is that of PostgreSQL's order.
    (
        (
            "SELECT sum(DISTINCT x) = 0.1::float8 + 0.2::float8 + 0.3::float8"
            " FROM (VALUES (0.3::float8), (0.2), (0.1), (0.2)) v(x)"
        ),
        [(True,)],
    ),
    # Sets of rows
    (
        (
            "SELECT x FROM (VALUES (1.5), (1.50), (2), (NULL)) a(x) INTERSECT"
            " SELECT x FROM (VALUES (1.500), (NULL), (3)) b(x) ORDER BY 1"
        ),
        [(D("1.5"),), (None,)],
    ),
    ("SELECT x FROM (VALUES (1.5), (2), (2.0)) a(x) EXCEPT SELECT 1.50", [(D("2"),)]),
    (
        (
            "SELECT count(*) FROM (SELECT x FROM (VALUES (1.5), (1.50), (1.500)) a(x)"
            " INTERSECT ALL SELECT x FROM (VALUES (1.5), (1.50), (2)) b(x)) s"
        ),
        [(2,)],
    ),
    (
        (
            "SELECT count(*) FROM (SELECT x FROM (VALUES (1.5), (1.50), (1.500)) a(x)"
            " EXCEPT ALL SELECT x FROM (VALUES (1.5), (2)) b(x)) s"
        ),
        [(2,)],
    ),
    # INTERVAL with fields
    (
        (
            "SELECT interval '1' day, interval '1-2' year to month, interval '1:2' minute to second,"
            " interval '1 2' day to hour, interval '1.55' second(1), interval '3 days 4:05' hour"
        ),
        [("1 day", "1 year 2 mons", "00:01:02", "1 day 02:00:00", "00:00:01.6", "3 days 04:00:00")],
    ),
]

REFUSALS: list[tuple[str, str, int]] = [
    ("SELECT grouping(seats) FROM flights GROUP BY carrier", "42803", 17),
    ("SELECT grouping(carrier) FROM flights", "42803", 17),
    ("SELECT 1 FROM flights WHERE grouping(carrier) = 0 GROUP BY carrier", "42803", 29),
    ("SELECT sum(grouping(carrier)) FROM flights GROUP BY carrier", "42803", 12),
    ("SELECT grouping() FROM flights GROUP BY carrier", "42601", 17),
    ("SELECT (SELECT grouping(carrier)) FROM flights GROUP BY carrier", "0A000", 25),
    ("SELECT seats FROM flights GROUP BY ROLLUP (id)", "42803", 8),
    (
        "SELECT 1 FROM flights GROUP BY CUBE (1, id, carrier, seats, price, day, open, id + 1)",
        "54001",
        32,
    ),
    ("SELECT carrier FROM flights GROUP BY ROLLUP ()", "42601", 46),
    ("SELECT carrier FROM flights GROUP BY ROLLUP (carrier) FOR UPDATE", "0A000", 55),
    ("SELECT string_agg(DISTINCT carrier, ',' ORDER BY id) FROM flights", "42P10", 50),
    ("SELECT interval '1' day to year", "42601", 28),
    ("SELECT interval '1 2' day", "22007", 17),
    ("SELECT CAST(carrier AS interval day) FROM flights", "0A000", 8),
]


@pytest.mark.parametrize(("text", "rows"), ROWS, ids=[text[:60] for text, _ in ROWS])
def test_rows(asked: Asked, text: str, rows: list[tuple[Any, ...]]) -> None:
    assert asked.rows(text) == rows


@pytest.mark.parametrize(("text", "code", "position"), REFUSALS)
def test_refusals_have_code_and_place(asked: Asked, text: str, code: str, position: int) -> None:
    with pytest.raises(Refused) as caught:
        asked.rows(text)
    assert (caught.value.sqlstate, caught.value.detail.get("position")) == (code, position)


def test_what_is_grouped_is_found_once(asked: Asked) -> None:
    """Whatever the number of sets: the table stands once in the statement."""
    text = asked.prepared("SELECT id, count(*) FROM flights GROUP BY CUBE (id, open)").emitted.text
    assert text.count("t1 AS") == 1
    assert text.count("UNION ALL") == 3
