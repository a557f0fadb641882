"""What a running cluster takes: memory and open files of each process, its folders, its topics, and
the keys of its Redis."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import redis

from infra.deployment import KAFKA, REDIS
from infra.local_cluster import LocalCluster
from tests.bench.cpu import tree_times
from tests.bench.topic_bytes import topic_bytes
from tests.soak.growth import Limit

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
MB: Final = 1 << 20
MEMORY: Final = Limit(0.05, 16)
FILES: Final = Limit(0.05, 4)
STORE: Final = Limit(0.10, 16)
TOPICS: Final = Limit(0.10, 32)
KEYS: Final = Limit(0.05, 20)

Sizes = Mapping[str, tuple[float, str, Limit]]
"""Each with its unit, and what it may grow by."""


def take_sizes(cluster: LocalCluster, names: Iterable[str]) -> Sizes:
    """Return how large everything is now; what does not run at this moment is left out."""
    return dict(_sizes(cluster, tuple(names)))


def _sizes(
    cluster: LocalCluster, names: tuple[str, ...]
) -> Iterator[tuple[str, tuple[float, str, Limit]]]:
    records = {name: cluster.processes.find(name) for name in (*names, KAFKA, REDIS)}
    pids = {name: record.identity.pid for name, record in records.items() if record is not None}
    trees = tree_times(pids.values())
    for name, pid in pids.items():
        below = [each.pid for each in trees.get(pid, ())]
        memory = sum(resident_bytes(each) for each in below)
        if memory:
            yield f"memory {name}", (memory / MB, "MB", MEMORY)
            yield f"files {name}", (float(sum(open_files(each) for each in below)), "", FILES)
    for name in names:
        folder = cluster.data / name
        if folder.is_dir():
            yield f"folder {name}", (folder_bytes(folder) / MB, "MB", STORE)
    topics = topic_bytes(cluster)
    yield "topics", (sum(topics.values()) / MB, "MB", TOPICS)
    yield "topics, how many", (float(len(topics)), "", KEYS)
    with suppress(redis.RedisError), redis.Redis.from_url(cluster.redis_url) as client:
        yield "redis, keys", (float(client.dbsize()), "", KEYS)
        used = client.info("memory")["used_memory"]
        yield "redis, memory", (used / MB, "MB", MEMORY)


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
