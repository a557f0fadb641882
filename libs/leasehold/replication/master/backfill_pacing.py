"""How many rows of a backfill go into the master's next record. Pure.

Alone a backfill takes large parts, and the next while the nodes still apply the one before: only
the rate counts. Beside users each of their answers waits for what stands before it on every
coherent node (C1), so that two parts on their way are two waits, and one is as long as the part is
large. So then there is one at a time, from its append until all have it: a *round*. Rounds without
rows tell how long users wait anyway, on these machines under this load. The parts get as large as
makes a round take at most `round_factor` times that, whatever a row costs. Behind each of them is a
rest: who writes in it waits for no rows at all.

Before the backfill every round is one without rows. While it runs there are *looks*: now and then,
and first of all in a master that has just come, no rows are taken until some rounds without any
have been measured. Rounds in a rest would not do: those that last longer than the rest, into the
next part, would have to be left out, and only short ones count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from leasehold.model.time_units import NS_PER_MS, NS_PER_S

SMOOTHED_OVER: Final = 16
USERS_RECENT_MS: Final = 1_000
"""So long after a request users count as present, for the master's records and for Spark."""


@dataclass(frozen=True, slots=True)
class BackfillSettings:
    """Rows are counted in index entries (`row_cost`). `rows_max`: of a record without users beside
    it; a record costs every process a fixed sum, so they are many. None are taken while a coherent
    node is more than `behind_max` records behind: enough for it to apply one while the next is on
    its way. Beside users between `rows_beside_min` and `rows_beside_max`: less costs hardly less
    than the record does, more gains hardly more. A round of `round_ms` is never too long. The rest
    behind it is `rest_percent` of what it took, or of what it may take where it took longer. A
    round that may take long, because users' own do, brings at least `rate_beside_min` rows/s of the
    time that it and its rest may take: a job does not starve where users take all there is. A look
    is due `look_every_ms` after the last `look_rounds` rounds without rows, and takes as many of
    them (0: none is ever made), but `look_ms` at most, where users write seldom."""

    rows_max: int = 10_000
    behind_max: int = 2
    rows_beside_max: int = 2_000
    rows_beside_min: int = 250
    rate_beside_min: int = 15_000
    round_ms: int = 4
    round_factor: int = 1
    rest_percent: int = 200
    look_every_ms: int = 10_000
    look_rounds: int = 8
    look_ms: int = 500


class _Round(NamedTuple):
    """A record that not every coherent node is known to have. `offset` -1: it was not read back
    yet. `rows` 0: it began without users, and says nothing of how it would be beside."""

    rows: int
    appended_ns: int
    offset: int

    def read_back(self, offset: int) -> _Round:
        return self._replace(offset=offset) if self.offset < 0 else self

    def has_ended(self, applied: Callable[[int], bool]) -> bool:
        return self.offset >= 0 and applied(self.offset)


class BackfillPace:
    def __init__(self, settings: BackfillSettings) -> None:
        assert 1 <= settings.rows_beside_min <= settings.rows_beside_max, settings
        self._settings = settings
        self._beside = settings.rows_beside_min
        self._round: _Round | None = None
        self._rest_until_ns = 0
        self._without: _Round | None = None
        self._without_ns = 0  # what such a round takes, smoothed
        self._measured = 0  # so many of them in all
        self._looks = False
        self._look_left = settings.look_rounds
        self._look_due_ns = 0
        self._gentle = False

    @property
    def rows_beside(self) -> int:
        """Return how many rows a round beside users may have now."""
        return self._beside

    @property
    def rest_until_ns(self) -> int:
        """The time at which the rest behind the last round, or a look, ends at the latest, or has
        ended."""
        return self._rest_until_ns

    def rows(self, behind: int, now_ns: int, *, users: bool, gentle: bool = False) -> int:
        """Return how many rows the next record may have, 0: none yet. `behind`: how many records
        the slowest coherent node is behind. `gentle`: beside users half of them, and twice the rest
        behind each."""
        self._gentle = gentle
        if users:
            self._look(now_ns)
            rests = self._round is not None or now_ns < self._rest_until_ns
            return 0 if rests else max(1, self._beside // (2 if gentle else 1))
        return self._settings.rows_max if behind <= self._settings.behind_max else 0

    def appended(self, rows: int, now_ns: int, *, users: bool, waiting: bool) -> None:
        """Take that a record with that many rows is on its way. `waiting`: there are more of
        them."""
        if rows:
            self._round = _Round(rows if users else 0, now_ns, -1)
        # One that follows rows waits for them too, and one that they follow may.
        if rows or (waiting and not self._looks) or self._round is not None:
            self._without = None
        elif users and self._without is None:
            self._without = _Round(0, now_ns, -1)

    def read_back(self, offset: int) -> None:
        """Take that the record just appended stands at `offset`."""
        if self._round is not None:
            self._round = self._round.read_back(offset)
        if self._without is not None:
            self._without = self._without.read_back(offset)

    @property
    def measures(self) -> bool:
        """Whether a round is under way."""
        return self._round is not None or self._without is not None

    def has_ended(self, applied: Callable[[int], bool]) -> bool:
        """Whether `end_rounds` would end one."""
        rounds = (self._round, self._without)
        return any(each is not None and each.has_ended(applied) for each in rounds)

    def end_rounds(self, applied: Callable[[int], bool], now_ns: int) -> None:
        """End the rounds that have ended. `applied`: whether every coherent node has the record at
        an offset."""
        if self._without is not None and self._without.has_ended(applied):
            took_ns = now_ns - self._without.appended_ns
            self._without = None
            self._learn_without(took_ns, now_ns)
        if self._round is not None and self._round.has_ended(applied):
            ended, self._round = self._round, None
            if ended.rows:
                took_ns, limit_ns = now_ns - ended.appended_ns, self._limit_ns()
                rest_ns = min(took_ns, limit_ns) * self._settings.rest_percent // 100
                self._rest_until_ns = now_ns + rest_ns * (2 if self._gentle else 1)
                self._learn(ended.rows * (2 if self._gentle else 1), took_ns, limit_ns)

    def _look(self, now_ns: int) -> None:
        """Begin a look that is due, and end one that takes too long."""
        settings = self._settings
        if self._round is not None or now_ns < self._rest_until_ns:
            return
        if self._looks:
            self._looked(now_ns)
        elif settings.look_rounds and now_ns >= self._look_due_ns:
            self._looks = True
            self._rest_until_ns = now_ns + settings.look_ms * NS_PER_MS

    def _looked(self, now_ns: int) -> None:
        self._look_left = self._settings.look_rounds
        self._look_due_ns = now_ns + self._settings.look_every_ms * NS_PER_MS
        if self._looks:
            self._looks, self._rest_until_ns = False, now_ns

    def _learn_without(self, took_ns: int, now_ns: int) -> None:
        self._measured += 1
        over = min(self._measured, SMOOTHED_OVER)
        self._without_ns += (took_ns - self._without_ns) // over
        self._look_left -= 1
        if self._look_left <= 0:
            self._looked(now_ns)

    def _limit_ns(self) -> int:
        """Return how long a round may take."""
        settings = self._settings
        return max(settings.round_ms * NS_PER_MS, settings.round_factor * self._without_ns)

    def _least(self, limit_ns: int) -> int:
        """Return the rows of a round that may take so long. ⚠ Not of what rounds do take: where a
        row costs more than the rate allows for, that would make them as large as can be."""
        settings = self._settings
        turn_ns = limit_ns * (100 + settings.rest_percent) // 100
        rows = max(settings.rows_beside_min, settings.rate_beside_min * turn_ns // NS_PER_S)
        return min(settings.rows_beside_max, rows)

    def _learn(self, rows: int, took_ns: int, limit_ns: int) -> None:
        settings = self._settings
        if took_ns > limit_ns:
            fit = max(self._beside // 2, rows * limit_ns // took_ns)
            self._beside = max(self._least(limit_ns), min(self._beside, fit))
        elif 2 * rows > self._beside:  # a small one was not what made it short
            self._beside = min(settings.rows_beside_max, self._beside * 5 // 4)
