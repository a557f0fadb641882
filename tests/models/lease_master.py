"""What the ledger, the agent and the master do in the lease model, and what the log says of it."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

from leasehold.lease.agent.events import Event, Send, Wake
from leasehold.lease.agent.holder import Holder
from leasehold.lease.commands import (
    Change,
    Command,
    Holders,
    Lease,
    Liveness,
    Publish,
    RegisterEpoch,
    Seed,
    SetMinVersion,
    Vouch,
)
from leasehold.lease.master.ledger_watch import Answered as MasterAnswered
from leasehold.lease.master.ledger_watch import (
    EpochLost,
    RecordRun,
    RunRecorded,
    SeedFromLog,
    seed_parts,
)
from leasehold.lease.master.ledger_watch import Event as MasterEvent
from leasehold.lease.master.ledger_watch import TimePassed as MasterTimePassed
from leasehold.lease.replies import HolderList, Killed, LivenessReport, Published, Reply
from tests.models.lease_objects import Objects, named
from tests.models.lease_world import TABLE, VERSIONS_MAX, Bounds, World, run_id


class Parties:
    """Ledger and agent, stepped inside a world."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    def call(self, world: World, command: Command) -> tuple[World, Reply]:
        key, reply = self.objects.call(world.ledger, command, run_id(world))
        return world._replace(ledger=key), reply

    def agent_call(self, world: World, command: Command) -> tuple[World, Reply]:
        """The ledger that the agent talks with carries its command out."""
        if not world.astray:
            return self.call(world, command)
        key, reply = self.objects.call(world.old, command, f"run-{world.old_run}")
        return world._replace(old=key), reply

    def holder(self, world: World) -> Holder:
        return self.objects.holder(world.holder)

    def step(self, world: World, event: Event) -> World:
        """The agent takes an event; what it sends is on its way then."""
        key, effects = self.objects.step(world.holder, event, world.now)
        world = world._replace(holder=key)
        for effect in effects:
            if isinstance(effect, Send):
                world = world._replace(call=named(effect.command))
            elif isinstance(effect, Wake) and effect.lease is not None:
                world = world._replace(using=(*world.using, effect.lease.version))
        return self._without_lost(world)

    def _without_lost(self, world: World) -> World:
        """Users whose lease is gone find out before they decode again (`is_valid`, D3)."""
        if not world.using:
            return world
        lease = self.holder(world).leases.find(Lease(TABLE, world.using[0]))
        return world if lease is not None and lease.users else world._replace(using=())


class MasterSteps:
    """The master: its watches, its deaths, its job from version to version."""

    def __init__(self, parties: Parties, bounds: Bounds) -> None:
        self._parties = parties
        self._objects = parties.objects
        self._bounds = bounds

    def steps(self, world: World) -> Iterator[tuple[str, World]]:
        looked = self.look(world)
        if looked != world:
            yield f"master {world.epoch} looks at the ledger", looked
        due = self._objects.watch(world.watch).due_ns()
        if due is not None and due <= world.now:
            yield f"master {world.epoch}'s wait is over", self.takes(world, MasterTimePassed())
        for kill in world.kills:
            after, reply = self._parties.call(world._replace(kills=()), kill)
            killed = isinstance(reply, Killed)
            yield (f"{kill} {'is done' if killed else 'is refused'}", after)
        yield from self._publish(world)
        yield from self._fence(world)

    def look(self, world: World) -> World:
        world, report = self._parties.call(world, Liveness())
        assert isinstance(report, LivenessReport)
        world = self.takes(world, MasterAnswered(report))
        sessions = copy(self._objects.sessions(world.sessions))
        kills = tuple(sessions.step(report, world.now, world.now))
        kept = self._objects.keep_sessions(sessions)
        world = world._replace(sessions=kept, kills=kills or world.kills)
        if self._bounds.failovers and self._objects.watch(world.watch).may_vouch(report):
            world, _ = self._parties.call(world, Vouch(world.epoch, run_id(world), report.calls))
        return world

    def takes(self, world: World, event: MasterEvent) -> World:
        """The watch's effects are carried out at once; only deaths and publishes may be late."""
        watch = copy(self._objects.watch(world.watch))
        effects = watch.step(event, world.now)
        world = world._replace(watch=self._objects.keep_watch(watch))
        for effect in effects:
            match effect:
                case SeedFromLog(found):
                    seeds = [Seed(TABLE, world.log.current, world.log.min_version)]
                    for part in seed_parts(world.epoch, found, seeds):
                        world, reply = self._parties.call(world, part)
                        world = self.takes(world, MasterAnswered(reply))
                case RecordRun(found):
                    world = world._replace(log=world.log._replace(recorded=found))
                    world = self.takes(world, RunRecorded(found))
                case EpochLost():
                    pass
                case RegisterEpoch(epoch):
                    register = RegisterEpoch(epoch, self._bounds.failovers > 0)
                    world, reply = self._parties.call(world, register)
                    world = self.takes(world, MasterAnswered(reply))
                case command:
                    world, reply = self._parties.call(world, command)
                    world = self.takes(world, MasterAnswered(reply))
        return world

    def _publish(self, world: World) -> Iterator[tuple[str, World]]:
        """D2: ledger, then log. The job asks the watch, the log knows of the fence (D5)."""
        current = world.log.current
        if current >= VERSIONS_MAX or world.log.min_version != current:
            return
        if not (self._bounds.hasty or self._objects.watch(world.watch).may_publish):
            return
        change = Change(TABLE, current, current + 1)
        after, reply = self._parties.call(
            world, Publish(world.epoch, (change,), intent=current + 1)
        )
        if isinstance(reply, Published):
            after = after._replace(log=world.log._replace(current=current + 1))
            yield f"master {world.epoch} publishes version {current + 1}", after

    def _fence(self, world: World) -> Iterator[tuple[str, World]]:
        """D4, D5: drained means that the ledger has no live lease below."""
        current = world.log.current
        if world.log.min_version == current:
            return
        after, reply = self._parties.call(world, Holders(TABLE, current))
        assert isinstance(reply, HolderList)
        if self._bounds.hasty:
            fenced = world._replace(log=world.log._replace(min_version=current))
            fenced, _ = self._parties.call(fenced, SetMinVersion(world.epoch, TABLE, current))
            yield f"version {current} is fenced, nobody was waited for", fenced
            return
        if not self._objects.watch(world.watch).may_publish:
            return
        if reply.ready and reply.holders_total == 0:
            after, _ = self._parties.call(after, SetMinVersion(world.epoch, TABLE, current))
            after = after._replace(log=world.log._replace(min_version=current))
            yield f"version {current} is drained and fenced", after
