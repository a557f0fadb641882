"""What was written in a range of a table since an LSN, as the writer sees it now (T1)."""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import apsw

from leasehold.adapters.sqlite.as_of import entries_then, match_of, old_images, range_of
from leasehold.adapters.sqlite.layout import lock_name
from leasehold.adapters.sqlite.plan import EntriesPlan, WritePlan
from leasehold.model.budget import RangeLooks, RangeTooLong
from leasehold.model.ids import genid
from leasehold.model.keys import Key
from leasehold.model.records.requests import ReadRange

STEPS_BETWEEN_LOOKS: Final = 1_000
ROW_COST: Final = 1
ENTRY_COST: Final = 10
"""Of a step where each row is sought by its key: 0.5 µs where a row's page is not at hand."""


def written_in(
    connection: apsw.Connection,
    plan: WritePlan,
    index_id: int,
    part: ReadRange,
    lsn: int,
    looks: RangeLooks,
) -> Key | None:
    """A row of now; by its genids, which a backfill leaves alone."""
    later = genid(lsn + 1, 0)
    newer = " OR ".join(f"t.{lock_name(lock)} >= ?" for lock in plan.locks)
    stamps = (later,) * len(plan.locks)
    keys = ", ".join(f"t.{name}" for name in plan.key_names)
    if not index_id:
        where = _within(tuple(f"t.{name}" for name in plan.key_names), part)
        text = f"SELECT {keys} FROM {plan.name} AS t WHERE ({newer}){where} LIMIT 1"
        bounds = (*stamps, *part.equal, *part.low, *part.high)
        if len(part.equal) == len(plan.key_names):
            return _first(connection, text, bounds)
        return _first_of_range(connection, text, bounds, looks, ROW_COST)
    entries = plan.entries[index_id]
    text = (
        f"SELECT {keys} FROM {entries.name} AS x CROSS JOIN {plan.name} AS t ON {match_of(plan)}"
        f" WHERE ({newer}){_within_entries(entries, part)} LIMIT 1"
    )
    return _first_of_range(connection, text, (*stamps, *_bounds(entries, part)), looks, ENTRY_COST)


def gone_from(
    connection: apsw.Connection,
    plan: WritePlan,
    index_id: int,
    part: ReadRange,
    lsn: int,
    looks: RangeLooks,
) -> Key | None:
    """An old image whose row is not there any more as it was. Of one that a backfill has replaced
    the genids are what they were."""
    later = genid(lsn + 1, 0)
    same = " AND ".join(f"ifnull(n.{lock_name(lock)}, 0) < ?" for lock in plan.locks)
    stamps = (later,) * len(plan.locks)
    there = " AND ".join(f"n.{name} = x.{name}" for name in plan.key_names)
    gone = f" AND NOT EXISTS (SELECT 1 FROM {plan.name} AS n WHERE {there} AND {same}) LIMIT 1"
    keys = ", ".join(f"x.{name}" for name in plan.key_names)
    since = old_images(connection, plan, later, " AS x" if not index_id else " AS t")
    if not index_id:
        where = _within(tuple(f"x.{name}" for name in plan.key_names), part)
        text = f"SELECT {keys} FROM {since} AND x.lsn <= ?{where}{gone}"
        bounds: Sequence[object] = (*part.equal, *part.low, *part.high)
    else:
        entries = plan.entries[index_id]
        then = entries_then(plan, entries, since)
        text = f"SELECT {keys} FROM ({then}) AS x WHERE 1{_within_entries(entries, part)}{gone}"
        bounds = _bounds(entries, part)
    return _first_of_range(connection, text, (later, lsn, *bounds, *stamps), looks, ENTRY_COST)


def _within(names: tuple[str, ...], part: ReadRange) -> str:
    width = len(part.equal)
    equal = "".join(f" AND {name} = ?" for name in names[:width])
    return equal + range_of(names[width:], part.low, part.high)


def _within_entries(entries: EntriesPlan, part: ReadRange) -> str:
    return _within(tuple(f"x.{name}" for name in entries.keys), part)


def _bounds(entries: EntriesPlan, part: ReadRange) -> tuple[object, ...]:
    behind = len(part.equal)
    low, high = entries.key(part.low, behind), entries.key(part.high, behind)
    return (*entries.key(part.equal), *low, *high)


def _first(connection: apsw.Connection, text: str, bindings: Sequence[object]) -> Key | None:
    found: list[Key] = connection.execute(text, tuple(bindings)).fetchall()
    return found[0] if found else None


def _first_of_range(
    connection: apsw.Connection,
    text: str,
    bindings: Sequence[object],
    looks: RangeLooks,
    cost: int,
) -> Key | None:
    """Return the first row. Raises RangeTooLong: the statement reads alone, so the transaction that
    is open on the connection is as it was."""
    watch = object()
    connection.set_progress_handler(
        lambda: not looks.take(STEPS_BETWEEN_LOOKS * cost), STEPS_BETWEEN_LOOKS, id=watch
    )
    try:
        return _first(connection, text, bindings)
    except apsw.InterruptError:
        raise RangeTooLong from None
    finally:
        connection.set_progress_handler(None, id=watch)
