"""What information_schema tells of roles and privileges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from leasehold.catalog import definitions as text
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.privileges import ALL, Acl, Item, Privilege
from leasehold.catalog.roles import PUBLIC as EVERYBODY
from leasehold.catalog.schema_names import PUBLIC

if TYPE_CHECKING:
    from leasehold.sql.system_catalog.rows import SystemCatalog

Row = Mapping[str, Any]
Rows = Callable[["SystemCatalog"], Iterable[Row]]
_YES: Final[Mapping[bool, str]] = {True: "YES", False: "NO"}


def _enabled(catalog: SystemCatalog) -> Iterator[Row]:
    for role in sorted(catalog.access.roles.by_id):
        if catalog.rights.has_role_of(role):
            yield {"role_name": catalog.role_name(role)}


def _applicable(catalog: SystemCatalog) -> Iterator[Row]:
    for (role, member), membership in sorted(catalog.access.roles.memberships.items()):
        if catalog.rights.has_role_of(member):
            yield {
                "grantee": catalog.role_name(member),
                "role_name": catalog.role_name(role),
                "is_grantable": _YES[membership.admin],
            }


def _administrable(catalog: SystemCatalog) -> Iterator[Row]:
    return (row for row in _applicable(catalog) if row["is_grantable"] == "YES")


def _told(catalog: SystemCatalog, acl: Acl, owner: int, of: Privilege) -> Iterator[Row]:
    """Yield what a list grants of these privileges, as far as who asks is concerned by it."""
    sees = catalog.rights.has_role_of
    for item in acl:
        if not (item.grantee == EVERYBODY or sees(item.grantee) or sees(item.grantor)):
            continue
        for privilege in of:
            if item.privileges & privilege:
                yield _grant(catalog, item, privilege, owner)


def _grant(catalog: SystemCatalog, item: Item, privilege: Privilege, owner: int) -> Row:
    to_all = item.grantee == EVERYBODY
    owns = not to_all and catalog.access.roles.has_privileges_of(item.grantee, owner)
    return {
        "grantor": catalog.role_name(item.grantor),
        "grantee": "PUBLIC" if to_all else catalog.role_name(item.grantee),
        "privilege_type": privilege.name,
        "is_grantable": _YES[owns or bool(item.options & privilege)],
    }


def _of_table(catalog: SystemCatalog, table: Descriptor) -> Row:
    return {
        "table_catalog": catalog.database,
        "table_schema": table.schema or PUBLIC,
        "table_name": table.name,
    }


def _table_privileges(catalog: SystemCatalog) -> Iterator[Row]:
    access = catalog.access
    for table in catalog.base_tables:
        acl, owner = access.acl_of("table", table.table_id), access.owner_of(table.table_id)
        for row in _told(catalog, acl, owner, ALL["table"]):
            hierarchy = _YES[row["privilege_type"] == "SELECT"]
            yield {**_of_table(catalog, table), **row, "with_hierarchy": hierarchy}


def _column_privileges(catalog: SystemCatalog) -> Iterator[Row]:
    access = catalog.access
    for table in catalog.base_tables:
        whole, owner = access.acl_of("table", table.table_id), access.owner_of(table.table_id)
        for column in text.columns_of(table):
            own = access.acl_of("column", table.table_id, column.element_id)
            seen: set[tuple[Any, ...]] = set()
            for row in _told(catalog, (*whole, *own), owner, ALL["column"]):
                if tuple(row.values()) not in seen:
                    seen.add(tuple(row.values()))
                    yield {**_of_table(catalog, table), **row, "column_name": column.name}


def _usage_privileges(catalog: SystemCatalog) -> Iterator[Row]:
    access = catalog.access
    for sequence in catalog.sequences:
        number = sequence.table_id
        # Where nothing was ever granted PostgreSQL takes the default of tables, without USAGE.
        acl, owner = access.recorded_acl(number) or (), access.owner_of(number)
        for row in _told(catalog, acl, owner, Privilege.USAGE):
            yield {
                "object_catalog": catalog.database,
                "object_schema": sequence.schema or PUBLIC,
                "object_name": sequence.name,
                "object_type": "SEQUENCE",
                **row,
            }


def _of_enabled(made: Rows) -> Rows:
    """Return the rows that are of roles which are enabled, without those of PUBLIC alone."""

    def rows(catalog: SystemCatalog) -> Iterator[Row]:
        enabled = {row["role_name"] for row in _enabled(catalog)}
        return (row for row in made(catalog) if enabled & {row["grantor"], row["grantee"]})

    return rows


GRANTED: Final[Mapping[str, Rows]] = {
    "enabled_roles": _enabled,
    "applicable_roles": _applicable,
    "administrable_role_authorizations": _administrable,
    "table_privileges": _table_privileges,
    "role_table_grants": _of_enabled(_table_privileges),
    "column_privileges": _column_privileges,
    "role_column_grants": _of_enabled(_column_privileges),
    "usage_privileges": _usage_privileges,
    "role_usage_grants": _of_enabled(_usage_privileges),
}
