"""A master that is told to stop hands its term over: it decides and answers what it has, begins
nothing more, and says where its records end (L3, L7)."""

from __future__ import annotations

import pytest

from leasehold.model.records.acks import Ack
from leasehold.model.records.log import Claim
from leasehold.model.records.requests import Queue
from leasehold.replication.coherency import GIVEN_UP
from leasehold.replication.effects import (
    AckRead,
    Append,
    EndRequests,
    PauseQueue,
    QueueFound,
    ReadQueue,
    Send,
    Topic,
)
from leasehold.replication.master.queue_topics import Found
from leasehold.replication.node import Node
from tests.support.replication.world import CODEC, TABLE, World, insert
from tests.unit.replication.test_backfill_queue import ack, make_coherent


def leave(world: World) -> None:
    world.perform(world.node.leave())


def has_left(world: World) -> bool:
    return world.node.has_left


def farewell(world: World) -> Ack:
    """What the node says last."""
    (said,) = [
        effect.record
        for effect in world.node.give_up_lease(world.now())
        if isinstance(effect, Send) and effect.topic == Topic.ACKS
    ]
    assert isinstance(said, Ack)
    return said


def standby(world: World) -> Node:
    """One that has read all of the log."""
    node = world.make("m2", candidate=True)
    for offset in range(len(world.log)):
        node.step(world.read(offset), world.now())
    return node


def claims(node: Node, said: Ack, world: World) -> list[Claim]:
    return [
        record
        for effect in (*node.step(AckRead(said), world.now()), *node._tick(world.now()))
        if isinstance(effect, Append) and isinstance(record := CODEC.decode_log(effect.data), Claim)
    ]


def test_who_leaves_decides_what_it_has_and_begins_nothing_more(world: World) -> None:
    world.ask({"sql": TABLE})
    first = world.put(insert(1, a=1))
    world.tick()  # its record is on its way
    second = world.put(insert(2, a=1))
    leave(world)
    assert [effect for effect in world.effects if isinstance(effect, EndRequests)]
    paused = {effect.queue for effect in world.effects if isinstance(effect, PauseQueue)}
    assert paused == {Queue.REQUESTS, Queue.BACKFILL}
    assert not has_left(world)
    for _ in range(3):
        world.pump()
        world.tick()
    assert world.answers(first)[0].lsn
    assert world.answers(second)[0].lsn
    assert has_left(world)
    end = len(world.log)
    world.ms += 10_000
    world.tick()
    world.tick()
    assert len(world.log) == end, "no heartbeat either: the next record is the next master's"


def test_l7_who_leaves_waits_for_the_nodes_that_its_answers_wait_for(world: World) -> None:
    world.ask({"sql": TABLE})
    make_coherent(world)
    number = world.put(insert(1, a=1))
    world.tick()
    leave(world)
    world.pump()
    world.tick()
    assert not world.answers(number)
    assert not has_left(world)
    ack(world, len(world.log))
    world.tick()
    assert world.answers(number)[0].lsn
    assert has_left(world)


def test_a_queue_that_is_found_late_is_not_read_by_who_leaves(world: World) -> None:
    world.queues_answer = False
    leave(world)
    found = Found("demo.requests", "first", 0, 0)
    effects = world.node.step(QueueFound(Queue.REQUESTS, found), world.now())
    assert not [effect for effect in effects if isinstance(effect, ReadQueue)]


def test_a_standby_claims_at_once_what_is_handed_over(world: World) -> None:
    heir = standby(world)
    leave(world)
    said = farewell(world)
    assert (said.role, said.asked_ns, said.offset) == ("master", GIVEN_UP, len(world.log))
    (claim,) = claims(heir, said, world)
    assert claim == Claim(2, heir.incarnation, world.node.position.digest, "m2")


@pytest.mark.parametrize(
    "other",
    [
        {"incarnation": b"another process"},
        {"epoch": 7},
        {"asked_ns": 0},
    ],
    ids=str,
)
def test_a_standby_takes_no_other_acknowledgement_for_a_farewell(
    world: World, other: dict[str, object]
) -> None:
    heir = standby(world)
    said = farewell(world)._replace(**other)  # type: ignore[arg-type]
    assert claims(heir, said, world) == []


def test_who_is_no_master_has_nothing_to_leave(world: World) -> None:
    assert world.follower.leave() == []
    assert world.follower.has_left
