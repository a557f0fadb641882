"""Each rule of `model_column_range.py` broken once."""

from __future__ import annotations

from collections.abc import Iterator

from tests.models.model_column_range import (
    END,
    Image,
    Model,
    Range,
    Record,
    Row,
    Store,
    Version,
    pair_of,
)


class PutsWhatItHasRead(Model):
    """The value was read aside, as of an index, and is put whatever the row is by then."""

    def fill(self, store: Store) -> Iterator[tuple[str, Store]]:
        key = store.waiting[0].first
        row = store.rows[key] if key < END else None
        if store.seen is None and row is not None and row.pair is None:
            yield "reads a row", store._replace(seen=row.image)
            return
        rows, seen = store.rows, store.seen
        if seen is not None and row is not None:
            put = row._replace(pair=pair_of(seen.value))
            rows = (*rows[:key], put, *rows[key + 1 :])
        yield "puts it", self.behind(store)._replace(rows=rows, seen=None)


class BeginsBeforeTheFence(Model):
    """Somebody at delete-only takes away what was filled."""

    def may_begin(self, log: tuple[Record, ...]) -> bool:
        return True


class LeavesWhatHeMakesWrong(Model):
    """A writer at delete-only leaves every pair as it is."""

    def left_by_who_does_not_see(self, before: Row | None, value: int) -> int | None:
        return before.pair if before is not None else None


class LeavesAGap(Model):
    def first_of_next(self, ranges: list[Range]) -> int:
        return ranges[-1].last + 2 if ranges else 0


class BeginsAtTheFirstKeySeen(Model):
    def first_of_next(self, ranges: list[Range]) -> int:
        return super().first_of_next(ranges) if ranges else 1


class LeavesWithWhatWaits(Model):
    def leave(self, store: Store) -> Store:
        return store._replace(waiting=())


class KeepsItsPlaceBeforeItsPairs(Model):
    """What is left of the range is kept in a commit of its own, ahead of what was put."""

    def restarted(self, store: Store) -> Store:
        return super().restarted(self.behind(store) if store.waiting else store)


class CopiesNoRanges(Model):
    """A copy of a store has its rows, and nothing of what waits."""

    def copied(self, store: Store) -> Store:
        return store._replace(waiting=())


class TakesNullForLacking(Model):
    """A reader goes by the absence of the pair alone."""

    def read(self, image: Image) -> int | None:
        return pair_of(image.value) if image.pair is None else image.pair


class ReadsImagesAsTheyAre(Model):
    def read(self, image: Image) -> int | None:
        return image.pair


class CountsFromDeleteOnly(Model):
    """As of a column that is there at once; but who writes at delete-only puts no pair here."""

    def below(self) -> Version:
        return Version.DELETE_ONLY
