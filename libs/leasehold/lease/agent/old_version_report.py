"""What an agent says of versions that it holds on to although its new users have a newer one: who
uses them, and for how long. It is said while it lasts, so that silence tells something too."""

from __future__ import annotations

from typing import Final

from leasehold.lease.agent.held_leases import HeldLease
from leasehold.lease.agent.holder import Holder
from leasehold.model.ports import Now
from leasehold.model.records.acks import HoldingReport
from leasehold.model.time_units import NS_PER_MS

FIRST_AFTER_NS: Final = 250_000_000
"""Most users are gone by then: what ends by itself in a moment is nobody's trouble."""
EVERY_NS: Final = 1_000_000_000
LEASES_TOLD_MAX: Final = 16
WORK_TOLD_MAX: Final = 4


class OldLeases:
    """Reports of a holder's leases on old versions, in the thread that steps it: ask `reports` when
    `due_ns` has come."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._told_ns = -EVERY_NS

    def due_ns(self) -> int | None:
        """Return when to ask for reports next, None where nothing older is in use here."""
        in_use = [lease.retired_ns for lease in self._in_use()]
        if not in_use:
            return None
        return max(min(in_use) + FIRST_AFTER_NS, self._told_ns + EVERY_NS)

    def reports(self, now: Now) -> list[HoldingReport]:
        """Return a report of each lease on an old version that is in use, oldest first, at most
        LEASES_TOLD_MAX; [] before it is due."""
        due_ns = self.due_ns()
        if due_ns is None or now.mono_ns < due_ns:
            return []
        self._told_ns = now.mono_ns
        oldest = sorted(self._in_use(), key=lambda lease: lease.retired_ns)
        return [self._report(lease, now) for lease in oldest[:LEASES_TOLD_MAX]]

    def _in_use(self) -> list[HeldLease]:
        return [lease for lease in self._holder.leases.old.values() if not lease.is_idle]

    def _report(self, lease: HeldLease, now: Now) -> HoldingReport:
        session, now_ns = self._holder.session, now.mono_ns
        named = self._holder.leases.find_blockers(
            lease.table, lease.version + 1, now_ns, WORK_TOLD_MAX
        )
        return HoldingReport(
            self._holder.agent,
            session.id,
            lease.table,
            lease.version,
            len(lease.users) + len(lease.named),
            (now_ns - lease.since_ns) // NS_PER_MS,
            (now_ns - lease.retired_ns) // NS_PER_MS,
            (session.expires_ns - now_ns) // NS_PER_MS,
            tuple(
                (use.label, use.sql, use.age_ns // NS_PER_MS)
                for use in named
                if use.version == lease.version
            ),
            now.wall_us,
        )
