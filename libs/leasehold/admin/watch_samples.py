"""What somebody who watches the whole database tells when his process is scraped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from leasehold.adapters.os.clock import unix_us
from leasehold.admin.job_report import running_jobs_report
from leasehold.admin.report import ledger_report, node_report
from leasehold.admin.sender_clocks import CHANGEFEED, SPARK
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.lease.replies import SnapshotReport
from leasehold.model import metrics
from leasehold.model.measures import Sample
from leasehold.model.metrics import NO_LABELS

JOBS_MAX: Final = 20
US_PER_S: Final = 1_000_000


def watch_samples(watch: ClusterWatch) -> Iterator[Sample]:
    """Yield what the watch has seen so far."""
    return view_samples(watch.view, unix_us())


def view_samples(view: ClusterView, now_us: int) -> Iterator[Sample]:
    """Yield what a view tells. What it has not heard of yet is absent, and not 0."""
    asked_us = view.as_of_us(now_us)
    nodes = Counter(
        (node.ack.role, str(node_report(view, node, asked_us)["coherency"]))
        for node in view.nodes.values()
    )
    for labels, number in nodes.items():
        yield Sample(metrics.CLUSTER_NODES, labels, number)
    if view.log.seen_us:
        silent_us = max(0, now_us - view.log.seen_us)
        yield Sample(metrics.CLUSTER_MASTER_SILENT, NO_LABELS, silent_us / US_PER_S)
    feed_us = view.changefeed.sent_us if view.changefeed else 0
    spark_us = view.spark.sent_us if view.spark else 0
    for metric, sender, sent_us in (
        (metrics.CLUSTER_FEED_SILENT, CHANGEFEED, feed_us),
        (metrics.CLUSTER_SPARK_SILENT, SPARK, spark_us),
    ):
        if sent_us:
            silent_us = view.age_us(sender, sent_us, now_us)
            yield Sample(metric, NO_LABELS, silent_us / US_PER_S)
    if view.ledger is not None or "ledger" in view.unreachable:
        ready = ledger_report(view, asked_us)["state"] == "ready"
        yield Sample(metrics.CLUSTER_LEDGER, NO_LABELS, float(ready))
        if view.ledger is not None:
            newest, before = _count_leases(view.ledger.report)
            yield Sample(metrics.CLUSTER_LEASES, ("newest",), newest)
            yield Sample(metrics.CLUSTER_LEASES, ("before",), before)
    if "dead-letter" in view.ends:
        yield Sample(metrics.DEAD_LETTERS, NO_LABELS, view.ends["dead-letter"])
    for job in running_jobs_report(view, now_us, JOBS_MAX):
        if job["ends_in_s"] is not None:
            labels = (str(job["job"]), str(job["table"]))
            yield Sample(metrics.JOB_LEFT_S, labels, job["ends_in_s"])


def _count_leases(report: SnapshotReport) -> tuple[int, int]:
    """Return how many leases there are on newest versions, and on those before."""
    newest = before = 0
    for table in report.tables:
        for version, leases in table.leases:
            if version < table.current:
                before += leases
            else:
                newest += leases
    return newest, before
