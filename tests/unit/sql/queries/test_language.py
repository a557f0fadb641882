"""Goal: what a query means is what PostgreSQL says. Method: tables of statements with their rows,
and of refusals with SQLSTATE and position, as a PostgreSQL 15 gives them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from leasehold.model.errors import Refused
from tests.support.sql.asked import Asked

D = Decimal

ROWS: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT 1, 'a', NULL, true, 1.50", [(1, "a", None, True, D("1.50"))]),
    ("SELECT 7 / 2, -7 / 2, -7 % 3, 7.0 / 2", [(3, -3, -1, D("3.5000000000000000"))]),
    ("SELECT 0.1 + 0.2 = 0.3, 1.5 = 1.50, 'a' < 'B'", [(True, True, False)]),
    ("SELECT NULL = NULL, NULL IS NULL, 1 IS DISTINCT FROM NULL", [(None, True, True)]),
    ("SELECT 1 = 1 IS NULL, NOT 1 = 2", [(False, True)]),
    ("SELECT - 2 + 3 * 4, (1 + 2) * 3, 2 - 3 - 4", [(10, 9, -5)]),
    ("SELECT 1 IN (2, NULL), 1 IN (1, NULL), 1 NOT IN (2, 3)", [(None, True, True)]),
    ("SELECT 2 BETWEEN 1 AND 3 AND true, 2 BETWEEN SYMMETRIC 3 AND 1", [(True, True)]),
    ("SELECT CASE WHEN NULL THEN 1 ELSE 2 END, CASE 2 WHEN 2 THEN 'x' END", [(2, "x")]),
    (
        "SELECT coalesce(NULL, 2), nullif(1, 1), greatest(1, NULL, 3), least(2, 1)",
        [(2, None, 3, 1)],
    ),
    (
        "SELECT greatest(0.0, 0.00), least(1.50, 1.5), max(x) FROM (VALUES (2.0), (2)) v(x)",
        [(D("0.0"), D("1.50"), D("2"))],
    ),
    ("SELECT (1, 2) < (1, 3), (1, NULL) = (2, 1), (1, NULL) = (1, 1)", [(True, False, None)]),
    ("SELECT count(*), count(seats), sum(seats), min(carrier) FROM flights", [(5, 4, 330, "AA")]),
    ("SELECT count(*) FROM flights WHERE false", [(0,)]),
    ("SELECT sum(seats) FROM flights WHERE false", [(None,)]),
    ("SELECT avg(seats), sum(price) FROM flights", [(D("82.5000000000000000"), D("205.625"))]),
    (
        (
            "SELECT carrier, count(*) FILTER (WHERE open) AS n FROM flights GROUP BY carrier"
            " HAVING count(*) > 1 ORDER BY n"
        ),
        [("LH", 1)],
    ),
    # Numerics that are equal are so in an order, whatever they look like.
    (
        "SELECT n, i FROM (VALUES (0.50, 2), (0.5, 1), (0.500, 3)) AS v(n, i) ORDER BY n, i",
        [(D("0.5"), 1), (D("0.50"), 2), (D("0.500"), 3)],
    ),
    (
        "SELECT n + 0, i FROM (VALUES (0.5, 2), (0.50, 1)) AS v(n, i) ORDER BY 1 DESC, i",
        [(D("0.50"), 1), (D("0.5"), 2)],
    ),
    (
        "SELECT 0.5 AS n, 2 AS i UNION ALL SELECT 0.50, 1 ORDER BY n, i",
        [(D("0.50"), 1), (D("0.5"), 2)],
    ),
    ("SELECT DISTINCT ON (n) i FROM (VALUES (0.5, 2), (0.50, 1)) AS v(n, i) ORDER BY n, i", [(1,)]),
    # What is random is computed once, however often its column is mentioned.
    (
        (
            "SELECT count(*) FROM (SELECT random() AS x FROM generate_series(1, 200)) s"
            " WHERE x < 0.5 AND x >= 0.5"
        ),
        [(0,)],
    ),
    (
        (
            "WITH r AS NOT MATERIALIZED (SELECT n, random() AS x FROM generate_series(1, 9) n)"
            " SELECT count(*) FROM r a JOIN r b ON a.n = b.n AND a.x = b.x"
        ),
        [(9,)],
    ),
    (
        "SELECT count(DISTINCT x) FROM (SELECT gen_random_uuid() AS x) s, generate_series(1, 5)",
        [(1,)],
    ),
    (
        (
            "SELECT bool_and(x = x AND y = y AND x <= y) FROM (SELECT a AS x, a AS y FROM"
            " (SELECT random()::numeric AS a FROM generate_series(1, 99)) r) s"
        ),
        [(True,)],
    ),
    (
        "SELECT CASE random() * 0 WHEN 1 THEN 'a' WHEN 0 THEN 'b' END, 1 IS NULL IS NULL",
        [("b", False)],
    ),
    # A row is compared with a query's only row.
    (
        (
            "SELECT id FROM flights WHERE (carrier, seats) ="
            " (SELECT carrier, seats FROM flights WHERE id = 2)"
        ),
        [(2,)],
    ),
    (
        (
            "SELECT (1, 2) < (SELECT 1, 3), (1, 2) >= (SELECT 1, NULL::int),"
            " (1, 2) = (SELECT 1, 2 LIMIT 0)"
        ),
        [(True, None, None)],
    ),
    # RANGE with offsets.
    (
        (
            "SELECT n, array_agg(n) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING)"
            " FROM (VALUES (1), (2), (4), (NULL)) AS v(n) ORDER BY n"
        ),
        [(1, [1, 2]), (2, [1, 2, 4]), (4, [4]), (None, [None])],
    ),
    (
        (
            "SELECT count(*) OVER (ORDER BY d DESC RANGE '36:00' PRECEDING) FROM (VALUES"
            " (date '2024-01-01'), ('2024-01-02'), ('2024-01-04')) AS v(d) ORDER BY d"
        ),
        [(2,), (1,), (1,)],
    ),
    (
        (
            "SELECT sum(x) OVER (ORDER BY x RANGE BETWEEN 0.5 PRECEDING AND CURRENT ROW)"
            " FROM (VALUES (1e0::float8), (1.5), (2.25)) AS v(x) ORDER BY x"
        ),
        [(1.0,), (2.5,), (2.25,)],
    ),
    (
        (
            "SELECT string_agg(t, ',') OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
            " FROM (VALUES (1, ''), (2, ''), (3, 'B'), (4, NULL), (5, 'c')) AS v(n, t) ORDER BY n"
        ),
        [("",), (",",), (",B",), ("B",), ("c",)],
    ),
    # A time of nothing overlaps what it begins with; NULL where an end that is missing decides.
    (
        (
            "SELECT (d, interval '1 day') OVERLAPS (date '2024-01-02', date '2024-01-09'),"
            " (date '2024-01-02', d) OVERLAPS (date '2024-01-02', NULL),"
            " NOT (d, d) OVERLAPS (d, d), (d, NULL) OVERLAPS (d + 1, d + 2),"
            " (d + 5, d) OVERLAPS (timestamp '2024-01-05', '2024-01-05')"
            " FROM (VALUES (date '2024-01-01'), ('2024-01-02')) AS v(d) ORDER BY d"
        ),
        [(False, None, False, None, True), (True, None, False, None, True)],
    ),
    # VALUES may mention columns of the query around.
    (
        "SELECT (VALUES (seats)), ARRAY(VALUES (id), (seats)) FROM flights WHERE id < 3 ORDER BY 1",
        [(10, [1, 10]), (20, [2, 20])],
    ),
    (
        (
            "SELECT id FROM flights WHERE 20 IN (VALUES (seats), (id + 18))"
            " AND EXISTS (SELECT FROM (VALUES (id, 'x')) AS v(a, b) WHERE a < 3) ORDER BY id"
        ),
        [(2,)],
    ),
    # Series of what is no integer.
    (
        "SELECT d::date FROM generate_series(date '2024-01-30', '2024-02-01', '1 day') AS d",
        [(date(2024, 1, 30),), (date(2024, 1, 31),), (date(2024, 2, 1),)],
    ),
    (
        "SELECT v, n FROM generate_series(1.0, 2, 0.50) WITH ORDINALITY AS s(v, n)",
        [(D("1.0"), 1), (D("1.50"), 2), (D("2.00"), 3)],
    ),
    ("SELECT count(*) FROM generate_series(timestamp '9999-12-30', '9999-12-31', '1 day')", [(2,)]),
    (
        (
            "SELECT x::date FROM (SELECT"
            " generate_series(timestamp '2024-02-29', '2024-01-01', '-1 month') AS x) s"
        ),
        [(date(2024, 2, 29),), (date(2024, 1, 29),)],
    ),
    (
        "SELECT to_char(date '1999-01-02', 'Y,YYY'), pg_typeof(1::bigint)::text",
        [("1,999", "bigint")],
    ),
    # A name of the result is not one of the columns that it is made of.
    (
        (
            "SELECT DISTINCT b, a FROM (SELECT ARRAY[x] AS a, ARRAY[-x] AS b"
            " FROM generate_series(1, 2) x) s ORDER BY b"
        ),
        [([-2], [2]), ([-1], [1])],
    ),
    (
        (
            "SELECT -a, a FROM (SELECT x + 0.0 AS a, -x AS b FROM generate_series(1, 2) x) s"
            " ORDER BY 1, b"
        ),
        [(D("-2.0"), D("2.0")), (D("-1.0"), D("1.0"))],
    ),
    ("SELECT ARRAY[2] AS a UNION ALL SELECT ARRAY[1] ORDER BY a", [([1],), ([2],)]),
    ("SELECT seats FROM flights ORDER BY seats", [(0,), (10,), (20,), (300,), (None,)]),
    ("SELECT seats FROM flights ORDER BY 1 DESC LIMIT 2", [(None,), (300,)]),
    ("SELECT seats FROM flights ORDER BY seats NULLS FIRST LIMIT 1", [(None,)]),
    ("SELECT id FROM flights ORDER BY price DESC NULLS LAST LIMIT 2 OFFSET 1", [(1,), (4,)]),
    ("SELECT id AS seats FROM flights ORDER BY seats LIMIT 1", [(1,)]),
    (
        (
            "SELECT f.id, b.name FROM flights f LEFT JOIN bookings b ON b.flight = f.id"
            " WHERE f.id < 4 ORDER BY 1, 2"
        ),
        [(1, "Ann"), (1, None), (2, "Bob"), (3, None)],
    ),
    ("SELECT count(*) FROM flights f FULL JOIN bookings b ON b.flight = f.id", [(7,)]),
    ("SELECT count(*) FROM flights, bookings", [(20,)]),
    (
        (
            "SELECT flight, b.seat FROM bookings b JOIN (VALUES (1), (9)) v(flight) USING (flight)"
            " ORDER BY 2"
        ),
        [(1, "1A"), (1, "1B"), (9, "2C")],
    ),
    (
        "SELECT id FROM flights WHERE id NOT IN (SELECT flight FROM bookings) ORDER BY 1",
        [(3,), (4,), (5,)],
    ),
    ("SELECT count(*) FROM flights WHERE seats > ALL (SELECT flight FROM bookings)", [(3,)]),
    (
        (
            "SELECT id FROM flights f WHERE EXISTS (SELECT FROM bookings b WHERE b.flight = f.id)"
            " ORDER BY id"
        ),
        [(1,), (2,)],
    ),
    (
        "SELECT (SELECT max(name) FROM bookings WHERE flight = f.id) FROM flights f WHERE id = 1",
        [("Ann",)],
    ),
    (
        "WITH RECURSIVE w(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM w WHERE n < 4) TABLE w",
        [(1,), (2,), (3,), (4,)],
    ),
    ("SELECT 1 UNION SELECT 2 INTERSECT SELECT 2 ORDER BY 1 DESC", [(2,), (1,)]),
    ("SELECT 1 UNION ALL SELECT '2' ORDER BY 1", [(1,), (2,)]),
    ("VALUES (1, 'a'), (2, NULL) ORDER BY column1 DESC", [(2, None), (1, "a")]),
    ("SELECT x FROM generate_series(1, 7, 3) AS x", [(1,), (4,), (7,)]),
    (
        "SELECT DISTINCT ON (carrier) carrier, id FROM flights ORDER BY 1, id DESC LIMIT 2",
        [("AA", 1), ("BA", 3)],
    ),
    (
        (
            "SELECT id, row_number() OVER (PARTITION BY carrier ORDER BY id DESC),"
            " sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
            " FROM flights ORDER BY 1"
        ),
        [(1, 1, 1), (2, 1, 3), (3, 1, 5), (4, 2, 7), (5, 1, 9)],
    ),
    (
        (
            "SELECT id, sum(id) OVER w, count(*) OVER (w ROWS 1 PRECEDING), rank() OVER v"
            " FROM flights WINDOW w AS (ORDER BY id DESC), v AS (PARTITION BY carrier ORDER BY id)"
            " ORDER BY 1 LIMIT 3"
        ),
        [(1, 15, 2, 1), (2, 14, 2, 1), (3, 12, 2, 1)],
    ),
    ("SELECT string_agg(name, '-' ORDER BY name DESC) FROM bookings", [("Eve-Bob-Ann",)]),
    ("SELECT carrier FROM flights GROUP BY id ORDER BY id LIMIT 1", [("AA",)]),
    (
        "SELECT day, '2024-01-31' = day FROM flights WHERE id = 1",
        [(date(2024, 1, 31), True)],
    ),
    ("SELECT 1 AS \"One\", 'it''s', E'a\\nb', $$q$$", [(1, "it's", "a\nb", "q")]),
    (
        "SELECT EXISTS (SELECT 1 FROM flights WHERE open), 1::text || 'x', '7'::int + 1",
        [(True, "1x", 8)],
    ),
]

REFUSALS: list[tuple[str, str, int]] = [
    ("SELECT nope FROM flights", "42703", 8),
    ("SELECT f.nope FROM flights f", "42703", 8),
    ("SELECT secret FROM flights", "42703", 8),
    ("SELECT x.id FROM flights", "42P01", 8),
    ("SELECT 1 FROM nope", "42P01", 15),
    ("SELECT id FROM flights a, flights b", "42702", 8),
    ("SELECT 1 FROM flights, flights", "42712", 24),
    ("SELECT id, count(*) FROM flights GROUP BY carrier", "42803", 8),
    ("SELECT carrier FROM flights GROUP BY 1 HAVING seats > 1", "42803", 47),
    ("SELECT 1 FROM flights WHERE count(*) > 1", "42803", 29),
    ("SELECT sum(count(*)) FROM flights", "42803", 8),
    ("SELECT 1 FROM flights WHERE row_number() OVER () > 1", "42P20", 29),
    ("SELECT id FROM flights ORDER BY 2", "42P10", 33),
    ("SELECT DISTINCT id FROM flights ORDER BY seats", "42P10", 42),
    ("SELECT CASE WHEN 1 THEN 2 END", "42804", 18),
    ("SELECT 1 FROM flights WHERE id", "42804", 29),
    ("SELECT 1 UNION SELECT true", "42804", 23),
    ("SELECT 1, 2 UNION SELECT 1", "42601", 26),
    ("SELECT id = carrier FROM flights", "42883", 11),
    ("SELECT nope(1)", "42883", 8),
    ("SELECT 'x'::int", "22P02", 8),
    ("SELECT 1 = 1 = 1", "42601", 14),
    ("SELECT * FROM flights LIMIT 5, 10", "42601", 23),
    ("FROM flights SELECT id", "42601", 1),
    ("SELECT id, FROM flights", "42601", 12),
    ("SELECT 1a", "42601", 8),
    ("SELECT 'a", "42601", 8),
    ("SELECT * FROM (SELECT 1)", "42601", 15),
    ("SELECT 1; SELECT 2", "42601", 11),
    ("SELECT count(*) FROM flights FOR UPDATE SKIP LOCKED", "0A000", 30),
    ("SELECT flights FROM flights", "0A000", 8),
    ("SELECT sum(id) OVER (ORDER BY day, id RANGE 1 PRECEDING) FROM flights", "42P20", 21),
    ("SELECT sum(id) OVER (ORDER BY carrier RANGE 1 PRECEDING) FROM flights", "0A000", 21),
    ("SELECT sum(id) OVER (ORDER BY day RANGE '1 mon' PRECEDING) FROM flights", "0A000", 21),
    ("SELECT sum(id) OVER (ORDER BY day RANGE 1 PRECEDING) FROM flights", "0A000", 21),
    ("SELECT (1, 2) OVERLAPS (3, 4)", "42883", 15),
    ("SELECT (day, day, day) OVERLAPS (day, day) FROM flights", "42601", 8),
    ("SELECT day OVERLAPS (day, day) FROM flights", "42601", 12),
    ("SELECT * FROM flights TABLESAMPLE system (1)", "0A000", 35),
    ("WITH w AS (DELETE FROM flights) SELECT * FROM w", "0A000", 47),
    ("EXPLAIN ANALYZE SELECT 1", "0A000", 9),
    ("EXPLAIN (COSTS OFF, ANALYZE) SELECT 1", "0A000", 21),
    ("EXPLAIN (FORMAT XML) SELECT 1", "0A000", 10),
    ("EXPLAIN (NOPE) SELECT 1", "42601", 10),
    ("EXPLAIN (COSTS 2) SELECT 1", "42601", 10),
    ("EXPLAIN (READS SELECT 1", "42601", 16),
    ("EXPLAIN EXPLAIN SELECT 1", "42601", 9),
]

WHEN_RUN: list[tuple[str, str]] = [
    ("SELECT 1 / (id - id) FROM flights", "22012"),
    ("SELECT (SELECT id FROM flights)", "21000"),
    ("SELECT date_trunc('decade', date '0009-12-31')", "22008"),
    ("SELECT (1, 'a') < (SELECT id, carrier FROM flights)", "21000"),
    ("SELECT 2147483647 + id FROM flights", "22003"),
    ("SELECT id FROM flights LIMIT -1", "2201W"),
    ("SELECT id FROM flights OFFSET -1", "2201X"),
    ("SELECT sum(id) OVER (ROWS -1 PRECEDING) FROM flights", "22013"),
    ("SELECT sum(id) OVER (ORDER BY day RANGE '-1 day' PRECEDING) FROM flights", "22013"),
]


@pytest.mark.parametrize(("text", "rows"), ROWS, ids=[text[:60] for text, _ in ROWS])
def test_rows(asked: Asked, text: str, rows: list[tuple[Any, ...]]) -> None:
    found = asked.rows(text)
    assert found == rows
    assert [list(map(str, row)) for row in found] == [list(map(str, row)) for row in rows]


@pytest.mark.parametrize(
    "options", ["VERBOSE", "(COSTS OFF)", "(verbose, format text, buffers false, analyze off)"]
)
def test_options_of_explain_that_say_how_much_is_told(asked: Asked, options: str) -> None:
    query = "SELECT id FROM flights WHERE id = 3"
    assert asked.rows(f"EXPLAIN {options} {query}") == asked.rows(f"EXPLAIN {query}")
    query = "(SELECT id FROM flights)"
    assert asked.rows(f"EXPLAIN {options} {query}") == asked.rows(f"EXPLAIN {query}")


@pytest.mark.parametrize(("text", "code", "position"), REFUSALS)
def test_refusals_have_code_and_place(asked: Asked, text: str, code: str, position: int) -> None:
    with pytest.raises(Refused) as caught:
        asked.prepared(text)
    assert (caught.value.sqlstate, caught.value.detail.get("position")) == (code, position)


@pytest.mark.parametrize(("text", "code"), WHEN_RUN)
def test_refusals_when_run(asked: Asked, text: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        asked.rows(text)
    assert caught.value.sqlstate == code


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("SELECT * FROM flights WHERE id = $1 AND carrier > $2", ["integer", "text"]),
        ("SELECT $1", ["text"]),
        ("SELECT $2::date, $1 + 1.5", ["numeric", "date"]),
        ("SELECT id FROM flights LIMIT $1", ["bigint"]),
        ("SELECT CASE WHEN $1 THEN 1 ELSE $2 END", ["boolean", "integer"]),
        ("SELECT id FROM flights WHERE price BETWEEN $1 AND $2", ["numeric", "numeric"]),
    ],
)
def test_parameters_have_the_types_of_their_use(asked: Asked, text: str, types: list[str]) -> None:
    assert [str(kind) for kind in asked.prepared(text).parameters] == types


def test_columns_have_names_types_and_origins(asked: Asked) -> None:
    prepared = asked.prepared("SELECT id, id + 1, carrier AS c, count(*) OVER () FROM flights")
    assert [(c.name, str(c.kind)) for c in prepared.columns or ()] == [
        ("id", "integer"),
        ("?column?", "integer"),
        ("c", "text"),
        ("count", "bigint"),
    ]
    origins = [
        c.origin and (c.origin.table_id, c.origin.element_id) for c in prepared.columns or ()
    ]
    assert origins == [(1, 1), None, (1, 2), None]
    assert {name: d.version for name, d in prepared.tables.items()} == {"flights": 1}
