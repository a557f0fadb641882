"""How far a client is behind what it is told, and how long that is waited for.

Each second of waiting counts, and each byte that was taken counts against it. So the whole is
bounded, however a client deals out its reading: who takes a byte now and then gains next to nothing
by it, and who takes its rows steadily is never behind, however many they are.
"""

from __future__ import annotations

from typing import Final

from leasehold.pgwire.phases import Behind

ASIDE_BYTES_PER_S: Final = 1 << 20
ASIDE_LAG_S: Final = 1.0
"""Then the rest of its rows is put aside, which takes nothing from it. A network gives more."""
HELD_BYTES_PER_S: Final = 1 << 16
HELD_LAG_S: Final = 30.0
"""Then rows for which there was no room are given up, since they hold a snapshot: longer than a
pause of its machine, and with 10 MB of writes a second the node's WAL has 300 MB more by then."""
READ_BYTES_PER_S: Final = 1 << 10
"""Of a client whose connection goes on, beside a limit of time that is a setting. With less, what
kernels keep of an answer (some MB) takes an hour."""


class Lag:
    """The seconds that a client is behind `bytes_per_s`; `seconds_max` of them are too many."""

    def __init__(self, bytes_per_s: int, seconds_max: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._seconds_max = seconds_max
        self._seconds = 0.0

    @property
    def left_s(self) -> float:
        """The seconds until it is too far behind; 0.0: it is."""
        return max(self._seconds_max - self._seconds, 0.0)

    def add_wait(self, seconds: float) -> None:
        self._seconds += seconds

    def subtract_read(self, count: int) -> None:
        self._seconds = max(self._seconds - count / self._bytes_per_s, 0.0)


class ReaderPace:
    """How far one client is behind, from when it was waited for first. `gives_up_s` is when its
    connection ends."""

    def __init__(self, gives_up_s: float) -> None:
        self._aside = Lag(ASIDE_BYTES_PER_S, ASIDE_LAG_S)
        self._held = Lag(HELD_BYTES_PER_S, HELD_LAG_S)
        self._all = Lag(READ_BYTES_PER_S, gives_up_s)
        self._given_bytes = 0

    @property
    def behind(self) -> Behind | None:
        if self._aside.left_s:
            return None
        return Behind.SLOW if self._held.left_s else Behind.STANDING

    @property
    def wait_s(self) -> float:
        """The time until it is farther behind than it is."""
        behind, left_s = self.behind, self._all.left_s
        if behind is None:
            return min(left_s, self._aside.left_s)
        return min(left_s, self._held.left_s) if behind is Behind.SLOW else left_s

    @property
    def is_given_up(self) -> bool:
        return not self._all.left_s

    def add_wait(self, seconds: float) -> None:
        for lag in (self._aside, self._held, self._all):
            lag.add_wait(seconds)

    def add_given(self, count: int) -> None:
        """Note bytes that were given to the client. ⚠ It has not taken them yet: else who is given
        more would gain by not reading."""
        self._given_bytes += count

    def catch_up(self) -> None:
        """Count what it was given as taken, but for what is on its way."""
        count, self._given_bytes = self._given_bytes, 0
        for lag in (self._aside, self._held, self._all):
            lag.subtract_read(count)
