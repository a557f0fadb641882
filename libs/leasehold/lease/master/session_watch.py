"""Judges which sessions a master may declare dead, by its own clock alone (D7).

Agents' clocks and Redis's clock decide nothing. A session's renewal counter is a number; when this
master has itself seen it stand still for a whole TTL, the agent's own conservative expiry (send
time of its last renewal + TTL - margin, D3) has passed, whatever any wall clock says. The death is
then a compare-and-set on that counter: a renewal in between wins."""

from typing import NamedTuple

from leasehold.lease.commands import KillSession
from leasehold.lease.replies import LivenessReport


class Sighting(NamedTuple):
    counter: int
    since_ns: int


class SessionWatch:
    """The sightings of one master. A new master starts with none and waits a TTL for each
    session."""

    __slots__ = ("_epoch", "_run_id", "_seen", "_ttl_ns")

    def __init__(self, epoch: int, session_ttl_ns: int) -> None:
        assert session_ttl_ns > 0, f"session_ttl_ns {session_ttl_ns}"
        self._epoch = epoch
        self._ttl_ns = session_ttl_ns
        self._run_id = ""
        self._seen: dict[int, Sighting] = {}

    def step(self, report: LivenessReport, sent_ns: int, received_ns: int) -> list[KillSession]:
        """Return the deaths to ask for after one look. The ledger was read at some time between
        `sent_ns` and `received_ns` (CLOCK_BOOTTIME), so a counter has stood still for certain from
        the receipt of the first look to the sending of this one."""
        assert sent_ns <= received_ns, f"D7: looked at {sent_ns}, answered at {received_ns}"
        if report.run_id != self._run_id:  # counters may have been set back with the state
            self._run_id = report.run_id
            self._seen = {}
        seen: dict[int, Sighting] = {}
        dead: list[KillSession] = []
        for session, _, counter, _, _ in report.sessions:
            before = self._seen.get(session)
            if before is None or before.counter != counter:
                before = Sighting(counter, self._first_seen_ns(received_ns))
            seen[session] = before
            if report.seeded and sent_ns - before.since_ns >= self._ttl_ns:
                dead.append(KillSession(self._epoch, session, counter))
        self._seen = seen
        return dead

    def _first_seen_ns(self, received_ns: int) -> int:
        """Return since when this master has seen it: another one's sightings are none of its
        own."""
        return received_ns

    def due_ns(self) -> int | None:
        """Return when the next death could be due, to look again then; None where nobody is to be
        watched."""
        if not self._seen:
            return None
        return min(sighting.since_ns for sighting in self._seen.values()) + self._ttl_ns
