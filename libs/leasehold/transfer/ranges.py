"""Ranges of a table's key, each copied for itself and gone on with where it was.

PURE. Only the source compares keys: its collations order texts in ways of their own. A border is a
list of texts, as the source writes the key's columns; a range has what is above `above` and not
above `to`. Each ORDER BY names the table's columns by its alias: a name alone means a column of the
result, which a cast to text leaves with the same name and another order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from leasehold.transfer.quoting import quote_name, quote_names, quote_text
from leasehold.transfer.schema_plan import PlannedTable

RANGE_ROWS: Final = 250_000
RANGES_MAX: Final = 64
SAMPLE_ROWS: Final = 10_000
_ALIAS: Final = "copied"
Border = tuple[str, ...]


class KeyRange(NamedTuple):
    """A part of a table. None: without a border on that side. `number` is its place."""

    number: int
    above: Border | None
    to: Border | None


class Place(NamedTuple):
    """How far a range is: the key of its last row that is there."""

    last: Border | None = None

    def to_text(self, of: KeyRange) -> str:
        """Return the range and this place in it as they are kept."""
        return json.dumps({"above": of.above, "to": of.to, "last": self.last}, ensure_ascii=False)


def read_place(number: int, text: str) -> tuple[KeyRange, Place]:
    """Return what `Place.to_text` has written."""
    kept = json.loads(text)
    return KeyRange(number, _border(kept["above"]), _border(kept["to"])), Place(
        _border(kept["last"])
    )


def _border(kept: Sequence[str] | None) -> Border | None:
    return None if kept is None else tuple(kept)


def count_ranges(table: PlannedTable) -> int:
    """Return into how many ranges a table is cut: one where it has no key."""
    if not table.key:
        return 1
    return max(1, min(RANGES_MAX, -(-table.rows_about // RANGE_ROWS)))


def sample_query(table: PlannedTable, schema: str) -> str:
    """Return a query of some keys of a table, in order, as texts."""
    percent = min(100.0, 100.0 * SAMPLE_ROWS / max(1, table.rows_about))
    names = quote_names(table.key)
    texts = ", ".join(f"{quote_name(name)}::text" for name in table.key)
    within = f"SELECT {names} FROM {_relation(table, schema)}"
    within += f" TABLESAMPLE SYSTEM ({percent:.6f}) REPEATABLE (0)"
    return f"SELECT {texts} FROM ({within}) AS {_ALIAS} ORDER BY {_order(table)}"


def cut(sample: Sequence[Border], count: int) -> list[KeyRange]:
    """Return at most `count` ranges whose borders are taken from a sample in order."""
    borders: list[Border] = []
    for number in range(1, count):
        at = number * len(sample) // count
        if at < len(sample) and sample[at] not in borders:
            borders.append(sample[at])
    ends: list[Border | None] = [*borders, None]
    starts: list[Border | None] = [None, *borders]
    return [KeyRange(*each) for each in zip(range(len(ends)), starts, ends, strict=True)]


def copy_query(table: PlannedTable, schema: str, of: KeyRange, place: Place) -> str:
    """Return the query of the rows of a range that are not there yet, by key."""
    shown = ", ".join(column.read for column in table.copied)
    conditions = []
    above = place.last if place.last is not None else of.above
    if above is not None:
        conditions.append(_compared(table, ">", above))
    if of.to is not None:
        conditions.append(_compared(table, "<=", of.to))
    text = f"SELECT {shown} FROM {_relation(table, schema)} AS {_ALIAS}"
    if conditions:
        text += f" WHERE {' AND '.join(conditions)}"
    return text + (f" ORDER BY {_order(table)}" if table.key else "")


def _order(table: PlannedTable) -> str:
    return ", ".join(f"{_ALIAS}.{quote_name(name)}" for name in table.key)


def _compared(table: PlannedTable, sign: str, border: Border) -> str:
    constants = (
        f"{quote_text(text)}::{kind}" for text, kind in zip(border, table.key_types, strict=True)
    )
    return f"({quote_names(table.key)}) {sign} ({', '.join(constants)})"


def whole_query(table: PlannedTable, schema: str) -> str:
    """Return the query of all rows, with what the target computes, the key first."""
    computed = [column.read for column in table.columns if column.computed]
    shown = ", ".join([*(column.read for column in table.copied), *computed])
    return f"SELECT {shown} FROM {_relation(table, schema)}"


def _relation(table: PlannedTable, schema: str) -> str:
    only = "" if table.partitioned else "ONLY "
    return f"{only}{quote_name(schema)}.{quote_name(table.name)}"
