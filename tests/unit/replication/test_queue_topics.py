"""L3: the log says from which offset of which topic a new master takes requests."""

from __future__ import annotations

import itertools

import pytest

from leasehold.model.records.requests import Queue
from leasehold.replication.effects import (
    AskQueue,
    AskQueueIdentity,
    DeleteBelow,
    QueueIdentified,
    QueueLost,
    ReadQueue,
    Warn,
)
from tests.support.replication.world import World, insert, taken_over


def warnings(world: World) -> list[str]:
    said = [effect.words for effect in world.effects if isinstance(effect, Warn)]
    world.effects.clear()
    return said


def reads(world: World) -> dict[Queue, int]:
    return {e.queue: e.offset for e in world.effects if isinstance(e, ReadQueue)}


def to_the_next_term(world: World) -> None:
    """As if its master had been deposed: another one begins from what the log says."""
    heir = taken_over(world)
    assert heir.role == "master"
    world.effects.clear()


def heartbeat(world: World) -> None:
    world.ms += 300
    world.tick()
    world.pump()
    world.tick()


def test_l3_the_log_says_which_topics_its_offsets_count_in(world: World) -> None:
    """Once in a term where it is news, and on every node; an old log says nothing of it."""
    told = {"requests": "first", "backfill": "first"}
    assert world.node.position.queue_topics == world.follower.position.queue_topics == told
    assert world.follower._store.position().queue_topics == told
    assert world.node.position.decided_through == {"requests": 1, "backfill": 0}
    world.ask(insert(1, a=1))
    heartbeat(world)
    to_the_next_term(world)
    for queue in Queue:
        world.found(queue, topic_id=told[queue.value], end=2)
    assert reads(world) == {Queue.REQUESTS: 2, Queue.BACKFILL: 0}
    heartbeat(world)
    assert [record.queue_topics for record in world.decided() if record.queue_topics] == [told]
    assert warnings(world) == []


def test_l3_a_queue_that_was_made_anew_is_read_from_its_begin_and_it_is_said(world: World) -> None:
    """By the next master, and by all to come: what stands below the old offset is undecided."""
    world.ask(insert(1, a=1))
    world.ask(insert(2, a=1))
    to_the_next_term(world)
    world.found(Queue.REQUESTS, topic_id="second", first=0, end=7)
    assert reads(world) == {Queue.REQUESTS: 0}
    (words,) = warnings(world)
    assert "'demo.requests'" in words
    assert "deleted and recreated" in words
    assert "up to offset 3" in words
    assert "recover-a-lost-log" in words
    heartbeat(world)
    assert world.node.position.decided_through["requests"] == 0
    assert world.node.position.queue_topics["requests"] == "second"
    world.offset = itertools.count()
    assert world.ask(insert(3, a=3)).lsn == 4
    assert world.follower.position.decided_through["requests"] == 1
    to_the_next_term(world)
    world.found(Queue.REQUESTS, topic_id="second", end=7)
    assert reads(world) == {Queue.REQUESTS: 1}
    assert warnings(world) == []


@pytest.mark.parametrize("queue", list(Queue))
def test_l3_undecided_records_that_were_deleted_are_counted_aloud(
    world: World, queue: Queue
) -> None:
    to_the_next_term(world)
    decided = world.node.position.decided_through[queue]
    world.found(queue, first=decided + 12, end=decided + 20)
    assert reads(world) == {queue: decided + 12}
    (words,) = warnings(world)
    assert "12 offsets in between were deleted before they were decided" in words
    heartbeat(world)
    assert world.node.position.decided_through[queue] == decided + 12


def test_l3_a_queue_that_is_shorter_than_what_was_decided_of_it(world: World) -> None:
    """A log of before does not know its id; a broker that lost its tail keeps it."""
    world.ask(insert(1, a=1))
    world.ask(insert(2, a=2))
    to_the_next_term(world)
    world.found(Queue.REQUESTS, topic_id="", end=1)
    assert reads(world) == {Queue.REQUESTS: 0}
    (words,) = warnings(world)
    assert "ends at offset 1, and the log has decided it up to 3" in words
    heartbeat(world)
    assert world.node.position.decided_through[Queue.REQUESTS] == 0
    assert world.node.position.queue_topics[Queue.REQUESTS] == "first"


@pytest.mark.parametrize("event", ["identity", "offset"])
def test_l3_a_master_in_office_whose_queue_is_gone_begins_a_new_term(
    world: World, event: str
) -> None:
    world.queues_answer = False
    topic = "demo.requests"
    for same in ("first", ""):
        effects = world.node.step(QueueIdentified(Queue.REQUESTS, topic, same), world.now())
        assert effects == [DeleteBelow(Queue.REQUESTS, 1)]
    world.raw(b"{}")
    world.effects.clear()
    lost = (
        QueueIdentified(Queue.REQUESTS, topic, "second")
        if event == "identity"
        else QueueLost(Queue.REQUESTS, topic)
    )
    epoch = world.node.position.epoch
    world.perform(world.node.step(lost, world.now()))
    (words,) = warnings(world)
    assert "1 messages of it that were read and not decided" in words
    world.pump()
    assert world.node.position.epoch == epoch + 1
    assert world.node.role == "master"
    assert sum(isinstance(effect, AskQueue) for effect in world.effects) == 2
    # For a deposed master it is no news.
    assert world.follower.step(lost, world.now()) == []


def test_l3_what_is_decided_is_deleted_in_the_topic_that_was_looked_at(world: World) -> None:
    """A deletion by offset in a topic that was recreated would take undecided requests away."""
    world.ask(insert(1, a=1))
    to_the_next_term(world)
    same = QueueIdentified(Queue.REQUESTS, "demo.requests", "second")
    assert world.node.step(same, world.now()) == [], "it was not looked at before"
    world.found(Queue.REQUESTS, topic_id="second", end=2)
    assert world.node.step(same, world.now()) == [], "the log does not say so yet"
    heartbeat(world)
    world.offset = itertools.count()
    world.ask(insert(2, a=1))
    world.effects.clear()
    world.ms += 5_000
    world.tick()
    asked = [effect.queue for effect in world.effects if isinstance(effect, AskQueueIdentity)]
    assert asked == [Queue.REQUESTS]
    assert not any(isinstance(effect, DeleteBelow) for effect in world.effects)
    world.pump()
    assert world.node.step(same, world.now()) == [DeleteBelow(Queue.REQUESTS, 1)]


def test_a_queue_that_was_not_found_is_asked_for_again(world: World) -> None:
    to_the_next_term(world)
    world.found(Queue.BACKFILL)
    world.effects.clear()
    for _ in range(3):
        world.ms += 1_000
        world.tick()
        world.pump()
    asked = [effect.queue for effect in world.effects if isinstance(effect, AskQueue)]
    assert asked == [Queue.REQUESTS] * 3
    world.found(Queue.REQUESTS)
    world.found(Queue.REQUESTS, first=9)
    assert reads(world) == {Queue.REQUESTS: 0}, "once, and the topic begins there"
