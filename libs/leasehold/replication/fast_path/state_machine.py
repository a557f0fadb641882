"""The state machine of a fast path beside Kafka: whether it is taken, when it is tried, and which
publications on it nobody has confirmed yet.

Kafka is the truth and carries everything. A fast path carries the same sooner, while it is seen to
work. Acknowledgements, records of the log and requests each have one through Redis, and a master's
own records need no fetch once the broker has acknowledged them; what each of them proves, and what
it does for what was published on a path that it leaves, is in `acks.py`, `log.py`,
`requests.py` and `own_appends.py`. What they have in common is here:

    LEFT ── probe ──▶ PROBED ── enter ──▶ TAKEN
      │                 │                   │
      ├───── enter ─────┼──────────────────▶│
      ◀───── leave ─────┴─────── leave ─────┘

- P1: it is neither probed nor entered before its back-off is over.
- P2: a confirmation counts for a publication that is unconfirmed, and for those before it. Leaving
  forgets them all: what is said of one that was given up, or of an earlier run, proves nothing.
- P3: the back-off after a fault is `pause_ms`, doubled up to `pause_ms_max` for each fault that
  comes within `pause_ms_max` of the last entry and the last back-off's end. An outage costs less
  and less that way.
- P4: numbers of a run rise by one from 0.

A row counts what comes close together: where things come far apart no fast path is worth it, and
while one is taken nothing that comes is a silence.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Final

from leasehold.model.time_units import NS_PER_MS

NOT_PUBLISHED: Final = -1


class Pause(Enum):
    """How long a path is left alone after it was left."""

    NONE = "nothing speaks against it"
    ONCE = "it is of no use now"
    FAULT = "it does not work"


class PathUse:
    """How often a fast path was taken, and left by what for: for people, no part of its state."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.entered = 0
        self.left: dict[Pause, int] = dict.fromkeys(Pause, 0)


class FastPath:
    """The fast path of one user. Times are this host's CLOCK_BOOTTIME in ns."""

    def __init__(
        self,
        *,
        pause_ms: int,
        pause_ms_max: int,
        row_min: int = 0,
        apart_ms: int = 0,
        answer_ms: int = 0,
    ) -> None:
        """Begin with the path not taken. `row_min`: how many in a row make it worth it, each at
        most `apart_ms` after the one before. `answer_ms`: how long a confirmation may take."""
        assert 0 <= pause_ms <= pause_ms_max, "a pause only grows"
        self._first_ns = pause_ms * NS_PER_MS
        self._most_ns = pause_ms_max * NS_PER_MS
        self._row_min = row_min
        self._apart_ns = apart_ms * NS_PER_MS
        self._answer_ns = answer_ms * NS_PER_MS
        self.taken = False
        self.probing = False
        self.since_ns = 0
        """When it was last entered, or probed while it is `probing`."""
        self.row = 0
        self.last_ns = 0
        """When the last one of the row came."""
        self.run = 0
        self._next = 0  # P4
        self._unconfirmed: deque[tuple[int, int]] = deque()  # (number, when)
        self._entered_ns = 0
        self._pause_ns = self._first_ns
        self._faulty = False  # left for a fault since it was forgiven
        self._until_ns = 0  # of the back-off
        self.use = PathUse()

    # ------------------------------------------------------------ the row

    def count(self, now_ns: int, *, follows: bool = True) -> None:
        """Count what has come now as one more of the row, or as the first of another one: where it
        does not follow the one before, or comes long after it."""
        close = follows and now_ns - self.last_ns <= self._apart_ns
        self.row = (self.row if close else 0) + 1
        self.last_ns = now_ns

    def end_row(self) -> None:
        self.row = 0

    def is_silent(self, now_ns: int) -> bool:
        return now_ns >= self.silent_at_ns

    @property
    def silent_at_ns(self) -> int:
        """The time from which on it `is_silent`, while nothing comes."""
        return self.last_ns + self._apart_ns

    # ------------------------------------------------------------ states

    def is_ready(self, now_ns: int, missing: int = 0) -> bool:
        """Whether it may be probed or entered, once `missing` more have come."""
        row_is_full = self.row + missing >= self._row_min
        return not self.taken and not self.probing and row_is_full and now_ns >= self._until_ns

    def probe(self, now_ns: int) -> None:
        """What goes by Kafka goes by this path, too, to see whether it works."""
        assert self.is_ready(now_ns), "P1"
        self.probing = True
        self.since_ns = now_ns

    def enter(self, now_ns: int) -> None:
        """Take the path, which works."""
        assert not self.taken, "it is entered once"
        assert now_ns >= self._until_ns, "P1"
        self.taken, self.probing = True, False
        self.since_ns = self._entered_ns = now_ns
        self.use.entered += 1

    def pause_left_ns(self, now_ns: int) -> int:
        """Return how long it is left alone yet."""
        return max(0, self._until_ns - now_ns)

    def leave(self, now_ns: int, pause: Pause) -> None:
        """Leave the path, in any state: it is neither taken nor probed, and nothing is unconfirmed
        any more."""
        if self.taken:
            self.use.left[pause] += 1
        self.taken = self.probing = False
        self.row = 0
        self._unconfirmed.clear()  # P2
        if pause is Pause.FAULT:
            self._back_off(now_ns)
        elif pause is Pause.ONCE:
            self._until_ns = max(self._until_ns, now_ns + self._first_ns)

    def restart(self, now_ns: int) -> None:
        """Leave it for another peer, of which nothing is known yet: it may be tried at once."""
        self.leave(now_ns, Pause.NONE)
        self.forgive()
        self._until_ns = now_ns

    def forgive(self) -> None:
        """The next fault is a first one."""
        self._faulty = False

    def _back_off(self, now_ns: int) -> None:
        """Pause, for longer after each fault that comes soon (P3)."""
        lasted_ns = now_ns - max(self._entered_ns, self._until_ns)
        again = self._faulty and lasted_ns < self._most_ns
        self._pause_ns = min(2 * self._pause_ns, self._most_ns) if again else self._first_ns
        self._faulty = True
        self._until_ns = now_ns + self._pause_ns

    # ------------------------------------------------------------ publications

    def begin_run(self) -> None:
        """Begin numbers at 0 again, for who hands the run on with them. Whoever does not keeps to
        one run: a late word for an earlier number would be taken for a new one's (P2)."""
        assert not self._unconfirmed, "they are of the run before"
        self.run += 1
        self._next = 0

    def publish(self, now_ns: int) -> int:
        """The number of what is published now."""
        number, self._next = self._next, self._next + 1
        self._unconfirmed.append((number, now_ns))
        return number

    def confirm(self, number: int) -> bool:
        """Take that this publication and those before it are heard of; return whether it was
        unconfirmed still."""
        known = False
        while self._unconfirmed and self._unconfirmed[0][0] <= number:
            known = self._unconfirmed.popleft()[0] == number
        return known

    def is_overdue(self, now_ns: int) -> bool:
        """Whether the oldest one that is unconfirmed has been so for `answer_ms`."""
        overdue_ns = self.overdue_at_ns()
        return overdue_ns is not None and now_ns >= overdue_ns

    def overdue_at_ns(self) -> int | None:
        """Return when `is_overdue` has to be asked next, None where nothing is unconfirmed."""
        return self._unconfirmed[0][1] + self._answer_ns if self._unconfirmed else None
