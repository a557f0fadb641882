"""Names of schemas: a name before a relation's is one of them."""

from __future__ import annotations

from typing import Final

PUBLIC: Final = "public"
PG_CATALOG: Final = "pg_catalog"
INFORMATION_SCHEMA: Final = "information_schema"
LEASEHOLD: Final = "leasehold"
SCHEMAS: Final = frozenset({PUBLIC, PG_CATALOG, INFORMATION_SCHEMA, LEASEHOLD})
