"""Roles in pg_catalog, who owns what, and lists of privileges as their texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from leasehold.catalog.access import DATABASE
from leasehold.catalog.privileges import Acl, item_text, quote_role
from leasehold.catalog.roles import PUBLIC, READ_ALL_DATA, Role, Roles
from leasehold.model.errors import InsufficientPrivilege, InvalidText
from leasehold.sql.system_catalog import oids

if TYPE_CHECKING:
    from leasehold.sql.system_catalog.rows import SystemCatalog

Row = Mapping[str, Any]

MASKED: Final = "********"
OF_SUPERUSERS: Final = frozenset({"pg_authid", "pg_shadow"})
"""Relations that tell of passwords, if masked: others may read none of them."""


def roles(catalog: SystemCatalog) -> list[Role]:
    """Return all roles by their ids, the first one under the name that its session knows."""
    found = catalog.access.roles.by_id
    return [found[number]._replace(name=catalog.role_name(number)) for number in sorted(found)]


def _attributes(role: Role) -> Row:
    return {
        "oid": role.role_id,
        "rolname": role.name,
        "rolsuper": int(role.superuser),
        "rolinherit": int(role.inherits),
        "rolcreaterole": int(role.may_create_roles),
        "rolcreatedb": int(role.may_create_databases),
        "rolcanlogin": int(role.may_log_in),
        "rolreplication": 0,
        "rolbypassrls": 0,
        "rolconnlimit": role.connections_max,
        "rolvaliduntil": role.valid_until_us or None,
    }


def roles_view(catalog: SystemCatalog) -> Iterator[Row]:
    """pg_roles."""
    for role in roles(catalog):
        path = (f"search_path={role.search_path}",) if role.search_path else ()
        config = (*path, f"leasehold.request_key={role.key_number}")
        yield {**_attributes(role), "rolpassword": MASKED, "rolconfig": config}


def setting_rows(catalog: SystemCatalog) -> Iterator[Row]:
    """pg_db_role_setting: with what sessions of the database, and of a role, begin."""
    access = catalog.access
    kept = [(oids.DATABASE, 0, access.search_path)]
    kept += [(0, role.role_id, role.search_path) for role in roles(catalog)]
    for database, role_id, path in kept:
        if path:
            config = (f"search_path={path}",)
            yield {"setdatabase": database, "setrole": role_id, "setconfig": config}


def authid_rows(catalog: SystemCatalog) -> Iterator[Row]:
    """pg_authid. Verifiers are shown to nobody: who had one could try passwords at leisure."""
    for role in roles(catalog):
        yield {**_attributes(role), "rolpassword": MASKED if role.verifier else None}


def membership_rows(catalog: SystemCatalog) -> Iterator[Row]:
    """pg_auth_members."""
    for ids, membership in sorted(catalog.access.roles.memberships.items()):
        yield {
            "roleid": ids[0],
            "member": ids[1],
            "grantor": membership.grantor,
            "admin_option": int(membership.admin),
        }


def users_view(catalog: SystemCatalog) -> Iterator[Row]:
    """pg_user."""
    for role in filter(lambda role: role.may_log_in, roles(catalog)):
        yield {
            "usename": role.name,
            "usesysid": role.role_id,
            "usecreatedb": int(role.may_create_databases),
            "usesuper": int(role.superuser),
            "userepl": 0,
            "usebypassrls": 0,
            "passwd": MASKED,
            "valuntil": role.valid_until_us or None,
        }


def shadow_view(catalog: SystemCatalog) -> Iterator[Row]:
    """pg_shadow."""
    verified = {role.name for role in roles(catalog) if role.verifier}
    for row in users_view(catalog):
        yield {**row, "passwd": MASKED if row["usename"] in verified else None}


def groups_view(catalog: SystemCatalog) -> Iterator[Row]:
    """pg_group."""
    members = sorted(catalog.access.roles.memberships)
    for role in roles(catalog):
        if not role.may_log_in:
            inside = tuple(member for group, member in members if group == role.role_id)
            yield {"groname": role.name, "grosysid": role.role_id, "grolist": inside}


def may_read(known: Roles, role_id: int, name: str) -> bool:
    """Return whether a role may read a relation of the system catalog."""
    return name not in OF_SUPERUSERS or known.has_privileges_of(role_id, READ_ALL_DATA)


def check_may_read(catalog: SystemCatalog, name: str) -> None:
    """Check that the role may read a relation of pg_catalog. Raises InsufficientPrivilege
    (42501)."""
    if not may_read(catalog.access.roles, catalog.role_id, name):
        kind = "table" if name == "pg_authid" else "view"
        raise InsufficientPrivilege(f"permission denied for {kind} {name}")


# ------------------------------------------------------------------ lists of privileges


_DEFAULTS: Final[Mapping[str, tuple[str, str]]] = {
    "c": ("", ""),
    "r": ("", "arwdDxt"),
    "s": ("", "rwU"),
    "d": ("Tc", "CTc"),
    "f": ("X", "X"),
    "l": ("U", "U"),
    "L": ("", "rw"),
    "n": ("", "UC"),
    "t": ("", "C"),
    "F": ("", "U"),
    "S": ("", "U"),
    "T": ("U", "U"),
    "p": ("", "sA"),
}
"""What everybody may, and what an owner may, by the letter of an object's kind."""


def acl_texts(catalog: SystemCatalog, acl: Iterable[Any] | None) -> tuple[str, ...] | None:
    """Return a list as PostgreSQL writes it (`{ann=r/bob}`), None where nobody has said any."""
    if acl is None:
        return None

    def name(role_id: int) -> str:
        return "" if role_id == PUBLIC else catalog.role_name(role_id)

    return tuple(item_text(item, (name(item.grantee), name(item.grantor))) for item in acl)


def default_acl(kind: str, owner: str) -> tuple[str, ...]:
    """Return with what privileges an object begins in PostgreSQL, by the letter of its kind and its
    owner's name. Raises InvalidText."""
    if kind not in _DEFAULTS:
        raise InvalidText(f"unrecognized object type abbreviation: {kind:.10}")
    everybodys, owners = _DEFAULTS[kind]
    name = quote_role(owner)
    found = (f"={everybodys}/{name}",) if everybodys else ()
    return (*found, f"{name}={owners}/{name}") if owners else found


def acl_of_public(owner: str) -> tuple[str, ...]:
    """Return PostgreSQL's list of the schema that is there from the beginning, by its owner's
    name."""
    name = quote_role(owner)
    return f"{name}=UC/{name}", f"=U/{name}"


def recorded(catalog: SystemCatalog, object_id: int, element_id: int = 0) -> Acl | None:
    """Return the list of an object or column that somebody has granted on."""
    return catalog.access.recorded_acl(object_id, element_id)


def of_relation(catalog: SystemCatalog, object_id: int) -> Row:
    """Return what pg_class says of a table's or sequence's owner and list."""
    return {
        "relowner": catalog.access.owner_of(object_id),
        "relacl": acl_texts(catalog, recorded(catalog, object_id)),
    }


def of_database(catalog: SystemCatalog) -> Row:
    """Return what pg_database says of its owner and list."""
    return {
        "datdba": catalog.access.owner_of(DATABASE),
        "datacl": acl_texts(catalog, recorded(catalog, DATABASE)),
    }
