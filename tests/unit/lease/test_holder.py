"""Stories of agents, told by what the ledger prints: `/version/agent`, oldest version first."""

from __future__ import annotations

import pytest

from leasehold.lease.agent.events import (
    NOBODY,
    Acknowledge,
    Drain,
    GaveUp,
    Idle,
    TableGone,
    VersionKnown,
    Want,
)
from leasehold.lease.agent.held_leases import FOREVER_NS, HeldLeases, LeaseStatus, Use
from leasehold.lease.commands import (
    Acquire,
    Change,
    Publish,
    Release,
)
from leasehold.lease.replies import LedgerRefused, Published, RefusalReason
from tests.support.lease.story import LIMITS, SECOND, TTL, Actor, World

BOTH_KINDS = pytest.mark.parametrize("has_store", [True, False])


@BOTH_KINDS
def test_d1_a_missing_table_is_not_found(has_store: bool) -> None:
    """Scenario 40, at the agent; at the ledger: test_ledger.py."""
    world = World()
    world.ready_master()
    unknown = world.agent("n1", has_store=has_store).want(99)
    assert unknown is not None
    assert (unknown.lease, unknown.reason) == (None, RefusalReason.UNKNOWN_TABLE)


@BOTH_KINDS
def test_d1_a_new_table_is_asked_for_until_the_ledger_has_it(has_store: bool) -> None:
    """It is in the log before; a node with a store uses it at once, a subscriber waits. Another
    table is not kept waiting, and a table that goes ends the asking."""
    world = World()
    master = world.ready_master()
    agent = world.agent("n1", has_store=has_store)
    agent.do(VersionKnown(98, 1))
    agent.do(VersionKnown(99, 1))
    first, other = agent.want(98), agent.want(99)
    assert (first is not None, other is not None) == (has_store, has_store)
    assert agent.use(1).status is LeaseStatus.HELD
    master.call(Publish(1, (Change(98, 0, 1),)))
    agent.do(TableGone(99))
    world.pass_time(SECOND, agent)
    assert world.printed(98) == "/1/n1"
    assert agent.holder.leases.acquire(98, world.now_ns) is not None
    if not has_store:
        assert agent.wakes[2].reason is RefusalReason.UNKNOWN_TABLE
    asked = len(agent.sent)
    world.pass_time(SECOND, agent)
    assert len(agent.sent) == asked


@BOTH_KINDS
def test_a_lease_that_is_not_waited_for_any_more_is_held_for_who_comes_next(
    has_store: bool,
) -> None:
    world = World()
    world.ready_master()
    agent = world.agent("n1", has_store=has_store)
    agent.do(Want(99, NOBODY))  # of a table that is not there: nothing to hold, nobody to tell
    agent.do(Want(1, NOBODY))
    assert world.printed() == "/1/n1"
    assert agent.wakes == {}
    assert agent.holder.leases.acquire(1, world.now_ns) is not None


def test_those_who_gave_up_take_nobodys_place() -> None:
    """As many as may wait at once have waited in vain: the next one waits all the same, and none
    of the others is woken."""
    world = World()
    master = world.ready_master()
    agent = world.agent("n1", has_store=False)
    agent.do(VersionKnown(99, 1))
    tokens = range(1_000, 1_000 + LIMITS.waiters_max)
    for token in tokens:
        agent.do(Want(99, token))
    agent.do(GaveUp(frozenset((99, token) for token in tokens[:-1])))
    assert agent.want(99) is None, "it waits"
    master.call(Publish(1, (Change(99, 0, 1),)))
    world.pass_time(SECOND, agent)
    assert sorted(agent.wakes) == [1, tokens[-1]]
    assert all(wake.lease is not None for wake in agent.wakes.values())


@BOTH_KINDS
def test_d1_a_future_version_does_not_exist_yet(has_store: bool) -> None:
    """Scenario 42."""
    world = World()
    world.ready_master()
    wake = world.agent("n1", has_store=has_store).want(1, version=2)
    assert wake is not None
    assert wake.reason is RefusalReason.FUTURE


@BOTH_KINDS
def test_d4_two_users_one_lease(has_store: bool) -> None:
    """Scenario 41: `/1/n1`, and it stays after both have ended."""
    world = World()
    world.ready_master()
    agent = world.agent("n1", has_store=has_store)
    one, other = agent.use(), agent.use()
    assert one is other
    assert world.printed() == "/1/n1"
    agent.end(one)
    agent.end(other)
    assert world.printed() == "/1/n1"
    assert [type(command).__name__ for command in agent.sent] == ["OpenSession", "Acquire"]


@BOTH_KINDS
def test_d4_old_lease_freed_on_last_release(has_store: bool) -> None:
    """Scenario 43: `/1/n1 /2/n1` until the last user of 1 ends."""
    world = World()
    master = world.ready_master()
    agent = world.agent("n1", has_store=has_store)
    one, other = agent.use(), agent.use()
    assert isinstance(master.publish(), Published)
    assert world.printed() == "/1/n1 /2/n1"
    assert agent.use().version == 2, "new users move at once"
    agent.end(one)
    assert world.printed() == "/1/n1 /2/n1"
    agent.end(other)
    assert world.printed() == "/2/n1"
    assert agent.acknowledged == [Acknowledge(1, 2)]


@BOTH_KINDS
def test_d4_an_unused_old_lease_is_freed_when_the_newer_version_is_here(has_store: bool) -> None:
    world = World()
    master = world.ready_master()
    agent = world.agent("n1", has_store=has_store)
    agent.end(agent.use())
    master.publish(tell=False)
    assert world.printed() == "/1/n1"
    agent.do(VersionKnown(1, 2))
    assert world.printed() == "/2/n1"
    assert agent.acknowledged == [], "it held up nobody: the master's first looks see that"


def test_d4_an_agent_without_a_lease_is_never_waited_for() -> None:
    """Races 17: it acknowledges nothing, and the table is drained all the same."""
    world = World()
    master = world.ready_master()
    world.agent("n1").use()
    silent = world.agent("n2")
    master.publish(tell=False)
    world.agents[0].end(world.agents[0].users[0])
    world.agents[0].do(VersionKnown(1, 2))
    assert master.drained()
    assert silent.acknowledged == []


def test_d4_drained_does_not_need_the_acknowledgement() -> None:
    """Correct with version events stopped: the lease's end is what counts, not the message."""
    world = World()
    master = world.ready_master()
    agent = world.agent("n1")
    agent.use()
    master.publish(tell=False)  # the agent never learns of it
    assert not master.drained()
    world.now_ns += TTL  # and stops
    master.look()
    world.now_ns += TTL
    master.look()
    assert world.printed() == ""
    assert master.drained()


def test_d4_drain_node() -> None:
    """Scenario 47: no new leases; the unused are released at once, the used when they end."""
    world = World(log={1: (1, 1), 2: (1, 1), 3: (1, 1)})
    world.ready_master()
    agent = world.agent("n1")
    used = agent.use(1)
    agent.end(agent.use(2))
    agent.do(Drain())
    assert (world.printed(1), world.printed(2)) == ("/1/n1", "")
    assert agent.holder.leases.acquire(1, world.now_ns) is None
    refused = agent.want(3)
    assert refused is not None
    assert refused.sentence == "this agent is stopping"
    agent.end(used)
    assert agent.holder.held() == []
    assert world.printed(1) == ""


def test_d1_lease_on_dropped_table_is_freed() -> None:
    """Scenarios 48 and 54: what is unused goes at once, what is used with its last user."""
    world = World(log={1: (1, 1), 2: (1, 1)})
    world.ready_master()
    agent = world.agent("n1")
    used = agent.use(1)
    agent.end(agent.use(2))
    agent.do(TableGone(1))
    agent.do(TableGone(2))
    assert (world.printed(1), world.printed(2)) == ("/1/n1", "")
    assert agent.want(2).reason is RefusalReason.UNKNOWN_TABLE  # type: ignore[union-attr]
    agent.end(used)
    assert world.printed(1) == ""


def test_d1_drop_races_with_acquire() -> None:
    """Scenario 54: the grant comes after the news that the table is gone."""
    world = World()
    world.ready_master()
    agent = world.agent("n1")
    agent.hold_back = True
    agent.want()
    agent.answer()  # the session is open, Acquire is on its way
    assert isinstance(agent.pending, Acquire)
    agent.do(TableGone(1))
    agent.hold_back = False
    agent.answer()
    assert isinstance(agent.sent[-1], Release)
    assert world.printed() == ""
    assert agent.holder.leases.each() == []


def test_d4_a_release_that_races_with_a_new_version_and_a_returning_user() -> None:
    """A user of the old version asks for it by name while its release is on the way."""
    world = World()
    master = world.ready_master()
    agent = world.agent("n1")
    first = agent.use()
    master.publish()
    agent.hold_back = True
    agent.end(first)
    assert isinstance(agent.pending, Release)
    assert agent.want(1, version=1) is None
    agent.hold_back = False
    agent.answer()
    assert agent.wakes[max(agent.wakes)].lease is not None
    assert world.printed() == "/1/n1 /2/n1"


# --- D8 ----------------------------------------------------------------------------------------


def test_d8_a_pin_lasts_to_the_transactions_end() -> None:
    """Scenario 50: an old transaction keeps the old shape over the next publish."""
    world = World()
    master = world.ready_master()
    agent = world.agent("n1", has_store=False)
    old = agent.use()
    master.publish()
    assert agent.holder.leases.is_valid(old, world.now_ns)
    assert old.version == 1
    master.fence()
    refused = master.publish()
    assert isinstance(refused, LedgerRefused)
    assert refused.reason is RefusalReason.NOT_FENCED


def test_d8_an_older_version_for_a_time_before() -> None:
    """Races 21: allowed while it is not below min_version; scenario 52: then refused, no hang."""
    world = World()
    master = world.ready_master()
    master.publish()
    agent = world.agent("n1")
    wake = agent.want(1, version=1)
    assert wake is not None
    assert wake.lease is not None
    assert world.printed() == "/1/n1"
    agent.end(wake.lease)
    assert world.printed() == "", "an older one is not kept"
    assert master.fence()
    late = world.agent("n2", has_store=False).want(1, version=1)
    assert late is not None
    assert late.reason is RefusalReason.TOO_OLD


def test_d8_a_replay_takes_the_newest_not_what_it_held() -> None:
    """Scenario 49: the descriptor is given back before the replay; counts are equal."""
    world = World()
    master = world.ready_master()
    agent = world.agent("n1")
    before = agent.use()
    master.publish()
    agent.end(before)
    assert agent.use().version == 2
    assert world.printed() == "/2/n1"


def test_d1_granted_but_unknown() -> None:
    """P10: published in the ledger, not yet in the log; an agent acquires the one it knows."""
    world = World()
    master = world.ready_master()
    agent = world.agent("n1", has_store=False)
    master.publish(tell=False)
    assert agent.use().version == 1
    assert world.printed() == "/1/n1"
    agent.do(VersionKnown(1, 2))
    assert world.printed() == "/1/n1 /2/n1"
    assert agent.use().version == 2


# --- D3 ----------------------------------------------------------------------------------------


def test_d4_a_version_that_came_while_the_first_was_on_its_way_is_used_at_once() -> None:
    """By a node with a store: before the ledger has answered for the newer one."""
    world = World()
    master = world.ready_master()
    agent = world.agent("n1")
    agent.hold_back = True
    agent.want()
    agent.answer()
    assert agent.pending == Acquire(1, 0, 1, 1)
    master.publish()
    agent.answer()
    lease = agent.holder.leases.acquire(1, world.now_ns)
    assert lease is not None
    assert lease.version == 2


def test_d4_blockers_are_the_oldest_users_by_name_and_bounded() -> None:
    world = World()
    master = world.ready_master()
    agent = world.agent("n1")
    agent.use()
    uses = [Use(f"session {n}", f"UPDATE {n}", world.now_ns - n) for n in range(10)]
    for use in uses:
        assert agent.holder.leases.acquire_named(1, use, world.now_ns) is not None
    master.publish()
    found = agent.holder.leases.find_blockers(1, 2, world.now_ns, limit=3)
    assert [(b.label, b.sql, b.age_ns) for b in found] == [
        (f"session {n}", f"UPDATE {n}", n) for n in (9, 8, 7)
    ]
    assert agent.holder.leases.find_blockers(1, 1, world.now_ns, limit=3) == []
    lease = agent.holder.leases.all[1][1]
    agent.end(agent.users[0])
    for use in uses:
        if agent.holder.leases.release_named(lease, use):
            agent.do(Idle())
    assert world.printed() == "/2/n1"


def test_d4_a_user_that_races_with_retirement_is_counted_or_sent_away() -> None:
    """The two orders of the race, played by hand at the point where they differ."""
    leases = HeldLeases(FOREVER_NS)
    from leasehold.lease.commands import Lease

    old, new = leases.add(Lease(1, 1)), leases.add(Lease(1, 2))
    leases.put_first(old)

    class Retiring(list[None]):
        """Retires the lease between the user's two looks: after it was found, before it is in."""

        def append(self, item: None) -> None:
            if leases.newest[1] is old:
                leases.put_first(new)
                assert list(leases.idle) == [old], "seen without users"
            super().append(item)

    old.users = Retiring()
    assert leases.acquire(1) is new, "the late user is sent on"
    assert old.is_idle

    other = HeldLeases(FOREVER_NS)
    counted, newer = other.add(Lease(1, 1)), other.add(Lease(1, 2))
    other.put_first(counted)
    user = other.acquire(1)
    other.put_first(newer)
    assert user is counted
    assert not other.idle, "a user that came before is counted"
    assert other.release(counted)
    assert list(other.idle) == [counted]


def test_d1_who_wants_the_newest_waits_for_the_event_that_tells_of_it() -> None:
    """An agent that has just begun has read of the first version; four are there."""
    world = World()
    master = world.ready_master()
    for _ in range(3):
        master.publish()
        assert master.fence()
    agent = Actor(world, "s1", has_store=False)
    agent.do(VersionKnown(1, 1))
    assert agent.want() is None
    assert agent.holder.is_behind(1, 4)
    agent.do(VersionKnown(1, 2))
    assert agent.wakes == {}
    agent.do(VersionKnown(1, 4))
    woken = agent.wakes[1].lease
    assert woken is not None
    assert woken.version == 4
    assert not agent.holder.is_behind(1, 4)
