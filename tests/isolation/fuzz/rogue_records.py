"""Records of strangers, each kind where its readers look for it.

Who may write there is trusted with what a record says, not with what its bytes do to its readers;
on the log with neither (`tests/simulation/test_foreign_in_log.py` has each kind at each place).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from leasehold.adapters.codec.records import MessagePackCodec, row_key
from leasehold.adapters.redis.requests import pack_requests, read_requests
from leasehold.model.records.acks import Ack, CheckReport, HoldingReport, LeaseAck
from leasehold.model.records.events import RowImage, RowsTruncated
from leasehold.model.records.jobs import (
    ChangefeedReport,
    Chunk,
    ChunksEnd,
    Findings,
    JobEvent,
    JobProgress,
    SparkReport,
)
from leasehold.model.records.log import LogPosition
from leasehold.model.records.requests import Conflict, DeadLetter, Outcome, Result, ResultBatch
from leasehold.model.topics import Topics
from leasehold.replication.changefeed import job_key, progress_key, version_key
from tests.isolation.fuzz.spoiling import json_spoiled, spoiled
from tests.isolation.fuzz.whole_database import WholeDatabase
from tests.simulation.plan import FAST_LOG, FAST_REQUESTS
from tests.support.schema_change.made_job import index_job

CODEC: Final = MessagePackCodec()
RESTARTS: Final = {"changefeed": 40, "jobs": 40, "conflicts": 80}
"""How many records of a topic come between two starts of who reads it when it starts."""
MANY_APART: Final = 25
TABLE_ID: Final = 1
KEYS: Final = (
    *(job_key(1), job_key(2), b"job/", b"job/x", b"job/-1", b"job/" + b"9" * 5_000),
    *(progress_key(1, 1), b"spark", b"changefeed", b"position", b"gone/1", b"gone/x"),
    *(version_key(1), version_key(2), b"gone/" + b"9" * 5_000, b"", b"\xff" * 20),
    *(row_key((1,)), row_key((2**62,)), row_key(("x", None))),
)


class Rogue(NamedTuple):
    """A record. `where`: a topic without the database's name, or `told` and a channel's."""

    where: str
    key: bytes
    value: bytes | None
    headers: Mapping[str, str] = MappingProxyType({})
    number: int = 0


class Strangers(WholeDatabase):
    """Puts records beside a changefeed, a retry, a backfill and a subscriber that run, too."""

    def __init__(self, folder: Path, where: str) -> None:
        super().__init__(folder, subscribers=1, fast_log=FAST_LOG, fast_requests=FAST_REQUESTS)
        stage = self.stage
        self.where = where
        self.cluster = stage.cluster
        self.given = 0
        stage.reference.foreign_records = where == "log"
        self.settle({"sql": "alter table t add column c bigint default 5"})
        stage.passing(20)
        versions = self.cluster.topics.versions.name
        stage.until(lambda: self.cluster.bus.end(versions) > 0, "a version event")
        version = self.cluster.bus.read(versions)[-1].value
        assert version is not None
        self.event = version

    # ------------------------------------------------------------ putting

    def give(self, given: Rogue) -> None:
        self.given += 1
        stage = self.stage
        node = stage.master
        assert node is not None
        assert node.node is not None
        term, pubsub = node.node.term, self.cluster.pubsub
        match given.where:
            case "told acks":
                pubsub.publish_ack(term, given.value or b"")
            case "told requests":
                asked = read_requests(given.value or b"")
                if asked is not None:
                    pubsub.publish_requests(term, asked)
            case "told log":
                pubsub.publish_log(term, given.number, given.value or b"")
            case _:
                self._append(given)
        if self.given % MANY_APART == 0:
            stage.passing(given.number % 8)
        if self.given % RESTARTS.get(given.where, 1 << 60) == 0:
            self._restart(given.where)

    def _append(self, given: Rogue) -> None:
        topics, bus = self.cluster.topics, self.cluster.bus
        name = f"{topics.database}.{given.where}"
        judged = bus.on_append
        if given.where not in ("log", "requests"):
            bus.on_append = lambda *_: None  # judges look at what processes of ours say
        bus.append(name, 0, given.key, given.value, given.headers)
        bus.on_append = judged

    def _restart(self, where: str) -> None:
        cluster = self.cluster
        for part in (
            (cluster.retry,) if where == "conflicts" else (cluster.changefeed, cluster.backfill)
        ):
            part.crash()
            part.start()

    def good(self) -> None:
        super().good()
        cluster = self.cluster
        assert cluster.changefeed.up, cluster.changefeed.error
        assert cluster.retry.up
        assert cluster.backfill.up

    def end(self) -> None:
        """A schema change, which needs changefeed, backfill and validation, ends, too."""
        stage = self.stage
        stage.settle({"sql": "create index i on t (a)"})
        stage.passing(200)
        super().end()
        stage.until(self._published, "what the changefeed publishes", virtual_ms=60_000)

    def _published(self) -> bool:
        return self.cluster.changefeed.position.offset >= self.stage.reference.last_change

    # ------------------------------------------------------------ making

    def records(self, chance: random.Random) -> list[bytes]:
        """Good ones, of nodes that are not there and of whatever job there is."""
        job, run, element = 1 + chance.randrange(3), 1 + chance.randrange(2), 3
        master = self.stage.master
        jobs = master.node.catalog.jobs.values() if master and master.node else ()
        for running in jobs:
            if not running.status.ended and running.run and chance.random() < 0.7:
                job, run, element = running.job_id, running.run, running.element_id
        return [*good_records(job, run, element), self.event]


def good_records(job: int, run: int, element: int) -> list[bytes]:
    keys = ((1,), (2,))
    body = index_job(job, TABLE_ID).to_wire()
    outcome = Outcome(1, 9, 1, 5, True)
    image = RowImage(TABLE_ID, (1,), {0: 9}, 1, 1, 5, {1: 1, 2: 10})
    sent = (
        Ack("stranger", b"i" * 16, "replicant", 3, 1, 1, 0, False, "", 1),
        LeaseAck("stranger", 1, 1),
        HoldingReport("stranger", 1, 1, 1, 1, 1, 1, 1, (), 1),
        CheckReport(b"s", "stranger", b"i", 1, 1, 1, 1, 1, {}, b"", 0, (), 1),
        Chunk(job, run, 1, 2, element, keys),
        ChunksEnd(job, run + 9, 2, 1),
        Findings(job, run, 1, 2, 2, 1, ((element, (1,)),)),
        ResultBatch((Result(b"r" * 16, 3, outcome),)),
        Conflict(b"r" * 16, 1, 3, "t", "application/json", b"{}", image, ""),
        JobEvent(job, 1, 1, body),
        JobProgress(job, run, 1, 1, 1.0, "x", 1),
        SparkReport(1, ""),
        ChangefeedReport(1, 1, 1),
        image,
        RowsTruncated(TABLE_ID, 1, 1),
        DeadLetter(b"r" * 16, 1, "40001", "", {}, 1, "requests", 1, "application/json", b"{}"),
        LogPosition(-3, 1),
    )
    return [*map(CODEC.encode, sent)]


# ---------------------------------------------------------------- what stands where


def _any_record(chance: random.Random, database: Strangers) -> bytes:
    return spoiled(chance, chance.choice(database.records(chance)))


def _on_topic(chance: random.Random, database: Strangers) -> Rogue:
    value = None if chance.random() < 0.05 else _any_record(chance, database)
    return Rogue(database.where, chance.choice(KEYS), value, {}, chance.randrange(8))


def _request(chance: random.Random, database: Strangers) -> Rogue:
    sent = b'{"id": "%s", "reply_to": 0, "table": "t", "op": "update", "key": {"id": 1}}'
    body = json_spoiled(chance, sent % database.cluster.fresh_id().hex().encode())
    kinds = ("application/json", "application/msgpack", "text/plain", "")
    body = chance.choice((body, _any_record(chance, database)))
    return Rogue("requests", b"", body, {"content-type": chance.choice(kinds)})


def _old_record(chance: random.Random, database: Strangers, newest: int) -> bytes:
    """One that is in the log, spoiled, or whatever else."""
    topic, bus = database.cluster.topics.log.name, database.cluster.bus
    there = bus.read(topic, 0, max(0, bus.end(topic) - newest))
    old = chance.choice(there[:-5] or there).value or b"x"
    return spoiled(chance, chance.choice((old, _any_record(chance, database))))


def _log(chance: random.Random, database: Strangers) -> Rogue:
    return Rogue("log", b"", _old_record(chance, database, 50))


def _told_acks(chance: random.Random, database: Strangers) -> Rogue:
    return Rogue("told acks", b"", _any_record(chance, database))


def _told_requests(chance: random.Random, database: Strangers) -> Rogue:
    number = chance.randrange(4)
    sent = [("application/json", _any_record(chance, database))]
    packed = pack_requests(b"a" * 16, 1, number, sent)
    return Rogue("told requests", b"", spoiled(chance, packed) if number else packed)


def _told_log(chance: random.Random, database: Strangers) -> Rogue:
    end = database.cluster.bus.end(database.cluster.topics.log.name)
    offset = chance.choice((0, end - 1, end, end + 1, 2**62))
    return Rogue("told log", b"", _old_record(chance, database, 200), {}, offset)


_TOPICS: Final = (
    *(topic.name.partition(".")[2] for topic in Topics("any").all_static()),
    Topics("any").rows(TABLE_ID).name.partition(".")[2],
)
PLACES: Final[dict[str, Callable[[random.Random, Strangers], Rogue]]] = {
    **dict.fromkeys(_TOPICS, _on_topic),
    "requests": _request,
    "log": _log,
    "told acks": _told_acks,
    "told requests": _told_requests,
    "told log": _told_log,
}
"""Every topic that there is, and the channels that nodes listen on; those of answers are read by
producers (`test_fuzzed_readers.py`)."""
