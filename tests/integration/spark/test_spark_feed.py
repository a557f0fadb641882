"""Goal: a stream processor that knows nothing of Leasehold comes to the table by a feed.

Method: a synthetic log, published by a changefeed; Spark's Kafka source and `from_json` read the
feed as a stream.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from infra.local_cluster import LocalCluster
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.kafka.writer import TopicWriter
from leasehold.events.debezium.definition import CreateFeed, Definition, encode_order
from leasehold.model.records.log import TableTruncated
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings
from tests.support.changefeed.changefeed_process import append, changefeed, has_stored, wait_until
from tests.support.changefeed.made_log import MadeLog
from tests.support.cluster.secure_suite import access_of

DEADLINE_S = 240


@pytest.mark.long("a Spark of its own for half a minute; test_feeds reads every change of a feed")
def test_spark_reads_a_feed_as_a_stream(
    kafka: KafkaSettings, servers: LocalCluster, database: str, topics: Topics, tmp_path: Path
) -> None:
    log = MadeLog(8)
    log.claim()
    log.create_table(1)
    log.write_rows(1, commits=30, keys=20)
    log.decide((log.commit(catalog=(TableTruncated(1),)),))
    log.forget_rows()
    append(kafka, topics, log)
    ensure_topics(kafka, [topics.feeds])
    writer = TopicWriter(kafka, "test-orders")
    made = CreateFeed("1", Definition(table="public.table_1", schemas=True))
    writer.send(topics.feeds.name, 0, b"", encode_order(made))
    assert writer.close(10) == 0
    expected: dict[int, int] = {}
    with changefeed(access_of(servers, "changefeed", database), topics, tmp_path) as process:
        wait_until(partial(has_stored, kafka, topics, log), process, tmp_path)
        more = len(log.records)
        for _ in range(40):
            log.write_rows(1, commits=4, keys=20)
        append(kafka, topics, log, more)
        wait_until(partial(has_stored, kafka, topics, log), process, tmp_path)
    for _, (key,), lsn, image in log.rows:
        expected.pop(key, None)
        if image is not None and lsn > 31:
            expected[key] = image[2]
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "tests.support.cluster.spark_feed_reader", str(tmp_path)),
            *(f"{database}.feed.public.table_1", "struct<id:bigint,n:bigint>"),
        ],
        env={
            **os.environ,
            **access_of(servers, "consumer", database),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    *rows, progress = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {row["id"]: row["n"] for row in rows} == expected
    assert progress["batches"] > 1
