"""The names of objects: which object a name means and how a number is shown, in regclass, regtype
and their like."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from leasehold.catalog import definitions as text
from leasehold.catalog.namespaces import qualified
from leasehold.catalog.schema_names import (
    INFORMATION_SCHEMA,
    LEASEHOLD,
    PG_CATALOG,
    PG_TEMP,
    PUBLIC,
    TEMPORARY_SCHEMA,
)
from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidText,
    UnknownFunction,
    UnknownObject,
    UnknownRole,
    UnknownSchema,
    UnknownTable,
)
from leasehold.sql.functions import not_supported
from leasehold.sql.functions.registry import FUNCTION_NAMES
from leasehold.sql.system_catalog import oids
from leasehold.sql.system_catalog.leasehold_schema import NODE_RELATIONS
from leasehold.sql.system_catalog.relations import RELATIONS, Relation
from leasehold.sql.system_catalog.type_functions import BY_NAME, BY_OID, TypeFunction
from leasehold.values.catalog_types import oid_of_number
from leasehold.values.declared import ENUM
from leasehold.values.integers import whole

if TYPE_CHECKING:
    from leasehold.sql.system_catalog.rows import SystemCatalog

NAMESPACES: Final = {
    PG_CATALOG: oids.CATALOG_NAMESPACE,
    PUBLIC: oids.PUBLIC_NAMESPACE,
    INFORMATION_SCHEMA: oids.INFORMATION_NAMESPACE,
    LEASEHOLD: oids.LEASEHOLD_NAMESPACE,
}
SYSTEM_RELATIONS: Final[Mapping[tuple[str, str], Relation]] = {**RELATIONS, **NODE_RELATIONS}
SYSTEM_OIDS: Final[Mapping[tuple[str, str], int]] = {
    name: oids.RELATIONS.get(name[1], oids.VIEWS + position)
    for position, name in enumerate(SYSTEM_RELATIONS)
}
"""Numbers of system relations by schema and name."""
SYSTEM_NAMES: Final = {oid: name for name, oid in SYSTEM_OIDS.items()}
_PSEUDO: Final[Mapping[int, str]] = {2275: "cstring", 2281: "internal", 2277: "anyarray"}
"""Types that functions alone have."""
_OF_FUNCTIONS: Final[Mapping[str, int]] = {
    **{name: oid for oid, name in _PSEUDO.items()},
    "any": 2276,
    "trigger": 2279,
    "language_handler": 2280,
    "anyelement": 2283,
    "anyenum": ENUM.oid,
    "event_trigger": 3838,
}
FUNCTION_TYPES_SHOWN: Final[Mapping[int, str]] = {
    oid: text.quoted(name) for name, oid in _OF_FUNCTIONS.items()
}
"""Such types as PostgreSQL writes them."""
_NAME_PART: Final = re.compile(r'\s*+(?:"((?:[^"]|"")+)"|([^\s".]++))\s*+(\.|$)')


class CatalogNames:
    def __init__(self, catalog: SystemCatalog) -> None:
        self._catalog = catalog

    def oid(self, kind: str, name: str) -> int:
        """The input of a reg… type: a name, or a number, which need not be anything's. Raises
        UnknownTable, UnknownObject, UnknownSchema, UnknownFunction, InvalidText."""
        if name.isdecimal():
            return oid_of_number(whole(name))
        if name == "-":
            return 0
        found = self.find(kind, name)
        if found is not None:
            return found
        match kind:
            case "regclass":
                self._check_schema_of(name)
                raise UnknownTable(f"relation {name!r} does not exist", table=name)
            case "regnamespace":
                raise UnknownSchema(f"schema {name!r} does not exist")
            case "regtype":
                self._check_schema_of(name)
                raise UnknownObject(f"type {name!r} does not exist")
            case "regrole":
                raise UnknownRole(f"role {name!r} does not exist")
            case "regoper" | "regoperator":
                raise FeatureNotSupported(f"operators by their names ({kind}) are not supported")
        if _is_function(name):
            raise FeatureNotSupported(f"functions by their names ({kind}) are not supported")
        raise UnknownFunction(f'function "{name}" does not exist')

    def find(self, kind: str, name: str) -> int | None:
        """Return the number of what is named, None where there is none."""
        match kind:
            case "regclass":
                return self._relation(*self._of_this_database(name))
            case "regtype":
                bare = name.strip().lower().removeprefix(f"{PG_CATALOG}.").strip('"')
                return self._catalog.type_oid(name) or _OF_FUNCTIONS.get(bare)
            case "regnamespace":
                return self._catalog.namespaces.get(_one(name))
            case "regrole":
                return self._catalog.find_role(_one(name))
            case "regproc":
                return _function_oid(name)
            case "regprocedure":
                return _signature_oid(name)
        return None

    def _check_schema_of(self, name: str) -> None:
        """Check that the schema is there behind which something is named. Raises UnknownSchema."""
        try:
            schema, _ = self._of_this_database(name)
        except InvalidText:
            return  # a type with its length, say, which is nobody's
        if schema and schema not in {*self._catalog.namespaces, PG_TEMP}:
            raise UnknownSchema(f"schema {schema!r} does not exist")

    def show(self, kind: str, oid: int) -> str:
        """What is nobody's number is shown as it is."""
        if oid == 0:
            return "-"
        match kind:
            case "regclass":
                return self._catalog.relation_name(oid)
            case "regtype":
                known = self._catalog.is_type(oid) or oid in FUNCTION_TYPES_SHOWN
                return str(self._catalog.format_type(oid, None) if known else oid)
            case "regnamespace":
                named = {number: name for name, number in self._catalog.namespaces.items()}
                return text.quoted(named[oid]) if oid in named else str(oid)
            case "regproc" if oid in BY_OID:
                return BY_OID[oid].name
            case "regprocedure" if oid in BY_OID:
                return _signature(BY_OID[oid])
            case "regrole" if oid in self._catalog.access.roles.by_id:
                return text.quoted(self._catalog.role_name(oid))
        return str(oid)

    def _of_this_database(self, name: str) -> tuple[str, str]:
        """Return schema and name of a relation, before which its database may stand."""
        parts = list(_parts(name))
        if len(parts) == 3:
            if parts[0] != self._catalog.database:
                raise FeatureNotSupported(
                    f"cross-database references are not implemented: {name:.80}"
                )
            return parts[1], parts[2]
        return _two(name)

    def _relation(self, schema: str, name: str) -> int | None:
        if not schema:
            return self._catalog.find_relation(name)
        if schema == PG_CATALOG:
            return SYSTEM_OIDS.get((PG_CATALOG, name))
        if schema == PG_TEMP:
            schema = TEMPORARY_SCHEMA
        found = SYSTEM_OIDS.get((schema, name))
        if found is not None:
            return found
        prefix = "" if schema == PUBLIC else schema
        self._catalog.access.check_may_use(self._catalog.role_id, qualified(prefix, name))
        return self._catalog.relation_oid(name, prefix)


def _function_oid(name: str) -> int | None:
    schema, bare = _two(name)
    found = BY_NAME.get(bare)
    return None if found is None or schema not in ("", PG_CATALOG) else found.oid


def _signature_oid(name: str) -> int | None:
    """Return the number of `int4in(cstring)`, whatever blanks stand in it."""
    bare, opened, rest = name.partition("(")
    function = BY_OID.get(_function_oid(bare.strip()) or 0)
    if function is None or not opened or not rest.rstrip().endswith(")"):
        return None
    said = [part.strip() for part in rest.rstrip()[:-1].split(",")]
    return function.oid if said == _argument_names(function) else None


def _signature(function: TypeFunction) -> str:
    return f"{function.name}({','.join(_argument_names(function))})"


def _argument_names(function: TypeFunction) -> list[str]:
    return [_PSEUDO.get(oid) or str(text.format_type(oid, None)) for oid in function.arguments]


def _is_function(name: str) -> bool:
    """Return whether a function has the name: `lower`, `pg_catalog.lower`, `lower(text)`."""

    bare = name.partition("(")[0].strip().lower().rpartition(".")[2].strip('"')
    return bare in FUNCTION_NAMES or bare in not_supported.FUNCTIONS


def _two(name: str) -> tuple[str, str]:
    parts = list(_parts(name))
    if len(parts) > 2:
        raise FeatureNotSupported(f"a name of more than two parts is not supported: {name:.80}")
    return (parts[0], parts[1]) if len(parts) == 2 else ("", parts[0])


def _one(name: str) -> str:
    parts = list(_parts(name))
    if len(parts) != 1:
        raise InvalidText(f"invalid name syntax: {name:.80}")
    return parts[0]


def _parts(name: str) -> Iterator[str]:
    """Give the parts of a name, public and A b of `public."A b"`. Raises InvalidText."""
    at = 0
    while True:
        part = _NAME_PART.match(name, at)
        if part is None:
            raise InvalidText(f"invalid name syntax: {name:.80}")
        yield part[1].replace('""', '"') if part[1] is not None else part[2].lower()
        at = part.end()
        if part[3] != ".":
            return
