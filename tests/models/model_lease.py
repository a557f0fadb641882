"""Descriptor leases: one subscriber without a store, a ledger that forgets, masters that change.

What is real: the ledger (`apply`), the agent (`Holder`), the master's two watches (`LedgerWatch`,
`SessionWatch`). What the model adds: when calls arrive and answers come, or that they never do; a
call that arrives after its sender gave it up; a ledger that comes back with an old state under
another run id, empty under the same one, or as a replica while it lives; a new master that finds
the log as it is; a deposed one's late publish. Publishing goes v1 → v2 → v3, as fast as ledger and
log allow.

Time is in ticks; a session lives three of them and is renewed every tick. The harm is D1's: a
subscriber may decode with a version older than the newest but one.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

from leasehold.lease.agent.events import (
    Answered,
    Idle,
    LedgerAway,
    TimePassed,
    VersionKnown,
    Want,
)
from leasehold.lease.agent.holder import Holder
from leasehold.lease.commands import Change, Lease, Publish, RegisterEpoch
from leasehold.lease.ledger.state import LedgerState
from leasehold.lease.master.ledger_watch import LedgerWatch
from leasehold.lease.master.ledger_watch import TimePassed as MasterTimePassed
from leasehold.lease.master.session_watch import SessionWatch
from leasehold.lease.replies import Published
from tests.models.lease_master import MasterSteps, Parties
from tests.models.lease_objects import Ids, Objects, named
from tests.models.lease_world import LIMITS, TABLE, TTL, Bounds, Log, World


@dataclass
class Model:
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        self.objects = Objects()
        self.parties = Parties(self.objects)
        self.master = MasterSteps(self.parties, self.bounds)
        self._first = self._begin()

    # ------------------------------------------------------------ the start and the harm

    def _begin(self) -> World:
        """The ledger is ready, the agent holds version 1 and has one user on it."""
        holder = Holder("s", Ids(), has_store=False, limits=LIMITS)
        watch = LedgerWatch(1, "", TTL)
        world = World(
            0,
            self.objects.keep_ledger(LedgerState()),
            1,
            Log(),
            self.objects.keep_holder(holder),
            None,
            None,
            (),
            1,
            self.objects.keep_watch(watch),
            self.objects.keep_sessions(SessionWatch(1, TTL)),
            (),
            (),
            "",
        )
        world = self.master.look(world)
        world = world._replace(now=TTL)
        world = self.master.takes(world, MasterTimePassed())
        world = self.parties.step(world, VersionKnown(TABLE, 1))
        world = self._answered(self.parties.step(world, Want(TABLE, 1)))
        world = self.master.look(world)
        if self.bounds.failovers:  # it asks once more, and hears that it counts (D11)
            world = world._replace(now=world.now + 1)
            world = self._answered(self.parties.step(world, TimePassed()))
            world = self.master.look(world)
        assert world.using == (1,), world
        return world

    def _answered(self, world: World) -> World:
        """The ledger answers the agent until it asks for no more."""
        while world.call is not None:
            world, reply = self.parties.call(world, world.call[1])
            world = self.parties.step(world._replace(call=None), Answered(reply))
        return world

    def starts(self) -> list[tuple[str, World]]:
        return [("the subscriber has a user on version 1", self._first)]

    def invariant(self, world: World) -> str | None:
        if world.harm:
            return world.harm
        holder = self.parties.holder(world)
        for version in world.using:
            lease = holder.leases.find(Lease(TABLE, version))
            if lease is None or not holder.leases.is_valid(lease, world.now):
                continue
            if version < world.log.current - 1:
                return f"D1: version {version} is in use, {world.log.current} is published"
        return None

    # ------------------------------------------------------------ transitions

    def successors(self, world: World) -> Iterator[tuple[str, World]]:
        if world.now < TTL + self.bounds.ticks:
            yield "time passes", world._replace(now=world.now + 1)
        yield from self._agent(world)
        if not self.bounds.steady:
            yield from self._users(world)
        yield from self._calls(world)
        yield from self.master.steps(world)
        yield from self._faults(world)

    def _agent(self, world: World) -> Iterator[tuple[str, World]]:
        holder = self.parties.holder(world)
        due = holder.due_ns()
        if due is not None and due <= world.now:
            after = self.parties.step(world, TimePassed())
            if after != world:
                yield f"the agent sends {after.call and after.call[1]}", after
        if holder.known(TABLE) < world.log.current:
            event = VersionKnown(TABLE, world.log.current)
            yield (
                f"the agent learns of version {world.log.current}",
                self.parties.step(world, event),
            )

    def _users(self, world: World) -> Iterator[tuple[str, World]]:
        """One user at a time: it ends, another begins."""
        if world.using:
            version = world.using[0]
            holder = deepcopy(self.parties.holder(world))
            lease = holder.leases.find(Lease(TABLE, version))
            idle = lease is not None and holder.leases.release(lease)
            after = world._replace(using=world.using[1:], holder=self.objects.keep_holder(holder))
            if idle:
                after = self.parties.step(after, Idle())
            yield f"the user of version {version} ends", after
            return
        holder = deepcopy(self.parties.holder(world))
        taken = holder.leases.acquire(TABLE, world.now)
        if taken is not None:
            after = world._replace(using=(taken.version,), holder=self.objects.keep_holder(holder))
            yield f"a user begins with version {taken.version}", after

    def _calls(self, world: World) -> Iterator[tuple[str, World]]:
        if world.call is not None and world.reply is None:
            after, reply = self.parties.agent_call(world, world.call[1])
            label = f"the ledger answers {world.call[1]}: {reply}"
            if self.bounds.prompt:
                after = after._replace(call=None)
                yield label, self.parties.step(after, Answered(reply))
            else:
                yield label, after._replace(reply=named(reply))
        if world.reply is not None:
            cleared = world._replace(call=None, reply=None)
            yield "the agent has its answer", self.parties.step(cleared, Answered(world.reply[1]))
        if world.call is not None and world.aways < self.bounds.aways:
            cleared = world._replace(call=None, reply=None, aways=world.aways + 1)
            if world.reply is None:
                cleared = cleared._replace(late=(*world.late, world.call))
            yield "the agent gives its call up", self.parties.step(cleared, LedgerAway())
        for sent in dict.fromkeys(world.late):
            late = list(world.late)
            late.remove(sent)
            command = sent[1]
            after, reply = self.parties.call(world._replace(late=tuple(late)), command)
            if isinstance(command, Publish) and isinstance(reply, Published):
                after = after._replace(harm="D2: a deposed master has published")
            yield f"a late call arrives: {command}: {reply}", after

    # ------------------------------------------------------------ faults

    def _faults(self, world: World) -> Iterator[tuple[str, World]]:
        if world.failovers < self.bounds.failovers:
            yield (
                "a replica with an old state takes the ledger's place, which the agent stays with",
                world._replace(
                    old=world.ledger,
                    old_run=world.run,
                    astray=True,
                    ledger=self._first.ledger,
                    run=world.run + 1,
                    failovers=world.failovers + 1,
                ),
            )
        if world.failovers and world.returns < self.bounds.returns:
            yield (
                "the master goes back to the ledger before",
                world._replace(
                    old=world.ledger,
                    old_run=world.run,
                    ledger=world.old,
                    run=world.old_run,
                    astray=not world.astray,
                    returns=world.returns + 1,
                ),
            )
        if world.astray and world.call is None and not self.bounds.strays:
            yield "the agent finds the new ledger", world._replace(astray=False)
        if world.losses < self.bounds.losses:
            lost = world._replace(
                ledger=self._first.ledger, run=world.run + 1, losses=world.losses + 1
            )
            yield "the ledger restarts with an old state", lost
        if world.flushes < self.bounds.flushes:
            empty = self.objects.keep_ledger(LedgerState())
            yield (
                "the ledger is emptied under the same run id",
                world._replace(ledger=empty, flushes=world.flushes + 1),
            )
        if world.takeovers < self.bounds.takeovers:
            epoch = world.epoch + 1
            current = world.log.current
            late = Publish(world.epoch, (Change(TABLE, current, current + 1),), intent=current + 1)
            watch = LedgerWatch(epoch, world.log.recorded, TTL)
            after = world._replace(
                epoch=epoch,
                watch=self.objects.keep_watch(watch),
                sessions=self.objects.keep_sessions(SessionWatch(epoch, TTL)),
                kills=(),
                late=(*world.late, named(late)),
                takeovers=world.takeovers + 1,
            )
            # D2: the new master registers its epoch before anything else.
            after, _ = self.parties.call(after, RegisterEpoch(epoch))
            yield f"master {epoch} takes over, a publish of the old one is on its way", after

    def show(self, world: World) -> str:
        holder = self.parties.holder(world)
        phase = self.objects.watch(world.watch).phase.value
        held = ", ".join(f"{lease!r}" for lease in holder.leases.each()) or "nothing"
        return (
            f"tick {world.now - TTL} | log: version {world.log.current}, min "
            f"{world.log.min_version} | agent: {held}, valid until "
            f"{holder.leases.valid_until_ns - TTL} | users on {list(world.using)} | master: {phase}"
        )
