"""How far an upgrade is: what each process reads, and up to what the database is finalized. PURE.

Taken from what processes say of themselves anyway: an incarnation says up to which feature its
process reads, a node's report its release and the feature level that it has read in the log. Spark
and the dashboard read no log, so they hold nobody up, and are not in here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leasehold.admin.report import REPORT_KNOWN_FOR_US
from leasehold.admin.view import ClusterView
from leasehold.model.features import NEWEST, WITHOUT_LEVEL, Feature, known_to, titles
from leasehold.model.records.acks import Ack


def upgrade_report(view: ClusterView, now_us: int) -> dict[str, Any]:
    """Return the feature level, the processes that read the log, and what finalizing would do.

    `level`: 0 = the database has none. `finalizes`: up to which feature a command of this release
    asks for. `blockers`: names of processes that do not read that much, and would stop. `enables`:
    what would be written then that is not now; `waits`: what already may be written by the level,
    and is not because of a process that does not read it.
    """
    processes = sorted(_processes(view, now_us), key=lambda each: str(each["process"]))
    level = max((r.feature_level for r in view.node_reports.values()), default=0)
    permitted = max(level, WITHOUT_LEVEL)
    read = min((int(each["reads"]) for each in processes), default=NEWEST)
    return {
        "level": level,
        "finalizes": max(level, NEWEST),
        "processes": processes,
        "blockers": [each["process"] for each in processes if each["reads"] < NEWEST],
        "enables": [_feature(Feature(number)) for number in range(permitted + 1, NEWEST + 1)],
        "waits": titles(read, permitted),
    }


def _feature(feature: Feature) -> dict[str, Any]:
    return {"number": feature.value, "feature": feature.title, "written": feature.written}


def _processes(view: ClusterView, now_us: int) -> Iterator[dict[str, Any]]:
    for name, node in view.nodes.items():
        if node.silent(now_us):
            continue  # who has ended holds nobody up for long
        role = "master" if name == view.log.master else node.ack.role
        yield _process(node.ack, role, _release_of(view, name, now_us))
    feed = view.changefeed_ack
    if feed is not None and now_us - feed.sent_us <= REPORT_KNOWN_FOR_US:
        yield _process(feed, feed.role, _release_of(view, feed.node, now_us))


def _release_of(view: ClusterView, name: str, now_us: int) -> str:
    """Return the release that a process has told of lately, "" = none."""
    told = view.node_reports.get(name)
    known = told is not None and now_us - told.sent_us <= REPORT_KNOWN_FOR_US
    return told.release if told is not None and known else ""


def _process(ack: Ack, role: str, release: str) -> dict[str, Any]:
    reads = known_to(ack.incarnation)
    return {
        "process": ack.node,
        "role": role,
        "release": release,
        "reads": reads,
        "lacks": titles(reads, NEWEST),
    }
