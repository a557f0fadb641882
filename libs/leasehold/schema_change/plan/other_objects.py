"""DROP of kinds of objects of which there are none, COMMENT, CREATE EXTENSION and CREATE SCHEMA:
nothing is made or changed, and the client is told what that means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from leasehold.catalog.access import Access, check_owner
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.names import constraint_names
from leasehold.catalog.namespaces import COMMENT_ON_PUBLIC, PUBLIC_ID
from leasehold.catalog.schema_names import PG_CATALOG, PUBLIC, SCHEMAS
from leasehold.catalog.view import is_view_id
from leasehold.model.errors import (
    DependentObjects,
    FeatureNotSupported,
    OutOfRange,
    Refused,
    UnknownColumn,
    UnknownFunction,
    UnknownObject,
    UnknownSchema,
    UnknownTable,
    WrongObject,
)
from leasehold.schema_change.plan.indexes import find_indexed
from leasehold.schema_change.plan.results import NothingToDo
from leasehold.sql.functions.registry import FUNCTION_NAMES, is_type_name
from leasehold.sql.syntax.object_statements import (
    Comment,
    DropAbsent,
    MakeBuiltIn,
    ObjectKind,
    OtherStatement,
)
from leasehold.sql.system_catalog.oids import PRIMARY_KEY

EXTENSIONS: Final[Mapping[str, str]] = {
    "pgcrypto": "gen_random_uuid()",
    "uuid-ossp": "uuid_generate_v4()",
}
"""The extensions that clients ask for, with what is there of each."""
NOT_KEPT: Final = "comments are not kept: this one is read and forgotten"

COMMENT_BYTES_MAX: Final = 4 * 1024
COMMENTS_MAX: Final = 20_000
_KEPT: Final = frozenset(
    {
        *(ObjectKind.TABLE, ObjectKind.VIEW, ObjectKind.SEQUENCE, ObjectKind.COLUMN),
        *(ObjectKind.INDEX, ObjectKind.CONSTRAINT, ObjectKind.TYPE, ObjectKind.SCHEMA),
    }
)
_RELATIONS: Final = frozenset(
    {ObjectKind.VIEW, ObjectKind.MATERIALIZED_VIEW, ObjectKind.FOREIGN_TABLE}
)
_FUNCTIONS: Final = frozenset(
    {ObjectKind.FUNCTION, ObjectKind.PROCEDURE, ObjectKind.ROUTINE, ObjectKind.AGGREGATE}
)


def comment_on(statement: Comment, catalog: Catalog, actor: int) -> Access | None:
    """Return the catalog's access with a comment that the role `actor` says; None: it is not kept.

    Raises what `plan_other` raises, OutOfRange, InsufficientPrivilege."""
    plan_other(statement, catalog)
    access, name = catalog.access, statement.named.name
    if statement.kind not in _KEPT or (
        statement.kind is ObjectKind.SCHEMA and name in SCHEMAS and name != PUBLIC
    ):
        return None
    if statement.text is not None and len(statement.text.encode()) > COMMENT_BYTES_MAX:
        raise OutOfRange(
            f"a comment has at most {COMMENT_BYTES_MAX} bytes", position=statement.position
        )
    if len(access.comments) >= COMMENTS_MAX and statement.text is not None:
        raise OutOfRange(f"a database has at most {COMMENTS_MAX} comments")
    if statement.kind is ObjectKind.SCHEMA:
        return _comment_on_schema(statement, access, actor)
    if statement.kind is ObjectKind.TYPE:
        enum = access.enums_by_name[name]
        check_owner(access, actor, enum.type_id, enum.bare_name, "type")
        return access.with_comment(enum.type_id, 0, statement.text)
    table = _commented(statement, catalog)
    if statement.kind is ObjectKind.INDEX:
        check_owner(access, actor, table.table_id, name, "index")
    else:
        check_owner(access, actor, table.table_id, table.name)
    match statement.kind:
        case ObjectKind.COLUMN:
            element_id = table.by_name[name].position
        case ObjectKind.INDEX:
            element_id = _element_of(table, name)
        case ObjectKind.CONSTRAINT:
            element_id = -_element_of(table, name)
        case _:
            element_id = 0
    return access.with_comment(table.table_id, element_id, statement.text)


def _comment_on_schema(statement: Comment, access: Access, actor: int) -> Access:
    """A comment on public is there from the beginning; "" is recorded where there is none."""
    name, text = statement.named.name, statement.text
    if name != PUBLIC:
        number = access.namespaces_by_name[name].namespace_id
        check_owner(access, actor, number, name)
        return access.with_comment(number, 0, text)
    check_owner(access, actor, PUBLIC_ID, name)
    recorded = None if text == COMMENT_ON_PUBLIC else text or ""
    return access.with_comment(PUBLIC_ID, 0, recorded)


def _commented(statement: Comment, catalog: Catalog) -> Descriptor:
    name = statement.named.relation or statement.named.name
    if statement.kind is ObjectKind.INDEX:
        found = find_indexed(catalog, name)
        assert found is not None, "looked for before"
        return found
    view = catalog.access.views_by_name.get(name)
    return catalog.resolve(name) if view is None else view.relation


def _element_of(table: Descriptor, name: str) -> int:
    """Return the element id of an index or a constraint, PRIMARY_KEY of that one's."""
    found = table.index(name) or table.check(name) or table.foreign_key(name)
    return PRIMARY_KEY if found is None else found.element_id


def plan_other(statement: OtherStatement, catalog: Catalog) -> NothingToDo:
    """Return what is told. Raises UnknownTable, UnknownColumn, UnknownObject, UnknownFunction,
    UnknownSchema, WrongObject, DependentObjects, FeatureNotSupported, each as PostgreSQL does."""
    match statement:
        case DropAbsent():
            return _drop(statement, catalog)
        case Comment():
            return _comment(statement, catalog)
        case MakeBuiltIn():
            return _make(statement)


def _drop(statement: DropAbsent, catalog: Catalog) -> NothingToDo:
    try:
        _refuse_present(statement, catalog)
        raise _absent(statement.kind, statement, catalog)
    except (UnknownTable, UnknownObject, UnknownFunction, UnknownSchema) as error:
        if not statement.if_exists:
            raise
        return NothingToDo(f"{error.message}, skipping")


def _refuse_present(statement: DropAbsent, catalog: Catalog) -> None:
    """Refuse to drop what is there, of whatever kind."""
    kind, position = statement.kind, statement.position
    name = statement.named.name
    if kind in _RELATIONS and _relation(catalog, name) is not None:
        raise WrongObject(f'"{name}" is not a {kind}', table=name, position=position)
    if kind is ObjectKind.TYPE and _relation(catalog, name) is not None:
        raise DependentObjects(
            f"cannot drop type {name} because table {name} requires it",
            hint=f"You can drop table {name} instead.",
            position=position,
        )
    required = (kind is ObjectKind.TYPE and is_type_name(name)) or (
        kind in _FUNCTIONS and name in FUNCTION_NAMES
    )
    if required and statement.named.schema in ("", PG_CATALOG):
        raise DependentObjects(
            f"cannot drop {kind} {name} because it is required by the database system",
            position=position,
        )
    if kind is ObjectKind.EXTENSION and name in EXTENSIONS:
        raise FeatureNotSupported(f"{kind} {name!r} is built in and stays", position=position)


def _absent(kind: ObjectKind, statement: DropAbsent | Comment, catalog: Catalog) -> Refused:
    """Return the error for an object that is not there, in PostgreSQL's words."""
    (name, relation, schema), position = statement.named, statement.position
    if schema and schema not in SCHEMAS and schema not in catalog.access.namespaces_by_name:
        return UnknownSchema(f'schema "{schema}" does not exist', position=position)
    if relation and _relation(catalog, relation) is None:
        return UnknownTable(
            f'relation "{relation}" does not exist', table=relation, position=position
        )
    if kind in _FUNCTIONS:
        return UnknownFunction(f"{kind} {name}() does not exist", position=position)
    if kind is ObjectKind.SCHEMA:
        return UnknownSchema(f'schema "{name}" does not exist', position=position)
    if kind in _RELATIONS:
        return UnknownTable(f'{kind} "{name}" does not exist', table=name, position=position)
    within = f' for relation "{relation}"' if relation else ""
    return UnknownObject(f'{kind} "{name}"{within} does not exist', position=position)


def _relation(catalog: Catalog, name: str) -> Descriptor | None:
    try:
        return catalog.resolve(name)
    except UnknownTable:
        return None


# ------------------------------------------------------------------ COMMENT


def _comment(statement: Comment, catalog: Catalog) -> NothingToDo:
    """Look whether the object is there, as far as that can be told."""
    kind, (name, relation, _) = statement.kind, statement.named
    match kind:
        case ObjectKind.TABLE | ObjectKind.SEQUENCE:
            found = _named_relation(name, catalog, statement.position)
            is_table = found.sequence is None and not is_view_id(found.table_id)
            if is_table != (kind is ObjectKind.TABLE) or is_view_id(found.table_id):
                raise WrongObject(
                    f'"{name}" is not a {kind}', table=name, position=statement.position
                )
        case ObjectKind.COLUMN:
            table = _named_relation(relation, catalog, statement.position)
            if name not in table.by_name:
                raise UnknownColumn(
                    f'column "{name}" of relation "{relation}" does not exist',
                    table=relation,
                    column=name,
                    position=statement.position,
                )
        case ObjectKind.CONSTRAINT:
            table = _named_relation(relation, catalog, statement.position)
            if name not in constraint_names(table):
                raise UnknownObject(
                    f'constraint "{name}" for table "{relation}" does not exist',
                    table=relation,
                    position=statement.position,
                )
        case ObjectKind.INDEX:
            if find_indexed(catalog, name) is None:
                raise UnknownTable(
                    f'relation "{name}" does not exist', index=name, position=statement.position
                )
        case ObjectKind.VIEW if name in catalog.access.views_by_name:
            pass
        case ObjectKind.TYPE if name in catalog.access.enums_by_name:
            pass
        case ObjectKind.VIEW if _relation(catalog, name) is not None:
            raise WrongObject(f'"{name}" is not a view', table=name, position=statement.position)
        case ObjectKind.DATABASE | ObjectKind.ROLE:
            pass  # what it is called is no matter of this catalog's tables
        case ObjectKind.SCHEMA if name in SCHEMAS or name in catalog.access.namespaces_by_name:
            pass
        case ObjectKind.EXTENSION if name in EXTENSIONS:
            pass
        case _:
            raise _absent(kind, statement, catalog)
    return NothingToDo(NOT_KEPT)


def _named_relation(name: str, catalog: Catalog, position: int) -> Descriptor:
    found = _relation(catalog, name)
    view = catalog.access.views_by_name.get(name)
    if found is None and view is not None:
        return view.relation
    if found is None:
        raise UnknownTable(f'relation "{name}" does not exist', table=name, position=position)
    return found


# ------------------------------------------------------------------ what is built in


def _make(statement: MakeBuiltIn) -> NothingToDo:
    name = statement.name
    there = EXTENSIONS.get(name)
    if there is None:
        known = ", ".join(f"{each} ({what})" for each, what in EXTENSIONS.items())
        raise FeatureNotSupported(
            f"extension {name!r:.80} is not supported: built in are {known}",
            position=statement.position,
        )
    return NothingToDo(f"of extension {name} there is {there}, which is built in")
