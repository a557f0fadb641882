"""What a node wants is done by its driver, and what has come is an event: alike on Kafka and in
memory. The driver here writes down what it is told."""

from __future__ import annotations

from itertools import count
from typing import Any, Final

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.errors import LogStopped
from leasehold.model.ports import Now
from leasehold.model.records.acks import Ack
from leasehold.model.records.log import Unreadable
from leasehold.model.records.requests import Queue, ResultBatch
from leasehold.model.topics import Topics
from leasehold.node.node_topics import NodeTopics
from leasehold.node.runner import NodeRunner
from leasehold.replication import effects as e
from leasehold.replication.master.queue_topics import Found
from leasehold.replication.node import Node
from leasehold.replication.node_settings import NodeSettings
from tests.support.memory_store.store import MemoryStore

CODEC: Final = MessagePackCodec()
NOW: Final = Now(1_000_000_000, 1_750_000_000_000_000)
TOPICS: Final = NodeTopics(Topics("demo"))
LOG, QUEUE = TOPICS.log, TOPICS.of_queue[Queue.REQUESTS]
TERM: Final = (3, b"incarnation")
ACK: Final = Ack("r1", b"r1", "replicant", 5, 3, 2, 0, True, "", 0)
SEND: Final = e.Send(e.Topic.ACKS, 0, b"r1", ACK, 0)
NOTICES: Final = (e.Warn("words"), e.Became("master", 3, "why"), e.ClockNotice(True, "words"))
ERROR: Final = LogStopped("L2: a gap")


class Driver:
    """Whatever it is told, with the arguments."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.told.append((name, *arguments))


class Runner(NodeRunner):
    def __init__(self, *, candidate: bool = False) -> None:
        settings = NodeSettings("m1" if candidate else "r1", candidate, not candidate)
        node = Node(settings, MemoryStore(), CODEC, b"r1", count(1), NOW)
        self.driver: Any = Driver()
        self.events: list[e.Event] = []
        super().__init__(node, settings, TOPICS, self.driver, self.events.append)


@pytest.mark.parametrize(
    ("effect", "told"),
    [
        (e.Wake(7), [("wake", 7)]),
        (e.Append(b"data"), [("append", b"data")]),
        (SEND, [("send", SEND)]),
        (e.PublishAck(9, *TERM, ACK), [("publish_ack", 9, TERM, CODEC.encode(ACK))]),
        (e.PublishAnswers(b"q", ResultBatch(())), [("publish_answers", b"q", ResultBatch(()))]),
        (e.BeginTerm(*TERM), [("begin_term", TERM)]),
        (e.StopQueues(), [("end_term",), *(("stop", topic) for topic in TOPICS.queues)]),
        (e.CallLedger("token", "command"), [("call_ledger", "token", "command")]),
        (e.AskLogEnd(), [("find", LOG)]),
        (e.AskQueue(Queue.REQUESTS), [("find", QUEUE)]),
        (e.AskLogIdentity(), [("identify", LOG)]),
        (e.AskQueueIdentity(Queue.REQUESTS), [("identify", QUEUE)]),
        (e.ReadQueue(Queue.REQUESTS, 4), [("read", QUEUE, 4)]),
        (e.PauseQueue(Queue.REQUESTS), [("pause", QUEUE)]),
        (e.ResumeQueue(Queue.REQUESTS), [("resume", QUEUE)]),
        (e.DeleteBelow(Queue.REQUESTS, 4), [("delete_below", QUEUE, 4)]),
        (e.DeleteLogBelow(4), [("delete_below", LOG, 4)]),
        *((notice, [("report", notice)]) for notice in NOTICES),
        (e.Stop(ERROR), [("end", ERROR)]),
    ],
)
def test_each_effect_is_carried_out(effect: e.Effect, told: list[tuple[Any, ...]]) -> None:
    runner = Runner()
    runner.perform([effect], NOW)
    assert runner.driver.told == told


@pytest.mark.parametrize(("given", "taken"), [(None, "application/json"), ("x/y", "x/y")])
def test_a_request_without_a_content_type_is_json(given: str | None, taken: str) -> None:
    runner = Runner()
    runner.take(QUEUE, 4, given, b"{}", NOW)
    assert runner.events == [e.QueueRead(Queue.REQUESTS, 4, taken, b"{}")]


def test_what_was_found_out_of_a_topic_is_told_of_the_log_or_of_its_queue() -> None:
    """Of the log first which it is: a Claim in another one would stop who reads that (L1)."""
    log, queue = Found(LOG, "id", 1, 9), Found(QUEUE, "id", 1, 9)
    assert TOPICS.found(log) == (e.LogIdentified(LOG, "id"), e.LogEnd(9))
    assert TOPICS.found(queue) == (e.QueueFound(Queue.REQUESTS, queue),)
    assert TOPICS.identified(LOG, "id") == e.LogIdentified(LOG, "id")
    assert TOPICS.identified(QUEUE, "id") == e.QueueIdentified(Queue.REQUESTS, QUEUE, "id")


def test_bytes_that_are_no_record_are_handed_on_and_stop_nobody() -> None:
    """Whether they are foreign the node finds out by what comes behind them (L2)."""
    runner = Runner()
    runner.take(LOG, 0, None, b"\xc1", NOW)
    assert [told for told in runner.driver.told if told[0] == "end"] == []
    (read,) = runner.events
    assert isinstance(read, e.LogRead)
    assert isinstance(read.record, Unreadable)


def test_bytes_that_are_no_acknowledgement_are_passed_over() -> None:
    runner = Runner(candidate=True)
    runner.take(TOPICS.acks, 4, None, b"\xc1", NOW)
    runner.receive_ack(b"\xc1", NOW)
    assert runner.events == []
    runner.take(TOPICS.acks, 5, None, CODEC.encode(ACK), NOW)
    runner.receive_ack(CODEC.encode(ACK), NOW)
    assert runner.events == [e.AckRead(ACK), e.AckReceived(ACK)]


def test_only_who_follows_receives_the_log_and_reads_it_where_that_is_doubted() -> None:
    assert Runner(candidate=True).intake.path is None
    runner = Runner()
    assert runner.intake.path is not None
    runner.perform([e.ReadLog(5)], NOW)
    assert runner.intake.path.next_offset == 5


@pytest.mark.parametrize("puts_off", [False, True])
def test_what_a_tick_has_put_off_comes_when_its_effects_are_carried_out(
    puts_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An acknowledgement is on its way before what would hold it up is begun."""
    runner = Runner()
    done: list[Any] = []

    def step(event: e.Event, now: Now) -> list[e.Effect]:
        done.append((type(event), [told[0] for told in runner.driver.told]))
        runner.node.puts_off = puts_off and isinstance(event, e.Tick)
        return [SEND] if isinstance(event, e.Tick) else [e.Wake(7)]

    monkeypatch.setattr(runner.node, "step", step)
    runner.step(e.Tick(), NOW)
    behind = [(e.TickPerformed, ["send"])] if puts_off else []
    assert done == [(e.Tick, []), *behind]
    assert runner.driver.told == [("send", SEND), *([("wake", 7)] if puts_off else [])]
