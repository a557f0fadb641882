"""What the follower does in the whole model: read the log, keep its leases, end its use."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from leasehold.lease.agent.events import (
    Answered,
    Event,
    Idle,
    Send,
    TimePassed,
    VersionKnown,
    Wake,
    Want,
)
from leasehold.lease.commands import Lease
from leasehold.model.records.log import Decisions
from leasehold.replication.log.admission import Verdict
from tests.models.coherency_part import CoherencyPart, Sent
from tests.models.lease_objects import Objects
from tests.models.log_records import Records
from tests.models.whole_masters import Masters, Step
from tests.models.whole_schema import Schemas
from tests.models.whole_world import TABLE, Bounds, World, incarnation, now_ns, run_id

FOLLOWER = incarnation(9)


class Followers:
    def __init__(
        self,
        bounds: Bounds,
        records: Records,
        schemas: Schemas,
        objects: Objects,
        coherency: CoherencyPart,
        masters: Masters,
    ) -> None:
        self._bounds = bounds
        self._records = records
        self._schemas = schemas
        self._objects = objects
        self._coherency = coherency
        self._masters = masters

    def first_use(self, world: World) -> World:
        world = self._agent(world, VersionKnown(TABLE, 1))
        return self._agent(world, Want(TABLE, 1))

    def steps(self, world: World) -> Iterator[Step]:
        follower = world.follower
        if follower.read < len(world.log):
            yield self.reads(world)
        if not self._bounds.mute:
            due = self._objects.holder(follower.agent).due_ns()
            if due is not None and due <= now_ns(world):
                after = self._agent(world, TimePassed())
                if after != world:
                    yield "the agent calls the ledger", after
        if follower.using and not self._bounds.steady:
            yield f"the user of version {follower.using} ends", self._ends(world)
        if world.acked < self._bounds.acks:
            yield self.asks(world)

    def _agent(self, world: World, event: Event) -> World:
        """The agent takes an event, and has its answers at once."""
        events: list[Event] = [event]
        while events:
            follower = world.follower
            key, effects = self._objects.step(follower.agent, events.pop(0), now_ns(world))
            follower = follower._replace(agent=key)
            for effect in effects:
                if isinstance(effect, Send):
                    run = run_id(world.run)
                    ledger, reply = self._objects.call(world.ledger, effect.command, run)
                    world = world._replace(ledger=ledger)
                    events.append(Answered(reply))
                elif isinstance(effect, Wake) and effect.lease is not None:
                    follower = follower._replace(using=effect.lease.version)
            world = world._replace(follower=follower)
        return self._without_lost(world)

    def _without_lost(self, world: World) -> World:
        """A subscriber's user whose lease is gone finds out before it decodes again (D3)."""
        follower = world.follower
        if not self._bounds.subscriber or not follower.using:
            return world
        holder = self._objects.holder(follower.agent)
        lease = holder.leases.find(Lease(TABLE, follower.using))
        if lease is not None and lease.users:
            return world
        return world._replace(follower=follower._replace(using=0))

    def reads(self, world: World) -> Step:
        follower = world.follower
        number = world.log[follower.read]
        before = self._schemas.at(world.log[: follower.read])
        prefix = world.log[: follower.read + 1]
        record = self._records.records[number]
        lease = self._coherency.lease(FOLLOWER, follower.asks, follower.until_ns)
        if self._records.known(prefix).verdict is Verdict.APPLY:
            assert isinstance(record, Decisions), "only those are applied"
            for grant in record.grants:
                lease.granted(grant)
        after = world._replace(
            follower=follower._replace(read=follower.read + 1, until_ns=lease.until_ns)
        )
        newest = self._schemas.at(prefix).newest
        if newest > before.newest:
            after = self._agent(after, VersionKnown(TABLE, newest))
        return f"the follower reads {self._records.words[number]}", after

    def _ends(self, world: World) -> World:
        follower = world.follower
        holder = deepcopy(self._objects.holder(follower.agent))
        lease = holder.leases.find(Lease(TABLE, follower.using))
        idle = lease is not None and holder.leases.release(lease)
        key = self._objects.keep_holder(holder)
        world = world._replace(follower=follower._replace(using=0, agent=key))
        return self._agent(world, Idle()) if idle else world

    def asks(self, world: World) -> Step:
        """C3; what it has applied is told along."""
        follower = world.follower
        lease = self._coherency.lease(FOLLOWER, follower.asks, follower.until_ns)
        asked = lease.ask(now_ns(world))
        sent = Sent(FOLLOWER, follower.read, asked)
        after = world._replace(
            follower=follower._replace(asks=tuple(lease._asks)), acked=world.acked + 1
        )
        return "the replicant asks for a coherency lease", self._masters.acked(after, sent)
