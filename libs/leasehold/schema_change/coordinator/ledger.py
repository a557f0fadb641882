"""The coordinator's part that keeps the ledger usable: watch of its run id (D6), watch of sessions
(D7), and tables that are new to it. Jobs publish only while `trouble` is empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from leasehold.catalog.catalog import Catalog
from leasehold.lease.commands import (
    TABLES_PER_CALL_MAX,
    Change,
    Command,
    DropTable,
    Liveness,
    MarkReady,
    Publish,
    RegisterEpoch,
    Seed,
    SeedTables,
    Snapshot,
    Vouch,
)
from leasehold.lease.master.ledger_watch import (
    Answered,
    EpochLost,
    LedgerAway,
    LedgerWatch,
    RecordRun,
    RunRecorded,
    SeedFromLog,
    TimePassed,
    seed_parts,
)
from leasehold.lease.master.ledger_watch import Effect as WatchEffect
from leasehold.lease.master.lock_fences import FenceStatus, LockFences
from leasehold.lease.master.session_watch import SessionWatch
from leasehold.lease.replies import (
    Dropped,
    LedgerRefused,
    LivenessReport,
    Published,
    Reply,
    Seeded,
    SnapshotReport,
    Vouched,
)
from leasehold.model.errors import LedgerUnavailable
from leasehold.model.ports import Now
from leasehold.model.records.log import LedgerRun
from leasehold.model.records.requests import LockFence
from leasehold.model.time_units import NS_PER_MS


@dataclass(frozen=True, slots=True)
class LedgerSideSettings:
    """The times between looks at the sessions: `look_ms`, and `look_again_ms` while the ledger is
    not ready. `vouches`: the ledger may be replaced by another one while it lives (D11)."""

    session_ttl_ms: int = 15_000
    look_ms: int = 1_000
    look_again_ms: int = 100
    vouches: bool = False


class SeenCalls(NamedTuple):
    """What a look at the ledger has seen, and when it was answered: the last call that extends a
    session."""

    run_id: str
    call: int
    at_ns: int


Wanted: TypeAlias = Command | LedgerRun


class LedgerSide:
    """Gives commands to send and LedgerRun records to write; `known`: tables the ledger has."""

    def __init__(self, catalog: Catalog, epoch: int, settings: LedgerSideSettings) -> None:
        self._catalog = catalog
        self._epoch = epoch
        self._settings = settings
        ttl_ns = settings.session_ttl_ms * NS_PER_MS
        self._watch = LedgerWatch(epoch, catalog.ledger_run, ttl_ns)
        self._sessions = SessionWatch(epoch, ttl_ns)
        self._fences = LockFences(epoch)
        self._recorded = catalog.ledger_run
        self._looking = False
        self._look_ns = 0
        self._seeds: list[SeedTables] = []
        self._seen: SeenCalls | None = None  # to be vouched for
        self._vouched = 0
        self._away = False
        # None: not asked yet what the ledger has. `_asking`: an introduction is under way.
        self._known: set[int] | None = None
        self._asking = False
        self._changes = 0  # those of the catalog that have been looked at
        self._unlike: set[int] = set()  # tables that the ledger and the log may not have alike
        self.epoch_lost = 0

    def knows(self, table_id: int) -> bool:
        return self._known is not None and table_id in self._known

    def forget(self, table_id: int) -> None:
        """The ledger says that it does not have the table after all."""
        self._unlike.add(table_id)
        if self._known is not None:
            self._known.discard(table_id)

    def trouble(self, now: Now) -> str:
        """Return why nothing can be published now; "" when it can."""
        if self.epoch_lost:
            return f"nothing: epoch {self.epoch_lost} has begun, another node is master"
        if self._away:
            return "the ledger (Redis), which can't be reached"
        if not self._watch.may_publish:
            return f"the ledger (Redis): {self._watch.describe(now.mono_ns)}"
        return ""

    def due_ns(self) -> int:
        due = self._watch.due_ns()
        return self._look_ns if due is None else min(due, self._look_ns)

    # ------------------------------------------------------------ events

    def tick(self, now: Now) -> list[Wanted]:
        wanted = self._perform_watch(self._watch.step(TimePassed(), now.mono_ns))
        if not self._looking and now.mono_ns >= self._look_ns:
            wanted += self._look()
        return wanted + self._introduce(now)

    def catalog_changed(self, now: Now) -> list[Wanted]:
        if self._catalog.ledger_run == self._recorded:
            return []
        self._recorded = self._catalog.ledger_run
        event = RunRecorded(self._recorded)
        return self._perform_watch(self._watch.step(event, now.mono_ns))

    def note_reply(self, reply: Reply | LedgerUnavailable, now: Now) -> list[Wanted]:
        """Note what any answer of the ledger tells of its state, a job's too."""
        if isinstance(reply, LedgerUnavailable):
            self._away = True
            return self._perform_watch(self._watch.step(LedgerAway(), now.mono_ns))
        self._away = False
        return self._perform_watch(self._watch.step(Answered(reply), now.mono_ns))

    def take_reply(
        self, command: Command, reply: Reply | LedgerUnavailable, sent_ns: int, now: Now
    ) -> list[Wanted]:
        """Take an answer to a command of this part's own."""
        wanted: list[Wanted] = []
        match command:
            case Liveness():
                self._looking = False
                if isinstance(reply, LivenessReport):
                    wanted += self._look_at_sessions(reply, sent_ns, now)
            case Vouch():
                if isinstance(reply, Vouched):
                    self._vouched = reply.call
            case SeedTables():
                seeded = isinstance(reply, Seeded)
                self._seeds = self._seeds[1:] if seeded else []
                wanted += self._seeds[:1]
            case Snapshot() | Publish() | DropTable():
                self._asking = False
                self._note_introduced(command, reply)
        wanted += self.note_reply(reply, now)
        pause_ms = self._settings.look_ms if not self.trouble(now) else self._settings.look_again_ms
        if isinstance(command, Liveness):
            self._look_ns = now.mono_ns + pause_ms * NS_PER_MS
        return wanted

    def _look_at_sessions(self, report: LivenessReport, sent_ns: int, now: Now) -> list[Wanted]:
        self._note_calls(report, now)
        dead = self._sessions.step(report, sent_ns, now.mono_ns)
        self._fences.look(report)
        self._fences.forget(death.session for death in dead)
        return list(dead)

    @property
    def awaits_confirmation(self) -> bool:
        """Whether there are calls to vouch for once this master knows that it still is one."""
        return self._seen is not None

    def confirmed(self, since_ns: int) -> list[Wanted]:
        """Take that this node was master by the log at `since_ns`: a record that it appended then
        was read back. What it had seen before was seen by a master, and whoever comes after it has
        its Claim behind that record (D11)."""
        seen = self._seen
        if seen is None or not self._is_covered(seen, since_ns):
            return []
        self._seen = None
        return [Vouch(self._epoch, seen.run_id, seen.call)]

    def _is_covered(self, seen: SeenCalls, since_ns: int) -> bool:
        return seen.at_ns <= since_ns

    def _note_calls(self, report: LivenessReport, now: Now) -> None:
        if not (self._settings.vouches and self._watch.may_vouch(report)):
            self._seen = None
        elif self._seen is None and report.calls != self._vouched:
            self._seen = SeenCalls(report.run_id, report.calls, now.mono_ns)

    def judge_fence(self, fence: LockFence) -> FenceStatus:
        """Return where the advisory locks stand under which a request was sent (D10)."""
        return self._fences.judge(fence, self._catalog.ledger_run)

    # ------------------------------------------------------------ the run id (D6)

    def _look(self) -> list[Wanted]:
        if self._looking:
            return []
        self._looking = True
        return [Liveness()]

    def _perform_watch(self, effects: Iterable[WatchEffect]) -> list[Wanted]:
        wanted: list[Wanted] = []
        for effect in effects:
            match effect:
                case Liveness():
                    wanted += self._look()
                case SeedFromLog(run_id):
                    self._seen, self._vouched = None, 0  # of a state that is gone
                    versions = self._versions()
                    self._watch.expect_tables(len(versions))
                    self._seeds = seed_parts(self._epoch, run_id, versions)
                    wanted += self._seeds[:1]
                case RecordRun(run_id):
                    wanted.append(LedgerRun(run_id))
                case EpochLost(epoch):
                    self.epoch_lost = epoch
                case RegisterEpoch(epoch):
                    wanted.append(RegisterEpoch(epoch, self._settings.vouches))
                case MarkReady():
                    wanted.append(effect)
        return wanted

    def _versions(self) -> list[Seed]:
        catalog = self._catalog
        return [
            Seed(table.table_id, table.version, catalog.min_version(table.table_id))
            for table in catalog.leased_tables()
        ]

    # ------------------------------------------------------------ new tables

    def _introduce(self, now: Now) -> list[Wanted]:
        """A table is in the log first and in the ledger after: nobody can hold a lease on it
        before, and whoever asks for one meanwhile asks again."""
        if self._asking or self.trouble(now):
            return []
        if self._known is None:
            self._asking = True
            return [Snapshot()]
        catalog, known = self._catalog, self._known
        self._unlike.update(catalog.changed_since(self._changes))
        self._changes = catalog.changes
        if not self._unlike:
            return []
        self._unlike = {t for t in self._unlike if catalog.leases(t) != (t in known)}
        gone = self._unlike & known
        if gone:
            self._asking = True
            return [DropTable(self._epoch, min(gone))]
        new = [catalog.newest(table_id) for table_id in sorted(self._unlike)]
        if not new:
            return []
        self._asking = True
        changes = tuple(Change(t.table_id, 0, t.version) for t in new[:TABLES_PER_CALL_MAX])
        return [Publish(self._epoch, changes)]

    def _note_introduced(self, command: Command, reply: Reply | LedgerUnavailable) -> None:
        match reply:
            case SnapshotReport(tables=tables):
                self._known = {table.table for table in tables}
                self._unlike = self._known ^ {t.table_id for t in self._catalog.leased_tables()}
                self._changes = self._catalog.changes
            case Dropped() if isinstance(command, DropTable) and self._known is not None:
                self._known.discard(command.table)
            case Published() if isinstance(command, Publish) and self._known is not None:
                self._known |= {change.table for change in command.changes}
            case LedgerRefused():
                self._known = None  # it has changed since: ask again
