"""What a running cluster takes: memory and open files of each process, its folders, its topics, and
the keys of its Redis.

Of topics two things. Those that are deleted by offset (the log, the queues) are judged by the
records that are kept of them. What a topic takes on the disk is told only: it falls by whole
segments, of 128 MiB or a gibibyte, and grows until its settings let go of some, by time or by
compaction, which may be after a day or a year."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import redis

from infra.deployment import KAFKA, REDIS
from infra.local_cluster import LocalCluster
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.model.errors import BusUnavailable
from leasehold.settings.client import ClientSettings
from tests.bench.cpu import tree_times
from tests.bench.topic_bytes import topic_bytes
from tests.soak.growth import Limit
from tests.soak.jvm import bytes_beside, can_ask, collected_heap, is_java

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
MB: Final = 1 << 20
MEMORY: Final = Limit(0.05, 16)
FILES: Final = Limit(0.05, 4)
STORE: Final = Limit(0.10, 16)
LOG: Final = Limit(0.10, 10_000, warm_up=0.6)
"""Records: a master keeps 100,000 in any case, and deletes nothing in the first hour."""
QUEUE: Final = Limit(0.10, 10_000)
TOLD_MB: Final = 1.0
"""Of topics that are named; what is smaller is told together."""
ASK_S: Final = 10.0
KEYS: Final = Limit(0.05, 20)

Size = tuple[float, str, Limit | None]
Sizes = Mapping[str, Size]
"""Each with its unit, and what it may grow by; None: it is told only."""


class KeptRecords:
    """Asks how many records there are of the topics that are deleted by offset."""

    def __init__(self, settings: ClientSettings) -> None:
        topics = settings.topics
        self._limits = {
            topics.log.name: LOG,
            topics.requests.name: QUEUE,
            topics.backfill.name: QUEUE,
        }
        self._reader = TopicReader(settings.kafka, "soak")

    def sizes(self) -> Iterator[tuple[str, Size]]:
        """Yield how many, where the broker answers."""
        for topic, limit in self._limits.items():
            with suppress(BusUnavailable):
                first, end = self._reader.offsets(topic, 0, ASK_S)
                yield f"records {topic}", (float(end - first), "", limit)

    def close(self) -> None:
        self._reader.close()


def take_sizes(
    cluster: LocalCluster, names: Iterable[str], kept: KeptRecords, *, heaps: bool
) -> Sizes:
    """Return how large everything is now; what does not run at this moment is left out. `heaps`:
    have Java processes collect theirs, too, and look at them."""
    return dict(_sizes(cluster, tuple(names), kept, heaps=heaps))


def _sizes(
    cluster: LocalCluster, names: tuple[str, ...], kept: KeptRecords, *, heaps: bool
) -> Iterator[tuple[str, Size]]:
    records = {name: cluster.processes.find(name) for name in (*names, KAFKA, REDIS)}
    pids = {name: record.identity.pid for name, record in records.items() if record is not None}
    trees = tree_times(pids.values())
    for name, pid in pids.items():
        below = [each.pid for each in trees.get(pid, ())]
        memory = sum(resident_bytes(each) for each in below)
        machines = [each for each in below if is_java(each)] if can_ask() else []
        if memory:
            yield f"memory {name}", (memory / MB, "MB", None if machines else MEMORY)
            yield f"files {name}", (float(sum(open_files(each) for each in below)), "", FILES)
        if machines and heaps:
            yield from _heaps(name, machines)
    for name in names:
        folder = cluster.data / name
        if folder.is_dir():
            yield f"folder {name}", (folder_bytes(folder) / MB, "MB", STORE)
    topics = topic_bytes(cluster)
    large = {topic: size / MB for topic, size in topics.items() if size >= TOLD_MB * MB}
    for topic, size in large.items():
        yield f"disk {topic}", (size, "MB", None)
    yield "disk, other topics", (sum(topics.values()) / MB - sum(large.values()), "MB", None)
    yield from kept.sizes()
    yield "topics, how many", (float(len(topics)), "", KEYS)
    with suppress(redis.RedisError), redis.Redis.from_url(cluster.redis_url) as client:
        yield "redis, keys", (float(client.dbsize()), "", KEYS)
        used = client.info("memory")["used_memory"]
        yield "redis, memory", (used / MB, "MB", MEMORY)


def _heaps(name: str, pids: Iterable[int]) -> Iterator[tuple[str, Size]]:
    found = {pid: heap for pid in pids if (heap := collected_heap(pid)) is not None}
    if found:
        used = sum(heap.used for heap in found.values())
        beside = sum(bytes_beside(pid, heap) for pid, heap in found.items())
        yield f"heap {name}", (used / MB, "MB", MEMORY)
        yield f"memory {name}, beside its heap", (beside / MB, "MB", MEMORY)


def resident_bytes(pid: int) -> int:
    """Return what a process has in memory, 0 where it has ended."""
    with suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    return 0


def open_files(pid: int) -> int:
    """Return how many descriptors a process has, 0 where it has ended."""
    with suppress(OSError):
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    return 0


def folder_bytes(folder: Path) -> int:
    """Return what the files of a folder take on the disk."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_blocks * 512
    return total
