"""Goal: programs that are not ours, in other languages, come to the table by a feed.

Method: a synthetic log on a broker without users, published by a changefeed; programs in Go and in
Java read a feed in Avro by the registry with the libraries that people use there, and the file sink
of Kafka Connect reads one in JSON with schemas by its own converter. The same feeds are read back
by an intake, which comes to the rows of the table that it fills.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyspark
import pytest

from infra.java import java
from infra.local_cluster import LocalCluster
from infra.ports import Ports
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.debezium.definition import CreateFeed, Definition, Encoding, encode_order
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.requests import OperationKind
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings
from leasehold.values.types import Type
from tests.support.changefeed.changefeed_process import (
    append,
    changefeed,
    has_stored,
    published,
    wait_until,
)
from tests.support.changefeed.made_log import MadeLog
from tests.support.cluster.stage import Stage
from tests.support.intake.foreign_source import intake
from tests.support.registry.apicurio import apicurio

pytestmark = pytest.mark.long("a registry, Kafka Connect and a Go compiler; `make feed-tools`")
ROOT: Final = Path(__file__).resolve().parents[3]
CONNECT: Final = ROOT / ".leasehold" / "connect"
GO: Final = ROOT / "tests" / "support" / "registry" / "go_consumer"
JAVA: Final = ROOT / "tests" / "support" / "registry" / "java_consumer" / "Consumer.java"
DEADLINE_S: Final = 280
LOOK_AGAIN_S: Final = 0.2
EVENT: Final = re.compile(
    r"Struct\{(?:before=Struct\{id=(?P<old>\d+),n=\d+\},)?(?:after=Struct\{id=(?P<id>\d+),n="
    r"(?P<n>\d+)\},)?source=Struct\{.*\},op=(?P<op>\w),"
)
TOPICS: Final = Topics("foreign")


class Published:
    """What was published: the broker, the registry, and the rows that consumers must come to."""

    def __init__(self, cluster: LocalCluster, registry: str, log: MadeLog) -> None:
        self.cluster = cluster
        self.registry = registry
        self._log = log

    def topic(self, table_id: int) -> str:
        return f"foreign.feed.public.table_{table_id}"

    def records(self, table_id: int) -> int:
        return len(published(self.cluster.kafka_settings, self.topic(table_id)))

    def rows(self, wanted: int) -> dict[int, int]:
        rows: dict[int, int] = {}
        for table_id, (key,), _, image in self._log.rows:
            if table_id == wanted:
                rows.pop(key, None)
                if image is not None:
                    rows[key] = image[2]
        return rows


@pytest.fixture(scope="module")
def feeds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    folder = tmp_path_factory.mktemp("foreign")
    with (
        LocalCluster(folder / "cluster", Ports.free(), services=()) as cluster,
        apicurio(folder) as registry,
    ):
        cluster.start_kafka()
        kafka = cluster.kafka_settings
        ensure_topics(kafka, TOPICS.all_static())
        ensure_topics(kafka, [TOPICS.feeds])
        log = MadeLog(11)
        log.claim()
        log.create_table(1)
        log.create_table(2)
        for table_id in (1, 2):
            log.write_rows(table_id, commits=30, keys=20)
        append(kafka, TOPICS, log)
        writer = TopicWriter(kafka, "test-orders")
        avro = Definition(table="public.table_1", encoding=Encoding.AVRO)
        plain = Definition(table="public.table_2", schemas=True)
        for number, definition in enumerate((avro, plain)):
            writer.send(
                TOPICS.feeds.name, 0, b"", encode_order(CreateFeed(str(number), definition))
            )
        assert writer.close(30) == 0
        access = {**cluster.addresses("changefeed"), "LEASEHOLD_DATABASE": TOPICS.database}
        with changefeed({**access, "LEASEHOLD_REGISTRY": registry}, TOPICS, folder) as process:
            both = partial(_are_told, kafka)
            wait_until(both, process, folder)
            more = len(log.records)
            for table_id in (1, 2):
                log.write_rows(table_id, commits=60, keys=20)
            append(kafka, TOPICS, log, more)
            wait_until(partial(has_stored, kafka, TOPICS, log), process, folder)
        yield Published(cluster, registry, log)


def _are_told(kafka: Any) -> bool:
    names = [f"foreign.feed.public.table_{number}" for number in (1, 2)]
    try:
        return all(published(kafka, name) for name in names)
    except BusUnavailable:  # not made yet
        return False


def test_a_program_in_go_reads_avro_by_the_registry(feeds: Published, tmp_path: Path) -> None:
    """franz-go with its client of the registry, and hamba/avro."""
    program = tmp_path / "consumer"
    subprocess.run(
        ["go", "build", "-mod=readonly", "-o", str(program), "."],
        cwd=GO,
        check=True,
        timeout=DEADLINE_S,
    )
    words = (feeds.cluster.bootstrap, feeds.topic(1), feeds.registry, str(feeds.records(1)))
    ended = subprocess.run(
        [str(program), *words], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert _folded(ended.stdout) == feeds.rows(1)


def test_a_program_in_java_reads_avro_by_the_registry(feeds: Published) -> None:
    """Kafka's own client and Avro's own reader."""
    (avro,) = (Path(pyspark.__file__).parent / "jars").glob("avro-1*.jar")
    assert CONNECT.is_dir(), "no Kafka Connect is here: run `make feed-tools`"
    program = [java(os.environ), "-Xmx200m", "-cp", f"{CONNECT}/*:{avro}", str(JAVA)]
    words = (feeds.cluster.bootstrap, feeds.topic(1), feeds.registry, str(feeds.records(1)))
    ended = subprocess.run(
        [*program, *words], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert _folded(ended.stdout) == feeds.rows(1)


def _folded(lines: str) -> dict[int, int]:
    """The table that a program has come to, which has printed each message as JSON."""
    table: dict[int, int] = {}
    for line in lines.splitlines():
        told = json.loads(line)
        if told["value"] is None:
            continue
        after = _plain(told["value"]["after"])
        if after is None:
            del table[told["key"]["id"]]
        else:
            table[after["id"]] = _plain(after["n"])
    return table


def _plain(value: Any) -> Any:
    """A value of a union, which hamba/avro tells beside its type."""
    if isinstance(value, dict) and len(value) == 1:
        (inner,) = value.values()
        return inner
    return value


def test_kafka_connect_reads_json_with_its_own_converter(feeds: Published, tmp_path: Path) -> None:
    """Its file sink writes what its JsonConverter made of each event."""
    target = tmp_path / "rows"
    converter = "org.apache.kafka.connect.json.JsonConverter"
    worker = {
        "bootstrap.servers": feeds.cluster.bootstrap,
        "key.converter": converter,
        "value.converter": converter,
        "key.converter.schemas.enable": "true",
        "value.converter.schemas.enable": "true",
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "consumer.isolation.level": "read_committed",
        "listeners": "http://127.0.0.1:0",
    }
    sink = {
        "name": "file",
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "topics": feeds.topic(2),
        "file": str(target),
        "tasks.max": "1",
        "errors.tolerance": "none",
    }
    files = [_properties(tmp_path / "worker", worker), _properties(tmp_path / "sink", sink)]
    assert CONNECT.is_dir(), "no Kafka Connect is here: run `make feed-tools`"
    wanted = feeds.records(2)
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(java(os.environ), "-Xmx300m", "-XX:TieredStopAtLevel=1"),
                *("-cp", f"{CONNECT}/*", "org.apache.kafka.connect.cli.ConnectStandalone"),
                *map(str, files),
            ],
            stdout=output,
            stderr=output,
        )
        try:
            _wait(lambda: _lines(target) >= wanted, process, log)
        finally:
            process.kill()
            process.wait()
    table: dict[int, int] = {}
    for line in target.read_text().splitlines():
        if line == "null":
            continue  # a tombstone
        event = EVENT.match(line)
        assert event is not None, line
        if event["op"] == "d":
            del table[int(event["old"])]
        else:
            table[int(event["id"])] = int(event["n"])
    assert table == feeds.rows(2)


@pytest.mark.parametrize("table_id", [1, 2])
def test_an_intake_reads_what_a_feed_has_told(
    feeds: Published, tmp_path: Path, table_id: int
) -> None:
    """Requests of its own Avro, by the real registry, and of its JSON with schemas."""
    kafka, topics = feeds.cluster.kafka_settings, Topics(f"taken{table_id}")
    ensure_topics(kafka, topics.all_static())
    stage = Stage(kafka, topics)
    columns = (Column(1, "id", Type("bigint"), False), Column(2, "n", Type("bigint")))
    stage.version(Descriptor(1, "copied", 1, columns, (1,)), 1)
    stage.flush()
    stage.close()
    environ = {
        **feeds.cluster.addresses("intake"),
        "LEASEHOLD_DATABASE": topics.database,
        "LEASEHOLD_REGISTRY": feeds.registry,
    }
    wanted = feeds.rows(table_id)
    with intake(environ, tmp_path, routes=f"{feeds.topic(table_id)}=copied") as process:
        _wait(lambda: _taken(kafka, topics) == wanted, process, tmp_path / "intake.log")
    assert not published(kafka, topics.dead_letter.name)


def _taken(kafka: KafkaSettings, topics: Topics) -> dict[int, int]:
    """The table that a master comes to by the requests that there are."""
    table: dict[int, int] = {}
    for record in published(kafka, topics.requests.name):
        request = MessagePackCodec().decode_request(record.content_type, record.value or b"")
        for each in request.operations:
            assert isinstance(each.key, Mapping)
            if each.kind is OperationKind.DELETE:
                table.pop(each.key["id"], None)
            else:
                table[each.key["id"]] = each.values["n"]
    return table


def _properties(path: Path, values: dict[str, str]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return path


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _wait(done: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + DEADLINE_S
    while not done():
        assert process.poll() is None, log.read_text()[-4000:]
        assert time.monotonic() < give_up, log.read_text()[-4000:]
        time.sleep(LOOK_AGAIN_S)
