"""The search path of a session: in which schemas a name without one is looked up, in which order.

pg_catalog comes first, and a session's temporary tables before it; neither need be said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.catalog.schema_names import PG_CATALOG, PUBLIC, SCHEMAS
from leasehold.model.errors import InvalidArgument
from leasehold.values.letters import ascii_lower

SETTING: Final = "search_path"
DEFAULT_PATH: Final = '"$user", public'
PATH_CHARS_MAX: Final = 8_192
_USER: Final = "$user"
_ELEMENT: Final = re.compile(r'\s*+(?:"((?:[^"]|"")*+)"|([^\s",]++))\s*+(,|$)')


@lru_cache(1_000)
def read_search_path(text: str) -> tuple[str, ...]:
    """Return the names that a value of `search_path` lists. Raises InvalidArgument (22023)."""
    if not text.strip():
        return ()
    names: list[str] = []
    at = 0
    while True:
        found = _ELEMENT.match(text, at) if len(text) <= PATH_CHARS_MAX else None
        if found is None:
            raise InvalidArgument(
                f'invalid value for parameter "search_path": "{text:.80}"',
                detail="List syntax is invalid.",
            )
        quoted, plain, sign = found.groups()
        names.append(ascii_lower(plain) if quoted is None else quoted.replace('""', '"'))
        if sign != ",":
            return tuple(names)
        at = found.end()


def find_schemas(text: str, user: str, access: Access, role_id: int) -> tuple[str, ...]:
    """Return the schemas of a search path that are there and that the role `role_id`, called
    `user`, may use, in their order."""
    found: dict[str, None] = {}
    for said in read_search_path(text):
        name = user if said == _USER else said
        made = access.namespaces_by_name.get(name)
        if made is None:
            # ⚠ The first role is called like the schema of what nodes tell: that is not its own.
            if name in SCHEMAS and said != _USER:
                found[name] = None
        elif access.may_use_schema(role_id, made.namespace_id):
            found[name] = None
    return tuple(found)


def schemas_of(
    settings: Mapping[str, str] | None, access: Access, role_id: int, first_role: str
) -> tuple[str, ...]:
    """Return the schemas of the search path of a session, of which some settings are known; it
    calls the first role `first_role`."""
    user = first_role if role_id == BOOTSTRAP_ROLE else access.roles.name_of(role_id)
    text = DEFAULT_PATH if settings is None else settings.get(SETTING, DEFAULT_PATH)
    return find_schemas(text, user, access, role_id)


def is_public_alone(schemas: Iterable[str]) -> bool:
    """Return whether a name without a schema means what it means without a search path."""
    return [name for name in schemas if name != PG_CATALOG] == [PUBLIC]


class RelationNames(NamedTuple):
    """The names of all relations and their constraints, those of temporary tables apart. `seen`:
    the objects that they were read from, which are others once a name may have changed."""

    seen: tuple[Any, ...]
    shared: frozenset[str]
    temporary: frozenset[str]

    def is_of(self, seen: tuple[Any, ...]) -> bool:
        """Return whether they were read from these very objects."""
        return all(mine is other for mine, other in zip(self.seen, seen, strict=True))


def list_relation_names(
    seen: tuple[Any, ...], tables: Iterable[Descriptor], access: Access
) -> RelationNames:
    """Return the names of tables, of what lies beside them, and of the views of `access`."""
    shared, temporary = set(access.views_by_name), set[str]()
    for table in tables:
        names = temporary if table.temporary else shared
        names.update(table.names)
        if table.names:
            names |= table.index_names
            names.update(check.name for check in table.checks)
            names.update(key.name for key in table.foreign_keys)
    return RelationNames(seen, frozenset(shared), frozenset(temporary))
