"""What the topic of acknowledgements says of the time before a process began to read it (L11).

Who has acknowledged there stands in it; for how long it reaches back does not, by any clock that
can be trusted: the times of messages are those of wall clocks. But nodes that ask for a coherency
lease say when they ask by their boot-time clocks, whose rates are trusted (C3). Between two asks of
one incarnation there passed what its clock says, and what one says of a time in which another one
had ended can be added to it: so a topic proves that it covers a while, or less than it does.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.model.records.acks import Ack
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.log.truncation import READERS_MAX

INCARNATIONS_MAX: Final = 10_000
RATE_PER_CENT: Final = 98
"""Of what a clock says counts: that of a host, and that of the one who counts on, may be wrong by
one in a hundred each."""


class _Asks(NamedTuple):
    """The asks of an incarnation: when the first was sent, by its clock, and what was proved when
    it was met."""

    first_ns: int
    before_ns: int


class AckHistory:
    """Gathers acknowledgements in the order of the topic, with none left out."""

    def __init__(self, ask_late_ms: int) -> None:
        """Begin with nothing. `ask_late_ms`: the longest that an ask may have been on its way to
        the topic."""
        self._late_ns = ask_late_ms * NS_PER_MS
        self._last: dict[str, Ack] = {}
        self._asks: dict[tuple[str, bytes], _Asks] = {}
        self._span_ns = 0
        self._is_full = False

    def begin_anew(self) -> None:
        """Forget everything: what was taken doesn't reach to what comes next."""
        self._last.clear()
        self._asks.clear()
        self._span_ns = 0
        self._is_full = False

    def take(self, ack: Ack) -> None:
        """Take the next one."""
        if ack.node in self._last or len(self._last) < READERS_MAX:
            self._last[ack.node] = ack
        else:
            self._is_full = True
        if ack.asked_ns <= 0:
            return
        incarnation = ack.node, ack.incarnation
        asks = self._asks.get(incarnation)
        if asks is not None:
            passed_ns = (ack.asked_ns - asks.first_ns) * RATE_PER_CENT // 100 - self._late_ns
            self._span_ns = max(self._span_ns, asks.before_ns + passed_ns)
        elif len(self._asks) < INCARNATIONS_MAX:
            self._asks[incarnation] = _Asks(ack.asked_ns, self._span_ns)

    def readers(self) -> tuple[Ack, ...]:
        """Return the last acknowledgement of each name."""
        return tuple(self._last.values())

    def span_ns(self) -> int:
        """Return for how long at least whoever has acknowledged is among `readers`, up to the last
        one taken."""
        return 0 if self._is_full else self._span_ns
