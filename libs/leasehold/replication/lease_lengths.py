"""How long coherency leases last: longer while the log takes longer to bring them.

A lease runs from when it was asked for (C3), and it comes with the log. Where the ask, the record
before it and its own take longer together than it lasts, it is over when it arrives: every node
refuses reads while writes go on, and these wait for leases that nobody can use. So a master looks
how long what it grants is on its way, and grants leases that outlast it.

What counts is how long half of the nodes had to wait, as for the pace (C5): a node that is late by
itself makes nobody's lease longer. Any length is safe: who waits for a lease to be over waits for
the length that was granted (C4, C6).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from leasehold.model.time_units import NS_PER_MS

ON_THEIR_WAY_MAX: Final = 64
"""Grants of a node of which it is not known that they have arrived: of more the oldest count no
more."""


class GrantTrips:
    """How long grants take to reach one node. Times are the master's, in ns."""

    __slots__ = ("_on_their_way", "lately_ns")

    def __init__(self) -> None:
        """Begin with nothing that was granted."""
        self._on_their_way: deque[tuple[int, int]] = deque(maxlen=ON_THEIR_WAY_MAX)
        self.lately_ns = 0
        """The longest of late; each shorter one takes a sixteenth of it. 0: none has arrived."""

    def granted(self, offset: int, heard_ns: int) -> None:
        """Take that the record at `offset` grants what was asked for at `heard_ns`."""
        self._on_their_way.append((offset, heard_ns))

    def applied(self, offset: int, now_ns: int, append_ns: int) -> None:
        """Take that the node has applied what stands below `offset`, the grants among it.
        `append_ns`: how long the master's last append took. The ask went the same way before it was
        heard, so it is added."""
        while self._on_their_way and self._on_their_way[0][0] < offset:
            _, heard_ns = self._on_their_way.popleft()
            self.lately_ns = max(now_ns - heard_ns + append_ns, self.lately_ns * 15 // 16)


def lease_length_ms(
    trips: Iterable[GrantTrips], renewal_ms: int, least_ms: int, most_ms: int
) -> int:
    """Return how long a lease has to last that the next one is there before it is over: as long as
    grants are on their way, half as long for the record that one has to wait for, and the time
    between two asks."""
    lately = sorted(trip.lately_ns for trip in trips if trip.lately_ns)
    if not lately:
        return least_ms
    pace_ms = lately[(len(lately) - 1) // 2] // NS_PER_MS
    return max(least_ms, min(renewal_ms + pace_ms * 3 // 2, most_ms))
