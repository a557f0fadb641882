"""What a role needs for a schema statement: CREATE on the database to make a table or a sequence,
REFERENCES to refer to one, and for all else to own it; in PostgreSQL's words."""

from __future__ import annotations

from collections.abc import Iterator

from leasehold.catalog.access import DATABASE, Access, check_owner, check_privilege
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.privileges import Privilege
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.model.errors import DifferentOwners, Refused
from leasehold.schema_change.plan.indexes import find_indexed
from leasehold.schema_change.plan.relation_kinds import as_named
from leasehold.schema_change.plan.roles import DATABASE_NAME
from leasehold.sql.syntax.object_statements import (
    Comment,
)
from leasehold.sql.syntax.statements import (
    AddColumn,
    AddForeignKey,
    AlterSequence,
    AlterTable,
    Change,
    CreateIndex,
    CreateSequence,
    CreateTable,
    DropIndex,
    DropSequence,
    DropTable,
    ForeignKeyDefinition,
    OwnSequence,
    RenameIndex,
    RenameSequence,
    RenameTable,
    RestartSequence,
    SetSchema,
)


def check_rights(change: Change, catalog: Catalog, actor: int) -> None:
    """Check that `actor` may make the change; of what is not there nothing is said here. (What
    TRUNCATE needs, who has planned it knows.)

    Raises InsufficientPrivilege (42501)."""
    if isinstance(change, OwnSequence) and change.owner.table:
        _check_same_owner(catalog, change)
    change = as_named(change, catalog)
    access = catalog.access
    if actor == BOOTSTRAP_ROLE or access.roles.is_superuser(actor):
        return
    for name in _names_said(change):
        access.check_may_use(actor, name)
    match change:
        case CreateTable():
            check_create(access, actor, change.schema)
            for key in change.foreign_keys:
                _check_reference(catalog, actor, key, change.name)
            check_likes(change, catalog, actor)
        case CreateSequence():
            check_create(access, actor, change.schema)
        case AlterTable():
            _check_relation(catalog, actor, change.table)
            _check_actions(change, catalog, actor)
        case CreateIndex():
            _check_relation(catalog, actor, change.table)
        case DropIndex() | RenameIndex():
            table = find_indexed(catalog, change.name)
            if table is not None:
                check_owner(access, actor, table.table_id, change.name, "index")
        case DropTable() | DropSequence() | RestartSequence() | AlterSequence() | RenameSequence():
            _check_relation(catalog, actor, change.name)
        case SetSchema(name=name, to=to):
            _check_relation(catalog, actor, name)
            check_create(access, actor, to)
        case Comment(named=named):
            _check_relation(catalog, actor, named.relation or named.name)
        case OwnSequence():
            _check_relation(catalog, actor, change.name)
            if change.owner.table:
                _check_relation(catalog, actor, change.owner.table)


def _names_said(change: Change) -> Iterator[str]:
    """Yield the relations that a change names and does not make."""
    match change:
        case AlterTable(table=name) | CreateIndex(table=name) | SetSchema(name=name):
            yield name
        case DropTable(name=name) | DropIndex(name=name) | DropSequence(name=name):
            yield name
    if isinstance(change, CreateTable):
        yield from (key.table for key in change.foreign_keys)
        yield from (like.table for like in change.likes)


def check_create(access: Access, actor: int, schema: str = "") -> None:
    """Check that `actor` may make tables and sequences, in public, or in another
    schema. Raises InsufficientPrivilege."""
    namespace = access.namespaces_by_name.get(schema)
    if namespace is not None:
        number = namespace.namespace_id
        check_privilege(access, actor, "schema", number, (), Privilege.CREATE, schema)
        return
    check_privilege(access, actor, "database", DATABASE, (), Privilege.CREATE, DATABASE_NAME)


def check_truncate(access: Access, actor: int, tables: tuple[Descriptor, ...]) -> None:
    """Check that `actor` may empty tables. Raises InsufficientPrivilege."""
    for table in tables:
        wanted = Privilege.TRUNCATE
        check_privilege(access, actor, "table", table.table_id, (), wanted, table.name)


def check_owners(access: Access, actor: int, relations: tuple[Descriptor, ...]) -> None:
    """Check that `actor` owns all of these. Raises InsufficientPrivilege."""
    for each in relations:
        check_owner(access, actor, each.table_id, each.name)


def _find(catalog: Catalog, name: str) -> Descriptor | None:
    try:
        return catalog.resolve(name)
    except Refused:
        return None


def _check_relation(catalog: Catalog, actor: int, name: str) -> None:
    found = _find(catalog, name)
    if found is not None:
        check_owner(catalog.access, actor, found.table_id, found.name)


def _check_actions(change: AlterTable, catalog: Catalog, actor: int) -> None:
    for action in change.actions:
        if isinstance(action, RenameTable):
            table = _find(catalog, change.table)
            check_create(catalog.access, actor, "" if table is None else table.schema)
        for key in _foreign_keys(action):
            _check_reference(catalog, actor, key, change.table)


def _foreign_keys(action: object) -> Iterator[ForeignKeyDefinition]:
    if isinstance(action, AddForeignKey):
        yield action.key
    elif isinstance(action, AddColumn) and action.column.references is not None:
        yield action.column.references


def _check_reference(catalog: Catalog, actor: int, key: ForeignKeyDefinition, child: str) -> None:
    """Check that rows of `child` may refer to the parent's: that tells which keys it has."""
    parent = None if key.table == child else _find(catalog, key.table)
    if parent is None:
        return
    named = {column.name: column.element_id for column in parent.columns}
    columns = [named[name] for name in key.parent_columns if name in named]
    check_privilege(
        catalog.access,
        actor,
        "table",
        parent.table_id,
        columns or parent.primary_key,
        Privilege.REFERENCES,
        parent.name,
    )


def check_likes(change: CreateTable, catalog: Catalog, actor: int) -> None:
    """Check that `actor` may read the tables that a new one is made like: that tells what they are
    like. Raises InsufficientPrivilege."""
    for like in change.likes:
        view = catalog.access.views_by_name.get(like.table)
        found = _find(catalog, like.table) if view is None else view.relation
        if found is not None:
            columns = [column.position for column in found.by_name.values()]
            wanted, number = Privilege.SELECT, found.table_id
            check_privilege(catalog.access, actor, "table", number, columns, wanted, found.name)


def _check_same_owner(catalog: Catalog, change: OwnSequence) -> None:
    """Check that a sequence and the table that will own it are of one role: they go together."""
    sequence, table = _find(catalog, change.name), _find(catalog, change.owner.table)
    if sequence is None or table is None:
        return
    access = catalog.access
    if access.owner_of(sequence.table_id) != access.owner_of(table.table_id):
        raise DifferentOwners("sequence must have same owner as table it is linked to")
