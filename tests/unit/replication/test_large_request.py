"""Requests of many rows: verified in slices, decided in one record of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.errors import LogStopped
from leasehold.model.ids import format_request_id
from leasehold.model.records.log import Commit
from leasehold.replication.master.batch_limits import BatchSettings
from tests.support.replication.world import CODEC, TABLE, World, insert, update
from tests.unit.replication.test_ddl_with_rows import Stored

SLICES = 5
SMALL = BatchSettings(
    record_bytes_max=8_000, large_bytes_max=40_000, large_operations=10, slice_operations=10
)


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stored]:
    made = Stored(tmp_path if request.param == "sqlite" else None, SMALL)
    assert made.ask({"sql": TABLE}).lsn == 1
    yield made
    for store in made.stores:
        store.close()


def many(first: int, **values: Any) -> dict[str, Any]:
    rows = range(first, first + SLICES * 10)
    return {"transaction": [insert(n, **values) for n in rows], "on_conflict": "fail"}


def turns(world: World, count: int, pause_ms: int = 1) -> None:
    for _ in range(count):
        world.ms += pause_ms
        world.tick()
        world.pump()


def test_l8_it_has_a_record_of_its_own_and_nobody_overtakes_it(world: Stored) -> None:
    before = world.put(insert(1))
    large = world.put(many(100, b="x" * 300))
    behind = world.put(update(100, a=7))
    turns(world, SLICES + 6)
    lsns = [world.answers(number)[0].lsn for number in (before, large, behind)]
    assert lsns == [2, 3, 4]
    assert world.answers(large)[0].rows_affected == SLICES * 10
    with_rows = [len(record.commits) for record in world.decided() if record.commits]
    assert with_rows == [1, 1, 1, 1]
    assert world.row(world.follower, 100) == world.row(world.node, 100)
    assert world.row(world.node, 149) is not None


def test_heartbeats_go_on_between_its_slices(world: Stored) -> None:
    large = world.put(many(100))
    log = len(world.log)
    turns(world, SLICES - 1, pause_ms=250)
    assert not world.answers(large)
    assert len(world.log) - log >= SLICES - 2
    turns(world, 3)
    assert world.answers(large)[0].lsn == 2


def test_rows_that_are_told_together_are_a_slice_or_more(world: Stored) -> None:
    """They are verified a hundred at a time: heartbeats go on between those."""
    rows = [[n, n, "x" * 20] for n in range(100, 450)]
    told = {"table": "t", "op": "insert", "columns": ["id", "a", "b"], "rows": rows}
    large = world.put({"transaction": [told, insert(7)], "on_conflict": "fail"})
    turns(world, 2)
    assert not world.answers(large)
    turns(world, 6)
    outcome = world.answers(large)[0]
    assert (outcome.lsn, outcome.rows_affected) == (2, 351)
    for key in (7, 100, 449):
        there = world.row(world.node, key)
        assert there is not None
        assert world.row(world.follower, key) == there


def test_its_commit_is_packed_once(world: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leasehold.replication.master.batch.LARGE_OPERATIONS", 10)
    pack = MessagePackCodec.pack_commit
    packed: list[int] = []

    def count(codec: MessagePackCodec, commit: Commit) -> bytes:
        packed.append(len(commit.changes))
        return pack(codec, commit)

    monkeypatch.setattr(MessagePackCodec, "pack_commit", count)
    large = world.put(many(100))
    turns(world, SLICES + 4, pause_ms=7)
    assert world.answers(large)[0].lsn == 2
    assert packed == [SLICES * 10]
    assert world.row(world.follower, 149) == world.row(world.node, 149)


def test_refused_whole_in_the_middle(world: Stored) -> None:
    world.ask(insert(130))
    refused = world.put(many(100))
    turns(world, SLICES + 4)
    assert world.answers(refused)[0].code == "23505"
    assert world.row(world.node, 100) is None
    assert world.ask(insert(2)).lsn == 3


def test_l8_too_large_for_any_record(world: Stored) -> None:
    refused = world.put(many(100, b="x" * 900))
    turns(world, SLICES + 4)
    assert world.answers(refused)[0].code == "54000"
    assert "split the request" in world.answers(refused)[0].message
    assert world.ask(insert(2)).lsn == 2


def test_l5_it_is_decided_once_however_often_it_comes(world: Stored) -> None:
    body = json.dumps({"id": format_request_id(world.fresh_id()), "reply_to": 1, **many(100)})
    for _ in range(3):
        world.raw(body.encode())
    turns(world, 3 * SLICES + 8)
    assert [commit.rows_affected for commit in world.commits()[1:]] == [SLICES * 10]


def test_tables_emptied_and_rows_in_one_request(world: Stored) -> None:
    world.ask(insert(100, a=1))
    asked = world.put({"sql": "TRUNCATE t", **many(100, a=2)})
    turns(world, SLICES + 4)
    assert world.answers(asked)[0].lsn == 3
    assert [(row[0], row[1]) for row in world.rows("t")][:2] == [(100, 2), (101, 2)]
    refused = world.put({"sql": "CREATE INDEX i ON nothing (a)", **many(300, a=2)})
    turns(world, SLICES + 4)
    assert world.answers(refused)[0].code == "42P01"


def test_a_large_record_travels_behind_zlib() -> None:
    world = World()
    world.ask({"sql": TABLE})
    large = world.put({"transaction": [insert(n, b="x" * 900) for n in range(2_100)]})
    turns(world, 6)
    assert world.answers(large)[0].rows_affected == 2_100
    assert [data[:1] for data in world.log].count(b"\x78") == 1
    assert max(map(len, world.log)) < 200_000
    assert world.row(world.follower, 2_099) == world.row(world.node, 2_099)
    with pytest.raises(LogStopped):
        CODEC.decode_log(b"\x78\x9cnothing")
