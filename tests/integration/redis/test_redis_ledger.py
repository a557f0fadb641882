"""The Lua ledger against the pure one, reply by reply, on a Redis of its own that loses state."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import redis

from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.redis.ledger import RedisLedger
from leasehold.adapters.redis.ledger_thread import Completed, LedgerThread
from leasehold.lease.agent.events import Answered, Event, Idle, Send, VersionKnown, Wake, Want
from leasehold.lease.agent.held_leases import HeldLease
from leasehold.lease.agent.holder import Holder
from leasehold.lease.commands import (
    HOLDERS_MAX,
    LEASES_PER_SESSION_MAX,
    Acquire,
    Change,
    Command,
    Holders,
    Lease,
    ListLocks,
    Liveness,
    MarkReady,
    OpenSession,
    Publish,
    Register,
    RegisterEpoch,
    Renew,
    Seed,
    SeedTables,
    SetMinVersion,
    Snapshot,
)
from leasehold.lease.ledger.ledger import LedgerState, apply, check
from leasehold.lease.replies import (
    HolderList,
    LedgerRefused,
    LivenessReport,
    Published,
    RefusalReason,
)
from leasehold.model.errors import LedgerUnavailable
from leasehold.settings.environment import RedisSettings
from tests.support.cluster.redis_server import RedisServer, redis_in
from tests.support.lease.random_commands import CommandMaker

ALL_LOCKS = ListLocks(1_000)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_in(tmp_path) as made:
        yield made


def ledger_on(server: RedisServer, database: str = "t", timeout_s: float = 5.0) -> RedisLedger:
    return RedisLedger(RedisSettings(url=server.url), database, timeout_s)


def run_id_of(ledger: RedisLedger) -> str:
    return ledger.call(Liveness()).run_id


@pytest.mark.parametrize("seed", range(8))
def test_d1_to_d7_pure_and_redis_give_the_same_replies(server: RedisServer, seed: int) -> None:
    """2,000 random commands per seed; the state is lost in every way a Redis can lose it."""
    random = Random(seed)
    maker = CommandMaker(random)
    ledger = ledger_on(server, f"seed{seed}")
    run_id, state, refused = run_id_of(ledger), LedgerState(), 0
    mark: tuple[int, LedgerState] = (server.written(), state.copy())
    restarts = set(random.sample(range(200, 2_000), 3))
    for step in range(2_000):
        if step in restarts:
            whole = random.random() < 0.3
            server.restart(None if whole else mark[0])
            if not whole:
                state = mark[1].copy()
            assert run_id_of(ledger) != run_id, "D6: a restart has another run id"
            run_id = run_id_of(ledger)
            mark = (server.written(), state.copy())
        elif random.random() < 0.002:
            redis.Redis.from_url(server.url).flushall()
            state = LedgerState()
            mark = (server.written(), state.copy())
        elif random.random() < 0.05:
            mark = (server.written(), state.copy())
        command = maker.make(state, run_id)
        expected = apply(state, command, run_id)
        refused += isinstance(expected, LedgerRefused)
        assert ledger.call(command) == expected, f"seed {seed}, step {step}: {command}"
        assert ledger.call(Snapshot()) == apply(state, Snapshot(), run_id), f"{seed}/{step}"
        assert ledger.call(ALL_LOCKS) == apply(state, ALL_LOCKS, run_id), f"{seed}/{step}"
        check(state, run_id)
    assert 200 < refused < 1_800, "the commands test both roads"
    ledger.close()


def open_for_publishing(ledger: RedisLedger, *seeds: Seed, epoch: int = 1) -> str:
    run_id = run_id_of(ledger)
    ledger.call(RegisterEpoch(epoch))
    ledger.call(SeedTables(epoch, run_id, seeds))
    ledger.call(MarkReady(epoch, run_id))
    return run_id


def test_d6_flushall_keeps_the_run_id_and_closes_the_ledger(server: RedisServer) -> None:
    ledger = ledger_on(server)
    run_id = open_for_publishing(ledger, Seed(1, 1, 1))
    ledger.call(OpenSession("a", 1))
    redis.Redis.from_url(server.url).flushall()
    reply = ledger.call(Renew(1, 1, 0, 0))
    assert reply == LedgerRefused(RefusalReason.CLOSED, run_id)
    ledger.close()


def test_d6_a_lost_tail_reopens_nothing(server: RedisServer) -> None:
    """Races 2: versions 2 and 3 are lost with the tail; an acquire of 1 must not be granted."""
    ledger = ledger_on(server)
    open_for_publishing(ledger, Seed(1, 1, 1))
    ledger.call(OpenSession("a", 1))
    kept = server.written()
    for version in (1, 2):
        assert isinstance(ledger.call(Publish(1, (Change(1, version, version + 1),))), Published)
        ledger.call(SetMinVersion(1, 1, version + 1))
    server.restart(kept)
    run_id = run_id_of(ledger)
    assert ledger.call(Acquire(1, 9, 1, 1)) == LedgerRefused(RefusalReason.CLOSED, run_id)
    assert not ledger.call(SeedTables(1, run_id, (Seed(1, 3, 3),))).swept  # type: ignore[union-attr]
    refused = ledger.call(Acquire(1, 9, 1, 1))
    assert isinstance(refused, LedgerRefused)
    assert refused.reason is RefusalReason.TOO_OLD
    ledger.close()


def test_d2_holders_are_named_up_to_the_limit_and_counted(server: RedisServer) -> None:
    ledger = ledger_on(server)
    open_for_publishing(ledger, Seed(1, 2, 1))
    for session in range(1, HOLDERS_MAX + 10):
        ledger.call(Register(f"agent {session}", session, 1, (Lease(1, 1),)))
    reply = ledger.call(Holders(1, 2))
    assert isinstance(reply, HolderList)
    assert reply.holders_total == HOLDERS_MAX + 9
    assert [holding.session for holding in reply.holders] == list(range(1, HOLDERS_MAX + 1))
    ledger.close()


def test_d2_two_databases_in_one_redis_do_not_meet(server: RedisServer) -> None:
    one, other = ledger_on(server, "one"), ledger_on(server, "other")
    open_for_publishing(one, Seed(1, 5, 5))
    reply = other.call(Liveness())
    assert isinstance(reply, LivenessReport)
    assert (reply.epoch, reply.seeded) == (0, False)
    one.close()
    other.close()


def test_d6_a_redis_without_memory_refuses_whole_commands(server: RedisServer) -> None:
    """noeviction: no half of a registration is carried out."""
    ledger = ledger_on(server)
    open_for_publishing(ledger, Seed(1, 1, 1))
    ledger.call(Register("a", 1, 1, (Lease(1, 1),)))
    before = ledger.call(Snapshot())
    client = redis.Redis.from_url(server.url)
    client.config_set("maxmemory", "1")
    with pytest.raises(LedgerUnavailable, match="maxmemory"):
        ledger.call(Register("a", 1, 2, ()))
    client.config_set("maxmemory", "256mb")
    assert ledger.call(Snapshot()) == before
    ledger.close()


def test_d6_a_redis_that_hangs_or_is_gone_is_unavailable_in_bounded_time(
    server: RedisServer,
) -> None:
    ledger = ledger_on(server, timeout_s=0.2)
    ledger.call(Liveness())
    server.pause()
    with pytest.raises(LedgerUnavailable, match="Liveness"):
        ledger.call(Liveness())
    server.resume()
    server.kill()
    with pytest.raises(LedgerUnavailable, match="schema changes wait"):
        ledger.call(Liveness())
    server.start()
    assert isinstance(ledger.call(Liveness()), LivenessReport)
    ledger.close()


def test_many_questions_are_answered_in_order_for_one_round_trip(server: RedisServer) -> None:
    """Also after an error in the middle, whose replies must not be taken for the next ones'."""
    ledger = ledger_on(server, timeout_s=0.2)
    open_for_publishing(ledger, *(Seed(table, 1, 1) for table in range(1, 301)))
    for number, agent in enumerate(("a", "b", "c")):
        leases = tuple(Lease(table, 1) for table in range(1, 301) if table % 3 == number)
        ledger.call(Register(agent, number + 1, 1, leases[:LEASES_PER_SESSION_MAX]))
    questions: list[Command] = [Holders(table) for table in range(300, 0, -1)]
    told = [ledger.call(question) for question in questions]
    assert ledger.call_all(questions) == told
    assert ledger.call_all([]) == []
    redis.Redis.from_url(server.url).script_flush()
    assert ledger.call_all(questions) == told, "the script was not there"
    server.pause()
    with pytest.raises(LedgerUnavailable):
        ledger.call_all(questions)
    server.resume()
    assert ledger.call_all(questions[:2]) == told[:2]
    ledger.close()


def test_d6_the_ledger_thread_answers_in_order_and_refuses_when_full(server: RedisServer) -> None:
    done: list[Completed] = []
    enough = threading.Event()

    def completed(completion: Completed) -> None:
        done.append(completion)
        if len(done) == 4:
            enough.set()

    thread = LedgerThread(ledger_on(server, timeout_s=10.0), completed, queue_max=4)
    server.pause()
    accepted = [thread.submit(Liveness(), token) for token in range(7)]
    assert accepted[:4] == [True] * 4
    assert not accepted[6], "the queue is bounded"
    server.resume()
    assert enough.wait(20)
    thread.close()
    assert [completion.token for completion in done] == [t for t in range(7) if accepted[t]]
    assert all(isinstance(c.outcome, LivenessReport) for c in done)
    assert all(c.sent_ns <= c.received_ns for c in done)


def test_d4_agents_on_redis_drain_a_version(server: RedisServer) -> None:
    """The real holders on the real ledger: three agents move to version 2 and let 1 go."""
    ledger = ledger_on(server)
    open_for_publishing(ledger, Seed(1, 1, 1))
    ids = iter(range(1, 10))
    holders = [Holder(f"n{n}", ids, has_store=n > 0) for n in range(3)]
    now_ns = boottime_ns()

    def step(holder: Holder, event: Event) -> list[HeldLease]:
        used: list[HeldLease] = []
        for effect in holder.step(event, now_ns):
            if isinstance(effect, Send):
                used += step(holder, Answered(ledger.call(effect.command)))
            elif isinstance(effect, Wake) and effect.lease is not None:
                used.append(effect.lease)
        return used

    used = []
    for holder in holders:
        step(holder, VersionKnown(1, 1))
        used += step(holder, Want(1, token=1))
    assert [lease.version for lease in used] == [1, 1, 1]
    ledger.call(Publish(1, (Change(1, 1, 2),)))
    for holder in holders:
        step(holder, VersionKnown(1, 2))
    for n, (holder, lease) in enumerate(zip(holders, used, strict=True)):
        waiting = ledger.call(Holders(1, 2))
        assert isinstance(waiting, HolderList)
        assert [h.agent for h in waiting.holders] == [f"n{m}" for m in range(n, 3)]
        assert holder.leases.release(lease)
        step(holder, Idle())
    drained = ledger.call(Holders(1, 2))
    assert isinstance(drained, HolderList)
    assert (drained.ready, drained.holders_total) == (True, 0)
    ledger.close()
