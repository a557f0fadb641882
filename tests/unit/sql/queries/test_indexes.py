"""Goal: where an index serves, no table is gone through. Method: EXPLAIN, which is SQLite's own
plan under the names of tables and indexes; and the same rows as without any index."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.adapters.sqlite.query import run
from leasehold.catalog.elements import CommitContext
from leasehold.replica.queries import as_tuples
from leasehold.sql.planning.plan import prepare
from leasehold.sql.planning.reads import Read
from tests.support.sql.asked import Asked

SERVED = [
    ("SELECT * FROM flights WHERE id = 3", "Primary Key Search on flights"),
    (
        "SELECT * FROM flights WHERE carrier = 'LH'",
        "Index Search using by_carrier on flights (k0=?",
    ),
    (
        "SELECT * FROM flights WHERE carrier = 'LH' AND seats > 5",
        "Index Search using by_carrier on flights (k0=? AND k1>? AND k1<?)",
    ),
    ("SELECT * FROM flights WHERE carrier IN ('LH', 'AA')", "Index Search using by_carrier"),
    (
        "SELECT * FROM flights WHERE day > '2000-01-01'",
        "Index Search using by_day on flights (k0>? AND k0<?)",
    ),
    (
        "SELECT * FROM flights WHERE day < '2000-01-01'",
        "Index Search using by_day on flights (k0<?)",
    ),
    ("SELECT * FROM flights WHERE day IS NULL", "Index Search using by_day on flights (k0=?)"),
    ("SELECT * FROM flights WHERE day = $1", "Index Search using by_day on flights (k0=?)"),
    ("SELECT * FROM flights WHERE lower(carrier) = 'lh'", "Index Search using by_lower"),
    ("SELECT * FROM flights WHERE price = 7 AND seats > 10", "Index Search using cheap"),
    ("SELECT * FROM flights WHERE price > 7 AND seats > 50", "Index Search using cheap"),
    ("SELECT * FROM flights ORDER BY day LIMIT 2", "Index Scan using by_day"),
    ("SELECT * FROM flights ORDER BY day DESC LIMIT 2", "Index Scan using by_day"),
    (
        "SELECT * FROM flights WHERE carrier = 'LH' ORDER BY seats LIMIT 2",
        "Index Search using by_carrier",
    ),
    (
        "SELECT b.* FROM bookings b JOIN flights f ON f.id = b.flight WHERE b.name = 'Ann'",
        "Index Search using by_name on bookings",
    ),
    (
        "SELECT id FROM flights WHERE EXISTS (SELECT 1 FROM bookings WHERE name = carrier)",
        "Index Search using by_name on bookings",
    ),
    ("SELECT seats FROM flights WHERE day = '2024-01-31'", "Index Search using by_day"),
    (
        "SELECT id, seat FROM flights LEFT JOIN bookings ON name = carrier AND seat > '1'",
        "Index Search using by_name on bookings",
    ),
]
NOT_SERVED = [
    "SELECT * FROM flights WHERE seats = 3",
    "SELECT * FROM flights WHERE upper(carrier) = 'LH'",
    "SELECT * FROM flights WHERE price = 7",
    "SELECT * FROM flights WHERE price = 7 AND seats > 9",
    "SELECT * FROM flights WHERE open",
    "SELECT * FROM flights ORDER BY day NULLS FIRST LIMIT 2",
]


@pytest.mark.parametrize(("text", "shown"), SERVED)
def test_an_index_that_serves_is_used(asked: Asked, text: str, shown: str) -> None:
    sql = text.replace("$1", "'2024-01-31'")
    plan = asked.plan(sql)
    assert shown in plan, plan
    outer = "EXISTS" in text or "LEFT JOIN" in text  # all of it is asked for
    assert plan.count("Seq Scan") == outer, plan
    assert "BLOOM" not in plan, plan
    assert sorted(asked.rows(sql), key=str) == sorted(_without_indexes(asked, sql), key=str)


def _without_indexes(asked: Asked, sql: str) -> list[tuple[object, ...]]:
    def bare(name: str) -> object:
        return replace(asked.snapshot.newest(name), indexes=())

    prepared = prepare(sql, bare)  # type: ignore[arg-type]
    rows = run(asked.snapshot.connection, prepared, context=CommitContext(0, b""))
    return list(as_tuples(prepared, rows))


@pytest.mark.parametrize("text", NOT_SERVED)
def test_an_index_that_does_not_serve_is_left_alone(asked: Asked, text: str) -> None:
    assert "Seq Scan on flights" in asked.plan(text)


def test_an_order_that_an_index_has_is_not_sorted(asked: Asked) -> None:
    ordered = "SELECT id FROM flights WHERE carrier = 'LH' ORDER BY seats DESC LIMIT 1"
    assert "TEMP B-TREE" not in asked.plan(ordered)
    assert "TEMP B-TREE" not in asked.plan("SELECT id FROM flights ORDER BY day LIMIT 1")
    assert "TEMP B-TREE" in asked.plan("SELECT id FROM flights ORDER BY seats LIMIT 1")


def test_a_covering_entry_spares_the_row(asked: Asked) -> None:
    text = asked.prepared("SELECT id, seats FROM flights WHERE day = '2024-01-31'").emitted.text
    assert "t1" not in text
    assert "t1" in asked.prepared("SELECT open FROM flights WHERE day = '2024-01-31'").emitted.text


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("SELECT * FROM flights WHERE id = $1", {Read(1, 0, (7,))}),
        ("SELECT * FROM flights WHERE id > 3 AND id <= $1", {Read(1, 0, (), 3, 7)}),
        ("SELECT seats FROM flights WHERE carrier = 'LH'", {Read(1, 11, ("LH",))}),
        ("SELECT * FROM flights WHERE seats = $1", {Read(1, 0, ())}),
        (
            "SELECT * FROM bookings, flights WHERE flight = $1 AND seat = '1A' AND id = flight",
            {Read(2, 0, (7, "1A"))},  # and flights by what that row says: `test_reads.py`
        ),
    ],
)
def test_what_is_read_is_told(asked: Asked, text: str, reads: set[Read]) -> None:
    assert asked.prepared(text).reads.of([7]) == reads
