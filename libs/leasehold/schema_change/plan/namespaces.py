"""What CREATE SCHEMA, DROP SCHEMA and ALTER SCHEMA … RENAME do, in PostgreSQL's words, and what may
lie in a schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from leasehold.catalog.access import Access, check_owner
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.names import relation_names, running_jobs
from leasehold.catalog.namespaces import NAMESPACES_MAX, SEPARATOR, Namespace
from leasehold.catalog.object_names import NAME_BYTES_MAX
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.catalog.schema_names import SCHEMAS
from leasehold.catalog.sequence_ownership import list_own_sequences
from leasehold.model.errors import (
    DependentObjects,
    DuplicateSchema,
    FeatureNotSupported,
    InsufficientPrivilege,
    OutOfRange,
    ReservedName,
    TableBusy,
    UnknownSchema,
)
from leasehold.schema_change.job.renamed_schema import rename_schema
from leasehold.schema_change.plan.dependents import HINT, cascade_notice
from leasehold.schema_change.plan.rights import check_create
from leasehold.schema_change.plan.roles import role_of
from leasehold.sql.syntax.object_statements import (
    CreateEnum,
    CreateNamespace,
    CreateView,
    DropEnum,
    DropNamespace,
    DropView,
    NamespaceStatement,
    RenameEnum,
    RenameNamespace,
    RenameView,
)
from leasehold.sql.syntax.positions import refused_at
from leasehold.sql.syntax.statements import (
    AlterTable,
    Change,
    CreateIndex,
    CreateSequence,
    CreateTable,
    DropSequence,
    DropTable,
    RenameIndex,
    RenameSequence,
    RenameTable,
    SetSchema,
)

_SHOWN_MAX: Final = 100
DropInSchema: TypeAlias = DropView | DropTable | DropSequence | DropEnum


class NamespaceChange(NamedTuple):
    """What a statement comes to: the catalog's `access` with it, and what is told. `along`: what is
    to be dropped before."""

    access: Access
    notices: tuple[str, ...] = ()
    along: tuple[DropInSchema, ...] = ()


def change_namespaces(change: NamespaceStatement, catalog: Catalog, actor: int) -> NamespaceChange:
    """Return what a statement makes of schemas. Raises UnknownSchema (3F000), DuplicateSchema
    (42P06), ReservedName (42939), DependentObjects (2BP01), InsufficientPrivilege (42501),
    OutOfRange, FeatureNotSupported."""
    with refused_at(change.position):
        match change:
            case CreateNamespace():
                return _create(change, catalog, actor)
            case DropNamespace():
                return _drop(change, catalog, actor)
            case RenameNamespace():
                return _rename(change, catalog, actor)


def _create(change: CreateNamespace, catalog: Catalog, actor: int) -> NamespaceChange:
    access, name, owner = catalog.access, change.name, actor
    if change.owner is not None:
        owner = role_of(access, change.owner, actor).role_id
        if actor != BOOTSTRAP_ROLE and not access.roles.is_member_of(actor, owner):
            said = access.roles.name_of(owner)
            raise InsufficientPrivilege(f'must be member of role "{said}"')
        name = name or access.roles.name_of(owner)
    if name in SCHEMAS or name in access.namespaces_by_name:
        if change.if_not_exists:
            return NamespaceChange(access, (f'schema "{name}" already exists, skipping',))
        raise DuplicateSchema(f'schema "{name}" already exists')
    check_create(access, actor)
    _check_name(name, catalog)
    if len(access.namespaces) >= NAMESPACES_MAX:
        raise OutOfRange(f"a database has at most {NAMESPACES_MAX} schemas")
    made = Namespace(access.next_namespace_id(), name)
    access = access.without_object(made.namespace_id).with_namespace(made)
    return NamespaceChange(access.with_owner(made.namespace_id, owner))


def _check_name(name: str, catalog: Catalog) -> None:
    """Check that a schema may be called so."""
    if name.startswith("pg_"):
        raise ReservedName(
            f'unacceptable schema name "{name}"',
            detail='The prefix "pg_" is reserved for system schemas.',
        )
    if SEPARATOR in name or len(name.encode()) > NAME_BYTES_MAX:
        raise FeatureNotSupported(
            f"schema {name!r:.80} can't be made: the name of a schema has no dot, and at most"
            f" {NAME_BYTES_MAX} bytes"
        )
    renaming = next((job for job in running_jobs(catalog) if name in job.renames[1:]), None)
    if renaming is not None:
        raise TableBusy(f"job {renaming.job_id} gives schema {name!r} its name: wait for it to end")
    named = next(_names_in(name, catalog), None)
    if named is not None:
        raise FeatureNotSupported(
            f"{named!r:.80} in schema public is called as if it lay in schema {name!r}: rename it"
            " first"
        )


def _names_in(namespace: str, catalog: Catalog) -> Iterator[str]:
    """Yield the names of all that lies in a schema, or is being made or dropped there."""
    begin = namespace + SEPARATOR
    taken = relation_names(catalog) | catalog.access.enums_by_name.keys()
    yield from sorted(name for name in taken if name.startswith(begin))


def _drop(change: DropNamespace, catalog: Catalog, actor: int) -> NamespaceChange:
    access, name = catalog.access, change.name
    if name in SCHEMAS:
        raise FeatureNotSupported(f"schema {name!r} is built in and stays")
    found = access.namespaces_by_name.get(name)
    if found is None or found.name != name:
        words = f'schema "{name}" does not exist'
        if change.if_exists:
            return NamespaceChange(access, (f"{words}, skipping",))
        raise UnknownSchema(words)
    check_owner(access, actor, found.namespace_id, name, "schema")
    along = list_drops(name, catalog)
    if along and not change.cascade:
        lines = [f"{_describe(each)} depends on schema {name}" for each in along[:_SHOWN_MAX]]
        raise DependentObjects(
            f"cannot drop schema {name} because other objects depend on it",
            detail="\n".join(lines),
            hint=HINT,
        )
    if not along and (busy := next(_names_in(name, catalog), None)):
        raise TableBusy(
            f"a job that has not ended gives or takes the name {busy!r:.80} in schema {name!r}",
            table=busy,
        )
    return NamespaceChange(access.without_namespace(found.namespace_id), along=along)


def _rename(change: RenameNamespace, catalog: Catalog, actor: int) -> NamespaceChange:
    """Return what becomes of it where no table lies in it; else a job brings it about."""
    access, name, to = catalog.access, change.name, change.to
    if name in SCHEMAS:
        raise FeatureNotSupported(f"schema {name!r} is built in and keeps its name")
    found = access.namespaces_by_name.get(name)
    if found is None or found.name != name:
        raise UnknownSchema(f'schema "{name}" does not exist')
    if to in SCHEMAS or to in access.namespaces_by_name:
        raise DuplicateSchema(f'schema "{to}" already exists')
    check_owner(access, actor, found.namespace_id, name, "schema")
    check_create(access, actor)
    _check_name(to, catalog)
    return NamespaceChange(rename_schema(access, found.namespace_id, to))


def list_drops(schema: str, catalog: Catalog) -> tuple[DropInSchema, ...]:
    """Return the statements that drop all that lies in a schema, what rests on others first."""
    begin = schema + SEPARATOR
    tables = [t for t in catalog.tables() if t.schema == schema and t.names]
    owned = {number for table in tables for number in list_own_sequences(table)}
    named = [t.name for t in tables if t.sequence is None]
    views = (name for name in catalog.access.views_by_name if name.startswith(begin))
    types = (name for name in catalog.access.enums_by_name if name.startswith(begin))
    return (
        *(DropView(name, if_exists=True, cascade=True) for name in sorted(views)),
        *(
            DropTable(name, cascade=True, beside=tuple(n for n in named if n != name))
            for name in sorted(named)
        ),
        *(
            DropSequence(each.name, cascade=True)
            for each in tables
            if each.sequence is not None and each.table_id not in owned
        ),
        *(DropEnum(name, cascade=True) for name in sorted(types)),
    )


def _describe(drop: DropInSchema) -> str:
    match drop:
        case DropView():
            kind = "view"
        case DropTable():
            kind = "table"
        case DropSequence():
            kind = "sequence"
        case DropEnum():
            kind = "type"
    return f"{kind} {drop.name}"


def describe_along(drops: Sequence[DropInSchema]) -> tuple[str, ...]:
    """Return the notices of what goes with a schema."""
    return tuple(cascade_notice(_describe(each)) for each in drops[:_SHOWN_MAX])


# ------------------------------------------------------------------ what lies in one


def check_namespace(change: Change, catalog: Catalog) -> None:
    """Check that the schema is there in which a statement makes something, and keeps its name
    meanwhile, and that nothing in public is called as if it lay in another one. Raises
    UnknownSchema (3F000), TableBusy (55006), FeatureNotSupported."""
    match change:
        case (
            CreateTable(schema=schema, name=name)
            | CreateSequence(schema=schema, name=name)
            | CreateView(schema=schema, name=name)
            | CreateEnum(schema=schema, name=name)
        ):
            if schema:
                _check_takes(schema, catalog, getattr(change, "position", 1))
                return
            _check_in_public(name, catalog)
        case RenameEnum(to=name, schema=schema) | SetSchema(name=name, to=schema):
            if schema:
                _check_takes(schema, catalog)
            if not (schema or isinstance(change, SetSchema)):
                _check_in_public(name, catalog)
        case (
            RenameSequence(name=name, to=to)
            | RenameIndex(name=name, to=to)
            | RenameView(name=name, to=to)
        ):
            _check_renamed(name, to, catalog)
        case AlterTable(table=name, actions=(RenameTable(to=to),)):
            _check_renamed(name, to, catalog)
        case CreateIndex(table=name, name=to, named=True):
            _check_renamed(name, to, catalog)


def _check_takes(schema: str, catalog: Catalog, position: int | None = None) -> None:
    """Check that something can be made in a schema: it is there, and keeps its name."""
    found = catalog.access.namespaces_by_name.get(schema)
    if found is None or found.name != schema:
        place = {} if position is None else {"position": position}
        raise UnknownSchema(f'schema "{schema}" does not exist', **place)
    number = found.namespace_id
    job = next((job for job in running_jobs(catalog) if number in job.renames[:1]), None)
    if job is not None:
        raise TableBusy(
            f"schema {schema!r} is being renamed by job {job.job_id}: wait for it to end",
            job=job.job_id,
        )


def _lies_elsewhere(name: str, catalog: Catalog) -> bool:
    """Return whether a name begins with a schema other than public, or one that a job makes."""
    said, dot, _ = name.partition(SEPARATOR)
    if not dot:
        return False
    to_come = (job for job in running_jobs(catalog) if said in job.renames[1:])
    return said in catalog.access.namespaces_by_name or any(True for _ in to_come)


def _check_renamed(name: str, to: str, catalog: Catalog) -> None:
    """A new name begins with the schema that the old one begins with."""
    if not _lies_elsewhere(name, catalog):
        _check_in_public(to, catalog)


def _check_in_public(name: str, catalog: Catalog) -> None:
    if _lies_elsewhere(name, catalog):
        raise FeatureNotSupported(
            f"{name!r:.80} can't be a name in schema public: something in the schema before its"
            " dot would be called the same; take a name without that beginning"
        )
