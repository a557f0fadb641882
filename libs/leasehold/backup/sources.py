"""Whence a backup comes: a store's copy from a file or a node, and the log from Kafka."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from leasehold.adapters.http.snapshot_fetch import fetch_snapshot
from leasehold.adapters.http.snapshot_server import SNAPSHOT_PATH, copy_store
from leasehold.adapters.kafka.log_identity import log_offsets
from leasehold.adapters.kafka.reader import TO_THE_END_MS, TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.closing import Closing
from leasehold.model.errors import BusUnavailable, ConfigurationError, SnapshotUnavailable
from leasehold.model.records.log import LogPosition
from leasehold.model.topics import Topics
from leasehold.node.bootstrap import serving_nodes
from leasehold.settings.environment import KafkaSettings
from leasehold.settings.snapshot import SnapshotSettings, token_kept_here

CLIENT_ID: Final = "leasehold-backup"
RECORDS_PER_READ_MAX: Final = 1_000
READ_SLICE_S: Final = 0.1
READ_STALL_S: Final = 30.0
MASTER: Final = "master"
LOG: Final = logging.getLogger("leasehold.backup")


class Source(Protocol):
    """Whence a store's copy comes."""

    def copy_to(self, path: Path) -> str:
        """Put a copy of one commit in the place of `path`; return whose it is."""
        ...


@dataclass(frozen=True, slots=True)
class FileSource:
    """The store in a file beside its node, which goes on meanwhile."""

    path: Path

    def copy_to(self, path: Path) -> str:
        """Copy it. Raises ConfigurationError where there is no store, StoreCorrupted."""
        if not self.path.is_file():
            raise ConfigurationError(f"{self.path} is not there: name the store.db of a node")
        copy_store(self.path, path)
        return str(self.path.name)


@dataclass(frozen=True, slots=True)
class NodeSource:
    """A node that serves snapshots: a replicant rather than the master. `data`: where the token of
    this machine's nodes lies, if the settings have none."""

    kafka: KafkaSettings
    topics: Topics
    snapshot: SnapshotSettings
    data: Path
    node: str = ""
    """The one to ask; "" = any."""

    def copy_to(self, path: Path) -> str:
        """Fetch a copy. Raises SnapshotUnavailable, BusUnavailable, ConfigurationError."""
        token = self.snapshot.token or token_kept_here(self.data)
        if token is None:
            raise ConfigurationError(
                "LEASEHOLD_SNAPSHOT_TOKEN is not set, so no node can be asked for its store: set it"
                " as for the nodes, or name a store's file with --store"
            )
        reader = TopicReader(self.kafka, CLIENT_ID)
        try:
            nodes = serving_nodes(reader, self.topics, "")
        finally:
            reader.close()
        wanted = [ack for ack in nodes if self.node in ("", ack.node)]
        wanted.sort(key=lambda ack: ack.role == MASTER)  # stable: the furthest ahead first
        tls = self.snapshot.to_fetch()
        scheme = "http" if tls is None else "https"
        why = []
        for ack in wanted:
            url = f"{scheme}://{ack.serves}{SNAPSHOT_PATH}"
            try:
                fetch_snapshot(url, path, token=token, node=CLIENT_ID, tls=tls)
            except SnapshotUnavailable as error:
                LOG.warning("could not fetch a snapshot from %s: %s", ack.node, error.message)
                why.append(f"{ack.node}: {error.message}")
            else:
                return ack.node
        heard = "; ".join(why) or f"no node{f' {self.node}' if self.node else ''} serves one now"
        raise SnapshotUnavailable(
            f"no copy of a store could be had ({heard}): start a replicant with"
            " LEASEHOLD_SNAPSHOT_TOKEN, or name a store's file with --store"
        )


class LogSource(Protocol):
    """Whence records of the log come."""

    @property
    def name(self) -> str: ...

    def end_behind(self, position: LogPosition) -> int:
        """Return where the log ends now. Raises LogStopped unless a reader at `position` may go on
        in it."""
        ...

    def records(self, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield offset and bytes of the records there."""
        ...


class KafkaLog(Closing):
    """The log of a database on Kafka. Its methods raise BusUnavailable."""

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        self.name = topics.log.name
        self._reader = TopicReader(kafka, CLIENT_ID, fetch_wait_ms=TO_THE_END_MS)

    def close(self) -> None:
        self._reader.close()

    def end_behind(self, position: LogPosition) -> int:
        return log_offsets(self._reader, self.name, position)[1]

    def records(self, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
        reader, log = self._reader, self.name
        reader.start(log, 0, begin)
        give_up_ns = boottime_ns() + int(READ_STALL_S * 1e9)
        while reader.next_offset(log, 0) < end:
            found = reader.read(RECORDS_PER_READ_MAX, READ_SLICE_S)
            for record in found:
                if record.offset < end:
                    yield record.offset, record.value or b""
            if found:
                give_up_ns = boottime_ns() + int(READ_STALL_S * 1e9)
            elif boottime_ns() > give_up_ns:
                raise BusUnavailable(
                    f"Kafka did not deliver offset {reader.next_offset(log, 0)} of {log} in"
                    f" {READ_STALL_S:g} s"
                )
