"""What pg_class and pg_attribute say of the system relations themselves: the same in every
database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from leasehold.catalog.definitions import alignment_of, storage_of
from leasehold.catalog.schema_names import PG_CATALOG
from leasehold.sql.system_catalog import oids
from leasehold.sql.system_catalog.names import NAMESPACES, SYSTEM_OIDS, SYSTEM_RELATIONS
from leasehold.sql.system_catalog.relations import RELATIONS
from leasehold.values.oids import oid_of, size_of

Row = Mapping[str, Any]


@lru_cache(maxsize=8)
def system_rows(name: str) -> tuple[tuple[Any, ...], ...]:
    """Whole rows of that relation of pg_catalog; () of one that says nothing of them."""
    made = {"pg_class": _classes, "pg_attribute": _attributes}.get(name)
    relation = RELATIONS[PG_CATALOG, name]
    return () if made is None else tuple(relation.whole(row) for row in made())


def is_view(name: str) -> bool:
    return name not in oids.RELATIONS


def _classes() -> Iterator[Row]:
    for (schema, name), oid in SYSTEM_OIDS.items():
        table = not is_view(name)
        yield {
            "oid": oid,
            "relname": name,
            "relnamespace": NAMESPACES[schema],
            "relowner": oids.OWNER,
            "relam": oids.HEAP if table else 0,
            "relkind": "r" if table else "v",
            "relpersistence": "p",
            "relispopulated": 1,
            "reltuples": -1.0,
            "relreplident": "n",
            "relhasrules": int(not table),
            "relnatts": len(SYSTEM_RELATIONS[schema, name].columns),
        }


def _attributes() -> Iterator[Row]:
    for name, relation in SYSTEM_OIDS.items():
        for number, column in enumerate(SYSTEM_RELATIONS[name].columns, 1):
            size = size_of(column.type)
            yield {
                "attrelid": relation,
                "attname": column.name,
                "attnum": number,
                "atttypid": oid_of(column.type),
                "atttypmod": -1,
                "attlen": size,
                "attstattarget": -1,
                "attcacheoff": -1,
                "attislocal": 1,
                "attbyval": int(0 < size <= 8),
                "attstorage": storage_of(column.type),
                "attalign": alignment_of(column.type),
                "attnotnull": int(column.name not in SYSTEM_RELATIONS[name].nullable),
            }
