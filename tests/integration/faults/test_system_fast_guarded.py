"""What nodes tell each other through a Redis that is guarded: TLS by an authority of its own, users
with rights of their own; no Spark.

Goal: with just the rights that docs/how-to/secure.md names both roads are taken; who trusts another
authority, or may not use the channels, says so once for each, with what to do, and Kafka carries
it all.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.deployment import service_named
from infra.local_cluster import LocalCluster
from infra.ports import Ports
from leasehold import ChangeProducer, Replica
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.reader import TopicReader
from leasehold.adapters.redis import acks as redis_acks
from leasehold.adapters.redis import log, requests
from leasehold.adapters.redis.client import make_client
from leasehold.adapters.redis.pubsub import Channels
from leasehold.model.records.acks import Ack
from leasehold.model.topics import Topics
from leasehold.settings.client import ClientSettings
from tests.support.cluster.redis_server import listen_by_tls, self_signed
from tests.support.cluster.system_cluster import (
    SOON_S,
    TOLD,
    assert_consistent,
    is_told,
    logged,
    settings_of,
    until,
)
from tests.support.cluster.system_load import ALONE, Load, made_counters

MASTER, GOOD, STRANGER, POOR = "m1", "r1", "r2", "r3"
pytestmark = pytest.mark.long("50 s; the secured cluster has a Redis with users in make test")

NODES = (MASTER, GOOD, STRANGER, POOR)
KEYS = range(6)
DATABASE = "guarded"
ROADS = (redis_acks.CHANNELS, log.CHANNELS)
LEDGER = (f"~leasehold:{{{DATABASE}}}:*", "+@read", "+@write", "+@scripting", "+info")
CHANNELS = (*ROADS, requests.REQUESTS, requests.ANSWERS)
RIGHTS = ("+publish", "+subscribe", "+ping", *(f"&{kind.pattern(DATABASE)}" for kind in CHANNELS))
CODEC = MessagePackCodec()


def user(client: Any, name: str, *rights: str) -> None:
    """Who may use the ledger, and what `rights` say."""
    words = ("reset", "on", f">{name}-secret", *LEDGER, *rights)
    client.execute_command("ACL", "SETUSER", name, *words)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder, ports = tmp_path_factory.mktemp("guarded"), Ports.free()
    ours, theirs = folder / "ours", folder / "theirs"
    ours.mkdir()
    theirs.mkdir()
    certificate, key = self_signed(ours)
    other, _ = self_signed(theirs)
    reached: dict[str, str] = {}

    def as_user(name: str, ca: Path) -> dict[str, str]:
        return {
            "LEASEHOLD_REDIS_PASSWORD": f"{name}-secret",
            "LEASEHOLD_REDIS_CA": str(ca),
            "LEASEHOLD_REDIS": f"rediss://{name}@127.0.0.1:{reached['port']}/0",
        }

    environ = {**os.environ, "LEASEHOLD_LOG_LEVEL": "DEBUG", "LEASEHOLD_DATABASE": DATABASE}
    with LocalCluster(folder, ports, environ) as made:
        made.start_servers()
        made.create_topics()
        reached["port"] = str(listen_by_tls(made.redis_url, certificate, key))
        with make_client(made.redis_settings) as client:
            user(client, "master", *RIGHTS)
            user(client, "node", *RIGHTS)
            user(client, "poor")
        for name, who, ca in (
            (MASTER, "master", certificate),
            (GOOD, "node", certificate),
            (STRANGER, "node", other),
            (POOR, "poor", certificate),
        ):
            service = replace(service_named(name), environment=as_user(who, ca))
            made.services[name] = service
            made.start(name)
        made.start("changefeed")
        made_counters(settings_of(made, "setup"), (*KEYS, ALONE))
        yield made


@pytest.fixture(scope="module")
def admin(cluster: LocalCluster) -> Iterator[Any]:
    with make_client(cluster.redis_settings) as client:
        yield client


class Overheard:
    """Whose acknowledgements are told, and which of them stand on the topic as well."""

    def __init__(self, settings: ClientSettings, admin: Any) -> None:
        topic = Topics(DATABASE).acks.name
        self._reader = TopicReader(settings.kafka, "overheard")
        self._reader.start(topic, 0, self._reader.end_offset(topic, 0))
        self._subscriber = admin.pubsub(ignore_subscribe_messages=True)
        self._subscriber.psubscribe(redis_acks.CHANNELS.pattern(DATABASE))
        self.told: dict[str, set[int]] = defaultdict(set)
        self.put: dict[str, set[int]] = defaultdict(set)

    def listen(self) -> None:
        while (message := self._subscriber.get_message()) is not None:
            self._note(self.told, message["data"])
        for record in self._reader.read(1_000, 0):
            self._note(self.put, record.value or b"")

    def _note(self, where: dict[str, set[int]], data: bytes) -> None:
        ack = CODEC.decode(data)
        if isinstance(ack, Ack):
            where[ack.node].add(ack.offset)

    def told_alone(self, node: str) -> set[int]:
        """Positions that this node was content to tell: what it put on the topic later says that
        they will not come there."""
        known = max(self.put[node], default=0)
        return {offset for offset in self.told[node] if offset < known} - self.put[node]

    def close(self) -> None:
        self._subscriber.close()
        self._reader.close()


@pytest.fixture
def overheard(settings: ClientSettings, admin: Any) -> Iterator[Overheard]:
    made = Overheard(settings, admin)
    yield made
    made.close()


def troubles(cluster: LocalCluster, name: str) -> list[str]:
    lines = logged(cluster, name).splitlines()
    return [line for line in lines if "WARNING leasehold.redis:" in line]


def of(road: str, lines: list[str]) -> list[str]:
    return [line for line in lines if f"no {road} by Redis at" in line]


def test_with_the_rights_of_readme_both_roads_are_taken(
    cluster: LocalCluster, load: Load, admin: Any, overheard: Overheard, producer: ChangeProducer
) -> None:
    until(lambda: is_told(cluster, GOOD), "the log told to a replicant")

    def content() -> bool:
        overheard.listen()
        return len(overheard.told_alone(GOOD)) >= 20

    until(content, "acknowledgements that are told and not put on the topic")
    for road in ROADS:  # what overhears would be taken for the master, but it names no channel
        (heard,) = admin.pubsub_channels(road.pattern(DATABASE))
        assert admin.pubsub_numsub(heard) == [(heard, 1)]
    pubsub = {(c["user"], c["laddr"].rpartition(":")[2]) for c in admin.client_list(_type="pubsub")}
    port = str(admin.config_get("tls-port")["tls-port"])
    assert {("master", port), ("node", port)} <= pubsub
    altered = producer.submit({"sql": "ALTER TABLE t ADD COLUMN told text"}).result(SOON_S)
    assert altered.lsn, altered  # a job goes through the ledger
    for name in (MASTER, GOOD):
        assert not troubles(cluster, name)
        assert "NOPERM" not in logged(cluster, name)


def test_who_is_kept_away_says_so_once_and_kafka_carries_it(
    cluster: LocalCluster, load: Load, overheard: Overheard
) -> None:
    load.more(200)
    overheard.listen()
    for name in (STRANGER, POOR):
        assert TOLD not in logged(cluster, name)
        assert not overheard.told[name]
    until(
        lambda: all(len(troubles(cluster, name)) >= 2 for name in (STRANGER, POOR)),
        "what they have to say",
    )
    load.more(200)
    for name, advice in ((STRANGER, ["LEASEHOLD_REDIS_CA"] * 2), (POOR, ["acks:*", "log:*"])):
        said = troubles(cluster, name)
        assert len(said) == 2, said
        for road, words in zip(ROADS, advice, strict=True):
            (line,) = of(road.what, said)
            assert words in line
            assert "secret" not in line
    assert_consistent(cluster, NODES)


def test_rights_that_are_taken_away_and_given_back(
    cluster: LocalCluster, load: Load, admin: Any
) -> None:
    """Of the master: nobody has what he would tell."""
    until(lambda: is_told(cluster, GOOD), "the log told")
    user(admin, "master")  # ends its connections that listen

    def advice(road: Channels) -> list[str]:
        lines = of(road.what, troubles(cluster, MASTER))
        return [line for line in lines if f"&{road.pattern(DATABASE)}" in line]

    until(lambda: all(map(advice, ROADS)), "what the master has to say")
    until(lambda: not is_told(cluster, GOOD), "the log read from Kafka")
    load.more(200)
    assert not is_told(cluster, GOOD)
    for road in ROADS:
        assert len(advice(road)) == 1
        # That Redis has closed the connection may be told before.
        assert len(of(road.what, troubles(cluster, MASTER))) <= 2
    user(admin, "master", *RIGHTS)
    user(admin, "poor", *RIGHTS)
    until(lambda: is_told(cluster, GOOD), "the log told again")
    until(lambda: is_told(cluster, POOR), "the log told to who may listen now")
    assert_consistent(cluster, NODES)


def test_no_write_was_lost_or_doubled(
    cluster: LocalCluster, settings: ClientSettings, load: Load, replica: Replica
) -> None:
    load.stop()
    load.assert_exact(replica)
    for name in NODES:
        assert "Traceback" not in logged(cluster, name)
        assert "-secret" not in logged(cluster, name)
