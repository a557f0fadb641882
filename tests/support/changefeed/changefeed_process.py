"""The changefeed as a process over a synthetic log on a real broker, and what it has published."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.reader import Record, TopicReader
from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.adapters.kafka.writer import log_writer
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.log import LogPosition
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings
from tests.support.changefeed.made_log import MadeLog

ROOT = Path(__file__).resolve().parents[3]
CODEC = MessagePackCodec()
DEADLINE_S = 60.0
LOOK_AGAIN_S = 0.05


@contextmanager
def changefeed(access: Mapping[str, str], topics: Topics, folder: Path) -> Iterator[Any]:
    """A changefeed process; killed without notice at the end of the block."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'libs'}",
        **access,
        "LEASEHOLD_READY_FILE": str(folder / "ready"),
        # Small transactions, so that there are many places to die in.
        "LEASEHOLD_CHANGEFEED_MESSAGES_MAX": "50",
        "LEASEHOLD_CHANGEFEED_LINGER_MS": "5",
        "LEASEHOLD_CHANGEFEED_POSITION_EVERY_MS": "20",
    }
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "services.changefeed.main"],
            env=environment,
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def wait_until(what: Callable[[], bool], process: Any, folder: Path) -> None:
    """Wait until `what`, which is looked at now and then: each look asks a broker, and takes the
    processors from what is waited for. Fails where the process ends, and at the deadline."""
    give_up = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < give_up, (folder / "log").read_text()
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_AGAIN_S)
        assert process.poll() is None, (folder / "log").read_text()


def append(settings: KafkaSettings, topics: Topics, log: MadeLog, first: int = 0) -> None:
    writer = log_writer(settings, "test-log", 30_000)
    for data, _ in log.records[first:]:
        while True:
            try:
                writer.send(topics.log.name, 0, None, data)
                break
            except BusUnavailable:
                writer.deliveries(0.1)
    assert writer.close(DEADLINE_S) == 0


def stored_position(settings: KafkaSettings, topics: Topics) -> LogPosition:
    stored = read_compacted(settings, "test", topics.changefeed.name)
    if not stored:
        return LogPosition()
    return CODEC.decode_as(LogPosition, stored[b"position"])


def has_stored(settings: KafkaSettings, topics: Topics, log: MadeLog) -> bool:
    return stored_position(settings, topics).offset >= len(log.records)


def published(settings: KafkaSettings, *names: str) -> list[Record]:
    """Every committed record of these topics, by topic, partition and offset."""
    reader = TopicReader(settings, "test-all", read_committed=True, tell_ends=True)
    wanted = 0
    for name in names:
        for partition in range(reader.partitions(name)):
            reader.start(name, partition, 0)
            wanted += 1
    records: list[Record] = []
    give_up = time.monotonic() + DEADLINE_S
    while len(reader.ended) < wanted:
        assert time.monotonic() < give_up
        records += reader.read(1000, 0.1)
    reader.close()
    return sorted(records, key=lambda r: (names.index(r.topic), r.partition, r.offset))
