"""The one description of a database's topics: names, partitions, clean-up, limits.

Whoever creates topics (infra), writes them or reads them takes names and settings from here, so
that the local cluster, docker-compose and the services can never disagree. PURE: only values.

Clean-up follows from who may still need a record:

- requests, backfill, log: no deletion by time. A record is deleted *by offset* once it is decided,
  answered and covered by a snapshot; a broker that dropped one by age would lose an accepted
  request (L3, L7) or make the log undecidable for a lagging node (L1, L2).
- acks, results, conflicts: deletion by time. Each is given again by its writer (a node renews its
  ack several times a second; results and conflicts after `answered_through` are repeated, L7).
- versions, jobs, rows, changefeed: compaction. The newest record per key is the state; readers may
  join late.
- versions-history, dead-letter, audit: kept for people and for readers of old images.
- activity and its changelogs: counts for people. Nothing is decided by them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from leasehold.model import byte_limits
from leasehold.model.errors import ConfigurationError

MESSAGE_BYTES_MAX: Final = byte_limits.MESSAGE
"""Largest Kafka record. One log record is one *batch* of decisions, so it needs room for many."""

PUBLISHED_BYTES_MAX: Final = byte_limits.PUBLISHED
"""Key and value of what is published of a commit, as they are before any packing: so a producer
counts them. Leaves room for headers and the batch around, which a broker counts, too."""

RESULT_PARTITIONS: Final = 8
"""Requesters name the partition they listen on; eight keep unrelated requesters out of each
other's way."""

ROW_PARTITIONS: Final = 2
"""Fixed for ever: the key → partition mapping of a compacted topic must not change, or an old image
would survive beside a newer one in another partition."""

CONFLICT_PARTITIONS: Final = 2
"""Parallelism of the verify/retry stream; a request's attempts stay in one by its id."""

ACTIVITY_SECONDS: Final = 0
ACTIVITY_MINUTES: Final = 1
"""Partitions of `activity`: windows of a second, and windows of a minute."""

ACTIVITY_TABLES: Final = ("seconds", "minutes", "steps", "jobs")
"""The tables of the application that writes `activity`."""

_HOUR_MS: Final = 60 * 60 * 1000
_DAY_MS: Final = 24 * _HOUR_MS

ACKS_RETENTION_MS: Final = 2 * _HOUR_MS
"""Twice as long as somebody who reads the log is waited for: a candidate proves by this topic who
has read it in that time, and a proof is shorter than what it is made of (L11)."""
RESULTS_RETENTION_MS: Final = _DAY_MS
CONFLICTS_RETENTION_MS: Final = 30 * _DAY_MS
DEAD_LETTER_RETENTION_MS: Final = 365 * _DAY_MS
AUDIT_RETENTION_MS: Final = 365 * _DAY_MS
FEED_TRANSACTIONS_RETENTION_MS: Final = 7 * _DAY_MS
ACTIVITY_RETENTION_MS: Final = 2 * _DAY_MS
ACTIVITY_CHANGELOG_RETENTION_MS: Final = _HOUR_MS
"""Several times as long as a window stays open."""
WORTHLESS_BYTES_MAX: Final = byte_limits.WORTHLESS
SEGMENT_BYTES: Final = byte_limits.SEGMENT
SEGMENTS_KEPT: Final = 8
SEGMENT_MS_MIN: Final = 60 * 1000
SEGMENT_MS_MAX: Final = 7 * _DAY_MS
"""A broker's own."""
TOMBSTONE_RETENTION_MS: Final = 7 * _DAY_MS
"""How long a reader of a compacted topic may be away and still see that a row was deleted."""

_DATABASE_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class Topic:
    """A Kafka topic. `config` holds broker-side topic settings, as Kafka spells them."""

    name: str
    partitions: int
    config: Mapping[str, str]

    def __post_init__(self) -> None:
        assert self.partitions >= 1, self.name
        assert len(self.name) <= 249, self.name  # Kafka's own limit


class Topics:
    """The topics of one database.

    `replication_factor` is how many brokers keep each record; a majority of them must have it
    before a write is acknowledged (3 → min.insync 2, the setting that the promises rest on; 1 → 1:
    a power cut of the single broker may cost what its page cache had not yet written, L2 notices).

    Raises ConfigurationError for a database name that is not `[a-z][a-z0-9_-]{0,62}`: names hold
    no dot, so that no database's topics can be mistaken for another's.
    """

    def __init__(self, database: str, replication_factor: int = 1) -> None:
        if not _DATABASE_NAME.fullmatch(database):
            raise ConfigurationError(
                f"The database name {database!r} is not usable: it must start with a small letter "
                "and hold only small letters, digits, '-' and '_' (63 characters at most)."
            )
        if replication_factor < 1:
            raise ConfigurationError(
                f"The replication factor {replication_factor} is not usable: it must be at least 1."
            )
        self.database = database
        self.replication_factor = replication_factor

    @property
    def requests(self) -> Topic:
        """Change requests. One partition: their order is the order of decision."""
        return self._kept_until_deleted_by_offset("requests")

    @property
    def backfill(self) -> Topic:
        """Chunks of backfill entries, in a queue of their own: never queued ahead of users."""
        return self._kept_until_deleted_by_offset("backfill")

    @property
    def log(self) -> Topic:
        """Claims, decisions, grants, barriers. One partition is the total order of a database."""
        return self._kept_until_deleted_by_offset("log")

    @property
    def acks(self) -> Topic:
        """Applied positions, lease asks, version acknowledgements; old ones are worthless."""
        return self._topic("acks", 1, _deleted_after(ACKS_RETENTION_MS, WORTHLESS_BYTES_MAX))

    @property
    def results(self) -> Topic:
        """Outcome per request id, on the partition that the request names."""
        return self._topic("results", RESULT_PARTITIONS, _deleted_after(RESULTS_RETENTION_MS))

    @property
    def versions(self) -> Topic:
        """Newest descriptor version per table id: where a subscriber starts."""
        return self._topic("versions", 1, _read_whole())

    @property
    def versions_history(self) -> Topic:
        """Every descriptor-version event in LSN order, kept for ever: it decodes old row images."""
        return self._topic("versions-history", 1, _deleted_after(-1))

    @property
    def notices(self) -> Topic:
        """Version events and ends of jobs, sent by the master as soon as it has read them back:
        agents that follow a schema change, and who waits for one, need not wait for the
        changefeed's transaction (15 to 60 ms of each step). Facts of the log, so a repeat or a
        late one harms nobody; whoever missed one finds it on `versions` or `jobs`."""
        return self._topic("notices", 1, _deleted_after(_HOUR_MS, WORTHLESS_BYTES_MAX))

    @property
    def jobs(self) -> Topic:
        """Newest state and progress per job, and what blocks it."""
        return self._topic("jobs", 1, _read_whole())

    @property
    def conflicts(self) -> Topic:
        """Refused requests that Spark retries, each with the row image that refused it."""
        return self._topic("conflicts", CONFLICT_PARTITIONS, _deleted_after(CONFLICTS_RETENTION_MS))

    @property
    def dead_letter(self) -> Topic:
        """What can't be applied, and why. One partition: people read it in order."""
        return self._topic("dead-letter", 1, _deleted_after(DEAD_LETTER_RETENTION_MS))

    @property
    def audit(self) -> Topic:
        """Log-ins, refusals, schema changes, grants: a line of JSON each, from every node. One
        partition: people read it in order."""
        return self._topic("audit", 1, _deleted_after(AUDIT_RETENTION_MS))

    @property
    def changefeed(self) -> Topic:
        """The place of the changefeed, written in the transaction of what it published (L6).

        A topic and not a consumer group's offset: brokers forget offsets after days without a
        commit, and a changefeed that began again would publish old images over newer ones.
        """
        return self._topic("changefeed", 1, _read_whole())

    def rows(self, table_id: int) -> Topic:
        """Row images of one table *id*: a re-created name never meets a dead table's images."""
        assert table_id >= 0, table_id
        return self._topic(f"rows.{table_id}", ROW_PARTITIONS, _compacted())

    @property
    def feeds(self) -> Topic:
        """Orders about feeds, such as `leasehold feed create` and signals for snapshots, kept for
        ever. The changefeed knows which of them it has carried out."""
        return self._topic("feeds", 1, _deleted_after(-1))

    def feed(self, name: str, partitions: int, kept_ms: int) -> Topic:
        """A table's row changes in Debezium's envelope, for any stream processor; partitions and
        time are those of `leasehold feed create`."""
        assert name.startswith(f"{self.database}.feed."), name
        suffix = name.removeprefix(f"{self.database}.")
        return self._topic(suffix, partitions, _deleted_after(kept_ms))

    def held(self, name: str) -> Topic:
        """The events of a feed that is held since its schema registry is away, until it has told
        them; then the topic goes."""
        assert name.startswith(f"{self.database}.feed."), name
        suffix = name.removeprefix(f"{self.database}.feed.")
        return self._topic(f"held.{suffix}", 1, _deleted_after(-1))

    @property
    def feed_transactions(self) -> Topic:
        """The begin and end of each transaction with events in feeds that take part."""
        return self._topic("feed.transaction", 1, _deleted_after(FEED_TRANSACTIONS_RETENTION_MS))

    @property
    def intake(self) -> Topic:
        """The places of intakes in the topics that they read, each written in the transaction of
        the requests that came of what is before it."""
        return self._topic("intake", 1, _read_whole())

    @property
    def activity(self) -> Topic:
        """What the database does, counted by the dashboard's Faust application for whoever
        subscribes: windows of a second on partition 0, of a minute on partition 1, in JSON. A
        window that is told again holds instead of the one before."""
        return self._topic("activity", 2, _deleted_after(ACTIVITY_RETENTION_MS))

    def activity_changelog(self, table: str) -> Topic:
        """What that application's windows have counted so far, so that a restart loses nothing:
        Faust's own form, for nobody else."""
        suffix = f"activity-{table}-changelog"
        if table == "jobs":  # of a job, for as long as it runs
            return self._topic(suffix, 1, _read_whole())
        windows = {
            "cleanup.policy": "compact,delete",
            "retention.ms": str(ACTIVITY_CHANGELOG_RETENTION_MS),
            # Only closed segments are cleaned: what is read at a start is an hour's at most.
            "segment.ms": str(_HOUR_MS // 4),
            "segment.bytes": str(SEGMENT_BYTES),
            "min.cleanable.dirty.ratio": "0.1",
        }
        return self._topic(suffix, 1, windows)

    def all_static(self) -> tuple[Topic, ...]:
        """Every topic that exists before the first table does; `rows` come and go with tables."""
        return (
            self.requests,
            self.backfill,
            self.log,
            self.acks,
            self.results,
            self.versions,
            self.versions_history,
            self.notices,
            self.jobs,
            self.conflicts,
            self.dead_letter,
            self.changefeed,
            self.audit,
            self.feeds,
            self.activity,
            *map(self.activity_changelog, ACTIVITY_TABLES),
        )

    @property
    def min_insync_replicas(self) -> int:
        """A majority of the replicas: an acknowledged record survives any minority of brokers."""
        return self.replication_factor // 2 + 1

    def _kept_until_deleted_by_offset(self, suffix: str) -> Topic:
        # Smaller segments than Kafka's 1 GiB: disk is freed by whole segments below the offset.
        config = {**_deleted_after(-1), "retention.bytes": "-1", "segment.bytes": str(128 << 20)}
        return self._topic(suffix, 1, config)

    def _topic(self, suffix: str, partitions: int, config: Mapping[str, str]) -> Topic:
        settings = {
            **config,
            "max.message.bytes": str(MESSAGE_BYTES_MAX),
            "min.insync.replicas": str(self.min_insync_replicas),
            # A replica that missed acknowledged records must never become leader (L2).
            "unclean.leader.election.enable": "false",
        }
        return Topic(f"{self.database}.{suffix}", partitions, MappingProxyType(settings))


def _deleted_after(retention_ms: int, retention_bytes: int = -1) -> dict[str, str]:
    """Return the settings of a topic of which old records go. -1: none for that reason."""
    config = {"cleanup.policy": "delete", "retention.ms": str(retention_ms)}
    if retention_bytes >= 0:
        config["retention.bytes"] = str(retention_bytes)
    if retention_ms >= 0:
        # Whole segments go, and never the one that is written to: of Kafka's, 1 GiB or a week,
        # there would be that much more than was asked for, in each partition.
        segment_ms = min(max(retention_ms // SEGMENTS_KEPT, SEGMENT_MS_MIN), SEGMENT_MS_MAX)
        config |= {"segment.ms": str(segment_ms), "segment.bytes": str(SEGMENT_BYTES)}
    return config


def _compacted() -> dict[str, str]:
    return {"cleanup.policy": "compact", "delete.retention.ms": str(TOMBSTONE_RETENTION_MS)}


def _read_whole() -> dict[str, str]:
    """Return the settings of a compacted topic that is read whole, by whoever begins or looks: in
    small segments, because only closed ones are compacted, and that often. ⚠ A broker refuses what
    is larger than a segment, whatever size of a message it takes else."""
    segments = {"segment.bytes": str(MESSAGE_BYTES_MAX), "segment.ms": str(_HOUR_MS)}
    return {**_compacted(), **segments, "min.cleanable.dirty.ratio": "0.1"}
