"""A database as its clients see it: what functions tell of it, and what its system relations show.

Only what is public exists here, and constraints that are enforced and stay NOT VALID. A row is
given by the columns that say something; the others have PostgreSQL's usual value: NULL where that
may stand, else zero, false or an empty text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

from leasehold.catalog import definitions as text
from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, ForeignKey, Index
from leasehold.catalog.enum_types import as_called
from leasehold.catalog.job import Job
from leasehold.catalog.namespaces import (
    COMMENT_ON_PUBLIC,
    PUBLIC_ID,
    as_shown,
    qualified,
    schema_shown,
)
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.catalog.schema_names import PG_CATALOG, PUBLIC, TEMPORARY_SCHEMA
from leasehold.catalog.search_path import schemas_of
from leasehold.catalog.states import READABLE, State
from leasehold.catalog.view import View, is_view_id
from leasehold.sql.session.search_path import qualify
from leasehold.sql.system_catalog import oids
from leasehold.sql.system_catalog.expression_text import show_expression
from leasehold.sql.system_catalog.information_schema import information_rows
from leasehold.sql.system_catalog.names import (
    FUNCTION_TYPES_SHOWN,
    NAMESPACES,
    SYSTEM_NAMES,
    SYSTEM_OIDS,
    CatalogNames,
)
from leasehold.sql.system_catalog.pg_catalog import built_in_types, catalog_rows
from leasehold.sql.system_catalog.relations import RELATIONS
from leasehold.sql.system_catalog.rights import Rights
from leasehold.sql.system_catalog.roles import check_may_read, default_acl
from leasehold.sql.system_catalog.sequences import (
    LastValue,
)
from leasehold.sql.system_catalog.system_rows import system_rows
from leasehold.sql.system_catalog.view_form import show_view
from leasehold.sql.system_catalog.view_text import view_text
from leasehold.values.enums import Enumeration
from leasehold.values.letters import ascii_lower
from leasehold.values.oids import enum_oid
from leasehold.values.types import SYNONYMS

Row = Mapping[str, Any]

_ARRAY: Final = re.compile(r"(?:\[[0-9]*\])+")
_ENUM_NAME: Final = re.compile(
    r'\s*+(?:(?P<within>"(?:[^"]|"")++"|[^\s".\[]++)\.)?(?:"(?P<quoted>(?:[^"]|"")++)"|(?P<bare>[^\s".\[]++))\s*+'
    r"(?P<array>(?:\[[0-9]*+\])++)?+\s*+",
    re.IGNORECASE,
)
_DRAWS: Final = re.compile(r"""nextval\('("(?:[^"']|"")++"|[^"'.]++)'::regclass\)""")
_MODIFIERS: Final = frozenset("0123456789, ")
_MASK: Final = 0xFFFF_FFFF
_NOT_VALID: Final = " NOT VALID"
_ZONES: Final = frozenset({"", " with time zone", " without time zone"})


def _within(table: Descriptor) -> str:
    return TEMPORARY_SCHEMA if table.temporary else table.schema


def _type_parts(text: str) -> tuple[str, bool] | None:
    """The type that is named, without a length, and whether an array of it is meant."""
    said, bracket, arrays = text.strip().lower().partition("[")
    if bracket and not _ARRAY.fullmatch(bracket + arrays):
        return None
    name, parenthesis, more = said.rstrip().partition("(")
    modifiers, closed, zone = more.partition(")")
    if parenthesis and not (closed and _MODIFIERS.issuperset(modifiers) and zone in _ZONES):
        return None
    plain = name.rstrip().removeprefix('"pg_catalog".').removeprefix("pg_catalog.").lstrip()
    if plain != '"char"' and len(plain) > 2 and plain[0] == plain[-1] == '"':
        plain = plain[1:-1]
    return (plain + zone, bool(bracket)) if plain else None


class IndexEntry(NamedTuple):
    """An index that a query may know of; `element` None: the primary key's."""

    table: Descriptor
    element: Index | None
    name: str
    oid: int


class ConstraintEntry(NamedTuple):
    """A constraint. `kind` is p, u, c or f; `rests_on` is the oid of an index, or 0; `valid`: all
    rows were looked at."""

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
    equal_nulls: bool = False
    valid: bool = True
    deferrable: str = ""


class SystemCatalog:
    """What a database looks like to its clients, at one version of each of its tables."""

    def __init__(
        self,
        tables: Iterable[Descriptor],
        database: str,
        user: str,
        settings: Mapping[str, str] | None = None,
        last_value: LastValue = lambda _: None,
        access: Access | None = None,
        role_id: int = BOOTSTRAP_ROLE,
        jobs: Callable[[], Iterable[Job]] = tuple,
    ) -> None:
        """Take the tables, the `settings` of the session that asks, and what tells the `last_value`
        of a sequence. `role_id` asks; `user` is how it calls the first role. `access` None: nobody
        has made roles or granted anything. `jobs`: those that have not ended."""
        self._jobs = jobs
        self.last_value = last_value
        self.access = access or Access()
        self.role_id = role_id
        self.database: str = database
        self.user: str = user
        self.settings = settings or {}
        views = self.access.views.values()
        named = sorted(views, key=lambda view: view.name)
        self.views = [as_shown(view.relation) for view in named]
        enums = self.enums_shown
        known = [
            as_called(table, enums)
            for table in tables
            # With its schema a table goes from all catalogs, before its versions are drained.
            if table.state in READABLE
            and (not table.schema or table.schema in self.access.namespaces_by_name)
        ]
        self._called = {table.table_id: table for table in known}
        there = [self._as_shown(table) for table in known]
        self.tables = sorted((*there, *self.views), key=lambda table: table.name)
        self.base_tables = [
            table
            for table in self.tables
            if table.sequence is None and not is_view_id(table.table_id)
        ]
        self.sequences = [table for table in self.tables if table.sequence is not None]

    def _as_shown(self, table: Descriptor) -> Descriptor:
        """Return a table with names that are shown beside its schema's."""
        shown = as_shown(table)
        if not self.access.namespaces:
            return shown
        columns = tuple(
            replace(column, default_expression=self._default_shown(column.default_expression))
            for column in shown.columns
        )
        return replace(shown, columns=columns)

    def _default_shown(self, default: str) -> str:
        """Return a default, which names a sequence as that is shown along the search path."""
        found = _DRAWS.fullmatch(default)
        if found is None:
            return default
        named = found[1][1:-1].replace('""', '"') if found[1].startswith('"') else found[1]
        schema, dot, name = named.partition(".")
        if not dot or schema not in self.access.namespaces_by_name:
            schema, name = PUBLIC, named
        known = {table.name for table in self._called.values()}
        there = (s for s in self.schemas if qualified("" if s == PUBLIC else s, name) in known)
        before = "" if next(there, None) == schema else f"{text.quoted(schema)}."
        shown = f"{before}{text.quoted(name)}".replace("'", "''")
        return f"nextval('{shown}'::regclass)"

    def owner_of_namespace(self, name: str) -> int:
        """Return the id of the role that owns a schema."""
        made = self.access.namespaces_by_name.get(name)
        return oids.OWNER if made is None else self.access.owner_of(made.namespace_id)

    @cached_property
    def namespaces(self) -> dict[str, int]:
        """The numbers of all schemas by name; that of temporary tables only where the session has
        some."""
        found = dict(NAMESPACES)
        for each in self.access.namespaces.values():
            found[each.name] = oids.namespace_oid(each.namespace_id)
        if any(table.temporary for table in self.tables):
            found[TEMPORARY_SCHEMA] = oids.TEMPORARY_NAMESPACE
        return found

    def namespace_of(self, table: Descriptor) -> int:
        """Return the number of the schema that a relation lies in."""
        made = self.access.namespaces_by_name.get(table.schema)  # also by its name of before
        return self.namespaces[schema_shown(table) if made is None else made.name]

    def rows(self, schema: str, name: str) -> list[tuple[Any, ...]]:
        """Rows of one of RELATIONS, values for all of its columns."""
        relation = RELATIONS[schema, name]
        made = catalog_rows if schema == PG_CATALOG else information_rows
        check_may_read(self, name)
        rows = [relation.whole(row) for row in made(self, name)]
        return [*rows, *system_rows(name)] if schema == PG_CATALOG else rows

    @cached_property
    def names(self) -> CatalogNames:
        return CatalogNames(self)

    # --- what functions tell ----------------------------------------------------------------

    def index_text(self, oid: int, column: int = 0, *, pretty: bool = False) -> str | None:
        """CREATE INDEX …, or what stands in the key at `column`, from 1."""
        for table, index, name, found in self.indexes:
            if found == oid:
                show = partial(show_expression, table=table, short=pretty)
                if not column:
                    return text.index_text(table, index, name, pretty=pretty, show=show)
                parts = text.index_parts(table, index, show)
                return parts[column - 1] if 0 < column <= len(parts) else ""
        return None

    def expression(self, said: str, oid: int, *, pretty: bool) -> str:
        """Return an expression that the catalog keeps of a relation as PostgreSQL shows it, where
        that is known."""
        table = self.relation(oid)
        shown = None if table is None else show_expression(said, table, short=pretty)
        return shown or (said if pretty else text.parenthesize(said))

    def described(self, oid: int, number: int = 0, catalog: str = "") -> str | None:
        """Return the comment on an object, or on the column of that number; `catalog`: in which of
        the catalogs that has a number, "" = any."""
        for (said_of, of_catalog, column), said in self.comments.items():
            if (said_of, column) == (oid, number) and catalog in ("", of_catalog):
                return said
        return None

    @cached_property
    def comments(self) -> dict[tuple[int, str, int], str]:
        """The comments by number of the object, catalog that has it and number of the column."""
        found: dict[tuple[int, str, int], str] = {}
        on_public = self.access.comments.get((PUBLIC_ID, 0), COMMENT_ON_PUBLIC)
        if on_public:
            found[oids.PUBLIC_NAMESPACE, "pg_namespace", 0] = on_public
        for (object_id, element_id), said in self.access.comments.items():
            if object_id in self.access.namespaces:
                found[oids.namespace_oid(object_id), "pg_namespace", 0] = said
                continue
            if object_id in self.access.enums:
                found[enum_oid(object_id), "pg_type", 0] = said
                continue
            table = self._by_id.get(object_id)
            if table is None:
                continue
            oid = oids.table_oid(object_id)
            if not element_id:
                found[oid, "pg_class", 0] = said
                continue
            places = [column.position for column in text.columns_of(table)]
            if element_id in places:
                found[oid, "pg_class", places.index(element_id) + 1] = said
                continue
            oid = oids.element_oid(object_id, abs(element_id))
            for each in self.indexes_of(table) if element_id > 0 else ():
                if each.oid == oid:
                    found[oid, "pg_class", 0] = said
            for entry in self.constraints if element_id < 0 else ():
                if entry.oid in (oid, ~oid & _MASK) and entry.table is table:
                    found[entry.oid, "pg_constraint", 0] = said
        return found

    def view_text(self, oid: int, *, pretty: bool = False) -> str | None:
        """Return the query of a view, "" of another relation, None where there is none."""
        found = self.relation(oid)
        if found is None:
            return None
        view = self.access.views.get(found.table_id)
        if view is None:
            return ""
        form = show_view(view, self._called, self.access.views, self.schemas, short=pretty)
        if form is not None:
            return f"{form};"
        shown = view_text(view, self._called, self.access.views)
        if PUBLIC not in self.schemas:  # as pg_dump asks, whose text has to mean the same there
            shown = qualify(shown, self._schema_in_view, "").text
        return f" {shown};"

    def _schema_in_view(self, name: str, is_type: bool) -> str:
        """Return the schema to be put before a name in a view's text, where one without is of
        public, or PostgreSQL's own."""
        if is_type:
            return PUBLIC if self.access.find_enum(name) is not None else ""
        return PUBLIC if self.relation_oid(name, "") is not None else ""

    def view_rests_on(self, view: View) -> Iterator[tuple[int, int]]:
        """Yield the number of each relation that a view reads, with that of a column, 0 for the
        whole."""
        for of in view.tables:
            table = self._called.get(of.table_id)
            if table is None:
                continue
            numbers = {c.element_id: n for n, c in enumerate(text.columns_of(table), 1)}
            oid = oids.table_oid(table.table_id)
            yield from ((oid, numbers[each]) for each in sorted(of.used) if each in numbers)
            if not of.used:
                yield oid, 0
        yield from ((oids.table_oid(each), 0) for each in view.views.values())

    def definition(self, oid: int, *, pretty: bool = True) -> str | None:
        """Return the definition of a constraint."""
        found = self._definitions.get(oid)
        if found is None or found.kind != "c" or found.expression is None:
            return None if found is None else found.definition
        shown = show_expression(found.expression, found.table, short=pretty)
        if shown is None and pretty:
            return found.definition
        said = text.parenthesize(found.expression) if shown is None else shown
        return f"CHECK ({said})" + ("" if found.valid else _NOT_VALID)

    @cached_property
    def rights(self) -> Rights:
        return Rights(self)

    def role_name(self, role_id: int) -> str:
        """Return the name of a role; of one that is gone its number."""
        return self.user if role_id == BOOTSTRAP_ROLE else self.access.roles.name_of(role_id)

    def find_role(self, name: str) -> int | None:
        """Return the id of a role, None where there is none."""
        if name == self.user:
            return BOOTSTRAP_ROLE
        found = self.access.roles.find(name)
        return None if found is None else found.role_id

    def default_acl(self, kind: str, owner: int) -> tuple[str, ...]:
        """Return with what an object begins, as PostgreSQL writes it. Raises InvalidText."""
        return default_acl(kind, self.role_name(owner))

    def user_name(self, oid: int) -> str:
        known = oid in self.access.roles.by_id
        return self.role_name(oid) if known else f"unknown (OID={oid})"

    @cached_property
    def schemas(self) -> tuple[str, ...]:
        """The schemas of the search path of the session that asks."""
        return schemas_of(self.settings, self.access, self.role_id, self.user)

    def find_relation(self, name: str) -> int | None:
        """Return the number of the relation that a name without a schema means."""
        found = SYSTEM_OIDS.get((PG_CATALOG, name))
        if found is None:
            found = self.relation_oid(name, TEMPORARY_SCHEMA)
        for schema in self.schemas if found is None else ():
            found = SYSTEM_OIDS.get((schema, name))
            if found is None:
                found = self.relation_oid(name, "" if schema == PUBLIC else schema)
            if found is not None:
                break
        return found

    def is_visible(self, oid: int) -> int | None:
        """Return whether a bare name means this relation, None where there is no such relation."""
        known = SYSTEM_NAMES.get(oid) or self._names.get(oid)
        return None if known is None else int(self.find_relation(known[1]) == oid)

    def relation_oid(self, name: str, schema: str = "") -> int | None:
        """Return the number of a table or an index, of `schema` "" of public; None where there is
        none."""
        return self._numbers.get((schema, name))

    def has_relation(self, oid: int) -> bool:
        """A table, an index, a sequence, or one of the catalog's."""
        return oid in self._names or oid in SYSTEM_NAMES

    def relation(self, oid: int) -> Descriptor | None:
        """A table or a sequence."""
        return self._by_oid.get(oid)

    def called(self, shown: Descriptor) -> Descriptor:
        """Return a table or a sequence as requests call it, behind its schema."""
        return self._called[shown.table_id]

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
        if found is None:
            return None
        return f"{text.quoted(schema_shown(found))}.{text.quoted(found.name)}"

    def sequence(self, sequence_id: int) -> Descriptor | None:
        return self._by_id.get(sequence_id)

    def relation_name(self, oid: int) -> str:
        """What regclass shows."""
        if oid in self._names:
            within, named = self._names[oid]
            shown = text.quoted(named)
            if self.find_relation(named) == oid:
                return shown
            return f"{text.quoted(within or PUBLIC)}.{shown}"
        schema, name = SYSTEM_NAMES.get(oid, ("", str(oid)))
        if not schema or self.find_relation(name) == oid:
            return name
        return f"{schema}.{name}"

    def type_oid(self, name: str) -> int | None:
        """Return the number of a type (`int4`, `numeric(8, 2)[]`, `pg_catalog.bool`), in whose name
        a length says nothing; None where there is none."""
        said = _type_parts(name)
        if said is None:
            return None
        plain, is_array = said
        known = SYNONYMS.get(plain, plain)
        names = {plain, known}
        if known in ("char", '"char"'):  # two types, of which the first one is bpchar's
            names = {"bpchar" if known == "char" else "char"}
        for row in built_in_types():
            if not names.isdisjoint((row["typname"], text.format_type(row["oid"], None))):
                return int(row["typarray"] if is_array else row["oid"]) or None
        return self._made_type_oid(name)

    def _made_type_oid(self, name: str) -> int | None:
        """Return the number of an enum type, or of a table's rows, or of arrays of these."""
        said = _ENUM_NAME.fullmatch(name)
        if said is None:
            return None
        plain = ascii_lower(said["bare"]) if said["bare"] else said["quoted"].replace('""', '"')
        within = said["within"] or ""
        if within.startswith('"'):
            within = within[1:-1].replace('""', '"')
        else:
            within = ascii_lower(within)
        array = said["array"] is not None
        found = self.find_enum(plain, within)
        if found is not None:
            return enum_oid(found.type_id, array=array)
        schema = "" if within == PUBLIC else within
        oid = self.relation_oid(plain, schema) if within else self.find_relation(plain)
        table = None if oid is None else self.relation(oid)
        if table is None or table.sequence is not None:
            return None
        return oids.row_type_oid(table.table_id, array=array)

    def format_type(self, oid: int | None, modifier: int | None) -> str | None:
        """Return a type as PostgreSQL writes it; ??? for what nobody knows."""
        shown = self._made_types.get(oid)
        if shown is None and oid is not None:
            shown = FUNCTION_TYPES_SHOWN.get(oid)
        return shown or text.format_type(oid, modifier)

    def is_type(self, oid: int) -> bool:
        return oid in self._made_types or text.is_type(oid)

    @cached_property
    def enums_shown(self) -> dict[int, Enumeration]:
        """The enum types by id, without the schemas of those that a bare name means."""
        found: dict[int, Enumeration] = {}
        for number, enum in self.access.enums.items():
            name = enum.bare_name
            seen = self.find_enum(name) is enum
            schema = "" if seen else enum.schema or PUBLIC
            found[number] = replace(enum, name=name, schema=schema)
        return found

    def find_enum(self, name: str, schema: str = "") -> Enumeration | None:
        """Return the enum type of a schema, "" = as the search path has it."""
        for each in (schema,) if schema else self.schemas:
            prefix = "" if each == PUBLIC else each
            found = self.access.enums_by_name.get(qualified(prefix, name))
            if found is not None:
                return found
        return None

    def is_type_visible(self, oid: int) -> bool:
        """Return whether a bare name means this type."""
        table = self._row_types.get(oid)
        if table is not None:
            return bool(self.is_visible(oids.table_oid(table.table_id)))
        hidden = (enum.type_id for enum in self.enums_shown.values() if enum.schema)
        return not any(oid in (enum_oid(n), enum_oid(n, array=True)) for n in hidden)

    @cached_property
    def _row_types(self) -> dict[int, Descriptor]:
        """The tables and views by the number of their rows' type, and of its array type."""
        return {
            oids.row_type_oid(table.table_id, array=array): table
            for table in self.tables
            if table.sequence is None
            for array in (False, True)
        }

    @cached_property
    def _made_types(self) -> dict[int | None, str]:
        """The enum types, those of rows, and arrays of them, by their numbers."""
        found: dict[int | None, str] = {}
        for oid, table in self._row_types.items():
            called = self.relation_name(oids.table_oid(table.table_id))
            is_array = oid == oids.row_type_oid(table.table_id, array=True)
            found[oid] = f"{called}[]" if is_array else called
        for enum in self.enums_shown.values():
            name = enum.quoted
            found[enum_oid(enum.type_id)] = name
            found[enum_oid(enum.type_id, array=True)] = f"{name}[]"
        return found

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
    def _names(self) -> dict[int, tuple[str, str]]:
        """Schemas, "" = public, and names by number."""
        names = {oids.table_oid(t.table_id): (_within(t), t.name) for t in self.tables}
        return names | {entry.oid: (_within(entry.table), entry.name) for entry in self.indexes}

    @cached_property
    def _numbers(self) -> dict[tuple[str, str], int]:
        return {named: oid for oid, named in reversed(self._names.items())}

    @cached_property
    def _definitions(self) -> dict[int, ConstraintEntry]:
        return {entry.oid: entry for entry in self.constraints}

    def _constraints_of(self, table: Descriptor) -> Iterator[ConstraintEntry]:
        for _, index, name, oid in self.indexes_of(table):
            if index is None:
                key, definition = table.primary_key, text.primary_key_text(table)
                # An index and its constraint are two things with two numbers.
                yield ConstraintEntry(table, name, ~oid & _MASK, "p", key, definition, oid)
            elif index.constraint and index.unique:
                definition = text.unique_text(table, index)
                number = ~oid & _MASK
                yield ConstraintEntry(
                    *(table, name, number, "u", index.columns, definition, oid),
                    equal_nulls=index.equal_nulls,
                    deferrable=index.deferrable,
                )
        for check in table.checks:
            if check.state in READABLE or self._is_not_valid(table, check):
                oid = oids.element_oid(table.table_id, check.element_id)
                valid = check.state in READABLE
                definition = text.check_text(check) + ("" if valid else _NOT_VALID)
                yield ConstraintEntry(
                    *(table, check.name, oid, "c", check.columns, definition),
                    expression=check.expression,
                    valid=valid,
                )
        for key_ in table.foreign_keys:
            parent = self._by_id.get(key_.parent)
            shown = key_.state in READABLE or self._is_not_valid(table, key_)
            if shown and parent is not None:
                oid = oids.element_oid(table.table_id, key_.element_id)
                under = oids.element_oid(parent.table_id, key_.parent_index or oids.PRIMARY_KEY)
                named = self.relation_name(oids.table_oid(parent.table_id))
                valid = key_.state in READABLE
                definition = text.foreign_key_text(table, key_, parent, named)
                definition += "" if valid else _NOT_VALID
                yield ConstraintEntry(
                    *(table, key_.name, oid, "f", key_.columns, definition, under),
                    parent=parent,
                    parent_columns=key_.parent_columns,
                    foreign=key_,
                    valid=valid,
                    deferrable=key_.deferral,
                )

    def _is_not_valid(self, table: Descriptor, constraint: Check | ForeignKey) -> bool:
        """Return whether a constraint is enforced and stays so, NOT VALID: no job is bringing it,
        or taking it away."""
        if constraint.state is not State.WRITE_ONLY:
            return False
        return (table.table_id, constraint.element_id) not in self._coming_or_going

    @cached_property
    def _coming_or_going(self) -> frozenset[tuple[int, int]]:
        """Tables and elements that jobs bring, or take away."""
        return frozenset(
            (edit.table_id or job.table_id, edit.element_id)
            for job in self._jobs()
            for step in job.steps
            for edit in step.edits
            if edit.before is None or edit.after is None
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
    def concerned(self) -> dict[int, list[ConstraintEntry]]:
        """Return by table the constraints that it has, and those that refer to it."""
        found: dict[int, list[ConstraintEntry]] = defaultdict(list)
        for entry in self.constraints:
            tables = {entry.table.table_id, (entry.parent or entry.table).table_id}
            for table_id in tables:
                found[table_id].append(entry)
        return found
