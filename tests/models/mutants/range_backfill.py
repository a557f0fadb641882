"""Each rule of `model_range_backfill.py` broken once."""

from __future__ import annotations

from tests.models.model_range_backfill import (
    Model,
    Range,
    Record,
    Run,
    Store,
    World,
    entries_of,
)


class MergesWhateverIsThere(Model):
    def is_as_read(self, store: Store, read: tuple[int, int, int]) -> bool:
        return True


class LooksForTheRowAlone(Model):
    """A row that was written since is there, too."""

    def is_as_read(self, store: Store, read: tuple[int, int, int]) -> bool:
        return store.rows[read[0]] is not None


class ForgetsWhoWrote(Model):
    """What was written is remembered in the transaction that is undone."""

    def undone(self, store: Store) -> Store:
        return store._replace(written=frozenset())


class RemembersNoTruncation(Model):
    def remembered(self, store: Store, keys: tuple[int, ...]) -> frozenset[int]:
        return super().remembered(store, keys if len(keys) == 1 else ())


class KeepsWhatItHasMerged(Model):
    """A job turns back: what was merged stays, and what waits goes."""

    def turn_back(self, store: Store) -> Store:
        return store._replace(waiting=())


class BeginsBeforeTheFence(Model):
    """Somebody at delete-only writes behind the run, and no entry."""

    def may_begin(self, log: tuple[Record, ...]) -> bool:
        return True


class ReadsBeforeTheFence(Model):
    """The run is of an older snapshot: nobody remembers who wrote behind that."""

    def run_of(self, world: World, store: Store, keys: Range) -> Run:
        return entries_of(((0, -1), (1, -1)), keys)


class EndsAtTheLastKey(Model):
    """The last range ends at the last key that was read before the fence."""

    def starts(self) -> list[tuple[str, World]]:
        return super().starts()[1:]

    def _apply(self, store: Store, record: Record) -> Store:
        after = super()._apply(store, record)
        cut = [w._replace(keys=w.keys._replace(last=0)) for w in after.waiting]
        return after._replace(waiting=tuple(cut))


class LeavesAGap(Model):
    """A range begins where it was proposed to, not where the one before has ended."""

    def first_of_next(self, ranges: list[Range]) -> int:
        return ranges[-1].last + 2 if ranges else 0


class BeginsAtTheFirstKeySeen(Model):
    def first_of_next(self, ranges: list[Range]) -> int:
        return super().first_of_next(ranges) if ranges else 1


class LeavesWithWhatWaits(Model):
    def leave(self, store: Store) -> Store:
        return store


class DropsWhatWaits(Model):
    def leave(self, store: Store) -> Store:
        return store._replace(waiting=())


class ForgetsTheRangeFirst(Model):
    """The range is no more in the store when its last entry is still to be put."""

    def restarted(self, store: Store) -> Store:
        after = super().restarted(store)
        last = store.waiting and store.waiting[0].run is not None and len(store.waiting[0].run) == 1
        return after._replace(waiting=after.waiting[1:]) if last else after


class CopiesProgressWithoutItsRun(Model):
    """A store that begins in the middle of a merge goes on behind it, with a run of its own."""

    def restarted(self, store: Store) -> Store:
        waiting = [w if w.run is None else w._replace(run=w.run[1:]) for w in store.waiting]
        return store._replace(waiting=tuple(waiting))
