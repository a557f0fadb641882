"""Settings of a broker and of its JVM, for the one-process broker and for the container alike.

The promises that rest on them: an acknowledged record survives what `min.insync.replicas` says, no
unclean leader, no topic by accident (a misspelt name must be an error, not an empty topic).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from leasehold.model.topics import MESSAGE_BYTES_MAX

HEAP_MB: Final = 768
SESSION_MS: Final = 4_000
HEARTBEAT_MS: Final = 500
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
    # The controller gives what a silent broker leads to others after so long (Kafka: after 9 s):
    # all that time nobody commits.
    several = {
        "broker.session.timeout.ms": str(SESSION_MS),
        "broker.heartbeat.interval.ms": str(HEARTBEAT_MS),
    }
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
        **(several if replication_factor > 1 else {}),
    }


def local_settings(
    port: int, controller_port: int, data: str, node_id: int = 1, controllers: Sequence[int] = ()
) -> dict[str, str]:
    """The whole of server.properties for a broker on the loopback address. `controllers`: ports of
    all controllers, where there are several, in the order of their node ids from 1 on."""
    voters = enumerate(controllers or (controller_port,), 1)
    return {
        **broker_settings(replication_factor=len(controllers) or 1),
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(f"{n}@127.0.0.1:{at}" for n, at in voters),
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
