"""L10: a message that no master survives is refused; one that masters ended beside is not."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.catalog.job import Status
from leasehold.in_process.node import MemoryNode
from leasehold.model.records.log import Decisions
from leasehold.replication.master.attempts import LOST_MAX
from leasehold.replication.master.chunk_decider import ChunkDecider
from leasehold.replication.master.request_queue import RequestQueue
from tests.simulation.ending import read_dead_letters
from tests.simulation.hard_messages import BUSY_MS, ends_it, hard, takes_long, writes
from tests.simulation.simulation import MS
from tests.simulation.stage import Stage

CODEC = MessagePackCodec()
HARD = 12_345
PACKED = b"\xcd" + HARD.to_bytes(2, "big")
TERMS_MAX = 2 + LOST_MAX
"""The term that meets it unprepared, those that are counted, and the one that refuses it."""


def epoch(stage: Stage) -> int:
    return stage.reference.position.epoch


def rows_said(stage: Stage) -> int:
    """Of the chunk that the log says is decided next."""
    return max((said.rows for said in stage.reference.position.attempts), default=0)


def fates(stage: Stage) -> dict[str, Any]:
    return {"takes long": takes_long(stage), "ends it": ends_it}


@pytest.mark.parametrize("fate", ["takes long", "ends it"])
def test_l10_a_request_that_no_master_survives_is_a_dead_letter(fate: str) -> None:
    """Its sender is told, the next request is answered, and it may come again for nothing."""
    stage = Stage()
    before = epoch(stage)
    with hard(stage, "decide", writes(HARD), fates(stage)[fate]) as met:
        asked = stage.ask(stage.update(1, HARD))
        other = stage.ask(stage.update(2, 7))
        stage.until(lambda: asked in stage.results, "an answer", "L10", virtual_ms=5 * BUSY_MS)
        assert stage.answer(other).lsn
        assert len(met) == 1 + LOST_MAX
        assert epoch(stage) - before <= TERMS_MAX
        (outcome,) = stage.results[asked]
        assert (outcome.code, outcome.lsn, outcome.dead_lettered) == ("54001", 0, True)
        stage.passing(1_000)
        (letter,) = read_dead_letters(stage.cluster)
        assert (letter.request_id, letter.code) == (asked, "54001")
        assert letter.body is not None
        assert PACKED in letter.body
        again = stage.ask({"id": asked, **stage.update(1, HARD)})
        stage.passing(1_000)
        assert again == asked
        assert len(stage.results[asked]) == 2
        assert len(met) == 1 + LOST_MAX
    assert stage.row(1)[2] == 10
    assert stage.row(2)[2] == 7


def test_l10_one_that_ends_whoever_reads_it_is_refused_unread() -> None:
    """Then nobody knows who has asked, but the next request is answered."""
    stage = Stage()
    is_hard = lambda message, _: PACKED in message.body  # noqa: E731
    with hard(stage, "_read", is_hard, ends_it, RequestQueue) as met:
        stage.ask(stage.update(1, HARD))
        other = stage.ask(stage.update(2, 7))
        stage.until(lambda: other in stage.results, "an answer", "L10", virtual_ms=60_000)
        assert len(met) == 2 + LOST_MAX
    stage.passing(1_000)
    (letter,) = read_dead_letters(stage.cluster)
    assert (letter.request_id, letter.queue, letter.code) == (b"", "requests", "54001")
    assert letter.body is not None
    assert PACKED in letter.body
    assert stage.row(2)[2] == 7


def test_l10_it_is_found_among_many_in_a_few_terms() -> None:
    """Whatever else a batch has: what is decided before it grows from one request on."""
    stage = Stage()
    before = epoch(stage)
    with hard(stage, "decide", writes(HARD), ends_it) as met:
        asked = [stage.ask(stage.update(2, n)) for n in range(100)]
        asked.insert(60, stage.ask(stage.update(1, HARD)))
        asked += [stage.ask(stage.update(2, n)) for n in range(100, 120)]
        stage.until(lambda: all(a in stage.results for a in asked), "all", "L10", 60_000)
    refused = [a for a in asked if not stage.results[a][0].lsn]
    assert refused == [asked[60]]
    assert len(met) <= 10
    assert epoch(stage) - before <= 10


def fail_appends_of(stage: Stage, request: list[bytes], times: int) -> list[int]:
    """The next appends that decide that request are lost; → the epochs that gave up by that."""
    lost: list[int] = []

    def failing(node: MemoryNode) -> None:
        append = node.driver.append

        def wrapped(data: bytes) -> None:
            record = CODEC.decode_log(data)
            commits = record.commits if isinstance(record, Decisions) else ()
            if any(commit.request_id in request for commit in commits) and len(lost) < times:
                lost.append(epoch(stage))
                stage.scripted[node.settings.name].fates = ["lost"]
            append(data)

        node.driver.append = wrapped  # type: ignore[method-assign]

    for name in ("m1", "m2"):
        failing(stage.node(name))
    return lost


def test_l10_an_innocent_request_is_not_refused_when_appends_fail() -> None:
    """Every term says that it decides it, and ends before that counts. Its master lives, and knows
    that it was not busy."""
    stage = Stage()
    asked: list[bytes] = []
    lost = fail_appends_of(stage, asked, times=8)
    asked.append(stage.ask(stage.update(1, 11)))
    assert stage.answer(asked[0]).lsn
    assert len(lost) == len(set(lost)) == 8


def test_l10_an_empty_queue_blames_nobody() -> None:
    """Masters that end with nothing to decide have said nothing."""
    stage = Stage()
    for _ in range(4):
        master = stage.master
        assert master is not None
        master.crash()
        stage.until(lambda: stage.master is not None, "another master")
        master.start()
        stage.passing(500)
    assert stage.reference.position.attempts == ()
    assert stage.settle(stage.update(1, 11)).lsn


def test_l10_what_is_decided_is_forgotten() -> None:
    """After a message was decided nothing is held against its offset, nor the next one's."""
    stage = Stage()
    for turn in range(3):
        master = stage.master
        assert master is not None
        master.crash()
        master.start()
        stage.until(lambda: stage.master is not None, "a master")
        assert stage.settle(stage.update(1, 11 + turn)).lsn
        assert stage.reference.position.attempts == ()
    records = [
        CODEC.decode_log(m.value or b"")
        for m in stage.cluster.bus.read(stage.cluster.topics.log.name)
    ]
    said = [a for r in records if isinstance(r, Decisions) for a in r.attempts]
    assert {a.lost for a in said} == {1}
    assert len(said) >= 3


def test_l10_a_large_request_is_refused_likewise() -> None:
    """One that is verified in slices, and no master survives what is done with all of it."""
    stage = Stage()
    rows = [
        {"table": "t", "op": "insert", "key": {"id": n}, "values": {"a": n}}
        for n in range(10, 2_100)
    ]
    is_hard = lambda message, request, *_: len(request.operations) > 2_000  # noqa: E731
    with hard(stage, "settle", is_hard, ends_it) as met:
        asked = stage.ask({"transaction": rows})
        other = stage.ask(stage.update(2, 7))
        stage.until(lambda: asked in stage.results, "an answer", "L10", virtual_ms=60_000)
        assert stage.answer(other).lsn
        assert len(met) == 1 + LOST_MAX
    assert stage.results[asked][0].code == "54001"


@pytest.mark.parametrize("fate", ["takes long", "ends it"])
def test_l10_a_chunk_that_no_master_survives_ends_its_job(fate: str) -> None:
    """It is passed over, its job fails with the reason, and users write on."""
    stage = Stage()
    for key in range(3, 20):
        stage.settle({"table": "t", "op": "insert", "key": {"id": key}, "values": {"a": key}})
    with hard(stage, "decide", lambda *_: True, fates(stage)[fate], ChunkDecider) as met:
        number = stage.settle({"sql": "create index i on t ((a + 1))"}).answer["job"]
        stage.until(lambda: stage.job(number).status.ended, "its end", "L10", 8 * BUSY_MS)
        assert stage.job(number).status is Status.FAILED
        assert "masters" in stage.job(number).error
        assert stage.job(number).code == "54001"
        assert len(met) <= 1 + 2 * LOST_MAX
        assert stage.settle(stage.update(2, 7)).lsn
        stage.passing(1_000)
    assert {letter.queue for letter in read_dead_letters(stage.cluster)} == {"backfill"}


def test_l10_a_chunk_goes_on_behind_the_rows_that_the_log_says_are_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A master that dies amid a chunk for another reason: the next one begins where it was, and
    nothing is held against it."""
    filled: list[tuple[int, int]] = []
    stage = Stage()
    for key in range(3, 40):
        stage.settle({"table": "t", "op": "insert", "key": {"id": key}, "values": {"a": key}})
    decide = ChunkDecider.decide

    def counted(chunks: ChunkDecider, draft: Any, chunk: Any, done: int, rows_max: int) -> int:
        after = decide(chunks, draft, chunk, done, min(rows_max, 3))
        filled.append((done, after))
        return after

    monkeypatch.setattr(ChunkDecider, "decide", counted)
    number = stage.settle({"sql": "create index i on t ((a + 1))"}).answer["job"]
    for turn in range(1, 4):
        begun = lambda turn=turn: rows_said(stage) >= 3 * turn  # noqa: E731
        stage.until(begun, "a part that the log says is decided")
        master = stage.master
        assert master is not None
        master.crash()
        stage.scheduler.later(200 * MS, master.start)
    stage.until(lambda: stage.job(number).status.ended, "its end", virtual_ms=60_000)
    assert stage.job(number).status is Status.SUCCEEDED, (stage.job(number).error, filled)
    assert filled[0] == (0, 3), "a chunk of several parts"
    assert sum(after - done for done, after in filled) <= 39 + 3 * 3, filled
