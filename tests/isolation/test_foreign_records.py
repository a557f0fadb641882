"""Random and mutated records on every topic and channel that nodes read, the log too: no node ends,
and the next good record is taken.

Who may write there is trusted with what a record says, not with what its bytes do to its readers;
on the log with neither (`tests/simulation/test_foreign_in_log.py` has each kind at each place).
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest

from leasehold.adapters.codec.log_header import read_header
from leasehold.adapters.codec.record_shape import CLASS_BY_TAG
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.redis.requests import pack_requests, read_requests
from leasehold.model.errors import LogStopped, MalformedRequest
from leasehold.model.records.acks import Ack, LeaseAck
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import Chunk, ChunksEnd, Findings
from leasehold.model.records.requests import Conflict, Outcome, Result, ResultBatch
from tests.isolation.sql_stage import SqlStage
from tests.simulation.simulation import ASKED, TOLD

SEED = int(os.environ.get("SEED") or random.SystemRandom().getrandbits(32))
CODEC = MessagePackCodec()
RECORDS = 100
RECORDS_LONG = 100_000
"""On each topic and channel, some at a time."""
MEMORY_BYTES_MAX = 400 << 20
"""That RECORDS_LONG may take: what topics in memory hold of them, and what the judges remember."""
ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2**31, 2**63 - 1, -(2**63), 2**64 - 1, 1.5, float("nan")),
    *(b"", b"\xff" * 40, "", "x", "\x00", "漢" * 50, (), ((),), ({},), {}, {"a": 1}, {1: {}}),
    *(((1,),), ((None,), ({"a": 1},)), ((2**63,),), (1, "requests", 9, 9)),
)


def spoiled(chance: random.Random, data: bytes) -> bytes:
    """Another record like that one, or none at all."""
    kind = chance.randrange(5)
    if kind == 0:
        return chance.randbytes(chance.randrange(300))
    if kind == 1:
        return data[: chance.randrange(len(data) + 1)]
    if kind == 2:
        place = chance.randrange(max(1, len(data)))
        return data[:place] + chance.randbytes(1) + data[place + chance.randrange(3) :]
    try:
        fields = list(msgpack.unpackb(data, use_list=False, strict_map_key=False))
    except (ValueError, TypeError):
        return json_spoiled(chance, data)
    if len(fields) < 2:  # spoiled before
        return chance.randbytes(chance.randrange(300))
    for _ in range(chance.randrange(1, 3)):
        fields[chance.randrange(1, len(fields))] = chance.choice(ODD)
    if kind == 4:
        fields[1] = chance.choice([*CLASS_BY_TAG, 99])
    packed: bytes = msgpack.packb(fields)
    return packed


def json_spoiled(chance: random.Random, data: bytes) -> bytes:
    words = (b"null", b"5", b'"abc"', b"[]", b"{}", b"1e400", b"-9223372036854775809")
    at = chance.choice([place for place, byte in enumerate(data) if byte == ord(":")] or [0])
    end = data.find(b",", at)
    return data[: at + 1] + chance.choice(words) + data[end if end > 0 else len(data) :]


class Strangers:
    """Puts records on a stage, each kind where its readers look for it."""

    def __init__(self, stage: SqlStage, chance: random.Random) -> None:
        self.stage = stage
        self.chance = chance
        self.cluster = stage.cluster
        versions = stage.cluster.topics.versions.name
        stage.until(lambda: stage.cluster.bus.end(versions) > 0, "a version event")
        version = stage.cluster.bus.read(versions)[-1].value
        assert version is not None
        self.event = version

    def put(self, topic: str, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.cluster.bus.append(topic, 0, b"", data, headers or {})

    def records(self) -> list[bytes]:
        """Good ones, of nodes that are not there and of whatever job there is."""
        job, run, element = 1 + self.chance.randrange(3), 1 + self.chance.randrange(2), 3
        master = self.stage.master
        jobs = master.node.catalog.jobs.values() if master and master.node else ()
        for running in jobs:
            if not running.status.ended and running.run and self.chance.random() < 0.7:
                job, run, element = running.job_id, running.run, running.element_id
        keys = ((1,), (2,))
        sent = (
            Ack("stranger", b"i" * 16, "replicant", 3, 1, 1, 0, False, "", 1),
            LeaseAck("stranger", 1, 1),
            Chunk(job, run, 1, 2, element, keys),
            ChunksEnd(job, run + 9, 2, 1),
            Findings(job, run, 1, 2, 2, 1, ((element, (1,)),)),
            ResultBatch((Result(b"r" * 16, 3, Outcome(1, 9, 1, 5, True)),)),
            Conflict(b"r" * 16, 1, 3, "t", "application/json", b"{}", None, ""),
        )
        return [*map(CODEC.encode, sent), self.event]

    def any_record(self) -> bytes:
        return spoiled(self.chance, self.chance.choice(self.records()))

    def on_acks(self) -> None:
        self.put(self.cluster.topics.acks.name, self.any_record())

    def on_backfill(self) -> None:
        self.put(self.cluster.topics.backfill.name, self.any_record())

    def on_requests(self) -> None:
        sent = b'{"id": "%s", "reply_to": 0, "table": "t", "op": "update", "key": {"id": 1}}'
        body = json_spoiled(self.chance, sent % self.cluster.fresh_id().hex().encode())
        kinds = ("application/json", "application/msgpack", "text/plain", "")
        body = self.chance.choice((body, self.any_record()))
        headers = {"content-type": self.chance.choice(kinds)}
        self.put(self.cluster.topics.requests.name, body, headers)

    def on_log(self) -> None:
        """Records that are there, spoiled, and whatever else."""
        topic = self.cluster.topics.log.name
        newest = self.cluster.bus.read(topic, 0, max(0, self.cluster.bus.end(topic) - 50))
        old = self.chance.choice(newest).value or b"x"
        self.put(topic, spoiled(self.chance, self.chance.choice((old, self.any_record()))))

    def told_acks(self) -> None:
        node = self.stage.master
        assert node is not None
        assert node.node is not None
        self.cluster.pubsub.publish_ack(node.node.term, self.any_record())

    def told_requests(self) -> None:
        node = self.stage.master
        assert node is not None
        assert node.node is not None
        number = self.chance.randrange(4)
        packed = pack_requests(b"a" * 16, 1, number, [("application/json", self.any_record())])
        asked = read_requests(spoiled(self.chance, packed) if number else packed)
        if asked is not None:
            self.cluster.pubsub.publish_requests(node.node.term, asked)

    def told_log(self) -> None:
        """Records that were in the log, spoiled, and whatever else: at offsets of all kinds."""
        node = self.stage.master
        assert node is not None
        assert node.node is not None
        log = self.cluster.bus.read(self.cluster.topics.log.name)
        old = self.chance.choice(log[:-5]).value
        assert old is not None
        data = spoiled(self.chance, self.chance.choice((old, self.any_record())))
        end = self.cluster.bus.end(self.cluster.topics.log.name)
        offset = self.chance.choice((0, end - 1, end, end + 1, 2**62))
        self.cluster.pubsub.publish_log(node.node.term, offset, data)


PLACES = (
    *("on_acks", "on_backfill", "on_requests", "on_log"),
    *("told_acks", "told_requests", "told_log"),
)


@pytest.mark.parametrize("place", PLACES)
def test_foreign_records_end_nobody(tmp_path: Path, place: str) -> None:
    """A node that stops is a Harm of the stage; one that raises ends this test."""
    go_through(tmp_path, place, RECORDS, together=5)


@pytest.mark.long("a minute for each place")
@pytest.mark.parametrize("place", PLACES)
def test_100_000_foreign_records_end_nobody(tmp_path: Path, place: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    go_through(tmp_path, place, RECORDS_LONG, together=200)
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    assert taken < MEMORY_BYTES_MAX, f"seed {SEED}: {taken >> 20} MB"


def go_through(tmp_path: Path, place: str, records: int, together: int) -> None:
    """Put so many records there, so many between one good request and the next."""
    chance = random.Random(f"{SEED}/{place}")
    print(f"seed {SEED}")
    stage = SqlStage(tmp_path, fast_log=TOLD, fast_requests=ASKED)
    try:
        stage.reference.foreign_records = place == "on_log"
        stage.ask({"sql": "alter table t add column c bigint default 5"})
        stage.passing(20)
        strangers = Strangers(stage, chance)
        put: Callable[[], None] = getattr(strangers, place)
        for number in range(records):
            put()
            if number % together == together - 1:
                stage.passing(chance.randrange(8))
                assert stage.settle(stage.update(1, number)).lsn, f"seed {SEED}"
        stage.ask({"sql": "create index i on t (a)"})
        stage.passing(20)
        for _ in range(min(records, RECORDS) // 2):
            put()
            stage.passing(chance.randrange(3))
        assert stage.settle(stage.update(2, 77)).lsn, f"seed {SEED}"
        stage.passing(5_000)
        roles = [n.node.role if n.node else "ended" for n in stage.cluster.nodes.values()]
        assert sorted(roles) == ["master", "replicant", "replicant", "standby"], f"seed {SEED}"
        assert stage.row(2)[2] == 77
    finally:
        stage.close()


def test_decoders_raise_what_their_readers_catch(tmp_path: Path) -> None:
    """Whatever the bytes: readers of topics and channels pass over what is malformed, those of the
    log stop in a sentence."""
    chance = random.Random(f"{SEED}/decoders")
    print(f"seed {SEED}")
    stage = SqlStage(tmp_path)
    try:
        records = Strangers(stage, chance).records()
        log = [m.value or b"" for m in stage.cluster.bus.read(stage.cluster.topics.log.name)]
        for _ in range(6_000):
            data = spoiled(chance, chance.choice((*records, chance.choice(log))))
            for wanted in (Ack, ResultBatch, Chunk, Conflict, VersionEvent):
                with contextlib.suppress(MalformedRequest):
                    CODEC.decode_as(wanted, data)
            CODEC.read_log(data)
            with contextlib.suppress(LogStopped):
                CODEC.decode_log(data)
            with contextlib.suppress(LogStopped):
                read_header(data)
    finally:
        stage.close()
