"""Rows of pg_catalog, of what is public in a database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from leasehold.catalog import definitions as text
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Index, OnChange
from leasehold.catalog.namespaces import schema_shown
from leasehold.catalog.schema_names import PUBLIC
from leasehold.catalog.view import is_view_id
from leasehold.sql.expressions.key_types import key_types
from leasehold.sql.functions.resolution import CATEGORIES, PREFERRED
from leasehold.sql.session_settings import SETTINGS
from leasehold.sql.system_catalog import oids
from leasehold.sql.system_catalog.names import SYSTEM_OIDS
from leasehold.sql.system_catalog.operator_classes import (
    classes_of_key,
    operator_classes,
    operator_families,
)
from leasehold.sql.system_catalog.roles import (
    acl_of_public,
    acl_texts,
    authid_rows,
    groups_view,
    membership_rows,
    of_database,
    of_relation,
    recorded,
    roles_view,
    setting_rows,
    shadow_view,
    users_view,
)
from leasehold.sql.system_catalog.row_types import row_type_of, row_type_rows
from leasehold.sql.system_catalog.sequences import dependencies, sequence_rows, sequences_view
from leasehold.sql.system_catalog.system_rows import COLLATED, attribute_row, collation_of, is_view
from leasehold.sql.system_catalog.type_functions import columns_of, function_rows
from leasehold.values.declared import BY_NAME, ENUM
from leasehold.values.enums import STEP
from leasehold.values.oids import enum_oid, label_oid
from leasehold.values.types import VECTORS, Type

if TYPE_CHECKING:
    from leasehold.sql.system_catalog.rows import SystemCatalog

Row = Mapping[str, Any]

_ELEMENTS: Final = {
    "name": BY_NAME['"char"'].oid,
    **{vector: BY_NAME[element].oid for vector, element in VECTORS.items()},
}


_ACTIONS: Final = {
    OnChange.NO_ACTION: "a",
    OnChange.RESTRICT: "r",
    OnChange.CASCADE: "c",
    OnChange.SET_NULL: "n",
    OnChange.SET_DEFAULT: "d",
}
_UTF8: Final = 6
_COLLATION: Final[Row] = {
    "oid": oids.DEFAULT_COLLATION,
    "collname": "default",
    "collowner": oids.OWNER,
    "collnamespace": oids.CATALOG_NAMESPACE,
    "collprovider": "d",
    "collencoding": -1,
    "collisdeterministic": 1,
}
_DATABASE: Final[Row] = {
    "oid": oids.DATABASE,
    "encoding": _UTF8,
    "datlocprovider": "c",
    "datallowconn": 1,
    "datconnlimit": -1,
    "datcollate": "C.UTF-8",
    "datctype": "C.UTF-8",
    "dattablespace": 1663,
}
_TABLESPACES: Final[tuple[Row, ...]] = (
    {"oid": 1663, "spcname": "pg_default", "spcowner": oids.OWNER},
    {"oid": 1664, "spcname": "pg_global", "spcowner": oids.OWNER},
)


def catalog_rows(catalog: SystemCatalog, name: str) -> Iterable[Row]:
    """Return the rows of a relation of pg_catalog, none for one that says nothing here. A row is
    given by the columns that say something."""
    made = _ROWS.get(name)
    return () if made is None else made(catalog)


def _classes(catalog: SystemCatalog) -> Iterator[Row]:
    common: dict[str, Any] = {"relispopulated": 1, "reltuples": -1.0}
    for table in catalog.tables:
        oid = oids.table_oid(table.table_id)
        kind = _relation_kind(table)
        concerned = catalog.concerned.get(table.table_id, [])
        yield {
            **common,
            **of_relation(catalog, table.table_id),
            "oid": oid,
            "relname": table.name,
            "relnamespace": catalog.namespace_of(table),
            "reltype": row_type_of(table),
            "relpersistence": "t" if table.temporary else "p",
            "relfilenode": 0 if kind == "v" else oid,
            "relam": oids.HEAP if kind == "r" else 0,
            "relkind": kind,
            "relhasrules": int(kind == "v"),
            "relhasindex": int(bool(catalog.indexes_of(table))),
            "relreplident": "d" if kind == "r" else "n",
            "relnatts": len(text.columns_of(table)),
            "relchecks": sum(c.kind == "c" and c.table is table for c in concerned),
            "relhastriggers": int(any(c.kind == "f" for c in concerned)),
            "reloptions": _options_of(catalog, table),
        }
    for table, index, name, oid in catalog.indexes:
        yield {
            **common,
            "relowner": catalog.access.owner_of(table.table_id),
            "oid": oid,
            "relname": name,
            "relnamespace": catalog.namespace_of(table),
            "relpersistence": "t" if table.temporary else "p",
            "relfilenode": oid,
            "relam": oids.BTREE,
            "relkind": "i",
            "relreplident": "n",
            "relnatts": len(_index_columns(table, index)),
        }


def _options_of(catalog: SystemCatalog, table: Descriptor) -> tuple[str, ...] | None:
    """Return what WITH (…) says of a view; None: nothing, as of a table."""
    view = catalog.access.views.get(table.table_id)
    return (view.options if view is not None else ()) or None


def _relation_kind(table: Descriptor) -> str:
    if is_view_id(table.table_id):
        return "v"
    return "r" if table.sequence is None else "S"


def _descriptions(catalog: SystemCatalog) -> Iterator[Row]:
    for (oid, of_catalog, number), said in catalog.comments.items():
        yield {
            "objoid": oid,
            "classoid": oids.RELATIONS[of_catalog],
            "objsubid": number,
            "description": said,
        }


def _views(catalog: SystemCatalog) -> Iterator[Row]:
    for view in catalog.views:
        yield {
            "schemaname": schema_shown(view),
            "viewname": view.name,
            "viewowner": catalog.role_name(catalog.access.owner_of(view.table_id)),
            "definition": catalog.view_text(oids.table_oid(view.table_id)),
        }


def _tables(catalog: SystemCatalog) -> Iterator[Row]:
    common = {"hastriggers": 0, "rowsecurity": 0}
    for table in catalog.base_tables:
        keys = any(c.kind == "f" for c in catalog.concerned.get(table.table_id, []))
        indexed = int(any(True for _ in catalog.indexes_of(table)))
        owner = catalog.role_name(catalog.access.owner_of(table.table_id))
        schema = schema_shown(table)
        named = {"schemaname": schema, "tablename": table.name, "tableowner": owner}
        yield {**common, **named, "hasindexes": indexed, "hastriggers": int(keys)}
    for schema, name in SYSTEM_OIDS:
        if not is_view(name):
            named = {"schemaname": schema, "tablename": name, "tableowner": catalog.user}
            yield {**common, **named, "hasindexes": 0}


def _counted_tables(catalog: SystemCatalog) -> Iterator[Row]:
    for table in catalog.base_tables:
        yield {
            "relid": oids.table_oid(table.table_id),
            "schemaname": schema_shown(table),
            "relname": table.name,
        }


def _counted_indexes(catalog: SystemCatalog) -> Iterator[Row]:
    for table, _, name, oid in catalog.indexes:
        yield {
            "relid": oids.table_oid(table.table_id),
            "indexrelid": oid,
            "schemaname": schema_shown(table),
            "relname": table.name,
            "indexrelname": name,
        }


def _index_definitions(catalog: SystemCatalog) -> Iterator[Row]:
    for table, _, name, oid in catalog.indexes:
        named = {"schemaname": schema_shown(table), "tablename": table.name, "indexname": name}
        yield {**named, "indexdef": catalog.index_text(oid)}


def _settings(catalog: SystemCatalog) -> Iterator[Row]:
    for name, value in catalog.settings.items():
        known = SETTINGS.get(name)
        yield {
            "name": name if known is None else known.name,
            "setting": value,
            "context": "user",
            "vartype": "string",
            "source": "session",
            "reset_val": value,
            "pending_restart": 0,
        }


def _attributes(catalog: SystemCatalog) -> Iterator[Row]:
    for table in catalog.tables:
        oid = oids.table_oid(table.table_id)
        for number, column in enumerate(text.columns_of(table), 1):
            yield {
                **attribute_row(oid, number, column.name, column.type),
                "attnotnull": int(not column.nullable),
                "atthasdef": int(text.shown_default(column) is not None),
                "attidentity": column.identity,
                "attgenerated": "s" if column.generated else "",
                "attacl": acl_texts(catalog, recorded(catalog, table.table_id, column.element_id)),
            }
    for table, index, _, oid in catalog.indexes:
        names = text.index_names(table, index)
        kinds = _index_types(table, index)
        for number, (name, kind) in enumerate(zip(names, kinds, strict=True), 1):
            yield attribute_row(oid, number, name, kind)


def _defaults(catalog: SystemCatalog) -> Iterator[Row]:
    for table in catalog.base_tables:
        for number, column in enumerate(text.columns_of(table), 1):
            default = text.shown_default(column)
            if default is not None:
                oid = oids.element_oid(table.table_id, column.element_id)
                relation = oids.table_oid(table.table_id)
                yield {"oid": oid, "adrelid": relation, "adnum": number, "adbin": default}


def _indexes(catalog: SystemCatalog) -> Iterator[Row]:
    for table, index, _, oid in catalog.indexes:
        columns = _index_columns(table, index)
        keys = table.primary_key if index is None else index.columns
        kinds = _index_types(table, index)[: len(keys)]
        yield {
            "indexrelid": oid,
            "indrelid": oids.table_oid(table.table_id),
            "indnatts": len(columns),
            "indnkeyatts": len(keys),
            "indisunique": int(index is None or index.unique),
            "indnullsnotdistinct": int(index is not None and index.equal_nulls),
            "indisprimary": int(index is None),
            **dict.fromkeys(("indisvalid", "indisready", "indislive"), 1),
            "indimmediate": int(index is None or not index.deferrable),
            "indkey": numbers_of(table, columns),
            "indcollation": tuple(map(collation_of, kinds)),
            "indclass": classes_of_key(kinds, index),
            "indoption": _options(index, len(keys)),
            "indexprs": ", ".join(index.expressions) or None if index is not None else None,
            "indpred": index.predicate or None if index is not None else None,
        }


def _options(index: Index | None, width: int) -> tuple[int, ...]:
    """Return the bits that PostgreSQL has for each key: 1 DESC, 2 NULLS FIRST."""
    if index is None or not index.orders:
        return (0,) * width
    return tuple(map(_option, index.orders))


def _option(order: str) -> int:
    words = order.split()
    descending = "DESC" in words
    nulls_first = "FIRST" in words or (descending and "LAST" not in words)
    return descending + 2 * nulls_first


def _constraint_rows(catalog: SystemCatalog) -> Iterator[Row]:
    for entry in catalog.constraints:
        parent = entry.parent
        row: dict[str, Any] = {
            "oid": entry.oid,
            "conname": entry.name,
            "contype": entry.kind,
            "connamespace": catalog.namespace_of(entry.table),
            "convalidated": int(entry.valid),
            "conislocal": 1,
            "conrelid": oids.table_oid(entry.table.table_id),
            "conindid": entry.rests_on,
            "connoinherit": int(entry.kind != "c"),
            "conkey": numbers_of(entry.table, entry.columns),
            "conbin": entry.expression,
            "condeferrable": int(bool(entry.deferrable)),
            "condeferred": int(entry.deferrable == "deferred"),
        }
        key = entry.foreign
        if parent is not None and key is not None:
            row |= {"confrelid": oids.table_oid(parent.table_id)}
            row |= {"confmatchtype": "f" if key.full else "s"}
            row |= {"confupdtype": _ACTIONS[key.on_update]}
            row |= {"confdeltype": _ACTIONS[key.on_delete]}
            if key.delete_sets:
                row["confdelsetcols"] = numbers_of(entry.table, key.delete_sets)
            row["confkey"] = numbers_of(parent, entry.parent_columns)
        yield row


def built_in_types() -> Iterator[Row]:
    """Give the rows of pg_type that are the same in every database."""
    common = {"typnamespace": oids.CATALOG_NAMESPACE, "typowner": oids.OWNER}
    common |= {"typisdefined": 1, "typtypmod": -1}
    for name, numbers in BY_NAME.items():
        called = text.PG_NAMES.get(name, name)
        collation = oids.DEFAULT_COLLATION if name in COLLATED else 0
        yield {
            **common,
            "oid": numbers.oid,
            "typname": called,
            "typlen": numbers.size,
            "typtype": "p" if name in ("void", "record") else "b",
            "typdelim": ",",
            "typbyval": int(0 < numbers.size <= 8),
            "typstorage": text.storage_of(Type(name)),
            "typalign": text.alignment_of(Type(name)),
            "typcategory": CATEGORIES.get(name, "U"),
            "typispreferred": int(name in PREFERRED),
            "typarray": numbers.array_oid,
            "typcollation": collation,
            "typelem": _ELEMENTS.get(name, 0),
            **columns_of(name),
        }
        if numbers.array_oid:
            yield {
                **common,
                "oid": numbers.array_oid,
                "typname": f"_{called}",
                "typlen": -1,
                "typtype": "p" if name == "record" else "b",
                "typdelim": ",",
                "typcategory": "A",
                "typelem": numbers.oid,
                "typstorage": "x",
                "typalign": "d" if text.alignment_of(Type(name)) == "d" else "i",
                "typcollation": collation,
                **columns_of("[]"),
            }


def _types(catalog: SystemCatalog) -> Iterator[Row]:
    yield from built_in_types()
    yield from row_type_rows(catalog)
    for enum in catalog.access.enums.values():
        common: dict[str, Any] = {
            "typnamespace": catalog.namespaces[enum.schema or PUBLIC],
            "typowner": catalog.access.owner_of(enum.type_id),
            "typisdefined": 1,
            "typtypmod": -1,
            "typdelim": ",",
            "typalign": ENUM.alignment,
        }
        oid, array_oid = enum_oid(enum.type_id), enum_oid(enum.type_id, array=True)
        yield {
            **common,
            "oid": oid,
            "typname": enum.bare_name,
            "typlen": ENUM.size,
            "typtype": "e",
            "typbyval": 1,
            "typstorage": "p",
            "typcategory": ENUM.category,
            "typarray": array_oid,
            **columns_of(ENUM.name),
        }
        yield {
            **common,
            "oid": array_oid,
            "typname": f"_{enum.bare_name}",
            "typlen": -1,
            "typtype": "b",
            "typstorage": "x",
            "typcategory": "A",
            "typelem": oid,
            **columns_of("[]"),
        }


def _labels(catalog: SystemCatalog) -> Iterator[Row]:
    for enum in catalog.access.enums.values():
        for label in enum.labels:
            yield {
                "oid": label_oid(enum.type_id, label.place),
                "enumtypid": enum_oid(enum.type_id),
                "enumsortorder": label.place / STEP,
                "enumlabel": label.text,
            }


def numbers_of(table: Descriptor, element_ids: Iterable[int]) -> tuple[int, ...]:
    """attnum of columns; 0 of an expression."""
    numbers = {column.element_id: n for n, column in enumerate(text.columns_of(table), 1)}
    return tuple(numbers.get(element, 0) for element in element_ids)


def _index_columns(table: Descriptor, index: Index | None) -> tuple[int, ...]:
    keys = table.primary_key if index is None else index.columns
    return (*keys, *text.included_of(table, index))


def _index_types(table: Descriptor, index: Index | None) -> list[Type]:
    keys = () if index is None else key_types(table, index)
    rest = _index_columns(table, index)[len(keys) :]
    return [*keys, *(table.by_id[element].type for element in rest)]


def _namespaces(catalog: SystemCatalog) -> Iterator[Row]:
    for name, oid in catalog.namespaces.items():
        made = catalog.access.namespaces_by_name.get(name)
        acl = None if made is None else recorded(catalog, made.namespace_id)
        owner = catalog.owner_of_namespace(name)
        shown = acl_texts(catalog, acl)
        if name == PUBLIC:  # which all may use; pg_dump takes NULL for what nobody may
            shown = acl_of_public(catalog.role_name(owner))
        yield {"oid": oid, "nspname": name, "nspowner": owner, "nspacl": shown}


def _rewrites(catalog: SystemCatalog) -> Iterator[Row]:
    """The rule that each view is in PostgreSQL, by which clients find what it rests on."""
    for view in catalog.access.views.values():
        yield {
            "oid": oids.rule_oid(view.table_id),
            "rulename": "_RETURN",
            "ev_class": oids.table_oid(view.table_id),
            "ev_type": "1",
            "ev_enabled": "O",
            "is_instead": 1,
            "ev_qual": "",
            "ev_action": "",
        }


def _dependencies(catalog: SystemCatalog) -> Iterator[Row]:
    yield from dependencies(catalog)
    relation = oids.RELATIONS["pg_class"]
    for view in catalog.access.views.values():
        common = {
            "classid": oids.RELATIONS["pg_rewrite"],
            "objid": oids.rule_oid(view.table_id),
            "objsubid": 0,
            "refclassid": relation,
        }
        own = oids.table_oid(view.table_id)
        yield {**common, "refobjid": own, "refobjsubid": 0, "deptype": "i"}
        for oid, number in catalog.view_rests_on(view):
            yield {**common, "refobjid": oid, "refobjsubid": number, "deptype": "n"}


def _access_methods(_: SystemCatalog) -> Iterator[Row]:
    yield {"oid": oids.HEAP, "amname": "heap", "amtype": "t", "amhandler": "heap_tableam_handler"}
    yield {"oid": oids.BTREE, "amname": "btree", "amtype": "i", "amhandler": "bthandler"}


def _databases(catalog: SystemCatalog) -> Iterator[Row]:
    yield {**_DATABASE, **of_database(catalog), "datname": catalog.database}


_ROWS: Final[Mapping[str, Callable[[SystemCatalog], Iterable[Row]]]] = {
    "pg_namespace": _namespaces,
    "pg_class": _classes,
    "pg_attribute": _attributes,
    "pg_attrdef": _defaults,
    "pg_index": _indexes,
    "pg_constraint": _constraint_rows,
    "pg_type": _types,
    "pg_enum": _labels,
    "pg_proc": lambda _: function_rows(),
    "pg_am": _access_methods,
    "pg_opclass": lambda _: operator_classes(),
    "pg_opfamily": lambda _: operator_families(),
    "pg_collation": lambda _: [_COLLATION],
    "pg_database": _databases,
    "pg_roles": roles_view,
    "pg_db_role_setting": setting_rows,
    "pg_authid": authid_rows,
    "pg_auth_members": membership_rows,
    "pg_user": users_view,
    "pg_shadow": shadow_view,
    "pg_group": groups_view,
    "pg_tablespace": lambda _: _TABLESPACES,
    "pg_tables": _tables,
    "pg_views": _views,
    "pg_description": _descriptions,
    "pg_indexes": _index_definitions,
    "pg_settings": _settings,
    **{
        f"pg_{counts}_{whose}_tables": _counted_tables
        for counts in ("stat", "statio")
        for whose in ("all", "user")
    },
    **{
        f"pg_{counts}_{whose}_indexes": _counted_indexes
        for counts in ("stat", "statio")
        for whose in ("all", "user")
    },
    "pg_sequence": sequence_rows,
    "pg_sequences": sequences_view,
    "pg_depend": _dependencies,
    "pg_rewrite": _rewrites,
}
