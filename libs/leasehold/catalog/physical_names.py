"""The names in a store's file, made from integer ids alone: the SQL that is emitted here and the
layout that the adapter makes meet in them."""

from __future__ import annotations


def table_name(table_id: int) -> str:
    return f"t{int(table_id)}"


def history_name(table_id: int) -> str:
    """Return the name of the table with the images of a table's rows that were replaced."""
    return f"h{int(table_id)}"


def entries_name(table_id: int, index_id: int) -> str:
    return f"x{int(table_id)}_{int(index_id)}"


def column_name(element_id: int) -> str:
    return f"c{int(element_id)}"


def lock_name(lock_id: int) -> str:
    return f"g{int(lock_id)}"


def shadow_name(table_id: int) -> str:
    """Return the name of the temporary table that holds a transaction's own rows: those of the
    table, and `gone`."""
    return f"own{int(table_id)}"


def kept_name(number: int, width: int) -> str:
    """Return the name of the temporary table that holds the rows of a query of WITH, which another
    part of the statement has given; columns are o0, o1 …."""
    return f"kept{int(number)}_{int(width)}"
