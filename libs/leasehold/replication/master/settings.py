"""The settings of a master."""

from __future__ import annotations

from dataclasses import dataclass, field

from leasehold.model.signatures import OPEN, Verifier
from leasehold.replication.coherency import CoherencySettings
from leasehold.replication.log.retention import HistorySettings
from leasehold.replication.log.truncation import TruncationSettings
from leasehold.replication.master.backfill_pacing import USERS_RECENT_MS, BackfillSettings
from leasehold.replication.master.batch_limits import BatchSettings
from leasehold.replication.outcomes import OutcomeSettings


@dataclass(frozen=True, slots=True)
class MasterSettings:
    """How a master paces its records and what belongs to them.

    `heartbeat_ms` is the time between records when there is nothing to decide. Asks for coherency
    leases alone gather for `grants_gather_ms`, so that an idle log does not get a record per node
    and renewal; that and the renewal together stay well below a lease's duration. Users count as
    present for `users_recent_ms` after a request (see `BackfillPace`). While a coherent
    node is more than `ahead_max` records behind, requests gather for the next record: their answers
    would wait for the node anyway (C1), and fewer records are what lets it catch up. `verifier`:
    who tells whose a message of a queue is."""

    coherency: CoherencySettings = field(default_factory=CoherencySettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    backfill: BackfillSettings = field(default_factory=BackfillSettings)
    outcomes: OutcomeSettings = field(default_factory=OutcomeSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    truncation: TruncationSettings = field(default_factory=TruncationSettings)
    heartbeat_ms: int = 200
    grants_gather_ms: int = 120
    delete_every_ms: int = 5_000
    users_recent_ms: int = USERS_RECENT_MS
    ahead_max: int = 3
    verifier: Verifier = OPEN
