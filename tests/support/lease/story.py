"""A small world for stories about leases: agents, a master and a ledger under one virtual clock.

Calls to the ledger are answered at once unless the story says otherwise; time passes only when
the story says so. `printed` shows the ledger as `/version/agent …`, newest last.
"""

from __future__ import annotations

from itertools import count

from leasehold.in_process.ledger import MemoryLedger
from leasehold.lease.agent.events import (
    Acknowledge,
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
from leasehold.lease.agent.held_leases import HeldLease, LeaseStatus
from leasehold.lease.agent.holder import Holder
from leasehold.lease.agent.session import HolderLimits
from leasehold.lease.commands import (
    Change,
    Command,
    Holders,
    Liveness,
    Publish,
    RegisterEpoch,
    Seed,
    SetMinVersion,
    Vouch,
)
from leasehold.lease.master.ledger_watch import (
    Answered as MasterAnswered,
)
from leasehold.lease.master.ledger_watch import (
    Effect,
    EpochLost,
    LedgerWatch,
    RecordRun,
    RunRecorded,
    SeedFromLog,
    seed_parts,
)
from leasehold.lease.master.ledger_watch import (
    Event as MasterEvent,
)
from leasehold.lease.master.ledger_watch import (
    LedgerAway as MasterLedgerAway,
)
from leasehold.lease.master.ledger_watch import (
    TimePassed as MasterTimePassed,
)
from leasehold.lease.master.session_watch import SessionWatch
from leasehold.lease.replies import HolderList, LivenessReport, Reply
from leasehold.model.errors import LedgerUnavailable

SECOND = 1_000_000_000
TTL = 15 * SECOND
LIMITS = HolderLimits()


class World:
    """`log`: the truth about versions, table → (current, min_version)."""

    def __init__(self, log: dict[int, tuple[int, int]] | None = None):
        self.now_ns = 1_000 * SECOND
        self.log = dict(log or {1: (1, 1)})
        self.ledger = MemoryLedger()
        self.recorded_run = ""
        self.ids = count(1)
        self.agents: list[Actor] = []

    def agent(self, name: str, *, has_store: bool = True) -> Actor:
        actor = Actor(self, name, has_store)
        self.agents.append(actor)
        for table, (current, _) in self.log.items():
            actor.do(VersionKnown(table, current))
        return actor

    def master(self, epoch: int = 1, *, vouches: bool = False) -> Master:
        return Master(self, epoch, vouches=vouches)

    def ready_master(self, epoch: int = 1, *, vouches: bool = False) -> Master:
        master = self.master(epoch, vouches=vouches)
        master.look()
        self.pass_time(TTL, *self.agents)
        master.tick()
        assert master.watch.may_publish, master.watch.describe(self.now_ns)
        return master

    def pass_time(self, duration_ns: int, *renewing: Actor) -> None:
        """In small steps, in which only the agents named are alive."""
        end_ns = self.now_ns + duration_ns
        while self.now_ns < end_ns:
            self.now_ns = min(end_ns, self.now_ns + SECOND // 2)
            for actor in renewing:
                actor.do(TimePassed())

    def printed(self, table: int = 1) -> str:
        reply = self.ledger.call(Holders(table))
        assert isinstance(reply, HolderList)
        return " ".join(f"/{holding.version}/{holding.agent}" for holding in reply.holders)

    def harm(self) -> str:
        """D1 as the world sees it: what storeless agents may use now, against the log."""
        for actor in self.agents:
            for lease in actor.in_use():
                current, _ = self.log[lease.table]
                if lease.version < current - 1:
                    return f"{actor.name} uses version {lease.version}, {current} is published"
        return ""


class Actor:
    """An agent and its users."""

    def __init__(self, world: World, name: str, has_store: bool) -> None:
        self.world = world
        self.name = name
        self.holder = Holder(name, world.ids, has_store=has_store, limits=LIMITS)
        self.wakes: dict[int, Wake] = {}
        self.acknowledged: list[Acknowledge] = []
        self.sent: list[Command] = []
        self.tokens = count(1)
        self.users: list[HeldLease] = []
        self.hold_back = False  # the next commands stay unanswered until `answer`
        self.pending: Command | None = None
        self.ledger: MemoryLedger | None = None  # where it has gone astray

    def do(self, event: Event) -> None:
        effects = self.holder.step(event, self.world.now_ns)
        for effect in effects:
            match effect:
                case Wake(token, lease, _, _):
                    self.wakes[token] = effect
                    if lease is not None:
                        self.users.append(lease)
                case Acknowledge():
                    self.acknowledged.append(effect)
                case Send(command):
                    self.sent.append(command)
                    self.pending = command
                    if not self.hold_back:
                        self.answer()

    def answer(self) -> None:
        assert self.pending is not None
        command, self.pending = self.pending, None
        try:
            reply = (self.ledger or self.world.ledger).call(command)
        except LedgerUnavailable:
            self.do(LedgerAway())
        else:
            self.do(Answered(reply))

    def answered(self, reply: Reply) -> None:
        self.pending = None
        self.do(Answered(reply))

    def want(self, table: int = 1, version: int = 0) -> Wake | None:
        token = next(self.tokens)
        self.do(Want(table, token, version))
        return self.wakes.get(token)

    def use(self, table: int = 1) -> HeldLease:
        """As a transaction does: at once if it is held, else it asks and is woken."""
        lease = self.holder.leases.acquire(table, self.world.now_ns)
        if lease is not None:
            self.users.append(lease)
            return lease
        wake = self.want(table)
        assert wake is not None, "not woken"
        assert wake.lease is not None, f"refused: {wake.reason}"
        return wake.lease

    def end(self, lease: HeldLease) -> None:
        self.users.remove(lease)
        if self.holder.leases.release(lease):
            self.do(Idle())

    def in_use(self) -> list[HeldLease]:
        """What its users may decode with now, by what the agent itself can know."""
        if self.holder.has_store:
            return []  # D3: guarded by each statement's own check
        leases = self.holder.leases
        return [lease for lease in self.users if leases.is_valid(lease, self.world.now_ns)]

    def status(self, version: int, table: int = 1) -> LeaseStatus | None:
        lease = self.holder.leases.all.get(table, {}).get(version)
        return None if lease is None else lease.status


class Master:
    """A mastership as far as leases go. `vouches`: for what it has seen, at once (D11)."""

    def __init__(self, world: World, epoch: int, *, vouches: bool = False) -> None:
        self.world = world
        self.epoch = epoch
        self.watch = LedgerWatch(epoch, world.recorded_run, TTL)
        self.sessions = SessionWatch(epoch, TTL)
        self.lost = False
        self.vouches = vouches

    def call(self, command: Command) -> Reply:
        return self.world.ledger.call(command)

    def step(self, event: MasterEvent) -> None:
        for effect in self.watch.step(event, self.world.now_ns):
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case SeedFromLog(run_id):
                seeds = [Seed(table, *row) for table, row in sorted(self.world.log.items())]
                for part in seed_parts(self.epoch, run_id, seeds):
                    self.step(MasterAnswered(self.call(part)))
            case RecordRun(run_id):
                self.world.recorded_run = run_id
                self.step(RunRecorded(run_id))
            case EpochLost():
                self.lost = True
            case RegisterEpoch(epoch):
                self.step(MasterAnswered(self.call(RegisterEpoch(epoch, self.vouches))))
            case command:
                self.step(MasterAnswered(self.call(command)))

    def look(self) -> None:
        try:
            report = self.call(Liveness())
        except LedgerUnavailable:
            self.step(MasterLedgerAway())
            return
        assert isinstance(report, LivenessReport)
        self.step(MasterAnswered(report))
        now_ns = self.world.now_ns
        for death in self.sessions.step(report, now_ns, now_ns):
            self.call(death)
        if self.vouches and self.watch.may_vouch(report):
            self.call(Vouch(self.epoch, report.run_id, report.calls))

    def tick(self) -> None:
        self.step(MasterTimePassed())

    def publish(self, table: int = 1, *, tell: bool = True) -> Reply:
        """One step: ledger, then log (D2); the agents learn of it unless `tell` is False."""
        current, min_version = self.world.log[table]
        change = Change(table, current, current + 1)
        reply = self.call(Publish(self.epoch, (change,), intent=current + 1))
        if type(reply).__name__ == "Published":
            self.world.log[table] = (current + 1, min_version)
            if tell:
                for actor in self.world.agents:
                    actor.do(VersionKnown(table, current + 1))
        return reply

    def drained(self, table: int = 1) -> bool:
        current, _ = self.world.log[table]
        reply = self.call(Holders(table, current))
        assert isinstance(reply, HolderList)
        return reply.ready and reply.holders_total == 0

    def fence(self, table: int = 1) -> bool:
        """D5, where the table is drained."""
        if not self.drained(table):
            return False
        current, _ = self.world.log[table]
        self.world.log[table] = (current, current)
        self.call(SetMinVersion(self.epoch, table, current))
        return True
