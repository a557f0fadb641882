"""A small model of a column that each node computes from its own rows, by ranges: one table, two
nodes, each somewhere else in one log and in its own ranges; writers at adjacent versions of the
table; and readers who have only the last image of each row.

The column follows the value of its row. At delete-only a writer who changes the value takes the
pair away, and else leaves it; at write-only he puts it; once it is public he may say NULL. The
master, the first node, composes the image from its own row, so how far it has filled gets into
the log. The log has writes, the fence, ranges, TRUNCATE, the record by which the job leaves the
fill, and the one by which it turns back instead. A node applies the next record, fills the next row
of its first range, is killed, or begins anew from a copy of the other one's store.

What is promised:

- K1: in each store a pair that is there is what its row's value gives, unless somebody has said
  NULL;
- K2: from the job's leaving on no row that was written before lacks its pair, wherever the node
  was;
- K3: from then on stores at one position are equal;
- K4: from then on a reader finds in each row's last image what the store has.

The rules that make it so are methods, and `mutants/column_range.py` breaks each.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, IntEnum, auto
from itertools import combinations
from typing import Final, NamedTuple, TypeAlias

KEYS: Final = (0, 1)
VALUES: Final = (0, 1)
END: Final = len(KEYS)


class Version(IntEnum):
    """Under which an image is made. BEFORE: the column is not there yet."""

    BEFORE = 0
    DELETE_ONLY = 1
    WRITE_ONLY = 2
    PUBLIC = 3


def pair_of(value: int) -> int:
    return value + 10


class Image(NamedTuple):
    """What the log says of a row; pair None: it has none."""

    value: int
    pair: int | None
    version: Version


class Row(NamedTuple):
    """A row of a store: its last image, and the pair as it is now."""

    image: Image
    pair: int | None


class Put(NamedTuple):
    key: int
    image: Image | None  # None: the row is deleted


class Mark(Enum):
    TRUNCATE = auto()
    FENCE = auto()
    LEAVE = auto()
    BACK = auto()


class Range(NamedTuple):
    """Keys `first` to `last`; what was filled is not in it any more."""

    first: int
    last: int


Record: TypeAlias = Put | Mark | Range
Rows: TypeAlias = tuple[Row | None, ...]


class Store(NamedTuple):
    """`at`: records that are applied; `seen`: a row that was read to be filled, and is put next,
    where that is not one step."""

    at: int
    rows: Rows
    waiting: tuple[Range, ...] = ()
    seen: Image | None = None


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
        """Rows of before the column."""
        old = [Row(Image(value, None, Version.BEFORE), None) for value in VALUES]
        found: tuple[Rows, ...] = ((old[0], old[1]), (old[0], None))
        return [(f"rows {r}", World((), (Store(0, r),) * self.bounds.nodes)) for r in found]

    def invariant(self, world: World) -> str | None:
        for store in world.nodes:
            applied = world.log[: store.at]
            for key, row in enumerate(store.rows):
                if row is None or Mark.BACK in applied:
                    continue
                value, _, version = row.image
                if row.pair not in (None, pair_of(value)):
                    return f"K1: row {key} has {row.pair} with value {value}"
                if Mark.LEAVE not in applied:
                    continue
                if row.pair is None and version < Version.PUBLIC:
                    return f"K2: row {key} lacks its pair"
                if self.read(row.image) != row.pair:
                    return f"K4: row {key} has {row.pair}, a reader finds {self.read(row.image)}"
        for one, other in combinations(world.nodes, 2):
            told = one.at == other.at and Mark.LEAVE in world.log[: one.at]
            if told and one.rows != other.rows:
                return f"K3: {one.rows} and {other.rows}"
        return None

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        # One record is on its way to the master, the first node, at a time.
        landed = world.nodes[0].at == len(world.log)
        for record in self._records(world) if landed else ():
            yield f"log: {record}", world._replace(log=(*world.log, record))
        for number, store in enumerate(world.nodes):
            for label, after in self._steps(world, store):
                yield f"node {number}: {label}", self._with(world, number, after)
            if world.faults < self.bounds.faults:
                hurt = world._replace(faults=world.faults + 1)
                if store.waiting:
                    found = self.restarted(store)
                    yield f"node {number} is killed", self._with(hurt, number, found)
                for other in world.nodes:
                    if other.at <= store.at:
                        continue
                    copied = self.copied(other)
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

    def _records(self, world: World) -> Iterator[Record]:
        """What the master may append."""
        log = world.log
        fenced, back, left = Mark.FENCE in log, Mark.BACK in log, Mark.LEAVE in log
        if sum(isinstance(record, Put) for record in log) < self.bounds.writes:
            versions = [Version.WRITE_ONLY, *([Version.PUBLIC] if left else [])]
            versions += [] if fenced else [Version.DELETE_ONLY]
            for key in KEYS:
                yield Put(key, None)
                for version in versions:
                    for value in VALUES:
                        yield Put(key, self.compose(world.nodes[0].rows[key], value, version))
        if fenced and log.count(Mark.TRUNCATE) < self.bounds.truncations:
            yield Mark.TRUNCATE
        if not fenced:
            yield Mark.FENCE
        ranges = [record for record in log if isinstance(record, Range)]
        covered = bool(ranges) and ranges[-1].last == END
        if self.may_begin(log) and not (covered or back or left):
            first = self.first_of_next(ranges)
            yield from (Range(first, last) for last in [*range(first, END - 1), END])
        if covered and fenced and not (back or left):
            yield Mark.LEAVE
        if ranges and fenced and not (back or left):
            yield Mark.BACK

    def compose(self, before: Row | None, value: int, version: Version) -> Image:
        """Return the image of a row that a writer at `version` gives a value; who sees the column
        says NULL."""
        if version is Version.PUBLIC:
            return Image(value, None, version)
        if version is Version.WRITE_ONLY:
            return Image(value, pair_of(value), version)
        return Image(value, self.left_by_who_does_not_see(before, value), version)

    def left_by_who_does_not_see(self, before: Row | None, value: int) -> int | None:
        """Return the pair that a writer at delete-only leaves: what he makes wrong goes."""
        same = before is not None and before.image.value == value
        return before.pair if before is not None and same else None

    def may_begin(self, log: tuple[Record, ...]) -> bool:
        """Whether ranges may be in the log: behind the fence."""
        return Mark.FENCE in log

    def first_of_next(self, ranges: list[Range]) -> int:
        """Return where a range begins: where the one before has ended, so that none is between."""
        return ranges[-1].last + 1 if ranges else 0

    # ------------------------------------------------------------ a reader of images

    def read(self, image: Image) -> int | None:
        """Return what a reader at the public version finds."""
        if image.pair is None and image.version < self.below():
            return pair_of(image.value)
        return image.pair

    def below(self) -> Version:
        """Return the version from which on an image that lacks the pair says NULL."""
        return Version.WRITE_ONLY

    # ------------------------------------------------------------ a node

    def _steps(self, world: World, store: Store) -> Iterator[tuple[str, Store]]:
        if store.at < len(world.log):
            record = world.log[store.at]
            yield f"applies {record}", self._apply(store, record)._replace(at=store.at + 1)
        if store.waiting:
            yield from self.fill(store)

    def _apply(self, store: Store, record: Record) -> Store:
        rows = list(store.rows)
        match record:
            case Put(key, image):
                rows[key] = None if image is None else Row(image, image.pair)
            case Mark.TRUNCATE:
                rows = [None] * len(rows)
            case Range():
                return store._replace(waiting=(*store.waiting, record))
            case Mark.LEAVE:
                return self.leave(store)
            case Mark.BACK:
                return store._replace(waiting=())
            case Mark.FENCE:
                pass
        return store._replace(rows=tuple(rows))

    def fill(self, store: Store) -> Iterator[tuple[str, Store]]:
        """Put the pair of the next row, as it is now, and keep where the ones behind it begin."""
        key = store.waiting[0].first
        rows = self.filled(store.rows, key) if key < END else store.rows
        yield "fills a row", self.behind(store)._replace(rows=rows)

    def filled(self, rows: Rows, key: int) -> Rows:
        row = rows[key]
        if row is None or row.pair is not None:
            return rows
        return (*rows[:key], row._replace(pair=pair_of(row.image.value)), *rows[key + 1 :])

    def behind(self, store: Store) -> Store:
        """Return the store with what is left behind the next row of its first range."""
        first, *others = store.waiting
        left = Range(first.first + 1, first.last)
        done = left.first > min(left.last, END - 1)
        return store._replace(waiting=tuple(others) if done else (left, *others))

    def leave(self, store: Store) -> Store:
        """End what waits: each row of it has its pair."""
        rows = store.rows
        for waiting in store.waiting:
            for key in range(waiting.first, min(waiting.last + 1, END)):
                rows = self.filled(rows, key)
        return store._replace(rows=rows, waiting=())

    def restarted(self, store: Store) -> Store:
        """Return what is found after a restart: what is left was kept with what was put."""
        return store._replace(seen=None)

    def copied(self, store: Store) -> Store:
        """Return a copy of another store: it goes on where that one was."""
        return self.restarted(store)
