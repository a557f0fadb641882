"""Log, claims, coherency and descriptor leases together: one job, two masters, one follower.

What is real: which records count (`admit`), a master's whole driving of a job (`SchemaChanges`
with its coordinator, its watch of the ledger and of sessions), the ledger, the follower's agent,
the coherency lease and watch, the catalog, the decision on a request (`verify`, D5) and on a read
(`check_pinned`, D3). What the model adds: who takes the next step. Whoever is not chosen is paused,
and a crash is a pause without an end; what a paused master does later is its delayed message.

The job publishes two versions, so a version in use can be left two behind. Each part's own faults
(late Claims and answers, failed appends, reboots) are in the model of that part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from leasehold.lease.agent.holder import Holder
from leasehold.lease.commands import Lease, MarkReady, RegisterEpoch, Seed, SeedTables
from leasehold.lease.ledger.state import LedgerState
from leasehold.model.errors import StaleVersion
from leasehold.model.records.log import Claim
from leasehold.model.time_units import NS_PER_MS
from leasehold.transaction import pinned_version
from tests.models.coherency_part import SETTINGS, CoherencyPart, Seen
from tests.models.lease_objects import Ids, Objects
from tests.models.log_records import Records
from tests.models.whole_follower import Followers
from tests.models.whole_masters import Masters, Step
from tests.models.whole_schema import Schemas
from tests.models.whole_world import (
    BEGIN,
    LIMITS,
    NOTHING,
    TABLE,
    Bounds,
    Follower,
    Master,
    Rules,
    World,
    incarnation,
    now_ns,
    placed,
    run_id,
)

DURATION_NS: Final = SETTINGS.duration_ms * NS_PER_MS


@dataclass
class Model:
    rules: Rules = field(default_factory=Rules)
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        self.records = Records(self.rules.replication.log)
        self.schemas = Schemas(self.records)
        self.objects = Objects()
        coherency = CoherencyPart()
        self.masters = Masters(
            self.rules, self.bounds, self.records, self.schemas, self.objects, coherency
        )
        self.followers = Followers(
            self.bounds, self.records, self.schemas, self.objects, coherency, self.masters
        )
        self._first = self._begin()

    @property
    def reached(self) -> set[str]:
        return self.masters.reached

    # ------------------------------------------------------------ the start

    def _begin(self) -> World:
        """Master 0 has opened the ledger and asked it to publish version 2; the follower holds
        version 1 and has a user on it."""
        claim = self.records.number(Claim(1, incarnation(0), b"", "0"))
        agent = Holder(
            "a",
            Ids(),
            has_store=not self.bounds.subscriber,
            limits=LIMITS,
        )
        ledger = self.objects.keep_ledger(LedgerState())
        seeds = (Seed(TABLE, 1, 1),)
        run = run_id(1)
        for command in (
            RegisterEpoch(1),
            SeedTables(1, run, seeds, 0, True),
            MarkReady(1, run),
        ):
            ledger, _ = self.objects.call(ledger, command, run)
        catalog = self.schemas.at((claim,)).catalog
        world = World(
            BEGIN,
            (claim,),
            (),
            (Master(self.masters.jobs.begin(0, catalog, 1)),) + (Master(),) * self.bounds.takeovers,
            ledger,
            1,
            Follower(1, self.objects.keep_holder(agent), 0),
        )
        world = self.followers.first_use(world)
        looks = [after for label, after in self.masters.steps(world) if "looks" in label]
        return looks[0]

    def starts(self) -> list[Step]:
        return [("master 0 has the job to do, the follower a user on version 1", self._first)]

    # ------------------------------------------------------------ harm

    def invariant(self, world: World) -> str | None:
        known = self.records.known(world.log)
        if known.stopped:
            return f"L1 L2: a reader stops: {known.stopped}"
        schema = self.schemas.at(world.log)
        return world.harm or schema.harm or self._ledger_harm(world) or self._use_harm(world)

    def _ledger_harm(self, world: World) -> str | None:
        ledger = self.objects.ledger(world.ledger)
        schema = self.schemas.at(world.log)
        current, min_version, _ = ledger.tables.get(TABLE, NOTHING)
        if current > schema.newest and current != schema.publishing:
            return f"D2: the ledger is at version {current}, and no intent in the log says why"
        if current < schema.newest and not world.losses:
            return f"D2: version {schema.newest} is out, the ledger is at {current}"
        # A lease that was registered again, after its session was dead and v fenced, is none.
        undrained = min_version < schema.min_version and not world.losses
        if undrained and ledger.holders(TABLE, schema.min_version):
            return f"D4: version {schema.min_version} is fenced, the ledger has a lease below it"
        return None

    def _use_harm(self, world: World) -> str | None:
        """What the follower would get if its user read or decoded now."""
        follower = world.follower
        if self.bounds.subscriber:
            newest = self.schemas.at(world.log).newest
            if follower.using and follower.using < newest - 1 and self._is_valid(world):
                return f"D1: version {follower.using} is in use, {newest} is published"
            return None
        if now_ns(world) >= follower.until_ns:
            return None  # C2: not coherent, so it reads nothing
        has = self.records.known(world.log[: follower.read])
        if world.answered and not has.requests:
            return "C1 C2: a read at the replicant misses the answered request"
        if not follower.using:
            return None
        snapshot = self.schemas.at(world.log[: follower.read])
        pinned = snapshot.catalog.version(TABLE, follower.using)
        if pinned.version >= snapshot.newest - 1:
            return None
        try:
            pinned_version.check_pinned(pinned, snapshot.min_version)
        except StaleVersion:
            return None
        return f"D3: a statement under version {pinned.version} reads rows of {snapshot.newest}"

    def _is_valid(self, world: World) -> bool:
        holder = self.objects.holder(world.follower.agent)
        lease = holder.leases.find(Lease(TABLE, world.follower.using))
        return lease is not None and holder.leases.is_valid(lease, now_ns(world))

    # ------------------------------------------------------------ transitions

    def successors(self, world: World) -> Iterator[Step]:
        for label, after in self._steps(world):
            while self.bounds.prompt and after.follower.read < len(after.log):
                _, after = self.followers.reads(after)
            yield label, without_past(self.masters.forgotten(after))

    def _steps(self, world: World) -> Iterator[Step]:
        if world.now < BEGIN + self.bounds.ticks:
            yield "time passes", world._replace(now=world.now + 1)
        yield from self.masters.steps(world)
        yield from self.followers.steps(world)
        if world.losses < self.bounds.losses:
            lost = world._replace(run=world.run + 1, losses=world.losses + 1)
            old = self._first.ledger
            yield "the ledger restarts with its first state", lost._replace(ledger=old)
            empty = self.objects.keep_ledger(LedgerState())
            yield "the ledger restarts empty", lost._replace(ledger=empty)

    def show(self, world: World) -> str:
        schema = self.schemas.at(world.log)
        follower = world.follower
        ledger = self.objects.ledger(world.ledger)
        held = (follower.until_ns - now_ns(world)) // NS_PER_MS
        coherent = f"coherent for {held}" if held > 0 else "not coherent"
        leases = [lease.version for held in ledger.leases.values() for lease in held]
        return (
            f"tick {world.now - BEGIN} | log of {len(world.log)}: version {schema.newest}, min"
            f" {schema.min_version} | ledger: epoch {ledger.epoch}, version"
            f" {ledger.tables.get(TABLE, NOTHING).current}, leases on {leases} | follower has read"
            f" {follower.read}, is {coherent}, uses {follower.using or 'nothing'}"
        )


def without_past(world: World) -> World:
    """Without times that have passed: what is over is over, whenever that was."""
    now = now_ns(world)
    follower = world.follower
    asks = tuple(asked for asked in follower.asks if asked + DURATION_NS > now)
    if asks != follower.asks or 0 < follower.until_ns <= now:
        until_ns = follower.until_ns if follower.until_ns > now else 0
        world = world._replace(follower=follower._replace(asks=asks, until_ns=until_ns))
    for who, master in enumerate(world.masters):
        watch = tuple(_waited_for(seen, now) for seen in master.watch)
        serve_from_ns = master.serve_from_ns if master.serve_from_ns > now else 0
        if (watch, serve_from_ns) != (master.watch, master.serve_from_ns):
            after = master._replace(watch=watch, serve_from_ns=serve_from_ns)
            world = placed(world, who, after)
    return world


def _waited_for(seen: Seen, now: int) -> Seen:
    if seen.wait_until_ns > now:
        return seen
    # Nobody waits for it; a grant will begin with what it has applied by then.
    return seen._replace(wait_until_ns=0)
