"""What nodes and lease agents say of themselves on the topic of acknowledgements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from leasehold.model.keys import Key


class Ack(NamedTuple):
    """A node's applied position, its state, and (when `asked_ns` > 0) its ask for a lease (C3)."""

    node: str
    incarnation: bytes
    role: str  # master | standby | replicant
    offset: int  # every record below is applied
    epoch: int
    lsn: int
    asked_ns: int
    coherent: bool
    serves: str  # host:port of the snapshot server, "" = none
    sent_us: int
    foreign: int = 0  # records of the log that were passed over as nobody's, the last one of late


class LeaseAck(NamedTuple):
    """An agent has moved its users off versions below `version`; only wakes the waiter (D4)."""

    agent: str
    table_id: int
    version: int


class HoldingReport(NamedTuple):
    """A report, for people only, of what keeps an agent on a version that new users get no more.

    It is sent while that lasts, and not at all for a wait that is soon over. All ages are by the
    agent's own clock: `held_ms` since it took the version up, `old_ms` since it has a newer one,
    `expires_ms` until its session ends (below 0: it has ended). `users` counts all; `work` has the
    oldest of those that have a name: (label, SQL or "", age in ms). `session` 0: none is open.
    """

    agent: str
    session: int
    table_id: int
    version: int
    users: int
    held_ms: int
    old_ms: int
    expires_ms: int
    work: tuple[tuple[str, str, int], ...]
    sent_us: int


class AccessReport(NamedTuple):
    """A report, for people only, that a node lets SQL clients in without asking who they are;
    `words` say whom. It is sent again and again while that is so."""

    node: str
    words: str
    sent_us: int


class NodeReport(NamedTuple):
    """A report, for people only, of a node's release and of its disk: `room` by the words of
    `replication/disk_room.py`, all else in bytes. It is sent every few seconds. `feature_level`:
    that of the database, as far as this node has read the log."""

    node: str
    release: str
    room: str
    free_bytes: int
    disk_bytes: int
    reserve_bytes: int
    store_bytes: int
    wal_bytes: int
    sent_us: int
    feature_level: int = 0


MERGED_TABLES_MAX: Final = 100
ROLES_CHECKED: Final = 0
"""`table_id` of a CheckReport on roles, memberships and privileges; no table's."""


class CheckReport(NamedTuple):
    """What one node found when it checked a table at one log position.

    `subject` is the barrier's id, or `b"job:…"` for the verification of a job's element.
    `findings`: (condition 1-7, element id, key, words), at most `findings_max` of them;
    `findings_total` counts all; `code`: the SQLSTATE of the first, "" = none tells it.
    `checksum` covers every row and entry at that position, `rows_checksum` the rows alone (b""
    from an earlier program, and where no row was summed).
    `repaired`: entries put right afterwards, -1 = no repair was asked for. `until`: the last key of
    the slice that was checked; None when nothing lies behind it.
    """

    subject: bytes
    node: str
    incarnation: bytes
    offset: int
    lsn: int
    table_id: int
    version: int
    rows: int
    entries: Mapping[int, int]
    checksum: bytes
    findings_total: int
    findings: tuple[tuple[int, int, Key, str], ...]
    took_ms: int
    error: str = ""
    rows_checksum: bytes = b""
    repaired: int = -1
    until: Key | None = None
    code: str = ""


class TableMerged(NamedTuple):
    """How far a node is with a table's backfill by range: how many ranges it has not merged yet,
    and about how many rows it has passed, of the run under way and since it was started."""

    table_id: int
    ranges: int
    rows: int


class MergeReport(NamedTuple):
    """A node's word on backfills by range: that it knows them, and how many of those that stand in
    the log below `offset` it has not merged yet. `tables`, for people only: each that a job fills
    so, MERGED_TABLES_MAX at most."""

    node: str
    incarnation: bytes
    offset: int
    waiting: int
    tables: tuple[TableMerged, ...] = ()


class PartReport(NamedTuple):
    """What this incarnation of a partial replica holds: (table id, its name, which rows, "" = all).
    The master waits for it where that is written, and for nobody else's sake (C1). Of a process
    that has said nothing it takes that it holds everything, as a master of an earlier release does
    of everybody. It is sent with each term's first ask for a lease, and every few seconds."""

    node: str
    incarnation: bytes
    tables: tuple[tuple[int, str, str], ...]
    sent_us: int


class ProcessReport(NamedTuple):
    """A report, for people only, of a process that is no node and reads no log: its release, and up
    to which feature it reads what others write (`model/features.py`). `role`: what it does. It is
    sent every few seconds, and with `ended` when it stops."""

    process: str
    role: str  # spark | dashboard | intake | agent | subscriber
    release: str
    reads: int
    sent_us: int
    ended: bool = False


AgentMessage: TypeAlias = LeaseAck | HoldingReport | ProcessReport
"""What an agent says."""
Acknowledgement: TypeAlias = (
    Ack
    | LeaseAck
    | HoldingReport
    | CheckReport
    | AccessReport
    | MergeReport
    | NodeReport
    | PartReport
    | ProcessReport
)
