"""A master and a follower stepped by hand, records passed between them as bytes.

Goal: the rules of the master's loop (L3, L4, L5, L7, L8, D5, T0, T1) where they are decided. The
log is a list; nothing arrives unless a test hands it over.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.memory.store import MemoryStore
from leasehold.model.ids import format_request_id, genid, request_id
from leasehold.model.ports import Now
from leasehold.model.records import (
    Ack,
    ChangeKind,
    Commit,
    Decisions,
    JobEvent,
    Lane,
    Outcome,
)
from leasehold.replication.effects import (
    AckRead,
    Append,
    AppendFailed,
    AskLane,
    AskLaneIdentity,
    AskLogEnd,
    AskLogIdentity,
    Became,
    DeleteBelow,
    Effect,
    LaneFound,
    LaneIdentified,
    LaneLost,
    LaneRead,
    LogEnd,
    LogIdentified,
    LogRead,
    ReadLane,
    Send,
    Stop,
    StopLanes,
    Tick,
    Topic,
    Warn,
)
from leasehold.replication.log.apply import COLLECT_EVERY_RECORDS
from leasehold.replication.log.truncation import COPY_ROLE, copy_name
from leasehold.replication.master.backfill_pacing import BackfillSettings
from leasehold.replication.master.batch import BatchSettings
from leasehold.replication.master.master import MasterSettings
from leasehold.replication.master.queue_topics import Found
from leasehold.replication.node import Node
from leasehold.replication.node_settings import NodeSettings
from leasehold.replication.outcomes import OutcomeSettings
from leasehold.replication.rules import ReplicationRules
from leasehold.transaction.verify import VerifyRules

CODEC = MessagePackCodec()
WALL_MS = 1_700_000_000_000
TABLE = "create table t (id bigint primary key, a integer, b text)"


class World:
    """One candidate and one follower; `pump` hands the log to both."""

    def __init__(
        self,
        batch: BatchSettings | None = None,
        rules: ReplicationRules | None = None,
        outcomes: OutcomeSettings | None = None,
        fill: BackfillSettings | None = None,
    ) -> None:
        self.ms = 1_000
        self.wall_off_ms = 0
        self.worked_ns = 0
        """By which nodes measure how long deciding takes."""
        self.log: list[bytes] = []
        self.offset = itertools.count()
        self.sent: list[Send] = []
        self.effects: list[Effect] = []
        self.lost = False
        self.lanes_answer = True
        settings = MasterSettings(
            batch=batch or BatchSettings(),
            outcomes=outcomes or OutcomeSettings(),
            fill=fill or BackfillSettings(),
        )
        self.rules = rules or ReplicationRules()
        self.master_settings = settings
        self.node = self.make("m1", candidate=True)
        self.follower = self.make("r1", candidate=False)
        self.tick()
        self.pump()
        assert self.node.master is not None, self.node.role
        self.node.master._attempts.in_full()

    def make(self, name: str, *, candidate: bool) -> Node:
        settings = NodeSettings(
            name, candidate=candidate, serving=False, master=self.master_settings
        )
        incarnation = f"{name}-{self.ms}".encode()
        return Node(
            settings,
            MemoryStore(),
            CODEC,
            incarnation,
            itertools.count(1),
            self.now(),
            self.rules,
            clock_ns=lambda: self.worked_ns,
        )

    def now(self) -> Now:
        return Now(self.ms * 1_000_000, (WALL_MS + self.ms + self.wall_off_ms) * 1_000)

    def perform(self, effects: list[Effect]) -> None:
        self.effects += effects
        for effect in effects:
            if isinstance(effect, Append) and not self.lost:
                self.log.append(effect.data)
            elif isinstance(effect, AskLogEnd):
                self.perform(self.node.step(LogEnd(len(self.log)), self.now()))
            elif isinstance(effect, AskLane) and self.lanes_answer:
                decided = self.node.position.decided_through.get(effect.lane, 0)
                self.found(effect.lane, end=decided)
            elif isinstance(effect, Send):
                self.sent.append(effect)

    def found(self, lane: Lane, *, topic_id: str = "first", first: int = 0, end: int = 0) -> None:
        """Kafka says which topic a lane is."""
        found = Found(f"demo.{lane.value}", topic_id, first, end)
        self.perform(self.node.step(LaneFound(lane, found), self.now()))

    def tick(self) -> None:
        self.ms += 1
        self.perform(self.node.step(Tick(), self.now()))

    def pump(self) -> None:
        while self.node.position.offset < len(self.log):
            offset = self.node.position.offset
            self.perform(self.node.step(self.read(offset), self.now()))
        while self.follower.position.offset < len(self.log):
            self.follower.step(self.read(self.follower.position.offset), self.now())
        self.follower.step(Tick(), self.now())

    def read(self, offset: int) -> LogRead:
        data = self.log[offset]
        return LogRead(offset, CODEC.decode_log(data), CODEC.digest(data))

    def fresh_id(self) -> bytes:
        return request_id(WALL_MS + self.ms, next(self.randoms))

    def random_bytes(self) -> bytes:
        return next(self.randoms)

    randoms = (n.to_bytes(10, "big") for n in itertools.count(1))

    def put(self, request: Mapping[str, Any], number: bytes | None = None) -> bytes:
        """Queue a request at the master; → its id."""
        number = number or self.fresh_id()
        body = {"id": format_request_id(number), "reply_to": 1, **request}
        self.raw(json.dumps(body).encode())
        return number

    def raw(self, body: bytes) -> None:
        lane = LaneRead(Lane.REQUESTS, next(self.offset), "application/json", body)
        self.perform(self.node.step(lane, self.now()))

    def ask(self, request: Mapping[str, Any], number: bytes | None = None) -> Outcome:
        """Put a request, let it be decided, → its outcome as the requester gets it."""
        number = self.put(request, number)
        for _ in range(2):  # a new master says first that it is about to
            self.tick()
            self.pump()
            self.tick()
            if self.answers(number):
                break
        return self.answers(number)[-1]

    def answers(self, number: bytes) -> list[Outcome]:
        return [
            result.outcome
            for send in self.sent
            if send.topic == Topic.RESULTS
            for result in send.record.results
            if result.request_id == number
        ]

    def decided(self) -> list[Decisions]:
        records = [CODEC.decode_log(data) for data in self.log]
        return [record for record in records if isinstance(record, Decisions)]

    def commits(self) -> list[Commit]:
        return [commit for record in self.decided() for commit in record.commits]

    def row(self, node: Node, key: int) -> dict[int, Any] | None:
        found = node._store.row(node.catalog.newest(1), (key,))
        return None if found is None else dict(found.values)


@pytest.fixture
def world() -> World:
    made = World()
    assert made.ask({"sql": TABLE}).lsn == 1
    return made


def insert(key: int, **values: Any) -> dict[str, Any]:
    return {"table": "t", "op": "insert", "key": {"id": key}, "values": values}


def update(key: int, expect: int | dict[str, int] | None = None, **values: Any) -> dict[str, Any]:
    made = {"table": "t", "op": "update", "key": {"id": key}, "values": values}
    return made if expect is None else {**made, "expect": expect}


def test_both_stores_hear_whether_users_write(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[str, bool]] = []
    for name, node in (("master", world.node), ("follower", world.follower)):

        def give_way(*, beside_users: bool, name: str = name) -> None:
            heard.append((name, beside_users))

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


def test_l5_the_same_id_gets_the_same_answer_and_is_applied_once(world: World) -> None:
    first = world.ask(insert(1, a=5))
    number = world.put(update(1, a={"expr": "a + 1"}))
    world.tick()
    world.pump()
    world.tick()
    again = world.ask(update(1, a={"expr": "a + 1"}), number)
    assert again == world.answers(number)[0]
    assert again.rows_affected == 1
    assert world.row(world.node, 1) == {1: 1, 2: 6}
    assert first.lsn + 1 == again.lsn


def test_l5_twice_in_one_batch_is_once(world: World) -> None:
    number = world.fresh_id()
    world.put(insert(1, a=1), number)
    world.put(insert(1, a=1), number)
    world.tick()
    world.pump()
    world.tick()
    first, second = world.answers(number)
    assert first == second
    assert first.lsn == 2


def test_l5_a_refused_attempt_is_followed_only_by_the_next(world: World) -> None:
    world.ask(insert(1, a=1))
    number = world.fresh_id()
    stale = {**update(1, expect=99, a={"expr": "a + 1"}), "on_conflict": "retry"}
    assert world.ask(stale, number).attempt == 1
    assert world.ask({**stale, "attempt": 3}, number).attempt == 1
    assert world.ask({**update(1, a=2), "attempt": 2}, number).lsn == 3


def asked_again_after_the_memory_ended(outcomes: OutcomeSettings) -> tuple[Outcome, int]:
    """An increment, asked again under its id when its outcome was collected; → answer, value."""
    world = World(outcomes=outcomes)
    world.ask({"sql": TABLE})
    world.ask(insert(1, a=0))
    number = world.fresh_id()
    add_one = update(1, a={"expr": "a + 1"})
    assert world.ask(add_one, number).lsn == 3
    for _ in range(3 * COLLECT_EVERY_RECORDS):
        world.ms += 200
        world.ask(update(1, b="x"))
    assert world.node._store.outcome(number) is None
    again = world.ask(add_one, number)
    row = world.row(world.node, 1)
    assert row is not None
    return again, row[2]


def test_l5_what_is_too_old_to_be_remembered_is_not_decided_again() -> None:
    """A resent record carries a new Kafka timestamp, so the id's own time has to tell."""
    again, value = asked_again_after_the_memory_ended(
        OutcomeSettings(horizon_ms=5_000, ahead_ms_max=1_000)
    )
    assert (again.code, again.lsn, value) == ("LH001", 0, 1)


def test_l5_l9_a_clock_that_jumps_forth_and_back_has_nothing_decided_twice() -> None:
    """The log's time goes along and does not come back; what is remembered goes by neither."""
    world = World(outcomes=OutcomeSettings(horizon_ms=5_000, ahead_ms_max=1_000))
    world.ask({"sql": TABLE})
    world.ask(insert(1, a=0))
    number = world.fresh_id()
    add_one = update(1, a={"expr": "a + 1"})
    assert world.ask(add_one, number).lsn == 3
    world.wall_off_ms = 60_000
    for _ in range(3 * COLLECT_EVERY_RECORDS):
        world.put(update(1, b="x"), request_id(WALL_MS + world.ms + 60_000, world.random_bytes()))
        world.tick()
        world.pump()
    assert world.node.position.commit_us > (WALL_MS + world.ms + 50_000) * 1_000
    world.wall_off_ms = 0
    again = world.ask(add_one, number)
    row = world.row(world.node, 1)
    assert (again.code, again.lsn, row and row[2]) == ("", 3, 1)


def test_l5_an_id_that_is_ahead_is_remembered_until_it_is_old() -> None:
    """It was taken nearly a second early, so it is too old nearly a second late."""
    world = World(outcomes=OutcomeSettings(horizon_ms=5_000, ahead_ms_max=1_000))
    world.ask({"sql": TABLE})
    world.ask(insert(1, a=0))
    add_one = update(1, a={"expr": "a + 1"})
    number = request_id(WALL_MS + world.ms + 900, world.random_bytes())
    assert world.ask(add_one, number).lsn == 3
    while world.node._store.outcome(number) is not None:
        world.ms += 5
        world.ask(update(1, b="x"))
    again = world.ask(add_one, number)
    row = world.row(world.node, 1)
    assert (again.code, row and row[2]) == ("LH001", 1)


def test_l5_off_it_is_applied_a_second_time() -> None:
    forgetful = OutcomeSettings(horizon_ms=5_000, ahead_ms_max=1_000, ids_own_time_counts=False)
    again, value = asked_again_after_the_memory_ended(forgetful)
    assert again.lsn
    assert value == 2


def test_r1_giving_up_is_decided_and_final(world: World) -> None:
    world.ask(insert(1, a=1))
    number = world.fresh_id()
    world.ask({**update(1, expect=99, a={"expr": "a + 1"}), "on_conflict": "retry"}, number)
    given_up = world.ask({**update(1, a=2), "attempt": 2, "give_up": True}, number)
    assert (given_up.final, given_up.dead_lettered, given_up.code) == (True, True, "40001")
    assert world.ask({**update(1, a=2), "attempt": 3}, number) == given_up
    assert world.row(world.node, 1) == {1: 1, 2: 1}


def test_l3_refusals_are_in_the_log_and_lanes_go_on_behind_them(world: World) -> None:
    world.raw(b"not json")
    world.put(insert(1, a="wrong type"))
    good = world.put(insert(2, a=2))
    world.tick()
    world.pump()
    world.tick()
    record = world.decided()[-1]
    assert [refusal.code for refusal in record.refusals] == ["08P01", "22P02"]
    assert record.decided_through == {"requests": 4}
    assert world.answers(good)[0].lsn == 2


@pytest.mark.parametrize(
    ("broken", "request_"),
    [
        ("leasehold.replication.master.batch.verify", insert(1, a=1)),
        ("leasehold.schema_change.plan.script.plan", {"sql": "create index i on t (a)"}),
    ],
)
def test_l3_a_defect_that_one_request_meets_does_not_hold_up_the_rest(
    world: World, broken: str, request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would meet every master after this one too."""

    def defect(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a defect")

    with monkeypatch.context() as patch:
        patch.setattr(broken, defect)
        met = world.ask(request_)
    assert (met.code, met.final, met.dead_lettered) == ("XX000", True, True)
    assert "ZeroDivisionError" in met.message
    assert world.ask(insert(2, a=2)).lsn == 2


def taken_over(world: World) -> Node:
    """Another node becomes master by what the log says; nobody tells it which topics the lanes
    are."""
    heir = world.make("m2", candidate=True)
    for offset in range(len(world.log)):
        heir.step(world.read(offset), world.now())
    world.node = heir
    world.lanes_answer = False
    world.ms += 10_000
    world.tick()
    world.pump()
    return heir


def test_l3_a_new_master_begins_where_the_log_says(world: World) -> None:
    world.ask(insert(1, a=1))
    heir = taken_over(world)
    asked = [effect.lane for effect in world.effects[-8:] if isinstance(effect, AskLane)]
    assert asked == [Lane.REQUESTS, Lane.BACKFILL]
    for lane in asked:
        world.found(lane, end=9)
    starts = {e.lane: e.offset for e in world.effects[-2:] if isinstance(e, ReadLane)}
    assert starts == {Lane.REQUESTS: 2, Lane.BACKFILL: 0}
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
    # The lane is read again from where the log stands, and decided once.
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


def test_l8_what_does_not_fit_waits_for_the_next_record() -> None:
    world = World(BatchSettings(record_bytes_max=8_000, large_bytes_max=8_000))
    world.ask({"sql": TABLE})
    numbers = [world.put(insert(n, b="x" * 2_500)) for n in range(5)]
    for _ in range(4):
        world.tick()
        world.pump()
    world.tick()
    assert [world.answers(n)[0].lsn for n in numbers] == [2, 3, 4, 5, 6]
    sizes = [len(data) for data in world.log]
    assert max(sizes) <= 8_000
    assert len([record for record in world.decided() if record.commits]) == 4


def test_l8_what_can_never_fit_is_refused_and_holds_nobody_up() -> None:
    world = World(BatchSettings(record_bytes_max=8_000, large_bytes_max=8_000))
    world.ask({"sql": TABLE})
    too_large = world.put(insert(1, b="x" * 9_000))
    good = world.put(insert(2, b="x"))
    for _ in range(3):
        world.tick()
        world.pump()
    world.tick()
    assert world.answers(too_large)[0].code == "54000"
    assert world.answers(good)[0].lsn == 2


def test_t0_the_master_composes_from_its_own_row(world: World) -> None:
    """A writer of one column does not revert another's, whatever it has seen."""
    world.ask(insert(1, a=1, b="one"))
    world.ask(update(1, b="two"))
    world.ask(update(1, a=2))
    assert world.row(world.node, 1) == {1: 1, 2: 2, 3: "two"}
    assert world.row(world.follower, 1) == world.row(world.node, 1)


def test_t1_a_row_that_is_not_the_one_seen_refuses(world: World) -> None:
    lsn = world.ask(insert(1, a=1)).lsn
    world.ask(update(1, a=2))
    refused = world.ask({**update(1, expect=genid(lsn, 0), a=3), "on_conflict": "fail"})
    assert (refused.code, refused.final) == ("40001", True)
    assert world.row(world.node, 1) == {1: 1, 2: 2}


COMPUTED: Final = {"expr": "a + 1"}
DELETE: Final = {"table": "t", "op": "delete", "key": {"id": 1}, "expect": 99}
RESTS_ON_IT: Final[dict[str, dict[str, Any]]] = {
    "a constant": update(1, expect=99, a=3),
    "a constant beside an expression": update(1, expect=99, a=COMPUTED, b="x"),
    "an upsert": {**update(1, expect=99, a=3), "op": "upsert"},
    "a delete": DELETE,
    "a constant by lock": update(1, expect={"row": 99}, a=3),
    "one of several": {"transaction": [update(1, expect=99, a=COMPUTED), DELETE]},
    "a guard of others": {"transaction": [update(1, expect=99), insert(3, a=3)]},
}
RECOMPUTED: Final[dict[str, dict[str, Any]]] = {
    "an expression": update(1, expect=99, a=COMPUTED),
    "beside an insert": {"transaction": [insert(3, a=3), update(1, expect=99, a=COMPUTED)]},
    "beside what expects nothing": {
        "transaction": [update(2, a=7), update(1, expect=99, a=COMPUTED)]
    },
    "beside a row that only has to be there": {
        "transaction": [update(2, expect=0, a=7), update(1, expect=99, a=COMPUTED)]
    },
}


@pytest.mark.parametrize("name", RESTS_ON_IT)
def test_t1_what_rests_on_the_row_as_it_was_seen_is_not_retried(world: World, name: str) -> None:
    """Goal: without a word on conflicts (`retry`) an outdated constant is never written over a
    newer row; its sender is told at once, with what it takes to look again."""
    lsn = world.ask({"transaction": [insert(1, a=1), insert(2, a=2)]}).lsn
    refused = world.ask(RESTS_ON_IT[name])
    assert (refused.code, refused.final, refused.dead_lettered) == ("40001", True, True)
    seen = refused.detail["genid"]
    assert seen == ({"row": genid(lsn, 0)} if name == "a constant by lock" else genid(lsn, 0))
    assert world.row(world.node, 1) == {1: 1, 2: 1}
    assert not [s for s in world.sent if s.topic == Topic.CONFLICTS]
    assert world.ask(update(1, expect=seen, a=3)).lsn, "as it is now, it is what was seen"


@pytest.mark.parametrize("name", RECOMPUTED)
def test_what_is_computed_anew_of_the_newest_row_is_retried(world: World, name: str) -> None:
    world.ask({"transaction": [insert(1, a=1), insert(2, a=2)]})
    refused = world.ask(RECOMPUTED[name])
    assert (refused.code, refused.final, refused.lsn) == ("40001", False, 0)
    assert len([s for s in world.sent if s.topic == Topic.CONFLICTS]) == 1


def test_t1_off_a_stale_writer_overwrites() -> None:
    world = World(rules=ReplicationRules(verify=VerifyRules(genids_are_verified=False)))
    world.ask({"sql": TABLE})
    lsn = world.ask(insert(1, a=1)).lsn
    world.ask(update(1, a=2))
    assert world.ask(update(1, expect=genid(lsn, 0), a=3)).lsn
    assert world.row(world.node, 1) == {1: 1, 2: 3}


def test_one_request_is_all_or_nothing_and_sees_its_own_changes(world: World) -> None:
    many = [insert(1, a=1), update(1, a={"expr": "a + 1"}), insert(2, a=2)]
    assert world.ask({"transaction": many}).rows_affected == 3
    assert world.row(world.follower, 1) == {1: 1, 2: 2}
    twice = world.ask({"transaction": [insert(3, a=3), insert(1, a=9)]})
    assert twice.code == "23505"
    assert world.row(world.node, 3) is None
    kinds = [change.kind for change in world.commits()[-1].changes]
    assert kinds == [ChangeKind.INSERT, ChangeKind.UPDATE, ChangeKind.INSERT]


def test_an_update_or_delete_of_no_row_affects_none(world: World) -> None:
    assert world.ask(update(9, a=1)).rows_affected == 0
    gone = {"table": "t", "op": "delete", "key": {"id": 9}, "values": {}}
    assert world.ask(gone).rows_affected == 0


def test_expect_zero_means_the_row_whatever_its_genid(world: World) -> None:
    world.ask(insert(1, a=1))
    assert world.ask(update(1, expect=0, a=2)).lsn
    assert world.ask({**update(9, expect=0, a=2), "on_conflict": "fail"}).code == "40001"


def test_an_insert_may_hold_its_key_among_its_values(world: World) -> None:
    assert world.ask({"table": "t", "op": "insert", "values": {"id": 4, "a": 4}}).lsn
    assert world.row(world.follower, 4) == {1: 4, 2: 4}
    assert world.ask({"table": "t", "op": "insert", "values": {"a": 4}}).code == "08P01"


def test_upsert_is_either(world: World) -> None:
    upsert = {**insert(1, a=1), "op": "upsert"}
    world.ask(upsert)
    world.ask({**upsert, "values": {"b": "x"}})
    assert world.row(world.follower, 1) == {1: 1, 2: 1, 3: "x"}


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
    assert master._known_coherent(world.now()) == frozenset()
    master.watch.serve_from_ns = world.now().mono_ns + 1
    assert master._known_coherent(world.now()) is None


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
        assert stopped[0] == StopLanes()
        assert isinstance(stopped[1], Stop)
        assert "'demo.log' was deleted and made anew" in stopped[1].error.message
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
    copying: list[int | None] = [2]
    world.node.acknowledger.oldest_copy = lambda: copying[0]

    def acks() -> list[Ack]:
        world.sent.clear()
        world.ms += 200
        world.tick()
        return [send.record for send in world.sent if send.topic == Topic.ACKS]

    own, copy = acks()
    assert (own.node, own.offset) == ("m1", world.node.position.offset)
    assert (copy.node, copy.role, copy.offset) == (copy_name("m1"), COPY_ROLE, 2)
    assert not copy.serves
    assert not copy.asked_ns
    assert world.node.master is not None
    known = len(world.node.master.watch._nodes)
    world.node.step(AckRead(copy), world.now())
    assert len(world.node.master.watch._nodes) == known, "it is no node that could be waited for"
    copying[0] = None
    assert [ack.node for ack in acks()] == ["m1"]


# ------------------------------------------------------------ L3: which topics the lanes are


def warnings(world: World) -> list[str]:
    said = [effect.words for effect in world.effects if isinstance(effect, Warn)]
    world.effects.clear()
    return said


def reads(world: World) -> dict[Lane, int]:
    return {e.lane: e.offset for e in world.effects if isinstance(e, ReadLane)}


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
    assert world.node.position.lane_topics == world.follower.position.lane_topics == told
    assert world.follower._store.position().lane_topics == told
    assert world.node.position.decided_through == {"requests": 1, "backfill": 0}
    world.ask(insert(1, a=1))
    heartbeat(world)
    to_the_next_term(world)
    for lane in Lane:
        world.found(lane, topic_id=told[lane.value], end=2)
    assert reads(world) == {Lane.REQUESTS: 2, Lane.BACKFILL: 0}
    heartbeat(world)
    assert [record.lane_topics for record in world.decided() if record.lane_topics] == [told]
    assert warnings(world) == []


def test_l3_a_lane_that_was_made_anew_is_read_from_its_begin_and_it_is_said(world: World) -> None:
    """By the next master, and by all to come: what stands below the old offset is undecided."""
    world.ask(insert(1, a=1))
    world.ask(insert(2, a=1))
    to_the_next_term(world)
    world.found(Lane.REQUESTS, topic_id="second", first=0, end=7)
    assert reads(world) == {Lane.REQUESTS: 0}
    (words,) = warnings(world)
    assert "'demo.requests'" in words
    assert "deleted and made anew" in words
    assert "up to offset 3" in words
    assert "recover-a-lost-log" in words
    heartbeat(world)
    assert world.node.position.decided_through["requests"] == 0
    assert world.node.position.lane_topics["requests"] == "second"
    world.offset = itertools.count()
    assert world.ask(insert(3, a=3)).lsn == 4
    assert world.follower.position.decided_through["requests"] == 1
    to_the_next_term(world)
    world.found(Lane.REQUESTS, topic_id="second", end=7)
    assert reads(world) == {Lane.REQUESTS: 1}
    assert warnings(world) == []


@pytest.mark.parametrize("lane", list(Lane))
def test_l3_undecided_records_that_were_deleted_are_counted_aloud(world: World, lane: Lane) -> None:
    to_the_next_term(world)
    decided = world.node.position.decided_through[lane]
    world.found(lane, first=decided + 12, end=decided + 20)
    assert reads(world) == {lane: decided + 12}
    (words,) = warnings(world)
    assert "12 offsets in between were deleted before they were decided" in words
    heartbeat(world)
    assert world.node.position.decided_through[lane] == decided + 12


def test_l3_a_lane_that_is_shorter_than_what_was_decided_of_it(world: World) -> None:
    """A log of before does not know its id; a broker that lost its tail keeps it."""
    world.ask(insert(1, a=1))
    world.ask(insert(2, a=2))
    to_the_next_term(world)
    world.found(Lane.REQUESTS, topic_id="", end=1)
    assert reads(world) == {Lane.REQUESTS: 0}
    (words,) = warnings(world)
    assert "ends at offset 1, and the log has decided it up to 3" in words
    heartbeat(world)
    assert world.node.position.decided_through[Lane.REQUESTS] == 0
    assert world.node.position.lane_topics[Lane.REQUESTS] == "first"


@pytest.mark.parametrize("event", ["identity", "offset"])
def test_l3_a_master_in_office_whose_lane_is_gone_begins_a_new_term(
    world: World, event: str
) -> None:
    world.lanes_answer = False
    topic = "demo.requests"
    for same in ("first", ""):
        effects = world.node.step(LaneIdentified(Lane.REQUESTS, topic, same), world.now())
        assert effects == [DeleteBelow(Lane.REQUESTS, 1)]
    world.raw(b"{}")
    world.effects.clear()
    lost = (
        LaneIdentified(Lane.REQUESTS, topic, "second")
        if event == "identity"
        else LaneLost(Lane.REQUESTS, topic)
    )
    epoch = world.node.position.epoch
    world.perform(world.node.step(lost, world.now()))
    (words,) = warnings(world)
    assert "1 messages of it that were read and not decided" in words
    world.pump()
    assert world.node.position.epoch == epoch + 1
    assert world.node.role == "master"
    assert sum(isinstance(effect, AskLane) for effect in world.effects) == 2
    # For a deposed master it is no news.
    assert world.follower.step(lost, world.now()) == []


def test_l3_what_is_decided_is_deleted_in_the_topic_that_was_looked_at(world: World) -> None:
    """A deletion by offset in a topic that was made anew would take undecided requests away."""
    world.ask(insert(1, a=1))
    to_the_next_term(world)
    same = LaneIdentified(Lane.REQUESTS, "demo.requests", "second")
    assert world.node.step(same, world.now()) == [], "it was not looked at before"
    world.found(Lane.REQUESTS, topic_id="second", end=2)
    assert world.node.step(same, world.now()) == [], "the log does not say so yet"
    heartbeat(world)
    world.offset = itertools.count()
    world.ask(insert(2, a=1))
    world.effects.clear()
    world.ms += 5_000
    world.tick()
    asked = [effect.lane for effect in world.effects if isinstance(effect, AskLaneIdentity)]
    assert asked == [Lane.REQUESTS]
    assert not any(isinstance(effect, DeleteBelow) for effect in world.effects)
    world.pump()
    assert world.node.step(same, world.now()) == [DeleteBelow(Lane.REQUESTS, 1)]


def test_a_lane_that_was_not_found_is_asked_for_again(world: World) -> None:
    to_the_next_term(world)
    world.found(Lane.BACKFILL)
    world.effects.clear()
    for _ in range(3):
        world.ms += 1_000
        world.tick()
        world.pump()
    asked = [effect.lane for effect in world.effects if isinstance(effect, AskLane)]
    assert asked == [Lane.REQUESTS] * 3
    world.found(Lane.REQUESTS)
    world.found(Lane.REQUESTS, first=9)
    assert reads(world) == {Lane.REQUESTS: 0}, "once, and the topic begins there"
