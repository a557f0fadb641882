"""A node as a process: store, loop, listeners, readiness; shared by master and replicant."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from ssl import SSLContext
from threading import Event as Flag
from threading import Thread
from typing import Final, NamedTuple, Protocol

from leasehold import __version__
from leasehold.adapters.audit.file import AuditFile
from leasehold.adapters.audit.topic import AuditTopic
from leasehold.adapters.audit.writer import AuditPlace, AuditWriter
from leasehold.adapters.http.copies import CopiesUnderWay
from leasehold.adapters.http.renewed_tls import RenewedTls
from leasehold.adapters.http.snapshot_server import SnapshotServer
from leasehold.adapters.metrics.exposition import Exposition
from leasehold.adapters.metrics.health import STOPPING
from leasehold.adapters.metrics.server import serve_metrics
from leasehold.adapters.os.garbage import collect_seldom
from leasehold.adapters.os.log_lines import set_context
from leasehold.adapters.os.readiness import announce_ready
from leasehold.adapters.redis.server_look import refuse_cluster
from leasehold.adapters.service_process import Environment, run_service
from leasehold.adapters.sqlite.layout import sqlite_errors
from leasehold.adapters.sqlite.statement_memory import TEMP_FOLDER, statement_memory
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.adapters.tracing.spans import open_spans
from leasehold.model.audit import NotAudited
from leasehold.model.errors import ConfigurationError
from leasehold.model.measures import Sample
from leasehold.model.signatures import OPEN, Verifier
from leasehold.model.topics import Topics
from leasehold.node.bootstrap import bootstrap
from leasehold.node.broker_wait import once_there
from leasehold.node.disk_watch import await_room
from leasehold.node.durability_check import begin_durability_check
from leasehold.node.kafka_node import KafkaNode
from leasehold.replication.node_settings import NodeSettings
from leasehold.settings.audit import MB, AuditSettings
from leasehold.settings.environment import (
    ClusterSettings,
    KafkaSettings,
    RedisSettings,
    from_environment,
)
from leasehold.settings.private_files import make_node_folder
from leasehold.settings.replica import ReplicaSettings
from leasehold.settings.request_key import RequestKeySettings
from leasehold.settings.snapshot import SnapshotSettings, token_made_here
from leasehold.settings.traces import TraceSettings

LOG: Final = logging.getLogger("leasehold.process")
PATIENCE_S: Final = 120.0
"""Longest that a turn takes: one record is applied, or decided, in it."""
BELIEVES_ALL: Final = (
    "open: it believes every change request, whoever sends it, as LEASEHOLD_REQUEST_KEY is not set:"
    " who may write to the topic of requests may do all"
)


class Silent(NotAudited):
    def close(self) -> None: ...


class Listener(Protocol):
    """What serves others from the node's store, in threads of its own."""

    def close(self) -> None: ...

    def samples(self) -> Iterable[Sample]:
        """Return what a scrape is told of it."""
        ...


Listen = Callable[[KafkaNode, SqliteStore], Listener]


class Prepared(NamedTuple):
    """A listener beside a node: its settings, and what begins when the node does, if anything."""

    settings: object
    listen: Listen | None
    open_to: str = ""
    """Who is let in without being asked, for whoever looks at the node."""


Prepare = Callable[[Environment], Prepared]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProcessSettings:
    """What a node reads from its environment, and what follows from that. `tls`: with which it
    serves snapshots. `verifier`: of who may become master."""

    cluster: ClusterSettings
    kafka: KafkaSettings
    redis: RedisSettings
    snapshot: SnapshotSettings
    requests: RequestKeySettings
    verifier: Verifier
    audit: AuditSettings
    traces: TraceSettings
    replica: ReplicaSettings
    beside: tuple[Prepared, ...]
    topics: Topics
    tls: SSLContext | None

    @property
    def groups(self) -> Sequence[object]:
        own: tuple[object, ...] = (self.cluster, self.kafka, self.redis, self.snapshot)
        own = (*own, self.requests, self.audit, self.traces, self.replica)
        return (*own, *(each.settings for each in self.beside))


def run_node(settings: NodeSettings, *prepares: Prepare) -> int:
    """Run until SIGTERM or SIGINT, also while it waits for Kafka; the exit code, as `run_service`
    says it. `settings.name` is replaced by LEASEHOLD_NODE. `prepares` read settings of those who
    listen beside the node."""
    return run_service(LOG.name, partial(_read, prepares, settings), partial(_run, settings))


def _read(
    prepares: Sequence[Prepare], node: NodeSettings, environ: Environment
) -> NodeProcessSettings:
    """Read the settings, and make the node's folder."""
    cluster = from_environment(ClusterSettings, environ)
    kafka = from_environment(KafkaSettings, environ)
    redis = from_environment(RedisSettings, environ)
    snapshot = from_environment(SnapshotSettings, environ)
    requests = from_environment(RequestKeySettings, environ)
    topics = Topics(cluster.database, cluster.replication_factor)
    tls = snapshot.served.context()
    snapshot.check_served_on(cluster.listen)
    make_node_folder(cluster.folder)
    if snapshot.token is None and ip_address(cluster.listen).is_loopback:
        snapshot = replace(snapshot, token=token_made_here(cluster.data))
    return NodeProcessSettings(
        cluster=cluster,
        kafka=kafka,
        redis=redis,
        snapshot=snapshot,
        requests=requests,
        verifier=requests.verifier(cluster.database) if node.candidate else OPEN,
        audit=from_environment(AuditSettings, environ),
        traces=from_environment(TraceSettings, environ),
        replica=_replica(node, environ),
        beside=tuple(prepare(environ) for prepare in prepares),
        topics=topics,
        tls=tls,
    )


def _replica(node: NodeSettings, environ: Environment) -> ReplicaSettings:
    """Return what the node is to hold. Raises ConfigurationError for one that may become master."""
    replica = from_environment(ReplicaSettings, environ)
    if node.candidate and not replica.wish.is_everything:
        raise ConfigurationError(
            "LEASEHOLD_REPLICA_TABLES and LEASEHOLD_REPLICA_WHERE are for replicants: a node that"
            " may become master holds everything"
        )
    return replica


def _run(node_settings: NodeSettings, settings: NodeProcessSettings, stop: Flag) -> None:
    cluster = settings.cluster
    path = cluster.folder / "store.db"
    with ExitStack() as made:
        exposition = made.enter_context(serve_metrics(cluster))
        service = "leasehold-master" if node_settings.candidate else "leasehold-replicant"
        traced = open_spans(settings.traces, service, cluster.node, cluster.database)
        spans = made.enter_context(traced)
        exposition.add("traces", spans.samples)
        with sqlite_errors(path):
            topics, kafka, snapshot = settings.topics, settings.kafka, settings.snapshot
            await_room(path, cluster.disk_reserve_bytes, stop)
            wish = settings.replica.wish
            args = (path, cluster.node, topics, kafka, snapshot, stop.is_set, wish)
            begin = partial(bootstrap, *args)
            refuse_cluster(settings.redis)
            once_there(begin, stop)
            if stop.is_set():
                return
            if node_settings.candidate:
                begin_durability_check(topics, kafka, settings.redis)
            memory = statement_memory(cluster.folder / TEMP_FOLDER, cluster)
            store = SqliteStore(path, cache_mb=cluster.store_cache_mb, memory=memory)
        made.callback(store.close)
        copies = CopiesUnderWay()
        renewed = RenewedTls(settings.snapshot.served, settings.tls)
        made.callback(renewed.close)
        server = None
        if store.part.is_whole:  # who takes a copy wants everything, or chooses from that
            server = _snapshot_server(path, cluster, settings.snapshot, renewed.context, copies)
        else:
            LOG.info("this replicant holds only %s", store.part.words())
        serves = ""
        if server is not None:
            made.callback(server.close)
            serves = f"{cluster.advertise}:{server.address.rsplit(':', 1)[1]}"
        open_to = "; ".join(each.open_to for each in settings.beside if each.open_to)
        if node_settings.candidate and settings.verifier.is_open:
            open_to = BELIEVES_ALL
            LOG.warning("%s", open_to)
        named = replace(node_settings, name=cluster.node, serves=serves, open_to=open_to)
        named = replace(named, release=__version__, disk_reserve_bytes=cluster.disk_reserve_bytes)
        named = named.with_session_ttl(cluster.session_ttl_ms).with_history(
            cluster.history_ms, cluster.row_history_ms, cluster.dropped_ms
        )
        named = named.with_column_images(cluster.column_images == "on")
        named = named.with_ledger_failover(bool(settings.redis.sentinels))
        named = replace(named, master=replace(named.master, verifier=settings.verifier))
        with sqlite_errors(path):
            audit = _audit_log(settings)
            made.callback(audit.close)
            node = KafkaNode(
                named, settings.topics, settings.kafka, settings.redis, store, audit, path, spans
            )
            node.node.acknowledger.copies = copies.by_taker
            set_context(partial(_log_context, node, cluster))
            exposition.add("store", store.measures.samples)
            made.callback(exposition.remove, "store")
            exposition.add("node", node.samples)
            exposition.health.watch(PATIENCE_S, lambda: node.turned_ns)
            exposition.health.ready_when(
                lambda: STOPPING if stop.is_set() else node.why_not_ready()
            )
            made.callback(exposition.remove, "node")
            _serve(node, store, settings, exposition, stop)
        if node.error is not None:
            raise node.error


def _serve(
    node: KafkaNode,
    store: SqliteStore,
    settings: NodeProcessSettings,
    exposition: Exposition,
    stop: Flag,
) -> None:
    """Run the node, and who listens beside it, until `stop` or the node's end."""
    sys.setswitchinterval(0.001)  # the ledger's thread waits for the loop no longer than that
    collect_seldom()
    args = (node, settings.cluster, stop)
    Thread(target=_announce, args=args, name="ready", daemon=True).start()
    closer: Thread | None = None
    try:
        served = Flag()
        # Their users leave first: the node then gives their leases back with its own.
        listeners: list[Listener] = []
        for each in settings.beside:
            if each.listen is not None:
                listeners.append(each.listen(node, store))
                exposition.add(f"clients {len(listeners)}", listeners[-1].samples)
        if listeners:
            args_of_close = (stop, listeners, served)
            closer = Thread(target=_close, args=args_of_close, name="close", daemon=True)
            closer.start()
        node.run(stop if closer is None else served)
    finally:
        stop.set()
        if closer is not None:
            closer.join()


def _log_context(node: KafkaNode, cluster: ClusterSettings) -> dict[str, object]:
    """Return what each line of the log names: from any thread."""
    position = node.node.position
    return {
        "node": cluster.node,
        "database": cluster.database,
        "role": node.node.role,
        "epoch": position.epoch,
        "lsn": position.lsn,
    }


def _close(stop: Flag, listeners: Sequence[Listener], closed: Flag) -> None:
    stop.wait()
    try:
        for listener in listeners:
            listener.close()
    finally:
        closed.set()


def _audit_log(settings: NodeProcessSettings) -> AuditWriter | Silent:
    """Return where the node's events go, to be closed when it has ended. Raises
    ConfigurationError."""
    wanted, node = settings.audit, settings.cluster.node
    places: list[AuditPlace] = []
    if wanted.file is not None:
        places.append(AuditFile(wanted.file, wanted.file_mb * MB))
    if wanted.topic == "on":
        places.append(AuditTopic(settings.kafka, settings.topics.audit.name, node))
    if not places:
        return Silent()
    return AuditWriter(node, places, required=wanted.required == "on")


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
        certificate=snapshot.served.certificate(),
        copies=copies,
    )


def _announce(node: KafkaNode, cluster: ClusterSettings, stop: Flag) -> None:
    node.caught_up.wait()
    if not stop.is_set():
        announce_ready(cluster.ready_file)
