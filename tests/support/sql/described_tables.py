"""A small database and what PostgreSQL 15 says of it, in each relation of its catalog.

`tests/integration/postgres_compat/test_catalog_and_postgres.py` holds PostgreSQL itself to
EXPECTED."""

from __future__ import annotations

from typing import Any, Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.schema_names import INFORMATION_SCHEMA, PG_CATALOG
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import parse_statements
from leasehold.sql.syntax.statements import (
    Explain,
)
from leasehold.sql.system_catalog.oids import PUBLIC_NAMESPACE
from leasehold.sql.system_catalog.relations import RELATIONS
from leasehold.sql.system_catalog.rows import SystemCatalog

DDL: Final = """
CREATE TABLE flights (
    id bigint PRIMARY KEY, gate varchar(5) NOT NULL DEFAULT 'A1', seats integer,
    price numeric(10, 2), at timestamptz DEFAULT now(), code char(3), ready boolean DEFAULT true,
    total integer GENERATED ALWAYS AS (seats * 2) STORED, weight double precision, who uuid,
    body jsonb, data bytea, day date, small smallint DEFAULT 7, "Odd Name" text DEFAULT 'it''s',
    CONSTRAINT positive CHECK (seats >= 0), CONSTRAINT one_price UNIQUE (price, gate)
);
CREATE INDEX flights_gate ON flights (gate, lower(gate)) INCLUDE (seats) WHERE seats > 0;
CREATE UNIQUE INDEX flights_code ON flights (code);
CREATE TABLE legs (id integer PRIMARY KEY, flight bigint REFERENCES flights, note text);
"""
QUERIES: Final[dict[tuple[str, str], tuple[str, str]]] = {
    (PG_CATALOG, "pg_class"): (
        (
            "relname, relkind, relnatts, relchecks, relhasindex, relhastriggers, relam, relowner,"
            " relpersistence, relreplident, relnamespace, reltablespace, relispartition"
        ),
        "relnamespace = 2200 and relkind in ('r', 'i')",
    ),
    (PG_CATALOG, "pg_attribute"): (
        (
            "attname, atttypid, attlen, attnum, atttypmod, attnotnull, atthasdef, attidentity,"
            " attgenerated, attisdropped, attcollation, attbyval, attislocal"
        ),
        (
            "attrelid in ('flights'::regclass, 'legs'::regclass, 'flights_pkey'::regclass) and"
            " attnum > 0"
        ),
    ),
    (PG_CATALOG, "pg_index"): (
        "indnatts, indnkeyatts, indisunique, indisprimary, indisvalid, indimmediate, indkey",
        "indrelid in ('flights'::regclass, 'legs'::regclass)",
    ),
    (PG_CATALOG, "pg_constraint"): (
        (
            "conname, contype, convalidated, condeferrable, confupdtype, confdeltype,"
            " confmatchtype,"
            " conkey, confkey, connoinherit"
        ),
        "connamespace = 2200",
    ),
    (PG_CATALOG, "pg_attrdef"): ("adnum", "true"),
    (PG_CATALOG, "pg_am"): ("oid, amname, amtype", "oid in (2, 403)"),
    (PG_CATALOG, "pg_type"): (
        (
            "oid, typname, typlen, typbyval, typtype, typcategory, typispreferred, typdelim,"
            " typelem,"
            " typarray, typcollation, typnamespace, typrelid"
        ),
        (
            "oid in (16, 17, 18, 20, 21, 23, 25, 26, 114, 701, 1042, 1043, 1082, 1114, 1184, 1186,"
            " 1700, 2950, 3802, 2278, 1000, 1007, 1009, 1231)"
        ),
    ),
    (INFORMATION_SCHEMA, "tables"): (
        "table_schema, table_name, table_type, is_insertable_into, is_typed",
        "table_schema = 'public'",
    ),
    (INFORMATION_SCHEMA, "columns"): (
        (
            "table_name, column_name, ordinal_position, column_default, is_nullable, data_type,"
            " character_maximum_length, character_octet_length, numeric_precision,"
            " numeric_precision_radix, numeric_scale, datetime_precision, udt_schema, udt_name,"
            " dtd_identifier, is_identity, is_generated, is_updatable"
        ),
        "table_schema = 'public'",
    ),
    (INFORMATION_SCHEMA, "table_constraints"): (
        (
            "constraint_schema, constraint_name, table_name, constraint_type, is_deferrable,"
            " enforced,"
            " nulls_distinct"
        ),
        "table_schema = 'public' and constraint_name not like '%_not_null'",
    ),
    (INFORMATION_SCHEMA, "key_column_usage"): (
        "constraint_name, table_name, column_name, ordinal_position, position_in_unique_constraint",
        "table_schema = 'public'",
    ),
    (INFORMATION_SCHEMA, "constraint_column_usage"): (
        "table_schema, table_name, column_name, constraint_schema, constraint_name",
        "table_schema = 'public'",
    ),
    (INFORMATION_SCHEMA, "referential_constraints"): (
        "constraint_name, unique_constraint_name, match_option, update_rule, delete_rule",
        "constraint_schema = 'public'",
    ),
    (PG_CATALOG, "pg_indexes"): ("schemaname, tablename, indexname", "schemaname = 'public'"),
}
"""What of a relation is compared, and for which rows."""


def described(database: str = "demo", user: str = "leasehold") -> SystemCatalog:
    taken = StatementBatch.on(Catalog())
    for statement, text in parse_statements(DDL):
        assert not isinstance(statement, Explain)
        taken.take(statement, text, b"id", CommitContext(7, b"s"), lambda table: 0)
    return SystemCatalog(taken.made.values(), database, user)


def ours(catalog: SystemCatalog, schema: str, name: str) -> list[tuple[Any, ...]]:
    """The rows and columns that are compared."""
    columns = [part.strip() for part in QUERIES[schema, name][0].split(",")]
    relation = RELATIONS[schema, name]
    places = {column.name: place for place, column in enumerate(relation.columns)}
    rows = catalog.rows(schema, name)
    if name == "pg_attribute":
        wanted = {catalog.relation_oid(one) for one in ("flights", "legs", "flights_pkey")}
        rows = [row for row in rows if row[places["attrelid"]] in wanted]
    if name == "pg_class":
        rows = [row for row in rows if row[places["relnamespace"]] == PUBLIC_NAMESPACE]
    if name == "pg_type":
        rows = [row for row in rows if row[places["oid"]] in _TYPES]
    return [tuple(row[places[column]] for column in columns) for row in rows]


_TYPES: Final = frozenset(
    {16, 17, 18, 20, 21, 23, 25, 26, 114, 701, 1042, 1043, 1082, 1114, 1184, 1186, 1700, 2950}
    | {3802, 2278, 1000, 1007, 1009, 1231}
)
