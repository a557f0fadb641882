"""Agent and Subscriber over the in-memory ledger and a road that the test drives."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections import UserDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from leasehold import __version__
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.states import State
from leasehold.client.agent import REPORT_EVERY_NS, Agent
from leasehold.client.subscriber import Subscriber, VersionNotice
from leasehold.events.rows import RowEvent, RowRecord, TruncationEvent
from leasehold.in_process.ledger import MemoryLedger
from leasehold.lease.commands import (
    Change,
    Command,
    Holders,
    MarkReady,
    Publish,
    RegisterEpoch,
    Seed,
    SeedTables,
    SetMinVersion,
)
from leasehold.lease.replies import HolderList, Published, Reply
from leasehold.model.errors import (
    LedgerUnavailable,
    MalformedRequest,
    NotCoherent,
    UnknownTable,
)
from leasehold.model.features import NEWEST
from leasehold.model.records.acks import AgentMessage, HoldingReport, ProcessReport
from leasehold.model.records.events import RowImage, RowsTruncated, VersionEvent
from leasehold.settings.client import ClientSettings
from leasehold.settings.environment import ClusterSettings
from leasehold.values.types import Type
from tests.support.descriptors import with_state

SOON_S = 10.0
GATE = Column(2, "gate", Type("text"), state=State.DELETE_ONLY)
V1 = Descriptor(1, "flights", 1, (Column(1, "id", Type("integer"), nullable=False),), (1,))
V2 = replace(V1, version=2, columns=(*V1.columns, GATE))
V3 = with_state(V2, 2, State.PUBLIC)
CREWS = replace(V1, table_id=2, name="crews")


class Ledger:
    """The pure ledger for several threads, with a switch."""

    def __init__(self) -> None:
        self.inner = MemoryLedger()
        self.called = threading.Condition()
        self.closed = False

    def call(self, command: Command) -> Reply:
        with self.called:
            self.called.notify_all()
            return self.inner.call(command)

    def close(self) -> None:
        self.closed = True

    def open_for(self, *descriptors: Descriptor) -> None:
        self.call(RegisterEpoch(1))
        seeds = tuple(Seed(d.table_id, d.version, max(1, d.version - 1)) for d in descriptors)
        self.call(SeedTables(1, self.inner.run_id, seeds))
        self.call(MarkReady(1, self.inner.run_id))

    def publish(self, version: int) -> bool:
        self.call(SetMinVersion(1, 1, version - 1))
        reply = self.call(Publish(1, (Change(1, version - 1, version),), version))
        return isinstance(reply, Published)

    def holders(self) -> list[tuple[str, int]]:
        reply = self.call(Holders(1))
        assert isinstance(reply, HolderList)
        return [(h.agent, h.version) for h in reply.holders]


class VersionStream:
    def __init__(self) -> None:
        self._events: deque[VersionEvent] = deque()
        self.told: list[VersionEvent] = []
        self.reports: list[HoldingReport] = []
        self.processes: list[ProcessReport] = []
        self.something = threading.Condition()
        self.acknowledged: list[tuple[str, int, int]] = []
        self.rewinds = 0
        self.closed = False

    def put(self, descriptor: Descriptor, *, silently: bool = False) -> None:
        """`silently`: on the topic, but its reader is not woken by it."""
        named = (descriptor.table_id, descriptor.name, descriptor.version)
        event = VersionEvent(*named, 1, 1, descriptor.to_wire(), 0, "")
        with self.something:
            self.told.append(event)
            if not silently:
                self._events.append(event)
                self.something.notify_all()

    def events(self, timeout_s: float) -> list[VersionEvent]:
        with self.something:
            self.something.wait_for(lambda: bool(self._events), timeout_s)
            found = list(self._events)
            self._events.clear()
            return found

    def acknowledge(self, agent: str, record: AgentMessage) -> None:
        with self.something:
            if isinstance(record, HoldingReport):
                self.reports.append(record)
            elif isinstance(record, ProcessReport):
                self.processes.append(record)
            else:
                self.acknowledged.append((record.agent, record.table_id, record.version))
            self.something.notify_all()

    def rewind(self) -> None:
        with self.something:
            self.rewinds += 1
            self._events.extend(self.told)
            self.something.notify_all()

    def close(self) -> None:
        self.closed = True


class Clock:
    def __init__(self) -> None:
        self.ns = 1_000_000_000_000

    def __call__(self) -> int:
        return self.ns


@contextmanager
def an_agent(ledger: Ledger, road: VersionStream, clock: Clock, **settings: Any) -> Iterator[Agent]:
    made = ClientSettings(cluster=ClusterSettings(node="pricing"), **settings)
    with Agent(made, ledger=ledger, source=road, clock_ns=clock) as agent:
        yield agent
    assert road.closed
    assert ledger.closed
    left = {thread.name for thread in threading.enumerate()}
    assert not left & {"leasehold-leases", "leasehold-versions"}


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger()
    made.open_for(V1)
    return made


@pytest.fixture
def road() -> VersionStream:
    made = VersionStream()
    made.put(V1)
    return made


@pytest.fixture
def clock() -> Clock:
    return Clock()


def moved(ledger: Ledger, version: int) -> bool:
    """Whether the agent comes to hold that version alone, as the ledger has it."""

    def holds() -> bool:
        reply = ledger.inner.call(Holders(1))
        assert isinstance(reply, HolderList)
        return [(h.agent, h.version) for h in reply.holders] == [("pricing", version)]

    with ledger.called:
        return ledger.called.wait_for(holds, SOON_S)


def left(ledger: Ledger) -> bool:
    """Whether the agent comes to hold nothing."""

    def holds() -> bool:
        reply = ledger.inner.call(Holders(1))
        assert isinstance(reply, HolderList)
        return bool(reply.holders)

    with ledger.called:
        return ledger.called.wait_for(lambda: not holds(), SOON_S)


def acknowledged(road: VersionStream, version: int) -> bool:
    wanted = ("pricing", 1, version)
    with road.something:
        return road.something.wait_for(lambda: wanted in road.acknowledged, SOON_S)


def test_a_lease_is_taken_used_and_kept(ledger: Ledger, road: VersionStream, clock: Clock) -> None:
    with an_agent(ledger, road, clock) as agent:
        with agent.lease("flights", SOON_S) as descriptor:
            assert descriptor == V1
            assert ledger.holders() == [("pricing", 1)]
        assert ledger.holders() == [("pricing", 1)]  # D4: at refcount 0 it is kept
        ledger.inner.reachable = False
        with agent.lease("flights", 0) as descriptor:  # a held lease asks nobody
            assert descriptor.version == 1
        ledger.inner.reachable = True
    assert ledger.holders() == []  # given back at the end


def test_d4_new_users_move_at_once_and_the_old_lease_goes_with_its_last_user(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    with an_agent(ledger, road, clock) as agent:
        old = agent.acquire("flights", SOON_S)
        assert ledger.publish(2)
        road.put(V2)
        moved = threading.Event()

        def wait_until_moved() -> None:
            while not moved.is_set():
                with agent.lease("flights", SOON_S) as descriptor:
                    if descriptor.version == 2:
                        moved.set()

        thread = threading.Thread(target=wait_until_moved)
        thread.start()
        assert moved.wait(SOON_S)
        thread.join()
        assert sorted(ledger.holders()) == [("pricing", 1), ("pricing", 2)]
        assert not ledger.publish(3), "D2: somebody holds version 1"
        agent.release(old)
        assert acknowledged(road, 2)
        assert ledger.holders() == [("pricing", 2)]
        assert ledger.publish(3)


def test_uses_without_a_label_are_one_until_the_name_or_the_version_is_another(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    with an_agent(ledger, road, clock) as agent:
        first, again = agent.acquire("flights", SOON_S), agent.acquire("flights", SOON_S)
        assert again is first
        named = agent.acquire("flights", SOON_S, label="export")
        assert named.named is not None
        assert len(first.held.users) == 2
        for use in (first, again, named):
            agent.release(use)
        assert first.held.is_idle
        assert ledger.publish(2)
        known = threading.Event()
        agent.on_version(lambda event: known.set() if event.version == 2 else None)
        ledger.inner.reachable = False  # so that what it holds stays what it would give
        renamed = replace(V1, version=2, name="journeys")
        road.put(renamed)
        assert known.wait(SOON_S)
        with pytest.raises(UnknownTable):
            agent.acquire("flights", 0)
        ledger.inner.reachable = True
        with agent.lease("journeys", SOON_S) as descriptor:
            assert descriptor.table_id == renamed.table_id


def test_d4_who_waits_for_an_agent_is_told_at_what_work_it_is(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    with an_agent(ledger, road, clock) as agent:
        use = agent.acquire("flights", SOON_S, label="nightly export")
        with agent.lease("flights", SOON_S):
            assert ledger.publish(2)
            road.put(V2)
            agent.release(agent.acquire("flights", SOON_S))
            while not road.reports:
                clock.ns += 100_000_000
                nudge(agent)
            told = road.reports[0]
            assert (told.agent, told.version, told.users) == ("pricing", 1, 2)
            assert [label for label, _, _ in told.work] == ["nightly export"]
        agent.release(use)
        assert acknowledged(road, 2), "it goes on as without a name"


def test_a_silent_topic_is_noticed_at_renewal(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    with an_agent(ledger, road, clock) as agent:
        with agent.lease("flights", SOON_S):
            pass
        assert ledger.publish(2)
        road.put(V2, silently=True)
        clock.ns += 6_000_000_000
        nudge(agent)
        assert moved(ledger, 2), "it moved although no event came"
        assert road.rewinds == 1


def nudge(agent: Agent) -> None:
    """The clock of the test has moved: the thread that waits for a time looks at it again."""
    with agent._work:
        agent._work.notify_all()


def test_d3_a_lease_is_valid_until_its_own_expiry_and_again_after_a_renewal(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    with an_agent(ledger, road, clock) as agent:
        use = agent.acquire("flights", SOON_S)
        ledger.inner.reachable = False
        clock.ns = agent.expires_ns - 1
        assert agent.is_valid(use)
        clock.ns += 1
        assert not agent.is_valid(use)
        with pytest.raises(NotCoherent, match="flights"):
            agent.acquire("flights", 0)
        agent.release(use)
        ledger.inner.reachable = True
        clock.ns += 1_000_000_000
        nudge(agent)
        with agent.lease("flights", SOON_S) as descriptor:
            assert descriptor.version == 1


def test_what_is_not_published_is_an_unknown_table(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    with an_agent(ledger, road, clock) as agent:
        with agent.lease("flights", SOON_S):
            pass
        with pytest.raises(UnknownTable, match="known are: flights"):
            agent.acquire("fights", 0)


def test_a_ledger_that_is_away_is_told_to_those_who_wait(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    ledger.inner.reachable = False
    with an_agent(ledger, road, clock) as agent:
        asked = threading.Event()
        call = ledger.call

        def counted(command: Command) -> Reply:
            try:
                return call(command)
            except LedgerUnavailable:
                asked.set()
                raise

        ledger.call = counted  # type: ignore[method-assign]
        with pytest.raises(NotCoherent):
            agent.acquire("flights", 0.05)
        assert asked.wait(SOON_S)
        clock.ns += 1_000_000_000
        ledger.inner.reachable = True
        nudge(agent)
        with agent.lease("flights", SOON_S) as descriptor:
            assert descriptor.version == 1


class SlowHolder(Clock):
    """A clock by which each step of the thread that holds leases takes a tenth of a second."""

    def __call__(self) -> int:
        if threading.current_thread().name == "leasehold-leases":
            self.ns += 100_000_000
        return self.ns


MANY = 300
"""So many steps take longer than a session lasts."""


@pytest.mark.parametrize("tables", [1, MANY])
def test_d3_an_answer_counts_however_often_leases_are_looked_for_meanwhile(
    road: VersionStream, tables: int
) -> None:
    """A lease is good from the sending of what it was answered to. While the ledger thinks, users
    look for one again and again: what they leave behind must not make each answer come late, or
    none would ever be in time."""
    described = [replace(V1, table_id=n, name=f"t{n}") for n in range(2, tables + 2)]
    ledger, clock = Ledger(), SlowHolder()
    ledger.open_for(*described)
    for each in described:
        road.put(each)
    call = ledger.call

    with an_agent(ledger, road, clock) as agent:
        known = threading.Event()
        agent.on_version(lambda event: known.set() if event.table_id > tables else None)
        assert known.wait(SOON_S)

        def look() -> None:
            for n in range(MANY):
                with suppress(NotCoherent):
                    agent.release(agent.acquire(described[n % tables].name, 0))

        def slow(command: Command) -> Reply:
            users = threading.Thread(target=look)
            users.start()
            users.join()
            return call(command)

        ledger.call = slow  # type: ignore[method-assign]
        begun_ns = clock.ns
        try:
            with agent.lease("t2", SOON_S) as descriptor:
                assert descriptor.version == 1
            if tables == 1:
                assert clock.ns - begun_ns < MANY * 100_000_000, "a step for each look"
        finally:
            ledger.call = call  # type: ignore[method-assign]


# --- subscriber --------------------------------------------------------------------------------


def test_a_closed_subscriber_is_told_nothing_more(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    """An agent may outlive any number of them."""
    with an_agent(ledger, road, clock) as agent:
        subscriber = Subscriber(agent, row_source=Rows())
        left = weakref.ref(subscriber)
        subscriber.close()
        subscriber.close()
        del subscriber
        gc.collect()
        assert left() is None


class Rows:
    def __init__(self) -> None:
        self.followed: list[int] = []
        self.records: deque[RowRecord] = deque()

    def follow(self, table_id: int) -> None:
        self.followed.append(table_id)

    def rows(self, timeout_s: float, rows_max: int) -> list[RowRecord]:
        return [self.records.popleft() for _ in range(min(rows_max, len(self.records)))]

    def close(self) -> None:
        pass


def row(key: int, gate: str, version: int = 3) -> RowRecord:
    return RowRecord(1, (key,), RowImage(1, (key,), {0: 1}, 9, version, 1, {1: key, 2: gate}))


def until(subscriber: Subscriber, wanted: Callable[[list[Any]], bool]) -> list[Any]:
    seen: list[Any] = []
    limit = threading.Event()
    timer = threading.Timer(SOON_S, limit.set)
    timer.start()
    try:
        while not wanted(seen):
            assert not limit.is_set(), f"only {seen}"
            seen += subscriber.poll(0.05)
    finally:
        timer.cancel()
        timer.join()
    return seen


def test_a_subscriber_hears_of_a_truncation_once_and_of_no_row_from_before_it(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    """Each partition tells of it; one may be behind another."""

    def image(key: int, lsn: int) -> RowRecord:
        return RowRecord(1, (key,), RowImage(1, (key,), {0: 1}, lsn, 1, 1, {1: key}))

    def truncated(lsn: int) -> RowRecord:
        return RowRecord(1, (), RowsTruncated(1, lsn, 7))

    rows = Rows()
    rows.records += [image(5, 9), truncated(20), image(6, 20), image(7, 19), truncated(20)]
    rows.records += [image(8, 21), truncated(30), image(9, 31)]
    with (
        an_agent(ledger, road, clock) as agent,
        Subscriber(agent, ["flights"], row_source=rows) as subscriber,
    ):
        seen = until(subscriber, lambda news: len(news) >= 7)[1:]
    told = [n.lsn for n in seen]
    assert told == [9, 20, 20, 21, 30, 31]
    events = [n for n in seen if isinstance(n, TruncationEvent)]
    assert events == [TruncationEvent("flights", 20, 7), TruncationEvent("flights", 30, 7)]


def test_a_subscriber_gives_versions_with_words_and_rows_under_the_version_held(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    rows = Rows()
    rows.records += [row(5, "B4"), RowRecord(1, (6,), None)]
    with (
        an_agent(ledger, road, clock) as agent,
        Subscriber(agent, ["flights"], row_source=rows) as subscriber,
    ):
        seen = until(subscriber, lambda news: len(news) >= 3)
        assert isinstance(seen[0], VersionNotice)
        assert str(seen[0]).startswith("flights version 1: column id added")
        assert seen[1].values == {"id": 5}, "gate is not there at version 1"
        assert (seen[2].key, seen[2].values) == ({"id": 6}, None)
        for version, descriptor in ((2, V2), (3, V3)):
            assert ledger.publish(version)
            road.put(descriptor)
            # Nobody uses version 2: its lease goes before one on 3 is held.
            assert moved(ledger, version) if version == 2 else left(ledger)
        rows.records.append(row(5, "B5"))
        seen = until(subscriber, lambda news: any(isinstance(n, RowEvent) for n in news))
        assert "gate: delete-only → public" in str(seen[1])
        assert seen[-1].values == {"id": 5, "gate": "B5"}
        assert rows.followed == [1]


def test_a_poll_waits_for_a_version_event_when_no_rows_are_followed(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    """It once came back at once with nothing, and who iterates then takes a whole processor."""
    with an_agent(ledger, road, clock) as agent, Subscriber(agent, row_source=Rows()) as subscriber:
        until(subscriber, bool)
        comes = threading.Timer(0.3, road.put, [V2])
        comes.start()
        polls = 1
        while not subscriber.poll(0.1):
            polls += 1
        comes.join()
        assert polls <= 10, "three would do, thousands are a busy loop"


def test_d3_without_a_valid_lease_nothing_is_decoded_until_there_is_one_again(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    rows = Rows()
    with (
        an_agent(ledger, road, clock) as agent,
        Subscriber(agent, ["flights"], row_source=rows) as subscriber,
    ):
        rows.records.append(row(1, "A1"))
        until(subscriber, lambda news: len(news) >= 2)
        ledger.inner.reachable = False
        clock.ns = agent.expires_ns
        rows.records += [row(2, "A2"), row(3, "A3")]
        assert subscriber.poll(0.05) == []
        assert subscriber.poll(0.05) == []
        assert subscriber.waits_for_lease
        ledger.inner.reachable = True
        clock.ns += 1_000_000_000
        nudge(agent)
        seen = until(subscriber, lambda news: len(news) >= 2)
        assert [event.key for event in seen] == [{"id": 2}, {"id": 3}]


def crew(key: int) -> RowRecord:
    return RowRecord(2, (key,), RowImage(2, (key,), {0: 1}, 9, 1, 1, {1: key}))


def test_rows_of_a_table_without_a_lease_hold_up_no_other_ones(
    road: VersionStream, clock: Clock
) -> None:
    ledger = Ledger()
    ledger.open_for(CREWS)  # `flights` is in the log, and not in the ledger yet
    road.put(CREWS)
    rows = Rows()
    rows.records += [row(1, "A1"), crew(7), crew(8)]
    with (
        an_agent(ledger, road, clock) as agent,
        Subscriber(agent, ["flights", "crews"], row_source=rows) as subscriber,
    ):
        seen = until(subscriber, lambda news: len(news) >= 4)
        assert [each.key for each in seen[2:]] == [{"id": 7}, {"id": 8}]
        assert subscriber.waits_for_lease


def test_d9_a_table_that_is_renamed_is_followed_on(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    rows = Rows()
    with (
        an_agent(ledger, road, clock) as agent,
        Subscriber(agent, ["flights"], row_source=rows) as subscriber,
    ):
        until(subscriber, bool)
        for version, alias in ((2, "flights"), (3, "")):
            assert ledger.publish(version)
            road.put(replace(V1, version=version, name="trips", alias=alias))
            until(subscriber, bool)
        rows.records.append(row(5, "B5"))
        (found,) = until(subscriber, bool)
        assert (found.table, found.key, found.version) == ("trips", {"id": 5}, 3)


def test_rows_of_a_table_that_is_gone_hold_up_no_other_ones(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    """Nobody will ever hold a lease on it again."""
    ledger.open_for(V1, CREWS)
    road.put(CREWS)
    rows = Rows()
    with (
        an_agent(ledger, road, clock) as agent,
        Subscriber(agent, ["flights", "crews"], row_source=rows) as subscriber,
    ):
        until(subscriber, lambda news: len(news) >= 2)
        clock.ns = agent.expires_ns
        ledger.inner.reachable = False
        rows.records += [row(1, "A1"), crew(7)]
        assert subscriber.poll(0.05) == []
        road.put(replace(V1, version=2, state=State.ABSENT))
        until(subscriber, bool)
        ledger.inner.reachable = True
        clock.ns += 1_000_000_000
        nudge(agent)
        (found,) = until(subscriber, bool)
        assert found.key == {"id": 7}
        assert subscriber.poll(0.0) == []
        assert not subscriber.waits_for_lease


class Unreadable(Rows):
    """Behind the first record there is one that nobody can read."""

    def __init__(self) -> None:
        super().__init__()
        self.told = 0

    def rows(self, timeout_s: float, rows_max: int) -> list[RowRecord]:
        found = super().rows(timeout_s, 1)
        if found:
            return found
        self.told += 1
        raise MalformedRequest(f"record {self.told} is no row image")


def test_a_record_that_nobody_can_read_is_told_behind_those_before_it(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    """Also where those wait for a lease; and what stands behind it comes."""
    rows = Unreadable()
    ledger.inner.reachable = False
    with (
        an_agent(ledger, road, clock) as agent,
        Subscriber(agent, ["flights"], row_source=rows) as subscriber,
    ):
        rows.records.append(row(1, "A1"))
        until(subscriber, bool)
        for _ in range(3):
            assert subscriber.poll(0.01) == []
        ledger.inner.reachable = True
        clock.ns += 1_000_000_000
        nudge(agent)
        (found,) = until(subscriber, bool)
        assert found.key == {"id": 1}
        with pytest.raises(MalformedRequest, match="record 1 is"):
            subscriber.poll(0.0)
        rows.records.append(row(3, "A3"))
        (found,) = until(subscriber, bool)
        assert found.key == {"id": 3}


def test_a_version_event_that_came_beside_a_record_nobody_can_read_is_told(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    with (
        an_agent(ledger, road, clock) as agent,
        Subscriber(agent, ["flights"], row_source=Unreadable()) as subscriber,
    ):
        told = threading.Event()
        agent.on_version(lambda event: told.set() if event.version == 1 else None)
        assert told.wait(SOON_S)
        with pytest.raises(MalformedRequest, match="record 1 is"):
            subscriber.poll(0.0)
        subscriber._row_source = Rows()
        (notice,) = subscriber.poll(0.0)
        assert isinstance(notice, VersionNotice)


def test_d3_a_lease_that_runs_out_in_a_batch_stops_it_there(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    """Decoding the second of three rows takes until after the lease's expiry."""

    class Slow(UserDict[int, Any]):
        def __getitem__(self, key: int) -> Any:
            clock.ns = max(clock.ns, expiry_ns)
            return super().__getitem__(key)

    rows = Rows()
    with (
        an_agent(ledger, road, clock) as agent,
        Subscriber(agent, ["flights"], row_source=rows) as subscriber,
    ):
        rows.records.append(row(1, "A1"))
        until(subscriber, lambda news: len(news) >= 2)
        expiry_ns = agent.expires_ns
        ledger.inner.reachable = False
        slow = RowImage(1, (3,), {0: 1}, 9, 1, 1, Slow({1: 3}))
        rows.records += [row(2, "A2"), RowRecord(1, (3,), slow), row(4, "A4")]
        assert [event.key for event in until(subscriber, bool)] == [{"id": 2}]
        assert subscriber.poll(0.05) == []
        ledger.inner.reachable = True
        clock.ns += 1_000_000_000
        nudge(agent)
        seen = until(subscriber, lambda news: len(news) >= 2)
        assert [event.key for event in seen] == [{"id": 3}, {"id": 4}]


def test_an_agent_says_what_it_reads_again_and_again_until_it_has_ended(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    def told(count: int) -> bool:
        with road.something:
            return road.something.wait_for(lambda: len(road.processes) >= count, SOON_S)

    with an_agent(ledger, road, clock) as agent:
        agent.role = "subscriber"
        agent.release(agent.acquire("flights", SOON_S))
        assert not road.processes, "it may be here for a moment only"
        for count in (1, 2):
            clock.ns += REPORT_EVERY_NS
            nudge(agent)
            assert told(count)
    said = [(each.role, each.release, each.reads, each.ended) for each in road.processes]
    assert said == [("subscriber", __version__, NEWEST, ended) for ended in (False, False, True)]
    assert {each.process.rpartition("/")[2] for each in road.processes} == {str(os.getpid())}
    assert road.processes[0].process.startswith("subscriber pricing at ")


def test_an_agent_that_has_said_nothing_says_no_farewell(
    ledger: Ledger, road: VersionStream, clock: Clock
) -> None:
    with an_agent(ledger, road, clock):
        pass
    assert not road.processes
