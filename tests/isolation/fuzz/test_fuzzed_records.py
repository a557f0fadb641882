"""Random and mutated records on every topic and channel: no process ends, and the next good input
is answered.

A node that stops is a Harm of the stage; one that raises ends the test.
"""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.codec.log_header import read_header
from leasehold.model.errors import LogStopped, MalformedRequest
from leasehold.model.records.acks import Ack
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import Chunk, JobEvent
from leasehold.model.records.log import LogPosition
from leasehold.model.records.requests import Conflict, DeadLetter, ResultBatch
from tests.isolation.fuzz.fuzzing import SEED, fuzz
from tests.isolation.fuzz.rogue_records import CODEC, PLACES, Strangers
from tests.isolation.fuzz.spoiling import spoiled

RECORDS = 60
RECORDS_LONG = 100_000
DECODED = (Ack, ResultBatch, Chunk, Conflict, VersionEvent, JobEvent, DeadLetter, LogPosition)


def opened(where: str) -> Any:
    return lambda folder: Strangers(folder, where)


@pytest.mark.parametrize("where", PLACES)
def test_rogue_records_end_nobody(tmp_path: Path, where: str) -> None:
    fuzz(f"records on {where}", tmp_path, opened(where), PLACES[where], RECORDS, together=12)


@pytest.mark.long("a minute or more for each topic and channel")
@pytest.mark.parametrize("where", PLACES)
def test_100_000_rogue_records_end_nobody(tmp_path: Path, where: str) -> None:
    fuzz(f"records on {where}", tmp_path, opened(where), PLACES[where], RECORDS_LONG, together=200)


def test_decoders_raise_what_their_readers_catch(tmp_path: Path) -> None:
    """Whatever the bytes: readers of topics and channels pass over what is malformed, those of the
    log stop in a sentence."""
    chance = random.Random(f"{SEED}/decoders")
    print(f"seed {SEED}")
    database = Strangers(tmp_path, "acks")
    try:
        records = database.records(chance)
        bus, topics = database.cluster.bus, database.cluster.topics
        log = [m.value or b"" for m in bus.read(topics.log.name)]
        for _ in range(6_000):
            data = spoiled(chance, chance.choice((*records, chance.choice(log))))
            for wanted in DECODED:
                with contextlib.suppress(MalformedRequest):
                    CODEC.decode_as(wanted, data)
            CODEC.read_log(data)
            with contextlib.suppress(LogStopped):
                CODEC.decode_log(data)
            with contextlib.suppress(LogStopped):
                read_header(data)
    finally:
        database.close()
