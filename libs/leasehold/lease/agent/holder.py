"""An agent's side of the descriptor leases: what it holds, and how it moves on (D3, D4, D6-D8).

Users take and give back leases through ``holder.leases`` (``held_leases.py``), from any thread.
One thread steps the holder: ``step(event, now_ns)`` gives commands for the ledger, one in flight
at a time, the next chosen from what is the case then, so no queue of outdated ones can form.
"""

from collections.abc import Iterable, Iterator

from leasehold.lease.agent.events import (
    NOBODY,
    Acknowledge,
    Answered,
    Drain,
    Effect,
    Event,
    GaveUp,
    LedgerAway,
    Send,
    TableGone,
    VersionKnown,
    Wake,
    Want,
)
from leasehold.lease.agent.held_leases import FOREVER_NS, HeldLease, HeldLeases, LeaseStatus
from leasehold.lease.agent.session import AgentSession, HolderLimits
from leasehold.lease.agent.waiters import Waiters
from leasehold.lease.commands import (
    Acquire,
    Command,
    EndSession,
    Lease,
    Register,
    Release,
)
from leasehold.lease.replies import (
    Ended,
    Extension,
    Granted,
    LedgerRefused,
    Opened,
    RefusalReason,
    Registered,
    Released,
    Renewed,
    Reply,
)

NOT_HELD = (LeaseStatus.WANTED, LeaseStatus.UNLEASED)
STOPPING = "this agent is stopping"


class Holder:
    """The leases of one agent, and what it does next about them.

    `has_store`: a replicant's agent, whose reads are safe by the store's own min_version (D3), so
    it goes on without a lease; one without a store uses a lease only until its expiry.
    """

    def __init__(
        self,
        agent: str,
        session_ids: Iterator[int],
        *,
        has_store: bool,
        limits: HolderLimits | None = None,
    ) -> None:
        self.agent = agent
        self.has_store = has_store
        self.leases = HeldLeases(FOREVER_NS if has_store else 0)
        self._limits = limits or HolderLimits()
        self.session = AgentSession(agent, session_ids, self._limits)
        self._known: dict[int, int] = {}  # table → newest version whose descriptor is here
        self._followed: set[int] = set()  # tables whose newest version is to be held
        self._wanted: dict[Lease, HeldLease] = {}  # to acquire, in this order
        self._missing: dict[Lease, HeldLease] = {}  # known here, not yet to the ledger
        self._missing_ns = 0  # when to ask for them again
        self._resting: dict[int, int] = {}  # table → when to hold a lease on it again
        self._leaving: dict[Lease, HeldLease] = {}  # to release, in this order
        self._waiters = Waiters(self._limits.waiters_max)
        self._unserved = False  # some could not be served when it was their turn
        self._in_flight: Command | None = None
        self._draining = False

    # --- reading -------------------------------------------------------------------------------

    def due_ns(self) -> int | None:
        """Return when TimePassed is next needed, None where only an event can bring work."""
        if self._in_flight is not None or not self._has_work():
            return None
        if self.session.in_order and not self._leaving and not self._may_acquire():
            due_ns = self.session.renew_ns
            if self._missing:
                due_ns = min(due_ns, self._missing_ns)
            if self._resting:
                due_ns = min(due_ns, *self._resting.values())
            return max(due_ns, self.session.retry_ns)
        return self.session.retry_ns

    def known(self, table: int) -> int:
        """Return the newest version whose descriptor is here, 0 where none is."""
        return self._known.get(table, 0)

    def is_behind(self, table: int, current: int) -> bool:
        """Whether that is a newer version than any heard of, of a table whose newest one is to be
        held."""
        return table in self._followed and current > self.known(table)

    def held(self) -> list[Lease]:
        """Return what the ledger has under this session, as far as this agent knows."""
        statuses = (LeaseStatus.HELD, LeaseStatus.RELEASING)
        return sorted(lease.id for lease in self.leases.each() if lease.status in statuses)

    # --- stepping ------------------------------------------------------------------------------

    def step(self, event: Event, now_ns: int) -> list[Effect]:
        """Take an event and return what is to be done. `now_ns`: CLOCK_BOOTTIME at its receipt."""
        effects: list[Effect] = []
        self.leases.now_ns = now_ns
        match event:
            case VersionKnown(table, version):
                self._learn(table, version, now_ns)
            case TableGone(table):
                self._forget(table, effects)
            case Want(token=token) if token == NOBODY:
                self._hold_for_next(event)
            case Want():
                self._want(event, effects)
            case GaveUp(waiters):
                self._waiters.forget(waiters)
            case Answered(reply):
                self._answered(reply, now_ns, effects)
            case LedgerAway():
                self._unanswered(now_ns)
            case Drain():
                self._drain(effects)
            case _:
                pass  # Idle, TimePassed: what they bring is looked for below
        if self._waiters:
            self._serve(event, now_ns, effects)
        self._collect_idle()
        for table in [t for t, at_ns in self._resting.items() if now_ns >= at_ns]:
            self._ask_for(Lease(table, self._known[table]))
        if self._missing and now_ns >= self._missing_ns:
            self._wanted |= self._missing
            self._missing = {}
        command = self._next_command(now_ns)
        if command is not None:
            self._in_flight = command
            self.session.sent(now_ns)
            effects.append(Send(command))
        return effects

    # --- versions and users --------------------------------------------------------------------

    def _learn(self, table: int, version: int, now_ns: int) -> None:
        if version <= self._known.get(table, 0):
            return
        self._known[table] = version
        if table not in self._followed or self._draining:
            return
        if not self._rests(table, now_ns):
            self._ask_for(Lease(table, version))

    def _rests(self, table: int, now_ns: int) -> bool:
        """Whether a new version has to wait: a lease that nobody has used goes before the newer one
        is held.

        A call for each agent and step is what a step costs, and the next step has nobody to wait
        for. Who comes meanwhile asks for a lease, as the first user of a table does; where leases
        are used, nobody ever waits."""
        lease = self.leases.newest.get(table)
        if table not in self._resting:
            unused = lease is not None and lease.status is LeaseStatus.HELD and not lease.used
            if self.has_store or not self._limits.rest_ns or not unused:
                return False
            assert lease is not None, "it is unused"
            self.leases.retire(lease)
            lease.lingers = not lease.is_idle  # somebody may have come just then
        # Not all agents of a table at once.
        pause_ns = self._limits.rest_ns + self.session.id % self._limits.rest_ns
        self._resting[table] = now_ns + pause_ns
        return True

    def _ask_for(self, wanted: Lease) -> None:
        """Ask for a lease; where there is a store it is used at once (D4)."""
        self._resting.pop(wanted.table, None)
        lease = self.leases.find(wanted)
        if lease is None:
            lease = self.leases.add(wanted)
        if lease.status in NOT_HELD and wanted not in self._missing:
            self._wanted[wanted] = lease
        newest = self.leases.newest.get(wanted.table)
        if self.has_store and newest is not None and newest.version < wanted.version:
            self._move_to(lease)

    def _move_to(self, lease: HeldLease) -> None:
        newest = self.leases.newest.get(lease.table)
        self.leases.put_first(lease)
        if newest is not None and newest is not lease:
            newest.lingers = not newest.is_idle

    def _settle(self, lease: HeldLease) -> None:
        """Give a lease that has become usable to new users, or only to those who asked for it."""
        known = self._known.get(lease.table, 0)
        newest = self.leases.newest.get(lease.table)
        older = newest is not None and newest.version > lease.version
        if self._draining or older or lease.table not in self._followed:
            self.leases.retire(lease)
            return
        self._move_to(lease)
        if known > lease.version:
            self._ask_for(Lease(lease.table, known))

    def _forget(self, table: int, effects: list[Effect]) -> None:
        self._known.pop(table, None)
        self._resting.pop(table, None)
        self._followed.discard(table)
        for lease in list(self.leases.all.get(table, {}).values()):
            self.leases.retire(lease)
            self._missing.pop(lease.id, None)
            if not self._acquiring(lease):
                self._wanted.pop(lease.id, None)
        for wanted in self._waiters.wanted_of(table):
            effects += self._waiters.send_away(wanted, RefusalReason.UNKNOWN_TABLE)

    def _want(self, want: Want, effects: list[Effect]) -> None:
        known = self._known.get(want.table, 0)
        if self._draining:
            effects.append(Wake(want.token, None, None, STOPPING))
        elif known == 0:
            effects.append(Wake(want.token, None, RefusalReason.UNKNOWN_TABLE))
        elif want.version > known:
            effects.append(Wake(want.token, None, RefusalReason.FUTURE))
        elif self._waiters.is_full:
            effects.append(Wake(want.token, None, RefusalReason.LIMIT))
        else:
            version = 0 if want.version == known else want.version
            if version == 0:
                self._followed.add(want.table)
            self._waiters.add(Lease(want.table, version), want.token)
            self._ask_for(Lease(want.table, version or known))

    def _hold_for_next(self, want: Want) -> None:
        """Hold the newest version of a table whose user has stopped waiting: he comes again, or
        others do, and one that is never held is waited for in vain each time."""
        known = self._known.get(want.table, 0)
        if known and not self._draining:
            self._followed.add(want.table)
            self._ask_for(Lease(want.table, known))

    def _serve(self, event: Event, now_ns: int, effects: list[Effect]) -> None:
        """Wake those who can have what they wait for since `event`: those of the table that it is
        of, else all. An agent that begins wants a lease on each table of thousands."""
        if now_ns >= self.leases.valid_until_ns:
            self._unserved = True
            return
        match event:
            case (
                VersionKnown(table=table)
                | TableGone(table=table)
                | Want(table=table)
                | Answered(reply=Granted(table=table))
            ) if not self._unserved:
                wanted = self._waiters.wanted_of(table)
            case _:
                wanted = list(self._waiters.wanted())
        self._unserved = False
        self._wake_served(wanted, effects)

    def _wake_served(self, waited_for: Iterable[Lease], effects: list[Effect]) -> None:
        leases = self.leases
        for wanted in waited_for:
            lease = leases.find(wanted) if wanted.version else leases.newest.get(wanted.table)
            if lease is not None and lease.status in (LeaseStatus.HELD, LeaseStatus.UNLEASED):
                effects += self._waiters.serve(wanted, lease)

    def _drain(self, effects: list[Effect]) -> None:
        self._draining = True
        self._resting.clear()
        for lease in self.leases.each():
            self.leases.retire(lease)
        for wanted in list(self._waiters.wanted()):
            effects += self._waiters.send_away(wanted, None, STOPPING)

    def _collect_idle(self) -> None:
        while self.leases.idle:
            lease = self.leases.idle.popleft()
            if not lease.is_idle or lease.id in self._waiters:
                continue
            if lease.status is LeaseStatus.HELD:
                self._leaving[lease.id] = lease
            elif lease.status in NOT_HELD and not self._acquiring(lease):
                self._wanted.pop(lease.id, None)
                self._missing.pop(lease.id, None)
                self.leases.remove(lease)

    def _acquiring(self, lease: HeldLease) -> bool:
        return self._in_flight == Acquire(self.session.id, self.session.counter, *lease.id)

    # --- the next command ----------------------------------------------------------------------

    def _has_work(self) -> bool:
        session = self.session
        open_or_left = session.is_open or session.must_register or session.left
        return bool(open_or_left or self._wanted or self._leaving)

    def _next_command(self, now_ns: int) -> Command | None:
        session = self.session
        if self._in_flight is not None or now_ns < session.retry_ns or not self._has_work():
            return None
        if session.left:
            return EndSession(session.left)
        if not session.in_order:
            return self._registration(now_ns)
        if now_ns >= session.renew_ns:
            return session.renewal(len(self.held()))
        while self._leaving:
            lease = self._leaving.pop(next(iter(self._leaving)))
            if lease.status is LeaseStatus.HELD and self._may_go(lease):
                lease.status = LeaseStatus.RELEASING
                return Release(session.id, session.counter, *lease.id)
        if self._may_acquire():
            return Acquire(session.id, session.counter, *next(iter(self._wanted)))
        return None

    def _may_acquire(self) -> bool:
        """Whether there is a lease to ask for, and it would be usable: with a store it always is
        (D3)."""
        return bool(self._wanted) and (self.has_store or self.session.may_acquire())

    def _may_go(self, lease: HeldLease) -> bool:
        """Whether nobody uses it (D4)."""
        return lease.is_idle

    def _registration(self, now_ns: int) -> Command:
        """Return the command that registers all that is held, for the ledger to judge. D7: what a
        session that ran out held is gone for an agent without a store."""
        if now_ns >= self.leases.valid_until_ns:
            self._lose_all()
        held = (
            lease.id
            for lease in self.leases.each()
            if lease.status is LeaseStatus.HELD and not (lease.retired and lease.is_idle)
        )
        return self.session.registration(tuple(sorted(held)))

    def _lose_all(self) -> None:
        for lease in self.leases.each():
            if lease.status is not LeaseStatus.WANTED:
                self._lose(lease)
        self._follow()
        for wanted in self._waiters.wanted():
            self._ask_for(Lease(wanted.table, wanted.version or self._known[wanted.table]))

    def _follow(self) -> None:
        if not self._draining:
            for table in self._followed:
                self._ask_for(Lease(table, self._known[table]))

    def _lose(self, lease: HeldLease) -> None:
        """Take note that the ledger does not have it any more. A user of a store goes on (D3)."""
        self._leaving.pop(lease.id, None)
        self._wanted.pop(lease.id, None)
        self._missing.pop(lease.id, None)
        newest = self.leases.newest.get(lease.table) is lease
        if self.has_store and (newest or not lease.is_idle):
            lease.status = LeaseStatus.UNLEASED
        else:
            self.leases.remove(lease)

    # --- replies -------------------------------------------------------------------------------

    def _answered(self, reply: Reply, now_ns: int, effects: list[Effect]) -> None:
        command, self._in_flight = self._in_flight, None
        assert command is not None, f"an answer to nothing: {reply}"
        if isinstance(reply, Opened | Renewed | Registered):
            self.session.confirmed()
        match reply:
            case Opened(run_id, _, call, vouched):
                self.session.judged_by(run_id, now_ns, Extension(call, vouched))
            case Renewed(run_id, _, call, vouched):
                self.session.renewed_by(run_id, now_ns, Extension(call, vouched))
            case Registered():
                assert isinstance(command, Register)
                self._registered(command, reply, now_ns, effects)
            case Granted():
                self._granted(reply)
            case Released(run_id, _):
                assert isinstance(command, Release)
                self.session.served_by(run_id)
                self._released(command, effects)
            case Ended():
                self.session.left = 0
            case LedgerRefused():
                self._refused(command, reply, now_ns, effects)
            case _:
                raise AssertionError(f"not an answer to an agent: {reply}")
        if not self.has_store:
            self.leases.valid_until_ns = self.session.expires_ns

    def _registered(
        self, command: Register, reply: Registered, now_ns: int, effects: list[Effect]
    ) -> None:
        kept = set(command.leases) - set(reply.refused)
        for lease in self.leases.each():
            if lease.status is LeaseStatus.HELD and lease.id not in kept:
                self._lose(lease)  # refused, or left out because nobody uses it
                self._acknowledge(lease.table, effects)
        if reply.seeded:
            extension = Extension(reply.call, reply.vouched)
            self.session.judged_by(reply.run_id, now_ns, extension)
            self._follow()
        else:  # D6: the re-seeding will judge again; until then nothing is extended
            self.session.is_open = True
            self.session.must_register = True
            self.session.wait(now_ns)
            self._serve_unleased()

    def _granted(self, reply: Granted) -> None:
        self.session.served_by(reply.run_id)
        lease = self._wanted.pop(Lease(reply.table, reply.version), None)
        assert lease is not None, f"D1: granted, but not asked for: {reply}"
        lease.status = LeaseStatus.HELD
        self._settle(lease)

    def _released(self, command: Release, effects: list[Effect]) -> None:
        released = Lease(command.table, command.version)
        lease = self.leases.find(released)
        if lease is not None:
            assert self._may_go(lease), f"D4: {lease} released"
            self.leases.remove(lease)
        if lease is None or lease.lingers:
            self._acknowledge(command.table, effects)
        if released in self._waiters:  # wanted again meanwhile
            self._ask_for(released)

    def _acknowledge(self, table: int, effects: list[Effect]) -> None:
        """Acknowledge the newest version, for who held up a step. The master's first looks find out
        about all others, and a word from each of a thousand agents would cost the broker more than
        the step itself."""
        newest = self._known.get(table, 0)
        if newest and min(self.leases.all.get(table, {newest: None})) >= newest:
            effects.append(Acknowledge(table, newest))

    def _unanswered(self, now_ns: int) -> None:
        command, self._in_flight = self._in_flight, None
        assert command is not None, "no answer to nothing"
        self.session.wait(now_ns)
        self._restore(command)
        if isinstance(command, Acquire | Release | Register):
            self.session.must_register = True  # the ledger may hold more or less than is known
        self._serve_unleased()

    def _restore(self, command: Command) -> None:
        if not isinstance(command, Release):
            return
        lease = self.leases.find(Lease(command.table, command.version))
        if lease is not None and lease.status is LeaseStatus.RELEASING:
            lease.status = LeaseStatus.HELD
            self._leaving[lease.id] = lease

    def _serve_unleased(self) -> None:
        """Let a store be read without the leases that are still wanted (D3): to wait would make
        reads hang on Redis."""
        if self.has_store:
            for lease in list(self._wanted.values()):
                lease.status = LeaseStatus.UNLEASED
                self._settle(lease)

    def _refused(
        self, command: Command, reply: LedgerRefused, now_ns: int, effects: list[Effect]
    ) -> None:
        session = self.session
        session.trouble = reply.reason
        self._restore(command)
        match reply.reason:
            case RefusalReason.DEAD | RefusalReason.TAKEN:
                session.gone(must_register=bool(self.held()))
            case RefusalReason.EXPIRED:
                self._leave_session()
            case RefusalReason.REGISTER:
                session.must_register = True
            case RefusalReason.CLOSED if session.is_open and not session.must_register:
                session.must_register = True  # at once: D6's grace is running
                self._serve_unleased()
            case RefusalReason.CLOSED | RefusalReason.LIMIT | RefusalReason.FUTURE:
                session.wait(now_ns)
                self._serve_unleased()
            case RefusalReason.UNKNOWN_TABLE:
                assert isinstance(command, Acquire), f"{reply} to {command}"
                self._not_there_yet(command, now_ns)
            case RefusalReason.TOO_OLD:
                assert isinstance(command, Acquire), f"{reply} to {command}"
                self._not_granted(command, effects)
            case _:
                raise AssertionError(f"not a refusal to an agent: {reply}")

    def _leave_session(self) -> None:
        """Give up a session whose renewals are refused: to register what it holds under another
        one would undo the wish (D7).

        It ends at once where no lease of it can be used any more: a store's users are guarded by
        its own check (D3). Users without a store may have looked a moment ago, so while there are
        any it ends by its time."""
        held = self.leases.each()
        self._lose_all()
        if self.has_store or all(lease.is_idle for lease in held):  # behind their retirement (D4)
            self.session.leave()
        else:
            self.session.gone(must_register=False)

    def _not_there_yet(self, command: Acquire, now_ns: int) -> None:
        """Ask again for a table that is in the log before it is in the ledger, until it is there or
        TableGone. Other tables are not kept waiting meanwhile."""
        asked = Lease(command.table, command.version)
        lease = self._wanted.pop(asked, None)
        if lease is None:
            return
        self._missing[asked] = lease
        self._missing_ns = now_ns + self._limits.retry_after_ns
        if self.has_store:
            lease.status = LeaseStatus.UNLEASED
            self._settle(lease)

    def _not_granted(self, command: Acquire, effects: list[Effect]) -> None:
        asked = Lease(command.table, command.version)
        lease = self._wanted.pop(asked, None)
        if lease is None:
            return
        if self.has_store:
            lease.status = LeaseStatus.UNLEASED  # its store is behind; D3 checks each statement
            self._settle(lease)
            return
        # Who wants the newest waits for it: there is one that this agent has not heard of yet.
        self.leases.remove(lease)
        effects += self._waiters.send_away(asked, RefusalReason.TOO_OLD)
