"""Index entries of many rows at once, by set-wise SQL."""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from array import array
from collections.abc import Sequence

import apsw

from leasehold.adapters.sqlite_plan import EntriesPlan, WritePlan
from leasehold.model.records import Key


def fill_entries(
    connection: apsw.Connection, plan: WritePlan, entries: EntriesPlan, keys: Sequence[Key]
) -> int:
    """Put the missing entries of the rows named by `keys`, from the rows; count those put.

    Single integer keys travel as one array; others through a temporary table, because JSON has
    no bytes and no exact floats. Sorting by entry before putting keeps B-tree writes local.
    """
    if not keys:
        return 0
    shown = ", ".join((*entries.from_row, *entries.primary_of_row))
    order = ", ".join(str(n + 1) for n in range(len(entries.columns)))
    bindings: tuple[object, ...] = ()
    if len(plan.key_ids) == 1 and all(type(key[0]) is int for key in keys):
        wanted = "carray(?) AS wanted"
        match = f"t.{plan.key_names[0]} = wanted.value"
        bindings = (apsw.carray(array("q", [key[0] for key in keys])),)
    else:
        wanted = _load_keys(connection, keys, len(plan.key_ids)) + " AS wanted"
        match = " AND ".join(f"t.{name} = wanted.p{n}" for n, name in enumerate(plan.key_names))
    connection.execute(
        f"INSERT OR IGNORE INTO {entries.name} SELECT {shown}"
        f" FROM {wanted} CROSS JOIN {plan.name} AS t ON {match} ORDER BY {order}",
        bindings,
    )
    return connection.changes()


def _load_keys(connection: apsw.Connection, keys: Sequence[Key], width: int) -> str:
    """Keys in an emptied temporary table; its name."""
    name = f"temp.wanted{int(width)}"
    columns = ", ".join(f"p{n}" for n in range(width))
    connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
    connection.execute(f"DELETE FROM {name}")
    holes = ", ".join("?" * width)
    connection.executemany(f"INSERT INTO {name} VALUES ({holes})", keys)
    return name
