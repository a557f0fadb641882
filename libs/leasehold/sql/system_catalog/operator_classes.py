"""What pg_opclass and pg_opfamily say, and pg_index of the classes of a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leasehold.catalog.elements import Index
from leasehold.sql.system_catalog import oids
from leasehold.values.operator_classes import CLASSES, class_of_key, number_of_input
from leasehold.values.types import Type

Row = Mapping[str, Any]


def classes_of_key(kinds: Sequence[Type], index: Index | None) -> tuple[int, ...]:
    """Return the numbers of the operator classes of an index's key, which is of these types; 0 for
    a type that has none."""
    orders = index.orders if index is not None and index.orders else ("",) * len(kinds)
    found = (class_of_key(kind, order) for kind, order in zip(kinds, orders, strict=True))
    return tuple(0 if each is None else each.oid for each in found)


def operator_classes() -> Iterator[Row]:
    """Give the rows of pg_opclass."""
    for each in CLASSES:
        yield {
            "oid": each.oid,
            "opcmethod": oids.BTREE,
            "opcname": each.name,
            "opcnamespace": oids.CATALOG_NAMESPACE,
            "opcowner": oids.OWNER,
            "opcfamily": each.family.oid,
            "opcintype": number_of_input(each),
            "opcdefault": int(each.by_default),
        }


def operator_families() -> Iterator[Row]:
    """Give the rows of pg_opfamily."""
    for family in dict.fromkeys(each.family for each in CLASSES):
        yield {
            "oid": family.oid,
            "opfmethod": oids.BTREE,
            "opfname": family.name,
            "opfnamespace": oids.CATALOG_NAMESPACE,
            "opfowner": oids.OWNER,
        }
