"""Checks of the running database: master, nodes, clocks, disks, leases, jobs, followers. PURE."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from leasehold.adapters.redis.server_look import RedisSeen
from leasehold.admin.blocker_report import holding_words
from leasehold.admin.durations import span
from leasehold.admin.troubles import clock_troubles, failed_jobs
from leasehold.admin.view import SILENT_AFTER_US
from leasehold.cli.doctor.facts import ClusterSeen, Facts, FolderSeen
from leasehold.cli.doctor.finding import Check, Problem, Unseen, fail, unseen, warn
from leasehold.model.features import NEWEST
from leasehold.model.records.acks import NodeReport

CLOCK_WARN_US: Final = 1_000_000
CLOCK_FAIL_US: Final = 60_000_000
"""Ids of requests carry the time; a log's time that is ahead stamps all later commits with it."""
STANDS_STILL_MS: Final = 600_000
HELD_MS: Final = 600_000
FEED_LAG_RECORDS: Final = 20_000
WAITING_RECORDS: Final = 50_000
MIB: Final = 1 << 20
DISK_WARN_PERCENT: Final = 10
WAL_BYTES_MAX: Final = 1 << 30
"""A write-ahead log of that size is kept by somebody who reads for long."""


def _cluster(facts: Facts) -> ClusterSeen:
    assert not isinstance(facts.cluster, Unseen), "the check needs it"
    return facts.cluster


def _told(facts: Facts) -> Mapping[str, Any]:
    return _cluster(facts).told


def judge_master(facts: Facts) -> Iterator[Problem]:
    """Yield that nobody decides."""
    told = _told(facts)
    log, to_do = told["log"], "docs/how-to/runbooks/no-master.md"
    for gap in told["gaps"]:
        yield unseen(f"not all is known: {gap}", "run this again when the brokers have less to do")
    if not log["master"]:
        if not told["gaps"]:
            yield fail("no master: no node has claimed an epoch yet", to_do)
    elif (log["master_silent_ms"] or 0) * 1_000 > SILENT_AFTER_US:
        yield fail(
            f"master {log['master']} has written nothing for {span(log['master_silent_ms'])}: no"
            " change is decided until a standby takes over",
            to_do,
        )


def judge_nodes(facts: Facts) -> Iterator[Problem]:
    """Yield nodes that do not answer reads, or that let in who should not be."""
    for node in _told(facts)["nodes"]:
        name = f"node {node['node']} ({node['role']})"
        if node["coherency"] in ("incoherent", "silent"):
            yield fail(
                f"{name} is {node['coherency']} for {span(node['for_ms'])},"
                f" {node['lag_records']:,} records behind",
                "docs/how-to/runbooks/not-coherent.md; one that is gone for good is forgotten after"
                " an hour",
            )
        if node["foreign_records"]:
            yield warn(
                f"{name} has passed over {node['foreign_records']:,} records of the log that no"
                " master of this database wrote",
                "take Write on the log's topic from everybody but candidates for master"
                " (leasehold setup-acls)",
            )
        if node["open"]:
            yield warn(f"{name}: {node['open']}", "docs/how-to/secure.md")


def judge_queues(facts: Facts) -> Iterator[Problem]:
    """Yield queues in which much waits for the master."""
    for queue in _told(facts)["lanes"]:
        if (queue["waiting"] or 0) > WAITING_RECORDS:
            yield warn(
                f"{queue['waiting']:,} messages wait in the queue {queue['lane']}",
                "docs/how-to/runbooks/queue-full.md",
            )


def judge_versions(facts: Facts) -> Iterator[Problem]:
    """Yield that processes are of different releases."""
    cluster = _cluster(facts)
    by_release: dict[str, list[str]] = defaultdict(list)
    for node in _alive(cluster):
        report = cluster.reports.get(node)
        by_release[report.release if report is not None else ""].append(node)
    unsaid = by_release.pop("", [])
    for process, release in cluster.releases.items():
        by_release[release].append(process)
    if unsaid:
        yield warn(
            f"{', '.join(unsaid)} did not say of which release it is: an earlier one, as a rule",
            "upgrade it (docs/how-to/upgrade.md)",
        )
    if len(by_release) > 1:
        words = "; ".join(
            f"{release}: {', '.join(nodes)}" for release, nodes in sorted(by_release.items())
        )
        yield warn(
            f"processes are of different releases ({words})",
            "end the upgrade: what is new is refused until all are (docs/how-to/upgrade.md)",
        )
    elif by_release and facts.release not in by_release:
        others = ", ".join(by_release)
        yield warn(
            f"this command is of release {facts.release}, and the others of {others}",
            "use the command of the nodes' release",
        )
    elif by_release and not unsaid and _level(cluster) < NEWEST:
        yield warn(
            f"the upgrade to release {facts.release} is not finalized: what is new in it is not"
            " written yet",
            "leasehold upgrade finalize, once no process is to go back (docs/how-to/upgrade.md)",
        )


def _level(cluster: ClusterSeen) -> int:
    return max((report.feature_level for report in cluster.reports.values()), default=0)


def _alive(cluster: ClusterSeen) -> list[str]:
    return [node["node"] for node in cluster.told["nodes"] if node["coherency"] != "silent"]


def judge_clocks(facts: Facts) -> Iterator[Problem]:
    """Yield clocks that differ, of the host this runs on, of nodes and of Redis."""
    cluster = _cluster(facts)
    clocks = [(f"node {node}", ahead_us) for node, ahead_us in cluster.clocks]
    if isinstance(facts.redis, RedisSeen) and facts.redis.ahead_us is not None:
        clocks.append(("Redis", facts.redis.ahead_us))
    for who, ahead_us in clocks:
        if abs(ahead_us) <= CLOCK_WARN_US:
            continue
        way = "ahead of" if ahead_us > 0 else "behind"
        words = f"the clock of {who} is {span(abs(ahead_us) / 1_000)} {way} this host's"
        said = fail if abs(ahead_us) > CLOCK_FAIL_US else warn
        yield said(words, "have all hosts follow the same time servers (chrony, systemd-timesyncd)")
    for words in clock_troubles(cluster.told["log"]):
        yield fail(words, "leasehold clock")


def judge_disks(facts: Facts) -> Iterator[Problem]:
    """Yield stores whose disks are nearly full, and write-ahead logs that grow."""
    cluster = _cluster(facts)
    for node in _alive(cluster):
        report = cluster.reports.get(node)
        if report is not None:
            yield from _of_disk(report)


def _of_disk(report: NodeReport) -> Iterator[Problem]:
    free = f"{report.free_bytes // MIB:,} MiB are free on the disk of node {report.node}'s store"
    runbook = "docs/how-to/runbooks/disk-nearly-full.md"
    if report.room in ("short", "out"):
        yield fail(
            f"{free}, less than its reserve of {report.reserve_bytes // MIB:,} MiB: as master it"
            " refuses what needs room (53100), and with a quarter of it the node stops",
            runbook,
        )
    elif report.free_bytes < max(
        2 * report.reserve_bytes, report.disk_bytes * DISK_WARN_PERCENT // 100
    ):
        yield warn(f"{free}, of {report.disk_bytes // MIB:,}", runbook)
    if report.wal_bytes > WAL_BYTES_MAX:
        yield warn(
            f"the write-ahead log of node {report.node}'s store has"
            f" {report.wal_bytes // MIB:,} MiB: somebody reads an old snapshot of it",
            "SELECT * FROM leasehold.transactions on that node tells who",
        )


def judge_folder(facts: Facts) -> Iterator[Problem]:
    """Yield that the data folder of this host is nearly full."""
    folder = facts.folder
    assert isinstance(folder, FolderSeen), "the check needs it"
    if folder.free * 100 < folder.whole * DISK_WARN_PERCENT:
        yield warn(
            f"{folder.free // MIB:,} MiB of {folder.whole // MIB:,} are free in {folder.path}",
            "make room there",
        )


def judge_ledger(facts: Facts) -> Iterator[Problem]:
    """Yield that the ledger is not ready."""
    state = _told(facts)["ledger"]["state"]
    if state != "ready":
        words = f"the lease ledger is {state}: schema changes wait, reads and writes go on"
        said = warn if state == "grace" else fail
        yield said(words, "docs/how-to/runbooks/redis-away.md")


def judge_leases(facts: Facts) -> Iterator[Problem]:
    """Yield who holds an old version for long, and whose renewals do not come."""
    told = _told(facts)
    for session in told["ledger"]["sessions"]:
        if session["expiring"]:
            yield warn(
                f"session {session['session']} of agent {session['agent']} is not renewed any"
                " more: it ends within its time",
                "is that process alive, and does it reach Redis?",
            )
    for lease in told["leases"]:
        for version in lease["versions"]:
            for holder in version["holders"]:
                if holder["state"] == "silent" or (holder["old_ms"] or 0) > HELD_MS:
                    yield warn(
                        holding_words(holder), "end that work; docs/how-to/runbooks/job-waits.md"
                    )


def judge_jobs(facts: Facts) -> Iterator[Problem]:
    """Yield schema changes that have failed, and those that stand still."""
    told = _told(facts)
    for job in failed_jobs(dict(told))[0]:
        yield fail(
            f"job {job['job']} on {job['table']} failed: {job['error']}",
            f"docs/how-to/runbooks/job-failed.md; leasehold jobs dismiss {job['job']} when known",
        )
    for job in told["jobs"]:
        name = f"job {job['job']} on {job['table']}"
        if job["spark_fails"]:
            yield warn(
                f"Spark fails at {name} and tries again: {job['spark_fails']}",
                "look at the log of Spark's driver",
            )
        waits = "; ".join(job["waits_for"])
        if job["phase_ms"] is not None and job["phase_ms"] > STANDS_STILL_MS and waits:
            yield warn(
                f"{name} is in phase {job['phase']} for {span(job['phase_ms'])}, and waits for"
                f" {waits}",
                f"leasehold jobs show {job['job']}; docs/how-to/runbooks/job-waits.md",
            )


def judge_followers(facts: Facts) -> Iterator[Problem]:
    """Yield what is wrong with the changefeed and with Spark."""
    told = _told(facts)
    feed, spark = told["changefeed"], told["spark"]
    to_do = "docs/how-to/runbooks/changefeed-behind.md"
    if feed is None:
        yield warn(
            "no changefeed has been heard of: rows, versions and jobs are not published, and the"
            " log is never shortened",
            "start one (leasehold changefeed)",
        )
    elif feed["silent"]:
        yield fail(f"the changefeed is silent for {span(feed['heard_ms'])}", to_do)
    elif feed["lag_records"] > FEED_LAG_RECORDS:
        yield warn(f"the changefeed is {feed['lag_records']:,} records behind", to_do)
    for each in feed["feeds"] if feed is not None else ():
        if each["status"] == "failed":
            yield fail(
                f"the feed of {each['table']} has failed: {each['words']}", "leasehold feed list"
            )
        elif each["status"] == "held":
            yield warn(
                f"the feed of {each['table']} is held: {each['words']}",
                "bring the schema registry back (LEASEHOLD_REGISTRY of the changefeed)",
            )
    if spark is None:
        return
    if spark["silent"]:
        yield fail(
            f"Spark is silent for {span(spark['heard_ms'])}: fills and retries wait",
            "start its driver",
        )
    elif spark["trouble"]:
        yield warn(
            f"Spark does not retry requests just now: {spark['trouble']}",
            "docs/how-to/runbooks/retries-stopped.md",
        )


CLUSTER_CHECKS: Final = (
    Check("master", "who decides, and since when he is silent", ("cluster",), judge_master),
    Check("nodes", "coherency of each node, and whom it lets in", ("cluster",), judge_nodes),
    Check("queues", "what waits for the master", ("cluster",), judge_queues),
    Check("versions", "releases of nodes and of this command", ("cluster",), judge_versions),
    Check("clocks", "clocks of nodes, of Redis and of the log", ("cluster",), judge_clocks),
    Check("disks", "room and write-ahead log of each node's store", ("cluster",), judge_disks),
    Check("data folder", "room in LEASEHOLD_DATA on this host", ("folder",), judge_folder),
    Check("ledger", "whether leases are given", ("cluster",), judge_ledger),
    Check("leases", "who holds an old version, and does not renew", ("cluster",), judge_leases),
    Check("jobs", "schema changes that failed or stand still", ("cluster",), judge_jobs),
    Check("followers", "the changefeed, its feeds, and Spark", ("cluster",), judge_followers),
)
