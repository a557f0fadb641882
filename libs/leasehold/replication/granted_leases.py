"""Knows from the log who may hold a coherency lease, for a candidate (C6).

A lease counts only if a record of the log that counts has granted it (C3, L1), and whoever claims
the next term has read all of these (L1). So a candidate knows of every lease who may hold it; how
long it may run it counts from when it read the grant, which is later than its append, hence than
the send time that the lease runs from. What was granted before it started it has not read, or not
at that time: those leases are over the longest duration later, and until then anybody may have one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from leasehold.model.records.acks import Ack
from leasehold.model.records.log import Grant
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.coherency import (
    GIVEN_UP,
    NODES_MAX,
    RunningLease,
    RunningLeases,
)


@dataclass(slots=True)
class _Holder:
    """An incarnation of a node. `heard_ns`: when it has acknowledged last, 0 = never; `given_up`:
    it has stopped to serve, for good."""

    applied: int = 0
    until_ns: int = 0
    heard_ns: int = 0
    given_up: bool = False


class GrantedLeases:
    """Gathers what one process reads of leases; times are its host's CLOCK_BOOTTIME in ns."""

    def __init__(self, started_ns: int, longest_grant_ms: int, defer_ms: int) -> None:
        """Begin at a position of the log at which that is the longest duration ever granted, 0 if
        none was. A lease is surely over `defer_ms` after its end (C4)."""
        self._defer_ms = defer_ms
        wait_ms = longest_grant_ms + defer_ms if longest_grant_ms else 0
        self._unknown_until_ns = started_ns + wait_ms * NS_PER_MS
        self._any_granted = longest_grant_ms > 0
        self._started_ns = started_ns
        self._holders: dict[tuple[str, bytes], _Holder] = {}

    def read_grants(self, grants: Iterable[Grant], now_ns: int) -> None:
        """Take the grants of a record that counts, which was read now or before."""
        for grant in grants:
            self._any_granted = True
            until_ns = now_ns + (grant.duration_ms + self._defer_ms) * NS_PER_MS
            holder = self._holder(grant.node, grant.incarnation, now_ns)
            if holder is not None:
                holder.until_ns = max(holder.until_ns, until_ns)
            else:
                self._unknown_until_ns = max(self._unknown_until_ns, until_ns)

    def take_ack(self, ack: Ack, now_ns: int) -> None:
        """Take what a node says on the topic of acknowledgements: how far it is, or that it serves
        no more."""
        holder = self._holder(ack.node, ack.incarnation, now_ns)
        if holder is not None:
            holder.applied = max(holder.applied, ack.offset)
            holder.heard_ns = now_ns
            holder.given_up = holder.given_up or ack.asked_ns == GIVEN_UP

    def running(self) -> RunningLeases:
        """Return the leases that may run, and some that are over; and who was heard."""
        holders = self._holders.items()
        heard = tuple(
            (incarnation, holder.heard_ns)
            for (_, incarnation), holder in holders
            if holder.heard_ns and not holder.given_up
        )
        known = tuple(
            RunningLease(node, incarnation, holder.applied, holder.until_ns)
            for (node, incarnation), holder in holders
            if holder.until_ns and not holder.given_up
        )
        return RunningLeases(
            self._unknown_until_ns, known, self._any_granted, heard, self._started_ns
        )

    def _holder(self, node: str, incarnation: bytes, now_ns: int) -> _Holder | None:
        """Return what is known of an incarnation, None where there is no room for it."""
        holder = self._holders.get((node, incarnation))
        if holder is None:
            if len(self._holders) >= NODES_MAX:
                self._forget_those_without(now_ns)
            if len(self._holders) >= NODES_MAX:
                return None
            holder = self._holders[node, incarnation] = _Holder()
        return holder

    def _forget_those_without(self, now_ns: int) -> None:
        """Forget whose lease is over."""
        self._holders = {
            name: holder for name, holder in self._holders.items() if holder.until_ns > now_ns
        }
