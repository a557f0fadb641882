"""Goal: a client that looks at the catalog sees what it would see of the same tables in PostgreSQL.

Method: the same DDL there and here; the same columns of each relation, and what functions tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from leasehold.catalog.definitions import format_type
from leasehold.sql.system_catalog.relations import RELATIONS
from leasehold.sql.system_catalog.rows import SystemCatalog
from leasehold.values.arrays import stored_form
from tests.support.postgres.postgres_server import postgres_server
from tests.support.sql.described_tables import DDL, QUERIES, described, ours

pytestmark = pytest.mark.integration

Client = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        postgres_server() as port,
        psycopg.connect(host="127.0.0.1", port=port, user="postgres", autocommit=True) as client,
    ):
        client.execute(DDL.encode())
        yield client


@pytest.fixture(scope="module")
def catalog() -> SystemCatalog:
    return described()


def plain(value: Any) -> Any:
    """Booleans are numbers inside, arrays a text; blanks of "char" are nothing."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list):
        return stored_form(value)
    return value.strip() if isinstance(value, str) else value


def ordered(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(plain, row)) for row in rows), key=repr)


@pytest.mark.parametrize(("schema", "name"), QUERIES)
def test_rows_are_those_of_postgresql(
    client: Client, catalog: SystemCatalog, schema: str, name: str
) -> None:
    columns, where = QUERIES[schema, name]
    columns = columns.replace("indkey", "indkey::int2[]")
    sql = f"select {columns} from {schema}.{name} where {where}"
    theirs = ordered(client.execute(sql.encode()).fetchall())
    found = ordered(ours(catalog, schema, name))
    assert found == theirs


@pytest.mark.parametrize(("schema", "name"), RELATIONS)
def test_relations_have_the_columns_of_postgresql(client: Client, schema: str, name: str) -> None:
    described = client.execute(f"select * from {schema}.{name} limit 0".encode()).description
    assert described is not None
    names = [column.name for column in described]
    assert [column.name for column in RELATIONS[schema, name].columns] == names


def test_functions_tell_the_same(client: Client, catalog: SystemCatalog) -> None:
    indexes = client.execute(
        "select indexrelid::regclass::text, pg_get_indexdef(indexrelid) from"
        " pg_index where indrelid in ('flights'::regclass, 'legs'::regclass)"
    ).fetchall()
    for name, text in indexes:
        oid = catalog.relation_oid(name)
        assert oid is not None
        assert catalog.index_text(oid) == text, name
    constraints = client.execute(
        "select conname, pg_get_constraintdef(oid, true) from"
        " pg_constraint where connamespace = 2200"
    ).fetchall()
    ours_ = {entry.name: entry.definition for entry in catalog.constraints}
    assert ours_ == dict(constraints)
    for oid, modifier in [
        (1043, 9),
        (1042, 7),
        (1700, 655366),
        (1700, -1),
        (23, -1),
        (1184, -1),
        (1007, -1),
        (1015, 9),
        (0, -1),
        (99999, -1),
        (1114, -1),
        (18, -1),
    ]:
        (text,) = client.execute("select format_type(%s, %s)", (oid, modifier)).fetchone() or ("",)
        assert format_type(oid, modifier) == text, oid
    for name in ("int4", "integer", "varchar", "character varying", "_int4", "nothing"):
        row = client.execute("select to_regtype(%s)::oid", (name,)).fetchone()
        assert row is not None
        assert catalog.type_oid(name) == row[0], name
