"""The local cluster on real servers: they serve, they end, and nothing is ended by mistake."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from infra.deployment import Service
from infra.kafka.warm_up import ROUND, TOPIC, warm_up
from infra.local_cluster import ROOT, LocalCluster
from infra.ports import Ports, can_bind
from infra.process_table import is_running, wait_until_ended
from infra.processes import Processes, ProcessFailure
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.redis.client import make_client
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings, RedisSettings

DEADLINE_S = 60.0


def test_a_record_goes_through_kafka(kafka: KafkaSettings, topics: Topics) -> None:
    """Goal: the fixture's broker takes and gives records of a topic made by create_topics."""
    producer = Producer({**kafka.librdkafka(), "acks": "all"})
    producer.produce(topics.requests.name, b"hello")
    assert producer.flush(DEADLINE_S) == 0
    consumer = Consumer({**kafka.librdkafka(), "group.id": topics.database})
    try:
        consumer.assign([TopicPartition(topics.requests.name, 0, 0)])
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        assert message.error() is None
        assert message.value() == b"hello"
    finally:
        consumer.close()


def test_a_transaction_commits_at_once(kafka: KafkaSettings, topics: Topics) -> None:
    """Goal: the ready check covers the transaction coordinator, so the first one finds it."""
    producer = Producer({**kafka.librdkafka(), "transactional.id": topics.database})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(topics.versions.name, key=b"1", value=b"v")
    producer.commit_transaction(DEADLINE_S)


@pytest.mark.parametrize(("rounds", "longest_s"), [(2, DEADLINE_S), (10**6, 1.0)])
def test_a_broker_is_warmed_up_and_keeps_nothing_of_it(
    servers: LocalCluster, kafka: KafkaSettings, topics: Topics, rounds: int, longest_s: float
) -> None:
    """Goal: it ends when the compiler rests (this broker has none that doesn't), or in time."""
    pids = [servers.brokers.pid(name) for name in servers.brokers.names]
    sent = warm_up(kafka, pids, longest_s, rounds)
    assert sent == 2 * ROUND or (rounds > 2 and sent < rounds * ROUND)
    admin = TopicAdmin(kafka, "test")
    give_up = time.monotonic() + DEADLINE_S
    while TOPIC in (names := admin.list_names(topics.log.name)):
        assert time.monotonic() < give_up, "it is deleted a moment later"
    assert topics.log.name in names


def test_redis_answers_and_never_evicts(redis_settings: RedisSettings) -> None:
    with make_client(redis_settings) as client:
        assert client.ping()
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}


def test_topics_are_created_once_and_drift_is_told(kafka: KafkaSettings, database: str) -> None:
    topics = Topics(database).all_static()
    again = ensure_topics(kafka, topics)
    assert again.created == ()
    assert again.drift == ()

    admin = AdminClient(kafka.librdkafka())
    change = ConfigResource(
        "topic",
        Topics(database).log.name,
        incremental_configs=[
            ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    for future in admin.incremental_alter_configs([change]).values():
        future.result(DEADLINE_S)
    drift: tuple[str, ...] = ()
    give_up = time.monotonic() + DEADLINE_S
    while not drift and time.monotonic() < give_up:  # the broker applies a change a moment later
        drift = ensure_topics(kafka, topics).drift
    assert drift == (f"{database}.log has retention.ms=1000, not -1",)


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    """The environment of a whole local cluster of its own, with a fake service for each real."""
    ports = Ports.free()
    return {
        **os.environ,
        "LEASEHOLD_DATA": str(tmp_path / "data"),
        "LEASEHOLD_KAFKA": f"127.0.0.1:{ports.kafka}",
        "LEASEHOLD_KAFKA_CONTROLLER_PORT": str(ports.kafka_controller),
        "LEASEHOLD_REDIS": f"redis://127.0.0.1:{ports.redis}/0",
        "LEASEHOLD_DASHBOARD_PORT": str(ports.dashboard),
    }


def cluster_command(word: str, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "infra.cluster", word],
        env=dict(environ),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


@pytest.fixture
def half_way(environ: Mapping[str, str]) -> Iterator[Processes]:
    """`up`, killed by SIGKILL as soon as it has started Redis: a crash half way."""
    data = Path(environ["LEASEHOLD_DATA"])
    processes = Processes(data / "run", data / "log")
    command = [sys.executable, "-m", "infra.cluster", "up"]
    with subprocess.Popen(command, env=dict(environ), cwd=ROOT, stdout=subprocess.DEVNULL) as up:
        give_up = time.monotonic() + DEADLINE_S
        while processes.find("redis") is None and time.monotonic() < give_up:
            os.sched_yield()
        up.send_signal(signal.SIGKILL)
    try:
        yield processes
    finally:
        processes.stop_all()


def test_down_ends_everything_after_a_crash_of_up(
    environ: Mapping[str, str], half_way: Processes
) -> None:
    """Goal: no process survives `down`, recorded or not.

    Method: kill `up` half way; then lose Redis's record, as if `up` had died between starting it
    and writing the record; `down` must find it by its inherited token.
    """
    record = half_way.find("redis")
    assert record is not None
    (half_way.folder / "redis.json").unlink()

    done = cluster_command("down", environ)

    assert done.returncode == 0, done.stderr
    assert f"pid {record.identity.pid}" in done.stdout
    assert not is_running(record.identity)
    assert half_way.running() == {}
    assert can_bind(int(environ["LEASEHOLD_KAFKA"].rpartition(":")[2]))
    assert cluster_command("down", environ).stdout == "Nothing was running.\n"


def test_up_says_what_is_wrong_with_its_settings(environ: Mapping[str, str]) -> None:
    done = cluster_command("up", {**environ, "LEASEHOLD_KAFKA": "broker.example:9092"})
    assert done.returncode == 1
    assert "LEASEHOLD_KAFKA is 'broker.example:9092'" in done.stderr
    assert "Traceback" not in done.stderr


def test_servers_end_when_their_owner_is_killed(tmp_path: Path) -> None:
    """Goal: a killed test run or demo leaves nothing behind (the watchdog)."""
    ports = Ports.free()
    owner = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from infra.local_cluster import LocalCluster\n"
        "from infra.ports import Ports\n"
        f"ports = Ports({ports.kafka}, {ports.kafka_controller}, {ports.redis}, 0)\n"
        "with LocalCluster(Path(sys.argv[1]), ports, services=()) as cluster:\n"
        "    cluster.start_redis()\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(3600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", owner, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        record = Processes(tmp_path / "run", tmp_path / "log").find("redis")
        assert record is not None
        process.kill()
    assert wait_until_ended(record.identity, DEADLINE_S)


READY_SERVICE = """
import os, time
from pathlib import Path
Path(os.environ["LEASEHOLD_READY_FILE"]).write_text("ready")
while True: time.sleep(3600)
"""
BROKEN_SERVICE = "raise SystemExit('the flux is not compensated')"


@pytest.fixture
def with_services(tmp_path: Path) -> Iterator[LocalCluster]:
    """A cluster of two small services: `good` gets ready, `bad` ends at once with a sentence."""
    (tmp_path / "good_service.py").write_text(READY_SERVICE)
    (tmp_path / "bad_service.py").write_text(BROKEN_SERVICE)
    services = (
        Service("good", "good_service", "a service that works"),
        Service("bad", "bad_service", "a service that fails", needs=("good",)),
    )
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with LocalCluster(tmp_path / "data", Ports.free(), environ, services) as cluster:
        yield cluster


def test_a_service_that_fails_shows_its_last_words(with_services: LocalCluster) -> None:
    with_services.start("good")
    assert with_services.is_ready("good")
    with pytest.raises(ProcessFailure, match="the flux is not compensated"):
        with_services.start("bad")


def test_kill_pause_and_restart_of_a_service(with_services: LocalCluster) -> None:
    with_services.start("good")
    first = with_services.processes.running()["good"]
    with_services.kill("good", signal.SIGSTOP)
    assert is_running(first.identity)  # paused is not ended
    with_services.restart("good")  # ends a paused one too
    second = with_services.processes.running()["good"]
    assert not is_running(first.identity)
    with_services.kill("good")
    assert not is_running(second.identity)
    assert not with_services.is_ready("good")
    with pytest.raises(ProcessFailure, match="good is not running"):
        with_services.kill("good")


def test_starting_twice_starts_once(with_services: LocalCluster) -> None:
    with_services.start("good")
    first = with_services.processes.running()["good"]
    with_services.start("good")
    assert with_services.processes.running()["good"] == first


def test_up_starts_all_in_order_and_up_again_nothing(tmp_path: Path) -> None:
    """Goal: servers, topics, services by need; a second `up` finds nothing to do; `down` ends all.

    Method: small services that note their start; the second may only start after the first is
    ready, since it needs it.
    """
    (tmp_path / "noting_service.py").write_text(
        "import os, time\n"
        "from pathlib import Path\n"
        f"with open({str(tmp_path / 'notes')!r}, 'a') as notes:\n"
        "    notes.write(os.environ['LEASEHOLD_NODE'] + '\\n')\n"
        "Path(os.environ['LEASEHOLD_READY_FILE']).write_text('ready')\n"
        "while True: time.sleep(3600)\n"
    )
    services = (
        Service("first", "noting_service", "first service"),
        Service("second", "noting_service", "second service", needs=("first",)),
    )
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    told: list[str] = []
    with LocalCluster(tmp_path / "data", Ports.free(), environ, services) as cluster:
        assert cluster.start_all(told.append) == ["kafka", "redis", "first", "second"]
        assert (tmp_path / "notes").read_text() == "first\nsecond\n"
        count = len(Topics("any").all_static())
        assert f"topics: {count} created, 0 were there" in told
        assert all(row.ready for row in cluster.status())
        assert cluster.start_all(told.append) == []
        cluster.kill("second")
        assert cluster.start_all(told.append) == ["second"]
        identities = [record.identity for record in cluster.processes.running().values()]
        assert cluster.stop_all() == ["second", "first", "kafka", "redis"]
        assert not any(is_running(identity) for identity in identities)
