"""Each rule of `model_row_copying.py` broken once."""

from __future__ import annotations

from tests.models.model_row_copying import Copied, Copy, Model, Put, Row, Store, World


class CopiesRowsByTheirKeysOfBefore(Model):
    """A range has the rows whose keys lay in it when the copy began: one whose key has changed
    since is copied twice."""

    def copied(self, store: Store, first: int, last: int) -> Copy:
        copy = list(super().copied(store, first, last))
        start = self.starts()[0][1].nodes[0].table
        for number, (row, then) in enumerate(zip(store.table, start, strict=True)):
            if row is None or then is None or not first <= then.key <= last:
                continue
            if copy[then.key] is None:
                copy[then.key] = Copied(number, row.genid)
        return tuple(copy)


class OverwritesWhatIsThere(Model):
    """A range puts rows as they were when it began to be read."""

    def copied(self, store: Store, first: int, last: int) -> Copy:
        start = self.starts()[0][1].nodes[0].table
        copy = list(super().copied(store, first, last))
        for number, row in enumerate(start):
            if row is not None and first <= row.key <= last:
                copy[row.key] = Copied(number, row.genid)
        return tuple(copy)


class ForgetsARangeAfterATakeover(Model):
    """How far ranges go is kept where it is decided, and not in the log: one that was lost with its
    master is nobody's."""

    def next_first(self, world: World) -> int:
        return world.decided


class DigestsOtherRows(Model):
    """The digest is of the rows that the copy has of the range already."""

    def digest(self, store: Store, first: int, last: int) -> tuple[int, ...]:
        there = store.copy[first : last + 1]
        return tuple(sorted(copied.genid for copied in there if copied is not None))


class DigestsNoVersions(Model):
    """The digest tells which rows there are, and not which versions of them."""

    def digest(self, store: Store, first: int, last: int) -> tuple[int, ...]:
        added = self._added(store, first, last)
        return tuple(sorted(copied.id for copied in added if copied is not None))


class SkipsAWriteWhoseRangeIsToCome(Model):
    """A row that is in the copy before its range is copied is not written there any more: the range
    would bring it."""

    def write(self, store: Store, put: Put, genid: int) -> Store:
        after = super().write(store, put, genid)
        copy = list(after.copy)
        for number, key in put.keys:
            there = store.copy[key] if key is not None else None
            if key is not None and there is not None and there.id == number:
                copy[key] = there
        return after._replace(copy=tuple(copy))


class WritesOnlyWhereTheOldKeyIsCopied(Model):
    """Whether a row is written in the copy goes by whether it is there under its key of before: one
    that moves into a range that is copied is brought by none."""

    def write(self, store: Store, put: Put, genid: int) -> Store:
        after = super().write(store, put, genid)
        copy = list(after.copy)
        for number, key in put.keys:
            before: Row | None = store.table[number]
            if key is not None and before is not None and store.copy[before.key] is None:
                copy[key] = None
        return after._replace(copy=tuple(copy))
