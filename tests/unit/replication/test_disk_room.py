"""Goal: before the disk of its store is full a master takes nothing more that needs room, takes it
again when there is some, and every node leaves while it still can.

Method: a master and a follower stepped by hand, and told what their disk has.
"""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.model.errors import StoreUnwritable
from leasehold.model.features import NEWEST
from leasehold.model.records.acks import NodeReport
from leasehold.model.records.requests import Queue
from leasehold.replication.disk_room import DiskRoom, Room, may_start
from leasehold.replication.effects import DiskSeen, QueueRead
from leasehold.sql.ddl.schema_statements import parse_statements
from tests.support.replication.world import CODEC, DISK_RESERVE_BYTES, World, insert, update

MIB = 1 << 20
WHOLE = 100 << 30
DELETE = {"table": "t", "op": "delete", "key": {"id": 1}}


def see(world: World, free_mib: int) -> None:
    world.perform(world.node.step(DiskSeen(free_mib * MIB, WHOLE, 7, 9), world.now()))


def test_the_levels_of_room_and_the_way_back() -> None:
    room = DiskRoom("m1", "0.9", 100 * MIB)
    wanted = (
        (100, Room.ENOUGH),
        (99, Room.SHORT),
        (100, Room.SHORT),  # a quarter more than the reserve is asked for
        (124, Room.SHORT),
        (125, Room.ENOUGH),
        (25, Room.SHORT),
        (24, Room.OUT),
    )
    for free_mib, level in wanted:
        room.take(DiskSeen(free_mib * MIB, WHOLE, 0, 0))
        assert room.room is level, free_mib
        assert room.is_short is (level is not Room.ENOUGH), free_mib
    assert room.is_out
    assert isinstance(room.leaving(), StoreUnwritable)


def test_a_reserve_is_a_tenth_of_a_small_disk_and_none_refuses_nothing() -> None:
    small = DiskRoom("m1", "0.9", 512 * MIB)
    small.take(DiskSeen(60 * MIB, 500 * MIB, 0, 0))
    assert (small.room, small.reserve_bytes) == (Room.ENOUGH, 50 * MIB)
    small.take(DiskSeen(49 * MIB, 500 * MIB, 0, 0))
    assert small.room is Room.SHORT
    none = DiskRoom("m1", "0.9", 0)
    none.take(DiskSeen(0, WHOLE, 0, 0))
    assert none.room is Room.ENOUGH


def test_a_node_is_started_with_half_of_its_reserve() -> None:
    assert may_start(DiskSeen(50 * MIB, WHOLE, 0, 0), 100 * MIB)
    assert not may_start(DiskSeen(50 * MIB - 1, WHOLE, 0, 0), 100 * MIB)
    assert may_start(DiskSeen(0, WHOLE, 0, 0), 0)


def test_a_master_short_of_room_refuses_what_adds_and_takes_it_again(world: World) -> None:
    assert world.ask(insert(1, a=1)).lsn
    see(world, 99)
    refused: dict[str, dict[str, Any]] = {
        "insert": insert(2, a=1),
        "update": update(1, a=2),
        "insert beside a delete": {"transaction": [DELETE, insert(2, a=1)]},
        "create table": {"sql": "create table u (id bigint primary key)"},
        "create index": {"sql": "create index i on t (a)"},
        "add column": {"sql": "alter table t add column c integer default 1"},
        "drop and create": {"sql": "drop table t; create table v (id bigint primary key)"},
    }
    for name, request in refused.items():
        met = world.ask(request)
        assert (met.code, met.lsn) == ("53100", 0), name
        assert "99 MiB are free" in met.message, name
        assert "LEASEHOLD_DISK_RESERVE_MB keeps 100 MiB" in met.message, name
    assert world.ask(DELETE).lsn, "a delete makes room"
    assert world.ask({"sql": "alter table t drop column b"}).lsn
    see(world, 124)
    assert world.ask(insert(3, a=1)).code == "53100", "not yet"
    see(world, 125)
    assert world.ask(insert(3, a=1)).lsn
    assert world.follower.position.lsn == world.node.position.lsn


def test_what_only_drops_is_known() -> None:
    frees = (
        *("drop table t", "drop index i", "drop sequence s", "drop view v", "truncate t"),
        *("alter table t drop column a", "alter table t drop constraint c, drop column a"),
        "explain create index i on t (a)",
    )
    fills = (
        *("create table t (id int primary key)", "create index i on t (a)"),
        *("alter table t drop column a, add column b int", "alter table t alter a type text"),
        *("create view v as select 1", "alter table t add unique (a)"),
    )
    room = DiskRoom("m1", "0.9", 100 * MIB)
    room.take(DiskSeen(50 * MIB, WHOLE, 0, 0))
    for text in frees:
        room.check_statements(parse_statements(text))
    for text in fills:
        with pytest.raises(Exception, match="does more than drop"):
            room.check_statements(parse_statements(text))


def test_backfills_wait_for_room(world: World) -> None:
    master = world.node.master
    assert master is not None
    waiting = QueueRead(Queue.BACKFILL, 0, "", b"a chunk")
    master._backfill.append(waiting)
    world.ms += 60_000  # no user was there lately
    see(world, 100)
    assert master._rows_to_backfill(world.now()) > 0
    see(world, 99)
    assert master._rows_to_backfill(world.now()) == 0


def test_a_node_tells_of_its_disk_and_release(world: World) -> None:
    world.tick()
    assert not reports(world), "nobody has looked yet"
    see(world, 99)
    world.tick()
    world.tick()
    (told,) = reports(world)
    assert told == NodeReport(
        "m1", "0.9", "short", 99 * MIB, WHOLE, DISK_RESERVE_BYTES, 7, 9, told.sent_us, NEWEST
    )
    assert CODEC.decode(CODEC.encode(told)) == told
    world.ms += 5_000
    world.tick()
    assert len(reports(world)) == 2


def reports(world: World) -> list[NodeReport]:
    return [each.record for each in world.sent if isinstance(each.record, NodeReport)]
