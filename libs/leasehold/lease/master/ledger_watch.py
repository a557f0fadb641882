"""A master's way to a ledger it may publish through: register, re-seed, wait, record, ready (D6).

    UNKNOWN ─ seen, another epoch ─▶ REGISTERING ─┐
       ▲  └── seen, seeded + ready + on record ───┼──────────────────────────────▶ READY
       │                                          ▼                                 ▲
       │                                       SEEDING ─▶ WAITING ─▶ RECORDING ─▶ MARKING
       └── unreachable, another run id, a key missing, or any refusal ◀── every state

The run id goes on record in the log only when the wait is over: a new master that takes over
in between finds another one on record and starts the wait afresh.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, TypeAlias

from leasehold.lease.commands import (
    TABLES_PER_CALL_MAX,
    Liveness,
    MarkReady,
    RegisterEpoch,
    Seed,
    SeedTables,
)
from leasehold.lease.replies import (
    EpochRegistered,
    LedgerRefused,
    LivenessReport,
    Ready,
    RefusalReason,
    Reply,
    Seeded,
)


class Phase(Enum):
    UNKNOWN = "not seen yet"
    REGISTERING = "registering the epoch"
    SEEDING = "seeding versions from the log"
    WAITING = "waiting for agents to register what they hold"
    RECORDING = "putting the run id on record in the log"
    MARKING = "opening for publishing"
    READY = "ready"
    DEPOSED = "a higher epoch is registered"


class Answered(NamedTuple):
    """A reply to any command of this master; also those of jobs, for what they tell."""

    reply: Reply


class LedgerAway(NamedTuple):
    """The ledger could not be reached, or a call's outcome is unknown."""


class RunRecorded(NamedTuple):
    """The log record that puts a run id on record has been read back."""

    run_id: str


class TimePassed(NamedTuple):
    pass


Event: TypeAlias = Answered | LedgerAway | RunRecorded | TimePassed


class SeedFromLog(NamedTuple):
    """Send :func:`seed_parts` of the log's current versions, in order; stop at a refusal."""

    run_id: str


class RecordRun(NamedTuple):
    """Append the run id to the log, then report RunRecorded."""

    run_id: str


class EpochLost(NamedTuple):
    """The word that a higher epoch is registered by another master: this one is deposed."""

    epoch: int


Effect: TypeAlias = Liveness | RegisterEpoch | SeedFromLog | RecordRun | MarkReady | EpochLost


def seed_parts(epoch: int, run_id: str, seeds: Sequence[Seed]) -> list[SeedTables]:
    """Return the re-seeding as calls of bounded work."""
    parts = [
        tuple(seeds[start : start + TABLES_PER_CALL_MAX])
        for start in range(0, len(seeds), TABLES_PER_CALL_MAX)
    ] or [()]
    last = len(parts) - 1
    return [SeedTables(epoch, run_id, part, n, n == last) for n, part in enumerate(parts)]


class LedgerWatch:
    """The watch of one mastership over the ledger. `recorded_run` is what the log has on record
    when it begins."""

    __slots__ = (
        "_epoch",
        "_recorded",
        "_run_id",
        "_tables",
        "_ttl_ns",
        "_until_ns",
        "phase",
    )

    def __init__(self, epoch: int, recorded_run: str, session_ttl_ns: int) -> None:
        assert epoch >= 1, f"epoch {epoch}"
        assert session_ttl_ns > 0, f"session_ttl_ns {session_ttl_ns}"
        self._epoch = epoch
        self._recorded = recorded_run
        self._ttl_ns = session_ttl_ns
        self._run_id = ""
        self._until_ns = 0
        self._tables = 1
        self.phase = Phase.UNKNOWN

    @property
    def may_publish(self) -> bool:
        return self.phase is Phase.READY

    def expect_tables(self, tables: int) -> None:
        """Take how many tables the log has at SeedFromLog. With none nobody can hold a lease,
        whatever the ledger has lost, so there is no grace to wait for: a new database is ready at
        once."""
        self._tables = tables

    def may_vouch(self, report: LivenessReport) -> bool:
        """Whether this master may vouch for the calls that a look has seen (D11). Only in the
        ledger on record: a master that finds another one there, this one or the next, waits for
        those that were vouched for here (D6)."""
        on_record = report.run_id == self._recorded
        return on_record and report.ready and report.epoch == self._epoch

    def due_ns(self) -> int | None:
        """Return when TimePassed is next needed."""
        return self._until_ns if self.phase is Phase.WAITING else None

    def describe(self, now_ns: int) -> str:
        """Return what schema changes wait for, in words for people."""
        if self.phase is not Phase.WAITING:
            return str(self.phase.value)
        left_s = max(0, self._until_ns - now_ns) / 1e9
        return f"{self.phase.value} ({left_s:.1f} s left)"

    def step(self, event: Event, now_ns: int) -> list[Effect]:
        """Return what to do next; `now_ns` is CLOCK_BOOTTIME at the receipt of the event. A look at
        the ledger (the reply to Liveness, asked regularly by the caller) drives everything."""
        if self.phase is Phase.DEPOSED:
            return []
        match event:
            case LedgerAway():
                self.phase = Phase.UNKNOWN
                return []
            case RunRecorded(run_id):
                self._recorded = run_id
                return self._recorded_now()
            case TimePassed():
                return self._time(now_ns)
            case Answered(LivenessReport() as report):
                return self._looked(report)
            case Answered(reply):
                return self._answered(reply, now_ns)

    def _looked(self, report: LivenessReport) -> list[Effect]:
        if report.epoch > self._epoch:
            self.phase = Phase.DEPOSED
            return [EpochLost(report.epoch)]
        if report.epoch < self._epoch:
            if self.phase is Phase.REGISTERING:
                return []
            self.phase = Phase.REGISTERING
            return [RegisterEpoch(self._epoch)]
        on_record = report.run_id == self._recorded
        if on_record and report.seeded and report.ready:
            self._run_id = report.run_id
            self.phase = Phase.READY
            return []
        same = report.run_id == self._run_id
        under_way = self.phase in (Phase.WAITING, Phase.RECORDING, Phase.MARKING)
        if same and (self.phase is Phase.SEEDING or (under_way and report.seeded)):
            return []
        self._run_id = report.run_id
        self.phase = Phase.SEEDING
        return [SeedFromLog(report.run_id)]

    def _answered(self, reply: Reply, now_ns: int) -> list[Effect]:
        match reply:
            case LedgerRefused(reason=RefusalReason.EPOCH, epoch=epoch) if epoch > self._epoch:
                self.phase = Phase.DEPOSED
                return [EpochLost(epoch)]
            case LedgerRefused(
                reason=RefusalReason.EPOCH
                | RefusalReason.CLOSED
                | RefusalReason.NOT_READY
                | RefusalReason.RUN_ID
                | RefusalReason.PART
            ):
                return self._look_again()
            case EpochRegistered() if self.phase is Phase.REGISTERING:
                return self._look_again()
            case Seeded(run_id, complete, _) if self.phase is Phase.SEEDING:
                if run_id != self._run_id:
                    return self._look_again()
                return self._grace(now_ns) if complete else []
            case Ready(run_id) if self.phase is Phase.MARKING:
                if run_id != self._run_id:
                    return self._look_again()
                self.phase = Phase.READY
                return []
        if reply.run_id != self._run_id and self._run_id:
            return self._look_again()
        return []

    def _look_again(self) -> list[Effect]:
        self.phase = Phase.UNKNOWN
        return [Liveness()]

    def _grace(self, now_ns: int) -> list[Effect]:
        """Begin the wait for agents (D6): what one still holds was renewed before the loss, hence
        before now."""
        self.phase = Phase.WAITING
        self._until_ns = now_ns + self._grace_ns()
        return self._time(now_ns)

    def _grace_ns(self) -> int:
        return self._ttl_ns if self._tables else 0

    def _time(self, now_ns: int) -> list[Effect]:
        if self.phase is not Phase.WAITING or now_ns < self._until_ns:
            return []
        if self._recorded == self._run_id:
            return self._mark(self._run_id)
        self.phase = Phase.RECORDING
        return [RecordRun(self._run_id)]

    def _recorded_now(self) -> list[Effect]:
        if self.phase is not Phase.RECORDING or self._recorded != self._run_id:
            return []
        return self._mark(self._run_id)

    def _mark(self, run_id: str) -> list[Effect]:
        self._run_id = run_id
        self.phase = Phase.MARKING
        return [MarkReady(self._epoch, run_id)]
