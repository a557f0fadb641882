"""Each rule switched off does its harm, and does none switched on: so that the rules are tested
by stories that can fail. The stories are the interleavings that broke earlier drafts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from leasehold.lease.agent.events import LedgerAway, TimePassed, VersionKnown
from leasehold.lease.commands import (
    Acquire,
    Change,
    KillSession,
    Lease,
    Liveness,
    Publish,
    Register,
    RegisterEpoch,
    Release,
    SetMinVersion,
)
from leasehold.lease.replies import Granted, Killed, LedgerRefused, LivenessReport, Published
from tests.models.mutants.lease import EVERY_RULE, Rules, broken
from tests.models.summary import AddLine, ModelLine
from tests.support.lease.story import LIMITS, SECOND, TTL, Master, World

Story = Callable[[], str]
"""→ the harm seen, "" for none."""


def two_steps(world: World, master: Master, *, fence: bool = True) -> None:
    """1 → 2 → 3, as far as the ledger lets the master."""
    for _ in range(2):
        master.publish(tell=False)
        if fence:
            master.fence()


def seeded_gate() -> str:
    """Races 2: Redis lost two publishes; an agent that is behind acquires version 1."""
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    before = world.ledger.state()
    two_steps(world, master)
    lost = len(before.tables) and 5
    world.ledger.restart(lose_last=lost)
    agent.want()
    return world.harm()


def ready_gate() -> str:
    """P8: seeded again, and published at once by a job that did not ask the watch."""
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    agent.use()
    world.ledger.restart(lose_state=True)
    master.look()
    master.publish(tell=False)
    master.call(SetMinVersion(1, 1, 2))
    master.publish(tell=False)
    return world.harm()


def epoch_fence() -> str:
    """A late call of a deposed master."""
    world = World()
    master = world.ready_master()
    world.master(epoch=2).call(RegisterEpoch(2))
    deposed = master.call(Publish(1, (Change(1, 1, 2),)))
    return "a deposed master published" if isinstance(deposed, Published) else ""


def publish_checks_holders() -> str:
    world = World()
    master = world.ready_master()
    world.agent("s1", has_store=False).use()
    master.publish(tell=False)
    master.call(SetMinVersion(1, 1, 2))  # a fence that was not waited for
    master.publish(tell=False)
    return world.harm()


def publish_needs_fence() -> str:
    """Races 1: version 3 without a fence at 2: writes under 1 are still let in."""
    world = World()
    master = world.ready_master()
    two_steps(world, master, fence=False)
    current, min_version = world.log[1]
    return "versions 1 to 3 may write" if current - min_version > 1 else ""


def publish_is_idempotent() -> str:
    """The answer is lost; the step is asked for again."""
    world = World()
    master = world.ready_master()
    master.call(Publish(1, (Change(1, 1, 2),), 5))
    again = master.call(Publish(1, (Change(1, 1, 2),), 5))
    return "the step is stuck" if isinstance(again, LedgerRefused) else ""


def acquire_two_newest() -> str:
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    two_steps(world, master)
    agent.want()
    return world.harm()


def register_two_newest() -> str:
    """An agent back from a partition registers what is long gone."""
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    agent.use()
    master.look()
    world.now_ns += TTL
    master.look()  # dead by the master's clock
    two_steps(world, master)
    world.ledger.call(Register("s1", 50, 1, (Lease(1, 1),)))
    return "a lease on 1 under 3" if world.printed() == "/1/s1" else ""


def reseed_sweeps() -> str:
    """P8: registered under a stale `current`, judged again by the re-seeding."""
    world = World()
    master = world.ready_master()
    two_steps(world, master)
    world.ledger.restart(lose_last=5)
    world.ledger.call(Register("s1", 50, 1, (Lease(1, 1),)))
    master.look()
    return "a lease on 1 under 3" if world.printed() == "/1/s1" else ""


def death_is_compare_and_set() -> str:
    """P7: the agent renews between the master's look and its kill."""
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    agent.use()
    master.look()
    world.now_ns += TTL
    seen = master.call(Liveness())
    assert isinstance(seen, LivenessReport)
    deaths = master.sessions.step(seen, world.now_ns, world.now_ns)
    agent.do(TimePassed())  # renews
    for death in deaths:
        assert isinstance(death, KillSession)
        master.call(death)
    two_steps(world, master)
    return world.harm()


def late_calls_refused() -> str:
    """A release is given up, the version is used again; then the release arrives."""
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    first = agent.use()
    master.publish()
    agent.hold_back = True
    agent.end(first)
    late = agent.pending
    assert isinstance(late, Release)
    agent.pending = None
    agent.do(LedgerAway())
    agent.hold_back = False
    agent.want(1, version=1)
    world.pass_time(SECOND, agent)
    assert world.printed() == "/1/s1 /2/s1"
    world.ledger.call(late)
    master.fence()
    master.publish(tell=False)
    return world.harm()


def renew_checks_held() -> str:
    """The ledger lost a lease (an old registration came late after FLUSHALL); the agent renews."""
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    agent.use()
    world.ledger.flush()
    world.ledger.call(Register("s1", agent.holder.session.id, 0, ()))
    master.look()
    for _ in range(20):
        world.pass_time(SECOND, agent)
        master.look()
        master.tick()
    two_steps(world, master)
    return world.harm()


def death_by_own_clock() -> str:
    """Races 10: a new master trusts what somebody else's clock may have said."""
    world = World()
    world.ready_master()
    world.agent("s1", has_store=False).use()
    master = world.master(epoch=2)
    master.look()
    master.look()
    two_steps(world, master)
    return world.harm()


def grace_waits() -> str:
    world = World()
    master = world.ready_master()
    world.agent("s1", has_store=False).use()
    world.ledger.restart(lose_state=True)
    master.look()
    two_steps(world, master)
    return world.harm()


def vouch_when_recorded() -> str:
    """The master vouches for an agent in the next ledger, and goes back to the one before."""
    world = World()
    master = world.ready_master(vouches=True)
    before = world.ledger.fail_over()
    master.look()
    agent = world.agent("s1", has_store=False)
    agent.want()
    master.look()
    world.pass_time(SECOND, agent)
    agent.ledger, world.ledger = world.ledger, before
    master.look()
    assert master.watch.may_publish
    two_steps(world, master)
    return world.harm()


def grace_in_log() -> str:
    """Races 3: on record before the wait is over; the next master skips it."""
    world = World()
    master = world.ready_master()
    world.agent("s1", has_store=False).use()
    world.ledger.restart(lose_state=True)
    master.look()
    second = world.master(epoch=2)
    second.look()
    two_steps(world, second)
    return world.harm()


def reregister_before_extend() -> str:
    """Races 3: a lease that another incarnation does not know is extended by it."""
    with broken(Rules(renew_checks_held=False)):
        world = World()
        master = world.ready_master()
        agent = world.agent("s1", has_store=False)
        agent.use()
        session = agent.holder.session.id
        world.ledger.restart(lose_last=1)  # the Acquire; the session is still there
        assert session in world.ledger.state().sessions
        master.look()
        for _ in range(20):
            world.pass_time(SECOND, agent)
            master.look()
            master.tick()
        two_steps(world, master)
        return world.harm()


def expiry_from_send_time() -> str:
    """The answer to a renewal is delayed by most of a TTL."""
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    agent.use()
    world.now_ns += LIMITS.renew_every_ns
    agent.hold_back = True
    agent.do(TimePassed())
    assert agent.pending is not None
    reply = world.ledger.call(agent.pending)
    master.look()
    world.now_ns += TTL - SECOND
    agent.answered(reply)
    agent.hold_back = False
    world.now_ns += SECOND
    master.look()
    two_steps(world, master)
    return world.harm()


def extend_when_vouched() -> str:
    """Sentinel makes a replica master; an agent goes on with the server that was it."""
    world = World()
    master = world.ready_master(vouches=True)
    agent = world.agent("s1", has_store=False)
    agent.want()
    master.look()
    world.pass_time(SECOND, agent)
    assert agent.in_use(), "the master has vouched for it"
    agent.ledger = world.ledger.fail_over()
    for _ in range(40):
        world.pass_time(SECOND, agent)
        master.look()
        master.tick()
    assert master.watch.may_publish
    two_steps(world, master)
    return world.harm()


def acquire_when_vouched() -> str:
    """A session that counts in one ledger takes a lease in the next; the master goes back."""
    world = World({1: (1, 1), 2: (1, 1)})
    master = world.ready_master(vouches=True)
    agent = world.agent("s1", has_store=False)
    agent.want(table=2)
    master.look()
    world.pass_time(SECOND, agent)
    assert agent.in_use(), "the master has vouched for it"
    before = world.ledger.fail_over()
    master.look()
    world.pass_time(6 * SECOND, agent)  # registers
    agent.want(table=1)
    agent.ledger, world.ledger = world.ledger, before
    master.look()
    assert master.watch.may_publish
    two_steps(world, master)
    return world.harm()


def release_at_zero_only() -> str:
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    held = agent.use()
    master.publish()
    drained = master.drained() and held.users
    return "drained under a user of version 1" if drained else ""


def move_at_once() -> str:
    """Users overlap, so that there is always one: the old version never ends."""
    world = World()
    master = world.ready_master()
    agent = world.agent("n1")
    current = agent.use()
    master.publish()
    for _ in range(5):
        following = agent.use()
        agent.end(current)
        current = following
    return "" if master.drained() else "version 1 has users for ever"


STORIES: list[Story] = [
    seeded_gate,
    ready_gate,
    epoch_fence,
    publish_checks_holders,
    publish_needs_fence,
    publish_is_idempotent,
    acquire_two_newest,
    register_two_newest,
    reseed_sweeps,
    death_is_compare_and_set,
    late_calls_refused,
    renew_checks_held,
    death_by_own_clock,
    grace_waits,
    vouch_when_recorded,
    grace_in_log,
    reregister_before_extend,
    expiry_from_send_time,
    extend_when_vouched,
    acquire_when_vouched,
    release_at_zero_only,
    move_at_once,
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_d1_to_d8_a_rule_switched_off_does_harm(story: Story, model_line: AddLine) -> None:
    assert story() == ""
    with broken(replace(EVERY_RULE, **{story.__name__: False})):
        harm = story()
    assert harm != ""
    words = f"story: harm shown, {harm[:60]}"
    model_line(ModelLine("D1-D8", f"{story.__name__} off", 1, 1, False, words))


def test_every_rule_has_its_story() -> None:
    assert [story.__name__ for story in STORIES] == [field.name for field in fields(Rules)]


def test_d1_two_steps_really_publish_twice() -> None:
    """Otherwise the stories above would prove nothing."""
    world = World()
    master = world.ready_master()
    agent = world.agent("n1")
    two_steps(world, master)
    assert world.log[1] == (3, 3)
    agent.do(VersionKnown(1, 3))
    assert isinstance(world.ledger.call(Acquire(50, 0, 1, 3)), LedgerRefused | Granted)
    assert isinstance(master.call(KillSession(1, 50, 0)), Killed)
