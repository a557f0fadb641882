"""How far an upgrade is: what each process reads, and up to what the database is finalized. PURE.

Taken from what processes say of themselves anyway: an incarnation says up to which feature its
process reads, a node's report its release and the feature level that it has read in the log.
Spark's driver, dashboards, intakes, agents and subscribers read no log, but topics with versions,
rows, jobs: they say both in a report of their own. A master counts only who reads the log; this
counts all. Of an agent that says nothing (of an earlier release, or in another language) the ledger
has a session: it is named, and holds nobody up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from leasehold.admin.report import REPORT_KNOWN_FOR_US
from leasehold.admin.sender_clocks import CHANGEFEED, sender_of
from leasehold.admin.view import ClusterView
from leasehold.model.features import NEWEST, WITHOUT_LEVEL, Feature, known_to, titles
from leasehold.model.records.acks import Ack, ProcessReport

PROCESS_SILENT_US: Final = 15_000_000
"""A process that is no node says each 5 s that it is there; one that has been killed holds nobody
up for long."""
AGENT_SILENT_US: Final = 45_000_000
"""An agent says it each 15 s."""
AGENTS: Final = frozenset({"agent", "subscriber"})
UNKNOWN_LISTED_MAX: Final = 100


def upgrade_report(view: ClusterView, now_us: int) -> dict[str, Any]:
    """Return the feature level, the processes that are heard, and what finalizing would do.

    `level`: 0 = the database has none. `finalizes`: up to which feature a command of this release
    asks for. `blockers`: names of processes that do not read that much, and would stop. `enables`:
    what would be written then that is not now; `waits`: what already may be written by the level,
    and is not because of a process that does not read it. `unknown`: names of agents that hold
    leases and don't say what they read, 100 at most of `unknown_count`.
    """
    unknown = unknown_agents(view, now_us)
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
        "unknown": unknown[:UNKNOWN_LISTED_MAX],
        "unknown_count": len(unknown),
    }


def _feature(feature: Feature) -> dict[str, Any]:
    return {"number": feature.value, "feature": feature.title, "written": feature.written}


def _processes(view: ClusterView, now_us: int) -> Iterator[dict[str, Any]]:
    for name, node in view.nodes.items():
        if view.is_silent(node, now_us):
            continue  # who has ended holds nobody up for long
        role = "master" if name == view.log.master else node.ack.role
        yield _process(node.ack, role, _release_of(view, name, now_us))
    feed = view.changefeed_ack
    if feed and view.age_us(CHANGEFEED, feed.sent_us, now_us) <= REPORT_KNOWN_FOR_US:
        yield _process(feed, feed.role, _release_of(view, feed.node, now_us))
    for told in live_processes(view, now_us):
        yield _told(told.process, told.role, told.release, told.reads)


def live_processes(view: ClusterView, now_us: int) -> list[ProcessReport]:
    """Return what processes that are no nodes have said of themselves lately, by their names."""
    known = (view.processes[name] for name in sorted(view.processes))
    return [
        told
        for told in known
        if view.age_us(sender_of(told), told.sent_us, now_us)
        <= (AGENT_SILENT_US if told.role in AGENTS else PROCESS_SILENT_US)
    ]


def unknown_agents(view: ClusterView, now_us: int) -> list[str]:
    """Return the names of those who have a session with the ledger and are not heard."""
    found = view.ledger.report.sessions if view.ledger is not None else ()
    heard = {_agent_of(told) for told in live_processes(view, now_us)}
    return sorted({each.agent for each in found} - heard - view.nodes.keys())


def _agent_of(told: ProcessReport) -> str:
    """Return the name that an agent has in the ledger, "" = it is none."""
    if told.role not in AGENTS:
        return ""
    return told.process.removeprefix(f"{told.role} ").rpartition(" at ")[0]


def _release_of(view: ClusterView, name: str, now_us: int) -> str:
    """Return the release that a process has told of lately, "" = none."""
    told = view.node_reports.get(name)
    if told is None or view.age_us(name, told.sent_us, now_us) > REPORT_KNOWN_FOR_US:
        return ""
    return told.release


def _process(ack: Ack, role: str, release: str) -> dict[str, Any]:
    return _told(ack.node, role, release, known_to(ack.incarnation))


def _told(process: str, role: str, release: str, reads: int) -> dict[str, Any]:
    return {
        "process": process,
        "role": role,
        "release": release,
        "reads": reads,
        "lacks": titles(reads, NEWEST),
    }
