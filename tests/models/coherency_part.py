"""Coherency leases inside a model's state: the real watch and lease, made from values and back."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from leasehold.model.records.acks import Ack
from leasehold.model.records.log import Grant
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.coherency import (
    CoherencyLease,
    CoherencySettings,
    CoherencyWatch,
    _Node,
)

READER: Final = "r"
SETTINGS: Final = CoherencySettings(
    # No defer: it is for clock *rates*, which are equal here, so every bound is met exactly.
    duration_ms=2,
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
    wait_until_ns: int


class Sent(NamedTuple):
    """An acknowledgement of the replicant, with its ask for a lease."""

    incarnation: bytes
    applied: int
    asked_ns: int


def _record(ack: Sent) -> Ack:
    return Ack(
        READER,
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

    def serve_from_ns(self, now: int, longest_grant_ms: int) -> int:
        """C4, of a master whose Claim is read back now."""
        return CoherencyWatch(SETTINGS, now * NS_PER_MS, longest_grant_ms).serve_from_ns

    def grants(
        self, seen: tuple[Seen, ...], log_end: int, now: int
    ) -> tuple[tuple[Grant, ...], tuple[Seen, ...]]:
        key = seen, log_end, now
        found = self._granted.get(key)
        if found is None:
            watch = self._watch(seen)
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
        lease = CoherencyLease(READER, incarnation)
        lease._asks.extend(asks)
        lease.until_ns = until_ns
        return lease

    def _watch(self, seen: tuple[Seen, ...]) -> CoherencyWatch:
        watch = CoherencyWatch(SETTINGS, 0, 0)
        for node in seen:
            watch._nodes[READER, node.incarnation] = _Node(
                node.incarnation, node.applied, node.asked_ns, 0, node.wait_until_ns
            )
        return watch

    @staticmethod
    def _seen(watch: CoherencyWatch) -> tuple[Seen, ...]:
        return tuple(
            Seen(incarnation, node.applied, node.asked_ns, node.wait_until_ns)
            for (_, incarnation), node in sorted(watch._nodes.items())
        )
