"""Coherency leases inside a model's state: the real watch and lease, made from values and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

from leasehold.model.records.acks import Ack
from leasehold.model.records.log import Grant
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.coherency import (
    CoherencyLease,
    CoherencySettings,
    CoherencyWatch,
    RunningLeases,
    _Node,
)
from leasehold.replication.granted_leases import GrantedLeases, _Holder

SETTINGS: Final = CoherencySettings(
    # No defer: it is for clock *rates*, which are equal here, so every bound is met exactly.
    duration_ms=2,
    duration_ms_max=2,
    renewal_ms=1,
    defer_ms=0,
    lag_ms_max=1_000_000,
    behind_records_max=1_000,
)


class Seen(NamedTuple):
    """One incarnation of the replicant as a master's watch has it."""

    incarnation: bytes
    applied: int
    asked_ns: int
    ask_heard_ns: int
    wait_until_ns: int


class Sent(NamedTuple):
    """An acknowledgement of the replicant, with its ask for a lease."""

    incarnation: bytes
    applied: int
    asked_ns: int


class Known(NamedTuple):
    """A lease that may run, as a candidate knows it."""

    incarnation: bytes
    applied: int
    until_ns: int


class Leases(NamedTuple):
    """All that a candidate knows of leases that may run."""

    unknown_until_ns: int = 0
    known: tuple[Known, ...] = ()


NO_LEASES: Final = Leases()


def name_of(incarnation: bytes) -> str:
    """Return the name of the node of an incarnation, which begins with its number."""
    return f"r{incarnation[0]}"


def _record(ack: Sent) -> Ack:
    return Ack(
        name_of(ack.incarnation),
        ack.incarnation,
        "replicant",
        ack.applied,
        0,
        0,
        ack.asked_ns,
        coherent=False,
        serves="",
        sent_us=0,
    )


class CoherencyPart:
    """What a master does with its watch, as functions of the nodes that it has seen."""

    def __init__(self) -> None:
        self._granted: dict[Any, tuple[tuple[Grant, ...], tuple[Seen, ...]]] = {}

    def restarted(self, now: int, longest_grant_ms: int) -> Leases:
        """C6: what a process that starts now knows."""
        return self._leases(GrantedLeases(now * NS_PER_MS, longest_grant_ms, 0), now)

    def grants_read(self, leases: Leases, grants: tuple[Grant, ...], now: int) -> Leases:
        if not grants:
            return leases
        granted = self._granted_leases(leases)
        granted.read_grants(grants, now * NS_PER_MS)
        return self._leases(granted, now)

    def acked_before_the_claim(self, leases: Leases, ack: Sent, now: int) -> Leases:
        granted = self._granted_leases(leases)
        granted.take_ack(_record(ack), now * NS_PER_MS)
        return self._leases(granted, now)

    @staticmethod
    def running(leases: Leases, now: int) -> Leases:
        """Without those that are over; the same where none is."""
        if leases == NO_LEASES:
            return NO_LEASES
        now_ns = now * NS_PER_MS
        unknown_until_ns = leases.unknown_until_ns if leases.unknown_until_ns > now_ns else 0
        known = tuple(each for each in leases.known if each.until_ns > now_ns)
        if len(known) == len(leases.known) and unknown_until_ns == leases.unknown_until_ns:
            return leases
        return Leases(unknown_until_ns, known)

    def takes_over(self, leases: Leases, now: int) -> tuple[int, tuple[Seen, ...]]:
        """C6: serve_from_ns of a master whose Claim is read back now, and whom it has to wait
        for."""
        running = self._granted_leases(leases).running()
        watch = CoherencyWatch(SETTINGS, now * NS_PER_MS, running)
        return watch.serve_from_ns, self._seen(watch)

    @staticmethod
    def _granted_leases(leases: Leases) -> GrantedLeases:
        granted = GrantedLeases(0, 0, 0)
        granted._unknown_until_ns = leases.unknown_until_ns
        for known in leases.known:
            holder = _Holder(known.applied, known.until_ns)
            granted._holders[name_of(known.incarnation), known.incarnation] = holder
        return granted

    def _leases(self, granted: GrantedLeases, now: int) -> Leases:
        known = tuple(
            Known(incarnation, holder.applied, holder.until_ns)
            for (_, incarnation), holder in granted._holders.items()
        )
        return self.running(Leases(granted._unknown_until_ns, tuple(sorted(known))), now)

    def grants(
        self,
        seen: tuple[Seen, ...],
        log_end: int,
        now: int,
        length_ms: int = SETTINGS.duration_ms,
    ) -> tuple[tuple[Grant, ...], tuple[Seen, ...]]:
        """The grants of a record that is appended now, of leases of that length."""
        key = seen, log_end, now, length_ms
        found = self._granted.get(key)
        if found is None:
            watch = self._watch(seen)
            watch._settings = replace(SETTINGS, duration_ms=length_ms, duration_ms_max=length_ms)
            grants = watch.grants(log_end, now * NS_PER_MS)
            found = self._granted[key] = grants, self._seen(watch)
        return found

    def acked(self, seen: tuple[Seen, ...], ack: Sent, log_end: int, now: int) -> tuple[Seen, ...]:
        watch = self._watch(seen)
        watch.take_ack(_record(ack), log_end, now * NS_PER_MS)
        return self._seen(watch)

    def heard(self, seen: tuple[Seen, ...], told: Sent, now: int) -> tuple[Seen, ...]:
        """By the fast way."""
        watch = self._watch(seen)
        watch.take_published(_record(told), now * NS_PER_MS)
        return self._seen(watch)

    def may_answer(self, seen: tuple[Seen, ...], serve_from_ns: int, offset: int, now: int) -> bool:
        watch = self._watch(seen)
        watch.serve_from_ns = serve_from_ns
        return watch.may_answer(offset, now * NS_PER_MS)

    def lease(
        self, incarnation: bytes, asks: tuple[int, ...] = (), until_ns: int = 0
    ) -> CoherencyLease:
        """The replicant's own."""
        lease = CoherencyLease(name_of(incarnation), incarnation)
        lease._asks.extend(asks)
        lease.until_ns = until_ns
        return lease

    def _watch(self, seen: tuple[Seen, ...]) -> CoherencyWatch:
        watch = CoherencyWatch(SETTINGS, 0, RunningLeases())
        for node in seen:
            watch._nodes[name_of(node.incarnation), node.incarnation] = _Node(
                node.incarnation,
                node.applied,
                node.asked_ns,
                node.ask_heard_ns,
                wait_until_ns=node.wait_until_ns,
            )
        return watch

    @staticmethod
    def _seen(watch: CoherencyWatch) -> tuple[Seen, ...]:
        return tuple(
            Seen(
                incarnation,
                node.applied,
                node.asked_ns,
                node.ask_heard_ns if node.asked_ns else 0,
                node.wait_until_ns,
            )
            for (_, incarnation), node in sorted(watch._nodes.items())
        )
