"""The types that rows of tables and views have, and the arrays of these: clients list them, though
no column can have one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from leasehold.catalog.descriptor import Descriptor
from leasehold.sql.system_catalog import oids
from leasehold.sql.system_catalog.type_functions import columns_of

if TYPE_CHECKING:
    from leasehold.sql.system_catalog.rows import SystemCatalog


def row_type_of(table: Descriptor) -> int:
    """Return the number of the type of a relation's rows, 0 of a sequence, which has none."""
    return oids.row_type_oid(table.table_id) if table.sequence is None else 0


def row_type_rows(catalog: SystemCatalog) -> Iterator[dict[str, Any]]:
    """Give the rows of pg_type, two for each table and view."""
    for table in catalog.tables:
        oid = row_type_of(table)
        if not oid:
            continue
        array_oid = oids.row_type_oid(table.table_id, array=True)
        common = {
            "typnamespace": catalog.namespace_of(table),
            "typowner": catalog.access.owner_of(table.table_id),
            "typisdefined": 1,
            "typtypmod": -1,
            "typdelim": ",",
            "typlen": -1,
            "typalign": "d",
            "typstorage": "x",
        }
        yield {
            **common,
            "oid": oid,
            "typname": table.name,
            "typtype": "c",
            "typcategory": "C",
            "typrelid": oids.table_oid(table.table_id),
            "typarray": array_oid,
            **columns_of("record"),
        }
        yield {
            **common,
            "oid": array_oid,
            "typname": f"_{table.name}",
            "typtype": "b",
            "typcategory": "A",
            "typelem": oid,
            **columns_of("[]"),
        }
