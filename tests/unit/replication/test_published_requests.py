"""Requests told to a master by the fast way, and those of the topic between them: each is decided
once, and answered by the way it came, no earlier than C1 lets it (L5, L7, C1)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from leasehold.model.ids import format_request_id
from leasehold.model.records.log import Disposition, LogPosition, Refusal
from leasehold.model.records.requests import Outcome, Queue
from leasehold.replication.effects import (
    NOWHERE,
    AppendFailed,
    PublishAnswers,
    RequestsReceived,
    Send,
    Topic,
)
from leasehold.replication.master import intake
from leasehold.replication.master.answers import PendingAnswers, answers_of
from leasehold.replication.master.batch_limits import BatchSettings
from leasehold.replication.master.record_draft import Repeat
from tests.support.replication.world import TABLE, World, insert, update
from tests.unit.replication.test_answers import record
from tests.unit.replication.test_backfill_queue import ack, make_coherent

ME, OTHER = b"requester-1.........", b"requester-2........."
JSON = "application/json"
ADD_ONE = update(1, a={"expr": "a + 1"})


class Heard(World):
    """A world whose master is told things, too."""

    def __init__(self, batch: BatchSettings | None = None) -> None:
        self.numbers = {requester: itertools.count() for requester in (ME, OTHER)}
        super().__init__(batch)

    def tell_raw(
        self,
        *bodies: bytes,
        requester: bytes = ME,
        content_type: str = JSON,
        number: int | None = None,
    ) -> None:
        place = next(self.numbers[requester]) if number is None else number
        said = tuple((content_type, body) for body in bodies)
        told = RequestsReceived(requester, 1, place, said)
        self.perform(self.node.step(told, self.now()))

    def body(self, request: Mapping[str, Any], number: bytes) -> bytes:
        made = {"id": format_request_id(number), "reply_to": 1, **request}
        return json.dumps(made).encode()

    def tell(
        self,
        request: Mapping[str, Any],
        number: bytes | None = None,
        requester: bytes = ME,
    ) -> bytes:
        """→ its id."""
        number = number or self.fresh_id()
        self.tell_raw(self.body(request, number), requester=requester)
        return number

    def turn(self, count: int = 1) -> None:
        for _ in range(count):
            self.tick()
            self.pump()
            self.tick()

    def told(self, number: bytes, requester: bytes = ME) -> list[Outcome]:
        """What that requester was told about that id."""
        return [
            result.outcome
            for effect in self.effects
            if isinstance(effect, PublishAnswers) and effect.requester == requester
            for result in effect.record.results
            if result.request_id == number
        ]

    @property
    def position(self) -> LogPosition:
        return self.node.position

    def refusals(self) -> list[Refusal]:
        return [refusal for record in self.decided() for refusal in record.refusals]


@pytest.fixture
def world() -> Heard:
    made = Heard()
    assert made.ask({"sql": TABLE}).lsn == 1
    assert made.ask(insert(1, a=0)).lsn == 2
    return made


def test_what_is_told_is_decided_and_told_to_its_asker_alone(world: Heard) -> None:
    through = world.position.decided_through
    number = world.tell(ADD_ONE)
    world.turn()
    (outcome,) = world.told(number)
    assert (outcome.lsn, outcome.rows_affected) == (3, 1)
    assert not world.told(number, OTHER)
    assert not world.answers(number), "nothing on the topic"
    assert world.row(world.node, 1) == world.row(world.follower, 1) == {1: 1, 2: 1}
    assert world.commits()[-1].reply_to == -1
    assert world.position.decided_through == through, "it stands in no topic (L3)"


def test_l3_what_is_told_never_touches_where_the_queue_goes_on(world: Heard) -> None:
    before = world.position.decided_through[Queue.REQUESTS]
    numbers = [world.tell(ADD_ONE), world.put(ADD_ONE), world.tell(update(1, expect=99, a=7))]
    world.tell_raw(b"no request")
    world.turn()
    assert world.position.decided_through[Queue.REQUESTS] == before + 1
    assert world.told(numbers[0])[0].lsn == 3
    assert world.answers(numbers[1])[0].lsn == 4
    assert world.told(numbers[2])[0].code
    world.tell(ADD_ONE)
    world.turn()
    assert world.decided()[-1].decided_through == {}


def test_several_of_one_message_are_decided_in_its_order(world: Heard) -> None:
    numbers = [world.fresh_id() for _ in range(5)]
    bodies = [world.body(update(1, a={"expr": f"a * 10 + {n}"}), i) for n, i in enumerate(numbers)]
    world.tell_raw(*bodies)
    world.turn()
    assert [world.told(number)[0].lsn for number in numbers] == [3, 4, 5, 6, 7]
    assert world.row(world.node, 1) == {1: 1, 2: 1234}


def test_one_that_is_refused_is_told_why(world: Heard) -> None:
    number = world.tell(insert(1, a=7))
    world.turn()
    (outcome,) = world.told(number)
    assert (outcome.lsn, outcome.code, outcome.final) == (0, "23505", True)
    assert not world.answers(number)
    (refusal,) = world.refusals()
    assert (refusal.offset, refusal.reply_to) == (NOWHERE, -1)


def test_r1_refused_once_the_next_attempt_comes_by_the_topic_and_is_answered_there(
    world: Heard,
) -> None:
    number = world.tell({**ADD_ONE, "expect": 99, "on_conflict": "retry"})
    world.turn()
    (outcome,) = world.told(number)
    assert (outcome.attempt, outcome.final) == (1, False)
    (conflict,) = [s.record for s in world.sent if s.topic == Topic.CONFLICTS]
    assert json.loads(conflict.body)["reply_to"] == 1, "whom the next attempt is answered to"
    assert world.refusals()[0].disposition is Disposition.CONFLICT
    assert world.ask({**update(1, a=2), "attempt": 2}, number).lsn == 3
    assert world.told(number) == [outcome]


# ---------------------------------------------------------------- L5: however it comes


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("ways", ["tt", "tk", "kt", "to", "tktokt"])
def test_l5_by_whatever_ways_it_comes_it_is_applied_once_and_each_is_answered(
    world: Heard, ways: str, together: bool
) -> None:
    number = world.fresh_id()
    for way in ways:
        if way == "k":
            world.put(ADD_ONE, number)
        else:
            world.tell(ADD_ONE, number, ME if way == "t" else OTHER)
        if not together:
            world.turn()
    world.turn()
    assert world.row(world.node, 1) == {1: 1, 2: 1}
    mine, others, kafkas = world.told(number), world.told(number, OTHER), world.answers(number)
    assert (len(mine), len(others), len(kafkas)) == tuple(ways.count(way) for way in "tok")
    assert {outcome.lsn for outcome in (*mine, *others, *kafkas)} == {3}


def test_l5_a_refusal_that_was_told_is_repeated_for_kafka(world: Heard) -> None:
    number = world.tell(insert(1))
    world.turn()
    assert world.ask(insert(1), number) == world.told(number)[0]
    assert len(world.refusals()) == 1


def test_l4_told_and_lost_with_its_record_it_is_decided_when_kafka_brings_it(world: Heard) -> None:
    number = world.tell(ADD_ONE)
    world.lost = True
    world.tick()  # appended, and never in the log
    world.lost = False
    world.perform(world.node.step(AppendFailed("time-out"), world.now()))
    world.pump()
    assert world.position.epoch == 2
    world.turn()
    assert not world.told(number)
    assert world.row(world.node, 1) == {1: 1, 2: 0}
    assert world.ask(ADD_ONE, number).lsn == 3
    assert world.row(world.node, 1) == {1: 1, 2: 1}


# ---------------------------------------------------------------- of any kind


def test_unreadable_bytes_are_a_dead_letter_and_hold_nobody_up(world: Heard) -> None:
    number = world.fresh_id()
    wrong = world.body({"op": "dance"}, number)
    world.tell_raw(b"", b"\xff\xfe", b"{}", wrong, world.body(ADD_ONE, world.fresh_id()))
    world.tell_raw(b"\x00", content_type="image/png")
    behind = world.tell(ADD_ONE)
    world.turn()
    assert world.told(number)[0].dead_lettered
    assert world.told(behind)[0].lsn == 4
    assert [refusal.disposition for refusal in world.refusals()] == [Disposition.DEAD_LETTER] * 5
    assert {refusal.offset for refusal in world.refusals()} == {NOWHERE}


def test_l5_unreadable_bytes_under_a_used_id_repeat_its_answer(world: Heard) -> None:
    number = world.tell(ADD_ONE)
    world.turn()
    world.tell({"op": "dance"}, number)
    world.turn()
    first, second = world.told(number)
    assert first == second
    assert first.lsn == 3


def test_ddl_is_told(world: Heard) -> None:
    made = world.tell({"sql": "create table u (id bigint primary key)"})
    row = {"table": "u", "op": "insert", "key": {"id": 1}, "values": {}}
    behind = world.tell(row)
    refused = world.tell({"sql": "create table u (id bigint primary key)"})
    both = world.tell({"sql": "truncate u", "transaction": [row], "on_conflict": "fail"})
    world.turn(4)
    assert world.told(made)[0].lsn == 3
    assert world.told(behind)[0].lsn == 4
    assert world.told(refused)[0].code == "42P07"
    assert world.told(both)[0].lsn == 5
    assert {commit.reply_to for commit in world.commits()[2:]} == {-1}
    assert not any(map(world.answers, (made, behind, refused, both)))


@pytest.mark.parametrize("operations", [2_000, 2_001])
def test_l5_a_large_one_is_decided_once_and_told(world: Heard, operations: int) -> None:
    rows = [insert(n) for n in range(100, 100 + operations)]
    large = world.tell({"transaction": rows, "on_conflict": "fail"})
    behind = world.tell(update(100, a=7))
    world.turn(6)
    (outcome,) = world.told(large)
    assert outcome.rows_affected == operations
    assert world.told(behind)[0].lsn == outcome.lsn + 1
    assert world.position.decided_through[Queue.REQUESTS] == 2
    world.tell({"transaction": rows, "on_conflict": "fail"}, large)
    world.turn(6)
    assert world.told(large) == [outcome, outcome]


def test_l8_what_does_not_fit_the_record_waits_for_the_next_one() -> None:
    world = Heard(BatchSettings(record_bytes_max=4_000))
    world.ask({"sql": TABLE})
    numbers = [world.tell(insert(n, b="x" * 900)) for n in range(6)]
    world.turn(6)
    assert [world.told(number)[0].lsn for number in numbers] == [2, 3, 4, 5, 6, 7]
    assert len([record for record in world.decided() if record.commits]) > 2


# ---------------------------------------------------------------- what is not taken


def test_one_behind_a_lost_one_is_not_taken(world: Heard) -> None:
    """The requester's order: whoever lost the first asks both again through Kafka."""
    first, lost, third = (world.fresh_id() for _ in range(3))
    world.tell_raw(world.body(ADD_ONE, first), number=0)
    world.tell_raw(world.body(ADD_ONE, third), number=2)
    world.turn()
    assert world.told(first)
    assert not world.told(third)
    assert world.ask(ADD_ONE, lost).lsn == 4
    assert world.ask(ADD_ONE, third).lsn == 5


def test_a_master_that_has_no_room_passes_over_what_it_is_told(
    world: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "PUBLISHED_WAITING_MAX", 3)
    asked = [world.put(ADD_ONE) for _ in range(3)]
    full = world.tell(ADD_ONE)
    world.turn(2)
    assert all(map(world.answers, asked))
    assert not world.told(full)
    late = world.tell(ADD_ONE)
    world.turn(2)
    assert not world.told(late), "the one before it was passed over"
    assert world.ask(ADD_ONE, full).lsn == 6
    assert world.ask(ADD_ONE, late).lsn == 7
    anew = RequestsReceived(ME, 2, 0, ((JSON, world.body(ADD_ONE, late)),))
    world.perform(world.node.step(anew, world.now()))
    world.turn()
    assert world.told(late)[0].lsn == 7, "the next run is heard"


def test_who_is_no_master_takes_nothing(world: Heard) -> None:
    told = RequestsReceived(ME, 1, 0, ((JSON, world.body(ADD_ONE, world.fresh_id())),))
    assert world.follower.step(told, world.now()) == []
    world.turn()
    assert world.row(world.node, 1) == {1: 1, 2: 0}


# ---------------------------------------------------------------- answers


def test_c1_an_answer_is_told_when_every_coherent_node_has_it(world: Heard) -> None:
    make_coherent(world)
    ack(world, len(world.log))
    number = world.tell(ADD_ONE)
    refused = world.tell(insert(1))
    world.turn(3)
    end = len(world.log)
    assert world.row(world.node, 1) == {1: 1, 2: 1}
    assert not world.told(number)
    assert not world.told(refused)
    again = world.tell(ADD_ONE, number, OTHER)
    world.turn(2)
    assert not world.told(again, OTHER), "a repeated one no earlier (C1)"
    ack(world, end)
    world.turn()
    assert world.told(number)[0].lsn == 3
    assert world.told(refused)[0].code == "23505"
    assert not world.told(again, OTHER)
    ack(world, len(world.log))
    world.turn()
    assert world.told(again, OTHER) == world.told(number)


def test_c1_told_answers_leave_in_log_order_with_those_for_kafka(world: Heard) -> None:
    told, put = world.tell(ADD_ONE), world.put(ADD_ONE)
    world.turn()
    lsns: list[int] = []
    for effect in world.effects:
        if not isinstance(effect, PublishAnswers | Send):
            continue
        if isinstance(effect, PublishAnswers) or effect.topic == Topic.RESULTS:
            lsns += (result.outcome.lsn for result in effect.record.results)
    assert lsns[-2:] == [world.told(told)[0].lsn, world.answers(put)[0].lsn]


def test_l7_what_is_told_is_awaited_by_nobody_and_is_in_no_later_masters_debt() -> None:
    """It may be lost: whoever hears nothing asks again. Only what Kafka is owed counts."""
    pending = PendingAnswers()
    outcome = Outcome(1, 2, 1, 0, True)
    told = [Repeat(b"a", -1, outcome, ME), Repeat(b"b", -1, outcome, OTHER)]
    pending.add(answers_of(record(), 40, told))
    assert pending.answered_through(50) == 40, "while they wait"
    given = pending.release(lambda _: True)
    assert [effect.requester for effect in given if isinstance(effect, PublishAnswers)] == [
        ME,
        OTHER,
    ]
    assert pending.answered_through(50) == 50
    assert pending.not_given() == []
    pending.add(answers_of(record(), 50, [*told, Repeat(b"c", 3, outcome)]))
    (send,) = [effect for effect in pending.release(lambda _: True) if isinstance(effect, Send)]
    assert pending.answered_through(60) == 50
    pending.sent(send.token)
    assert pending.answered_through(60) == 60
