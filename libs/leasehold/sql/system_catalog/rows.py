"""Descriptors → rows of pg_catalog and information_schema, and what functions tell of them.

Only what is public exists here. A row is given by the columns that say something; the others have
PostgreSQL's usual value: NULL where that may stand, else zero, false or an empty text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from leasehold.catalog import definitions as text
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ForeignKey, Index, OnChange
from leasehold.catalog.schema_names import INFORMATION_SCHEMA, PG_CATALOG
from leasehold.catalog.states import READABLE
from leasehold.sql.expressions.key_types import key_types
from leasehold.sql.session_settings import SETTINGS
from leasehold.sql.system_catalog import oids
from leasehold.sql.system_catalog.information_schema import information_rows
from leasehold.sql.system_catalog.names import NAMESPACES, SYSTEM_NAMES, SYSTEM_OIDS, CatalogNames
from leasehold.sql.system_catalog.relations import RELATIONS
from leasehold.sql.system_catalog.sequences import (
    LastValue,
    dependencies,
    sequence_rows,
    sequences_view,
)
from leasehold.sql.system_catalog.system_rows import is_view, system_rows
from leasehold.values.catalog_types import REGISTERED
from leasehold.values.oids import NUMBERS, modifier_of, oid_of, size_of
from leasehold.values.types import SYNONYMS, VECTORS, Type

Row = Mapping[str, Any]

_CATEGORIES: Final[Mapping[str, str]] = {
    "boolean": "B",
    '"char"': "Z",
    **dict.fromkeys(("bigint", "smallint", "integer", "double precision", "numeric", "oid"), "N"),
    **dict.fromkeys(("text", "varchar", "char", "name"), "S"),
    **dict.fromkeys(("date", "timestamp", "timestamptz"), "D"),
    "interval": "T",
    "void": "P",
    **dict.fromkeys(REGISTERED, "N"),
    **dict.fromkeys(VECTORS, "A"),
}
_ELEMENTS: Final = {
    "name": NUMBERS['"char"'].oid,
    **{vector: NUMBERS[element].oid for vector, element in VECTORS.items()},
}
_PREFERRED: Final = frozenset(
    {"boolean", "text", "oid", "double precision", "timestamptz", "interval"}
)
_ARRAY: Final = re.compile(r"(?:\[[0-9]*\])+")
_MODIFIERS: Final = frozenset("0123456789, ")
_ZONES: Final = frozenset({"", " with time zone", " without time zone"})
_COLLATED: Final = frozenset({"text", "varchar", "char"})


def _type_parts(text: str) -> tuple[str, bool] | None:
    """The type that is named, without a length, and whether an array of it is meant."""
    said, bracket, arrays = text.strip().lower().partition("[")
    if bracket and not _ARRAY.fullmatch(bracket + arrays):
        return None
    name, parenthesis, more = said.rstrip().partition("(")
    modifiers, closed, zone = more.partition(")")
    if parenthesis and not (closed and _MODIFIERS.issuperset(modifiers) and zone in _ZONES):
        return None
    plain = name.rstrip().removeprefix("pg_catalog.").lstrip()
    return (plain + zone, bool(bracket)) if plain else None


class IndexEntry(NamedTuple):
    """An index that a query may know of; `element` None: the primary key's."""

    table: Descriptor
    element: Index | None
    name: str
    oid: int


_ACTIONS: Final = {
    OnChange.NO_ACTION: "a",
    OnChange.RESTRICT: "r",
    OnChange.CASCADE: "c",
    OnChange.SET_NULL: "n",
    OnChange.SET_DEFAULT: "d",
}


class ConstraintEntry(NamedTuple):
    """`kind`: p, u, c or f. `rests_on`: the oid of an index, or 0."""

    table: Descriptor
    name: str
    oid: int
    kind: str
    columns: tuple[int, ...]
    definition: str
    rests_on: int = 0
    parent: Descriptor | None = None
    parent_columns: tuple[int, ...] = ()
    expression: str | None = None
    foreign: ForeignKey | None = None


class SystemCatalog:
    """What a database looks like to its clients, at one version of each of its tables."""

    def __init__(
        self,
        tables: Iterable[Descriptor],
        database: str,
        user: str,
        settings: Mapping[str, str] | None = None,
        last_value: LastValue = lambda _: None,
    ) -> None:
        """`settings`: of the session that asks; `last_value`: of a sequence."""
        self.last_value = last_value
        self.database, self.user = database, user
        self.settings = settings or {}
        self.tables = sorted(
            (table for table in tables if table.state in READABLE), key=lambda table: table.name
        )
        self.base_tables = [table for table in self.tables if table.sequence is None]
        self.sequences = [table for table in self.tables if table.sequence is not None]

    def rows(self, schema: str, name: str) -> list[tuple[Any, ...]]:
        """Rows of one of RELATIONS, values for all of its columns."""
        relation = RELATIONS[schema, name]
        made = [relation.whole(row) for row in self._rows_of(schema, name)]
        return [*made, *system_rows(name)] if schema == PG_CATALOG else made

    @cached_property
    def names(self) -> CatalogNames:
        return CatalogNames(self)

    # --- what functions tell ----------------------------------------------------------------

    def index_text(self, oid: int, column: int = 0, *, pretty: bool = False) -> str | None:
        """CREATE INDEX …, or what stands in the key at `column`, from 1."""
        for table, index, name, found in self.indexes:
            if found == oid:
                if not column:
                    return text.index_text(table, index, name, pretty=pretty)
                parts = text.index_parts(table, index)
                return parts[column - 1] if 0 < column <= len(parts) else ""
        return None

    def definition(self, oid: int, *, pretty: bool = True) -> str | None:
        """Of a constraint."""
        found = self._definitions.get(oid)
        if found is None or pretty or not found.startswith("CHECK"):
            return found
        return f"CHECK ({text.parenthesize(found[7:-1])})"

    def user_name(self, oid: int) -> str:
        return self.user if oid == oids.OWNER else f"unknown (OID={oid})"

    def is_visible(self, oid: int) -> int | None:
        """Does its bare name mean this relation? None: it is none."""
        if oid in SYSTEM_NAMES:
            return int(SYSTEM_NAMES[oid][0] == PG_CATALOG)
        if oid not in self._names:
            return None
        return int((PG_CATALOG, self._names[oid]) not in SYSTEM_OIDS)

    def relation_oid(self, name: str) -> int | None:
        """Of a table or an index; None: there is none."""
        return next((oid for oid, known in self._names.items() if known == name), None)

    def has_relation(self, oid: int) -> bool:
        """A table, an index, a sequence, or one of the catalog's."""
        return oid in self._names or oid in SYSTEM_NAMES

    def relation(self, oid: int) -> Descriptor | None:
        """A table or a sequence."""
        return self._by_oid.get(oid)

    @cached_property
    def _by_oid(self) -> dict[int, Descriptor]:
        return {oids.table_oid(table.table_id): table for table in self.tables}

    def serial_sequence(self, name: str, column: str) -> str | None:
        """What pg_get_serial_sequence tells. Raises UnknownTable, UnknownColumn."""
        table = self.relation(self.names.oid("regclass", name))
        if table is None:
            return None
        own = map(self.sequence, table.column(column).own_sequences)
        found = next((sequence for sequence in own if sequence is not None), None)
        return None if found is None else f"public.{text.quoted(found.name)}"

    def sequence(self, sequence_id: int) -> Descriptor | None:
        return self._by_id.get(sequence_id)

    def relation_name(self, oid: int) -> str:
        """What regclass shows."""
        if oid in self._names:
            return text.quoted(self._names[oid])
        schema, name = SYSTEM_NAMES.get(oid, ("", str(oid)))
        return name if schema in ("", PG_CATALOG) else f"{schema}.{name}"

    def type_oid(self, name: str) -> int | None:
        """`int4`, `numeric(8, 2)[]`, `pg_catalog.bool`: a length says nothing."""
        said = _type_parts(name)
        if said is None:
            return None
        plain, is_array = said
        known = SYNONYMS.get(plain, plain)
        names = {plain, known}
        if known in ("char", '"char"'):  # two types, of which the first one is bpchar's
            names = {"bpchar" if known == "char" else "char"}
        for row in self._types():
            if not names.isdisjoint((row["typname"], text.format_type(row["oid"], None))):
                return int(row["typarray"] if is_array else row["oid"]) or None
        return None

    # --- what there is -----------------------------------------------------------------------

    @cached_property
    def indexes(self) -> list[IndexEntry]:
        found = []
        for table in self.base_tables:
            oid = oids.element_oid(table.table_id, oids.PRIMARY_KEY)
            if not table.hidden_key:
                found.append(IndexEntry(table, None, table.key_constraint, oid))
            for index in table.indexes:
                if index.state in READABLE and not index.implied:
                    oid = oids.element_oid(table.table_id, index.element_id)
                    found.append(IndexEntry(table, index, index.name, oid))
        return found

    @cached_property
    def constraints(self) -> list[ConstraintEntry]:
        return [entry for table in self.base_tables for entry in self._constraints_of(table)]

    @cached_property
    def _by_id(self) -> dict[int, Descriptor]:
        return {table.table_id: table for table in self.tables}

    @cached_property
    def _names(self) -> dict[int, str]:
        names = {oids.table_oid(table.table_id): table.name for table in self.tables}
        return names | {entry.oid: entry.name for entry in self.indexes}

    @cached_property
    def _definitions(self) -> dict[int, str]:
        return {entry.oid: entry.definition for entry in self.constraints}

    def _constraints_of(self, table: Descriptor) -> Iterator[ConstraintEntry]:
        for _, index, name, oid in self.indexes_of(table):
            if index is None:
                key, definition = table.primary_key, text.primary_key_text(table)
                # An index and its constraint are two things with two numbers.
                yield ConstraintEntry(table, name, ~oid & _MASK, "p", key, definition, oid)
            elif index.constraint and index.unique:
                definition = text.unique_text(table, index)
                number = ~oid & _MASK
                yield ConstraintEntry(table, name, number, "u", index.columns, definition, oid)
        for check in table.checks:
            if check.state in READABLE:
                oid = oids.element_oid(table.table_id, check.element_id)
                definition = text.check_text(check)
                yield ConstraintEntry(
                    *(table, check.name, oid, "c", check.columns, definition),
                    expression=check.expression,
                )
        for key_ in table.foreign_keys:
            parent = self._by_id.get(key_.parent)
            if key_.state in READABLE and parent is not None:
                oid = oids.element_oid(table.table_id, key_.element_id)
                under = oids.element_oid(parent.table_id, key_.parent_index or oids.PRIMARY_KEY)
                definition = text.foreign_key_text(table, key_, parent)
                yield ConstraintEntry(
                    *(table, key_.name, oid, "f", key_.columns, definition, under),
                    parent=parent,
                    parent_columns=key_.parent_columns,
                    foreign=key_,
                )

    def indexes_of(self, table: Descriptor) -> list[IndexEntry]:
        return self._indexes_by_table.get(table.table_id, [])

    @cached_property
    def _indexes_by_table(self) -> dict[int, list[IndexEntry]]:
        found: dict[int, list[IndexEntry]] = defaultdict(list)
        for entry in self.indexes:
            found[entry.table.table_id].append(entry)
        return found

    @cached_property
    def _concerned(self) -> dict[int, list[ConstraintEntry]]:
        """By table: the constraints that it has, and those that refer to it."""
        found: dict[int, list[ConstraintEntry]] = defaultdict(list)
        for entry in self.constraints:
            tables = {entry.table.table_id, (entry.parent or entry.table).table_id}
            for table_id in tables:
                found[table_id].append(entry)
        return found

    # --- rows --------------------------------------------------------------------------------

    def _rows_of(self, schema: str, name: str) -> Iterable[Row]:
        if schema == INFORMATION_SCHEMA:
            return information_rows(self, name)
        made: Mapping[str, Callable[[], Iterable[Row]]] = {
            "pg_namespace": _namespaces,
            "pg_class": self._classes,
            "pg_attribute": self._attributes,
            "pg_attrdef": self._defaults,
            "pg_index": self._indexes,
            "pg_constraint": self._constraint_rows,
            "pg_type": self._types,
            "pg_am": _access_methods,
            "pg_collation": lambda: [_COLLATION],
            "pg_database": lambda: [{**_DATABASE, "datname": self.database}],
            "pg_roles": lambda: [{**_ROLE, "rolname": self.user}],
            "pg_user": lambda: [{**_USER, "usename": self.user}],
            "pg_tablespace": lambda: _TABLESPACES,
            "pg_tables": self._tables,
            "pg_indexes": self._index_definitions,
            "pg_settings": self._settings,
            "pg_sequence": lambda: sequence_rows(self),
            "pg_sequences": lambda: sequences_view(self),
            "pg_depend": lambda: dependencies(self),
        }
        return made[name]() if name in made else ()

    def _classes(self) -> Iterator[Row]:
        common: dict[str, Any] = {"relnamespace": oids.PUBLIC_NAMESPACE, "relowner": oids.OWNER}
        common |= {"relpersistence": "p", "relispopulated": 1, "reltuples": -1.0}
        for table in self.tables:
            oid = oids.table_oid(table.table_id)
            concerned = self._concerned.get(table.table_id, [])
            yield {
                **common,
                "oid": oid,
                "relname": table.name,
                "relfilenode": oid,
                "relam": oids.HEAP if table.sequence is None else 0,
                "relkind": "r" if table.sequence is None else "S",
                "relhasindex": int(bool(self.indexes_of(table))),
                "relreplident": "d" if table.sequence is None else "n",
                "relnatts": len(text.columns_of(table)),
                "relchecks": sum(c.kind == "c" and c.table is table for c in concerned),
                "relhastriggers": int(any(c.kind == "f" for c in concerned)),
            }
        for table, index, name, oid in self.indexes:
            yield {
                **common,
                "oid": oid,
                "relname": name,
                "relfilenode": oid,
                "relam": oids.BTREE,
                "relkind": "i",
                "relreplident": "n",
                "relnatts": len(_index_columns(table, index)),
            }

    def _tables(self) -> Iterator[Row]:
        common = {"tableowner": self.user, "hastriggers": 0, "rowsecurity": 0}
        for table in self.base_tables:
            keys = any(c.kind == "f" for c in self._concerned.get(table.table_id, []))
            indexed = int(any(True for _ in self.indexes_of(table)))
            named = {"schemaname": "public", "tablename": table.name}
            yield {**common, **named, "hasindexes": indexed, "hastriggers": int(keys)}
        for schema, name in SYSTEM_OIDS:
            if not is_view(name):
                yield {**common, "schemaname": schema, "tablename": name, "hasindexes": 0}

    def _index_definitions(self) -> Iterator[Row]:
        for table, _, name, oid in self.indexes:
            named = {"schemaname": "public", "tablename": table.name, "indexname": name}
            yield {**named, "indexdef": self.index_text(oid)}

    def _settings(self) -> Iterator[Row]:
        for name, value in self.settings.items():
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

    def _attributes(self) -> Iterator[Row]:
        for table in self.tables:
            oid = oids.table_oid(table.table_id)
            for number, column in enumerate(text.columns_of(table), 1):
                yield {
                    **_attribute(oid, number, column.name, column.type),
                    "attnotnull": int(not column.nullable),
                    "atthasdef": int(text.shown_default(column) is not None),
                    "attidentity": column.identity,
                    "attgenerated": "s" if column.generated else "",
                }
        for table, index, _, oid in self.indexes:
            names = text.index_names(table, index)
            kinds = _index_types(table, index)
            for number, (name, kind) in enumerate(zip(names, kinds, strict=True), 1):
                yield _attribute(oid, number, name, kind)

    def _defaults(self) -> Iterator[Row]:
        for table in self.base_tables:
            for number, column in enumerate(text.columns_of(table), 1):
                default = text.shown_default(column)
                if default is not None:
                    oid = oids.element_oid(table.table_id, column.element_id)
                    relation = oids.table_oid(table.table_id)
                    yield {"oid": oid, "adrelid": relation, "adnum": number, "adbin": default}

    def _indexes(self) -> Iterator[Row]:
        for table, index, _, oid in self.indexes:
            columns = _index_columns(table, index)
            keys = table.primary_key if index is None else index.columns
            yield {
                "indexrelid": oid,
                "indrelid": oids.table_oid(table.table_id),
                "indnatts": len(columns),
                "indnkeyatts": len(keys),
                "indisunique": int(index is None or index.unique),
                "indisprimary": int(index is None),
                **dict.fromkeys(("indimmediate", "indisvalid", "indisready", "indislive"), 1),
                "indkey": numbers_of(table, columns),
                **{name: (0,) * len(keys) for name in ("indcollation", "indclass", "indoption")},
                "indexprs": ", ".join(index.expressions) or None if index is not None else None,
                "indpred": index.predicate or None if index is not None else None,
            }

    def _constraint_rows(self) -> Iterator[Row]:
        for entry in self.constraints:
            parent = entry.parent
            row: dict[str, Any] = {
                "oid": entry.oid,
                "conname": entry.name,
                "contype": entry.kind,
                "connamespace": oids.PUBLIC_NAMESPACE,
                "convalidated": 1,
                "conislocal": 1,
                "conrelid": oids.table_oid(entry.table.table_id),
                "conindid": entry.rests_on,
                "connoinherit": int(entry.kind != "c"),
                "conkey": numbers_of(entry.table, entry.columns),
                "conbin": entry.expression,
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

    def _types(self) -> Iterator[Row]:
        common = {"typnamespace": oids.CATALOG_NAMESPACE, "typowner": oids.OWNER}
        common |= {"typisdefined": 1, "typtypmod": -1}
        for name, numbers in NUMBERS.items():
            called = text.PG_NAMES.get(name, name)
            collation = oids.DEFAULT_COLLATION if name in _COLLATED else 0
            yield {
                **common,
                "oid": numbers.oid,
                "typname": called,
                "typlen": numbers.size,
                "typtype": "p" if name == "void" else "b",
                "typdelim": ",",
                "typbyval": int(0 < numbers.size <= 8),
                "typstorage": text.storage_of(Type(name)),
                "typalign": text.alignment_of(Type(name)),
                "typcategory": _CATEGORIES.get(name, "U"),
                "typispreferred": int(name in _PREFERRED),
                "typarray": numbers.array_oid,
                "typcollation": collation,
                "typelem": _ELEMENTS.get(name, 0),
                "typinput": f"{called}in",
                "typoutput": f"{called}out",
            }
            if numbers.array_oid:
                yield {
                    **common,
                    "oid": numbers.array_oid,
                    "typname": f"_{called}",
                    "typlen": -1,
                    "typtype": "b",
                    "typdelim": ",",
                    "typcategory": "A",
                    "typelem": numbers.oid,
                    "typstorage": "x",
                    "typalign": "d" if text.alignment_of(Type(name)) == "d" else "i",
                    "typcollation": collation,
                    "typinput": "array_in",
                    "typoutput": "array_out",
                }


def numbers_of(table: Descriptor, element_ids: Iterable[int]) -> tuple[int, ...]:
    """attnum of columns; 0 of an expression."""
    numbers = {column.element_id: n for n, column in enumerate(text.columns_of(table), 1)}
    return tuple(numbers.get(element, 0) for element in element_ids)


def _index_columns(table: Descriptor, index: Index | None) -> tuple[int, ...]:
    return table.primary_key if index is None else (*index.columns, *index.included)


def _index_types(table: Descriptor, index: Index | None) -> list[Type]:
    keys = () if index is None else key_types(table, index)
    rest = _index_columns(table, index)[len(keys) :]
    return [*keys, *(table.by_id[element].type for element in rest)]


def _attribute(relation: int, number: int, name: str, kind: Type) -> dict[str, Any]:
    return {
        "attrelid": relation,
        "attname": name,
        "attnum": number,
        "atttypid": oid_of(kind),
        "atttypmod": modifier_of(kind),
        "attlen": size_of(kind),
        "attstattarget": -1,
        "attcacheoff": -1,
        "attislocal": 1,
        "attbyval": int(0 < size_of(kind) <= 8),
        "attstorage": text.storage_of(kind),
        "attalign": text.alignment_of(kind),
        "attcollation": oids.DEFAULT_COLLATION if kind.name in _COLLATED else 0,
    }


def _namespaces() -> Iterator[Row]:
    for name, oid in NAMESPACES.items():
        yield {"oid": oid, "nspname": name, "nspowner": oids.OWNER}


def _access_methods() -> Iterator[Row]:
    yield {"oid": oids.HEAP, "amname": "heap", "amtype": "t", "amhandler": "heap_tableam_handler"}
    yield {"oid": oids.BTREE, "amname": "btree", "amtype": "i", "amhandler": "bthandler"}


_MASK: Final = 0xFFFF_FFFF
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
    "datdba": oids.OWNER,
    "encoding": _UTF8,
    "datlocprovider": "c",
    "datallowconn": 1,
    "datconnlimit": -1,
    "datcollate": "C.UTF-8",
    "datctype": "C.UTF-8",
    "dattablespace": 1663,
}
_USER: Final[Row] = {"usesysid": oids.OWNER, "usecreatedb": 1, "usesuper": 1}
_TABLESPACES: Final[tuple[Row, ...]] = (
    {"oid": 1663, "spcname": "pg_default", "spcowner": oids.OWNER},
    {"oid": 1664, "spcname": "pg_global", "spcowner": oids.OWNER},
)
_ROLE: Final[Row] = {
    "oid": oids.OWNER,
    "rolsuper": 1,
    "rolinherit": 1,
    "rolcreatedb": 1,
    "rolcanlogin": 1,
    "rolconnlimit": -1,
}
