"""TRUNCATE where it is decided: one commit at one LSN, the same on master and follower."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.model.records.log import TableTruncated
from tests.support.replication.world import World, insert, update

U = "create table u (id bigint primary key, t bigint, foreign key (t) references t, unique (t))"


@pytest.fixture
def world() -> World:
    made = World()
    made.ask({"sql": "create table t (id bigint primary key, a integer, b text, unique (a))"})
    for key in range(5):
        assert made.ask(insert(key, a=key)).lsn
    return made


def rows(world: World) -> list[int]:
    """Keys of table t on both nodes, which agree."""
    found = []
    for node in (world.node, world.follower):
        with_table = node._store.open_snapshot()  # type: ignore[attr-defined]
        table = node.catalog.resolve("t")
        found.append([k for (k,), _ in with_table.scan(table, None, None, rows_max=99)])
        entries = node._store.contents.entries  # type: ignore[attr-defined]
        assert {key[0] for t, _, _, key in entries if t == table.table_id} == set(found[-1])
    assert found[0] == found[1]
    return found[0]


def insert_u(key: int, t: int) -> dict[str, Any]:
    return {"table": "u", "op": "insert", "key": {"id": key}, "values": {"t": t}}


def test_one_commit_without_an_image(world: World) -> None:
    outcome = world.ask({"sql": "truncate t"})
    assert outcome.answer == {"truncated": ("t",)}
    commit = world.commits()[-1]
    assert commit.catalog == (TableTruncated(1),)
    assert commit.changes == ()
    assert rows(world) == []
    assert world.node.catalog.newest(1).version == 1, "nothing about the table changed"


def test_what_comes_before_it_in_the_same_record_is_gone_and_what_follows_stays(
    world: World,
) -> None:
    for request in (insert(7, a=7), {"sql": "truncate t"}, insert(7, a=8), insert(8, a=7)):
        world.put(request)
    for _ in range(3):
        world.tick()
        world.pump()
    assert rows(world) == [7, 8]
    assert world.row(world.follower, 7) == {1: 7, 2: 8}


def test_a_write_that_expects_a_truncated_row_meets_a_verify_error(world: World) -> None:
    seen = world.node._store.row(world.node.catalog.newest(1), (3,))
    assert seen is not None
    (genid,) = seen.genids.values()
    world.ask({"sql": "truncate t"})
    refused = world.ask({**update(3, expect=genid, a=9), "on_conflict": "fail"})
    assert (refused.code, refused.final) == ("40001", True)
    assert "is gone" in refused.message
    assert world.ask(update(3, a=9)).rows_affected == 0
    assert world.ask(insert(3, a=3)).rows_affected == 1
    refused = world.ask({**update(3, expect=genid, a=9), "on_conflict": "fail"})
    assert refused.code == "40001", "the new row is another one"


def test_keys_and_unique_values_are_free_at_once(world: World) -> None:
    assert world.ask(insert(9, a=3)).code == "23505"
    world.ask({"sql": "truncate t"})
    assert world.ask(insert(9, a=3)).lsn
    assert world.ask(insert(10, a=3)).code == "23505"


def test_the_same_id_gets_the_same_answer_and_truncates_once(world: World) -> None:
    number = world.fresh_id()
    first = world.ask({"sql": "truncate t"}, number)
    world.ask(insert(1, a=1))
    assert world.ask({"sql": "truncate t"}, number) == first
    assert rows(world) == [1]


def test_parent_and_child_together(world: World) -> None:
    world.ask({"sql": U})
    assert world.ask(insert_u(1, 3)).lsn
    assert world.ask({"sql": "truncate t"}).code == "0A000"
    assert rows(world) == [0, 1, 2, 3, 4]
    assert world.ask({"sql": "truncate t, u"}).lsn
    assert rows(world) == []
    assert world.ask(insert_u(1, 3)).code == "23503"


def test_refused_while_a_job_runs(world: World) -> None:
    accepted = world.ask({"sql": "create index i on t (b)"})
    refused = world.ask({"sql": "truncate t"})
    assert refused.code == "55006"
    assert f"job {accepted.answer['job']}" in refused.message
    assert rows(world) == [0, 1, 2, 3, 4]


def test_lost_with_its_record_it_has_never_happened(world: World) -> None:
    """L4: the store's transaction is rolled back with the epoch."""
    world.lost = True
    world.put({"sql": "truncate t"})
    world.tick()
    world.lost = False
    world.node.master.close()  # type: ignore[union-attr]
    world.node.master = None
    table = world.node.catalog.resolve("t")
    assert world.node._store.row(table, (3,)) is not None
