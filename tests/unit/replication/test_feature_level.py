"""The feature level of a database: how it begins, who may raise it, and who stops at it."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from leasehold.model.audit import Audited, AuditEvent
from leasehold.model.errors import LogStopped
from leasehold.model.features import NEWEST, WITHOUT_LEVEL, Feature, FeatureGate, incarnation_of
from leasehold.model.ids import INCARNATION_BYTES, format_request_id
from leasehold.model.records.acks import Ack
from leasehold.model.records.log import Decisions, LogPosition
from leasehold.model.records.requests import Queue
from leasehold.replication.coherency import CoherencySettings
from leasehold.replication.effects import AckRead, Audit, QueueRead
from leasehold.replication.log.admission import admit
from leasehold.replication.log.foreign import ForeignRecords
from leasehold.replication.node import Node
from tests.support.replication.world import CODEC, TABLE, World

SILENT_MS = 21 * CoherencySettings().duration_ms
OLDER = bytes(INCARNATION_BYTES) + bytes((WITHOUT_LEVEL,))


@pytest.fixture
def world() -> World:
    """One whose first record, a heartbeat, is read."""
    made = World()
    made.tick()
    made.pump()
    return made


def unfinalized(world: World) -> World:
    """As of a database that release 0.1.0 has begun."""
    for node in (world.node, world.follower):
        node.position = node.position._replace(feature_level=0)
    assert world.node.master is not None
    world.node.master._feature_level = 0
    return world


def ask(world: World, **fields: Any) -> Any:
    """Ask the master for something; → the outcome that is remembered of it."""
    request_id = world.fresh_id()
    body = {"id": format_request_id(request_id), "on_conflict": "fail", **fields}
    data = json.dumps(body).encode()
    offset = world.node.position.decided_through.get(Queue.REQUESTS, 0)
    world.node.step(QueueRead(Queue.REQUESTS, offset, "application/json", data), world.now())
    for _ in range(3):
        world.tick()
        world.pump()
    return world.node._store.outcome(request_id)


def say(world: World, node: str, incarnation: bytes) -> None:
    ack = Ack(node, incarnation, "replicant", 1, 1, 0, 0, False, "", 0)
    world.perform(world.node.step(AckRead(ack), world.now()))


def features(world: World) -> FeatureGate:
    assert world.node.master is not None
    return world.node.master.changes.features


def test_an_empty_database_begins_at_the_newest_level(world: World) -> None:
    """With the first record of all, which is no commit: numbers of commits begin at 1."""
    for node in (world.node, world.follower):
        assert (node.position.feature_level, node.position.lsn) == (NEWEST, 0)
    assert features(world).level == NEWEST
    ask(world, sql=TABLE)
    levels = [r.feature_level for r in map(CODEC.decode_log, world.log) if isinstance(r, Decisions)]
    assert levels[0] == NEWEST
    assert not any(levels[1:]), "only where it is news"


def test_what_the_level_permits_may_stand_in_its_own_record() -> None:
    """The first request of a database may come before its first record."""
    world = World()
    assert features(world).level == 0
    ask(world, sql=TABLE)
    first = next(r for r in map(CODEC.decode_log, world.log) if isinstance(r, Decisions))
    assert (len(first.commits), first.feature_level) == (1, NEWEST)


def test_one_of_before_that_is_there_keeps_an_empty_database_without_a_level() -> None:
    world = World()
    say(world, "r9", OLDER)
    ask(world, sql=TABLE)
    assert (world.node.position.lsn, world.node.position.feature_level) == (1, 0)


def test_a_database_of_before_has_none_until_it_is_finalized(world: World) -> None:
    """And masters of this release write all that those of before did."""
    ask(world, sql=TABLE)
    unfinalized(world)
    gate, now_ns = features(world), world.now().mono_ns
    assert [f for f in Feature if gate.is_written(f, now_ns)] == list(Feature)[:WITHOUT_LEVEL]
    for _ in range(5):
        world.ms += 1_000
        world.tick()
        world.pump()
    assert world.node.position.feature_level == 0
    outcome = ask(world, finalize=NEWEST)
    assert outcome.answer == {"level": NEWEST, "was": 0, "finalized": True}
    for node in (world.node, world.follower):
        assert node.position.feature_level == NEWEST
    assert all(gate.is_written(f, world.now().mono_ns) for f in Feature)


def audited(world: World) -> list[AuditEvent]:
    events = [effect.event for effect in world.effects if isinstance(effect, Audit)]
    return [event for event in events if event.kind is Audited.UPGRADE]


def test_a_finalization_stands_in_the_audit_log(world: World) -> None:
    """There is no way back from it, so it is kept who has asked for it; once."""
    ask(world, sql=TABLE)
    assert audited(world) == [], "nobody has asked for the level that a database begins with"
    unfinalized(world)
    for _ in range(2):
        ask(world, finalize=NEWEST)
    (event,) = audited(world)
    assert (event.outcome, event.role, event.subject) == ("ok", "leasehold", "the database")
    assert event.words == f"finalized at feature level {NEWEST}, from 0"


def test_done_again_it_changes_nothing(world: World) -> None:
    ask(world, sql=TABLE)
    outcome = ask(world, finalize=NEWEST)
    assert outcome.answer == {"level": NEWEST, "was": NEWEST, "finalized": False}
    outcome = ask(world, finalize=Feature.VIEWS)
    assert outcome.answer["level"] == NEWEST, "it never falls"
    assert world.node.position.feature_level == world.follower.position.feature_level == NEWEST


def test_it_is_refused_while_one_of_before_is_heard(world: World) -> None:
    ask(world, sql=TABLE)
    unfinalized(world)
    say(world, "r9", OLDER)
    outcome = ask(world, finalize=NEWEST)
    assert (outcome.code, outcome.lsn) == ("55000", 0)
    assert "does not read features up to" in outcome.message
    assert world.node.position.feature_level == 0
    say(world, "r8", incarnation_of(bytes(INCARNATION_BYTES)))
    world.ms += SILENT_MS
    assert world.node.master is not None
    world.node.master.watch.sweep(world.now().mono_ns)
    assert ask(world, finalize=NEWEST).answer["finalized"], "it is gone"


def test_who_comes_later_and_is_of_before_keeps_what_is_new_from_being_written(
    world: World,
) -> None:
    """It stops at the level; until then nothing more is written that it could not read."""
    ask(world, sql=TABLE)
    assert features(world).is_written(NEWEST, world.now().mono_ns)
    say(world, "r9", OLDER)
    assert not features(world).is_written(NEWEST, world.now().mono_ns)
    assert features(world).is_written(WITHOUT_LEVEL, world.now().mono_ns)


def test_a_master_of_before_the_command_refuses(world: World) -> None:
    outcome = ask(world, finalize=NEWEST + 1)
    assert (outcome.code, outcome.lsn) == ("55000", 0)
    assert f"the master reads features up to {NEWEST}" in outcome.message


def test_a_reader_stops_where_a_level_is_that_it_does_not_know(world: World) -> None:
    """At that record and at once: what it can't read stands behind it. It applies nothing of it."""
    record = Decisions(1, b"i", 1, b"", 1, (), (), {}, 0, (), feature_level=NEWEST + 2)
    position = LogPosition(offset=7, epoch=1, incarnation=b"i")
    with pytest.raises(
        LogStopped, match=f"level {NEWEST + 2}, says the log at offset 7"
    ) as stopped:
        ForeignRecords().judge(admit, position, 7, record, b"digest", 0)
    assert "Install the release of the other nodes" in stopped.value.message
    known = record._replace(feature_level=NEWEST)
    _, after = ForeignRecords().judge(admit, position, 7, known, b"digest", 0)
    assert after.feature_level == NEWEST


def test_a_node_does_not_start_with_a_store_of_a_level_that_it_does_not_know(
    world: World,
) -> None:
    """As of a release that was taken back after the upgrade was finalized."""
    store = world.follower._store
    store.begin()
    store.commit(store.position()._replace(feature_level=NEWEST + 1))
    with pytest.raises(LogStopped, match="says the store of node r1"):
        Node(world.follower._settings, store, CODEC, b"i", itertools.count(1), world.now())


def test_the_level_outlasts_the_master(world: World) -> None:
    """It is in the log, and in the position that a store keeps of it."""
    for node in (world.node, world.follower):
        assert node._store.position().feature_level == NEWEST
