"""Random commands for a ledger, likely enough to be accepted that its state goes everywhere."""

from __future__ import annotations

from random import Random

from leasehold.lease.commands import (
    HOLDERS_MAX,
    Acquire,
    Change,
    ClaimLocks,
    Command,
    DropTable,
    EndSession,
    ExpireAgent,
    GiveLock,
    GiveLocks,
    Holders,
    KillSession,
    Lease,
    ListLocks,
    Liveness,
    MarkReady,
    Newest,
    OpenSession,
    Publish,
    Register,
    RegisterEpoch,
    Release,
    Renew,
    Seed,
    SeedTables,
    SetMinVersion,
    Snapshot,
    TakeLock,
    Vouch,
)
from leasehold.lease.ledger.ledger import LedgerState

AGENTS = ("a", "b c", "d")
SESSIONS = (1, 2, 3, 2**53 - 1)
TABLES = (1, 2, 7)

KINDS = (
    *("open", "renew", "renew", "register", "register", "acquire", "acquire", "acquire"),
    *("acquire", "release", "release", "epoch", "publish", "publish", "publish", "min_version"),
    *("min_version", "seed", "ready", "kill", "expire", "drop", "holders", "liveness", "newest"),
    *("snapshot", "vouch", "end_session"),
    *("take_lock", "take_lock", "take_lock", "take_lock", "give_lock", "give_lock", "list_locks"),
    *("claim_locks", "claim_locks", "give_locks"),
)


class CommandMaker:
    """Looks at the state (which it does not change) to be right more often than by chance."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def make(self, state: LedgerState, run_id: str) -> Command:
        maker = getattr(self, f"_{self._kind(state, run_id)}")
        command: Command = maker(state, run_id)
        return command

    def _kind(self, state: LedgerState, run_id: str) -> str:
        """A closed ledger would only refuse: open it soon, but not always at once."""
        if self.random.random() < 0.3:
            if state.epoch == 0:
                return "epoch"
            if state.seeded != run_id:
                return "seed"
            if state.ready != run_id:
                return "ready"
        return self.random.choice(KINDS)

    def _often(self, likely: int, *others: int) -> int:
        return likely if self.random.random() < 0.85 else self.random.choice(others)

    def _run(self, run_id: str) -> str:
        return run_id if self.random.random() < 0.9 else "0123456789abcdef"

    def _epoch_now(self, state: LedgerState) -> int:
        return self._often(state.epoch, max(0, state.epoch - 1), state.epoch + 1)

    def _session(self, state: LedgerState) -> int:
        known = sorted(state.sessions) or list(SESSIONS)
        return self._often(self.random.choice(known), *SESSIONS)

    def _agent(self, state: LedgerState, session: int) -> str:
        row = state.sessions.get(session)
        if row is not None and self.random.random() < 0.9:
            return row.agent
        return self.random.choice(AGENTS)

    def _version(self, state: LedgerState, table: int) -> int:
        row = state.tables.get(table)
        current = row.current if row else 1
        return max(1, current + self.random.choice((0, 0, 0, 0, -1, -1, -2, 1)))

    def _counter(self, state: LedgerState, session: int) -> int:
        row = state.sessions.get(session)
        counter = row.counter if row else 0
        return self._often(counter + 1, counter + 2, counter, max(0, counter - 1))

    def _now(self, state: LedgerState, session: int) -> int:
        """The counter of a call that is not late, mostly."""
        row = state.sessions.get(session)
        counter = row.counter if row else 0
        return self._often(counter, counter + 1, max(0, counter - 1))

    def _open(self, state: LedgerState, run_id: str) -> Command:
        return OpenSession(self.random.choice(AGENTS), self.random.choice(SESSIONS))

    def _renew(self, state: LedgerState, run_id: str) -> Command:
        session = self._session(state)
        held = len(state.held(session))
        counter, confirmed = self._counter(state, session), self._now(state, session)
        return Renew(session, counter, self._often(held, held + 1, 0), confirmed)

    def _register(self, state: LedgerState, run_id: str) -> Command:
        session = self._session(state)
        leases = {
            Lease(table, self._version(state, table))
            for table in self.random.sample(TABLES, self.random.randint(0, 3))
        }
        counter = self._counter(state, session)
        agent = self._agent(state, session)
        return Register(agent, session, counter, tuple(sorted(leases)))

    def _acquire(self, state: LedgerState, run_id: str) -> Command:
        table = self.random.choice(TABLES)
        session = self._session(state)
        counter = self._now(state, session)
        return Acquire(session, counter, table, self._version(state, table))

    def _end_session(self, state: LedgerState, run_id: str) -> Command:
        return EndSession(self._session(state))

    def _release(self, state: LedgerState, run_id: str) -> Command:
        session = self._session(state)
        held = sorted(state.held(session))
        if held and self.random.random() < 0.8:
            return Release(session, self._now(state, session), *self.random.choice(held))
        table = self.random.choice(TABLES)
        return Release(session, self._now(state, session), table, self._version(state, table))

    def _epoch(self, state: LedgerState, run_id: str) -> Command:
        epoch = max(1, self._often(state.epoch, state.epoch + 1, state.epoch - 1))
        return RegisterEpoch(epoch, self.random.random() < 0.5)

    def _vouch(self, state: LedgerState, run_id: str) -> Command:
        call = self._often(state.calls, max(0, state.calls - 1), state.calls + 1)
        return Vouch(self._epoch_now(state), self._run(run_id), call)

    def _publish(self, state: LedgerState, run_id: str) -> Command:
        changes = []
        for table in sorted(self.random.sample(TABLES, self.random.choice((1, 1, 2)))):
            row = state.tables.get(table)
            current = row.current if row else 0
            start = self._often(current, max(0, current - 1), current + 1)
            changes.append(Change(table, start, self._often(start + 1, start, start + 2)))
        return Publish(self._epoch_now(state), tuple(changes), self.random.randint(0, 2))

    def _min_version(self, state: LedgerState, run_id: str) -> Command:
        table = self.random.choice(TABLES)
        return SetMinVersion(self._epoch_now(state), table, self._version(state, table))

    def _seed(self, state: LedgerState, run_id: str) -> Command:
        seeds = []
        for table in self.random.sample(TABLES, self.random.randint(1, 3)):
            current = max(2, self._version(state, table))
            seeds.append(Seed(table, current, self.random.choice((current, current - 1))))
        part = self._often(state.seed_part, 0, 1, 2)
        final = self.random.random() < 0.7
        return SeedTables(self._epoch_now(state), self._run(run_id), tuple(seeds), part, final)

    def _ready(self, state: LedgerState, run_id: str) -> Command:
        return MarkReady(self._epoch_now(state), self._run(run_id))

    def _kill(self, state: LedgerState, run_id: str) -> Command:
        session = self._session(state)
        row = state.sessions.get(session)
        counter = row.counter if row else 0
        return KillSession(self._epoch_now(state), session, self._often(counter, counter + 1, 0))

    def _expire(self, state: LedgerState, run_id: str) -> Command:
        return ExpireAgent(self._epoch_now(state), self.random.choice(AGENTS))

    def _drop(self, state: LedgerState, run_id: str) -> Command:
        return DropTable(self._epoch_now(state), self.random.choice(TABLES))

    def _holders(self, state: LedgerState, run_id: str) -> Command:
        table = self.random.choice(TABLES)
        below = self.random.choice((0, self._version(state, table)))
        return Holders(table, below, self.random.choice((0, 1, HOLDERS_MAX)))

    def _liveness(self, state: LedgerState, run_id: str) -> Command:
        return Liveness()

    def _newest(self, state: LedgerState, run_id: str) -> Command:
        return Newest()

    def _snapshot(self, state: LedgerState, run_id: str) -> Command:
        return Snapshot()

    def _lock(self) -> tuple[int, int, int]:
        return (1, 0, self.random.choice((1, 2, 3, 2**32 - 1)))

    def _take_lock(self, state: LedgerState, run_id: str) -> Command:
        exclusive, waits = self.random.random() < 0.6, self.random.random() < 0.7
        owner = self.random.choice((1, 2, 3))
        return TakeLock(self._session(state), owner, *self._lock(), exclusive, waits)

    def _give_lock(self, state: LedgerState, run_id: str) -> Command:
        held = [(key, owner) for key, row in state.locks.items() for owner in row.holders]
        (key, owner) = (self._lock(), (self._session(state), 1))
        if held and self.random.random() < 0.8:
            key, owner = self.random.choice(held)
        return GiveLock(*owner, *key, self.random.random() < 0.6)

    def _claim_locks(self, state: LedgerState, run_id: str) -> Command:
        names = tuple(self._lock() for _ in range(self.random.randint(1, 4)))
        wanted, exclusive = self.random.randint(1, 4), self.random.random() < 0.7
        return ClaimLocks(
            self._session(state), self.random.choice((1, 2)), wanted, exclusive, names
        )

    def _give_locks(self, state: LedgerState, run_id: str) -> Command:
        names = tuple(self._lock() for _ in range(self.random.randint(1, 3)))
        held = [owner for row in state.locks.values() for owner in row.holders]
        owner = self.random.choice(held) if held else (self._session(state), 1)
        return GiveLocks(*owner, self.random.random() < 0.6, names)

    def _list_locks(self, state: LedgerState, run_id: str) -> Command:
        return ListLocks(self.random.choice((1, 1_000)))
