"""What a feed costs the changefeed in each format:
`python -m tests.bench.feed_formats [ROWS [FORMAT…]]`.

A log that is there is published by a changefeed in this process, on a broker of its own, first with
new rows, then with each of them changed. Lines are "format phase rows/s µs": the rate by the clock,
and the processor time of the process for a row, its threads for sending included. "none" has no
feed.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from infra.local_cluster import LocalCluster
from infra.ports import Ports
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.changefeed.process import GARBAGE_THRESHOLDS
from leasehold.changefeed.publisher import Publisher
from leasehold.events.debezium.definition import CreateFeed, Definition, Encoding, encode_order
from leasehold.model.ids import genid
from leasehold.model.records.log import ChangeKind, Commit, DescriptorWrite, RowChange
from leasehold.model.topics import Topics
from leasehold.settings.changefeed import ChangefeedSettings
from leasehold.settings.environment import KafkaSettings
from leasehold.settings.schema_registry import SchemaRegistrySettings
from leasehold.values.types import Type
from tests.support.changefeed.changefeed_process import append
from tests.support.changefeed.made_log import MadeLog
from tests.support.registry.double import registry_double

ROWS: Final = 60_000
COMMIT_ROWS: Final = 100
RECORD_COMMITS: Final = 10
COLUMNS: Final = (
    *(("id", "bigint"), ("origin", "text"), ("dest", "text"), ("gate", "text")),
    *(("delay", "integer"), ("distance", "double precision"), ("at", "timestamptz")),
    ("note", "text"),
)
TABLE: Final = Descriptor(
    1,
    "table_1",
    1,
    tuple(
        Column(number, name, Type(kind), nullable=name != "id")
        for number, (name, kind) in enumerate(COLUMNS, 1)
    ),
    (1,),
)
ROW: Final = {2: "JFK", 3: "SFO", 4: "B2", 6: 2586.0}
FIRST_US: Final = 1_790_000_000_123_456
BETWEEN_US: Final = 1_003_000
FORMATS: Final[dict[str, dict[str, Any] | None]] = {
    "none": None,
    "json": {},
    "json-schemas": {"schemas": True},
    "avro": {"encoding": Encoding.AVRO},
    "protobuf": {"encoding": Encoding.PROTOBUF},
}


def main(rows: int, formats: Sequence[str] = tuple(FORMATS)) -> None:
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    with (
        tempfile.TemporaryDirectory(prefix="leasehold-formats-") as folder,
        LocalCluster(Path(folder), Ports.free(), services=()) as cluster,
        registry_double() as registry,
    ):
        cluster.start_kafka()
        settings = SchemaRegistrySettings(urls=registry.url)
        for name in formats:
            fields = FORMATS[name]
            for phase, rate, spent_us in measure(
                cluster.kafka_settings, Topics(name), fields, settings, rows
            ):
                print(f"{name} {phase} {rate:.0f} {spent_us:.1f}", flush=True)


def measure(
    kafka: KafkaSettings,
    topics: Topics,
    fields: dict[str, Any] | None,
    registry: SchemaRegistrySettings,
    rows: int,
) -> Iterator[tuple[str, float, float]]:
    """Yield phase, rows per second by the clock, and µs of processor time for a row."""
    ensure_topics(kafka, topics.all_static())
    ensure_topics(kafka, [topics.feeds])
    log = MadeLog()
    log.claim()
    log.decide((log.commit(catalog=(DescriptorWrite(1, 1, TABLE.to_wire()),)),))
    append(kafka, topics, log)
    ends: list[Callable[[], bool]] = []  # none until there is a publisher to ask
    with closing(
        Publisher(kafka, topics, ChangefeedSettings(), lambda: any(end() for end in ends), registry)
    ) as publisher:
        publisher.open()
        is_fed = False

        def is_published() -> bool:
            feeds = publisher._table_feeds._states
            return publisher._stored.offset >= len(log.records) and (bool(feeds) or not is_fed)

        ends.append(is_published)
        publisher.run()
        if fields is not None:  # not before the table is published: there would be none to feed
            order_feed(kafka, topics, Definition(table="public.table_1", **fields))
            is_fed = True
            publisher.run()
        for phase in ("insert", "update"):
            first = len(log.records)
            write_rows(log, rows, changes=phase == "update")
            append(kafka, topics, log, first)
            begin_s, begin_cpu_s = time.monotonic(), time.process_time()
            publisher.run()
            took_s = time.monotonic() - begin_s
            spent_s = time.process_time() - begin_cpu_s
            yield phase, rows / took_s, spent_s / rows * 1e6
        assert all(feed.is_on for feed in publisher._table_feeds._states.values())


def order_feed(kafka: KafkaSettings, topics: Topics, definition: Definition) -> None:
    """Ask the changefeed for a feed of a table that it has published."""
    writer = TopicWriter(kafka, "bench-orders")
    writer.send(topics.feeds.name, 0, b"", encode_order(CreateFeed("1", definition)))
    assert writer.close(30) == 0


def write_rows(log: MadeLog, rows: int, *, changes: bool, first_key: int = 0) -> None:
    """Append so many new rows, or as many changes of these."""
    for begin in range(first_key, first_key + rows, COMMIT_ROWS * RECORD_COMMITS):
        commits: list[Commit] = []
        for number in range(RECORD_COMMITS):
            first = begin + number * COMMIT_ROWS
            keys = range(first, first + COMMIT_ROWS)
            commits.append(log.commit(tuple(_change(key, changes) for key in keys)))
        log.decide(tuple(commits))


def _change(key: int, changes: bool) -> RowChange:
    # Each row with a time and words of its own, as rows of the world have them.
    at, note = FIRST_US + key * BETWEEN_US, f"{key:022d}"
    image = {**ROW, 1: key, 5: 13 if changes else 12, 7: at, 8: note}
    kind = ChangeKind.UPDATE if changes else ChangeKind.INSERT
    before = {0: genid(1, 0)} if changes else {}
    return RowChange(kind, 1, 1, (key,), image, before, (0,))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS, sys.argv[2:] or tuple(FORMATS))
