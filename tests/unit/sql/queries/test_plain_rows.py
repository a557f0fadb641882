"""Goal: an INSERT of parameters and constants as they are writes what SQLite would have given back
of them, though SQLite is not asked.

Method: each statement runs twice on one store, once with what it takes from parameters forgotten,
so that SQLite computes all of it; both write the same. Values are those of every column type, and
those that SQLite would change: NaN, numbers that are too large for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leasehold.adapters.sqlite.query import emitted_rows
from leasehold.adapters.sqlite.write import RowWrite, Writing
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, CommitContext
from leasehold.sql.planning.plan import Prepared, prepare
from leasehold.values.types import KNOWN, Type, parse_type

KEY, FIRST = 1, 2
CONTEXT: Final = CommitContext(1_700_000_000_000_000, b"0" * 16)
TYPES: Final = tuple(parse_type(name) for name in KNOWN if name != "enum")
"""Of columns."""
TABLE: Final = Descriptor(
    1,
    "t",
    1,
    (
        Column(KEY, "id", Type("bigint"), False),
        *(Column(FIRST + n, f"c{n}", kind) for n, kind in enumerate(TYPES)),
    ),
    (KEY,),
    (),
    next_element_id=FIRST + len(TYPES),
)
VALUES: Final = st.one_of(
    st.none(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.text(max_size=20),
    st.floats(),
)


@pytest.fixture(scope="module")
def connection() -> Iterator[apsw.Connection]:
    """With no table: nothing is read of one, and nothing written."""
    made = apsw.Connection(":memory:")
    yield made
    made.close()


def plan(text: str, types: tuple[Type, ...] = ()) -> Prepared:
    return prepare(text, lambda name: TABLE, types)


def written(
    connection: apsw.Connection, prepared: Prepared, values: tuple[Any, ...], *, by_sqlite: bool
) -> list[RowWrite]:
    writing = Writing(connection, prepared, values, CONTEXT)
    if by_sqlite:
        writing._plain = None
    return writing.run().writes


def shown(writes: list[RowWrite]) -> str:
    """Values with their types: 1 is not 1.0, and NaN is itself."""
    return repr([(w.key, sorted((w.after or {}).items()), w.given) for w in writes])


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=40, deadline=None)
@given(values=st.lists(VALUES, min_size=2, max_size=2))
def test_parameters_are_written_as_sqlite_gives_them_back(
    connection: apsw.Connection, kind: Type, values: list[Any]
) -> None:
    at = TYPES.index(kind)
    text = f"INSERT INTO t (c{at}, id) VALUES ($1, 7), ($2, $3)"
    prepared = plan(text, (kind, kind, Type("bigint")))
    both = [written(connection, prepared, (*values, 8), by_sqlite=way) for way in (False, True)]
    assert shown(both[0]) == shown(both[1])


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("INSERT INTO t (id, c0) VALUES (1, $1)", True),
        ("INSERT INTO t (id) VALUES (1), (2), (-3)", True),
        ("INSERT INTO t (id, c0) VALUES (1, DEFAULT)", True),
        ("INSERT INTO t (id) VALUES ($1) RETURNING id + 1", True),
        ("INSERT INTO t (id) VALUES ($1 + 1)", False),
        ("INSERT INTO t (id) SELECT $1 LIMIT 0", False),
        ("INSERT INTO t (id) VALUES (1), (2) LIMIT 1", False),
        ("INSERT INTO t (id) VALUES (1), (2) ORDER BY 1 DESC", False),
        ("INSERT INTO t (id) VALUES (1), (2) OFFSET 1", False),
        ("INSERT INTO t (id) SELECT id FROM t", False),
        ("INSERT INTO t (id) SELECT a FROM (VALUES (1), (2)) AS v (a) WHERE a > 1", False),
        ("INSERT INTO t (id) SELECT a FROM (VALUES (1), (2)) AS v (a) ORDER BY 1", False),
        ("INSERT INTO t (id) SELECT a FROM (VALUES (2), (2)) AS v (a) GROUP BY a", False),
        ("INSERT INTO t (id) SELECT DISTINCT a FROM (VALUES (2), (2)) AS v (a)", False),
        ("INSERT INTO t (id) SELECT a FROM (VALUES (2), (3) LIMIT 1) AS v (a)", False),
        ("UPDATE t SET c0 = $1", False),
        ("DELETE FROM t WHERE id = $1", False),
    ],
)
def test_which_statements_are_plain(connection: apsw.Connection, text: str, plain: bool) -> None:
    prepared = plan(text)
    assert prepared.write is not None
    assert (prepared.write.bound.plain_rows is not None) is plain
    if plain:
        values = (5,) * len(prepared.parameters)
        ways = [written(connection, prepared, values, by_sqlite=way) for way in (False, True)]
        assert shown(ways[0]) == shown(ways[1]) != "[]"


def test_sqlite_is_asked_for_what_it_changes(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def counted(*arguments: Any, **named: Any) -> Any:
        asked.append(arguments)
        return emitted_rows(*arguments, **named)

    monkeypatch.setattr("leasehold.adapters.sqlite.write.emitted_rows", counted)
    at = TYPES.index(Type("double precision"))
    prepared = plan(f"INSERT INTO t (id, c{at}) VALUES (1, $1)", (Type("double precision"),))
    run = partial(written, connection, prepared, by_sqlite=False)
    assert [w.after for w in run(values=("x",))] == [{KEY: 1, FIRST + at: "x"}]
    assert not asked
    assert [w.after for w in run(values=(math.nan,))] == [{KEY: 1}]
    assert len(asked) == 1
