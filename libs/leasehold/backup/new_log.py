"""Gives a restored store a log of its own: the topics of a new database, whose log begins where the
store ends.

Nothing of the protocol is new here. The new log is one whose beginning was deleted, as that of any
database that has lived for a while: its first offset is above 0, the restored store stands exactly
there, and a node with an empty store finds that it needs a copy, and fetches one. The first master
claims the epoch behind the store's with the store's digest, so LSNs, genids, epochs and times go on
above what the backup has, and the outcomes of requests are those of the store.

What the changefeed publishes it would have published from the records that are gone. It is written
here instead, from the store: versions, jobs, an image of each row, and last the changefeed's place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final, NamedTuple

from leasehold.adapters.codec.published import feed_message, row_message
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.kafka.writer import BY_KEY, Headers, TopicWriter
from leasehold.adapters.os.clock import boottime_ns, random_bytes
from leasehold.adapters.redis.ledger import RedisLedger
from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.backup.told import NOBODY, Told
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.changefeed.pending_messages import VERSION_HEADERS
from leasehold.changefeed.read_back import POSITION_KEY
from leasehold.lease.commands import Snapshot
from leasehold.lease.replies import SnapshotReport
from leasehold.model.errors import BusUnavailable, ConfigurationError
from leasehold.model.ids import is_sequence_id
from leasehold.model.keys import INTEGER_MOST
from leasehold.model.records.events import RowImage
from leasehold.model.records.jobs import JobEvent
from leasehold.model.records.log import Barrier, Commit, DescriptorWrite, LogPosition
from leasehold.model.topics import Topics
from leasehold.replication.changefeed import job_key, version_event, version_key
from leasehold.settings.environment import KafkaSettings, RedisSettings

CLIENT_ID: Final = "leasehold-restore"
BASE_ID_BYTES: Final = 16
LINGER_MS: Final = 20
SENT_S: Final = 60.0
"""Longest wait for a broker that takes nothing."""
WAIT_S: Final = 0.1
TOLD_EVERY_ROWS: Final = 1_000
CODEC: Final = MessagePackCodec()


class _Message(NamedTuple):
    topic: str
    key: bytes
    value: bytes | None
    headers: Headers = ()


def position_in_new_log(position: LogPosition, offset: int) -> LogPosition:
    """Return a store's position in a log that begins at `offset`, where nothing was read yet: its
    queues are new ones, too, and no node of the new database was granted a lease."""
    return position._replace(
        offset=offset,
        answered_through=offset,
        decided_through={},
        queue_topics={},
        attempts=(),
        longest_grant_ms=0,
    )


def check_unused(kafka: KafkaSettings, redis: RedisSettings, topics: Topics) -> None:
    """Raise ConfigurationError where there is a database of that name, or something of one.
    BusUnavailable, LedgerUnavailable."""
    prefix = f"{topics.database}."
    with TopicAdmin(kafka, CLIENT_ID) as admin:
        there = sorted(name for name in admin.list_names(prefix) if name.startswith(prefix))
    if there:
        raise ConfigurationError(
            f"the database {topics.database} exists: Kafka has {len(there)} topics of it, such as"
            f" {there[0]}. Restore under another name; or, if it is to go, stop its processes and"
            " delete those topics first"
        )
    with closing(RedisLedger(redis, topics.database)) as ledger:
        report = ledger.call(Snapshot())
    if isinstance(report, SnapshotReport) and (report.epoch or report.tables or report.sessions):
        raise ConfigurationError(
            f"Redis still has leases of a database {topics.database}. Restore under another name;"
            " or, if no process of it runs any more, delete the keys that begin with"
            f" leasehold:{{{topics.database}}}: first"
        )


class NewLog:
    """The topics of a database that is being restored. `drop` undoes what was made."""

    def __init__(self, kafka: KafkaSettings, topics: Topics, told: Told = NOBODY) -> None:
        self._kafka = kafka
        self._topics = topics
        self._told = told
        self._admin = TopicAdmin(kafka, CLIENT_ID)
        self._made: list[str] = []

    def close(self) -> None:
        self._admin.close()

    def create(self) -> int:
        """Make the topics, and let the log begin above 0; return its first offset. Raises
        BusUnavailable, and ConfigurationError if somebody else makes them meanwhile."""
        static = self._topics.all_static()
        made = self._admin.create(static, self._topics.replication_factor)
        self._made.extend(made)
        if len(made) < len(static):
            raise ConfigurationError(
                f"somebody else makes topics of {self._topics.database} at this moment: restore"
                " under another name"
            )
        log = self._topics.log.name
        # ⚠ A barrier: should it ever be read, no release takes anything from it.
        base = CODEC.encode(Barrier(random_bytes(BASE_ID_BYTES)))
        writer = TopicWriter(self._kafka, CLIENT_ID, topic=log)
        try:
            writer.send(log, 0, None, base, token=log)
            (delivery,) = _delivered(writer)
        finally:
            writer.close(1.0)
        first: int = delivery + 1
        self._delete_below(log, first)
        return first

    def _delete_below(self, log: str, offset: int) -> None:
        future = self._admin.delete_below_soon(log, 0, offset, SENT_S)
        try:
            watermark = future.result(timeout=SENT_S).low_watermark
        except Exception as error:
            raise BusUnavailable(
                f"the beginning of {log} can't be deleted ({error}): it needs the right Delete"
            ) from error
        if watermark != offset:
            raise BusUnavailable(f"{log} begins at {watermark} where it has to begin at {offset}")

    def publish(self, snapshot: SqliteSnapshot, position: LogPosition) -> int:
        """Write what the changefeed would have published, and its place, which is `position`;
        return how many rows. Raises BusUnavailable."""
        tables = [table for table in snapshot.tables() if not is_sequence_id(table.table_id)]
        rows = [self._topics.rows(table.table_id) for table in tables if _has_rows(snapshot, table)]
        self._made.extend(self._admin.create(rows, self._topics.replication_factor))
        writer = TopicWriter(
            self._kafka, CLIENT_ID, linger_ms=LINGER_MS, compression="lz4", tells_all=False
        )
        sender = _Sender(writer)
        self._told.step("publishing versions and jobs")
        try:
            for message in self._catalog_messages(snapshot, position):
                sender.send(message)
            count = 0
            self._told.step("publishing rows")
            for table in tables:
                for message in self._row_messages(snapshot, table, position):
                    sender.send(message)
                    count += 1
                    if count % TOLD_EVERY_ROWS == 0:
                        self._told.add(TOLD_EVERY_ROWS)
            sender.flush()
            # ⚠ Last, when all else is there: it says that everything below it was published.
            changefeed = self._topics.changefeed.name
            sender.send(_Message(changefeed, POSITION_KEY, CODEC.encode(position)))
            sender.flush()
        finally:
            writer.close(1.0)
        return count

    def drop(self) -> None:
        """Delete the topics that were made. Raises BusUnavailable."""
        for name in self._made:
            self._admin.delete(name)
        self._made.clear()

    def _catalog_messages(
        self, snapshot: SqliteSnapshot, position: LogPosition
    ) -> Iterator[_Message]:
        catalog = Catalog.of_store(snapshot.stored_catalog())
        jobs = self._topics.jobs.name
        for job_id, job in sorted(catalog.jobs.items()):
            event = JobEvent(job_id, position.lsn, position.commit_us, job.to_wire())
            yield _Message(jobs, job_key(job_id), feed_message(job_key(job_id), event))
        versions = [
            version
            for each in snapshot.all_versions()
            for version in each
            if not is_sequence_id(version.table_id)
        ]
        for version in sorted(versions, key=lambda v: (v.since_lsn, v.table_id, v.version)):
            write = DescriptorWrite(version.table_id, version.version, version.to_wire())
            commit = Commit(b"", 0, version.modified_us, {}, (), 0)
            told = version_event(write, commit, version.since_lsn, catalog.jobs.values())
            key = version_key(version.table_id)
            value = feed_message(key, told)
            for topic in (self._topics.versions, self._topics.versions_history):
                yield _Message(topic.name, key, value, VERSION_HEADERS)

    def _row_messages(
        self, snapshot: SqliteSnapshot, table: Descriptor, position: LogPosition
    ) -> Iterator[_Message]:
        """Yield an image of each row. Its time is that of the restored position: the store does not
        know when a row was written, only at which LSN."""
        topic, commit_us = self._topics.rows(table.table_id).name, position.commit_us
        about = table.table_id, table.version
        for key, row in snapshot.scan(table, None, None, rows_max=INTEGER_MOST):
            image = RowImage(about[0], key, row.genids, row.lsn, about[1], commit_us, row.values)
            message = row_message(key, image)
            if message is not None:
                yield _Message(topic, *message)


class _Sender:
    """Sends messages as fast as the broker takes them."""

    def __init__(self, writer: TopicWriter) -> None:
        self._writer = writer

    def send(self, message: _Message) -> None:
        """Queue a message, where there is room for it. Raises BusUnavailable."""
        give_up_ns = boottime_ns() + int(SENT_S * 1e9)
        topic, key, value, headers = message
        while True:
            try:
                self._writer.send(topic, BY_KEY, key, value, headers)
                return
            except BusUnavailable:
                if boottime_ns() > give_up_ns:
                    raise
                self._tell(WAIT_S)

    def flush(self) -> None:
        """Wait until all is in the topics. Raises BusUnavailable."""
        left = self._writer.flush(SENT_S)
        self._tell(0)
        if left:
            raise BusUnavailable(f"Kafka did not take {left:,} messages in {SENT_S:g} s")

    def _tell(self, timeout_s: float) -> None:
        for delivery in self._writer.deliveries(timeout_s):
            if delivery.error is not None:
                raise BusUnavailable(
                    f"a message for {delivery.topic} was not taken: {delivery.error}"
                )


def _delivered(writer: TopicWriter) -> Iterator[int]:
    """Yield the offset of the one record that was sent. Raises BusUnavailable."""
    give_up_ns = boottime_ns() + int(SENT_S * 1e9)
    while boottime_ns() < give_up_ns:
        for delivery in writer.deliveries(WAIT_S):
            if delivery.error is not None:
                raise BusUnavailable(f"{delivery.topic} takes no record: {delivery.error}")
            yield delivery.offset
            return
    raise BusUnavailable(f"Kafka did not take a record in {SENT_S:g} s")


def _has_rows(snapshot: SqliteSnapshot, table: Descriptor) -> bool:
    return next(iter(snapshot.scan(table, None, None, rows_max=1)), None) is not None
