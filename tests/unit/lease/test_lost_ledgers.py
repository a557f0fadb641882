"""Stories of agents whose ledger is away, has lost what it knew, or has let them expire."""

from __future__ import annotations

import pytest

from leasehold.lease.agent.events import (
    LedgerAway,
    TimePassed,
    VersionKnown,
)
from leasehold.lease.agent.held_leases import LeaseStatus
from leasehold.lease.commands import (
    Acquire,
    EndSession,
    ExpireAgent,
    OpenSession,
    Register,
    Renew,
)
from tests.support.lease.story import LIMITS, SECOND, TTL, World


def test_d3_renew_without_blocking() -> None:
    """Scenario 53: users come and go while a renewal has no answer yet; one call, all tables."""
    world = World(log=dict.fromkeys(range(1, 6), (1, 1)))
    world.ready_master()
    agent = world.agent("n1", has_store=False)
    leases = [agent.use(table) for table in range(1, 6)]
    agent.hold_back = True
    world.now_ns += LIMITS.renew_every_ns
    agent.do(TimePassed())
    assert agent.pending == Renew(1, 1, held=5, confirmed=0)
    assert agent.holder.leases.acquire(1, world.now_ns) is leases[0]
    agent.answer()
    assert agent.pending is None


def test_d3_a_subscriber_stops_at_its_expiry_a_node_with_a_store_goes_on() -> None:
    """Scenarios 53 and 72: with Redis away, and again served when it is back."""
    world = World()
    world.ready_master()
    node, subscriber = world.agent("n1"), world.agent("s1", has_store=False)
    held = [node.use(), subscriber.use()]
    sent_ns = world.now_ns
    world.ledger.reachable = False
    expiry_ns = sent_ns + TTL - LIMITS.margin_ns
    assert subscriber.holder.session.expires_ns == expiry_ns
    assert subscriber.holder.leases.is_valid(held[1], expiry_ns - 1)
    assert subscriber.holder.leases.acquire(1, expiry_ns) is None
    assert not subscriber.holder.leases.is_valid(held[1], expiry_ns)
    assert node.holder.leases.acquire(1, expiry_ns) is held[0]
    world.pass_time(TTL, node, subscriber)
    world.ledger.reachable = True
    world.pass_time(SECOND, node, subscriber)
    assert subscriber.use().version == 1
    assert world.harm() == ""


def test_d3_a_node_with_a_store_does_not_wait_for_a_ledger_that_is_away() -> None:
    """The lease only delays publishing; it is taken as soon as Redis is back."""
    world = World()
    world.ready_master()
    agent = world.agent("n1")
    world.ledger.reachable = False
    assert agent.use().status is LeaseStatus.UNLEASED
    world.ledger.reachable = True
    world.pass_time(SECOND, agent)
    assert world.printed() == "/1/n1"
    assert agent.status(1) is LeaseStatus.HELD


def test_d3_a_subscriber_waits_for_a_ledger_that_is_away() -> None:
    world = World()
    world.ready_master()
    agent = world.agent("s1", has_store=False)
    world.ledger.reachable = False
    assert agent.want() is None
    world.pass_time(SECOND, agent)
    assert agent.wakes == {}
    world.ledger.reachable = True
    world.pass_time(SECOND, agent)
    assert agent.wakes[1].lease is not None


def test_d3_delayed_lease_packet() -> None:
    """Scenario 56: an answer that comes after its own expiry grants nothing."""
    world = World()
    world.ready_master()
    agent = world.agent("s1", has_store=False)
    agent.end(agent.use())
    agent.hold_back = True
    world.now_ns += LIMITS.renew_every_ns
    agent.do(TimePassed())
    world.now_ns += TTL
    agent.answer()
    assert agent.holder.leases.acquire(1, world.now_ns) is None


def test_d3_an_older_version_without_a_ledger_is_used_and_taken_when_it_is_back() -> None:
    world = World(log={1: (2, 1)})
    world.ready_master()
    agent = world.agent("n1")
    world.ledger.reachable = False
    wake = agent.want(1, version=1)
    assert wake is not None
    assert wake.lease is not None
    assert wake.lease.status is LeaseStatus.UNLEASED
    world.ledger.reachable = True
    world.pass_time(SECOND, agent)
    assert world.printed() == "/1/n1"
    agent.end(wake.lease)
    assert world.printed() == ""


def test_d3_a_waiter_is_not_woken_by_a_lease_that_has_run_out() -> None:
    world = World()
    world.ready_master()
    agent = world.agent("s1", has_store=False)
    agent.use()
    agent.hold_back = True
    world.now_ns += TTL
    assert agent.want() is None
    assert isinstance(agent.pending, Renew)
    agent.answer()
    assert agent.wakes[max(agent.wakes)].lease is not None


def test_d6_after_a_lost_answer_all_that_is_held_is_registered() -> None:
    """The grant came, its answer did not: the ledger must not hold what nobody will release."""
    world = World()
    world.ready_master()
    agent = world.agent("s1", has_store=False)
    agent.hold_back = True
    agent.want()
    agent.answer()
    assert isinstance(agent.pending, Acquire)
    world.ledger.call(agent.pending)
    agent.pending = None
    agent.do(LedgerAway())
    agent.hold_back = False
    world.pass_time(SECOND, agent)
    assert [type(command).__name__ for command in agent.sent[-2:]] == ["Register", "Acquire"]
    assert world.printed() == "/1/s1"


# --- D6 ----------------------------------------------------------------------------------------


def test_d6_a_renewal_by_another_run_id_extends_nothing_before_registration() -> None:
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    agent.use()
    expiry_ns = agent.holder.session.expires_ns
    world.ledger.restart()
    master.look()  # seeds it: open for renewals
    agent.hold_back = True
    world.now_ns += LIMITS.renew_every_ns
    agent.do(TimePassed())
    agent.answer()
    assert agent.holder.session.expires_ns == expiry_ns
    assert isinstance(agent.pending, Register)
    agent.answer()
    assert agent.holder.session.expires_ns > expiry_ns
    assert world.printed() == "/1/s1"


@pytest.mark.parametrize("loss", ["restart", "empty", "flush"])
def test_d6_agents_register_what_they_hold_after_any_loss(loss: str) -> None:
    """And users never notice."""
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    agent.use()
    if loss == "flush":
        world.ledger.flush()
    else:
        world.ledger.restart(lose_state=loss == "empty")
    master.look()
    for _ in range(40):
        world.pass_time(SECOND, agent)
        master.look()
        master.tick()
        assert agent.holder.leases.acquire(1, world.now_ns) is not None
    assert world.printed() == "/1/s1"
    assert master.watch.may_publish


def test_d6_a_registration_refused_ends_the_use_of_a_subscriber() -> None:
    """What it held is below current - 1 for the ledger: it must not decode with it."""
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    held = agent.use()
    world.log[1] = (3, 3)  # published while the agent was cut off
    world.ledger.restart()
    master.look()
    world.pass_time(LIMITS.renew_every_ns, agent)
    assert not agent.holder.leases.is_valid(held, world.now_ns)
    assert world.harm() == ""
    agent.do(VersionKnown(1, 3))
    assert agent.use().version == 3
    assert world.printed() == "/3/s1"


# --- D7 ----------------------------------------------------------------------------------------


def test_d7_a_killed_agent_opens_a_session_without_its_leases() -> None:
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    held = agent.use()
    master.look()
    world.now_ns += TTL  # cut off
    master.look()
    assert world.printed() == ""
    agent.do(TimePassed())
    assert not agent.holder.leases.is_valid(held, world.now_ns), "not by the new session either"
    assert agent.use() is not held
    assert world.printed() == "/1/s1"


def test_d7_an_expired_agent_does_not_register_its_old_leases_again() -> None:
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    old = agent.use()
    master.publish()
    assert world.printed() == "/1/s1 /2/s1"
    master.call(ExpireAgent(1, "s1"))
    world.pass_time(LIMITS.renew_every_ns, agent)
    assert not agent.holder.leases.is_valid(old, world.now_ns)
    assert not master.drained(), "counted dead one TTL later"
    master.look()
    for _ in range(20):
        world.pass_time(SECOND, agent)
        master.look()
    assert world.printed() == "/2/s1"


def test_d7_an_expired_session_ends_at_once_where_nobody_can_use_its_leases() -> None:
    """A node with a store has a user of the old version, which its own check refuses; a subscriber
    has nobody. Neither is waited for until its session would have ended by its time."""
    world = World()
    master = world.ready_master()
    node, subscriber = world.agent("n1"), world.agent("s1", has_store=False)
    node.use()
    subscriber.end(subscriber.use())
    subscriber.hold_back = True  # its next lease is not held yet: it still has the old one
    master.publish()
    assert world.printed() == "/1/n1 /1/s1 /2/n1"
    for name in ("n1", "s1"):
        master.call(ExpireAgent(1, name))
    subscriber.hold_back = False
    subscriber.answer()
    world.pass_time(LIMITS.renew_every_ns, node, subscriber)
    assert set(world.printed().split()) == {"/2/n1", "/2/s1"}, "by their next sessions"
    assert master.drained()
    for agent in (node, subscriber):
        first, *_ = [each for each in agent.sent if isinstance(each, EndSession)]
        behind = agent.sent[agent.sent.index(first) + 1]
        assert isinstance(behind, OpenSession), "another one begins once the last one has ended"
        assert behind.session != first.session


def test_d7_the_end_of_a_session_is_said_until_it_is_heard() -> None:
    world = World()
    master = world.ready_master()
    node = world.agent("n1")
    node.use()
    master.publish()
    master.call(ExpireAgent(1, "n1"))
    node.hold_back = True
    while not isinstance(node.sent[-1], EndSession):
        assert len(node.sent) < 20, node.sent
        if node.pending is not None:
            node.answer()
        else:
            world.pass_time(SECOND // 2, node)
    said = len(node.sent)
    node.do(LedgerAway())
    world.pass_time(LIMITS.retry_after_ns, node)
    assert node.sent[said:] == node.sent[said - 1 : said], "once more"
    node.answer()
    (*_, last) = node.sent
    assert isinstance(last, OpenSession)
    assert world.printed() == ""


# --- in process --------------------------------------------------------------------------------
