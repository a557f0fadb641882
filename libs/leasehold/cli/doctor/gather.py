"""Gathers the facts for `leasehold doctor`: each part on a thread of its own, within one time. A
part that is away, or hangs, is told as such, and keeps no other from being looked at."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Final

from leasehold import __version__
from leasehold.adapters.kafka.cluster_look import KafkaSeen, TopicLooker, rows_topics
from leasehold.adapters.kafka.topic_span import TopicSpan, read_spans
from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.adapters.redis.server_look import look_at_redis
from leasehold.admin.report import report
from leasehold.admin.upgrade_report import live_processes
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.cli.doctor.facts import ClusterSeen, Facts, FolderSeen, NodeClock, SettingsSeen
from leasehold.cli.doctor.finding import Unseen
from leasehold.model.errors import BusUnavailable, LeaseholdError
from leasehold.model.process_rights import ProcessKind
from leasehold.replication.disk_room import TOLD_EVERY_S
from leasehold.settings.client import ClientSettings

TIMEOUT_S: Final = 20.0
FIRST_LOOK_SHARE: Final = 0.6
"""Of the time, for reading the topics to their ends; then nodes are listened to."""
LISTEN_S: Final = TOLD_EVERY_S + 1.0
ENDS_S: Final = 2.0
"""What closing a client may take, beyond the time."""
KAFKA_TO_DO: Final = "is Kafka running (make up), and is LEASEHOLD_KAFKA right?"
REDIS_TO_DO: Final = "is Redis running (make up), and is LEASEHOLD_REDIS right?"


def gather(
    settings: ClientSettings, seen: SettingsSeen, kind: ProcessKind, timeout_s: float
) -> Facts:
    """Return all facts that can be had in that time, or little more."""
    parts = ask_parts(
        {
            "kafka": lambda: look_at_kafka(settings, timeout_s),
            "redis": lambda: look_at_redis(settings.redis, min(timeout_s, 5.0)),
            "cluster": lambda: look_at_cluster(settings, timeout_s),
            "folder": lambda: look_at_folder(settings),
        },
        {"kafka": KAFKA_TO_DO, "redis": REDIS_TO_DO, "cluster": KAFKA_TO_DO},
        timeout_s + ENDS_S,
    )
    return Facts(
        now_us=unix_us(),
        topics=settings.topics,
        settings=seen,
        kind=kind,
        release=__version__,
        log_budget_bytes=settings.cluster.log_budget_bytes,
        sentinels=len(settings.redis.sentinels),
        **parts,
    )


def ask_parts(
    parts: Mapping[str, Callable[[], Any]], to_do: Mapping[str, str], timeout_s: float
) -> dict[str, Any]:
    """Return what each part answers, all asked at once; Unseen for one that raises LeaseholdError
    or has not answered in time. A thread that hangs ends with the process."""
    found: dict[str, Any] = {}
    lock = threading.Lock()

    def ask(name: str, part: Callable[[], Any]) -> None:
        try:
            answer = part()
        except LeaseholdError as error:
            answer = Unseen(error.message, to_do.get(name, ""))
        except Exception as error:  # noqa: BLE001 - a defect in one part must not hide the others
            words = f"looking at {name} failed ({type(error).__name__}: {error})"
            answer = Unseen(words, "this is a defect of the command: report it")
        with lock:
            found[name] = answer

    threads = [
        threading.Thread(target=ask, args=each, name=f"doctor-{each[0]}", daemon=True)
        for each in parts.items()
    ]
    for thread in threads:
        thread.start()
    until_ns = boottime_ns() + int(timeout_s * 1e9)
    for thread in threads:
        thread.join(max(0.0, (until_ns - boottime_ns()) / 1e9))
    with lock:
        late = Unseen(f"no answer in {timeout_s:g} s", "give it more time: --timeout SECONDS")
        return {name: found.get(name, late) for name in parts}


def look_at_kafka(settings: ClientSettings, timeout_s: float) -> KafkaSeen:
    """Return what Kafka says of the topics. Raises BusUnavailable."""
    topics = settings.topics
    log = topics.log.name
    with closing(TopicLooker(settings.kafka, timeout_s)) as looker:
        brokers = looker.brokers(log)
        static = [topic.name for topic in topics.all_static()]
        names = [*static, *(each.name for each in rows_topics(topics, looker.names(log)))]
        seen = looker.topics(names)
        letters = topics.dead_letter.name
        there = not (seen[letters].missing or seen[letters].denied)
        letter_us = looker.newest_us(letters) if there else None
    wanted = [
        topic.name
        for topic in (topics.log, topics.requests, topics.backfill)
        if not (seen[topic.name].missing or seen[topic.name].denied)
    ]
    return KafkaSeen(brokers, seen, _spans(settings, wanted, timeout_s), letter_us)


def _spans(settings: ClientSettings, names: list[str], timeout_s: float) -> dict[str, TopicSpan]:
    """Return the spans of those topics that this client may read."""
    found: dict[str, TopicSpan] = {}
    for name in names:
        try:
            found |= read_spans(settings.kafka, [name], timeout_s / 4)
        except LeaseholdError:
            continue  # `rights` says of which it may not, `replicas` of which nobody leads
    return found


def look_at_cluster(settings: ClientSettings, timeout_s: float) -> ClusterSeen:
    """Return what topics and ledger tell, and what nodes say while it is looked at. Raises
    BusUnavailable."""
    with ClusterWatch(settings, brief=True) as watch:
        view = watch.first_look(timeout_s * FIRST_LOOK_SHARE)
        why = view.unreachable.get("kafka")
        if why is not None:
            raise BusUnavailable(why)
        listener = NodeListener(view, unix_us)
        watch.wait_for(listener.has_heard, min(LISTEN_S, timeout_s * (1 - FIRST_LOOK_SHARE)))
        view = watch.view
        if view.not_read:
            raise BusUnavailable(
                f"what stands on the topics is not known in {timeout_s:g} s:"
                f" {'; '.join(view.gaps(unix_us()))}"
            )
        told = report(view, unix_us(), tables_max=0)
    releases = {each.process: each.release for each in live_processes(view, unix_us())}
    return ClusterSeen(told, dict(view.node_reports), listener.clocks(), releases)


class NodeListener:
    """Listens to nodes: when a word of one comes, how far its clock is from this host's, and
    whether all have told of themselves that live."""

    def __init__(self, view: ClusterView, clock_us: Callable[[], int]) -> None:
        """Begin. What `view` has may have come long ago."""
        self._clock_us = clock_us
        self._known = {name: node.ack.sent_us for name, node in view.nodes.items()}
        self._ahead_us: dict[str, int] = {}

    def has_heard(self, view: ClusterView) -> bool:
        """Take what has come; return whether nothing more is to be waited for."""
        now_us = self._clock_us()
        for name, node in view.nodes.items():
            sent_us = node.ack.sent_us
            if sent_us != self._known.get(name):
                self._known[name] = sent_us
                ahead_us = sent_us - now_us
                # Of several words the one that was least on its way tells best.
                self._ahead_us[name] = max(ahead_us, self._ahead_us.get(name, ahead_us))
        alive = {name for name, node in view.nodes.items() if not view.is_silent(node, now_us)}
        return alive <= self._ahead_us.keys() and alive <= view.node_reports.keys()

    def clocks(self) -> tuple[NodeClock, ...]:
        """Return the clocks of all that have said something since."""
        return tuple(NodeClock(*each) for each in sorted(self._ahead_us.items()))


def look_at_folder(settings: ClientSettings) -> FolderSeen:
    """Return the room of the data folder on this host, none of none where there is no folder: this
    may be a host without nodes."""
    folder = settings.cluster.data
    try:
        disk = os.statvfs(folder)
    except OSError:
        return FolderSeen(str(folder), 0, 0)
    return FolderSeen(str(folder), disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize)
