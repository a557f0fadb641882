"""How many rows of a backfill go into the master's next record. Pure.

Alone a backfill takes large parts, and the next while the nodes still apply the one before: only
the rate counts. Beside users each of their answers waits for what stands before it on every
coherent node (C1), so that two parts on their way are two waits, and one is as long as the part is
large. So then there is one at a time, from its append until all have it: a *round*. Its length is
measured, and the parts get as large as keeps it to `fill_round_ms`, whatever a row costs and how
busy the processors are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class FillSettings:
    """Rows are counted in index entries (`row_cost`). `rows_max`: of a record without users beside
    it; a record costs every process a fixed sum, so they are many. None are taken while a coherent
    node is more than `behind_max` records behind: enough for it to apply one while the next is on
    its way. Beside users between `rows_beside_min` and `rows_beside_max`, so that a round takes
    `round_ms`: less than the minimum costs hardly less than the record does."""

    rows_max: int = 10_000
    behind_max: int = 2
    rows_beside_max: int = 4_000
    rows_beside_min: int = 1_000
    round_ms: int = 40


class _Round(NamedTuple):
    """A record with rows that not every coherent node is known to have. `offset` -1: it was not
    read back yet. `rows` 0: it began without users, and says nothing of how it would be beside."""

    rows: int
    appended_ns: int
    offset: int


class FillPace:
    def __init__(self, settings: FillSettings) -> None:
        assert 1 <= settings.rows_beside_min <= settings.rows_beside_max, settings
        self._settings = settings
        self._beside = settings.rows_beside_min
        self._round: _Round | None = None

    def rows(self, behind: int, *, users: bool) -> int:
        """Most rows for the next record, 0: none yet. `behind`: how many records the slowest
        coherent node is behind."""
        if users:
            return 0 if self._round is not None else self._beside
        return self._settings.rows_max if behind <= self._settings.behind_max else 0

    def appended(self, rows: int, now_ns: int, *, users: bool) -> None:
        self._round = _Round(rows if users else 0, now_ns, -1)

    def read_back(self, offset: int) -> None:
        """The record just appended stands at `offset`."""
        if self._round is not None and self._round.offset < 0:
            self._round = self._round._replace(offset=offset)

    def heard(self, applied: Callable[[int], bool], now_ns: int) -> None:
        """`applied`: whether every coherent node has the record at an offset."""
        ended = self._round
        if ended is None or ended.offset < 0 or not applied(ended.offset):
            return
        self._round = None
        if not ended.rows:
            return
        settings, took_ms = self._settings, (now_ns - ended.appended_ns) // NS_PER_MS
        if took_ms > settings.round_ms:
            fit = max(self._beside // 2, ended.rows * settings.round_ms // took_ms)
            self._beside = max(settings.rows_beside_min, min(self._beside, fit))
        elif 2 * ended.rows > self._beside:  # a small one was not what made it short
            self._beside = min(settings.rows_beside_max, self._beside * 5 // 4)
