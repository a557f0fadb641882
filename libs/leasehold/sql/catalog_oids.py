"""Numbers of tables, indexes and constraints, as PostgreSQL clients want them: one space, 32 bits.

A table's number is made from its id, an element's from its table's and its own; so they are the
same on every node and after every restart, and nothing has to be stored.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

FIRST: Final = 16_384
"""Smaller ones are PostgreSQL's own."""
ELEMENTS: Final = 4_096
TABLES: Final = ((1 << 31) - FIRST) // ELEMENTS
PRIMARY_KEY: Final = ELEMENTS - 1
"""In the place of an element id: a table's primary key has none."""

CATALOG_NAMESPACE: Final = 11
PUBLIC_NAMESPACE: Final = 2_200
INFORMATION_NAMESPACE: Final = 13_207
OWNER: Final = 10
DATABASE: Final = 5
HEAP: Final = 2
BTREE: Final = 403
DEFAULT_COLLATION: Final = 100


def table_oid(table_id: int) -> int:
    return element_oid(table_id, 0)


def element_oid(table_id: int, element_id: int) -> int:
    """Of an index or a constraint; of the table itself for element 0.

    Beyond what fits side by side a number is drawn from the upper half, by a checksum.
    """
    if table_id < TABLES and element_id < ELEMENTS:
        return FIRST + table_id * ELEMENTS + element_id
    return 1 << 31 | crc32(f"{table_id}.{element_id}".encode()) >> 1
