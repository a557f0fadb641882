"""A node over its terms and records (L2, L3, L4, L6, C1, C4), and what it does beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.catalog.job import Status
from leasehold.model.records.acks import Ack
from leasehold.model.records.jobs import JobEvent
from leasehold.model.records.requests import Queue
from leasehold.replication.acknowledging import FOLLOWER_ACK_MS
from leasehold.replication.effects import (
    AckRead,
    Append,
    AppendFailed,
    AskLogIdentity,
    AskQueue,
    Became,
    LogIdentified,
    ReadQueue,
    Stop,
    StopQueues,
    Tick,
    Topic,
)
from leasehold.replication.log.truncation import COPY_ROLE, copy_name, copy_parts
from leasehold.replication.node import Node
from tests.support.replication.world import World, insert, taken_over, update


def test_both_stores_hear_whether_users_write(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[str, bool]] = []
    told: list[bool] = []
    for name, node in (("master", world.node), ("follower", world.follower)):

        def give_way(*, beside_users: bool, gentle: bool, name: str = name) -> None:
            heard.append((name, beside_users))
            told.append(gentle)

        monkeypatch.setattr(node._store, "give_way", give_way)
    world.ms += 5_000
    world.ask({"sql": "alter table t add column c text"})
    world.ms += world.master_settings.heartbeat_ms
    world.ask({"sql": "create table u (id bigint primary key)"})
    assert not heard, "a schema change alone"
    for key in range(3):
        world.ask(insert(key))
    assert sorted(heard) == [("follower", True), ("master", True)]
    world.ms += world.master_settings.users_recent_ms
    world.tick()
    world.pump()
    assert sorted(heard[2:]) == [("follower", False), ("master", False)]
    assert told == [False] * 4
    job = world.node.catalog.jobs[1]
    for node in (world.node, world.follower):
        node.catalog.put_job(replace(job, status=Status.RUNNING, settings={"gentle": 1}))
    world.tick()
    world.pump()
    assert told[4:] == [True] * 2


def test_a_store_is_tidied_while_nobody_waits_for_its_node(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name, node in (("master", world.node), ("follower", world.follower)):
        monkeypatch.setattr(node._store, "tidy", lambda name=name: calls.append(name))

    def tidied(node: Node) -> bool:
        calls.clear()
        node.tidy()
        return bool(calls)

    assert tidied(world.node)
    world.put(insert(1, a=1))
    assert not tidied(world.node), "a request waits"
    world.tick()
    assert not tidied(world.node), "a record is on its way"
    world.follower.step(world.read(world.follower.position.offset), world.now())
    assert not tidied(world.follower), "it is applied and not committed"
    master = world.node.master
    assert master is not None
    with monkeypatch.context() as behind:
        behind.setattr(master.watch, "may_answer", lambda *_: False)
        world.pump()
        assert tidied(world.follower)
        assert not tidied(world.node), "its requester waits"
    world.tick()
    assert tidied(world.node)


def test_l3_a_new_master_begins_where_the_log_says(world: World) -> None:
    world.ask(insert(1, a=1))
    heir = taken_over(world)
    asked = [effect.queue for effect in world.effects[-8:] if isinstance(effect, AskQueue)]
    assert asked == [Queue.REQUESTS, Queue.BACKFILL]
    for queue in asked:
        world.found(queue, end=9)
    starts = {e.queue: e.offset for e in world.effects[-2:] if isinstance(e, ReadQueue)}
    assert starts == {Queue.REQUESTS: 2, Queue.BACKFILL: 0}
    assert heir.role == "master"


def test_l4_an_append_of_unknown_fate_ends_the_epoch_and_nothing_is_applied(world: World) -> None:
    world.lost = True
    number = world.put(insert(1, a=1))
    world.tick()
    world.lost = False
    world.perform(world.node.step(AppendFailed("time-out"), world.now()))
    world.pump()
    assert world.node.position.epoch == 2
    assert world.answers(number) == []
    assert world.row(world.node, 1) is None
    # The queue is read again from where the log stands, and decided once.
    assert world.ask(insert(1, a=1), number).lsn == 2


def test_l4_a_record_that_arrives_after_it_was_given_up_counts_for_nobody(world: World) -> None:
    world.put(insert(1, a=1))
    world.lost = True
    before = len(world.effects)
    world.tick()
    (late,) = [e.data for e in world.effects[before:] if isinstance(e, Append)]
    world.lost = False
    world.perform(world.node.step(AppendFailed("time-out"), world.now()))
    world.pump()
    world.log.append(late)
    world.pump()
    assert world.row(world.node, 1) is None
    assert world.row(world.follower, 1) is None
    assert not any(isinstance(effect, Stop) for effect in world.effects)


def test_l6_master_and_follower_are_equal_at_equal_positions(world: World) -> None:
    for n in range(20):
        world.put(insert(n, a=n))
        world.put(update(n // 2, a={"expr": "a + 1"}))
    for _ in range(3):
        world.tick()
        world.pump()
    assert world.node.position == world.follower.position
    assert [world.row(world.node, n) for n in range(20)] == [
        world.row(world.follower, n) for n in range(20)
    ]


def test_c1_the_end_of_a_job_is_told_when_every_coherent_node_has_it(world: World) -> None:
    """Who hears that a change is done may look at any replica. The answer waits as well. What a
    job does until then is no news: `jobs` tells it."""

    def acknowledge(asked_ns: int) -> None:
        ack = Ack("far", b"far", "replicant", len(world.log), 1, 0, asked_ns, True, "", 0)
        world.perform(world.node.step(AckRead(ack), world.now()))
        world.tick()
        world.pump()

    def news() -> list[int]:
        return [s.record.job_id for s in world.sent if isinstance(s.record, JobEvent)]

    world.ms += 200  # so that asks have gathered
    acknowledge(asked_ns=7)
    assert world.node.master is not None
    assert world.node.master.watch.coherent(world.now().mono_ns) == {"far"}
    world.put({"sql": "alter table t add column c text"})
    world.tick()
    world.pump()
    assert world.node.catalog.jobs
    acknowledge(asked_ns=0)
    world.put({"job": 1, "action": "cancel"})
    world.tick()
    world.pump()
    assert world.node.catalog.jobs[1].status.ended
    world.tick()
    assert news() == []
    acknowledge(asked_ns=0)
    assert news() == [1]


def test_c4_who_is_coherent_is_not_known_while_leases_of_a_deposed_master_may_run(
    world: World,
) -> None:
    """Else a verification would go by the new master alone, and readers by nodes that differ."""
    master = world.node.master
    assert master is not None
    assert master.known_coherent(world.now()) == frozenset()
    master.watch.serve_from_ns = world.now().mono_ns + 1
    assert master.known_coherent(world.now()) is None


def test_a_role_change_is_told(world: World) -> None:
    became = [effect for effect in world.effects if isinstance(effect, Became)]
    assert [(b.role, b.epoch) for b in became] == [("master", 1)]


def test_l2_a_log_made_anew_ends_master_and_follower_and_their_leases(world: World) -> None:
    """Idle, or with a record on its way that is never read back: nothing more is decided."""
    for node in (world.node, world.follower):
        assert node.step(LogIdentified("demo.log", "first"), world.now()) == []
    world.put(insert(1, a=1))
    world.lost = True
    world.tick()
    assert world.node.master is not None
    assert world.node.master.in_flight
    for node in (world.node, world.follower):
        before = node.position
        stopped = node.step(LogIdentified("demo.log", "second"), world.now())
        assert stopped[0] == StopQueues()
        assert isinstance(stopped[1], Stop)
        assert "'demo.log' was deleted and recreated" in stopped[1].error.message
        assert node.master is None
        assert not node.lease.holds(world.now().mono_ns)
        assert node._store.position() == before
        assert node.step(Tick(), world.now()) == []


def test_which_log_it_is_is_asked_now_and_then(world: World) -> None:
    def asked() -> int:
        return sum(isinstance(effect, AskLogIdentity) for effect in world.effects)

    before = asked()
    for _ in range(5):
        world.ms += 2_000
        world.tick()
        world.tick()
    assert asked() == before + 5


def test_a_node_whose_store_is_copied_acknowledges_for_the_copy(world: World) -> None:
    """Who takes the copy can't yet; the log is kept for it, and no answer waits for it."""
    world.ask(insert(1, a=1))
    copying = {"r8": 2, "": 1}
    world.node.acknowledger.copies = lambda: copying

    def acks() -> list[Ack]:
        world.sent.clear()
        world.ms += FOLLOWER_ACK_MS
        world.tick()
        return [send.record for send in world.sent if send.topic == Topic.ACKS]

    own, copy, other = acks()
    assert (own.node, own.offset) == ("m1", world.node.position.offset)
    assert (copy.node, copy.role, copy.offset) == (copy_name("m1", "r8"), COPY_ROLE, 2)
    assert (other.node, other.offset) == (copy_name("m1"), 1)
    assert copy_parts(copy.node) == ("m1", "r8")
    assert copy_parts(other.node) == ("m1", "")
    assert not copy.serves
    assert not copy.asked_ns
    assert world.node.master is not None
    known = len(world.node.master.watch._nodes)
    world.node.step(AckRead(copy), world.now())
    assert len(world.node.master.watch._nodes) == known, "it is no node that could be waited for"
    copying.clear()
    assert [ack.node for ack in acks()] == ["m1"]
