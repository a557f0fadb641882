"""Numbers of tables, indexes and constraints, as PostgreSQL clients want them: one space, 32 bits.

A table's number is made from its id, an element's from its table's and its own; so they are the
same on every node and after every restart, and nothing has to be stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from zlib import crc32

FIRST: Final = 16_384
"""Smaller ones are PostgreSQL's own."""
ELEMENTS: Final = 4_096
TABLES: Final = ((1 << 31) - FIRST) // ELEMENTS
PRIMARY_KEY: Final = ELEMENTS - 1
"""In the place of an element id: a table's primary key has none."""
_ROW_TYPE: Final = ELEMENTS - 2
_ROW_ARRAY: Final = ELEMENTS - 3
"""In the place of an element id: the type of a table's rows, and that of arrays of these."""

CATALOG_NAMESPACE: Final = 11
PUBLIC_NAMESPACE: Final = 2_200
INFORMATION_NAMESPACE: Final = 13_207
LEASEHOLD_NAMESPACE: Final = 13_208
TEMPORARY_NAMESPACE: Final = 13_209
EXTENSION: Final = 13_210
OWNER: Final = 10
DATABASE: Final = 5
HEAP: Final = 2
BTREE: Final = 403
DEFAULT_COLLATION: Final = 100
RELATIONS: Final[Mapping[str, int]] = {
    "pg_default_acl": 826,
    "pg_tablespace": 1213,
    "pg_type": 1247,
    "pg_attribute": 1249,
    "pg_proc": 1255,
    "pg_class": 1259,
    "pg_authid": 1260,
    "pg_auth_members": 1261,
    "pg_database": 1262,
    "pg_foreign_server": 1417,
    "pg_user_mapping": 1418,
    "pg_sequence": 2224,
    "pg_foreign_data_wrapper": 2328,
    "pg_shdescription": 2396,
    "pg_aggregate": 2600,
    "pg_am": 2601,
    "pg_attrdef": 2604,
    "pg_cast": 2605,
    "pg_constraint": 2606,
    "pg_conversion": 2607,
    "pg_depend": 2608,
    "pg_description": 2609,
    "pg_index": 2610,
    "pg_inherits": 2611,
    "pg_language": 2612,
    "pg_namespace": 2615,
    "pg_opclass": 2616,
    "pg_operator": 2617,
    "pg_amop": 2602,
    "pg_amproc": 2603,
    "pg_parameter_acl": 6243,
    "pg_rewrite": 2618,
    "pg_trigger": 2620,
    "pg_opfamily": 2753,
    "pg_db_role_setting": 2964,
    "pg_largeobject_metadata": 2995,
    "pg_extension": 3079,
    "pg_foreign_table": 3118,
    "pg_init_privs": 3394,
    "pg_transform": 3576,
    "pg_policy": 3256,
    "pg_partitioned_table": 3350,
    "pg_statistic_ext": 3381,
    "pg_collation": 3456,
    "pg_event_trigger": 3466,
    "pg_enum": 3501,
    "pg_range": 3541,
    "pg_ts_dict": 3600,
    "pg_ts_parser": 3601,
    "pg_ts_config": 3602,
    "pg_ts_template": 3764,
    "pg_subscription": 6100,
    "pg_publication": 6104,
    "pg_publication_rel": 6106,
    "pg_publication_namespace": 6237,
}
"""PostgreSQL's numbers of its own tables, by which clients look for what is said of them."""
VIEWS: Final = 12_000
"""Where the numbers of views begin, which are other ones in every PostgreSQL."""


def table_oid(table_id: int) -> int:
    return element_oid(table_id, 0)


def element_oid(table_id: int, element_id: int) -> int:
    """Return the number of an index or a constraint, or that of the table itself for element 0.

    Beyond what fits side by side a number is drawn from the upper half, by a checksum.
    """
    if table_id < TABLES and element_id < ELEMENTS:
        return FIRST + table_id * ELEMENTS + element_id
    return 1 << 31 | crc32(f"{table_id}.{element_id}".encode()) >> 1


def row_type_oid(table_id: int, *, array: bool = False) -> int:
    """Return the number of the type of a table's rows, or of its array type."""
    return element_oid(table_id, _ROW_ARRAY if array else _ROW_TYPE)


def rule_oid(view_id: int) -> int:
    """Return the number of the rule that a view is."""
    return element_oid(view_id, 1)


def namespace_oid(namespace_id: int) -> int:
    """Return the number of a schema that was made, by its id: from the upper half, by a
    checksum."""
    return 1 << 31 | crc32(f"schema.{namespace_id}".encode()) >> 1
