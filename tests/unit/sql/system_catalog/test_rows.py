"""Goal: the catalog that clients look at says of each table what its descriptor says.

Method: one small database, described; an integration test compares it with PostgreSQL's own.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leasehold.catalog.definitions import literal, quoted
from leasehold.catalog.schema_names import INFORMATION_SCHEMA, PG_CATALOG
from leasehold.catalog.states import State
from leasehold.sql.functions.registry import FUNCTION_NAMES
from leasehold.sql.system_catalog.keywords import KEYWORDS
from leasehold.sql.system_catalog.names import SYSTEM_RELATIONS
from leasehold.sql.system_catalog.oids import ELEMENTS, TABLES, element_oid, table_oid
from leasehold.sql.system_catalog.relations import RELATIONS
from leasehold.sql.system_catalog.rows import SystemCatalog
from leasehold.values.types import Type
from tests.support.descriptors import with_state
from tests.support.sql.described_tables import described


def values(catalog: SystemCatalog, name: str, *columns: str, schema: str = PG_CATALOG) -> set[Any]:
    places = {column.name: n for n, column in enumerate(RELATIONS[schema, name].columns)}
    return {tuple(row[places[c]] for c in columns) for row in catalog.rows(schema, name)}


@pytest.mark.parametrize(("schema", "name"), RELATIONS)
def test_rows_have_a_value_for_every_column_and_null_only_where_it_may_stand(
    schema: str, name: str
) -> None:
    relation = RELATIONS[schema, name]
    for row in described().rows(schema, name):
        assert len(row) == len(relation.columns)
        for column, value in zip(relation.columns, row, strict=True):
            assert value is not None or column.name in relation.nullable, column.name


def test_numbers_hold_the_relations_together() -> None:
    catalog = described()
    classes = {oid for (oid,) in values(catalog, "pg_class", "oid")}
    assert len(classes) == 7 + len(SYSTEM_RELATIONS), "a foreign key's index is shown to nobody"
    for name, column in (
        ("pg_attribute", "attrelid"),
        ("pg_index", "indexrelid"),
        ("pg_index", "indrelid"),
        ("pg_attrdef", "adrelid"),
    ):
        assert {oid for (oid,) in values(catalog, name, column)} <= classes
    constraints = values(catalog, "pg_constraint", "oid")
    assert len(constraints) == 5


def test_what_is_not_public_is_not_there() -> None:
    (table, *_) = described().tables
    hidden = with_state(table, table.columns[2].element_id, State.WRITE_ONLY)
    hidden = with_state(hidden, table.indexes[0].element_id, State.DELETE_ONLY)
    catalog = SystemCatalog([hidden], "demo", "me")
    names = values(catalog, "columns", "column_name", schema=INFORMATION_SCHEMA)
    assert (table.columns[2].name,) not in names
    assert (table.columns[3].name,) in names
    assert (table.indexes[0].name,) not in values(catalog, "pg_class", "relname")
    gone = SystemCatalog([replace(table, state=State.DELETE_ONLY)], "demo", "me")
    assert (table.name,) not in values(gone, "pg_class", "relname")


def test_texts_of_indexes_constraints_and_defaults() -> None:
    catalog = described()
    oid = catalog.relation_oid("flights_gate")
    assert oid is not None
    assert catalog.index_text(oid) == (
        "CREATE INDEX flights_gate ON public.flights USING btree (gate, lower((gate)::text))"
        " INCLUDE (seats) WHERE (seats > 0)"
    )
    assert catalog.index_text(oid, 2) == "lower((gate)::text)"
    texts = {entry.name: entry.definition for entry in catalog.constraints}
    assert texts == {
        "flights_pkey": "PRIMARY KEY (id)",
        "one_price": "UNIQUE (price, gate)",
        "positive": "CHECK (seats >= 0)",
        "legs_pkey": "PRIMARY KEY (id)",
        "legs_flight_fkey": "FOREIGN KEY (flight) REFERENCES flights(id)",
    }
    defaults = values(catalog, "pg_attrdef", "adbin")
    assert ("'A1'::character varying",) in defaults
    assert ("'it''s'::text",) in defaults
    assert literal(Type("integer"), -5) == "'-5'::integer"
    assert catalog.user_name(10) == "leasehold"
    assert catalog.is_visible(oid)
    assert not catalog.is_visible(5)


CLIENT_QUERIES = Path(__file__).parent / "client_queries.json"
"""What clients sent to PostgreSQL 15 when they looked at the tables of a database."""
OF_SQL = {
    *("array_agg", "array_to_string", "array_upper", "generate_series", "generate_subscripts"),
    *("json_build_object", "unnest", "pg_partition_ancestors"),  # sets and arrays
    *("set_config",),  # the session's
}


def test_every_relation_and_function_that_clients_ask_for_is_here() -> None:
    known = {name for _, name in RELATIONS}
    functions = FUNCTION_NAMES | OF_SQL
    for client, queries in json.loads(CLIENT_QUERIES.read_text()).items():
        for query in queries:
            asked = re.findall(
                r"(?:from|join|,)\s+(?:pg_catalog\.)?(pg_\w+)\b(?!\s*[(.])", query, re.IGNORECASE
            )
            assert set(asked) <= known, client
            called = re.findall(r"\b((?:pg|format|to|array|obj|col|current|set)_\w+)\(", query)
            assert set(called) <= functions, client


def test_numbers_stay_and_are_never_shared() -> None:
    tables = (1, 2, TABLES - 1, TABLES, 10**9)
    elements = (0, 1, ELEMENTS - 1, ELEMENTS, 10**6)
    numbers = {element_oid(table, element) for table in tables for element in elements}
    assert len(numbers) == len(tables) * len(elements)
    assert all(16_384 <= number < 1 << 32 for number in numbers)
    assert table_oid(1) == 20_480


def test_a_name_is_quoted_where_it_is_a_word_that_is_not_free() -> None:
    for each in KEYWORDS:
        shown = quoted(each.word)
        assert (shown == each.word) is (each.category == "U"), each
