"""What a partial replica holds of a database: some tables, of each perhaps one range of keys, or
the rows with one value in a column.

Everybody's catalog is whole; a part says of which tables a store has the rows. It is chosen when
the store is made and is part of what the store is: with another one it is made anew. What a part
does not have it never answers about, so whatever it answers is what a full replica would.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.states import READABLE, State
from leasehold.model.errors import NotHeldHere, StoreCorrupted
from leasehold.model.ids import is_sequence_id
from leasehold.model.keys import INTEGER_MOST, Key
from leasehold.model.records.events import Image
from leasehold.model.records.log import Backfill, ChangeKind, Commit, RowChange

TABLES_MAX: Final = 1_000
NAMES_SHOWN_MAX: Final = 10
DROPPED: Final = " (dropped)"
"""What stands behind the name of a table that is gone."""
HOW_TO_WIDEN: Final = (
    "Name it, too, in tables= of open_replica, or in LEASEHOLD_REPLICA_TABLES: the replica then"
    " begins anew with a copy of all that it is to hold. Or ask a full replica."
)


class KeyRange(NamedTuple):
    """Rows whose first key column has a value from `low` on and below `high`, in storage form; None
    is no bound."""

    low: Any = None
    high: Any = None

    def has(self, value: Any) -> bool:
        if self.low is not None and value < self.low:
            return False
        return self.high is None or value < self.high

    def covers(self, other: KeyRange) -> bool:
        """Return whether every value of `other` is in this range."""
        below = self.low is None or (other.low is not None and self.low <= other.low)
        above = self.high is None or (other.high is not None and other.high <= self.high)
        return below and above


class ColumnValue(NamedTuple):
    """Rows with that value, in storage form, in a column that need not be of the key."""

    element_id: int
    value: Any


class RowsWanted(NamedTuple):
    """The rows of a table that are held: those of a range of keys that have the value in the column
    (`equal`; None: whatever they have)."""

    keys: KeyRange = KeyRange()
    equal: ColumnValue | None = None


IsHere = Callable[[RowChange], bool]
"""Returns whether a row with the key of a change is in the store."""


def _has(keys: KeyRange, value: Any) -> bool:
    try:
        return keys.has(value)
    except TypeError:  # of another type than the column, as somebody compares it
        return False


def _covers(keys: KeyRange, read: KeyRange) -> bool:
    try:
        return keys.covers(read)
    except TypeError:
        return False


class HeldTable(NamedTuple):
    """A table of which a store has rows: all of them, or those of a range. `name` is that of now,
    `where` how its owner has written the range. `columns`: names of those that are held, as its
    owner says them, () = all; `elements`: their ids, those of the primary key among them."""

    table_id: int
    name: str
    where: str = ""
    keys: KeyRange = KeyRange()
    columns: tuple[str, ...] = ()
    elements: frozenset[int] = frozenset()
    equal: ColumnValue | None = None

    @property
    def is_whole(self) -> bool:
        return self.keys == KeyRange() and not self.columns and self.equal is None

    @property
    def is_dropped(self) -> bool:
        return self.name.endswith(DROPPED)

    def is_served_by(self, descriptor: Descriptor) -> bool:
        """Return whether the rows that are held can be told from others under that version: its
        condition's column is there, and each change of a row sets all of its genids."""
        if self.equal is None:
            return True
        column = descriptor.by_id.get(self.equal.element_id)
        return (
            column is not None
            and column.state in (*READABLE, State.WRITE_ONLY)
            and descriptor.one_lock
        )

    def followed(self, change: RowChange, is_here: IsHere) -> RowChange | None:
        """Return a change as this store applies it, None: it is of rows of others. A row comes in
        or goes out as its value in the condition's column changes: it is inserted or deleted
        here."""
        if not self.keys.has(change.key[0]):
            return None
        if self.equal is None:
            return self._restricted(change)
        element, value = self.equal
        stays = change.image is not None and change.image.get(element) == value
        if is_here(change):
            if not stays and change.kind is not ChangeKind.DELETE:
                change = change._replace(kind=ChangeKind.DELETE, image=None, locks=(), carried={})
        elif not stays or change.kind is ChangeKind.BACKFILL:
            return None
        else:
            change = change._replace(kind=ChangeKind.INSERT, before={})
        return self._restricted(change)

    def _restricted(self, change: RowChange) -> RowChange:
        if not self.columns:
            return change
        return change._replace(image=self.restricted(change.image))

    def restricted(self, image: Image | None) -> Image | None:
        """Return what of a row's pairs is held."""
        if not self.columns or image is None:
            return image
        return {e: value for e, value in image.items() if e in self.elements}

    def which(self) -> str:
        """Return which rows and columns are held, for people; "" = all."""
        shown = f"columns {', '.join(self.columns)}" if self.columns else ""
        return "; ".join(filter(None, (self.where, shown)))


@dataclass(frozen=True, slots=True)
class Part:
    """What a store holds. `WHOLE` holds everything; it is every store's but a partial replica's."""

    tables: Mapping[int, HeldTable] | None = None

    @classmethod
    def of(cls, tables: Iterable[HeldTable]) -> Part:
        return cls({table.table_id: table for table in tables})

    @property
    def is_whole(self) -> bool:
        """Return whether it is everything there is."""
        return self.tables is None

    def holds(self, table_id: int) -> bool:
        """Return whether rows of that table are here, to be answered about."""
        return self.tables is None or table_id in self.tables

    def stores(self, table_id: int) -> bool:
        """Return whether the store has a place for that table. It has one for every sequence, which
        is one row: a table that is held may draw from it later."""
        return self.holds(table_id) or is_sequence_id(table_id)

    def holds_whole(self, table_id: int) -> bool:
        """Return whether all rows of that table are in the store."""
        if self.tables is None:
            return True
        held = self.tables.get(table_id)
        return held is not None and held.is_whole

    def equal(self, table_id: int) -> ColumnValue | None:
        """Return the value that rows of a held table have in one of its columns."""
        held = None if self.tables is None else self.tables.get(table_id)
        return None if held is None else held.equal

    def keys(self, table_id: int) -> KeyRange:
        """Return which rows of a held table are in the store."""
        held = None if self.tables is None else self.tables.get(table_id)
        return KeyRange() if held is None else held.keys

    @property
    def has_ranges(self) -> bool:
        """Return whether it has some rows of a table alone."""
        return self.tables is not None and any(not t.is_whole for t in self.tables.values())

    def table_ids(self) -> tuple[int, ...]:
        return () if self.tables is None else tuple(sorted(self.tables))

    def followed_by(self, descriptor: Descriptor) -> Part:
        """Return the part once a version of a table is applied: it calls the table by its name of
        now; and who holds all of a table holds the one, too, that its rows go over to when its
        primary key changes."""
        tables = self.tables
        if tables is None:
            return self
        drawn = self._with_sequences(descriptor)
        if drawn is not self:
            return drawn.followed_by(descriptor)
        held = tables.get(descriptor.table_id)
        if held is None:
            former = tables.get(descriptor.former) if descriptor.former else None
            if former is None or not former.is_whole:
                return self
            held = HeldTable(descriptor.table_id, "")
        if not held.is_served_by(descriptor):
            return Part({n: each for n, each in tables.items() if n != descriptor.table_id})
        gone = descriptor.state is State.ABSENT
        name = descriptor.name + DROPPED if gone else descriptor.name
        if held.name == name:
            return self
        return Part({**tables, descriptor.table_id: held._replace(name=name)})

    def _with_sequences(self, descriptor: Descriptor) -> Part:
        """Return the part with the sequences that a held table draws from."""
        tables = self.tables
        assert tables is not None, "everything is there of everything"
        if descriptor.table_id not in tables:
            return self
        new = [each for each in sequences_of(descriptor) if each not in tables]
        if not new:
            return self
        made = {each: HeldTable(each, f"a sequence of {descriptor.name}") for each in new}
        return Part({**tables, **made})

    # ------------------------------------------------------------ what is applied

    def seen(self, commit: Commit, is_here: IsHere) -> Iterable[tuple[int, RowChange]]:
        """Yield those changes of a commit, with their positions, that are of rows held here, as
        they are applied here. `is_here` is asked when the changes before it were. A row
        whose key changes is deleted under one key and inserted under the other: it comes in by the
        one and goes by the other."""
        assert self.tables is not None, "all is applied by who holds everything"
        for position, change in enumerate(commit.changes):
            held = self.tables.get(change.table_id)
            if held is None:
                if is_sequence_id(change.table_id):
                    yield position, change
            else:
                followed = held.followed(change, is_here)
                if followed is not None:
                    yield position, followed

    @staticmethod
    def lacks_column(held: HeldTable, element_id: int, indexes: Collection[int]) -> bool:
        """Return whether an element is a column that is not held."""
        return bool(held.columns) and element_id not in held.elements and element_id not in indexes

    def backfill(
        self,
        backfill: Backfill,
        indexes: Collection[int] = (),
        has_row: Callable[[Key], bool] = lambda key: True,
    ) -> Backfill | None:
        """Return what of a backfill is of rows held here; None: nothing. `indexes`: the ids of the
        table's. `has_row`: whether a row with that key is in the store."""
        assert self.tables is not None, "all is applied by who holds everything"
        held = self.tables.get(backfill.table_id)
        if held is None or self.lacks_column(held, backfill.element_id, indexes):
            return None
        if held.is_whole or backfill.span is not None:
            return backfill  # of a range the store has its own rows alone
        kept = [
            n
            for n, key in enumerate(backfill.keys)
            if held.keys.has(key[0]) and (held.equal is None or has_row(key))
        ]
        if not kept:
            return None
        return backfill._replace(
            keys=tuple(backfill.keys[n] for n in kept),
            images=tuple(held.restricted(backfill.images[n]) or {} for n in kept)
            if backfill.images
            else (),
            genids=tuple(backfill.genids[n] for n in kept) if backfill.genids else (),
        )

    # ------------------------------------------------------------ what is answered

    def check_table(self, descriptor: Descriptor) -> None:
        """Raise NotHeldHere for a table of which no rows are here."""
        if not self.holds(descriptor.table_id):
            kind = "table" if descriptor.sequence is None else "sequence"
            raise NotHeldHere(
                f"this replica does not hold {kind} {descriptor.name!r}: it holds only"
                f" {self.words()}",
                hint=HOW_TO_WIDEN,
                table=descriptor.name,
            )

    def check_key(self, descriptor: Descriptor, key: Key) -> None:
        """Raise NotHeldHere unless a row of that key, if there is one, is here."""
        keys = self._held_keys(descriptor)
        if keys is not None and not (key and _has(keys, key[0])):
            raise self.outside(descriptor)

    def check_found(self, descriptor: Descriptor, found: object) -> None:
        """Raise NotHeldHere where no row was found by its key, and there may be one that is not
        here: of a value of its own in the condition's column."""
        if found is None and self.equal(descriptor.table_id) is not None:
            raise self.outside(descriptor)

    def check_range(self, descriptor: Descriptor, read: KeyRange) -> None:
        """Raise NotHeldHere unless all rows of that range are here."""
        self.check_rows(descriptor, read, {})

    def check_rows(self, descriptor: Descriptor, read: KeyRange, values: Mapping[int, Any]) -> None:
        """Raise NotHeldHere unless all rows of that range are here that have these values in
        columns, by element id."""
        keys = self._held_keys(descriptor)
        if keys is None:
            return
        equal = self.equal(descriptor.table_id)
        told = equal is None or (
            equal.element_id in values and values[equal.element_id] == equal.value
        )
        if not (told and _covers(keys, read)):
            raise self.outside(descriptor)

    def _held_keys(self, descriptor: Descriptor) -> KeyRange | None:
        """Return which rows of a table are here, None: all of them. Raises NotHeldHere."""
        if self.tables is None:
            return None
        held = self.tables.get(descriptor.table_id)
        if held is None:
            self.check_table(descriptor)
            return None
        return None if held.is_whole else held.keys

    def lists_columns(self, table_id: int) -> bool:
        """Return whether some columns of a table are held alone."""
        held = None if self.tables is None else self.tables.get(table_id)
        return held is not None and bool(held.columns)

    def shown(self, descriptor: Descriptor, row: dict[str, Any]) -> dict[str, Any]:
        """Return of a row, by column name, what is held of it."""
        held = None if self.tables is None else self.tables.get(descriptor.table_id)
        if held is None or not held.columns:
            return row
        by_name = descriptor.by_name
        return {n: v for n, v in row.items() if by_name[n].element_id in held.elements}

    def check_columns(self, descriptor: Descriptor, elements: Iterable[int]) -> None:
        """Raise NotHeldHere unless those columns are held."""
        held = None if self.tables is None else self.tables.get(descriptor.table_id)
        if held is None or not held.columns:
            return
        lacking = [descriptor.by_id[e].name for e in elements if e not in held.elements]
        if lacking:
            raise self._without_columns(descriptor, held, f"not {', '.join(sorted(lacking)[:5])}")

    def check_writable(self, descriptor: Descriptor) -> None:
        """Raise NotHeldHere for a table whose rows can't be changed here: not all of one is
        known."""
        held = None if self.tables is None else self.tables.get(descriptor.table_id)
        if held is not None and held.equal is not None:
            raise NotHeldHere(
                f"this replica holds only those rows of table {descriptor.name!r} with"
                f" {held.where}, so it changes no row of it: whether another one is in the way"
                " can't be told here",
                hint="Write at a full replica, or send a change request.",
                table=descriptor.name,
            )
        if held is not None and held.columns:
            raise self._without_columns(descriptor, held, "so it changes no row of it")

    def _without_columns(self, descriptor: Descriptor, held: HeldTable, words: str) -> NotHeldHere:
        return NotHeldHere(
            f"this replica holds only columns {', '.join(held.columns)} of table"
            f" {descriptor.name!r}, {words}",
            hint="Name the columns that are held, or name more of them where the replica is opened"
            " (columns=, LEASEHOLD_REPLICA_COLUMNS). Or ask a full replica.",
            table=descriptor.name,
        )

    def outside(self, descriptor: Descriptor) -> NotHeldHere:
        """Return the error of a read that might need rows which are not here."""
        assert self.tables is not None, "everything is there of everything"
        held = self.tables[descriptor.table_id]
        if not held.where:
            return self._without_columns(descriptor, held, "and this might need others")
        return NotHeldHere(
            f"this replica holds only those rows of table {descriptor.name!r} with"
            f" {held.where}, and this might need others",
            hint=f"Say so in the statement (WHERE {held.where}), or narrower; or ask a full"
            " replica.",
            table=descriptor.name,
        )

    def words(self) -> str:
        """Return what is held, for people."""
        if self.tables is None:
            return "all tables"
        held = [each for each in self.tables.values() if not is_sequence_id(each.table_id)]
        shown = [each.name + (f" ({each.which()})" if each.which() else "") for each in held]
        more = len(shown) - NAMES_SHOWN_MAX
        words = ", ".join(shown[:NAMES_SHOWN_MAX]) or "no table"
        return f"{words} and {more} more" if more > 0 else words

    # ------------------------------------------------------------ as it is kept

    def to_wire(self) -> Any:
        """Return the form in which a store keeps it."""
        if self.tables is None:
            return None
        return [
            [
                *(held.table_id, held.name, held.where, held.keys.low, held.keys.high),
                *(list(held.columns), sorted(held.elements)),
                *(() if held.equal is None else (list(held.equal),)),
            ]
            for _, held in sorted(self.tables.items())
        ]


WHOLE: Final = Part()


def sequences_of(table: Descriptor) -> tuple[int, ...]:
    """Return the ids of the sequences that a table's columns draw from."""
    return tuple(column.draws_from for column in table.columns if column.draws_from)


def part_from_wire(body: Any) -> Part:
    """Return what `to_wire` gave. Raises StoreCorrupted."""
    if body is None:
        return WHOLE
    try:
        return Part.of(
            HeldTable(
                int(table_id),
                str(name),
                str(where),
                KeyRange(low, high),
                tuple(map(str, columns)),
                frozenset(elements),
                ColumnValue(*equal[0]) if equal else None,
            )
            for table_id, name, where, low, high, columns, elements, *equal in body
        )
    except (TypeError, ValueError) as error:
        raise StoreCorrupted(f"what the store says that it holds can't be read: {error}") from error


class PartWish(NamedTuple):
    """What a replica is to hold, as its owner says it: names of tables, and of some which rows, as
    a condition in SQL, or which columns."""

    tables: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    columns: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def is_everything(self) -> bool:
        return not self.tables

    @classmethod
    def of(
        cls,
        tables: Collection[str] | None,
        where: Mapping[str, str] | None = None,
        columns: Mapping[str, Collection[str]] | None = None,
    ) -> PartWish:
        """Return the wish for those tables, each once, in the order of their names; of one with a
        condition, or with columns, it is enough to name that."""
        conditions = dict(where or {})
        listed = {name: tuple(sorted(set(found))) for name, found in (columns or {}).items()}
        names = {*(tables or ()), *conditions, *listed}
        return cls(
            tuple(sorted(names)), tuple(sorted(conditions.items())), tuple(sorted(listed.items()))
        )

    def to_json(self) -> str:
        """Return it as a node says it that asks another one for a copy."""
        told = {"tables": self.tables, "where": dict(self.where), "columns": dict(self.columns)}
        return json.dumps(told)

    @classmethod
    def from_json(cls, text: str) -> PartWish:
        """Raises ValueError for what `to_json` has not made."""
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("no object")
        tables, where = found.get("tables", []), found.get("where", {})
        columns = found.get("columns", {})
        shaped = isinstance(tables, list) and isinstance(where, dict) and isinstance(columns, dict)
        if not shaped or not all(isinstance(each, list) for each in columns.values()):
            raise ValueError("no names and conditions")
        texts = (*tables, *where.values(), *(name for each in columns.values() for name in each))
        if not all(isinstance(each, str) for each in texts):
            raise ValueError("no names and conditions")
        return cls.of(tables, where, columns)

    def is_met_by(self, part: Part) -> bool:
        """Return whether a store with that part is the one that is wished for. Sequences that its
        tables draw from, and tables that were dropped, may be in it beside these: the rows of a
        table whose primary key was changed are in another one now."""
        if part.tables is None or self.is_everything:
            return part.is_whole and self.is_everything
        where, columns = dict(self.where), dict(self.columns)
        wanted = {name: (where.get(name, ""), columns.get(name, ())) for name in self.tables}
        return wanted == {
            each.name: (each.where, each.columns)
            for each in part.tables.values()
            if each.name in wanted or not (is_sequence_id(each.table_id) or each.is_dropped)
        }


def scanned(low: Key | None, high: Key | None) -> KeyRange:
    """Return the range of first key columns in which all keys are with low <= key < high, by
    prefixes. A key below (5, x) may have 5 in front."""
    last = high[0] if high else None
    if high is not None and len(high) > 1:
        last = next_value(last)
    return KeyRange(low[0] if low else None, last)


def next_value(value: Any) -> Any:
    """Return the next value in the order of a key; None where there is none, or none is known."""
    match value:
        case int():
            return value + 1 if value < INTEGER_MOST else None
        case str():
            return value + "\0"
        case bytes():
            return value + b"\0"
    return None
