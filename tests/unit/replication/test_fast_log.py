"""The log by the fast way: when a node takes it, when Kafka is read, what is applied of what is
told, and when a master tells (L1, L2; `replication/fast_path/log.py`)."""

from __future__ import annotations

import itertools

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.ports import Now
from leasehold.model.records.acks import Ack
from leasehold.model.records.log import Barrier, Claim, Decisions, Grant, LogRecord
from leasehold.replication.effects import Effect, LogRead, LogReceived, ReadLog, Send, Tick, Topic
from leasehold.replication.fast_path.log import (
    NOBODY,
    FastLogSettings,
    LogPath,
    LogPublisher,
)
from leasehold.replication.fast_path.own_appends import OwnAppendsSettings
from leasehold.replication.fast_path.state_machine import NOT_PUBLISHED
from leasehold.replication.log.foreign import WAIT_MS
from leasehold.replication.master.settings import MasterSettings
from leasehold.replication.node import Node
from leasehold.replication.node_settings import NodeSettings
from tests.models.mutants.replication import FastLogRules, broken
from tests.support.memory_store.store import MemoryStore

MS = 1_000_000
TERM = (3, b"master")
SETTINGS = FastLogSettings(
    silence_ms=50,
    row_min=4,
    late_ms=3,
    trust_ms=10_000,
    answer_ms=20,
    pause_ms=100,
    pause_ms_max=400,
)
CODEC = MessagePackCodec()


class Reader:
    """A node's ways under a clock of its own, in ms; `applied`: offsets in the order of it."""

    def __init__(self, settings: FastLogSettings = SETTINGS) -> None:
        self.ms = 1_000
        self.ways = LogPath(settings, 0)
        self.applied: list[int] = []
        self.ways.follow(TERM, TERM, self.ms * MS)
        self.ms += 200

    def read(self, offset: int) -> None:
        if self.ways.read(offset, self.ms * MS):
            self.applied.append(offset)

    def told(self, offset: int, *, whole: bool = True) -> None:
        if self.ways.receive(offset, self.ms * MS, whole=whole):
            self.applied.append(offset)

    def both(self, offset: int, late_ms: int = 0) -> None:
        """Kafka gives it; some time later it is told, too."""
        self.read(offset)
        self.ms += late_ms
        self.told(offset)

    def tick(self) -> bool:
        self.ways.tick(self.ms * MS)
        return self.fast()

    def fast(self) -> bool:
        return self.ways.fast


@pytest.fixture
def reader() -> Reader:
    """Takes the fast way, and has applied what lies below 4."""
    made = Reader()
    for offset in range(4):
        made.both(offset)
    assert made.fast()
    return made


def test_the_fast_way_is_taken_after_a_row_that_came_as_soon_as_kafkas() -> None:
    reader = Reader()
    for offset in range(3):
        reader.both(offset, late_ms=3)
        assert not reader.fast()
    reader.both(3, late_ms=3)
    assert reader.fast()
    reader.told(4)
    reader.told(5)
    assert reader.applied == [*range(6)]


def test_what_is_told_late_is_not_taken_for_it() -> None:
    reader = Reader()
    for offset in range(100):
        reader.both(offset, late_ms=4)
    assert not reader.fast()
    assert reader.applied == [*range(100)]


def test_who_is_told_of_a_record_before_kafka_gave_it_takes_it() -> None:
    reader = Reader()
    for offset in range(3):
        reader.told(offset)
        assert not reader.applied[offset:]
        reader.read(offset)
    reader.told(3)
    reader.read(3)
    reader.told(4)
    assert reader.fast()
    assert reader.applied == [*range(5)]


def test_records_that_come_far_apart_are_no_row() -> None:
    reader = Reader()
    for offset in range(20):
        reader.both(offset)
        reader.ms += 51
    assert not reader.fast()


def test_a_row_is_of_offsets_that_follow_one_another() -> None:
    reader = Reader()
    for offset in range(0, 40, 2):
        reader.read(offset)
        reader.both(offset + 1)
    assert not reader.fast()


def test_one_record_that_was_not_told_yet_is_waited_for_shortly() -> None:
    """Kafka wakes the node a little before the master can have told."""
    reader = Reader()
    for offset in range(3):
        assert reader.ways.awaited_until_ns(reader.ms * MS) == 0
        reader.both(offset)
    reader.read(3)
    until_ns = reader.ways.awaited_until_ns(reader.ms * MS)
    assert until_ns == (reader.ms + 3) * MS
    reader.ms += 3
    assert reader.ways.awaited_until_ns(reader.ms * MS) == 0
    reader.read(4)
    assert reader.ways.awaited_until_ns(reader.ms * MS) == 0, "two are missing"


def test_a_gap_is_read_from_kafka(reader: Reader) -> None:
    reader.told(5)
    assert not reader.fast()
    reader.told(6)
    reader.read(4)
    assert reader.applied == [0, 1, 2, 3, 4]
    assert reader.ways.next_offset == 5


def test_repeats_and_what_is_late_are_passed_over(reader: Reader) -> None:
    for offset in (3, 4, 4, 0, 3, 5, 2, 4):
        reader.told(offset)
    assert reader.applied == [*range(6)]
    assert reader.fast()
    reader.read(3)
    assert reader.applied == [*range(6)], "nor is it applied when Kafka gives it once more"


def test_silence_sends_the_node_to_kafka_once(reader: Reader) -> None:
    reader.told(4)
    assert reader.ways.due_ns() == (reader.ms + 50) * MS
    reader.ms += 49
    assert reader.tick()
    reader.ms += 1
    assert not reader.tick()
    assert reader.ways.due_ns() is None
    for offset in range(5, 100):  # nothing is told any more: each costs what Kafka takes
        reader.read(offset)
        reader.ms += 5
        assert not reader.tick()


def test_by_default_a_master_without_users_keeps_the_fast_way_open() -> None:
    """Its heartbeats and grants are no silence. Who is told nothing more, by a Redis that stands
    still, has what Kafka has before its coherency lease is over."""
    master, fast_log = MasterSettings(), FastLogSettings()
    reader = Reader(fast_log)
    for offset in range(40):
        reader.ms += master.heartbeat_ms if offset % 2 else master.grants_gather_ms
        assert reader.tick() or offset < fast_log.row_min + 1
        if reader.fast():
            reader.told(offset)
        else:
            reader.both(offset)
    assert reader.fast()
    assert OwnAppendsSettings().silence_ms > master.heartbeat_ms
    coherency = master.coherency
    # The last grant that was told echoes an ask of before the gathering of what was told with it.
    renewed_ms = coherency.duration_ms - master.grants_gather_ms
    assert fast_log.silence_ms < renewed_ms
    reader.ms += fast_log.silence_ms
    assert not reader.tick()


def test_repeats_are_no_sign_of_life(reader: Reader) -> None:
    """A master that was deposed, or a doubled message, must not keep a node from asking Kafka."""
    for _ in range(10):
        reader.ms += 5
        reader.told(3)
    assert not reader.tick()


def test_a_record_that_is_too_large_is_read_from_kafka_at_once(reader: Reader) -> None:
    reader.told(4, whole=False)
    assert not reader.fast()
    reader.read(4)
    for offset in range(5, 9):
        reader.both(offset)
    assert not reader.fast(), "not within the pause"
    reader.ms += 100
    for offset in range(9, 13):
        reader.both(offset)
    assert reader.fast()
    assert reader.applied == [*range(13)]


def test_faults_in_a_row_make_attempts_rare(reader: Reader) -> None:
    pauses = []
    for _ in range(5):
        reader.ways.lost(reader.ms * MS)
        begun_ms = reader.ms
        while not reader.fast():
            reader.ms += 1
            reader.both(reader.ways.next_offset)
        pauses.append(reader.ms - begun_ms)
    assert pauses == [100, 200, 400, 400, 400]


def test_both_ways_are_compared_again_now_and_then(reader: Reader) -> None:
    begun_ms = reader.ms
    while reader.tick():
        assert reader.ms < begun_ms + 20_000
        reader.told(reader.ways.next_offset)
        reader.ms += 10
    assert reader.ms - begun_ms == 10_000
    for _ in range(4):
        reader.both(reader.ways.next_offset)
    assert reader.fast(), "nothing spoke against it: no pause"


def test_nothing_is_believed_before_this_incarnation_was_granted_a_lease_in_this_term() -> None:
    """⚠ Another cluster that shares this Redis may be where this one was copied from."""
    reader = Reader()
    reader.ways.follow(TERM, (2, b"another"), reader.ms * MS)
    assert reader.ways.term == NOBODY
    for offset in range(20):
        reader.told(offset)
        reader.both(offset)
    assert not reader.fast()
    reader.ways.follow(TERM, TERM, reader.ms * MS)
    assert reader.ways.term == TERM


def test_a_new_term_begins_with_kafka(reader: Reader) -> None:
    reader.told(4)
    reader.ways.follow((4, b"next"), TERM, reader.ms * MS)
    assert not reader.fast()
    reader.told(5)
    assert reader.applied == [*range(5)]
    reader.ms += 100
    reader.ways.follow((4, b"next"), (4, b"next"), reader.ms * MS)
    assert reader.ways.term == (4, b"next")
    assert not reader.fast()


def test_what_was_doubted_is_read_from_kafka(reader: Reader) -> None:
    assert reader.ways.receive(4, reader.ms * MS, whole=True)
    reader.ways.doubted(4, reader.ms * MS)
    assert not reader.fast()
    reader.read(4)
    assert reader.applied == [0, 1, 2, 3, 4]


def test_without_the_rule_a_gap_is_jumped_over(reader: Reader) -> None:
    with broken(FastLogRules(in_order=False)):
        reader.told(6)
    assert reader.applied == [0, 1, 2, 3, 6]


def test_off_nobody_is_listened_to_and_nothing_told() -> None:
    off = FastLogSettings(on=False)
    assert Reader(off).ways.term == NOBODY
    assert LogPublisher(off).choose(5) == NOT_PUBLISHED


# ---------------------------------------------------------------- the master's side


def test_a_master_tells_while_somebody_listens() -> None:
    telling = LogPublisher(SETTINGS)
    telling.begin(0)
    for ms in range(0, 1_000, 10):
        number = telling.choose(ms * MS)
        assert number != NOT_PUBLISHED
        telling.confirm(number, (ms + 1) * MS, received=True)


@pytest.mark.parametrize("answers", [True, False])
def test_a_master_whom_nobody_hears_tells_less_and_less(answers: bool) -> None:
    telling = LogPublisher(SETTINGS)
    telling.begin(0)
    told = []
    for ms in range(3_000):
        number = telling.choose(ms * MS)
        if number != NOT_PUBLISHED:
            told.append(ms)
            if answers:
                telling.confirm(number, ms * MS, received=False)
    attempts = [b for a, b in itertools.pairwise([-100, *told]) if b - a > 1]
    gaps = [b - a for a, b in itertools.pairwise(attempts)]
    assert gaps == sorted(gaps)
    assert gaps[0] >= 100
    assert gaps[-1] >= 400
    assert len(told) <= (1 if answers else 20) * 12


def test_an_answer_that_was_given_up_says_nothing_of_later_ones() -> None:
    telling = LogPublisher(SETTINGS)
    telling.begin(0)
    first = telling.choose(0)
    assert telling.choose(20 * MS) == NOT_PUBLISHED
    telling.confirm(first, 21 * MS, received=True)
    assert telling.choose(22 * MS) == NOT_PUBLISHED
    assert telling.choose(120 * MS) != NOT_PUBLISHED


def test_a_new_term_is_told_of_at_once() -> None:
    telling = LogPublisher(SETTINGS)
    telling.confirm(telling.choose(0), 0, received=False)
    assert telling.choose(1) == NOT_PUBLISHED
    telling.begin(2)
    assert telling.choose(2) != NOT_PUBLISHED


# ---------------------------------------------------------------- the node


class Follower:
    """A replicant, and the log as it is; records by hand."""

    def __init__(self, *, candidate: bool = False) -> None:
        self.ms = 1_000
        settings = NodeSettings("r1", candidate=candidate, serving=not candidate)
        self.node = Node(settings, MemoryStore(), CODEC, b"r1", itertools.count(1), self.now())
        self.sequence = 0
        self.digest = b""
        self.receive(self.claim(), read=True)

    def now(self) -> Now:
        return Now(self.ms * MS, (1_700_000_000_000 + self.ms) * 1_000)

    def claim(self) -> bytes:
        self.digest = CODEC.digest(data := CODEC.encode(Claim(1, b"m1", b"", "m1")))
        return data

    def record(self, grants: tuple[Grant, ...] = (), incarnation: bytes = b"m1") -> bytes:
        """The next one of the log."""
        self.sequence += 1
        decided = Decisions(1, incarnation, self.sequence, self.digest, 1, (), (), {}, 0, grants)
        data = CODEC.encode(decided)
        self.digest = CODEC.digest(data)
        return data

    def receive(
        self, data: bytes, offset: int | None = None, *, read: bool = False
    ) -> list[Effect]:
        at = self.node.position.offset if offset is None else offset
        record: LogRecord = CODEC.decode_log(data)
        event = (LogRead if read else LogReceived)(at, record, CODEC.digest(data))
        return self.node.step(event, self.now())

    def tick(self) -> list[Effect]:
        return self.node.step(Tick(), self.now())


def test_l2_a_record_that_is_told_is_applied_as_if_it_were_read() -> None:
    told, read = Follower(), Follower()
    for _ in range(3):
        assert not told.receive(told.record())
        read.receive(read.record(), read=True)
    told.receive(CODEC.encode(Barrier(b"b")))
    read.receive(CODEC.encode(Barrier(b"b")), read=True)
    assert told.node.position == read.node.position
    assert told.node.position.sequence == 3
    assert told.node.stopped is None


def test_l2_what_contradicts_the_log_so_far_is_asked_of_kafka_and_stops_nobody() -> None:
    follower = Follower()
    follower.receive(follower.record())
    before = follower.node.position
    kept = follower.sequence, follower.digest
    follower.record()
    for made_up in (
        follower.record(),  # one is missing before it
        CODEC.encode(Decisions(1, b"m1", 2, b"other", 1, (), (), {}, 0, ())),
        CODEC.encode(Decisions(2, b"m1", 2, kept[1], 1, (), (), {}, 0, ())),
        CODEC.encode(Claim(7, b"x", kept[1], "r1")),
        CODEC.encode(Claim(2, b"x", b"overtaken", "r1")),  # a reader of Kafka's passes these over
        CODEC.encode(Decisions(1, b"m0", 2, kept[1], 1, (), (), {}, 0, ())),
        CODEC.encode(Decisions("1", b"m1", 2, kept[1], 1, (), (), {}, 0, ())),  # type: ignore[arg-type]
        CODEC.encode(Decisions(1, b"m1", 2, kept[1], 1, (), (), 7, 0, ())),  # type: ignore[arg-type]
    ):
        assert follower.receive(made_up) == [ReadLog(before.offset)]
        assert follower.node.position == before
    assert follower.node.stopped is None
    follower.sequence, follower.digest = kept
    follower.receive(follower.record(), read=True)
    assert follower.node.position.sequence == 2


def test_l2_a_chain_of_kafkas_that_this_node_has_not_stops_it() -> None:
    """One record tells nothing: the next one does."""
    follower = Follower()
    follower.record()
    follower.receive(follower.record(), read=True)
    follower.ms += 2 * WAIT_MS
    follower.tick()
    assert follower.node.stopped is None
    follower.receive(follower.record(), read=True)
    follower.ms += WAIT_MS - 1
    follower.tick()
    assert follower.node.stopped is None
    follower.ms += 1
    follower.tick()
    assert "the broker has lost" in str(follower.node.stopped)
    assert follower.node.position.sequence == 0


def test_a_candidate_takes_nothing_that_is_told() -> None:
    candidate = Follower(candidate=True)
    before = candidate.node.position
    assert not candidate.receive(candidate.record())
    assert candidate.node.position == before


def asked_ns(effects: list[Effect]) -> int:
    sent = (e.record for e in effects if isinstance(e, Send) and e.topic == Topic.ACKS)
    (asked,) = (record.asked_ns for record in sent if isinstance(record, Ack))
    assert asked
    return int(asked)


def test_c3_the_term_of_the_last_grant_counts_once_what_stands_before_it_is_committed() -> None:
    follower = Follower()
    follower.ms += 1_000
    asked = asked_ns(follower.tick())
    assert follower.node.granted_in == NOBODY
    foreign = Grant("r1", b"r1 of another cluster", asked, 500)
    follower.receive(follower.record((foreign,)), read=True)
    follower.tick()
    assert follower.node.granted_in == NOBODY, "a grant to another incarnation"
    follower.receive(follower.record((Grant("r1", b"r1", asked, 500),)), read=True)
    assert follower.node.granted_in == NOBODY
    follower.tick()
    assert follower.node.granted_in == follower.node.term == (1, b"m1")
    follower.receive(CODEC.encode(Claim(2, b"m2", follower.digest, "m2")))
    assert follower.node.granted_in == (1, b"m1") != follower.node.term
