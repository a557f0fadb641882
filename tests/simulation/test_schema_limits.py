"""Schema changes, defaults, columns and chunks of large keys at and beyond each limit go the whole
way: to an answer, to what the changefeed publishes, to all nodes and to a job's end.

Beside them stands `test_limits.py`, for rows and requests. What a limit lets through everybody
behind it takes; what it does not is refused in a sentence, and a small write is answered behind it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.catalog.descriptor import COLUMNS_MAX
from leasehold.catalog.job import Job, Status
from leasehold.model import byte_limits
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import Chunk
from leasehold.model.records.requests import Outcome
from leasehold.model.topics import PUBLISHED_BYTES_MAX
from leasehold.values.types import TEXT_BYTES_MAX
from tests.simulation.stage import Stage

CODEC = MessagePackCodec()
JOB_MS = 120_000


@pytest.fixture
def stage() -> Stage:
    return Stage()


def settle(stage: Stage, sql: str) -> Outcome:
    """The answer; a small write behind it is answered, and every node is there."""
    outcome = stage.settle({"sql": sql})
    assert stage.settle(stage.update(1, 5)).lsn
    return outcome


def until_jobs_end(stage: Stage) -> Mapping[int, Job]:
    jobs = stage.reference.catalog.jobs
    stage.until(lambda: all(j.status.ended for j in jobs.values()), "jobs", virtual_ms=JOB_MS)
    return jobs


def published(stage: Stage, name: str) -> VersionEvent:
    """The newest version event of the table, once its jobs have ended."""
    jobs = until_jobs_end(stage)
    assert all(job.status is Status.SUCCEEDED for job in jobs.values()), jobs
    stage.passing(3_000)
    assert stage.cluster.changefeed.error is None
    found = None
    for message in stage.cluster.bus.read(stage.cluster.topics.versions.name):
        assert len(message.key) + len(message.value or b"") <= PUBLISHED_BYTES_MAX
        if message.value is not None:
            event = CODEC.decode_as(VersionEvent, message.value)
            found = event if event.name == name else found
    assert found is not None
    assert len(stage.coherent()) == 2
    return found


@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_a_table_of_as_many_columns_as_there_may_be(stage: Stage, beyond: int) -> None:
    names = [f"column_{n}" for n in range(COLUMNS_MAX - 1 + beyond)]
    text = ", ".join(f"{name} text" for name in names)
    outcome = settle(stage, f"create table w (id bigint primary key, {text})")
    assert outcome.code == ("22003" if beyond > 0 else "")
    if beyond <= 0:
        assert len(published(stage, "w").body["columns"]) == COLUMNS_MAX + beyond


def test_a_column_is_added_up_to_the_limit_alone(stage: Stage) -> None:
    text = ", ".join(f"c{n} int" for n in range(COLUMNS_MAX - 2))
    assert not settle(stage, f"create table w (id bigint primary key, {text})").code
    assert not settle(stage, "alter table w add column last int default 7").code
    assert len(published(stage, "w").body["columns"]) == COLUMNS_MAX
    assert settle(stage, "alter table w add column more int").code == "22003"


@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_a_statement_of_as_many_bytes_as_a_job_keeps(stage: Stage, beyond: int) -> None:
    head, tail = "alter table t add column b text default '", "'"
    room = byte_limits.STATEMENT + beyond - len(head) - len(tail)
    outcome = settle(stage, f"{head}{'x' * room}{tail}")
    assert outcome.code == ("22003" if beyond > 0 else "")
    if beyond <= 0:
        (column,) = [c for c in published(stage, "t").body["columns"] if c["name"] == "b"]
        assert column["name"] == "b"
        assert settle(stage, "alter table t drop column b").code == ""


@pytest.mark.parametrize("letter", ["x", "é", "中", "𝄞"])
def test_a_default_of_letters_of_any_width_is_published(stage: Stage, letter: str) -> None:
    """The statement's limit is in bytes; as JSON and as a schema the default is told again."""
    most = (byte_limits.STATEMENT - 100) // len(letter.encode())
    outcome = settle(stage, f"alter table t add column b text default '{letter * most}'")
    assert outcome.code == ""
    assert published(stage, "t").version > 1


@pytest.mark.long("some 60 schema changes of 64 KB each, published whole at each step")
def test_many_defaults_that_are_too_much_together_are_published_cut_or_refused(
    stage: Stage,
) -> None:
    """Each statement fits; what they come to has a limit of its own."""
    assert not settle(stage, "create table w (id bigint primary key)").code
    large = "x" * (byte_limits.STATEMENT - 200)
    codes = set()
    for number in range(90):
        outcome = settle(stage, f"alter table w add column c{number} text default '{large}'")
        codes.add(outcome.code)
        if outcome.code:
            break
        until_jobs_end(stage)
    assert codes <= {"", "54000"}, codes
    assert published(stage, "w").version > 1


@pytest.mark.parametrize("spare", [0, -200])
def test_chunks_of_large_keys_fill_every_row(stage: Stage, spare: int) -> None:
    """Keys that two of fit a chunk, and keys of which a chunk holds a single one, and is larger."""
    assert not settle(stage, "create table w (k text primary key, a int)").code
    size = min(TEXT_BYTES_MAX, byte_limits.CHUNK // 2 - spare)
    keys = [f"{n}{'k' * (size - 1)}" for n in range(5)]
    for number, key in enumerate(keys):
        asked = {"table": "w", "op": "insert", "key": {"k": key}, "values": {"a": number}}
        assert stage.settle(asked).lsn
    assert not settle(stage, "create index i on w (a)").code
    assert published(stage, "w").version > 1
    found: list[str] = []
    for message in stage.cluster.bus.read(stage.cluster.topics.backfill.name):
        assert len(message.value or b"") <= PUBLISHED_BYTES_MAX
        try:
            chunk = CODEC.decode_as(Chunk, message.value or b"")
        except MalformedRequest:
            continue
        found += [key[0] for key in chunk.keys]
    assert not found or set(found) == set(keys)
