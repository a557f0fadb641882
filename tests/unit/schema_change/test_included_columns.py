"""A column that an index names twice beside its keys is there once, as its entries are; the index
has the name that PostgreSQL gives it."""

from __future__ import annotations

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.object_names import distinct_names
from leasehold.model.errors import DuplicateColumn, FeatureNotSupported, OutOfRange
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.statements import CreateIndex
from tests.schema_change.changes import standing

NAMES = {
    "CREATE INDEX ON t (a) INCLUDE (b, b)": ("t_a_b_b1_idx", ("b",)),
    "CREATE INDEX ON t (a) INCLUDE (a)": ("t_a_a1_idx", ()),
    "CREATE INDEX ON t (a) INCLUDE (c, a, b, c)": ("t_a_c_a1_b_c1_idx", ("c", "b")),
    "CREATE INDEX ON t (lower(a), lower(b), lower) INCLUDE (b)": (
        "t_lower_lower1_lower2_b_idx",
        ("b",),
    ),
    "CREATE INDEX ON t ((a || b), (b || a))": ("t_expr_expr1_idx", ()),
}


@pytest.mark.parametrize("statement", NAMES)
def test_an_index(statement: str) -> None:
    made = parse_ddl(statement)
    assert isinstance(made, CreateIndex)
    assert (made.name, made.included) == NAMES[statement]
    assert len(made.positions) == len(made.columns) + len(made.included)


def test_the_places_are_those_of_the_first_mention() -> None:
    made = parse_ddl("CREATE INDEX ON t (a) INCLUDE (c, b, c)")
    assert isinstance(made, CreateIndex)
    assert made.positions == (20, 32, 35)


def included(table: Descriptor) -> list[tuple[str, list[str]]]:
    return [(i.name, [table.by_id[e].name for e in i.included]) for i in table.indexes]


def test_unique_constraints() -> None:
    columns = "id int PRIMARY KEY, a int, b int, c int"
    table = standing(
        f"CREATE TABLE t ({columns}, UNIQUE (a) INCLUDE (b, b), UNIQUE (c) INCLUDE (c))"
    )
    assert included(table) == [("t_a_b_b1_key", ["b"]), ("t_c_c1_key", [])]
    with pytest.raises(DuplicateColumn):
        parse_ddl("CREATE TABLE t (a int PRIMARY KEY, UNIQUE (a, a) INCLUDE (a))")


def test_limits() -> None:
    many = ", ".join(["b"] * 32)
    with pytest.raises(FeatureNotSupported, match="32 columns"):
        parse_ddl(f"CREATE INDEX ON t (a) INCLUDE ({many})")
    with pytest.raises(OutOfRange, match="33 columns"):
        parse_ddl(f"ALTER TABLE t ADD UNIQUE (a) INCLUDE ({many})")
    with pytest.raises(FeatureNotSupported, match="no key twice"):
        parse_ddl("CREATE INDEX ON t (a, a)")


def test_a_number_is_taken_until_a_name_is_free() -> None:
    assert distinct_names(["b", "b1", "b", "b"]) == ("b", "b1", "b2", "b3")
