"""Real servers for the tests of this folder: one Kafka and one Redis per run, which the workers of
pytest-xdist share.

They stand on free ports and in a temporary folder, so that two runs can go side by side, and end
with the run even if it is killed (`support/cluster/shared_servers.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Final

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica, open_replica
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.redis import connection
from leasehold.admin.watch import ClusterWatch
from leasehold.model.topics import Topics
from leasehold.settings.client import ClientSettings
from leasehold.settings.environment import KafkaSettings, RedisSettings
from tests.support.cluster.redis_server import RedisServer, redis_in
from tests.support.cluster.secure_suite import settings_of_superuser
from tests.support.cluster.shared_servers import SharedServers, folder_of_run
from tests.support.cluster.system_cluster import Beside, a_database, settings_of
from tests.support.cluster.system_load import OFTEN_S, Load
from tests.support.worker_groups import find_group

LONGEST: Final = (
    "changes",
    "test_documents",
    "masters",
    "test_system_schedules",
    "replicants",
    "fast",
    "driver",
    "test_secure_cluster",
    "test_system_outages",
    "test_system_log_made_anew",
    "test_pgbench",
    "test_system_import",
    "test_system_random",
    "test_system_full_disk",
    "test_system_disk_reserve",
    "test_changefeed",
    "test_system_fast_guarded",
    "test_compiled",
    "test_kafka_access",
    "test_matrix",
    "test_spark_cluster",
    "test_spark_comparison",
    "test_installed_package",
)
"""Groups of a minute and more by what they take (`--durations=0`)."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest come first, so that no worker begins one when the others have no more to do
    (`--no-loadscope-reorder`: xdist would begin with those of many tests)."""
    for item in items:
        if "tests/integration/" in item.path.as_posix():
            item.add_marker(pytest.mark.integration)
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    name = PurePath(find_group(item.nodeid)).name
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster without services of its own; servers in it are started when first asked for."""
    folder = folder_of_run(tmp_path_factory, os.environ.get("PYTEST_XDIST_WORKER"))
    with SharedServers(folder) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def beside(servers: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Beside:
    """For modules that start services of their own."""
    return Beside(servers, tmp_path_factory)


@pytest.fixture(scope="session")
def kafka(servers: LocalCluster) -> KafkaSettings:
    """A broker that serves producers, groups and transactions, as who may do everything there."""
    servers.start_kafka()
    return servers.kafka_settings


@pytest.fixture(scope="session")
def redis_settings(servers: LocalCluster) -> RedisSettings:
    """A Redis, as who may do everything there. All tests share it: use keys of a database of your
    own."""
    servers.start_redis()
    return settings_of_superuser(servers)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisServer]:
    """A Redis of the test's own, to be disturbed; lines to it are recreated without long pauses."""
    monkeypatch.setattr(connection, "PAUSE_NS", 1_000_000)
    monkeypatch.setattr(connection, "PAUSE_NS_MAX", 10_000_000)
    with redis_in(tmp_path) as made:
        yield made


@pytest.fixture
def database(kafka: KafkaSettings, servers: LocalCluster) -> str:
    """A database name that no other test has, with its topics created."""
    name = a_database()
    assert servers.kafka_settings == kafka
    ensure_topics(kafka, Topics(name).all_static())
    return name


@pytest.fixture
def topics(database: str) -> Topics:
    """The topics of `database`."""
    return Topics(database)


# ---------------------------------------------------------------- clients of a module's `cluster`


@pytest.fixture(scope="module")
def settings(cluster: LocalCluster) -> ClientSettings:
    return settings_of(cluster, "tester")


@pytest.fixture(scope="module")
def watch(cluster: LocalCluster) -> Iterator[ClusterWatch]:
    with ClusterWatch(settings_of(cluster, "watcher")) as made:
        made.first_look(30)
        yield made


@pytest.fixture(scope="module")
def producer(cluster: LocalCluster) -> Iterator[ChangeProducer]:
    with ChangeProducer(settings_of(cluster, "producer")) as made:
        yield made


@pytest.fixture(scope="module")
def replica(cluster: LocalCluster) -> Iterator[Replica]:
    with open_replica(settings_of(cluster, "embedded")) as made:
        yield made


@pytest.fixture(scope="module")
def load(request: pytest.FixtureRequest, cluster: LocalCluster) -> Iterator[Load]:
    """Steady writers on the counters of the module's KEYS, which go on through every test of it."""
    settings = settings_of(cluster, "writer")
    with Load(settings, "t", request.module.KEYS, pace_s=OFTEN_S) as made:
        made.more(50)
        yield made
