"""What is deleted is gone for whoever needs it next: he is told so, and reads on behind it nowhere.

Goal: a node for which the log is no longer kept (L11) ends with the reason, begins from a copy and
is coherent again; it takes no record behind the gap (L2). Method: a stage whose log is deleted as
soon as it may be, and a replicant that stands still for longer than it is waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final
from unittest.mock import patch

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.in_process.bus import MemoryBus, Message, Scheduler
from leasehold.model.features import incarnation_of
from leasehold.model.records.acks import Ack
from leasehold.model.topics import Topics
from leasehold.replication.effects import Stop, Warn
from leasehold.replication.log.foreign import WAIT_MS
from leasehold.replication.log.truncation import COPY_ROLE, copy_name
from tests.simulation.harm import Harm
from tests.simulation.interleavings import TRUNCATION, acks_for_the_changefeed, serve_copies
from tests.simulation.log_readers import LogReaders
from tests.simulation.plan import FAST_LOG, SHAPE
from tests.simulation.simulation import MS
from tests.simulation.stage import Stage

AWAY_MS: Final = TRUNCATION.away_ms + TRUNCATION.silence_ms + 500


def stage_that_deletes() -> Stage:
    """A stage on which r2 is told the log by its master, and reads nothing of it from the topic."""
    stage = Stage(master=replace(SHAPE.master, truncation=TRUNCATION), fast_log=FAST_LOG)
    acks_for_the_changefeed(stage)
    serve_copies(stage, "m1", "r1", "r2")

    def is_told() -> bool:
        runner = stage.node("r2").runner
        return runner is not None and not runner.intake.reads_topic

    write_until(stage, lambda: len(stage.coherent()) == 2 and is_told(), "r2 to be told")
    return stage


def write_until(stage: Stage, reached: Callable[[], bool], words: str) -> None:
    for value in range(200):
        if reached():
            return
        stage.settle(stage.update(1, value))
        stage.passing(20)
    raise AssertionError(f"waited in vain for {words}")


def leave_behind(stage: Stage) -> None:
    """Have r2 stand still until the log begins behind what it has; what it is told meanwhile is
    lost."""
    bus, log, r2 = stage.cluster.bus, stage.cluster.topics.log.name, stage.node("r2")
    at = stage.stores.get("r2").position().offset
    r2.pause(stage.scheduler.now_ns + 60_000 * MS)
    stage.cluster.pubsub.away = True
    stage.passing(AWAY_MS)
    write_until(stage, lambda: bus.first(log) > at + 1, "the log to be deleted")
    stage.cluster.pubsub.away = False
    r2.paused_until_ns = stage.scheduler.now_ns


def test_l11_a_node_that_the_log_is_not_kept_for_begins_from_a_copy() -> None:
    stage = stage_that_deletes()
    leave_behind(stage)
    r2 = stage.node("r2")
    stage.until(lambda: any(isinstance(event, Stop) for event in r2.history), "r2 to stop")
    (stop,) = (event for event in r2.history if isinstance(event, Stop))
    assert "what lies between was deleted" in stop.error.message
    stage.until(lambda: "r2" in stage.coherent(), "r2")
    assert any("r2 will start from a snapshot of m1" in line for line in stage.history)
    stage.settle(stage.update(1, 11))


def test_l2_a_node_that_reads_on_behind_what_was_deleted_is_found() -> None:
    """As by a broker that passes over it: the judge takes no other stop for that one."""
    stage = stage_that_deletes()
    kept = MemoryBus.subscribe

    def passes_over(bus: MemoryBus, *arguments: object, **more: object) -> object:
        return kept(bus, *arguments, **{**more, "gone": None})  # type: ignore[arg-type]

    with patch.object(MemoryBus, "subscribe", passes_over):
        leave_behind(stage)
        with pytest.raises(Harm, match=r"^L2: r2 stops: L2"):
            stage.passing(2 * WAIT_MS)  # for so long it waits for what follows


def test_l3_a_master_whose_requests_were_deleted_gives_its_term_up() -> None:
    """The next one looks where the queue begins, and goes on there. (What is deleted here is
    somebody's noise: a request would be lost.)"""
    stage = Stage()
    bus, requests, m1 = stage.cluster.bus, stage.cluster.topics.requests.name, stage.node("m1")
    bus.append(requests, 0, b"", b"\xc1")
    bus.delete_below(requests, 0, bus.end(requests))  # it is on its way to m1
    stage.until(lambda: stage.reference.position.epoch == 2, "another term")
    warnings = [event.words for event in m1.history if isinstance(event, Warn)]
    assert any(requests in words for words in warnings), warnings
    stage.settle(stage.update(2, 22))


def test_l2_a_changefeed_that_the_log_begins_behind_ends_with_words() -> None:
    """It has no copy to begin from, and publishes nothing of what comes behind the gap."""
    stage = Stage()
    feed, log = stage.cluster.changefeed, stage.cluster.topics.log.name
    feed.crash()
    for value in range(3):
        stage.settle(stage.update(1, value))
    position = feed.position
    stage.cluster.bus.delete_below(log, 0, position.offset + 2)
    feed.start()
    stage.until(lambda: not feed.up, "its end")
    assert feed.error is not None
    assert "what lies between was deleted" in feed.error.message
    assert feed.position == position


class Reader:
    """A subscriber that keeps what it is given, and how often it is told that something is gone."""

    def __init__(self) -> None:
        self.read: list[int] = []
        self.told = 0

    def take(self, message: Message) -> None:
        self.read.append(message.offset)

    def lose(self) -> None:
        self.told += 1


def bus_with(records: int) -> tuple[Scheduler, MemoryBus]:
    scheduler = Scheduler()
    bus = MemoryBus(scheduler)
    for _ in range(records):
        bus.append("t", 0, b"", b"")
    return scheduler, bus


def test_who_begins_before_the_first_record_is_told_once_and_reads_nothing() -> None:
    scheduler, bus = bus_with(5)
    bus.delete_below("t", 0, 3)
    strict, lenient = Reader(), Reader()
    bus.subscribe("t", 0, 2, strict.take, gone=strict.lose)
    bus.subscribe("t", 0, 2, lenient.take)
    bus.append("t", 0, b"", b"")
    scheduler.run_until(scheduler.now_ns + MS)
    assert (strict.read, strict.told) == ([], 1)
    assert lenient.read == [3, 4, 5]


def test_who_is_overtaken_by_a_deletion_is_told_once_and_reads_nothing_behind_it() -> None:
    scheduler, bus = bus_with(3)
    reader = Reader()
    delays = iter((0, 5, 5, 5, 5))
    bus.subscribe("t", 0, 0, reader.take, lambda: next(delays), reader.lose)
    scheduler.run_until(scheduler.now_ns + 1)
    bus.append("t", 0, b"", b"")
    bus.delete_below("t", 0, 2)
    scheduler.run_until(scheduler.now_ns + MS)
    assert (reader.read, reader.told) == ([0], 1)


@pytest.mark.parametrize(("role", "away_ms"), [(COPY_ROLE, 300), ("replicant", 900)])
def test_l11_who_looks_on_finds_what_is_deleted_too_early(role: str, away_ms: int) -> None:
    """Below a copy that is taken, and below what a reader has; each for its own time."""
    settings = replace(TRUNCATION, away_ms=900, copy_away_ms=300, silence_ms=200)
    scheduler, codec, topics = Scheduler(), MessagePackCodec(), Topics("db")
    bus, log = MemoryBus(scheduler), topics.log.name
    readers = LogReaders(bus, topics, settings, codec)
    bus.on_append = lambda topic, _, message: readers.appended(topic, message, scheduler.now_ns)
    for _ in range(20):
        bus.append(log, 0, b"", b"")
    name = copy_name("r1", "r2") if role == COPY_ROLE else "r2"
    said = Ack(name, incarnation_of(b""), role, 10, 0, 0, 0, False, "", 0)
    bus.append(topics.acks.name, 0, b"", codec.encode(said))
    bus.delete_below(log, 0, 10)
    scheduler.run_until(scheduler.now_ns + away_ms * MS)
    with pytest.raises(Harm, match=rf"^L11: .* below 11; {name}, .* at 10, needs it"):
        bus.delete_below(log, 0, 11)
    scheduler.run_until(scheduler.now_ns + 1 * MS)
    bus.delete_below(log, 0, 11)
    asked_ns = scheduler.now_ns
    for passed_ms in (1, 2):
        scheduler.run_until(asked_ns + passed_ms * MS)
        bus.append(topics.acks.name, 0, b"", codec.encode(said))
    bus.delete_below(log, 0, 12, asked_ns)
    # It says so from now on, and who hears nothing for 200 ms deletes nothing.
    for _ in range(2):
        scheduler.run_until(scheduler.now_ns + 99 * MS)
        bus.append(topics.acks.name, 0, b"", codec.encode(said))
        bus.delete_below(log, 0, 13)
    scheduler.run_until(asked_ns + (1 + 200) * MS)
    with pytest.raises(Harm, match=rf"^L11: .* below 14; {name}, .* at 10, needs it"):
        bus.delete_below(log, 0, 14)
