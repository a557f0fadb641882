"""Pairs of many rows at once, by set-wise SQL: index entries, and values of a new column."""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import apsw

from leasehold.adapters.sqlite.layout import column_name
from leasehold.adapters.sqlite.plan import EntriesPlan, WritePlan
from leasehold.catalog.elements import Column
from leasehold.model.keys import IntKeys, Key, Keys
from leasehold.model.records.events import Genids, Image
from leasehold.model.records.log import Backfill
from leasehold.rows.filled_by_key import backfill_row

ChangeEntries = Callable[[WritePlan, Key, Image | None, Image | None], None]


class _Wanted(NamedTuple):
    """Keys as a table that statements can name, its columns, and what is to be bound for it."""

    table: str
    columns: tuple[str, ...]
    bindings: tuple[object, ...]


def _wanted(connection: apsw.Connection, plan: WritePlan, keys: Keys) -> _Wanted:
    """Single integer keys travel as one array; others through a temporary table, because JSON has
    no bytes and no exact floats."""
    width = len(plan.key_ids)
    if isinstance(keys, tuple) and width == 1 and all(type(key[0]) is int for key in keys):
        keys = IntKeys([key[0] for key in keys])
    if isinstance(keys, IntKeys):
        return _Wanted("carray(?)", ("value",), (apsw.carray(keys.numbers),))
    return _Wanted(_load_keys(connection, keys, width), tuple(f"p{n}" for n in range(width)), ())


def backfill_entries(
    connection: apsw.Connection, plan: WritePlan, entries: EntriesPlan, keys: Keys
) -> int:
    """Put the missing entries of the rows named by `keys`, from the rows; count those put.

    Sorting by entry before putting keeps B-tree writes local.
    """
    if not keys:
        return 0
    wanted = _wanted(connection, plan, keys)
    shown = ", ".join((*entries.from_row, *entries.primary_of_row, *entries.included_of_row))
    held = f" WHERE {entries.held}" if entries.held else ""
    order = ", ".join(str(n + 1) for n in range(len(entries.columns)))
    named = zip(plan.key_names, wanted.columns, strict=True)
    match = " AND ".join(f"t.{name} = wanted.{column}" for name, column in named)
    connection.execute(
        f"INSERT OR IGNORE INTO {entries.name} SELECT {shown} FROM {wanted.table} AS wanted"
        f" CROSS JOIN {plan.name} AS t ON {match}{held} ORDER BY {order}",
        wanted.bindings,
    )
    return connection.changes()


def backfill_column(
    connection: apsw.Connection, plan: WritePlan, column: Column, keys: Keys
) -> int:
    """Put a column's value into those rows that lack the pair, and nothing else of them."""
    assert column.missing is not None, column
    if not keys:
        return 0
    wanted = _wanted(connection, plan, keys)
    own = column_name(column.element_id)
    # IN: the keys are looked up in their order, which is the order that rows lie in.
    connection.execute(
        f"UPDATE {plan.name} SET {own} = ? WHERE ({', '.join(plan.key_names)}) IN"
        f" (SELECT {', '.join(wanted.columns)} FROM {wanted.table}) AND {own} IS NULL",
        (column.missing.value, *wanted.bindings),
    )
    return connection.changes()


def backfill_images(
    connection: apsw.Connection, plan: WritePlan, backfill: Backfill, change_entries: ChangeEntries
) -> Key | None:
    """Put the images of rows, whose genids and LSN stay; → a key whose row has other genids."""
    if plan.backfill_moves_entries:
        return _backfill_images_and_entries(connection, plan, backfill, change_entries)
    rows = zip(backfill.keys, backfill.images, backfill.genids, strict=True)
    # Nearly always one group: the genids that rows have are those of the table's locks.
    for locks, group in groupby(rows, key=lambda row: tuple(row[2])):
        several = list(group)
        before = connection.total_changes()
        connection.executemany(
            plan.backfill(locks),
            [
                (*map(image.get, plan.other_ids), *key, *genids.values())
                for key, image, genids in several
            ],
        )
        if connection.total_changes() - before != len(several):
            return next(
                key for key, _, genids in several if not _has(connection, plan, key, genids)
            )
    return None


def _backfill_images_and_entries(
    connection: apsw.Connection, plan: WritePlan, backfill: Backfill, change_entries: ChangeEntries
) -> Key | None:
    for key, image, genids in zip(backfill.keys, backfill.images, backfill.genids, strict=True):
        found: list[tuple[Any, ...]] = connection.execute(plan.get_indexed, key).fetchall()
        values = (*map(image.get, plan.other_ids), *key, *genids.values())
        connection.execute(plan.backfill(tuple(genids)), values)
        if connection.changes() != 1:
            return key
        change_entries(plan, key, dict(zip(plan.indexed_ids, found[0], strict=False)), image)
    return None


def _has(connection: apsw.Connection, plan: WritePlan, key: Key, genids: Genids) -> bool:
    found: list[tuple[Any, ...]] = connection.execute(plan.get, key).fetchall()
    there = plan.row(found[0]).genids if found else {}
    return all(there.get(lock) == genid for lock, genid in genids.items()) and bool(found)


def backfill_indexed(
    connection: apsw.Connection,
    plan: WritePlan,
    column: Column,
    keys: Sequence[Key],
    change_entries: ChangeEntries,
) -> int:
    """The same where an index of this version is over the column: a row's entries go with it."""
    own = column_name(column.element_id)
    update = f"UPDATE {plan.name} SET {own} = ? WHERE {plan.where_key}"
    done = 0
    for key in dict.fromkeys(keys):
        found: list[tuple[Any, ...]] = connection.execute(plan.get_indexed, key).fetchall()
        if not found:
            continue
        before = dict(zip(plan.indexed_ids, found[0], strict=True))
        after = backfill_row(column, before)
        if after is not None:
            connection.execute(update, (after[column.element_id], *key))
            change_entries(plan, key, before, after)
            done += 1
    return done


def _load_keys(connection: apsw.Connection, keys: Sequence[Key], width: int) -> str:
    """Keys in an emptied temporary table; its name."""
    name = f"temp.wanted{int(width)}"
    columns = ", ".join(f"p{n}" for n in range(width))
    connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
    connection.execute(f"DELETE FROM {name}")
    holes = ", ".join("?" * width)
    connection.executemany(f"INSERT INTO {name} VALUES ({holes})", keys)
    return name
