"""A node as a process: store, loop, signals, readiness; shared by master and replicant."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from ssl import SSLContext
from threading import Event as Flag
from threading import Thread
from typing import Final, Protocol

from leasehold.adapters.http.snapshot_server import CopiesUnderWay, SnapshotServer
from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.os.compiled import version_line
from leasehold.adapters.os.garbage import collect_seldom
from leasehold.adapters.os.readiness import announce_ready
from leasehold.adapters.sqlite.layout import sqlite_errors
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.errors import BusUnavailable, LeaseholdError
from leasehold.model.topics import Topics
from leasehold.node.bootstrap import bootstrap
from leasehold.node.kafka_node import BROKER_RETRY_S, KafkaNode
from leasehold.replication.node import NodeSettings
from leasehold.settings.environment import (
    ClusterSettings,
    KafkaSettings,
    RedisSettings,
    describe,
    from_environment,
)
from leasehold.settings.private_files import make_private_folder
from leasehold.settings.snapshot import SnapshotSettings, token_made_here

EXIT_STOPPED: Final = 1
EXIT_SETTINGS: Final = 2
LOG: Final = logging.getLogger("leasehold.process")


class Listener(Protocol):
    """What serves others from the node's store, in threads of its own."""

    def close(self) -> None: ...


Listen = Callable[[KafkaNode, SqliteStore], Listener]


def run_node(settings: NodeSettings, prepare: Callable[[], Listen | None] = lambda: None) -> int:
    """Run until SIGTERM or SIGINT; → the exit code. `settings.name` is replaced by LEASEHOLD_NODE.
    `prepare` reads settings of who listens beside the node, and begins when the node does.

    0: asked to stop, also while it waits for Kafka, within about a second. 1: the node can't go on,
    access to Kafka denied included; the last line says why and what to do. 2: settings.
    """
    logging.basicConfig(
        level=os.environ.get("LEASEHOLD_LOG_LEVEL", "INFO"),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    LOG.info("%s", version_line())
    try:
        cluster = from_environment(ClusterSettings, os.environ)
        kafka = from_environment(KafkaSettings, os.environ)
        redis = from_environment(RedisSettings, os.environ)
        snapshot = from_environment(SnapshotSettings, os.environ)
        for part in (cluster, kafka, redis, snapshot):
            LOG.info("%s", describe(part))
        topics = Topics(cluster.database, cluster.replication_factor)
        tls = snapshot.to_serve()
        make_private_folder(cluster.folder)
        if snapshot.token is None and ip_address(cluster.listen).is_loopback:
            snapshot = replace(snapshot, token=token_made_here(cluster.data))
        listen = prepare()
    except LeaseholdError as error:
        LOG.error("%s", error.message)
        return EXIT_SETTINGS
    stop = Flag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    path = cluster.folder / "store.db"
    try:
        with sqlite_errors(path):
            _bootstrap(path, cluster, topics, kafka, snapshot, stop)
            if stop.is_set():
                return 0
            store = SqliteStore(path, cache_mb=cluster.store_cache_mb)
    except LeaseholdError as error:
        return _ended_by(error)
    copies = CopiesUnderWay()
    server = _snapshot_server(path, cluster, snapshot, tls, copies)
    serves = ""
    if server is not None:
        serves = f"{cluster.advertise}:{server.address.rsplit(':', 1)[1]}"
    named = replace(settings, name=cluster.node, serves=serves)
    named = named.with_session_ttl(cluster.session_ttl_ms).with_history(
        cluster.history_ms, cluster.row_history_ms, cluster.dropped_ms
    )
    try:
        with sqlite_errors(path):
            node = KafkaNode(named, topics, kafka, redis, store)
            node.node.oldest_copy = copies.oldest
    except LeaseholdError as error:  # what the store holds can't be gone on from
        if server is not None:
            server.close()
        store.close()
        return _ended_by(error)
    sys.setswitchinterval(0.001)  # the ledger's thread waits for the loop no longer than that
    collect_seldom()
    announcer = Thread(target=_announce, args=(node, cluster, stop), name="ready", daemon=True)
    announcer.start()
    closer: Thread | None = None
    try:
        served = Flag()
        if listen is not None:
            # Its users leave first: the node then gives their leases back with its own.
            listener = listen(node, store)
            closer = Thread(target=_close, args=(stop, listener, served), name="close", daemon=True)
            closer.start()
        with sqlite_errors(path):
            node.run(stop if closer is None else served)
    except LeaseholdError as error:
        node.error = error
    finally:
        stop.set()
        if closer is not None:
            closer.join()
        if server is not None:
            server.close()
        store.close()
    return 0 if node.error is None else _ended_by(node.error)


def _ended_by(error: LeaseholdError) -> int:
    LOG.error("%s (%s)", error.message, error.sqlstate)
    return EXIT_STOPPED


def _close(stop: Flag, listener: Listener, closed: Flag) -> None:
    stop.wait()
    try:
        listener.close()
    finally:
        closed.set()


def _snapshot_server(
    path: Path,
    cluster: ClusterSettings,
    snapshot: SnapshotSettings,
    tls: SSLContext | None,
    copies: CopiesUnderWay,
) -> SnapshotServer | None:
    """Every row of the database is in a snapshot: it is for whoever knows the token, and without
    a token (nodes of several machines have to be given one) for nobody."""
    if snapshot.token is None:
        LOG.warning(
            "LEASEHOLD_LISTEN is %s and LEASEHOLD_SNAPSHOT_TOKEN is not set: this node hands out no"
            " snapshots",
            cluster.listen,
        )
        return None
    return SnapshotServer(
        path,
        token=snapshot.token,
        host=cluster.listen,
        port=snapshot.port,
        names=(cluster.advertise,),
        tls=tls,
        copies=copies,
    )


def _bootstrap(
    path: Path,
    cluster: ClusterSettings,
    topics: Topics,
    kafka: KafkaSettings,
    snapshot: SnapshotSettings,
    stop: Flag,
) -> None:
    """Waits for a broker that is away; anything else surfaces."""
    while not stop.is_set():
        try:
            bootstrap(path, cluster.node, topics, kafka, snapshot, stop.is_set)
            return
        except AccessDenied:
            raise
        except BusUnavailable as error:
            if not stop.is_set():
                LOG.warning("waiting for Kafka: %s", error.message)
                stop.wait(BROKER_RETRY_S)


def _announce(node: KafkaNode, cluster: ClusterSettings, stop: Flag) -> None:
    node.caught_up.wait()
    if not stop.is_set():
        announce_ready(cluster.ready_file)
