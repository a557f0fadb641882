"""A small model of backfills by range: one table, two nodes, each somewhere else in one log and in
its own merges; writers at two adjacent versions of the table.

The log has writes, the fence behind which nobody writes at delete-only any more, ranges, TRUNCATE
and the record by which the job leaves the run. A node applies the next record, makes the run of the
first range that waits, merges an entry of it, is killed, or begins anew from the other one's store.
A master undoes the leaving that it has put into its store where that record is lost with its term.
It looks only at rows that it remembers as written since the run was made.

What is promised, of each node:

- R1: from the fence on each entry is of a row as it is;
- R2: from the job's leaving on each row has its entry, wherever the node was with its merges;
- R3: from the record on by which it turns back instead stores at one position are equal.

So they are, too, from its leaving on. The rules that make it so are methods, and
`mutants/range_backfill.py` breaks each.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from itertools import combinations
from typing import Final, NamedTuple, TypeAlias

KEYS: Final = (0, 1)
VALUES: Final = (0, 1)
END: Final = len(KEYS)
"""As the last key of a range: it ends nowhere."""


class Put(NamedTuple):
    key: int
    value: int | None  # None: the row is deleted
    writes_entry: bool  # at write-only; at delete-only entries are only taken away


class Mark(Enum):
    TRUNCATE = auto()
    FENCE = auto()
    LEAVE = auto()
    BACK = auto()


class Range(NamedTuple):
    """Keys `first` to `last`."""

    first: int
    last: int


Record: TypeAlias = Put | Mark | Range
Row: TypeAlias = tuple[int, int] | None
"""Value and LSN of the last write."""
Run: TypeAlias = tuple[tuple[int, int, int], ...]
"""Key, value and LSN of rows, in the order of their entries."""


class Waiting(NamedTuple):
    keys: Range
    run: Run | None = None


class Store(NamedTuple):
    """`at`: records that are applied. `written`: keys of rows that were written since the first
    range's run was made."""

    at: int
    rows: tuple[Row, ...]
    entries: frozenset[tuple[int, int]] = frozenset()
    waiting: tuple[Waiting, ...] = ()
    written: frozenset[int] = frozenset()

    @property
    def merges(self) -> bool:
        return bool(self.waiting) and self.waiting[0].run is not None


class World(NamedTuple):
    log: tuple[Record, ...]
    nodes: tuple[Store, ...]
    faults: int = 0


class Bounds(NamedTuple):
    """So many of each at most."""

    writes: int = 2
    truncations: int = 1
    faults: int = 1
    nodes: int = 2

    def words(self) -> str:
        of = f"{self.nodes} nodes, " if self.nodes > 2 else ""
        return f"{of}{self.writes} writes, {self.truncations} truncations, {self.faults} faults"


class Model:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds

    def starts(self) -> list[tuple[str, World]]:
        """Rows of before the index, which has no entry yet."""
        found: tuple[tuple[Row, ...], ...] = (((0, -1), (1, -1)), ((0, -1), None))
        return [(f"rows {r}", World((), (Store(0, r),) * self.bounds.nodes)) for r in found]

    def invariant(self, world: World) -> str | None:
        for store in world.nodes:
            applied = world.log[: store.at]
            rows = {(row[0], key) for key, row in enumerate(store.rows) if row is not None}
            if Mark.FENCE in applied and not store.entries <= rows:
                return f"R1: {sorted(store.entries - rows)} is an entry of no row"
            if Mark.LEAVE in applied and not rows <= store.entries:
                return f"R2: {sorted(rows - store.entries)} has no entry"
        for one, other in combinations(world.nodes, 2):
            told = one.at == other.at and Mark.BACK in world.log[: one.at]
            if told and one.entries != other.entries:
                return f"R3: {sorted(one.entries ^ other.entries)} differ"
        return None

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        # One record is on its way to the master, the first node, at a time.
        landed = world.nodes[0].at == len(world.log)
        for record in self._records(world.log) if landed else ():
            yield f"log: {record}", world._replace(log=(*world.log, record))
        for number, store in enumerate(world.nodes):
            for label, after in self._steps(world, store):
                yield f"node {number}: {label}", self._with(world, number, after)
            if not number and store.merges and self._may_leave(world.log):
                yield "node 0 loses its leaving", self._with(world, number, self.undone(store))
            if world.faults < self.bounds.faults:
                hurt = world._replace(faults=world.faults + 1)
                if store.merges:
                    found = self.restarted(store)
                    yield f"node {number} is killed", self._with(hurt, number, found)
                for other in world.nodes:
                    if other.at <= store.at:
                        continue
                    copied = self.restarted(other)
                    yield f"node {number} takes a copy", self._with(hurt, number, copied)

    def canonical(self, world: World) -> World:
        """Return the same world for all that differ by the names of nodes: all but the first, which
        is the master, do alike, and nothing goes by their names."""
        first, *others = world.nodes
        return world._replace(nodes=(first, *sorted(others, key=hash)))

    def goal(self, world: World) -> bool:
        """Return whether the job has ended, everywhere, and nothing waits."""
        ended = Mark.LEAVE in world.log or Mark.BACK in world.log
        end = len(world.log)
        return ended and all(store.at == end and not store.waiting for store in world.nodes)

    def _with(self, world: World, number: int, store: Store) -> World:
        nodes = (*world.nodes[:number], store, *world.nodes[number + 1 :])
        return world._replace(nodes=nodes)

    # ------------------------------------------------------------ the log

    def _records(self, log: tuple[Record, ...]) -> Iterator[Record]:
        """What a master may append."""
        fenced, left = Mark.FENCE in log, Mark.LEAVE in log or Mark.BACK in log
        if sum(isinstance(record, Put) for record in log) < self.bounds.writes:
            for key in KEYS:
                for value in (None, *VALUES):
                    yield Put(key, value, True)
                    if not fenced:
                        yield Put(key, value, False)
        if fenced and log.count(Mark.TRUNCATE) < self.bounds.truncations:
            yield Mark.TRUNCATE
        if not fenced:
            yield Mark.FENCE
        ranges = [record for record in log if isinstance(record, Range)]
        covered = bool(ranges) and ranges[-1].last == END
        if self.may_begin(log) and not covered and not left:
            first = self.first_of_next(ranges)
            yield from (Range(first, last) for last in self.borders(log, first))
        if self._may_leave(log):
            yield Mark.LEAVE
        if ranges and fenced and not left and self.bounds.nodes > 1:  # R3 is of two of them
            yield Mark.BACK

    def _may_leave(self, log: tuple[Record, ...]) -> bool:
        left = Mark.LEAVE in log or Mark.BACK in log
        return not left and any(r.last == END for r in log if isinstance(r, Range))

    def may_begin(self, log: tuple[Record, ...]) -> bool:
        """Whether ranges may be in the log: behind the fence."""
        return Mark.FENCE in log

    def first_of_next(self, ranges: list[Range]) -> int:
        """Return where a range begins: where the one before has ended, so that none is between."""
        return ranges[-1].last + 1 if ranges else 0

    def borders(self, log: tuple[Record, ...], first: int) -> list[int]:
        """Return where a range may end: anywhere, and the last one nowhere."""
        return [*range(first, END - 1), END]

    # ------------------------------------------------------------ a node

    def _steps(self, world: World, store: Store) -> Iterator[tuple[str, Store]]:
        if store.at < len(world.log):
            record = world.log[store.at]
            yield f"applies {record}", self._apply(store, record)._replace(at=store.at + 1)
        if store.waiting:
            first = store.waiting[0]
            if first.run is None:
                made = Waiting(first.keys, self.run_of(world, store, first.keys))
                begun = store._replace(waiting=(made, *store.waiting[1:]), written=frozenset())
                yield "makes a run", begun
            else:
                yield from self.merge(store, first.run)

    def _apply(self, store: Store, record: Record) -> Store:
        rows, entries, written = list(store.rows), set(store.entries), store.written
        match record:
            case Put(key, value, writes_entry):
                row = rows[key]
                if row is not None:
                    entries.discard((row[0], key))
                rows[key] = None if value is None else (value, store.at)
                if value is not None and writes_entry:
                    entries.add((value, key))
                written |= self.remembered(store, (key,))
            case Mark.TRUNCATE:
                rows, entries = [None] * len(rows), set()
                written |= self.remembered(store, KEYS)
            case Range():
                return store._replace(waiting=(*store.waiting, Waiting(record)))
            case Mark.LEAVE:
                return self.leave(store)
            case Mark.BACK:
                return self.turn_back(store)
            case Mark.FENCE:
                pass
        return store._replace(rows=tuple(rows), entries=frozenset(entries), written=written)

    def remembered(self, store: Store, keys: tuple[int, ...]) -> frozenset[int]:
        """Return what a node remembers of keys that are written."""
        return frozenset(keys) if store.merges else frozenset()

    def undone(self, store: Store) -> Store:
        """Return what is there when the leaving was undone: all as before, and who wrote, too."""
        return store

    def run_of(self, world: World, store: Store, keys: Range) -> Run:
        """Return the run of a range: of the rows as they are now, behind the range's record."""
        return entries_of(store.rows, keys)

    def merge(self, store: Store, run: Run) -> Iterator[tuple[str, Store]]:
        """Put the next entry of a run; with the last one its range waits no more."""
        entries = store.entries
        if run and (run[0][0] not in store.written or self.is_as_read(store, run[0])):
            entries |= {(run[0][1], run[0][0])}
        first, *others = store.waiting
        if len(run) > 1:
            left = (first._replace(run=run[1:]), *others)
            yield "merges", store._replace(entries=entries, waiting=left)
        else:
            yield "merges", store._replace(entries=entries, waiting=(*others,), written=frozenset())

    def is_as_read(self, store: Store, read: tuple[int, int, int]) -> bool:
        """Whether a row is as the run has read it: nobody has written it since."""
        key, value, lsn = read
        return store.rows[key] == (value, lsn)

    def leave(self, store: Store) -> Store:
        """End what waits: the entries of its rows as they are."""
        runs = [entries_of(store.rows, waiting.keys) for waiting in store.waiting]
        put = {(value, key) for run in runs for key, value, _ in run}
        return store._replace(entries=store.entries | put, waiting=(), written=frozenset())

    def turn_back(self, store: Store) -> Store:
        """End what waits, and take what was merged: no two nodes have merged the same."""
        return store._replace(entries=frozenset(), waiting=(), written=frozenset())

    def restarted(self, store: Store) -> Store:
        """Return what is found after a restart, and in a copy: ranges that wait, without runs."""
        waiting = tuple(Waiting(w.keys) for w in store.waiting)
        return store._replace(waiting=waiting, written=frozenset())


def entries_of(rows: tuple[Row, ...], keys: Range) -> Run:
    there = ((row[0], key, row[1]) for key, row in enumerate(rows) if row is not None)
    return tuple((k, v, lsn) for v, k, lsn in sorted(there) if keys.first <= k <= keys.last)
