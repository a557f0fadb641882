"""A feed in Avro beside the load that it tells of:
`python -m tests.bench.feed_beside [ROWS_PER_S [SECONDS]]`.

A log of so many rows a second is appended at a steady pace, the changefeed is a process as in a
cluster (compiled where there is a build), and a consumer of committed records reads the feed. Lines
are "phase rows/s lag_p50_ms lag_p99_ms": how long after its record of the log was appended, as it
was due, an event came to the consumer. Processor time by process, in µs a row, stands on stderr.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

from infra.local_cluster import ROOT, LocalCluster
from infra.ports import Ports
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.adapters.kafka.writer import log_writer
from leasehold.events.debezium.definition import Definition, Encoding
from leasehold.model.records.log import DescriptorWrite
from leasehold.model.topics import Topics
from tests.bench.cpu import spent_s, tree_times
from tests.bench.feed_formats import COMMIT_ROWS, RECORD_COMMITS, TABLE, order_feed, write_rows
from tests.bench.figure import percentile
from tests.bench.stand import BenchFailure, say
from tests.support.changefeed.made_log import MadeLog
from tests.support.registry.double import registry_double

ROWS_PER_S: Final = 30_000
SECONDS: Final = 10
WARM_UP_S: Final = 3
RECORD_ROWS: Final = COMMIT_ROWS * RECORD_COMMITS
READ_MAX: Final = 2_000
DEADLINE_S: Final = 120.0
LOOK_AGAIN_S: Final = 0.1
APART: Final = 1_000_000_000
"""The first key of rows that are not measured."""
NAME: Final = "public.table_1"


class Feed:
    """A running changefeed with one feed, and its log as it is made."""

    def __init__(self, cluster: LocalCluster, topics: Topics, log: MadeLog, pid: int) -> None:
        self.cluster, self.topics, self.log = cluster, topics, log
        kafka = cluster.processes.find("kafka")
        assert kafka is not None
        self.pids = {"kafka": kafka.identity.pid, "changefeed": pid}

    def run(
        self, rows_per_s: int, seconds: int, *, changes: bool, first_key: int = 0
    ) -> list[float]:
        """Append rows at a pace, and return the lag of some events in ms. Raises BenchFailure."""
        first = len(self.log.records)
        write_rows(self.log, rows_per_s * seconds, changes=changes, first_key=first_key)
        data = [record for record, _ in self.log.records[first:]]
        every_s = RECORD_ROWS / rows_per_s
        consumer = self._consumer()
        begin_s = time.monotonic() + 1.0
        writing = Thread(target=self._append, args=(data, begin_s, every_s))
        writing.start()
        try:
            return list(_lags(consumer, len(data), begin_s, every_s))
        finally:
            writing.join()
            consumer.close()

    def _append(self, data: list[bytes], begin_s: float, every_s: float) -> None:
        writer = log_writer(self.cluster.kafka_settings, "bench-log", 30_000)
        for number, each in enumerate(data):
            time.sleep(max(0.0, begin_s + number * every_s - time.monotonic()))
            writer.send(self.topics.log.name, 0, None, each)
            writer.deliveries(0.0)
        assert writer.close(30) == 0

    def _consumer(self) -> Consumer:
        """Return one that stands at the feed's end."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": "bench",
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "enable.auto.commit": False,
            }
        )
        feed = TopicPartition(f"{self.topics.database}.feed.{NAME}", 0)
        _, feed.offset = consumer.get_watermark_offsets(feed, DEADLINE_S)
        consumer.assign([feed])
        return consumer


def _lags(consumer: Consumer, records: int, begin_s: float, every_s: float) -> Iterator[float]:
    """Yield the lag of the last event of each record."""
    count, give_up = 0, begin_s + records * every_s + DEADLINE_S
    while count < records * RECORD_ROWS:
        found = consumer.consume(READ_MAX, LOOK_AGAIN_S)
        now_s = time.monotonic()
        if now_s > give_up:
            raise BenchFailure(f"{count} of {records * RECORD_ROWS} events came in time")
        before, count = count // RECORD_ROWS, count + sum(not each.error() for each in found)
        for number in range(before, count // RECORD_ROWS):
            yield (now_s - begin_s - number * every_s) * 1e3


@contextmanager
def running_feed() -> Iterator[Feed]:
    """A broker, a registry, and a changefeed with a feed of an empty table."""
    with (
        tempfile.TemporaryDirectory(prefix="leasehold-beside-") as folder,
        LocalCluster(Path(folder), Ports.free(), services=()) as cluster,
        registry_double() as registry,
    ):
        cluster.start_kafka()
        topics = Topics(cluster.cluster_settings.database)
        log = MadeLog()
        log.claim()
        log.decide((log.commit(catalog=(DescriptorWrite(1, 1, TABLE.to_wire()),)),))
        kafka = cluster.kafka_settings
        ensure_topics(kafka, topics.all_static())
        writer = log_writer(kafka, "bench-log", 30_000)
        for data, _ in log.records:
            writer.send(topics.log.name, 0, None, data)
        assert writer.close(30) == 0
        environment = {**cluster.env("changefeed"), "LEASEHOLD_REGISTRY": registry.url}
        say(f"changefeed: PYTHONPATH {environment.get('PYTHONPATH', 'as it is')}")
        with _process(environment, Path(folder) / "changefeed.log") as process:
            said = Path(folder) / "changefeed.log"
            _wait_for(b"1", topics.versions.name, kafka, process, said)
            order_feed(kafka, topics, Definition(table=NAME, encoding=Encoding.AVRO))
            _wait_for(b"feed/" + NAME.encode(), topics.changefeed.name, kafka, process, said)
            yield Feed(cluster, topics, log, process.pid)


@contextmanager
def _process(environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "services.changefeed.main"]
    with log.open("ab") as output:
        process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def _wait_for(
    key: bytes, topic: str, kafka: Any, process: subprocess.Popen[bytes], log: Path
) -> None:
    """Wait until the changefeed has published a record under `key`. Raises BenchFailure."""
    give_up = time.monotonic() + DEADLINE_S
    while key not in read_compacted(kafka, "bench", topic):
        if process.poll() is not None or time.monotonic() > give_up:
            raise BenchFailure(f"{topic} has no {key!r}: {log.read_text()[-2000:]}")
        time.sleep(LOOK_AGAIN_S)


def main(rows_per_s: int, seconds: int) -> None:
    with running_feed() as feed:
        warm_up = rows_per_s // 3 // RECORD_ROWS * RECORD_ROWS
        feed.run(warm_up, WARM_UP_S, changes=False, first_key=APART)
        for phase, changes in (("insert", False), ("update", True)):
            before = tree_times(feed.pids.values())
            own_s = time.process_time()
            lags = feed.run(rows_per_s, seconds, changes=changes)
            after, rows = tree_times(feed.pids.values()), rows_per_s * seconds
            spent = {name: spent_s(before[pid], after[pid]) for name, pid in feed.pids.items()}
            spent["this"] = time.process_time() - own_s
            say(", ".join(f"{name} {each / rows * 1e6:.1f}" for name, each in spent.items()))
            p50, p99 = (percentile(lags, share) for share in (0.5, 0.99))
            print(f"{phase} {rows_per_s} {p50:.0f} {p99:.0f}", flush=True)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*(given + [ROWS_PER_S, SECONDS][len(given) :]))
