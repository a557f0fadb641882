"""Follows one table with confluent-kafka: `python -m services.examples.plain_follower TABLE`.

Prints a JSON object per version and per row that changed, each row under the version that its image
names, while the table is altered. Reads the whole topics at every start and commits no offsets.
Ends with 1 and one line where Kafka is gone: start it again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as KafkaMessage

from services.examples.decoding import RowRecord, VersionBook, WaitingRows

POLL_S: Final = 0.5
QUIET_S: Final = 10.0
"""After so long without news the broker is asked. A client of librdkafka up to 2.16 that has lost
its last broker in a restart stays without one and says nothing (its issue 5301)."""
ASK_TIMEOUT_S: Final = 20.0


class Follower:
    def __init__(self, bootstrap: str, database: str, table: str) -> None:
        self._table = table
        self._history = f"{database}.versions-history"
        self._rows = f"{database}.rows."
        self._book = VersionBook()
        self._followed: int | None = None
        self._caught_up = False
        self._waiting: dict[int, WaitingRows] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "plain-follower",  # librdkafka wants one; no offset is ever committed
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )

    def run(self) -> None:
        """Follow the table until the process is told to end. Raises KafkaException where no broker
        answers."""
        self._consumer.assign([TopicPartition(self._history, 0, OFFSET_BEGINNING)])
        heard = time.monotonic()
        while True:
            message = self._consumer.poll(POLL_S)
            if message is not None:
                self._take(message)
            elif time.monotonic() < heard + QUIET_S:
                continue
            else:
                self._consumer.list_topics(self._history, timeout=ASK_TIMEOUT_S)
            heard = time.monotonic()

    def close(self) -> None:
        self._consumer.close()

    def _take(self, message: KafkaMessage) -> None:
        error = message.error()
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 its name for it
                raise KafkaException(error)
            self._caught_up |= message.topic() == self._history
            self._follow_rows()
        elif message.topic() == self._history:
            self._take_version(message)
        else:
            self._take_row(message)

    def _take_version(self, message: KafkaMessage) -> None:
        event = self._book.learn(message.value())
        if event is not None and self._table in (event["table"], event["former_name"]):
            changed = event["diff"]["words"] if event["diff"] else []
            tell({"table": event["table"], "version": event["version"], "changed": changed})
        self._follow_rows()
        for partition, rows in self._waiting.items():
            for row in rows.take():
                tell(row)
            if not rows:
                self._consumer.resume([self._partition(partition)])

    def _take_row(self, message: KafkaMessage) -> None:
        key, partition = message.key(), message.partition()
        assert key is not None
        assert partition is not None
        if message.topic() != self._partition(partition).topic:
            return  # of a table that had the name before
        rows = self._waiting[partition]
        for row in rows.take(RowRecord(key, message.value())):
            tell(row)
        if rows:
            # Its version is on its way on another topic: nothing more is fetched till it is here.
            self._consumer.pause([self._partition(partition)])

    def _follow_rows(self) -> None:
        """Follow the table that has the name now, once all versions are known.

        Rows are read from the beginning, since the topic is compacted: it begins with what is
        there. Another table takes the name when the primary key changes, and its topic has every
        row.
        """
        table_id = self._book.table_id(self._table)
        if not self._caught_up or table_id in (None, self._followed):
            return
        if self._followed is not None:
            self._consumer.incremental_unassign([self._partition(p) for p in self._waiting])
            self._waiting.clear()
        self._followed = table_id
        name = f"{self._rows}{table_id}"
        for partition in self._consumer.list_topics(name, timeout=10).topics[name].partitions:
            self._waiting[partition] = WaitingRows(self._book, table_id)
            self._consumer.incremental_assign([TopicPartition(name, partition, OFFSET_BEGINNING)])

    def _partition(self, partition: int) -> TopicPartition:
        return TopicPartition(f"{self._rows}{self._followed}", partition)


def tell(what: dict[str, Any]) -> None:
    print(json.dumps(what, ensure_ascii=False), flush=True)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m services.examples.plain_follower TABLE", file=sys.stderr)
        return 2
    bootstrap = os.environ.get("LEASEHOLD_KAFKA", "127.0.0.1:19092")
    follower = Follower(bootstrap, os.environ.get("LEASEHOLD_DATABASE", "demo"), sys.argv[1])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        follower.run()
    except KeyboardInterrupt:
        return 0
    except KafkaException as error:
        print(f"Kafka at {bootstrap}: {error.args[0].str()}; start this again", file=sys.stderr)
        return 1
    finally:
        follower.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
