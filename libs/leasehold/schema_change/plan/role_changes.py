"""The one way by which a statement about roles or privileges becomes another `Access`."""

from __future__ import annotations

from leasehold.catalog.catalog import Catalog
from leasehold.schema_change.plan.grants import AccessChanges
from leasehold.schema_change.plan.roles import AccessChanged, RoleChanges
from leasehold.sql.syntax.roles.grant_statements import (
    ChangeOwner,
    DropOwned,
    GrantPrivileges,
    ReassignOwned,
    RoleStatement,
    SetDatabase,
)
from leasehold.sql.syntax.roles.role_statements import (
    AlterRole,
    CreateRole,
    DropRole,
    GrantRole,
    RenameRole,
    RoleDefinition,
)


def change_access(statement: RoleStatement, catalog: Catalog, actor: int) -> AccessChanged:
    """Return who may do what after `statement`, which `actor` says, and what is remarked upon.

    Raises InsufficientPrivilege (42501), UnknownRole (42704), DuplicateRole (42710), ReservedName
    (42939), InvalidGrant (0LP01), DependentObjects (2BP01), UnknownTable, UnknownColumn,
    FeatureNotSupported, OutOfRange for limits.
    """
    changes: RoleChanges | AccessChanges
    if isinstance(statement, RoleDefinition):
        changes = RoleChanges(catalog, actor)
        match statement:
            case CreateRole():
                changes.create(statement)
            case AlterRole():
                changes.alter(statement)
            case RenameRole():
                changes.rename(statement)
            case DropRole():
                changes.drop(statement)
            case GrantRole():
                changes.grant(statement)
    else:
        changes = AccessChanges(catalog, actor)
        match statement:
            case GrantPrivileges():
                changes.grant(statement)
            case ChangeOwner():
                changes.change_owner(statement)
            case ReassignOwned():
                changes.reassign(statement)
            case DropOwned():
                changes.drop_owned(statement)
            case SetDatabase():
                changes.set_database(statement)
    return AccessChanged(changes.access, tuple(changes.remarks))
