"""Kafka and Redis for containers of a test, in their network, under the names by which manifests
ask for them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from infra.child_environment import server_environment
from infra.class_archives import ClassArchives
from infra.deployment import KAFKA
from infra.kafka.broker import Broker
from infra.local_cluster import KAFKA_JARS
from infra.redis.server import server_settings
from tests.support.containers.container import Container, Described
from tests.support.containers.pod_network import PodNetwork

HEAP_MB: Final = 384
REDIS_PORT: Final = 6379


@contextmanager
def a_broker(
    network: PodNetwork,
    folder: Path,
    names: Sequence[str],
    port: int,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Container]:
    """A broker that listens at a port in the clear, under the first of the names; all of them are
    its own. `settings` replace or join the others."""
    archive = ClassArchives().java_options(KAFKA)
    clear = {
        "listeners": f"PLAINTEXT://0.0.0.0:{port},CONTROLLER://127.0.0.1:19093",
        "advertised.listeners": f"PLAINTEXT://{names[0]}:{port}",
    }
    broker = Broker(
        *(folder / KAFKA, KAFKA_JARS, port, 19093, HEAP_MB, {**clear, **(settings or {})}),
        java_options=archive,
        format_options=archive,
    )
    environment = server_environment(os.environ)
    broker.prepare(environment)
    described = Described(
        name=names[0],
        command=broker.command(),
        environment=environment,
        uid=0,
        gid=0,
        read_only_root=False,
    )
    with running(Container(network, described, folder / "kafka.log")) as made:
        for name in names:
            network.name(name, made.address)
        yield made


@contextmanager
def a_redis(
    network: PodNetwork, folder: Path, name: str, settings: Mapping[str, str] | None = None
) -> Iterator[Container]:
    """A Redis that anybody in the network reaches."""
    data = folder / "redis"
    data.mkdir()
    command = ["redis-server"]
    given = {"port": str(REDIS_PORT), "bind": "0.0.0.0", "protected-mode": "no", "dir": str(data)}
    for key, value in {**server_settings(), **given, **(settings or {})}.items():
        command += [f"--{key}", value]
    described = Described(
        name=name, command=command, environment={}, uid=0, gid=0, read_only_root=False
    )
    with running(Container(network, described, folder / "redis.log")) as made:
        yield made


@contextmanager
def running(container: Container) -> Iterator[Container]:
    """Start a container, and end it behind the block."""
    container.start()
    try:
        yield container
    finally:
        container.kill()
