"""Stories of leases that nobody uses: given up for a newer version, and held again later."""

from __future__ import annotations

import pytest

from leasehold.lease.agent.events import (
    Drain,
    Idle,
    TableGone,
    TimePassed,
)
from leasehold.lease.commands import (
    Acquire,
    Release,
)
from tests.support.lease.story import LIMITS, Actor, Master, World

REST_MAX = 2 * LIMITS.rest_ns


def used_once() -> tuple[World, Master, Actor]:
    """A subscriber whose lease, on version 2, nobody has used."""
    world = World()
    master = world.ready_master()
    agent = world.agent("s1", has_store=False)
    agent.end(agent.use())
    master.publish()
    assert world.printed() == "/2/s1", "version 1 was used: the newer one is held first"
    assert master.fence()
    agent.sent.clear()
    return world, master, agent


def test_d4_a_lease_that_nobody_used_goes_at_once_and_comes_back_later() -> None:
    """A step costs the agent one call, the next steps none, and nobody asks while they last."""
    world, master, agent = used_once()
    master.publish()
    assert [type(command) for command in agent.sent] == [Release]
    assert master.fence()
    for _ in range(3):
        world.now_ns += LIMITS.rest_ns // 2
        agent.do(TimePassed())
        master.publish()
        assert master.fence()
    assert world.printed() == ""
    assert len(agent.sent) == 1
    assert agent.holder.due_ns() == next(iter(agent.holder._resting.values()))
    world.now_ns += REST_MAX
    agent.do(TimePassed())
    assert world.printed() == "/6/s1"
    assert agent.holder.leases.acquire(1, world.now_ns) is not None


def test_d4_who_comes_while_a_lease_rests_asks_for_one_at_once() -> None:
    world, master, agent = used_once()
    master.publish()
    lease = agent.use()
    assert (lease.version, world.printed()) == (3, "/3/s1")
    agent.end(lease)
    agent.sent.clear()
    assert master.fence()
    master.publish()
    assert [type(command) for command in agent.sent] == [Acquire, Release], "it is used"


def test_d4_a_user_who_comes_as_a_lease_is_given_up_is_waited_for() -> None:
    """It has added itself, and has not said yet that the lease is used."""
    world, master, agent = used_once()
    lease = agent.holder.leases.newest[1]
    lease.users.append(None)
    master.publish()
    assert (world.printed(), agent.sent) == ("/2/s1", [])
    assert not master.fence()
    assert lease.retired, "the user looks, and backs off"
    assert agent.holder.leases.release(lease)
    agent.do(Idle())
    assert world.printed() == ""
    assert agent.acknowledged == [] or agent.acknowledged[-1].version == 3
    assert master.fence()


def test_d4_a_node_with_a_store_and_an_agent_that_never_rests_hold_the_newer_version_first() -> (
    None
):
    world = World()
    master = world.ready_master()
    node = world.agent("n1")
    node.end(node.use())
    for version in (2, 3):
        master.publish()
        assert world.printed() == f"/{version}/n1"
        assert master.fence()


@pytest.mark.parametrize("ends", [Drain(), TableGone(1)])
def test_d4_what_rests_is_not_asked_for_after_the_end(ends: Drain | TableGone) -> None:
    world, master, agent = used_once()
    master.publish()
    agent.do(ends)
    agent.sent.clear()
    world.now_ns += REST_MAX
    agent.do(TimePassed())
    assert Acquire not in map(type, agent.sent)
    assert world.printed() == ""
