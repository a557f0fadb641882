"""What pg_class and pg_attribute say of the system relations themselves: the same in every
database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from leasehold.catalog.definitions import alignment_of, storage_of
from leasehold.catalog.schema_names import LEASEHOLD, PG_CATALOG
from leasehold.sql.system_catalog import oids
from leasehold.sql.system_catalog.names import NAMESPACES, SYSTEM_OIDS, SYSTEM_RELATIONS
from leasehold.sql.system_catalog.relations import RELATIONS
from leasehold.values.oids import modifier_of, oid_of, size_of
from leasehold.values.types import Type, element_of

Row = Mapping[str, Any]

COLLATED: Final = frozenset({"text", "varchar", "char"})


@lru_cache(maxsize=8)
def system_rows(name: str) -> tuple[tuple[Any, ...], ...]:
    """Whole rows of that relation of pg_catalog; () of one that says nothing of them."""
    made = _ROWS.get(name)
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
    for name, oid in SYSTEM_OIDS.items():
        relation = SYSTEM_RELATIONS[name]
        for number, column in enumerate(relation.columns, 1):
            yield {
                **attribute_row(oid, number, column.name, column.type),
                "attcollation": 0,
                "attnotnull": int(column.name not in relation.nullable),
            }


def _extensions() -> Iterator[Row]:
    """The schema of ours is told as an extension's, which pg_dump and schema diffs leave out."""
    yield {
        "oid": oids.EXTENSION,
        "extname": LEASEHOLD,
        "extowner": oids.OWNER,
        "extnamespace": NAMESPACES[LEASEHOLD],
        "extrelocatable": 0,
        "extversion": "1.0",
    }


def _members() -> Iterator[Row]:
    """pg_depend of what the extension consists of."""
    members = [(oids.RELATIONS["pg_namespace"], NAMESPACES[LEASEHOLD])]
    tables = oids.RELATIONS["pg_class"]
    members += [(tables, oid) for (schema, _), oid in SYSTEM_OIDS.items() if schema == LEASEHOLD]
    for kind, oid in members:
        yield {
            "classid": kind,
            "objid": oid,
            "refclassid": oids.RELATIONS["pg_extension"],
            "refobjid": oids.EXTENSION,
            "deptype": "e",
        }


_ROWS: Final[Mapping[str, Callable[[], Iterator[Row]]]] = {
    "pg_class": _classes,
    "pg_attribute": _attributes,
    "pg_extension": _extensions,
    "pg_depend": _members,
}


def attribute_row(relation: int, number: int, name: str, kind: Type) -> dict[str, Any]:
    """Return what pg_attribute says of any column, those of indexes among them."""
    size = size_of(kind)
    return {
        "attrelid": relation,
        "attname": name,
        "attnum": number,
        "atttypid": oid_of(kind),
        "atttypmod": modifier_of(kind),
        "attlen": size,
        "attndims": int(kind.name.endswith("[]")),
        "attstattarget": -1,
        "attcacheoff": -1,
        "attislocal": 1,
        "attbyval": int(0 < size <= 8),
        "attstorage": storage_of(kind),
        "attalign": alignment_of(kind),
        "attcollation": collation_of(kind),
    }


def collation_of(kind: Type) -> int:
    """Return the number of the collation that values of a type have, 0 = none."""
    return oids.DEFAULT_COLLATION if (element_of(kind) or kind).name in COLLATED else 0
