"""The whole of one database as a person wants to see it, and the events that it is made of. PURE.

The command and the dashboard read the same view, so they can never tell two stories. Everything is
taken from what travels anyway (log headers, acks, version and job events, the ledger's snapshot):
looking asks nothing of the master. Times are unix µs, for people; nothing is decided by them. How
an event changes a view: `fold.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.job import Job, Status, job_from_wire
from leasehold.events.version_diff import ElementChange, diff
from leasehold.lease.replies import Holding, SnapshotReport
from leasehold.model.records.acks import (
    AccessReport,
    Ack,
    CheckReport,
    HoldingReport,
    MergeReport,
    NodeReport,
    PartReport,
    ProcessReport,
)
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import ChangefeedReport, JobEvent, JobProgress, SparkReport
from leasehold.model.records.log import Grant, JobForgotten

OPEN_KNOWN_FOR_US: Final = 30_000_000
"""Several of its words. A node that asks since it was started anew says nothing more of it."""
LOG_TIME: Final = "log time"
SILENT_AFTER_US: Final = 3_000_000
"""A node acknowledges several times a second; one that has not for so long is called silent."""

# ---------------------------------------------------------------- what is folded


class LogSeen(NamedTuple):
    """A Decisions record of the current epoch, without its body. `offset` is its own."""

    offset: int
    epoch: int
    sequence: int
    lsn: int  # last LSN up to and with this record
    commit_us: int
    commits: int
    refusals: int
    dead_letters: int
    decided_through: Mapping[str, int]
    answered_through: int
    grants: tuple[Grant, ...] = ()
    closed_us: int = 0
    id_horizon_us: int = 0
    reset_us: int = 0


class ClaimSeen(NamedTuple):
    """A Claim in the log. Only a reader of the whole log knows whether it counts (L1): nodes say so
    in what they acknowledge, and a Decisions record of its epoch."""

    offset: int
    epoch: int
    node: str


class TopicEnds(NamedTuple):
    """Next offsets of topics: "log", queues, "dead-letter" and `rows/<table id>` (records kept)."""

    ends: Mapping[str, int]


class LedgerSeen(NamedTuple):
    """The ledger's report. `holders`: table id → who holds a lease on it, as far as the ledger
    names them."""

    report: SnapshotReport
    holders: Mapping[int, tuple[Holding, ...]]


class Heard(NamedTuple):
    """How far the clock of somebody who tells of himself, or the log's time (LOG_TIME), is ahead of
    the watcher's (negative: behind), by when his newest word came (`sender_clocks.py`)."""

    sender: str
    ahead_us: int


class Unreachable(NamedTuple):
    """A part that can't be reached: `what` is "kafka" or "ledger", `why` one sentence."""

    what: str
    why: str


class Reachable(NamedTuple):
    what: str


class TopicsRead(NamedTuple):
    """A round of reading has ended. `left`: topics that were never read to their ends yet, and how
    many records are left of each, about (-1: not known)."""

    left: Mapping[str, int]


Event: TypeAlias = (
    LogSeen
    | ClaimSeen
    | TopicEnds
    | Ack
    | AccessReport
    | NodeReport
    | PartReport
    | ProcessReport
    | HoldingReport
    | MergeReport
    | CheckReport
    | VersionEvent
    | JobEvent
    | JobForgotten
    | JobProgress
    | SparkReport
    | ChangefeedReport
    | LedgerSeen
    | Heard
    | Unreachable
    | Reachable
    | TopicsRead
)

# ---------------------------------------------------------------- what is shown


@dataclass(frozen=True, slots=True)
class LogView:
    """How far the log is: `end` is its next offset, and `seen_us` when its newest record was read.

    `time_us` is the log's time: no commit up to here is later, and every later one is. `claims` are
    those of later epochs, of which nobody has said yet that they count.
    """

    end: int = 0
    epoch: int = 0
    master: str = ""
    lsn: int = 0
    commit_us: int = 0
    seen_us: int = 0
    decided_through: Mapping[str, int] = field(default_factory=dict)
    answered_through: int = 0
    time_us: int = 0
    id_horizon_us: int = 0
    claims: tuple[ClaimSeen, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node by its own last acknowledgement. `since_us`: coherent, or not, since then, by its
    clock."""

    ack: Ack
    since_us: int


class SessionSeen(NamedTuple):
    """An agent's session by its count of renewals; `moved_us`: when that was last seen to rise,
    0 as long as it was not (a look of its own tells nothing)."""

    renewals: int
    moved_us: int


@dataclass(frozen=True)
class TableView:
    """The newest published version of a table."""

    event: VersionEvent

    @cached_property
    def descriptor(self) -> Descriptor:
        return from_wire(self.event.body)


@dataclass(frozen=True)
class VersionChange:
    """A version with what it changed, seen from the one known `before` it, if one was."""

    after: TableView
    before: TableView | None

    @property
    def event(self) -> VersionEvent:
        return self.after.event

    @cached_property
    def changes(self) -> tuple[ElementChange, ...]:
        before = None if self.before is None else self.before.descriptor
        return diff(before, self.after.descriptor)


@dataclass(frozen=True)
class JobView:
    """A job as the log has it. One that has ended is decoded when it is looked at: of thousands few
    ever are."""

    event: JobEvent

    @cached_property
    def job(self) -> Job:
        return job_from_wire(self.event.body)

    @property
    def status(self) -> Status:
        return Status(self.event.body["status"])

    @cached_property
    def readable(self) -> bool:
        """Whether it can be decoded; a job that has not ended can."""
        try:
            return self.job.job_id == self.event.job_id
        except Exception:  # noqa: BLE001 - of a body that is no job anything may come
            return False


class Second(NamedTuple):
    """Decisions seen in one second of unix time."""

    at: int
    committed: int
    refused: int
    dead_lettered: int


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Everything seen so far. `unreachable`: "kafka" | "ledger" → why; both absent = both fine.

    `held_back`: an agent's newest word on an older version, by agent, table id and version; whether
    it still holds it only the ledger tells. `checks`: by subject, the one heard of last at the end,
    then each node's newest report by name and table id. `merging`: each node's newest word on
    backfills by range. `open_nodes`: each node's newest word that it lets clients in without
    asking. `node_reports`: on its release and disk. `processes`: what those that are no nodes say
    of themselves, by name. `copies`: the newest word for each copy of a store that a node takes or
    has taken, by `copy_name`. `sessions`: by id. `committed`, `refused`
    and `dead_lettered` count since the view began to look. `not_read`: topics that were never read
    to their ends yet (see `TopicsRead`), so that what they say is not known yet; `read_us`: when
    topics were last read, 0 for a view that is told of everything at once. `ahead_us`: how far the
    clocks of those who tell of themselves are ahead of the watcher's; who is not there was not
    heard, and his clock is taken for right.
    """

    log: LogView = field(default_factory=LogView)
    nodes: Mapping[str, NodeView] = field(default_factory=dict)
    tables: Mapping[int, TableView] = field(default_factory=dict)
    jobs: Mapping[int, JobView] = field(default_factory=dict)
    progress: Mapping[int, JobProgress] = field(default_factory=dict)  # newest by job
    spark: SparkReport | None = None
    changefeed: ChangefeedReport | None = None
    changefeed_ack: Ack | None = None
    recent: tuple[VersionChange, ...] = ()  # newest last
    checks: dict[bytes, dict[tuple[str, int], CheckReport]] = field(default_factory=dict)
    held_back: Mapping[tuple[str, int, int], HoldingReport] = field(default_factory=dict)
    merging: Mapping[str, MergeReport] = field(default_factory=dict)
    open_nodes: Mapping[str, AccessReport] = field(default_factory=dict)
    node_reports: Mapping[str, NodeReport] = field(default_factory=dict)
    parts: Mapping[str, PartReport] = field(default_factory=dict)
    processes: Mapping[str, ProcessReport] = field(default_factory=dict)
    copies: Mapping[str, Ack] = field(default_factory=dict)
    sessions: Mapping[int, SessionSeen] = field(default_factory=dict)
    ledger: LedgerSeen | None = None
    ledger_us: int = 0
    ends: Mapping[str, int] = field(default_factory=dict)
    unreachable: Mapping[str, str] = field(default_factory=dict)
    not_read: Mapping[str, int] = field(default_factory=dict)
    read_us: int = 0
    ahead_us: Mapping[str, int] = field(default_factory=dict)
    seconds: tuple[Second, ...] = ()  # newest last, seconds without a record left out
    committed: int = 0
    refused: int = 0
    dead_lettered: int = 0

    def age_us(self, sender: str, sent_us: int, now_us: int) -> int:
        """Return how long ago it was by the watcher's clock that somebody's clock said `sent_us`;
        0 for what is to come."""
        return max(0, now_us - sent_us + self.ahead_us.get(sender, 0))

    def is_silent(self, node: NodeView, now_us: int) -> bool:
        """Return whether nothing has been heard of a node for longer than one that lives is
        still."""
        return self.age_us(node.ack.node, node.ack.sent_us, now_us) > SILENT_AFTER_US

    def log_now_us(self, now_us: int) -> int:
        """Return the log's time, by which commits and jobs are stamped, at `now_us`."""
        return now_us + self.ahead_us.get(LOG_TIME, 0)

    def as_of_us(self, now_us: int) -> int:
        """The moment that what the topics say is of: nobody is silent because this view was not
        read on."""
        return min(now_us, self.read_us) if self.read_us else now_us

    def gaps(self, now_us: int) -> list[str]:
        """Sentences on what this view can't tell yet, or no longer tells; none as a rule."""
        found = [
            f"topic {topic} is still being read"
            + (f", about {records:,} records are left" if records >= 0 else "")
            for topic, records in sorted(self.not_read.items())
        ]
        behind_us = now_us - self.as_of_us(now_us)
        if behind_us > SILENT_AFTER_US:
            found.append(f"the topics were last read {behind_us // 1_000_000} s ago")
        return found
