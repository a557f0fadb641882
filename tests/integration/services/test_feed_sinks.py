"""Goal: stream processors that are not ours come to the table by a feed: Kafka Connect with
Debezium's JDBC sink writes it into a PostgreSQL, and Flink SQL reads it as a table, in JSON and in
Avro by a schema registry.

Method: a synthetic log on a broker of its own, published by a changefeed, with a table of many
types that gets a column on the way; what is in the real PostgreSQL at the end are the log's rows.
The registry is a real one, too.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psycopg
import pytest

from infra.java import java
from infra.local_cluster import LocalCluster
from infra.ports import Ports
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.events.debezium.column_types import Decimals
from leasehold.events.debezium.definition import CreateFeed, Definition, Encoding, encode_order
from leasehold.model.ids import genid
from leasehold.model.records.log import ChangeKind, DescriptorWrite, RowChange
from leasehold.model.topics import Topics
from leasehold.values.storage import to_storage
from leasehold.values.types import Type
from tests.support.changefeed.changefeed_process import (
    append,
    changefeed,
    has_stored,
    published,
    wait_until,
)
from tests.support.changefeed.made_log import MadeLog
from tests.support.cluster.system_cluster import until
from tests.support.postgres.postgres_server import postgres_server
from tests.support.registry.apicurio import apicurio

pytestmark = pytest.mark.long("Kafka Connect, Flink and a PostgreSQL; `make feed-tools`")
ROOT: Final = Path(__file__).resolve().parents[3]
TOOLS: Final = ROOT / ".leasehold"
FLINK: Final = ROOT / "tests" / "support" / "flink" / "FeedTable.java"
TOPICS: Final = Topics("sinks")
DEADLINE_S: Final = 280
TYPED, PLAIN, WITH_SCHEMAS, AVRO = 1, 2, 3, 4
FEEDS: Final = 4
KEYS: Final = 40
COLUMNS: Final = (
    Column(1, "id", Type("bigint"), False),
    Column(2, "name", Type("text")),
    Column(3, "price", Type("numeric", precision=10, scale=2)),
    Column(4, "day", Type("date")),
    Column(5, "at", Type("timestamp")),
    Column(6, "seen", Type("timestamptz")),
    Column(7, "ok", Type("boolean")),
    Column(8, "code", Type("uuid")),
    Column(9, "ratio", Type("double precision")),
    Column(10, "data", Type("bytea")),
    Column(11, "body", Type("jsonb")),
    Column(12, "small", Type("integer")),
)
LATER: Final = Column(13, "gate", Type("varchar", 8))


class TypedTable:
    """Rows of many types, and the changes of a log that lead to them."""

    def __init__(self, log: MadeLog) -> None:
        self._log = log
        self._random = random.Random(5)
        self.columns: tuple[Column, ...] = COLUMNS
        self.rows: dict[int, dict[str, Any]] = {}
        self._genids: dict[int, int] = {}
        self.version = 0
        self.publish(COLUMNS)

    def publish(self, columns: tuple[Column, ...]) -> None:
        self.columns, self.version = columns, self.version + 1
        for row in self.rows.values():
            for column in columns:
                row.setdefault(column.name, None)
        table = Descriptor(TYPED, "table_1", self.version, columns, (1,))
        write = DescriptorWrite(TYPED, self.version, table.to_wire())
        self._log.decide((self._log.commit(catalog=(write,)),))

    def write(self, count: int) -> None:
        """Make so many commits of one change each."""
        keys = [self._random.randrange(KEYS) for _ in range(count)]
        self._log.decide(tuple([self._log.commit((self._change(key),)) for key in keys]))

    def _change(self, key: int) -> RowChange:
        new, before = genid(self._log.lsn + 1, 0), self._genids.get(key)
        if before is not None and self._random.random() < 0.25:
            del self._genids[key], self.rows[key]
            return RowChange(
                ChangeKind.DELETE, TYPED, self.version, (key,), None, {0: before}, (0,)
            )
        row = {column.name: self._value(column, key) for column in self.columns}
        self.rows[key] = row
        self._genids[key] = new
        image = {
            column.element_id: to_storage(column.type)(row[column.name])
            for column in self.columns
            if row[column.name] is not None
        }
        kind = ChangeKind.INSERT if before is None else ChangeKind.UPDATE
        genids = {} if before is None else {0: before}
        return RowChange(kind, TYPED, self.version, (key,), image, genids, (0,))

    def _value(self, column: Column, key: int) -> Any:
        drawn = self._random
        if column.element_id == 1:
            return key
        if drawn.random() < 0.2:
            return None
        moment = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(microseconds=drawn.randrange(10**15))
        match column.type.name:
            case "text":
                return drawn.choice(("", "naïve ﬁsh", "a\nb", "x" * 300))
            case "varchar":
                return drawn.choice(("A1", "B22"))
            case "numeric":
                return Decimal(drawn.randrange(-(10**9), 10**9)) / 100
            case "date":
                return date(1900, 1, 1) + timedelta(days=drawn.randrange(60_000))
            case "timestamp":
                return moment.replace(tzinfo=None)
            case "timestamptz":
                return moment
            case "boolean":
                return drawn.random() < 0.5
            case "uuid":
                return UUID(int=drawn.getrandbits(128))
            case "double precision":
                return drawn.random() * 1e6
            case "bytea":
                return drawn.randbytes(9)
            case "jsonb":
                return {"n": drawn.randrange(9), "words": ["a", None]}
        return drawn.randrange(-(2**31), 2**31)


class Published:
    def __init__(
        self, cluster: LocalCluster, registry: str, table: TypedTable, log: MadeLog
    ) -> None:
        self.cluster = cluster
        self.registry = registry
        self.typed = table
        self._log = log

    def rows(self, wanted: int) -> dict[int, int]:
        rows: dict[int, int] = {}
        for table_id, (key,), _, image in self._log.rows:
            if table_id == wanted:
                rows.pop(key, None)
                if image is not None:
                    rows[key] = image[2]
        return rows


def topic(table_id: int) -> str:
    return f"sinks.feed.public.table_{table_id}"


@pytest.fixture(scope="module")
def feeds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    folder = tmp_path_factory.mktemp("sinks")
    with (
        apicurio(folder) as registry,
        LocalCluster(folder / "cluster", Ports.free(), services=()) as cluster,
    ):
        cluster.start_kafka()
        kafka = cluster.kafka_settings
        ensure_topics(kafka, TOPICS.all_static())
        ensure_topics(kafka, [TOPICS.feeds])
        log = MadeLog(11)
        log.claim()
        typed = TypedTable(log)
        for table_id in (PLAIN, WITH_SCHEMAS, AVRO):
            log.create_table(table_id)
            log.write_rows(table_id, commits=30, keys=20)
        typed.write(100)
        append(kafka, TOPICS, log)
        writer = TopicWriter(kafka, "test-orders")
        orders = (
            Definition(table="public.table_1", schemas=True, decimals=Decimals.PRECISE),
            Definition(table="public.table_2"),
            Definition(table="public.table_3", schemas=True),
            Definition(table="public.table_4", encoding=Encoding.AVRO),
        )
        for number, definition in enumerate(orders):
            order = encode_order(CreateFeed(str(number), definition))
            writer.send(TOPICS.feeds.name, 0, b"", order)
        assert writer.close(30) == 0
        access = {
            **cluster.addresses("changefeed"),
            "LEASEHOLD_DATABASE": TOPICS.database,
            "LEASEHOLD_REGISTRY": registry,
        }
        with changefeed(access, TOPICS, folder) as process:
            begun = partial(_are_begun, kafka)
            wait_until(begun, process, folder)
            more = len(log.records)
            for table_id in (PLAIN, WITH_SCHEMAS, AVRO):
                log.write_rows(table_id, commits=60, keys=20)
            typed.write(100)
            typed.publish((*COLUMNS, LATER))
            typed.write(100)
            append(kafka, TOPICS, log, more)
            wait_until(partial(has_stored, kafka, TOPICS, log), process, folder)
        yield Published(cluster, registry, typed, log)


def _are_begun(kafka: Any) -> bool:
    stored = {
        record.key: json.loads(record.value or b"{}")
        for record in published(kafka, TOPICS.changefeed.name)
        if (record.key or b"").startswith(b"feed/")
    }
    return len(stored) == FEEDS and all(state["snapshot"] is None for state in stored.values())


def test_debezium_s_jdbc_sink_writes_a_postgresql(feeds: Published, tmp_path: Path) -> None:
    """Inserts, updates, deletes and a column that comes, of many types, by Kafka Connect."""
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
    with postgres_server() as port:
        sink = {
            "name": "postgresql",
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "topics": topic(TYPED),
            "tasks.max": "1",
            "errors.tolerance": "none",
            "connection.url": f"jdbc:postgresql://127.0.0.1:{port}/postgres",
            "connection.username": "postgres",
            "connection.password": "",
            "connection.pool.min_size": "1",
            "insert.mode": "upsert",
            "delete.enabled": "true",
            "primary.key.mode": "record_key",
            "schema.evolution": "basic",
            "collection.name.format": "seats",
        }
        files = [_properties(tmp_path / "worker", worker), _properties(tmp_path / "sink", sink)]
        with psycopg.connect(f"host=127.0.0.1 port={port} user=postgres", autocommit=True) as there:
            read = partial(_rows, there)
            with _connect(files, tmp_path / "log") as process:
                _wait(lambda: read() == feeds.typed.rows, process, tmp_path / "log", read)
            kinds: dict[str, str] = dict(
                there.execute(
                    "SELECT column_name, data_type FROM information_schema.columns"
                    " WHERE table_name = 'seats'"
                ).fetchall()
            )
    assert kinds["price"] == "numeric"
    assert kinds["day"] == "date"
    assert kinds["seen"] == "timestamp with time zone"
    assert kinds["body"] in ("json", "jsonb")
    assert kinds["gate"] is not None


def _rows(there: psycopg.Connection[Any]) -> dict[int, dict[str, Any]]:
    """What the sink has written so far."""
    try:
        cursor = there.execute("SELECT * FROM seats", prepare=False)
    except psycopg.errors.UndefinedTable:
        return {}
    names = [column.name for column in cursor.description or ()]
    found = [dict(zip(names, row, strict=True)) for row in cursor]
    return {row["id"]: row for row in found}


def _connect(files: list[Path], log: Path) -> Any:
    for folder in ("connect", "debezium_sink"):
        assert (TOOLS / folder).is_dir(), f"no {folder} is here: run `make feed-tools`"
    return _Running(
        [
            *(java(os.environ), "-Xmx400m", "-XX:TieredStopAtLevel=1"),
            *("-cp", f"{TOOLS}/connect/*:{TOOLS}/debezium_sink/*"),
            "org.apache.kafka.connect.cli.ConnectStandalone",
            *map(str, files),
        ],
        log,
    )


class _Running:
    """A process that is ended at the end of the block."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._command, self._log = command, log

    def __enter__(self) -> subprocess.Popen[bytes]:
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=output)
        return self._process

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


@pytest.mark.parametrize("schemas", [False, True])
def test_flink_sql_reads_a_feed_as_a_table(feeds: Published, schemas: bool) -> None:
    """Flink's own Kafka connector and debezium-json format, in a cluster of one process."""
    options = {"format": "debezium-json", "debezium-json.schema-include": str(schemas).lower()}
    _check_flink(feeds, WITH_SCHEMAS if schemas else PLAIN, options)


def test_flink_sql_reads_a_feed_in_avro(feeds: Published) -> None:
    """Flink's debezium-avro-confluent format: Confluent's client finds the writer's schema by the
    number in each message, and Avro brings it to the columns that the table names."""
    options = {
        "format": "debezium-avro-confluent",
        "debezium-avro-confluent.url": feeds.registry,
    }
    _check_flink(feeds, AVRO, options)


def _check_flink(feeds: Published, table_id: int, options: Mapping[str, str]) -> None:
    """Have Flink SQL read a feed by a format's options, and compare with the log's rows."""
    assert (TOOLS / "flink").is_dir(), "no Flink is here: run `make feed-tools`"
    opened = (
        *("java.base/java.util", "java.base/java.lang", "java.base/java.time"),
        *("java.base/java.nio", "java.base/java.lang.invoke"),
    )
    program = [java(os.environ), "-Xmx600m", "-XX:TieredStopAtLevel=1"]
    program += [f"--add-opens={name}=ALL-UNNAMED" for name in opened]
    program += ["-cp", f"{TOOLS}/flink/*", str(FLINK)]
    words = [feeds.cluster.bootstrap, topic(table_id), *map("=".join, options.items())]
    ended = subprocess.run(
        [*program, *words], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert ended.returncode == 0, (ended.stderr[-4000:], ended.stdout[-2000:])
    *told, counted = [json.loads(line) for line in ended.stdout.splitlines() if line[:1] == "{"]
    wanted = feeds.rows(table_id)
    assert {row["id"]: row["n"] for row in told} == wanted
    assert counted == {"count": len(wanted), "sum": sum(wanted.values())}


def _properties(path: Path, values: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return path


def _wait(
    done: Callable[[], bool],
    process: subprocess.Popen[bytes],
    log: Path,
    seen: Callable[[], object],
) -> None:
    """Wait until `done`, as long as the process runs. `seen`: what to tell where that is not."""

    def is_done() -> bool:
        assert process.poll() is None, log.read_text()[-4000:]
        return done()

    until(is_done, "the sink", DEADLINE_S, lambda: f"{seen()}\n{log.read_text()[-4000:]}")
