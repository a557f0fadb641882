"""Names of schemas: a name before a relation's is one of them."""

from __future__ import annotations

from typing import Final

PUBLIC: Final = "public"
PG_CATALOG: Final = "pg_catalog"
INFORMATION_SCHEMA: Final = "information_schema"
LEASEHOLD: Final = "leasehold"
PG_TEMP: Final = "pg_temp"
"""A session's own, of its temporary tables."""
SCHEMAS: Final = frozenset({PUBLIC, PG_CATALOG, INFORMATION_SCHEMA, LEASEHOLD})
TEMPORARY_SCHEMA: Final = "pg_temp_1"
"""How catalogs call it: each session sees its own alone."""
HIDDEN: Final = "\0"
"""Before the name of a table that a temporary one of the same name hides, where names are looked
up. No name holds it."""
