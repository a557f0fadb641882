"""Acknowledgements by the fast way: when it is taken, when the topic stands in, and what is taken
from whoever tells something (C1, C3, C4)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.ports import Now
from leasehold.model.records.acks import Ack, HoldingReport
from leasehold.model.records.log import Barrier, Claim, Decisions, Grant, LedgerRun
from leasehold.model.records.requests import Outcome, Queue, Result
from leasehold.replication.coherency import (
    GIVEN_UP,
    NODES_MAX,
    CoherencySettings,
    CoherencyWatch,
    RunningLeases,
)
from leasehold.replication.effects import (
    AckPublished,
    AckRead,
    AckReceived,
    Append,
    BeginTerm,
    Effect,
    LogRead,
    PublishAck,
    QueueRead,
    Send,
    StopQueues,
    Tick,
    Topic,
    Wake,
)
from leasehold.replication.fast_path.acks import FastAcks, FastAckSettings
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED
from leasehold.replication.master.answers import Answers
from leasehold.replication.node import Node
from leasehold.replication.node_settings import NodeSettings
from tests.models.mutants.replication import CoherencyRules, broken
from tests.support.memory_store.store import MemoryStore

MS = 1_000_000
MASTER = b"master"
SETTINGS = FastAckSettings(answer_ms=20, patience_ms=50, pause_ms=100, pause_ms_max=400)
CODEC = MessagePackCodec()
OUTCOME = Outcome(1, 1, 1, 0, final=True)


class Ways:
    """A node's side under a clock of its own, in ms."""

    def __init__(self, settings: FastAckSettings = SETTINGS) -> None:
        self.acks = FastAcks(settings)
        self.ms = 1_000
        self.epoch = 1

    def ack(self) -> tuple[int, bool]:
        """What a tick does: one that is overdue goes by the topic, else by what `choose` says."""
        number, on_topic = self.acks.choose(self.epoch, MASTER, self.ms * MS)
        if on_topic:
            self.acks.on_topic()
        return number, on_topic

    def told(self, number: int, *, heard: bool) -> None:
        self.acks.confirm(number, self.ms * MS, received=heard)

    def overdue(self) -> bool:
        if self.acks.overdue(self.ms * MS):
            self.acks.on_topic()
            return True
        return False

    def works(self) -> None:
        number, _ = self.ack()
        self.told(number, heard=True)


def test_until_a_master_was_seen_to_listen_both_ways_are_taken() -> None:
    ways = Ways()
    assert ways.ack() == (0, True)
    assert ways.ack() == (NOT_PUBLISHED, True)  # one attempt at a time
    ways.told(0, heard=True)
    assert ways.ack() == (1, False)
    assert ways.ack() == (2, False)


def test_each_epoch_has_to_show_anew_that_its_master_listens() -> None:
    ways = Ways()
    ways.works()
    ways.epoch = 2
    number, on_topic = ways.ack()
    assert number != NOT_PUBLISHED
    assert on_topic


def test_nobody_listened_then_the_topic_has_it_at_once_and_from_then_on() -> None:
    ways = Ways()
    ways.works()
    number, _ = ways.ack()
    ways.told(number, heard=False)
    assert ways.overdue()  # in the same turn
    assert not ways.overdue()
    assert ways.ack() == (NOT_PUBLISHED, True)


def test_an_outage_costs_one_wait_and_attempts_become_rare() -> None:
    ways = Ways()
    ways.works()
    lone, last, late, attempts = 0, 0, [], []
    for ms in range(1_000, 4_000):
        ways.ms = ms
        if ways.overdue():
            late.append(ms)
        if ms % 10 == 0:
            number, on_topic = ways.ack()
            lone += not on_topic
            if number != NOT_PUBLISHED:
                last = number
            if number != NOT_PUBLISHED and on_topic:
                attempts.append(ms)
    # Nobody answers: what was told until then is said again, once.
    assert late[:1] == [1_020]
    assert lone == 2
    assert not late[1:]
    gaps = [b - a for a, b in itertools.pairwise(attempts)]
    assert attempts[0] == 1_120
    assert gaps[-1] >= 400
    assert gaps == sorted(gaps)
    ways.told(last, heard=True)
    ways.ms += 1_000
    number, _ = ways.ack()
    ways.told(number, heard=True)
    assert not ways.ack()[1]


def test_a_slow_redis_is_not_waited_for_by_each_write() -> None:
    """It answers each time, and a write would wait for each answer: the topic takes 3 ms."""
    ways = Ways()
    ways.works()
    replies: dict[int, int] = {}  # number by when it comes
    alone = 0
    for ms in range(1_000, 6_000):
        ways.ms = ms
        if ms in replies:
            ways.told(replies[ms], heard=True)
        ways.overdue()
        if ms % 5 == 0:
            number, on_topic = ways.ack()
            alone += not on_topic
            if number != NOT_PUBLISHED:
                replies[ms + 30] = number
    assert alone == 4  # until the first was given up


def test_an_answer_that_comes_after_it_was_given_up_proves_nothing() -> None:
    """Else a Redis that takes 30 ms would be believed again and again, and cost 20 ms each time."""
    ways = Ways()
    ways.works()
    number, _ = ways.ack()
    assert ways.acks.due_ns() == (ways.ms + 20) * MS
    ways.ms += 20
    assert ways.overdue()
    ways.told(number, heard=True)
    assert ways.ack()[1]


def test_the_last_of_a_row_goes_by_the_topic_too() -> None:
    """A master whose connection died unnoticed is counted as a listener: it hears that later."""
    ways = Ways()
    ways.works()
    for _ in range(10):
        number, on_topic = ways.ack()
        ways.told(number, heard=True)
        assert not on_topic
        ways.ms += 49
        assert not ways.overdue()
    assert ways.acks.due_ns() == (ways.ms + 1) * MS
    ways.ms += 1
    assert ways.overdue()
    assert ways.acks.due_ns() is None
    assert not ways.ack()[1]  # it still works


def test_an_answer_stands_for_those_before_it() -> None:
    ways = Ways()
    ways.works()
    numbers = [ways.ack()[0] for _ in range(3)]
    ways.told(numbers[-1], heard=True)
    ways.ms += 49
    assert not ways.overdue()
    assert ways.acks.due_ns() == (ways.ms + 1) * MS  # of the topic for the last of a row


@pytest.mark.parametrize("epoch", [0, 1])
def test_turned_off_or_without_a_master_everything_goes_by_the_topic(epoch: int) -> None:
    ways = Ways(FastAckSettings(on=epoch == 0))
    ways.epoch = epoch
    assert ways.ack() == (NOT_PUBLISHED, True)
    assert ways.acks.due_ns() is None


# ---------------------------------------------------------------- the master's ear


def ack(offset: int, asked_ns: int = 0, incarnation: bytes = b"r1", epoch: int = 1) -> Ack:
    return Ack("r1", incarnation, "replicant", offset, epoch, 0, asked_ns, False, "", 0)


def watching() -> CoherencyWatch:
    """r1 is coherent and has applied 10."""
    watch = CoherencyWatch(CoherencySettings(), 0, RunningLeases())
    watch.take_ack(ack(10, asked_ns=1), 10, 0)
    assert watch.grants(10, 0)
    return watch


def test_c1_what_is_told_lets_answers_go_in_whatever_order_it_is_heard() -> None:
    for order in itertools.permutations(range(4)):
        watch = watching()
        heard = [
            lambda w: w.take_published(ack(12), 0),
            lambda w: w.take_published(ack(13), 0),
            lambda w: w.take_ack(ack(11), 13, 0),
            lambda w: w.take_published(ack(12), 0),
        ]
        for n, number in enumerate(order):
            heard[number](watch)
            assert watch.may_answer(12, 0) == (1 in order[: n + 1])
        assert not watch.may_answer(13, 0)


def test_c1_another_clusters_node_of_that_name_is_not_this_one() -> None:
    watch = watching()
    watch.take_published(ack(1_000, incarnation=b"elsewhere"), 0)
    assert not watch.may_answer(10, 0)
    with broken(CoherencyRules(told_by_incarnation=False)):
        watch.take_published(ack(1_000, incarnation=b"elsewhere"), 0)
    assert watch.may_answer(10, 0)


def test_nobody_comes_stays_or_returns_by_the_fast_way() -> None:
    watch = watching()
    watch.take_ack(ack(0, incarnation=b"r1, restarted"), 10, 0)
    for n in range(NODES_MAX):
        watch.take_published(ack(1, incarnation=n.to_bytes(16, "big")), 0)
    watch.take_ack(ack(10, asked_ns=2, incarnation=b"r1, again"), 10, 1)  # there is room for it
    assert watch.grants(10, 1) == (Grant("r1", b"r1, again", 2, 500),)
    # Given up by the topic: a late word by the fast way does not bring it back.
    watch.take_ack(ack(10, asked_ns=GIVEN_UP, incarnation=b"r1, again"), 10, 2)
    watch.take_published(ack(11, incarnation=b"r1, again"), 3)
    watch.take_ack(ack(10, asked_ns=GIVEN_UP), 10, 2)
    assert not watch.coherent(4)
    # Not heard of by the topic for long: forgotten, whatever is told.
    late_ns = 20 * 500 * MS + 3
    watch.take_published(ack(12), late_ns - 1)
    watch.sweep(late_ns)
    assert not watch._nodes


# ---------------------------------------------------------------- a node, stepped by hand


class Pair:
    """A candidate that is master of epoch 1 and a replicant that serves; records by hand."""

    def __init__(self) -> None:
        self.ms = 1_000
        self.log: list[bytes] = []
        self.m1 = self._node("m1", candidate=True)
        self.r1 = self._node("r1", candidate=False)
        claim = Claim(1, b"m1", b"", "m1")
        self.log.append(CODEC.encode(claim))
        self.began = self.deliver(self.m1)
        self.deliver(self.r1)

    def _node(self, name: str, *, candidate: bool) -> Node:
        settings = NodeSettings(
            name, candidate=candidate, serving=not candidate, fast_acks=SETTINGS
        )
        ids = itertools.count(1)
        return Node(settings, MemoryStore(), CODEC, name.encode(), ids, self.now())

    def now(self) -> Now:
        return Now(self.ms * MS, (1_700_000_000_000 + self.ms) * 1_000)

    def deliver(self, node: Node) -> list[Effect]:
        effects: list[Effect] = []
        while node.position.offset < len(self.log):
            data = self.log[node.position.offset]
            read = LogRead(node.position.offset, CODEC.decode_log(data), CODEC.digest(data))
            effects += node.step(read, self.now())
        return effects

    def tick(self, node: Node) -> list[Effect]:
        effects = node.step(Tick(), self.now())
        self.log += [effect.data for effect in effects if isinstance(effect, Append)]
        return effects

    def another_record(self) -> None:
        """A heartbeat of the master's, read by all; the replicant has not ticked."""
        self.ms += 1
        while not any(isinstance(e, Append) for e in self.tick(self.m1)):
            self.ms += 1
        self.deliver(self.m1)
        self.deliver(self.r1)


def acks_of(effects: list[Effect]) -> list[Ack]:
    return [e.record for e in effects if isinstance(e, Send) and e.topic == Topic.ACKS]


def tells_of(effects: list[Effect]) -> list[PublishAck]:
    return [e for e in effects if isinstance(e, PublishAck)]


@pytest.fixture
def pair() -> Pair:
    """The replicant has found that the master listens, and has just renewed."""
    made = Pair()
    made.tick(made.r1)
    made.r1.acknowledger._acked_offset = -1
    (told,) = tells_of(made.tick(made.r1))
    made.r1.step(AckPublished(told.number, True), made.now())
    return made


def quick(pair: Pair) -> None:
    """A record now, without the heartbeat's pause."""
    assert pair.m1.master is not None
    pair.m1.master._appended_ns = -(10**12)
    pair.another_record()


def test_a_plain_acknowledgement_is_told_an_ask_goes_by_the_topic(pair: Pair) -> None:
    quick(pair)
    effects = pair.tick(pair.r1)
    (told,) = tells_of(effects)
    assert (told.epoch, told.incarnation) == (1, b"m1")
    assert told.record.offset == 2
    assert told.record.asked_ns == 0
    assert not acks_of(effects)
    pair.ms += 200
    effects = pair.tick(pair.r1)
    (renewed,) = acks_of(effects)
    assert renewed.asked_ns
    assert renewed.offset == 2
    assert not tells_of(effects)


def test_c1_nothing_is_acknowledged_that_readers_do_not_see_yet(pair: Pair) -> None:
    """News of what was told come between ticks, when a record may be applied and not committed."""
    quick(pair)
    (told,) = tells_of(pair.tick(pair.r1))
    quick(pair)
    assert not pair.r1.has_committed(2)
    assert pair.r1.step(AckPublished(told.number, False), pair.now()) == []
    effects = pair.tick(pair.r1)
    assert pair.r1.has_committed(2)
    (said,) = acks_of(effects)
    assert said.offset == 3
    assert not tells_of(effects)


def test_the_last_one_is_said_again_by_a_wake_of_its_own(pair: Pair) -> None:
    quick(pair)
    effects = pair.tick(pair.r1)
    (told,) = tells_of(effects)
    pair.r1.step(AckPublished(told.number, True), pair.now())
    wakes = [e.at_ns for e in effects if isinstance(e, Wake)]
    assert min(wakes) <= (pair.ms + 50) * MS
    pair.ms += 49
    assert not acks_of(pair.tick(pair.r1))
    pair.ms += 1
    assert [said.offset for said in acks_of(pair.tick(pair.r1))] == [2]
    assert not acks_of(pair.tick(pair.r1))


def test_a_return_of_the_lease_goes_by_the_topic(pair: Pair) -> None:
    effects = pair.r1.give_up_lease(pair.now())
    assert [said.asked_ns for said in acks_of(effects)] == [GIVEN_UP]
    quick(pair)
    assert not tells_of(pair.tick(pair.r1))


def test_a_master_listens_from_its_claim_until_its_epoch_ends(pair: Pair) -> None:
    assert BeginTerm(1, b"m1") in pair.began
    pair.log.append(CODEC.encode(Claim(2, b"m2", pair.m1.position.digest, "m2")))
    effects = pair.deliver(pair.m1)
    assert any(isinstance(effect, StopQueues) for effect in effects)


def waits_for_r1(pair: Pair) -> CoherencyWatch:
    assert pair.m1.master is not None
    watch = pair.m1.master.watch
    pair.m1.step(AckRead(ack(1, asked_ns=1)), pair.now())
    assert watch.grants(1, pair.now().mono_ns)
    return watch


def test_c1_the_master_takes_plain_positions_of_its_epoch_alone(pair: Pair) -> None:
    watch = waits_for_r1(pair)
    now_ns = pair.now().mono_ns
    made_up: list[Any] = [
        ack(2, epoch=2),
        ack(2, epoch=0),
        ack(2, asked_ns=7),
        ack(2, asked_ns=GIVEN_UP),
        ack(2)._replace(node="r2"),
        Decisions(1, b"m1", 1, b"", 1, (), (), {}, 0, ()),
        Claim(2, b"x", b"", "r1"),
    ]
    for record in made_up:
        assert pair.m1.step(AckReceived(record), pair.now()) == []
    assert not watch.may_answer(1, now_ns)
    assert watch.coherent(now_ns) == {"r1"}
    assert not watch.has_asks()
    pair.m1.step(AckReceived(ack(2)), pair.now())
    assert watch.may_answer(1, now_ns)
    assert pair.r1.step(AckReceived(ack(2)), pair.now()) == []  # who is no master passes it over


@pytest.mark.parametrize("kind", [AckRead, AckReceived])
def test_a_record_of_another_kind_among_acknowledgements_stops_no_master(
    pair: Pair, kind: Any
) -> None:
    """Well-formed, and none of its business: each master would come to it on the topic."""
    strays = [
        Result(b"x" * 16, 1, OUTCOME),
        Barrier(b"x" * 16),
        Claim(2, b"x", b"", "r1"),
        HoldingReport("r1", 7, 1, 1, 0, 0, 0, 0, (), 0),
        LedgerRun("other"),
        Decisions(1, b"m1", 1, b"", 1, (), (), {}, 0, ()),
    ]
    for record in strays:
        assert pair.m1.step(kind(record), pair.now()) == []
    assert pair.m1.role == "master"


def awaits(pair: Pair) -> bool:
    return pair.m1.awaits_acks


def test_what_waits_for_nodes_is_let_go_by_what_is_told(pair: Pair) -> None:
    """A loop that hears of it otherwise than by the topic has to know when to tick: answers, news
    of jobs, requests, rows of a backfill and the measure of a round wait for nodes."""
    master = pair.m1.master
    assert master is not None
    watch = waits_for_r1(pair)
    assert not awaits(pair)
    chunk = QueueRead(Queue.BACKFILL, 0, "application/msgpack", b"")
    pair.m1.step(chunk, pair.now())
    assert awaits(pair)
    master._log_end = 1 + master._settings.backfill.behind_max + 1  # r1 is too far behind for rows
    master._appended_ns = pair.now().mono_ns
    watch._nodes["r1", b"r1"].asked_ns = 0
    assert not master.acks_let_go(pair.now())
    pair.m1.step(AckReceived(ack(2)), pair.now())
    assert master.acks_let_go(pair.now())
    master._backfill._messages.clear()
    assert not awaits(pair)
    for offset, waits in ((2, False), (1, True)):
        master._release._ended_jobs.clear()
        master._release._ended_jobs.append((offset, Send(Topic.NOTICES, 0, b"", None, 0)))
        assert awaits(pair)
        assert master.acks_let_go(pair.now()) == waits
    master._release._ended_jobs.clear()
    for offset, waits in ((2, False), (1, True)):
        master._pace.appended(0, 0, users=True, waiting=False)
        master._pace.read_back(offset)
        assert awaits(pair)
        assert master.acks_let_go(pair.now()) == waits
        master._pace._without = None
    for offset, waits in ((2, False), (1, True)):
        answers = Answers(offset, [(0, Result(b"id", offset, OUTCOME))])
        master._release.answers._waiting.clear()
        master._release.answers.add(answers)
        assert awaits(pair)
        assert master.acks_let_go(pair.now()) == waits


@pytest.mark.parametrize("record", ["", b"", 7, None, {}])
def test_what_is_no_acknowledgement_is_passed_over(pair: Pair, record: Any) -> None:
    waits_for_r1(pair)
    assert pair.m1.step(AckReceived(record), pair.now()) == []


def test_truncation_is_fed_by_the_topic_alone(pair: Pair) -> None:
    """Who asks for the log's bound by the fast way could have it deleted under a node."""
    assert pair.m1.master is not None
    waits_for_r1(pair)
    pair.m1.step(AckReceived(ack(5)), pair.now())
    readers = pair.m1.master._cleanup.truncation._readers
    assert readers["r1"][0] == 1
