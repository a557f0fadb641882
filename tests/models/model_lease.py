"""Descriptor leases: one subscriber without a store, a ledger that forgets, masters that change.

What is real: the ledger (`apply`), the agent (`Holder`), the master's two watches (`LedgerWatch`,
`SessionWatch`). What the model adds: when calls arrive and answers come, or that they never do; a
call that arrives after its sender gave it up; a ledger that comes back with an old state under
another run id, or empty under the same one; a new master that finds the log as it is; a deposed
one's late publish. Publishing goes v1 → v2 → v3, as fast as ledger and log allow.

Time is in ticks; a session lives three of them and is renewed every tick. The harm is D1's: a
subscriber may decode with a version older than the newest but one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from leasehold.lease import ledger
from leasehold.lease.agent_session import HolderLimits
from leasehold.lease.commands import (
    Change,
    Command,
    Holders,
    KillSession,
    Lease,
    Liveness,
    Publish,
    RegisterEpoch,
    Seed,
    SetMinVersion,
)
from leasehold.lease.holder import Holder
from leasehold.lease.holder_events import (
    Answered,
    Event,
    Idle,
    LedgerAway,
    Send,
    TimePassed,
    VersionKnown,
    Wake,
    Want,
)
from leasehold.lease.ledger_state import LedgerState
from leasehold.lease.ledger_watch import Answered as MasterAnswered
from leasehold.lease.ledger_watch import (
    EpochLost,
    LedgerWatch,
    RecordRun,
    RunRecorded,
    SeedFromLog,
    seed_parts,
)
from leasehold.lease.ledger_watch import Event as MasterEvent
from leasehold.lease.ledger_watch import TimePassed as MasterTimePassed
from leasehold.lease.replies import HolderList, Killed, LivenessReport, Published, Reply
from leasehold.lease.rules import Rules
from leasehold.lease.session_watch import SessionWatch

TTL: Final = 3
LIMITS: Final = HolderLimits(session_ttl_ns=TTL, renew_every_ns=1, margin_ns=0, retry_after_ns=1)
TABLE: Final = 1
VERSIONS_MAX: Final = 3
Named: TypeAlias = tuple[str, Any]


class Ids:
    """Session ids, one after the other; `last` belongs to the state."""

    def __init__(self) -> None:
        self.last = 0

    def __iter__(self) -> Ids:
        return self

    def __next__(self) -> int:
        self.last += 1
        return self.last


@dataclass(frozen=True, slots=True)
class Bounds:
    """`aways`: calls given up without an answer; `losses`: restarts of the ledger with the state
    of the beginning; `flushes`: it is emptied under the same run id; `takeovers`: new masters.
    `prompt`: the agent's calls are answered in the same step. `steady`: the one user stays.
    `hasty`: jobs neither drain nor ask the watch, so that the ledger alone has to hold D1."""

    ticks: int = 3
    aways: int = 0
    losses: int = 0
    flushes: int = 0
    takeovers: int = 0
    prompt: bool = False
    steady: bool = False
    hasty: bool = False

    def words(self) -> str:
        return ", ".join(
            name if value is True else f"{value} {name}"
            for name, value in asdict(self).items()
            if value
        )


class Log(NamedTuple):
    """What the log says: the table's versions, and the ledger's run id on record."""

    current: int = 1
    min_version: int = 1
    recorded: str = ""


class World(NamedTuple):
    """`ledger`, `holder`, `watch`, `sessions` are keys of real objects (`Model.objects`).
    `call`: sent and not yet arrived; `reply`: on its way back; `late`: calls whose senders have
    given them up. `kills`: deaths decided and not yet sent. `using`: versions of the users."""

    now: int
    ledger: Any
    run: int
    log: Log
    holder: Any
    call: Named | None
    reply: Named | None
    using: tuple[int, ...]
    epoch: int
    watch: Any
    sessions: Any
    kills: tuple[KillSession, ...]
    late: tuple[Named, ...]
    harm: str
    aways: int = 0
    losses: int = 0
    flushes: int = 0
    takeovers: int = 0


@dataclass
class Model:
    rules: Rules = field(default_factory=Rules)
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        self.objects: dict[Any, Any] = {}
        self._stepped: dict[Any, tuple[Any, list[Any]]] = {}
        self._applied: dict[Any, tuple[Any, Reply]] = {}
        self._first = self._begin()

    # ------------------------------------------------------------ real objects behind keys

    def _keep_ledger(self, state: LedgerState) -> Any:
        key = state.key()
        self.objects.setdefault(("ledger", key), state)
        return key

    def _keep_holder(self, holder: Holder) -> Any:
        key = holder.key(), holder.session._ids.last  # type: ignore[attr-defined]
        self.objects.setdefault(("holder", key), holder)
        return key

    def _keep(self, kind: str, thing: LedgerWatch | SessionWatch) -> Any:
        key = thing.key()
        self.objects.setdefault((kind, key), thing)
        return key

    def _call(self, world: World, command: Command) -> tuple[World, Reply]:
        key = world.ledger, world.run, named(command)
        found = self._applied.get(key)
        if found is None:
            state = self.objects["ledger", world.ledger].copy()
            reply = ledger.apply(state, command, run_id(world), self.rules)
            found = self._applied[key] = self._keep_ledger(state), reply
        return world._replace(ledger=found[0]), found[1]

    def _holder(self, world: World) -> Holder:
        found: Holder = self.objects["holder", world.holder]
        return found

    def _step(self, world: World, event: Event) -> World:
        """The agent takes an event; what it sends is on its way then."""
        key = world.holder, type(event).__name__, inner(event), world.now
        found = self._stepped.get(key)
        if found is None:
            holder = self._holder(world).copy()
            effects = holder.step(event, world.now)
            found = self._stepped[key] = self._keep_holder(holder), list(effects)
        world = world._replace(holder=found[0])
        for effect in found[1]:
            if isinstance(effect, Send):
                world = world._replace(call=named(effect.command))
            elif isinstance(effect, Wake) and effect.lease is not None:
                world = world._replace(using=(*world.using, effect.lease.version))
        return self._without_lost(world)

    def _without_lost(self, world: World) -> World:
        """Users whose lease is gone find out before they decode again (`is_valid`, D3)."""
        if not world.using:
            return world
        lease = self._holder(world).leases.find(Lease(TABLE, world.using[0]))
        return world if lease is not None and lease.users else world._replace(using=())

    # ------------------------------------------------------------ the start and the harm

    def _begin(self) -> World:
        """The ledger is ready, the agent holds version 1 and has one user on it."""
        holder = Holder("s", Ids(), has_store=False, limits=LIMITS, rules=self.rules)
        watch = LedgerWatch(1, "", TTL, self.rules)
        world = World(
            0,
            self._keep_ledger(LedgerState()),
            1,
            Log(),
            self._keep_holder(holder),
            None,
            None,
            (),
            1,
            self._keep("watch", watch),
            self._keep("sessions", SessionWatch(1, TTL, self.rules)),
            (),
            (),
            "",
        )
        world = self._look(world)
        world = world._replace(now=TTL)
        world = self._master(world, MasterTimePassed())
        world = self._step(world, VersionKnown(TABLE, 1))
        world = self._step(world, Want(TABLE, 1))
        while world.call is not None:
            world, reply = self._call(world, world.call[1])
            world = self._step(world._replace(call=None), Answered(reply))
        world = self._look(world)
        assert world.using == (1,), world
        return world

    def starts(self) -> list[tuple[str, World]]:
        return [("the subscriber has a user on version 1", self._first)]

    def invariant(self, world: World) -> str | None:
        if world.harm:
            return world.harm
        holder = self._holder(world)
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
        yield from self._mastership(world)
        yield from self._faults(world)

    def _agent(self, world: World) -> Iterator[tuple[str, World]]:
        holder = self._holder(world)
        due = holder.due_ns()
        if due is not None and due <= world.now:
            after = self._step(world, TimePassed())
            if after != world:
                yield f"the agent sends {after.call and after.call[1]}", after
        if holder.known(TABLE) < world.log.current:
            event = VersionKnown(TABLE, world.log.current)
            yield f"the agent learns of version {world.log.current}", self._step(world, event)

    def _users(self, world: World) -> Iterator[tuple[str, World]]:
        """One user at a time: it ends, another begins."""
        if world.using:
            version = world.using[0]
            holder = self._holder(world).copy()
            lease = holder.leases.find(Lease(TABLE, version))
            idle = lease is not None and holder.leases.release(lease)
            after = world._replace(using=world.using[1:], holder=self._keep_holder(holder))
            if idle:
                after = self._step(after, Idle())
            yield f"the user of version {version} ends", after
            return
        holder = self._holder(world).copy()
        taken = holder.leases.acquire(TABLE, world.now)
        if taken is not None:
            after = world._replace(using=(taken.version,), holder=self._keep_holder(holder))
            yield f"a user begins with version {taken.version}", after

    def _calls(self, world: World) -> Iterator[tuple[str, World]]:
        if world.call is not None and world.reply is None:
            after, reply = self._call(world, world.call[1])
            label = f"the ledger answers {world.call[1]}: {reply}"
            if self.bounds.prompt:
                after = after._replace(call=None)
                yield label, self._step(after, Answered(reply))
            else:
                yield label, after._replace(reply=named(reply))
        if world.reply is not None:
            cleared = world._replace(call=None, reply=None)
            yield "the agent has its answer", self._step(cleared, Answered(world.reply[1]))
        if world.call is not None and world.aways < self.bounds.aways:
            cleared = world._replace(call=None, reply=None, aways=world.aways + 1)
            if world.reply is None:
                cleared = cleared._replace(late=(*world.late, world.call))
            yield "the agent gives its call up", self._step(cleared, LedgerAway())
        for sent in dict.fromkeys(world.late):
            late = list(world.late)
            late.remove(sent)
            command = sent[1]
            after, reply = self._call(world._replace(late=tuple(late)), command)
            if isinstance(command, Publish) and isinstance(reply, Published):
                after = after._replace(harm="D2: a deposed master has published")
            yield f"a late call arrives: {command}: {reply}", after

    # ------------------------------------------------------------ the master

    def _mastership(self, world: World) -> Iterator[tuple[str, World]]:
        looked = self._look(world)
        if looked != world:
            yield f"master {world.epoch} looks at the ledger", looked
        due = self.objects["watch", world.watch].due_ns()
        if due is not None and due <= world.now:
            yield f"master {world.epoch}'s wait is over", self._master(world, MasterTimePassed())
        for kill in world.kills:
            after, reply = self._call(world._replace(kills=()), kill)
            killed = isinstance(reply, Killed)
            yield (f"{kill} {'is done' if killed else 'is refused'}", after)
        yield from self._publish(world)
        yield from self._fence(world)

    def _look(self, world: World) -> World:
        world, report = self._call(world, Liveness())
        assert isinstance(report, LivenessReport)
        world = self._master(world, MasterAnswered(report))
        sessions = self.objects["sessions", world.sessions].copy()
        kills = tuple(sessions.step(report, world.now, world.now))
        kept = self._keep("sessions", sessions)
        return world._replace(sessions=kept, kills=kills or world.kills)

    def _master(self, world: World, event: MasterEvent) -> World:
        """The watch's effects are carried out at once; only deaths and publishes may be late."""
        watch = self.objects["watch", world.watch].copy()
        effects = watch.step(event, world.now)
        world = world._replace(watch=self._keep("watch", watch))
        for effect in effects:
            match effect:
                case SeedFromLog(found):
                    seeds = [Seed(TABLE, world.log.current, world.log.min_version)]
                    for part in seed_parts(world.epoch, found, seeds):
                        world, reply = self._call(world, part)
                        world = self._master(world, MasterAnswered(reply))
                case RecordRun(found):
                    world = world._replace(log=world.log._replace(recorded=found))
                    world = self._master(world, RunRecorded(found))
                case EpochLost():
                    pass
                case command:
                    world, reply = self._call(world, command)
                    world = self._master(world, MasterAnswered(reply))
        return world

    def _publish(self, world: World) -> Iterator[tuple[str, World]]:
        """D2: ledger, then log. The job asks the watch, the log knows of the fence (D5)."""
        current = world.log.current
        if current >= VERSIONS_MAX or world.log.min_version != current:
            return
        if not (self.bounds.hasty or self.objects["watch", world.watch].may_publish):
            return
        change = Change(TABLE, current, current + 1)
        after, reply = self._call(world, Publish(world.epoch, (change,), intent=current + 1))
        if isinstance(reply, Published):
            after = after._replace(log=world.log._replace(current=current + 1))
            yield f"master {world.epoch} publishes version {current + 1}", after

    def _fence(self, world: World) -> Iterator[tuple[str, World]]:
        """D4, D5: drained means that the ledger has no live lease below."""
        current = world.log.current
        if world.log.min_version == current:
            return
        after, reply = self._call(world, Holders(TABLE, current))
        assert isinstance(reply, HolderList)
        if self.bounds.hasty:
            fenced = world._replace(log=world.log._replace(min_version=current))
            fenced, _ = self._call(fenced, SetMinVersion(world.epoch, TABLE, current))
            yield f"version {current} is fenced, nobody was waited for", fenced
            return
        if not self.objects["watch", world.watch].may_publish:
            return
        if reply.ready and reply.holders_total == 0:
            after, _ = self._call(after, SetMinVersion(world.epoch, TABLE, current))
            after = after._replace(log=world.log._replace(min_version=current))
            yield f"version {current} is drained and fenced", after

    # ------------------------------------------------------------ faults

    def _faults(self, world: World) -> Iterator[tuple[str, World]]:
        if world.losses < self.bounds.losses:
            lost = world._replace(
                ledger=self._first.ledger, run=world.run + 1, losses=world.losses + 1
            )
            yield "the ledger restarts with an old state", lost
        if world.flushes < self.bounds.flushes:
            empty = self._keep_ledger(LedgerState())
            yield (
                "the ledger is emptied under the same run id",
                world._replace(ledger=empty, flushes=world.flushes + 1),
            )
        if world.takeovers < self.bounds.takeovers:
            epoch = world.epoch + 1
            current = world.log.current
            late = Publish(world.epoch, (Change(TABLE, current, current + 1),), intent=current + 1)
            watch = LedgerWatch(epoch, world.log.recorded, TTL, self.rules)
            after = world._replace(
                epoch=epoch,
                watch=self._keep("watch", watch),
                sessions=self._keep("sessions", SessionWatch(epoch, TTL, self.rules)),
                kills=(),
                late=(*world.late, named(late)),
                takeovers=world.takeovers + 1,
            )
            # D2: the new master registers its epoch before anything else.
            after, _ = self._call(after, RegisterEpoch(epoch))
            yield f"master {epoch} takes over, a publish of the old one is on its way", after

    def show(self, world: World) -> str:
        holder = self._holder(world)
        phase = self.objects["watch", world.watch].phase.value
        held = ", ".join(f"{lease!r}" for lease in holder.leases.each()) or "nothing"
        return (
            f"tick {world.now - TTL} | log: version {world.log.current}, min "
            f"{world.log.min_version} | agent: {held}, valid until "
            f"{holder.leases.valid_until_ns - TTL} | users on {list(world.using)} | master: {phase}"
        )


def named(thing: Any) -> Named:
    """Commands and replies of different kinds can be equal as tuples."""
    return type(thing).__name__, thing


def inner(event: Event) -> Any:
    """An event's content, replies by their kind."""
    return named(event.reply) if isinstance(event, Answered) else tuple(event)


def run_id(world: World) -> str:
    return f"run-{world.run}"
