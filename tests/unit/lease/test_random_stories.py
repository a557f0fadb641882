"""Random worlds: lost and late calls, paused agents, dying masters, a ledger that loses state.

Whatever happens, no subscriber uses a version older than the newest but one (D1), and when the
faults end, the table drains and is published again (nothing is stuck). The seed is in the name.
"""

from __future__ import annotations

from copy import deepcopy
from random import Random

import pytest

from leasehold.lease.agent.events import LedgerAway, TimePassed, VersionKnown
from leasehold.lease.agent.held_leases import HeldLease
from leasehold.lease.commands import Change, Command, KillSession, Publish, SetMinVersion, Snapshot
from leasehold.lease.replies import Published, SnapshotReport
from tests.support.lease.states import key_of_holder, key_of_ledger, key_of_sessions, key_of_watch
from tests.support.lease.story import SECOND, TTL, Actor, World

STEPS = 2_500


class RandomWorld:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = World()
        self.master = self.world.ready_master()
        self.late: list[Command] = []
        for number in range(3):
            self.world.agent(f"n{number}", has_store=number == 0).hold_back = True

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.70:
            self._agent(self.random.choice(self.world.agents))
        elif chance < 0.90:
            self._master()
        elif chance < 0.98:
            self.world.now_ns += self.random.choice((SECOND // 10, SECOND, 3 * SECOND))
        elif chance < 0.983:
            self._ledger()
        elif self.late:
            self._call(self.late.pop(self.random.randrange(len(self.late))))

    def _call(self, command: Command) -> None:
        """A call that arrives after its sender has given it up."""
        self.world.ledger.call(command)

    def _agent(self, actor: Actor) -> None:
        chance = self.random.random()
        if actor.pending is not None and chance < 0.6:
            self._answer(actor)
        elif chance < 0.75:
            actor.do(TimePassed())
        elif chance < 0.85 and len(actor.users) < 4:
            lease = actor.holder.leases.acquire(1, self.world.now_ns)
            if lease is None:
                actor.want(1)
            else:
                actor.users.append(lease)
        elif chance < 0.95 and actor.users:
            actor.end(self._any(actor.users))
        else:
            actor.do(VersionKnown(1, self.world.log[1][0]))

    def _any(self, leases: list[HeldLease]) -> HeldLease:
        return self.random.choice(leases)

    def _answer(self, actor: Actor) -> None:
        chance = self.random.random()
        assert actor.pending is not None
        if chance < 0.9:
            actor.answer()
            return
        command, actor.pending = actor.pending, None
        if chance < 0.93:
            self._call(command)  # carried out, the answer is lost
        elif chance < 0.96:
            self.late.append(command)
        actor.do(LedgerAway())

    def _master(self) -> None:
        chance = self.random.random()
        if chance < 0.4:
            self.master.look()
        elif chance < 0.5:
            self.master.tick()
        elif chance < 0.75 and self.master.watch.may_publish:
            self.master.publish(tell=False)
        elif chance < 0.99 and self.master.watch.may_publish:
            self.master.fence()
        elif chance >= 0.99:
            self._take_over()

    def _take_over(self) -> None:
        """The old master's last calls may arrive at any later time."""
        current, _ = self.world.log[1]
        epoch = self.master.epoch
        self.late.append(Publish(epoch, (Change(1, current, current + 1),), current + 1))
        self.late.append(SetMinVersion(epoch, 1, current))
        self.late.append(KillSession(epoch, self.random.randint(1, 5), self.random.randint(0, 9)))
        self.master = self.world.master(epoch + 1)
        self.master.look()
        self._append_missing()

    def _append_missing(self) -> None:
        """D2: where the ledger is one ahead of the log, the log follows."""
        reply = self.world.ledger.call(Snapshot())
        assert isinstance(reply, SnapshotReport)
        for table in reply.tables:
            current, min_version = self.world.log[1]
            if reply.seeded and table.current == current + 1:
                self.world.log[1] = (current + 1, min_version)

    def _ledger(self) -> None:
        kind = self.random.choice(("restart", "tail", "empty", "flush", "away"))
        match kind:
            case "flush":
                self.world.ledger.flush()
            case "away":
                self.world.ledger.reachable = False
                for actor in self.world.agents:
                    if actor.pending is not None:
                        actor.answer()
                self.world.now_ns += self.random.choice((SECOND, TTL))
                self.world.ledger.reachable = True
            case _:
                lost = self.random.randint(1, 60) if kind == "tail" else 0
                self.world.ledger.restart(lose_state=kind == "empty", lose_last=lost)

    def settle(self) -> None:
        """No more faults; users end; time passes."""
        for actor in self.world.agents:
            actor.hold_back = False
            if actor.pending is not None:
                actor.answer()
        for _ in range(120):
            self.world.pass_time(SECOND, *self.world.agents)
            self.master.look()
            self.master.tick()
            for actor in self.world.agents:
                actor.do(VersionKnown(1, self.world.log[1][0]))
                for lease in list(actor.users):
                    actor.end(lease)


def run(seed: int) -> tuple[RandomWorld, str]:
    random_world = RandomWorld(seed)
    for number in range(STEPS):
        random_world.step()
        harm = random_world.world.harm()
        if harm:
            return random_world, f"seed {seed}, step {number}: {harm}"
    return random_world, ""


@pytest.mark.parametrize("seed", range(40))
def test_d1_never_more_than_two_versions_in_use(seed: int) -> None:
    random_world, harm = run(seed)
    assert harm == ""
    random_world.settle()
    master = random_world.master
    assert master.watch.may_publish, master.watch.describe(random_world.world.now_ns)
    assert master.fence(), random_world.world.printed()
    assert isinstance(master.publish(tell=False), Published)


def test_d1_the_random_worlds_publish_and_use_leases() -> None:
    """Otherwise nothing would be shown."""
    worlds = [run(seed)[0].world for seed in range(10)]
    assert sum(world.log[1][0] for world in worlds) > 60
    assert sum(len(actor.sent) for world in worlds for actor in world.agents) > 1_000


def test_copies_are_equal_and_apart() -> None:
    """Models branch on them: a copy goes its own way and leaves the original alone."""
    for seed in range(5):
        world = run(seed)[0].world
        state = world.ledger.state()
        assert key_of_ledger(state.copy()) == key_of_ledger(state)
        for actor in world.agents:
            before = key_of_holder(actor.holder)
            hash(before)
            mirror = deepcopy(actor.holder)
            assert key_of_holder(mirror) == before
            mirror.step(VersionKnown(1, 10_000), world.now_ns + TTL)
            assert key_of_holder(mirror) != before
            assert key_of_holder(actor.holder) == before
        master = world.ready_master(1_000)
        hash(key_of_watch(master.watch))
        hash(key_of_sessions(master.sessions))
