"""The advisory locks of a node whose ledger goes away, forgets, or takes it for dead."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest

from leasehold.in_process.ledger import MemoryLedger
from leasehold.lease.agent.session import HolderLimits
from leasehold.lease.commands import (
    ClaimLocks,
    Command,
    KillSession,
    Liveness,
    MarkReady,
    RegisterEpoch,
    Renew,
    SeedTables,
    TakeLock,
    Vouch,
)
from leasehold.lease.replies import LivenessReport, Reply
from leasehold.model.errors import AdvisoryLockLost, LedgerUnavailable, QueryCanceled
from leasehold.model.records.requests import LockFence
from leasehold.replica import advisory_locks
from leasehold.replica.advisory_locks import ROWS, LockName, NodeLocks, Waits
from leasehold.sql_session.advisory_locks import SessionLocks, Taken

ONE = Taken(LockName(1, 0, 1), True)
TTL_MS = 600_000
"""So long that the thread which renews the session is always asleep."""


class Ledger:
    """A ledger in memory with one lock around it; `lost_replies` are carried out, and not told."""

    def __init__(self) -> None:
        self.memory = MemoryLedger()
        self.lost_replies: set[type] = set()
        self._lock = threading.Lock()
        self.open()

    def open(self) -> None:
        run_id = self.memory.run_id
        for command in (RegisterEpoch(1), SeedTables(1, run_id, ()), MarkReady(1, run_id)):
            self.memory.call(command)

    def call(self, command: Command) -> Reply:
        with self._lock:
            reply = self.memory.call(command)
        if type(command) in self.lost_replies:
            raise LedgerUnavailable("the answer was lost")
        return reply


class Node:
    def __init__(self, ledger: Ledger, name: str, numbers: Iterator[int]) -> None:
        self.now_ns = 1_000_000_000
        self.ended: list[int] = []
        self.locks = NodeLocks(
            name,
            lambda: ledger,
            numbers,
            HolderLimits.of_ttl(TTL_MS),
            self.end,
            lambda: self.now_ns,
        )

    def end(self, process: int, why: str) -> bool:
        assert "advisory lock" in why
        self.ended.append(process)
        return True

    def session(self, process: int) -> SessionLocks:
        waits = Waits(lambda: False, 0.0)
        return SessionLocks(self.locks, process, lambda: waits, lambda: True)

    def pass_ms(self, ms: int) -> None:
        """Let time pass, and the thread that renews look."""
        self.now_ns += ms * 1_000_000
        with self.locks._calls:
            self.locks._renew()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def nodes(ledger: Ledger) -> Iterator[tuple[Node, Node]]:
    numbers = itertools.count(1)
    made = Node(ledger, "r1", numbers), Node(ledger, "r2", numbers)
    yield made
    for node in made:
        node.locks.close()


def tries(session: SessionLocks) -> bool:
    return session.take(ONE, ends_with_transaction=False, wait=False)


def test_a_session_that_is_renewed_keeps_its_locks(nodes: tuple[Node, Node]) -> None:
    holder, other = nodes[0].session(1), nodes[1].session(1)
    assert tries(holder)
    for _ in range(4):
        nodes[0].pass_ms(TTL_MS // 2)
    assert not tries(other)
    assert isinstance(holder.fence(), LockFence)


def test_a_lock_is_lost_once_its_session_can_have_ended(
    ledger: Ledger, nodes: tuple[Node, Node]
) -> None:
    """By this node's own clock, before anybody may kill it (D3)."""
    holder = nodes[0].session(1)
    assert tries(holder)
    ledger.memory.reachable = False
    nodes[0].pass_ms(TTL_MS // 2)
    assert holder.fence() is not None
    nodes[0].pass_ms(TTL_MS // 2)
    assert nodes[0].ended == [1]
    with pytest.raises(AdvisoryLockLost):
        holder.fence()
    with pytest.raises(AdvisoryLockLost):
        holder.check()


def test_a_lock_is_lost_when_the_ledger_has_killed_its_session(
    ledger: Ledger, nodes: tuple[Node, Node]
) -> None:
    holder, other = nodes[0].session(1), nodes[1].session(2)
    assert tries(holder)
    report = ledger.memory.call(Liveness())
    assert isinstance(report, LivenessReport)
    (status,) = report.sessions
    ledger.memory.call(KillSession(1, status.session, status.counter))
    assert tries(other)
    nodes[0].pass_ms(TTL_MS // 2)
    assert nodes[0].ended == [1]


@pytest.mark.parametrize("forgets", ["flush", "restart"])
def test_a_lock_is_lost_with_the_state_of_the_ledger(
    ledger: Ledger, nodes: tuple[Node, Node], forgets: str
) -> None:
    holder = nodes[0].session(1)
    assert tries(holder)
    if forgets == "flush":
        ledger.memory.flush()
    else:
        ledger.memory.restart(lose_state=False)
    nodes[0].pass_ms(TTL_MS // 2)
    assert nodes[0].ended == [1]
    ledger.open()
    assert tries(nodes[0].session(3)), "another session has what is free now"


def test_a_renewal_whose_answer_is_lost_ends_nobody(
    ledger: Ledger, nodes: tuple[Node, Node]
) -> None:
    holder = nodes[0].session(1)
    assert tries(holder)
    ledger.lost_replies = {Renew}
    nodes[0].pass_ms(TTL_MS // 2)
    ledger.lost_replies = set()
    nodes[0].pass_ms(1_000)
    nodes[0].pass_ms(TTL_MS // 2)
    assert not nodes[0].ended
    assert holder.fence() is not None
    assert not tries(nodes[1].session(2))


def test_what_could_not_be_given_back_is_given_back_later(
    ledger: Ledger, nodes: tuple[Node, Node]
) -> None:
    holder, other = nodes[0].session(1), nodes[1].session(2)
    assert tries(holder)
    ledger.memory.reachable = False
    assert holder.give(ONE)
    ledger.memory.reachable = True
    assert not tries(other)
    nodes[0].pass_ms(1_000)
    assert tries(other)


def test_a_lock_that_is_taken_anew_is_not_given_back(
    ledger: Ledger, nodes: tuple[Node, Node]
) -> None:
    """By what was owed of a call whose answer was lost, or of a give that did not come through."""
    holder, other = nodes[0].session(1), nodes[1].session(2)
    assert tries(holder)
    ledger.lost_replies = {TakeLock}
    again = nodes[0].session(3)
    assert holder.give(ONE)
    with pytest.raises(LedgerUnavailable):
        tries(again)
    ledger.lost_replies = set()
    nodes[0].now_ns += 1_000_000_000
    assert tries(again)
    nodes[0].pass_ms(1_000)
    assert not tries(other)
    assert again.fence() is not None


def test_without_a_ledger_there_is_no_lock(ledger: Ledger, nodes: tuple[Node, Node]) -> None:
    ledger.memory.reachable = False
    with pytest.raises(LedgerUnavailable, match="no advisory lock"):
        tries(nodes[0].session(1))


def test_a_master_of_an_earlier_release_gives_none(
    ledger: Ledger, nodes: tuple[Node, Node]
) -> None:
    ledger.memory._state.fences = 0  # its script does not write that
    with pytest.raises(LedgerUnavailable, match="earlier release"):
        tries(nodes[0].session(1))


class VouchingLedger(Ledger):
    """One that may be replaced while it lives: its master vouches for calls, or does so no more."""

    def __init__(self) -> None:
        self.is_seen = True
        super().__init__()

    def open(self) -> None:
        run_id = self.memory.run_id
        first = RegisterEpoch(1, vouches=True)
        for command in (first, SeedTables(1, run_id, ()), MarkReady(1, run_id)):
            self.memory.call(command)

    def call(self, command: Command) -> Reply:
        if self.is_seen and isinstance(command, Renew):
            calls = self.memory.state().calls
            self.memory.call(Vouch(1, self.memory.run_id, calls))
        return super().call(command)


def test_d11_a_lock_counts_once_the_master_has_vouched_for_its_session() -> None:
    """A server that is passed over would open sessions, and give locks, beside its successor."""
    ledger = VouchingLedger()
    node = Node(ledger, "r1", itertools.count(1))
    ticks = itertools.count(1_000_000_000, 50_000_000)
    node.locks._clock_ns = lambda: next(ticks)
    holder = node.session(1)
    assert tries(holder), "it waits for that, also who waits for nobody else"
    assert isinstance(holder.fence(), LockFence)
    ledger.is_seen = False
    first_ns = next(ticks)
    while not node.ended:
        node.pass_ms(0)
        assert next(ticks) < first_ns + TTL_MS * 1_000_000, "no call counts any more"
    with pytest.raises(AdvisoryLockLost):
        holder.fence()
    node.locks.close()


def test_d11_no_lock_is_given_by_a_ledger_that_nobody_vouches_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(advisory_locks, "LEDGER_WAIT_S", 0.1)
    ledger = VouchingLedger()
    ledger.is_seen = False
    node = Node(ledger, "r1", itertools.count(1))
    ticks = itertools.count(1_000_000_000, 50_000_000)
    node.locks._clock_ns = lambda: next(ticks)
    with pytest.raises(LedgerUnavailable, match="not vouched for"):
        tries(node.session(1))
    assert not ledger.memory.state().locks
    node.locks.close()


ROWS_CLAIMED = [LockName(ROWS, 7, n) for n in range(4)]


def test_rows_are_claimed_past_those_of_others(nodes: tuple[Node, Node]) -> None:
    """The first that are free, as many as are wanted, and its own again; given back together."""
    one, other = nodes[0].session(1), nodes[1].session(2)
    first, second, third, fourth = ROWS_CLAIMED
    assert one.claim(ROWS_CLAIMED, 2, exclusive=True) == [first, second]
    assert other.claim(ROWS_CLAIMED, 1, exclusive=True) == [third]
    assert other.claim(ROWS_CLAIMED, 9, exclusive=True) == [third, fourth]
    assert one.claim(ROWS_CLAIMED, 9, exclusive=False) == [first, second]
    assert one.fence() is not None
    one.end_transaction()
    assert other.claim(ROWS_CLAIMED, 9, exclusive=True) == ROWS_CLAIMED


def test_a_claim_whose_answer_is_lost_is_given_back(
    ledger: Ledger, nodes: tuple[Node, Node]
) -> None:
    one, other = nodes[0].session(1), nodes[1].session(2)
    ended = SessionLocks(nodes[0].locks, 3, lambda: Waits(lambda: True, 0.0), lambda: True)
    kept = ROWS_CLAIMED[:1]
    assert one.claim(kept, 1, exclusive=True) == kept
    ledger.lost_replies = {ClaimLocks}
    with pytest.raises(QueryCanceled):
        ended.claim(ROWS_CLAIMED, 9, exclusive=True)
    ledger.lost_replies = set()
    assert other.claim(ROWS_CLAIMED, 9, exclusive=True) == []
    nodes[0].pass_ms(1_000)
    assert other.claim(ROWS_CLAIMED, 9, exclusive=True) == ROWS_CLAIMED[1:]
