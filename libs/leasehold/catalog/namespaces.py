"""Schemas beside public, and the names of what lies in them.

A relation of another schema is called `schema.name` wherever a name stands: in descriptors, jobs,
requests, topics, on the command line. So are its indexes and constraints, whose names are its
schema's, too. What lies in public has no schema before its name, as ever; so nothing that is there
is called otherwise, and what knows names alone need not know of schemas. A descriptor says its
schema beside its name, for who shows the two apart.

(A schema is a namespace in the code: "schema" is what a table looks like.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.schema_names import PUBLIC, TEMPORARY_SCHEMA
from leasehold.model.errors import UnknownSchema

NAMESPACES_FROM: Final = 1 << 27
"""Ids of schemas, among those of tables."""
PUBLIC_ID: Final = NAMESPACES_FROM
"""Of public, which nobody makes: comments on it are recorded under this one."""
COMMENT_ON_PUBLIC: Final = "standard public schema"
"""The comment on public where nobody has said another one."""
NAMESPACES_MAX: Final = 1_000
SEPARATOR: Final = "."


class Namespace(NamedTuple):
    """A schema that was made. `alias`: its name of before, under which it and what lies in it are
    found as long as a version of before may be in use, "" = none."""

    namespace_id: int
    name: str
    alias: str = ""

    def to_wire(self) -> dict[str, Any]:
        alias = {"alias": self.alias} if self.alias else {}
        return {"name": self.name, **alias}

    @classmethod
    def from_wire(cls, namespace_id: int, body: Mapping[str, Any]) -> Namespace:
        return cls(namespace_id, str(body["name"]), str(body.get("alias", "")))


def is_namespace_id(object_id: int) -> bool:
    return NAMESPACES_FROM <= object_id < 2 * NAMESPACES_FROM


def qualified(schema: str, name: str) -> str:
    """Return how a relation of a schema is called, "" = public."""
    return f"{schema}{SEPARATOR}{name}" if schema else name


def check_schema_of(name: str, find: Callable[[str], object | None]) -> None:
    """Check that the schema is there behind which a type is named, if it is; `find` returns a
    schema by its name and a dot, None for none. Raises UnknownSchema (3F000)."""
    schema, dot, _ = name.partition(SEPARATOR)
    if dot and find(schema + SEPARATOR) is None:
        raise UnknownSchema(f'schema "{schema:.80}" does not exist')


def bare(schema: str, name: str) -> str:
    """Return a name without its schema, "" = public."""
    return name.removeprefix(schema + SEPARATOR) if schema else name


def schema_shown(table: Descriptor) -> str:
    """Return the schema in which catalogs show a table."""
    return TEMPORARY_SCHEMA if table.temporary else table.schema or PUBLIC


def as_shown(table: Descriptor) -> Descriptor:
    """Return a table whose name, and those of its indexes and constraints, are shown beside its
    schema."""
    schema = table.schema
    if not schema:
        return table
    return replace(
        table,
        name=bare(schema, table.name),
        key_name=bare(schema, table.key_constraint),
        indexes=tuple(replace(i, name=bare(schema, i.name)) for i in table.indexes),
        checks=tuple(replace(c, name=bare(schema, c.name)) for c in table.checks),
        foreign_keys=tuple(replace(k, name=bare(schema, k.name)) for k in table.foreign_keys),
    )
