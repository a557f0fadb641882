"""What the catalog says of a schema that gets another name, beside the versions of its tables: its
own name, those of views and enum types in it, and the texts of views that name what lies in it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from leasehold.catalog.access import Access
from leasehold.catalog.namespaces import bare, qualified
from leasehold.catalog.view import NAMES_MAX, View
from leasehold.sql.syntax.schema_places import rename_schema_in


class SchemaNamed(NamedTuple):
    """What a commit says of a schema: it is called `to`, and is found under its name of before as
    well; `to` "": under that no more."""

    namespace_id: int
    to: str = ""


def follow_naming(access: Access, said: SchemaNamed) -> Access:
    """Return `access` after that."""
    if said.to:
        return rename_schema(access, said.namespace_id, said.to, keeps=True)
    found = access.namespaces.get(said.namespace_id)
    return access if found is None else access.with_namespace(found._replace(alias=""))


def rename_schema(access: Access, namespace_id: int, to: str, *, keeps: bool = False) -> Access:
    """Return `access` with a schema called `to`, and with it what lies in it but for tables and
    sequences. `keeps`: it is found under its name of before, too."""
    found = access.namespaces.get(namespace_id)
    if found is None or found.name == to:
        return access
    schema = found.name
    renamed = found._replace(name=to, alias=schema if keeps else "")
    access = access.with_namespace(renamed)
    for enum in [*access.enums.values()]:
        if enum.schema == schema:
            name = qualified(to, bare(schema, enum.name))
            access = access.with_enum(replace(enum, name=name, schema=to))
    for view in [*access.views.values()]:
        after = _follow(view, schema, to)
        if after != view:
            access = access.with_view(after)
    return access


def _follow(view: View, schema: str, to: str) -> View:
    """Return a view whose query names what lies in the schema behind its new name. ⚠ Tables keep
    their names of before as well: who reads the past, or a version of before, finds them by those
    alone."""
    text = rename_schema_in(view.text, schema, to)
    tables = []
    for table in view.tables:
        known = (*table.names, *(_moved(name, schema, to) for name in table.names))
        names = tuple(dict.fromkeys(known))[-NAMES_MAX:]
        tables.append(table._replace(called=_moved(table.called, schema, to), names=names))
    views = {_moved(name, schema, to): number for name, number in view.views.items()}
    if view.schema == schema:
        view = view._replace(name=qualified(to, bare(schema, view.name)), schema=to)
    return view._replace(text=text, tables=(*tables,), views=views)


def _moved(name: str, schema: str, to: str) -> str:
    lies_there = name.startswith(qualified(schema, ""))
    return qualified(to, bare(schema, name)) if lies_there else name
