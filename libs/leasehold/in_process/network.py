"""Delays, losses and clocks between a node and the rest, when everything is in one process."""

from __future__ import annotations

from dataclasses import dataclass

from leasehold.in_process.bus import Scheduler
from leasehold.model.ports import Now


class Hops:
    """Delays and losses between a node and the rest; the simulation overrides it."""

    def deliver_ns(self) -> int:
        return 0

    def produce_ns(self) -> int:
        return 0

    def ledger_ns(self) -> int:
        return 0

    def publish_ns(self) -> int:
        """Return the delay of one publication: what is published later may be received earlier."""
        return 0

    def publish_outcome(self) -> str:
        """Return "ok", "lost" (counted as received by who passes it on, and never received),
        "unanswered" (received, and nobody says so) or "twice"."""
        return "ok"

    def survives_crash(self) -> bool:
        """Whether a message that was on its way when its sender died arrives."""
        return True

    def late_ns(self) -> int:
        """How long after its time an append of unknown fate arrives: after its sender's next
        ones perhaps, since a producer that gave up is a new one."""
        return 0

    def append_outcome(self) -> str:
        """ "ok", "lost" (never arrives, error reported) or "unknown" (arrives, error reported)."""
        return "ok"


class PipelineHops:
    """Delays and accidents of the pipeline; the simulation overrides it."""

    def produce_ns(self) -> int:
        return 0

    def batch_ns(self) -> int:
        """Pause before a micro-batch."""
        return 0

    def batch_offsets(self) -> int:
        return 10_000

    def compacted(self) -> bool:
        """Whether an image that a newer one of its key follows is gone from the topic."""
        return False

    def zombie_ns(self) -> int:
        """Return when a dead task sends a chunk once more, 0 = it does not."""
        return 0


@dataclass(slots=True)
class NodeClock:
    """The clocks of a node's machine: both differ from every other's, and the boot-time clock
    starts anew after a reboot. Its *rate* is what leases trust (C3)."""

    boot_ns: int = 0  # own CLOCK_BOOTTIME at virtual time 0
    rate: float = 1.0
    wall_shift_us: int = 0

    def now(self, scheduler: Scheduler) -> Now:
        now = scheduler.now()
        return Now(self.own_ns(now.mono_ns), now.wall_us + self.wall_shift_us)

    def own_ns(self, virtual_ns: int) -> int:
        return self.boot_ns + (virtual_ns if self.rate == 1.0 else int(virtual_ns * self.rate))

    def virtual_ns(self, own_ns: int) -> int:
        since = own_ns - self.boot_ns
        return since if self.rate == 1.0 else int(since / self.rate) + 1
