"""What a fast path tells of itself to whoever looks at its process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from leasehold.model import metrics
from leasehold.model.measures import Sample
from leasehold.model.time_units import NS_PER_S
from leasehold.replication.fast_path.state_machine import FastPath, Pause

_REASONS: Final = {
    Pause.NONE: "to compare, or nothing to do",
    Pause.ONCE: "of no use",
    Pause.FAULT: "fault",
}


def path_samples(name: str, path: FastPath, now_ns: int) -> Iterator[Sample]:
    """Yield the state of a fast path, and how often it was taken and left."""
    yield Sample(metrics.PATH_IN_USE, (name,), float(path.taken))
    yield Sample(metrics.PATH_PAUSE_S, (name,), path.pause_left_ns(now_ns) / NS_PER_S)
    yield Sample(metrics.PATH_ENTERED, (name,), path.use.entered)
    for pause, times in path.use.left.items():
        yield Sample(metrics.PATH_LEFT, (name, _REASONS[pause]), times)
