"""Reads what tables and sequences a PostgreSQL has, as its own catalog says it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from leasehold.adapters.postgres.source import SourceConnection
from leasehold.model.errors import ConfigurationError
from leasehold.transfer.quoting import quote_name, quote_text
from leasehold.transfer.source_tables import (
    SourceColumn,
    SourceConstraint,
    SourceIndex,
    SourceSchema,
    SourceSequence,
    SourceTable,
)

Ask: TypeAlias = Callable[[str], Sequence[Sequence[Any]]]
VERSION_LEAST: Final = 120_000
ROW_BYTES_ABOUT: Final = 100
"""Of a table that was never analysed."""
_OWN: Final = """
c.relnamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = :schema)
AND c.relpersistence = 'p'
AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 1259 AND d.objid = c.oid
                AND d.deptype = 'e')
"""
"""Relations of the schema that belong to no extension (1259 is pg_class)."""
_TABLES: Final = f"""
SELECT c.oid::bigint, c.relname, c.relkind = 'p', c.reltuples::bigint,
       pg_total_relation_size(c.oid), c.relreplident::text, c.relrowsecurity,
       ARRAY(SELECT 'trigger ' || t.tgname FROM pg_trigger t
             WHERE t.tgrelid = c.oid AND NOT t.tgisinternal ORDER BY 1),
       ARRAY(SELECT 'rule ' || r.rulename FROM pg_rewrite r WHERE r.ev_class = c.oid ORDER BY 1)
FROM pg_class c WHERE {_OWN} AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname
"""
_COLUMNS: Final = f"""
SELECT a.attrelid::bigint, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
       pg_get_expr(d.adbin, d.adrelid), a.attidentity::text, a.attgenerated::text,
       ARRAY(SELECT e.enumlabel::text FROM pg_enum e
             WHERE e.enumtypid IN (a.atttypid, t.typelem) ORDER BY e.enumsortorder)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE {_OWN} AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""
_CONSTRAINTS: Final = f"""
SELECT k.conrelid::bigint, k.conname, k.contype::text, pg_get_constraintdef(k.oid, true),
       ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS u (attnum, place)
             JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum
             ORDER BY u.place)
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE {_OWN} AND c.relkind IN ('r', 'p') AND k.contype IN ('p', 'u', 'c', 'f', 'x')
ORDER BY k.conrelid, k.conname
"""
_INDEXES: Final = f"""
SELECT i.indrelid::bigint, n.relname, pg_get_indexdef(i.indexrelid, 0, true)
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class n ON n.oid = i.indexrelid
WHERE {_OWN} AND c.relkind IN ('r', 'p') AND i.indisvalid
AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype <> 'f')
ORDER BY i.indrelid, n.relname
"""
_SEQUENCES: Final = f"""
SELECT c.relname, format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmin, s.seqmax,
       s.seqcache, s.seqcycle, COALESCE(t.relname, ''), COALESCE(a.attname, ''),
       COALESCE(d.deptype = 'i', false)
FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
LEFT JOIN pg_depend d ON d.classid = 1259 AND d.objid = c.oid
     AND d.refclassid = 1259 AND d.deptype IN ('a', 'i')
LEFT JOIN pg_class t ON t.oid = d.refobjid
LEFT JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE {_OWN} ORDER BY c.relname
"""
_OTHERS: Final = f"""
SELECT CASE c.relkind WHEN 'v' THEN 'view ' WHEN 'm' THEN 'materialized view '
       ELSE 'foreign table ' END || c.relname
FROM pg_class c WHERE {_OWN} AND c.relkind IN ('v', 'm', 'f') ORDER BY 1
"""


def read_schema(source: SourceConnection, schema: str) -> SourceSchema:
    """Return the tables and sequences of a schema. Raises ConfigurationError where it isn't there,
    SourceFailure."""
    if int(source.value("SHOW server_version_num")) < VERSION_LEAST:
        version = source.value("SHOW server_version")
        raise ConfigurationError(f"the source is PostgreSQL {version}; 12 or a newer one is read")
    if not source.value("SELECT count(*) FROM pg_namespace WHERE nspname = %s", schema):
        raise ConfigurationError(f"the source has no schema {schema!r}")
    # Names of this schema are then written alone, as they are to be said to the target.
    source.run(f"SET search_path = {quote_name(schema)}, pg_catalog")
    return read_relations(source.rows, schema)


def read_relations(ask: Ask, schema: str) -> SourceSchema:
    """Return the tables and sequences of a schema. `ask` gives a query's rows as Python's
    values."""

    def rows(query: str) -> Sequence[Sequence[Any]]:
        return ask(query.replace(":schema", quote_text(schema)))

    columns, constraints = _grouped(rows(_COLUMNS)), _grouped(rows(_CONSTRAINTS))
    indexes = _grouped(rows(_INDEXES))
    tables = [
        _read_table(row, columns[row[0]], constraints[row[0]], indexes[row[0]])
        for row in rows(_TABLES)
    ]
    sequences = [SourceSequence(*row) for row in rows(_SEQUENCES)]
    return SourceSchema(tables, sequences, [words for (words,) in rows(_OTHERS)])


def _grouped(rows: Sequence[Sequence[Any]]) -> dict[int, list[tuple[Any, ...]]]:
    """Return what stands behind the first value of each row, by that."""
    found: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for first, *rest in rows:
        found[first].append(tuple(rest))
    return found


def _read_table(
    row: Sequence[Any],
    columns: Sequence[tuple[Any, ...]],
    constraints: Sequence[tuple[Any, ...]],
    indexes: Sequence[tuple[Any, ...]],
) -> SourceTable:
    _, name, partitioned, rows_about, bytes_about, identity, secured, triggers, rules = row
    key = next((tuple(names) for _, kind, _, names in constraints if kind == "p"), ())
    more = [*triggers, *rules, *(("row security",) if secured else ())]
    return SourceTable(
        name,
        [
            SourceColumn(
                column, kind, not_null, default, identity_of, generated == "s", tuple(labels)
            )
            for column, kind, not_null, default, identity_of, generated, labels in columns
        ],
        key,
        [SourceConstraint(its, kind, text) for its, kind, text, _ in constraints if kind != "p"],
        [SourceIndex(index, text) for index, text in indexes],
        partitioned,
        rows_about if rows_about >= 0 else (bytes_about or 0) // ROW_BYTES_ABOUT,
        bytes_about or 0,
        identity,
        more,
    )
