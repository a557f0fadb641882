"""A small model of a table that is copied under another key, by ranges of that key: two nodes, each
somewhere else in one log; writers who change keys; a master that is taken over, and a node whose
rows are not those of the log.

Rows are known by an id, under the old key, and have a new key each. The step is behind its fence,
so every write is of a version that writes both tables. The master, whichever node it is, has
applied the whole log when it appends: a write, the next range, or the record by which the job
leaves the run. A range that it appends may be lost with its term.

What is promised:

- R1: at any time each row of the copy is the row of the table that has its key now, as it is;
- R2: from the job's leaving on every row is in the copy;
- R3: stores at one position are equal;
- R4: a store whose rows are those of the log never stops at a range; one that has another version
  of a row does, at the range that brings it.

The rules that make it so are methods, and `mutants/row_copying.py` breaks each.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from itertools import combinations
from typing import Final, NamedTuple, TypeAlias

IDS: Final = (0, 1)
KEYS: Final = (0, 1, 2)
END: Final = len(KEYS)
STALE: Final = -1
"""The genid of a row that a store has wrong."""


class Row(NamedTuple):
    """A row of the table: its new key, and the genid of its last write."""

    key: int
    genid: int


class Copied(NamedTuple):
    """A row of the copy, which lies there by its new key."""

    id: int
    genid: int


class Put(NamedTuple):
    """Rows get these keys, in one commit; None: the row goes."""

    keys: tuple[tuple[int, int | None], ...]


class Range(NamedTuple):
    """Rows of the new keys `first` to `last`. `digest`: of those that the master's copy gets."""

    first: int
    last: int
    digest: tuple[int, ...]


class Mark(Enum):
    LEAVE = auto()


Record: TypeAlias = Put | Mark | Range
Table: TypeAlias = tuple[Row | None, ...]
Copy: TypeAlias = tuple[Copied | None, ...]


class Store(NamedTuple):
    """`at`: records that are applied; `stopped`: at a range of other rows than it has."""

    at: int
    table: Table
    copy: Copy
    stopped: bool = False
    is_wrong: bool = False


class World(NamedTuple):
    """`master`: which node; `decided`: up to where ranges were decided, in whatever record."""

    log: tuple[Record, ...]
    nodes: tuple[Store, ...]
    master: int = 0
    decided: int = 0
    faults: int = 0
    takeovers: int = 0


class Bounds(NamedTuple):
    """So many of each at most."""

    writes: int = 2
    takeovers: int = 1
    faults: int = 1
    nodes: int = 2

    def words(self) -> str:
        of = f"{self.nodes} nodes, " if self.nodes > 2 else ""
        return f"{of}{self.writes} writes, {self.takeovers} takeovers, {self.faults} wrong rows"


class Model:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds

    def starts(self) -> list[tuple[str, World]]:
        """Tables of before, and an empty copy."""
        nothing: Copy = (None,) * END
        found: tuple[Table, ...] = ((Row(1, 1), Row(0, 2)), (Row(2, 1), None))
        return [
            (f"{table}", World((), (Store(0, table, nothing),) * self.bounds.nodes))
            for table in found
        ]

    # ------------------------------------------------------------ promises

    def invariant(self, world: World) -> str | None:
        for store in world.nodes:
            if store.stopped:
                if not store.is_wrong:
                    return f"R4: a right store stops: {store}"
                continue
            if store.is_wrong:
                if self._is_passed(world, store):
                    return f"R4: a wrong store passes the range of its row: {store}"
                continue
            for key, copied in enumerate(store.copy):
                row = None if copied is None else store.table[copied.id]
                if copied is not None and row != Row(key, copied.genid):
                    return f"R1: the copy has {copied} at {key}, the table {row}"
            if Mark.LEAVE in world.log[: store.at]:
                for number, row in enumerate(store.table):
                    if row is not None and store.copy[row.key] != Copied(number, row.genid):
                        return f"R2: row {number}, {row}, is not in the copy"
        right = [store for store in world.nodes if not store.is_wrong]
        for one, other in combinations(right, 2):
            if one.at == other.at and one != other:
                return f"R3: {one}, {other}"
        return None

    def _is_passed(self, world: World, store: Store) -> bool:
        """Whether a range has put a row that is not as the log has it."""
        return any(copied is not None and copied.genid == STALE for copied in store.copy)

    # ------------------------------------------------------------ what may happen

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        master = world.nodes[world.master]
        if master.at == len(world.log) and not master.is_wrong:
            for record in self._records(world, master):
                after = world._replace(log=(*world.log, record))
                if isinstance(record, Range):
                    after = after._replace(decided=record.last + 1)
                yield f"log: {record}", after
                if isinstance(record, Range) and world.takeovers < self.bounds.takeovers:
                    lost = world._replace(decided=record.last + 1)
                    for after in self._taken_over(lost):
                        yield f"lost with its master: {record}", after
        if world.takeovers < self.bounds.takeovers:
            for after in self._taken_over(world):
                yield "another master", after
        for number, store in enumerate(world.nodes):
            if store.at < len(world.log) and not store.stopped:
                record = world.log[store.at]
                after_it = self._apply(store, record)._replace(at=store.at + 1)
                yield f"node {number} applies {record}", self._with(world, number, after_it)
            if world.faults < self.bounds.faults and number != world.master:
                yield from self._hurt(world, number, store)

    def _taken_over(self, world: World) -> Iterator[World]:
        for other in range(len(world.nodes)):
            if other != world.master:
                yield world._replace(master=other, takeovers=world.takeovers + 1)

    def _hurt(self, world: World, number: int, store: Store) -> Iterator[tuple[str, World]]:
        """A row is another version than the log's, where nothing is copied yet."""
        for place, row in enumerate(store.table):
            if row is not None and store.copy[row.key] is None and not store.is_wrong:
                table = (*store.table[:place], row._replace(genid=STALE), *store.table[place + 1 :])
                wrong = store._replace(table=table, is_wrong=True)
                hurt = world._replace(faults=world.faults + 1)
                yield f"node {number} loses a write", self._with(hurt, number, wrong)

    def canonical(self, world: World) -> World:
        """Return the same world for all that differ by the names of nodes: the master comes
        first."""
        others = [store for number, store in enumerate(world.nodes) if number != world.master]
        nodes = (world.nodes[world.master], *sorted(others, key=hash))
        return world._replace(nodes=nodes, master=0)

    def goal(self, world: World) -> bool:
        """Return whether the copy is whole, on every node that has what the log has."""
        end = len(world.log)
        return Mark.LEAVE in world.log and all(s.stopped or s.at == end for s in world.nodes)

    def _with(self, world: World, number: int, store: Store) -> World:
        nodes = (*world.nodes[:number], store, *world.nodes[number + 1 :])
        return world._replace(nodes=nodes)

    def _records(self, world: World, master: Store) -> Iterator[Record]:
        """What the master may append."""
        if sum(isinstance(record, Put) for record in world.log) < self.bounds.writes:
            yield from self._writes(master)
        if Mark.LEAVE in world.log:
            return
        first = self.next_first(world)
        if first < END:
            for last in range(first, END):
                yield Range(first, last, self.digest(master, first, last))
        else:
            yield Mark.LEAVE

    def _writes(self, master: Store) -> Iterator[Put]:
        for number in IDS:
            others = {row.key for row in _without(master.table, number) if row is not None}
            yield from (Put(((number, key),)) for key in KEYS if key not in others)
            if master.table[number] is not None:
                yield Put(((number, None),))
        one, other = master.table
        if one is not None and other is not None:
            yield Put(((0, other.key), (1, one.key)))

    def next_first(self, world: World) -> int:
        """Return where the next range begins: where the last one in the log has ended."""
        ranges = [record for record in world.log if isinstance(record, Range)]
        return ranges[-1].last + 1 if ranges else 0

    # ------------------------------------------------------------ a node

    def _apply(self, store: Store, record: Record) -> Store:
        match record:
            case Put():
                return self.write(store, record, genid=store.at + 10)
            case Range(first, last, digest):
                if self.digest(store, first, last) != digest:
                    return store._replace(stopped=True)
                return store._replace(copy=self.copied(store, first, last))
            case Mark.LEAVE:
                return store

    def write(self, store: Store, put: Put, genid: int) -> Store:
        """Write the rows, and those of the copy: whether their ranges are copied is no matter."""
        table, copy = list(store.table), list(store.copy)
        before = [store.table[number] for number, _ in put.keys]
        for row in before:
            if row is not None:
                copy[row.key] = None
        for number, key in put.keys:
            table[number] = None if key is None else Row(key, genid)
            if key is not None:
                copy[key] = Copied(number, genid)
        return store._replace(table=tuple(table), copy=tuple(copy), is_wrong=STALE in _all(table))

    def digest(self, store: Store, first: int, last: int) -> tuple[int, ...]:
        """Return the digest of the rows that the copy gets."""
        added = [copied for copied in self._added(store, first, last) if copied is not None]
        return tuple(sorted(copied.genid for copied in added))

    def copied(self, store: Store, first: int, last: int) -> Copy:
        """Return the copy with the rows of a range, as they are now, that it has not."""
        added = self._added(store, first, last)
        return tuple(
            there if there is not None else new
            for there, new in zip(store.copy, added, strict=True)
        )

    def _added(self, store: Store, first: int, last: int) -> Copy:
        found: list[Copied | None] = [None] * END
        for number, row in enumerate(store.table):
            if row is not None and first <= row.key <= last and store.copy[row.key] is None:
                found[row.key] = Copied(number, row.genid)
        return tuple(found)


def _without(table: Table, number: int) -> Table:
    return (*table[:number], *table[number + 1 :])


def _all(table: list[Row | None]) -> set[int]:
    return {row.genid for row in table if row is not None}
