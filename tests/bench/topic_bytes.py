"""How much a change writes, by topic: the log segments of the stand's broker, on its own disk."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from infra.deployment import KAFKA
from infra.local_cluster import LocalCluster

LEAST: Final = 0.05
"""Bytes per row; what grows by less is left out."""


def topic_bytes(cluster: LocalCluster) -> dict[str, int]:
    """Bytes of records that each topic's segments hold, all partitions together."""
    found: dict[str, int] = defaultdict(int)
    for segment in (cluster.data / KAFKA / "data").glob("*/*.log"):
        topic, _, partition = segment.parent.name.rpartition("-")
        if topic and partition.isdigit():
            found[topic] += segment.stat().st_size
    return dict(found)


def grown(before: dict[str, int], after: dict[str, int], units: float) -> str:
    """Words: bytes per unit of work, by topic. What was decided may be deleted meanwhile: a topic
    that lost a segment is left out."""
    by_topic = {name: (after[name] - before.get(name, 0)) / units for name in sorted(after)}
    words = [f"{name} {size:.1f}" for name, size in by_topic.items() if size > LEAST]
    return ", ".join(words) or "none"
