"""Rows of information_schema: the same things in the words of the SQL standard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from leasehold.catalog import definitions as text
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.namespaces import schema_shown
from leasehold.catalog.privileges import ALL, Privilege
from leasehold.catalog.schema_names import PUBLIC
from leasehold.catalog.view import is_view_id
from leasehold.sql.system_catalog import oids
from leasehold.sql.system_catalog.granted import GRANTED
from leasehold.sql.system_catalog.sequences import identity_of, information_sequences
from leasehold.values.types import INTEGER_BITS, SECOND_DIGITS, Type, element_of

if TYPE_CHECKING:
    from leasehold.catalog.descriptor import Descriptor
    from leasehold.sql.system_catalog.rows import ConstraintEntry, SystemCatalog

Row = Mapping[str, Any]

_KINDS: Final[Mapping[str, str]] = {
    "p": "PRIMARY KEY",
    "u": "UNIQUE",
    "f": "FOREIGN KEY",
    "c": "CHECK",
}
_YES: Final[Mapping[bool, str]] = {True: "YES", False: "NO"}
_BYTES_OF_CHARACTER: Final = 4
_UNBOUND_BYTES: Final = 1 << 30
_REAL_BITS: Final = 24
_DOUBLE_BITS: Final = 53
_BEYOND_SELECT: Final = ALL["table"] & ~Privilege.SELECT
"""Who may do one of these with a table is shown its constraints."""


def information_rows(catalog: SystemCatalog, name: str) -> Iterable[Row]:
    """Return the rows of a relation of information_schema, none for one that says nothing here."""
    made = _ROWS.get(name)
    return () if made is None else made(catalog)


def _schemata(catalog: SystemCatalog) -> Iterator[Row]:
    for name in catalog.namespaces:
        owner = catalog.role_name(catalog.owner_of_namespace(name))
        yield {"catalog_name": catalog.database, "schema_name": name, "schema_owner": owner}


def _character_sets(catalog: SystemCatalog) -> Iterator[Row]:
    yield {
        "character_set_name": "UTF8",
        "character_repertoire": "UCS",
        "form_of_use": "UTF8",
        "default_collate_catalog": catalog.database,
    }


def _tables(catalog: SystemCatalog) -> Iterator[Row]:
    for table in catalog.base_tables:
        if not catalog.rights.sees(table, ALL["table"]):
            continue
        yield {
            **_in_schema("table", catalog, table.name, table),
            "table_type": "LOCAL TEMPORARY" if table.temporary else "BASE TABLE",
            "is_insertable_into": "YES",
            "is_typed": "NO",
        }
    for view in catalog.views:
        if catalog.rights.sees(view, ALL["table"]):
            yield {
                **_in_schema("table", catalog, view.name, view),
                "table_type": "VIEW",
                "is_insertable_into": "NO",
                "is_typed": "NO",
            }


def _views(catalog: SystemCatalog) -> Iterator[Row]:
    for view in catalog.views:
        if not catalog.rights.sees(view, ALL["table"]):
            continue
        owns = catalog.access.is_owner(catalog.role_id, view.table_id)
        yield {
            **_in_schema("table", catalog, view.name, view),
            "view_definition": catalog.view_text(oids.table_oid(view.table_id)) if owns else None,
            "check_option": "NONE",
            "is_updatable": "NO",
            "is_insertable_into": "NO",
            "is_trigger_updatable": "NO",
            "is_trigger_deletable": "NO",
            "is_trigger_insertable_into": "NO",
        }


def _columns(catalog: SystemCatalog) -> Iterator[Row]:
    for table in (*catalog.base_tables, *catalog.views):
        for number, column in enumerate(text.columns_of(table), 1):
            if not catalog.rights.sees_column(table, column.element_id):
                continue
            kind, default = column.type, text.shown_default(column)
            yield {
                **_in_schema("table", catalog, table.name, table),
                "column_name": column.name,
                "ordinal_position": number,
                "column_default": None if column.generated else default,
                "is_nullable": _YES[column.nullable],
                "data_type": _data_type(kind),
                **_measures(kind),
                "udt_catalog": catalog.database,
                "udt_schema": _schema_of_type(catalog, kind),
                "udt_name": text.type_name(kind),
                "dtd_identifier": str(number),
                "is_self_referencing": "NO",
                **identity_of(catalog, column),
                "is_updatable": _YES[not is_view_id(table.table_id)],
                "is_generated": "ALWAYS" if column.generated else "NEVER",
                "generation_expression": _generated(catalog, table, column),
            }


def _generated(catalog: SystemCatalog, table: Descriptor, column: Column) -> str | None:
    if not column.generated or column.derived is None:
        return None
    oid = oids.table_oid(table.table_id)
    return catalog.expression(column.derived.expression, oid, pretty=False)


def _schema_of_type(catalog: SystemCatalog, kind: Type) -> str:
    if kind.enum is None:
        return "pg_catalog"
    known = catalog.access.enums.get(kind.enum.type_id, kind.enum)
    return known.schema or PUBLIC


def _data_type(kind: Type) -> str:
    if element_of(kind):
        return "ARRAY"
    return text.type_text(kind) if kind.enum is None else "USER-DEFINED"


def _measures(kind: Type) -> Row:
    match kind.name:
        case "varchar" | "char" | "text":
            length = kind.length
            octets = _UNBOUND_BYTES if length is None else length * _BYTES_OF_CHARACTER
            return {"character_maximum_length": length, "character_octet_length": octets}
        case "smallint" | "integer" | "bigint":
            bits = INTEGER_BITS[kind.name]
            return {"numeric_precision": bits, "numeric_precision_radix": 2, "numeric_scale": 0}
        case "real":
            return {"numeric_precision": _REAL_BITS, "numeric_precision_radix": 2}
        case "double precision":
            return {"numeric_precision": _DOUBLE_BITS, "numeric_precision_radix": 2}
        case "numeric":
            return {
                "numeric_precision": kind.precision,
                "numeric_precision_radix": 10,
                "numeric_scale": kind.scale,
            }
        case "date":
            return {"datetime_precision": 0}
        case "time" | "timetz" | "timestamp" | "timestamptz" | "interval":
            digits = SECOND_DIGITS if kind.length is None else kind.length
            return {"datetime_precision": digits}
    return {}


def _table_constraints(catalog: SystemCatalog) -> Iterator[Row]:
    for entry in catalog.constraints:
        if not catalog.rights.sees(entry.table, _BEYOND_SELECT):
            continue
        yield {
            **_in_schema("constraint", catalog, entry.name, entry.table),
            **_in_schema("table", catalog, entry.table.name, entry.table),
            "constraint_type": _KINDS[entry.kind],
            "is_deferrable": _YES[bool(entry.deferrable)],
            "initially_deferred": _YES[entry.deferrable == "deferred"],
            "enforced": "YES",
            "nulls_distinct": _nulls_distinct(entry),
        }


def _nulls_distinct(entry: ConstraintEntry) -> str | None:
    if entry.kind != "u":
        return None
    return "NO" if entry.equal_nulls else "YES"


def _key_column_usage(catalog: SystemCatalog) -> Iterator[Row]:
    for entry in catalog.constraints:
        if entry.kind != "c":
            for ordinal, element in enumerate(entry.columns, 1):
                if not catalog.rights.sees_column(entry.table, element):
                    continue
                yield {
                    **_in_schema("constraint", catalog, entry.name, entry.table),
                    **_in_schema("table", catalog, entry.table.name, entry.table),
                    "column_name": entry.table.by_id[element].name,
                    "ordinal_position": ordinal,
                    "position_in_unique_constraint": ordinal if entry.kind == "f" else None,
                }


def _constraint_column_usage(catalog: SystemCatalog) -> Iterator[Row]:
    """The columns that a constraint looks at; of a foreign key those that it refers to."""
    for entry in catalog.constraints:
        table, columns = entry.table, entry.columns
        if entry.parent is not None:
            table, columns = entry.parent, entry.parent_columns
        if not catalog.rights.has_role_of(catalog.access.owner_of(table.table_id)):
            continue
        for element in columns:
            yield {
                **_in_schema("table", catalog, table.name, table),
                "column_name": table.by_id[element].name,
                **_in_schema("constraint", catalog, entry.name, entry.table),
            }


def _referential_constraints(catalog: SystemCatalog) -> Iterator[Row]:
    keys = {entry.rests_on: entry.name for entry in catalog.constraints if entry.kind in "pu"}
    for entry in catalog.constraints:
        key, to = entry.foreign, entry.parent or entry.table
        if key is not None and catalog.rights.sees(entry.table, _BEYOND_SELECT):
            yield {
                **_in_schema("constraint", catalog, entry.name, entry.table),
                **_in_schema("unique_constraint", catalog, keys.get(entry.rests_on, ""), to),
                "match_option": "FULL" if key.full else "NONE",
                "update_rule": key.on_update.upper(),
                "delete_rule": key.on_delete.upper(),
            }


def _check_constraints(catalog: SystemCatalog) -> Iterator[Row]:
    for entry in catalog.constraints:
        owner = catalog.access.owner_of(entry.table.table_id)
        if entry.kind == "c" and catalog.rights.has_role_of(owner):
            shown = catalog.definition(entry.oid, pretty=False) or ""
            yield {
                **_in_schema("constraint", catalog, entry.name, entry.table),
                "check_clause": shown.removeprefix("CHECK "),
            }


def _in_schema(what: str, catalog: SystemCatalog, name: str, table: Descriptor) -> Row:
    """Return what names something that lies beside `table`, or is it."""
    return {
        f"{what}_catalog": catalog.database,
        f"{what}_schema": schema_shown(table),
        f"{what}_name": name,
    }


_ROWS: Final[Mapping[str, Callable[[SystemCatalog], Iterable[Row]]]] = {
    "schemata": _schemata,
    "character_sets": _character_sets,
    "tables": _tables,
    "views": _views,
    "columns": _columns,
    "table_constraints": _table_constraints,
    "key_column_usage": _key_column_usage,
    "constraint_column_usage": _constraint_column_usage,
    "referential_constraints": _referential_constraints,
    "check_constraints": _check_constraints,
    "sequences": information_sequences,
    **GRANTED,
}
