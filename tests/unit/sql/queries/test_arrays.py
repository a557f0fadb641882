"""Goal: arrays mean what PostgreSQL says, and an array's element is found by an index.

Method: tables of expressions with their text and of refusals with their SQLSTATE, as a PostgreSQL
15 gives them (`tests/integration/postgres_compat/test_arrays_postgres.py` holds them against one);
plans."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.adapters.sqlite.query import run
from leasehold.adapters.sqlite.write import own_rows
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import Refused
from leasehold.sql.planning.plan import prepare
from leasehold.values.arrays import elements_of, ordered_form, stored_form
from tests.support.sql.asked import FLIGHTS, Asked
from tests.support.sql.recorded_cases import CASES, NAN, NAN_REFUSED, ONLY_HERE_REFUSED, REFUSED


@pytest.mark.parametrize(("expression", "text"), {**CASES, **NAN}.items())
def test_what_an_expression_gives(asked: Asked, expression: str, text: str | None) -> None:
    assert asked.rows(f"SELECT ({expression})::text") == [(text,)]


@pytest.mark.parametrize(
    ("statement", "code"), {**REFUSED, **NAN_REFUSED, **ONLY_HERE_REFUSED}.items()
)
def test_what_is_refused(asked: Asked, statement: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        asked.rows(statement)
    assert caught.value.sqlstate == code


ROWS: Final[list[tuple[str, list[tuple[Any, ...]]]]] = [
    ("SELECT id FROM flights WHERE id = ANY(ARRAY[1,3,NULL]) ORDER BY id", [(1,), (3,)]),
    ("SELECT id FROM flights WHERE carrier = ANY('{LH,AA}') ORDER BY id", [(1,), (4,), (5,)]),
    ("SELECT id FROM flights WHERE carrier <> ALL('{LH,AA}') ORDER BY id", [(2,), (3,)]),
    ("SELECT id FROM flights WHERE price = ANY(ARRAY[100.0, 99.5]) ORDER BY id", [(1,), (2,)]),
    ("SELECT id FROM flights WHERE seats = ANY(NULL)", []),
    (
        "SELECT carrier, array_agg(id ORDER BY id DESC) FROM flights GROUP BY 1 ORDER BY 1",
        [("AA", [1]), ("BA", [3]), ("LH", [5, 4]), ("aa", [2])],
    ),
    ("SELECT array_agg(id) FROM flights WHERE false", [(None,)]),
    ("SELECT ARRAY(SELECT id FROM flights WHERE false)", [([],)]),
    ("SELECT ARRAY(SELECT id FROM flights ORDER BY id DESC)", [([5, 4, 3, 2, 1],)]),
    ("SELECT array_agg(day) FROM flights WHERE id = 1", [([date(2024, 1, 31)],)]),
    ("SELECT * FROM unnest(ARRAY[3,1,2]) AS u WHERE u > 1", [(3,), (2,)]),
    (
        "SELECT * FROM unnest(ARRAY[3,1], ARRAY['a']) WITH ORDINALITY AS u(n, t, place)",
        [(3, "a", 1), (1, None, 2)],
    ),
    ("SELECT * FROM unnest(NULL::integer[])", []),
    (
        (
            "SELECT f.id, u.x, u.n FROM flights f, unnest(string_to_array(f.carrier, NULL))"
            " WITH ORDINALITY u(x, n) WHERE f.id = 1 ORDER BY 3"
        ),
        [(1, "A", 1), (1, "A", 2)],
    ),
    (
        (
            "SELECT f.id, u FROM flights f LEFT JOIN LATERAL"
            " unnest(CASE WHEN f.id = 1 THEN ARRAY[7, 8] END) AS u ON true"
            " WHERE f.id < 3 ORDER BY 1, 2"
        ),
        [(1, 7), (1, 8), (2, None)],
    ),
    ("SELECT * FROM generate_series(4, 5) WITH ORDINALITY", [(4, 1), (5, 2)]),
    (
        "SELECT unnest(ARRAY[1,2]) AS a, generate_subscripts(ARRAY['x'], 1) AS b",
        [(1, 1), (2, None)],
    ),
    (
        "SELECT unnest(ARRAY[5,6]) * 2 AS a, 1 + generate_subscripts(ARRAY['x'], 1) AS b",
        [(10, 2), (12, None)],
    ),
    ("SELECT abs(unnest(ARRAY[-1,2]))::text || 'x' AS a", [("1x",), ("2x",)]),
    (
        "SELECT id, unnest(ARRAY[id, id + 1]) AS x FROM flights WHERE id < 3 ORDER BY 1, 2 DESC",
        [(1, 2), (1, 1), (2, 3), (2, 2)],
    ),
    ("SELECT value FROM jsonb_array_elements_text('[1, \"a\"]') e", [("1",), ("a",)]),
    ('SELECT k FROM jsonb_object_keys(\'{"b": 1, "a": 2}\') k', [("a",), ("b",)]),
    (
        "SELECT a FROM (VALUES (ARRAY[2]), (ARRAY[1,2]), (NULL), (ARRAY[1])) v(a) ORDER BY a",
        [([1],), ([1, 2],), ([2],), (None,)],
    ),
    (
        "SELECT count(*) FROM (VALUES (ARRAY[1.5]), (ARRAY[1.50])) v(a) GROUP BY a",
        [(2,)],
    ),
    ("SELECT DISTINCT a FROM (VALUES (ARRAY['x']), (ARRAY['x'])) v(a)", [(["x"],)]),
    ("SELECT b.a[2] FROM (SELECT ARRAY[4,5] AS a) b", [(5,)]),
    ("SELECT b.a[2:] FROM (SELECT ARRAY[4,5,6] AS a) b", [([5, 6],)]),
    (
        "SELECT ARRAY(SELECT x * 2 FROM unnest(ARRAY[f.id, 10]) x) FROM flights f WHERE id = 1",
        [([2, 20],)],
    ),
]


@pytest.mark.parametrize(("text", "rows"), ROWS, ids=[text[:60] for text, _ in ROWS])
def test_rows(asked: Asked, text: str, rows: list[tuple[Any, ...]]) -> None:
    assert asked.rows(text) == rows


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("SELECT id FROM flights WHERE id = ANY($1)", ["integer[]"]),
        ("SELECT id FROM flights WHERE carrier <> ALL($1)", ["text[]"]),
        ("SELECT id FROM flights WHERE price > ANY($1)", ["numeric[]"]),
        ("SELECT id FROM flights WHERE carrier LIKE ANY($1)", ["text[]"]),
        ("SELECT $1::uuid[]", ["uuid[]"]),
        ("SELECT * FROM unnest($1::integer[], $2::text[])", ["integer[]", "text[]"]),
        ("SELECT ARRAY[1] || $1", ["integer[]"]),
        ("SELECT $1 = ANY(ARRAY[1])", ["integer"]),
        ("SELECT array_position(ARRAY['a'], $1)", ["text"]),
        ("SELECT $1 = ANY($2)", ["text", "text[]"]),
    ],
)
def test_parameters_have_the_types_of_their_use(asked: Asked, text: str, types: list[str]) -> None:
    assert [str(kind) for kind in asked.prepared(text).parameters] == types


def test_a_parameter_of_many_values(asked: Asked) -> None:
    text = "SELECT id FROM flights WHERE id = ANY($1) ORDER BY id"
    assert asked.rows(text, ([5, 1, None, 77],)) == [(1,), (5,)]
    assert asked.rows(text, (None,)) == []
    assert asked.rows(text, ([],)) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "SELECT seats FROM flights WHERE carrier = ANY('{LH}')",
            "Index Search using by_carrier",
        ),
        ("SELECT seats FROM flights WHERE id = ANY('{1}')", "Primary Key Search on flights"),
        ("SELECT id FROM flights WHERE carrier = ANY('{LH}')", "Index Search using by_carrier"),
        (
            "SELECT b.name FROM flights f JOIN bookings b ON b.name = ANY(ARRAY[f.carrier])",
            "Index Search using by_name",
        ),
        ("SELECT id FROM flights WHERE carrier <> ALL('{LH}')", "Seq Scan on flights"),
    ],
)
def test_an_element_is_found_by_an_index(asked: Asked, text: str, line: str) -> None:
    assert line in asked.plan(text)


def test_so_is_an_element_of_a_parameter(asked: Asked) -> None:
    prepared = asked.prepared("SELECT seats FROM flights WHERE carrier = ANY($1)")
    assert [(chosen.table, chosen.by) for chosen in prepared.chosen] == [("flights", "by_carrier")]


def test_so_it_is_beside_own_rows(asked: Asked) -> None:
    snapshot = asked.snapshot
    text = "SELECT id FROM flights WHERE carrier = ANY($1) ORDER BY id"
    prepared = prepare(text, snapshot.newest, (), frozenset({1}))
    assert [(chosen.table, chosen.by) for chosen in prepared.chosen] == [("flights", "by_carrier")]
    with own_rows(snapshot.connection, {1: (FLIGHTS, {(4,): None, (9,): {1: 9, 2: "LH"}})}):
        values = (stored_form(["AA", "LH"]),)
        rows = run(snapshot.connection, prepared, values, context=CommitContext(0, b"seed"))
        assert rows.all() == [(1,), (5,), (9,)]


VALUES: Final = st.integers(-(1 << 63), (1 << 63) - 1) | st.none()
OTHERS: Final = (
    st.floats(allow_nan=False) | st.none(),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.none(),
    st.binary() | st.none(),
)


@pytest.mark.parametrize("values", [VALUES, *OTHERS], ids=["int", "float", "str", "bytes"])
@given(data=st.data())
def test_arrays_are_kept_and_ordered_element_by_element(
    values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    left, right = data.draw(st.lists(values)), data.draw(st.lists(values))
    assert elements_of(stored_form(left)) == left

    def rank(items: list[Any]) -> list[tuple[bool, Any]]:
        return [(item is None, 0 if item is None else item) for item in items]

    assert (ordered_form(left) < ordered_form(right)) == (rank(left) < rank(right))
    assert (ordered_form(left) == ordered_form(right)) == (left == right)
