"""Follows one table with Faust: `python -m services.examples.faust_follower TABLE`.

Prints the same as plain_follower.py. Instances share the table's partitions, go on where their
group has committed, and each of them hears of every version. When the primary key changes, another
table takes the name, whose topic tells of every row: that one is an application of its own, and the
process starts over with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from threading import Event
from typing import Any, Final

import faust
from aiokafka import AIOKafkaConsumer, TopicPartition

from services.examples.decoding import Event as VersionEvent
from services.examples.decoding import RowRecord, VersionBook

HISTORY_END_WAIT_S: Final = 30.0


class Versions:
    """Every version of every table. An instance of a Faust application gets some partitions of a
    topic, and this topic has one: it is read beside the group, by each of them."""

    def __init__(self, bootstrap: str, database: str) -> None:
        self._bootstrap = bootstrap
        self._history = TopicPartition(f"{database}.versions-history", 0)
        self._learned = asyncio.Condition()
        self.book = VersionBook()

    async def catch_up(self) -> None:
        """Learn all that the topic has now."""
        async for _event in self._events(to_the_end=True):
            pass

    async def follow(self) -> AsyncIterator[VersionEvent]:
        """Yield all events, for ever, from the oldest kept one on."""
        async for event in self._events(to_the_end=False):
            async with self._learned:
                self._learned.notify_all()
            yield event

    async def decode(self, table_id: int, record: RowRecord) -> dict[str, Any]:
        """Waits for the version that the record's image names."""
        async with self._learned:
            while (row := self.book.decode(table_id, record)) is None:
                await self._learned.wait()
        return row

    async def _events(self, *, to_the_end: bool) -> AsyncIterator[VersionEvent]:
        async with AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=None,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer:
            consumer.assign([self._history])
            await consumer.seek_to_beginning(self._history)
            ends = await consumer.end_offsets([self._history])
            while not to_the_end or await consumer.position(self._history) < ends[self._history]:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    for record in records:
                        event = self.book.learn(record.value)
                        if event is not None:
                            yield event


def follower(
    bootstrap: str, database: str, table: str, versions: Versions, folder: str, moved: Event
) -> faust.App:
    """The application. Sets `moved` and ends the process's loop when the name is another table's.
    Faust wants a `folder`, but keeps nothing in it for one without tables."""
    table_id = versions.book.table_id(table)
    assert table_id is not None, "the caller has looked"
    app = faust.App(
        f"faust-follower-{database}-{table_id}",
        broker=[f"kafka://{address}" for address in bootstrap.split(",")],
        # What makes Faust's consumers read committed transactions only. An image of one that was
        # aborted was never true.
        processing_guarantee="exactly_once",
        # Else it ends its transactions twice when it is stopped, and never ends itself.
        stream_wait_empty=False,
        consumer_auto_offset_reset="earliest",
        store="memory://",
        datadir=folder,
        topic_disable_leader=True,
        web_enabled=False,
    )
    rows = app.topic(
        f"{database}.rows.{table_id}", key_serializer="raw", value_serializer="raw", internal=False
    )

    @app.agent(rows)
    async def follow_rows(stream: Any) -> None:
        async for event in stream.events():
            tell(await versions.decode(table_id, RowRecord(event.key, event.value)))

    @app.task  # type: ignore[untyped-decorator]
    async def follow_versions() -> None:
        async for event in versions.follow():
            if event["table_id"] == table_id:
                changed = event["diff"]["words"] if event["diff"] else []
                tell({"table": event["table"], "version": event["version"], "changed": changed})
            if versions.book.table_id(table) not in (None, table_id) and not moved.is_set():
                moved.set()
                signal.raise_signal(signal.SIGTERM)  # Faust ends well on it, and on little else

    return app


def tell(what: dict[str, Any]) -> None:
    print(json.dumps(what, ensure_ascii=False), flush=True)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m services.examples.faust_follower TABLE", file=sys.stderr)
        return 2
    table = sys.argv[1]
    bootstrap = os.environ.get("LEASEHOLD_KAFKA", "127.0.0.1:19092")
    database = os.environ.get("LEASEHOLD_DATABASE", "demo")
    versions = Versions(bootstrap, database)
    asyncio.run(asyncio.wait_for(versions.catch_up(), HISTORY_END_WAIT_S))
    if versions.book.table_id(table) is None:
        print(f"faust_follower: table {table!r} does not exist", file=sys.stderr)
        return 1
    moved = Event()
    with tempfile.TemporaryDirectory(prefix="faust-follower-") as folder:
        app = follower(bootstrap, database, table, versions, folder, moved)
        # Standard output is for rows: Faust would draw there too.
        worker = faust.Worker(
            app, loglevel="WARNING", quiet=True, redirect_stdouts=False, stdout=sys.stderr
        )
        try:
            worker.execute_from_commandline()
        except SystemExit as ended:
            code = ended.code
    if moved.is_set():
        again = [sys.executable, "-m", "services.examples.faust_follower", table]
        os.execv(sys.executable, again)  # noqa: S606 no shell is wanted
    return int(code or 0)


if __name__ == "__main__":
    sys.exit(main())
