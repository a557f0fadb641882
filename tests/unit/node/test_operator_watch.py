"""Goal: what an operator must know is said when it begins and when it ends, and not all the time.

Method: conditions by hand under a clock of ours; a watch on a node without Kafka.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from leasehold.adapters.kafka import client as kafka_client
from leasehold.adapters.os.live_objects import LiveObjects
from leasehold.model.ports import Now
from leasehold.model.records.log import Grant
from leasehold.node.conditions import EVERY_NS, Condition
from leasehold.node.operator_watch import OperatorWatch
from leasehold.replication.effects import DiskSeen
from leasehold.replication.fast_path.state_machine import Pause
from leasehold.replication.node import Node
from leasehold.replication.node_settings import NodeSettings
from tests.support.memory_store.store import MemoryStore
from tests.support.replication.world import CODEC, World, insert

S = 1_000_000_000
NO_PATH: Any = SimpleNamespace(path=None)


def said(condition: Condition, *noted: tuple[float, bool]) -> list[str]:
    words = [condition.note(int(at_s * S), holds=holds) for at_s, holds in noted]
    return [each for each in words if each]


def test_begin_and_end_are_told_once() -> None:
    condition = Condition("it is away", "it is there")
    noted = ((1, False), (2, True), (3, True), (4.5, False), (5, False))
    assert said(condition, *noted) == ["it is away", "it is there, after 2.5 s"]


def test_what_comes_and_goes_is_told_once_a_minute_with_its_number() -> None:
    condition = Condition("it is away", "it is there")
    first = said(condition, (0, True), (1, False))
    assert first == ["it is away", "it is there, after 1.0 s"]
    assert said(condition, *((at, bool(at % 2)) for at in range(2, 40))) == []
    later = EVERY_NS / S + 1
    (words,) = said(condition, (40, False), (later, True))
    assert words == "it is away (it had come 19 times more since it was told)"


def test_what_lasts_through_the_minute_is_told_then() -> None:
    condition = Condition("it is away", "it is there")
    said(condition, (0, True), (1, False))
    assert said(condition, (2, True), (30, True)) == []
    assert len(said(condition, (EVERY_NS / S + 1, True))) == 1


def test_what_is_over_soon_is_not_told() -> None:
    condition = Condition("it is away", "it is there", after_ns=10 * S)
    assert said(condition, (0, True), (9, True), (9.5, False)) == []
    assert said(condition, (20, True), (31, True)) == ["it is away"]


@pytest.fixture(autouse=True)
def _no_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests' clients may live still, and have no broker."""
    monkeypatch.setattr(kafka_client, "LIVE", LiveObjects())


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return caplog.messages


def serving_node() -> Node:
    settings = NodeSettings("r1", candidate=False, serving=True)
    return Node(settings, MemoryStore(), CODEC, b"r1", itertools.count(1), Now(0, 0))


def test_coherency_that_is_lost_is_told_but_not_that_a_start_is_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = serving_node()
    watch = OperatorWatch(node, NO_PATH)
    watch.look(S)
    assert caplog.messages == []
    node.lease.granted(Grant("r1", b"r1", node.lease.ask(2 * S), 500))
    watch.look(2 * S)
    watch.look(3 * S)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "no longer coherent" in caplog.messages[0]
    node.lease.granted(Grant("r1", b"r1", node.lease.ask(4 * S), 500))
    watch.look(4 * S)
    assert caplog.messages[1] == "this node is coherent again, after 1.0 s"


def test_an_append_that_takes_more_than_a_second_is_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    watch = OperatorWatch(world.node, NO_PATH)
    world.put(insert(1, a=1))
    world.tick()  # its record is on its way
    at_ns = world.ms * 1_000_000
    watch.look(at_ns + S // 2)
    assert caplog.messages == []
    watch.look(at_ns + 2 * S)
    assert len(caplog.messages) == 1
    assert "more than 1 s" in caplog.messages[0]
    world.ms += 2_000
    world.pump()
    watch.look(at_ns + 3 * S)
    assert "takes records again" in caplog.messages[1]


def test_a_ledger_that_is_away_is_told(caplog: pytest.LogCaptureFixture) -> None:
    away = True
    watch = OperatorWatch(serving_node(), NO_PATH, lambda: away)
    watch.look(S)
    away = False
    watch.look(2 * S)
    assert len(caplog.messages) == 2
    assert "does not answer" in caplog.messages[0]


def test_a_fast_path_is_told_of_when_it_stays_away(caplog: pytest.LogCaptureFixture) -> None:
    node = serving_node()
    watch = OperatorWatch(node, NO_PATH)
    path = node.acknowledger.path
    for at_s in range(1, 45):
        path.leave(at_s * S, Pause.FAULT)
        watch.look(at_s * S)
    assert len(caplog.messages) == 1
    assert "acknowledgements" in caplog.messages[0]


def test_a_disk_that_is_nearly_full_is_told_and_that_writes_are_refused(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    mib, whole = 1 << 20, 100 << 30
    watch = OperatorWatch(world.node, NO_PATH)
    for at_s, free in ((1, 500 * mib), (20, 90 * mib), (40, 50 << 30)):
        world.node.step(DiskSeen(free, whole, 0, 0), Now(0, 0))
        watch.look(at_s * S)
    nearly, refuses, room, takes = caplog.messages
    assert "nearly full: 500 MiB are free" in nearly
    assert "refuses" in refuses
    assert "90 MiB are free on the disk of node m1's store" in refuses
    assert "has room again" in room
    assert "takes all writes again" in takes
