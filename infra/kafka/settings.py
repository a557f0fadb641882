"""Settings of a broker and of its JVM, for the one-process broker and for the container alike.

The promises that rest on them: an acknowledged record survives what `min.insync.replicas` says, no
unclean leader, no topic by accident (a misspelt name must be an error, not an empty topic).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from leasehold.model.topics import MESSAGE_BYTES_MAX

HEAP_MB: Final = 768
SMALL_HEAP_MB: Final = 256


def jvm_options(heap_mb: int = HEAP_MB) -> tuple[str, ...]:
    """A commit waits for the broker, and so for its garbage collector (tests/bench/DESIGN.md). G1
    marks what is old beside the work, where the serial one stands still for over 100 ms every six
    minutes. With one thread a pause doesn't wait for another one's turn on a busy machine, and a
    small young generation is collected in 5 to 10 ms; with a smaller one, too much grows old."""
    return (
        f"-Xmx{heap_mb}m",
        f"-Xms{min(heap_mb, SMALL_HEAP_MB)}m",
        "-XX:+UseG1GC",
        "-XX:ParallelGCThreads=1",
        "-Xmn24m",
        "-XX:+ExitOnOutOfMemoryError",
    )


def broker_settings(replication_factor: int) -> dict[str, str]:
    """What holds wherever the broker runs; addresses and folders are the caller's."""
    replicas = str(replication_factor)
    in_sync = str(replication_factor // 2 + 1)
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "auto.create.topics.enable": "false",
        "unclean.leader.election.enable": "false",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        # Kafka's 50 partitions each serve hundreds of groups; a handful of groups starts faster.
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        # A group's first member works at once instead of waiting 3 s for others.
        "group.initial.rebalance.delay.ms": "0",
        "message.max.bytes": str(MESSAGE_BYTES_MAX),
        "replica.fetch.max.bytes": str(MESSAGE_BYTES_MAX),
        # Indexes are memory that is mapped. Kafka makes them 10 MiB each; where the disk reads far
        # ahead, a handler that touches one has as much of it made, 10 to 30 ms without a turn for
        # anybody else. One MiB serves 350 MB of a log.
        "log.index.size.max.bytes": str(1 << 20),
        # The cleaner's 128 MiB default would eat a small heap; 32 MiB index about 1.3 M keys a run.
        "log.cleaner.dedupe.buffer.size": str(32 << 20),
    }


def local_settings(port: int, controller_port: int, data: str) -> dict[str, str]:
    """The whole of server.properties for one broker on the loopback address."""
    return {
        **broker_settings(replication_factor=1),
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": data,
    }


def as_properties(settings: Mapping[str, str]) -> str:
    """Java's properties format; a backslash there starts an escape."""
    lines = (f"{name}={value.replace(chr(92), chr(92) * 2)}" for name, value in settings.items())
    return "".join(f"{line}\n" for line in lines)


def as_container_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The official image's spelling: KAFKA_ and the name in capitals, a dot as an underscore, and
    as three of them a hyphen."""
    return {
        f"KAFKA_{name.upper().replace('-', '___').replace('.', '_')}": value
        for name, value in settings.items()
    }
