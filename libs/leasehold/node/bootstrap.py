"""How a node's store begins: from what it has, from the log, or from another node's snapshot.

A snapshot is taken when the log no longer has what the store needs next, and when reading a long
log from its beginning would take longer than copying. Nodes say in their acks where they serve one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.http.snapshot_fetch import fetch_snapshot
from leasehold.adapters.http.snapshot_server import SNAPSHOT_PATH
from leasehold.adapters.kafka.log_identity import log_offsets
from leasehold.adapters.kafka.reader import Record, TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.sqlite.catalog import read_position
from leasehold.adapters.sqlite.layout import WriterLock, connect, has_tables, read_part
from leasehold.catalog.part import WHOLE, Part, PartWish
from leasehold.model.errors import LogStopped, MalformedRequest, SnapshotUnavailable
from leasehold.model.records.acks import Ack
from leasehold.model.records.log import LogPosition
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings
from leasehold.settings.private_files import SIDE_FILES
from leasehold.settings.snapshot import SnapshotSettings

LOG: Final = logging.getLogger("leasehold.bootstrap")
BEHIND_RECORDS_MAX: Final = 5_000
"""A store further behind than this takes a snapshot if there is one, since a record is a batch."""
EMPTY_BEHIND_RECORDS_MAX: Final = 100
"""The same for an empty store: it has nothing to lose, a record may hold thousands of rows, and
a log holds again what a snapshot has once."""
ACKS_LOOKED_AT: Final = 2_000
LISTEN_S: Final = 1.0
"""How long is listened who is there: each node acknowledges five times a second."""
LISTEN_ON_S: Final = 0.25
"""How long once one is heard that serves a snapshot: by then the others that live have spoken."""
READ_SLICE_S: Final = 0.2
CACHE_MB: Final = 4
EVERYTHING: Final = PartWish()
CODEC: Final = MessagePackCodec()


def bootstrap(
    path: Path,
    node: str,
    topics: Topics,
    kafka: KafkaSettings,
    snapshot: SnapshotSettings,
    give_up: Callable[[], bool] = lambda: False,
    wish: PartWish = EVERYTHING,
) -> None:
    """Bring the store file `path` to where the log can take it further, with what is wished for in
    it. One that holds anything else is replaced: by a copy, or, of what is to hold everything, by
    what the log still has.

    Raises LogStopped when the log no longer reaches back to it and nobody serves a snapshot, or
    when it is another log than the store's; BusUnavailable when Kafka can't be reached, or when
    `give_up()` while it is waited for, and ConfigurationError for TLS files that can't be used, or
    for tables that can't be held; SnapshotUnavailable when a partial replica finds nobody to begin
    from.
    """
    log = topics.log.name
    reader = TopicReader(kafka, f"leasehold-{node}-bootstrap", give_up=give_up)
    try:
        first, end = reader.offsets(log, 0)
        fits = wish.is_met_by(stored_part(path))
        stored = stored_position(path)
        position = stored if fits else LogPosition()
        cut_off = position.offset < first
        if not cut_off and fits and not is_far_behind(position, end):
            return
        if stored.offset >= first:
            log_offsets(reader, log, stored)  # a store of another log is not to be replaced
        tls, token = snapshot.to_fetch(), snapshot.token
        scheme = "http" if tls is None else "https"
        for peer in serving_nodes(reader, topics, node):
            url = f"{scheme}://{peer.serves}{SNAPSHOT_PATH}"
            try:
                if token is None:
                    raise SnapshotUnavailable(
                        "LEASEHOLD_SNAPSHOT_TOKEN is not set, so this node can't prove that it may"
                        " have one"
                    )
                taken = fetch_snapshot(url, path, token=token, node=node, tls=tls, wish=wish)
            except SnapshotUnavailable as error:
                LOG.warning("could not fetch a snapshot from %s: %s", peer.node, error.message)
                continue
            what = "" if wish.is_everything else f" with {stored_part(path).words()}"
            size = path.stat().st_size
            LOG.info("snapshot of %s at LSN %d taken: %d bytes%s", peer.node, taken.lsn, size, what)
            return
    finally:
        reader.close()
    if not wish.is_everything and not (fits and not cut_off):
        raise SnapshotUnavailable(
            f"a replica that is to hold only {', '.join(wish.tables)} begins with a copy from"
            " another node, and none serves a snapshot now (LEASEHOLD_SNAPSHOT_TOKEN is the same"
            " on all nodes?); start one, then this replica again"
        )
    if cut_off:
        raise LogStopped(
            f"the log begins at offset {first}, this store ends at {position.offset}, and no node"
            " serves a snapshot now; start a replicant that has the data, then this node again"
        )
    if not fits:
        LOG.info("%s holds a part, and is to hold everything: it is made anew of the log", path)
        lock = WriterLock(path)
        try:
            for side in ("", *SIDE_FILES):
                path.with_name(path.name + side).unlink(missing_ok=True)
        finally:
            lock.close()


def is_far_behind(position: LogPosition, end: int) -> bool:
    """Whether a copy is quicker than the log's records up to `end`."""
    behind_max = BEHIND_RECORDS_MAX if position.offset else EMPTY_BEHIND_RECORDS_MAX
    return end - position.offset > behind_max


def stored_position(path: Path) -> LogPosition:
    """Return the position of the store file, or of an empty one when there is none, or when its
    making broke off: a full disk, or a kill, leaves a file without a table, which the writer makes
    into a store."""
    if not path.exists():
        return LogPosition()
    connection = connect(path, cache_mb=CACHE_MB, read_only=True)
    try:
        return read_position(connection) if has_tables(connection) else LogPosition()
    finally:
        connection.close()


def stored_part(path: Path) -> Part:
    """Return what the store file holds: of one that is not there yet it is everything."""
    if not path.exists():
        return WHOLE
    connection = connect(path, cache_mb=CACHE_MB, read_only=True)
    try:
        return read_part(connection)
    finally:
        connection.close()


def serving_nodes(reader: TopicReader, topics: Topics, node: str) -> list[Ack]:
    """Return nodes that serve snapshots: those that are heard now, the furthest ahead first, then
    those that were heard lately. What an acknowledgement says of its time is no help: it is by the
    clock of another machine."""
    acks = topics.acks.name
    end = reader.end_offset(acks, 0)
    reader.start(acks, 0, max(reader.first_offset(acks, 0), end - ACKS_LOOKED_AT))
    before: dict[str, Ack] = {}
    now: dict[str, Ack] = {}
    until_ns = boottime_ns() + int(LISTEN_S * 1e9)
    while reader.next_offset(acks, 0) < end or boottime_ns() < until_ns:
        left_s = max(0.0, (until_ns - boottime_ns()) / 1e9)
        records = reader.read(ACKS_LOOKED_AT, min(READ_SLICE_S, left_s) or READ_SLICE_S)
        if not records and boottime_ns() >= until_ns:
            break
        for record in records:
            ack = _ack_of(record)
            if ack is not None and ack.node != node:
                heard = before if record.offset < end else now
                heard[ack.node] = ack
                if heard is now and ack.serves:
                    until_ns = min(until_ns, boottime_ns() + int(LISTEN_ON_S * 1e9))
    lately = [ack for name, ack in before.items() if name not in now]
    return [*_serving(now.values()), *_serving(lately)]


def _ack_of(record: Record) -> Ack | None:
    try:
        ack = CODEC.decode(record.value or b"")
    except MalformedRequest:
        return None
    return ack if isinstance(ack, Ack) else None


def _serving(acks: Iterable[Ack]) -> list[Ack]:
    return sorted((ack for ack in acks if ack.serves), key=lambda ack: ack.lsn, reverse=True)
