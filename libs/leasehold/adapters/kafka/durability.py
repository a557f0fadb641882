"""How records of a topic could be lost although they were acknowledged, by what Kafka says of it.
Producers of ours leave nothing to a setting: all of them wait for `acks=all`. PURE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from leasehold.adapters.kafka.cluster_look import TopicSeen

WRITES_ACKNOWLEDGED: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"


class Weakness(NamedTuple):
    """A way to lose what was acknowledged: what it is, and what to do about it."""

    words: str
    to_do: str


def find_weaknesses(name: str, seen: TopicSeen, brokers: int) -> Iterator[Weakness]:
    """Yield how records of one topic, which has partitions, could be lost."""
    replicas = min(part.replicas for part in seen.partitions)
    if replicas == 1:
        yield Weakness(
            f"{name} is on one broker of {brokers}: acknowledged writes are lost with its disk",
            "in production have three brokers, and topics made with LEASEHOLD_REPLICATION_FACTOR=3",
        )
    settings = seen.settings or {}
    least = settings.get(WRITES_ACKNOWLEDGED)
    if replicas > 1 and least is not None and int(least) < replicas // 2 + 1:
        yield Weakness(
            f"{name} acknowledges a record that {least} of {replicas} brokers have: it is lost if"
            " those fail",
            f"set {WRITES_ACKNOWLEDGED}={replicas // 2 + 1} of {name}",
        )
    if least is not None and int(least) >= replicas > 1:
        yield Weakness(
            f"{name} takes no record while one of its {replicas} brokers is away"
            f" ({WRITES_ACKNOWLEDGED} {least})",
            f"set {WRITES_ACKNOWLEDGED}={replicas // 2 + 1} of {name}",
        )
    if settings.get(UNCLEAN) == "true":
        yield Weakness(
            f"{name} may be led by a broker that lacks acknowledged records",
            f"set {UNCLEAN}=false of {name}",
        )
