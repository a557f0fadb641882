"""Spark reads a feed as a stream, in a process of its own, with nothing of Leasehold's but the
settings that start a session here: `python -m tests.support.cluster.spark_feed_reader FOLDER TOPIC
ROW`.

ROW is the row's type in SQL. What is there by now is read in micro-batches; of each key the newest
event is merged into a table. Standard output has the table's rows as JSON lines.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from infra.local_cluster import SPARK_JARS
from leasehold.settings.environment import KafkaSettings, from_environment
from spark_streaming.session import start_session
from spark_streaming.spark_settings import SparkSettings

RECORDS_OF_A_BATCH = 40


def main(folder: Path, topic: str, row: str) -> None:
    session = start_session(SparkSettings(jars=SPARK_JARS), folder)
    table: dict[str, Any] = {}
    payload = f"before {row}, after {row}, op string, source struct<lsn:bigint,sequence:string>"
    events = (
        session.readStream.format("kafka")
        .options(**from_environment(KafkaSettings, os.environ).spark_options())
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", RECORDS_OF_A_BATCH)
        .load()
        .where("value is not null")
        .selectExpr(
            "cast(key as string) key",
            "partition",
            "offset",
            f"from_json(cast(value as string), 'payload struct<{payload}>').payload e",
        )
    )

    def merge(batch: Any, _number: int) -> None:
        for event in batch.orderBy("partition", "offset").collect():
            if event.e.op == "t":
                table.clear()
            elif event.e.op == "d":
                table.pop(event.key)
            else:
                table[event.key] = event.e.after.asDict()

    query = (
        events.writeStream.foreachBatch(merge)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = len(query.recentProgress)
    for each in table.values():
        print(json.dumps(each))
    print(json.dumps({"batches": batches}), flush=True)
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
