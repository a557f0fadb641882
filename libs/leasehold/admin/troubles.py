"""What is not right in a database, by its report: the same sentences wherever a person looks,
`leasehold status`, `top` and the dashboard."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from leasehold.admin.durations import span
from leasehold.admin.view import SILENT_AFTER_US

BAD: Final = "bad"
"""Writes do not go on, or are about to stop."""
WARN: Final = "warn"
NEWS_FOR_US: Final = 3_600_000_000
"""So long a failed job is trouble, unless it is settled: who looks at all looks hourly."""
KNOWN_FOR_US: Final = 24 * NEWS_FOR_US
AHEAD_SAID_MS: Final = 60_000
"""Clocks of hosts differ by less, and by as much may ids lie ahead."""
_FEED_WORDS: Final = {"failed": "has failed", "held": "is held"}


class Trouble(NamedTuple):
    """A sentence that names what it is about, and how grave that is: BAD or WARN."""

    tone: str
    words: str


def troubles_of(told: dict[str, Any]) -> list[str]:
    """Return sentences on what is not right, and on what is not known."""
    found = [f"not all is known: {gap}; what is shown here is incomplete" for gap in told["gaps"]]
    return found + [each.words for each in find_troubles(told)]


def find_troubles(told: dict[str, Any]) -> list[Trouble]:
    """Return what is not right in what is known: the master, nodes, parts beside them, jobs."""
    found = _master_troubles(told)
    found += [Trouble(WARN, each) for each in clock_troubles(told["log"])]
    found += _node_troubles(told)
    ledger = told["ledger"]["state"]
    if ledger != "ready":
        words = f"the lease ledger is {ledger}: schema changes wait, reads and writes go on"
        found.append(Trouble(WARN, words))
    beside = (*_spark_troubles(told), *_feed_troubles(told))
    failed, _ = failed_jobs(told)
    return found + [Trouble(WARN, each) for each in (*beside, *map(failed_words, failed))]


def _master_troubles(told: dict[str, Any]) -> list[Trouble]:
    log = told["log"]
    if not log["master"]:
        if told["gaps"]:
            return []  # who it is may stand in what was not read yet
        return [Trouble(BAD, "no master yet: no node has claimed an epoch")]
    if (log["master_silent_ms"] or 0) * 1_000 <= SILENT_AFTER_US:
        return []
    words = (
        f"master {log['master']} has written nothing for {span(log['master_silent_ms'])}: "
        "no change is decided until a standby takes over"
    )
    return [Trouble(BAD, words)]


def clock_troubles(log: dict[str, Any]) -> list[str]:
    """Return sentences on what is not right with the clocks in the log's report."""
    found = []
    ahead_ms = log.get("ahead_ms") or 0
    if ahead_ms > AHEAD_SAID_MS:
        found.append(
            f"the log's time is {span(ahead_ms)} ahead of the master's clock: what is committed is"
            " stamped that much too late (leasehold clock)"
        )
    clock_us = log.get("master_clock_us")
    if clock_us is not None and log["id_horizon_us"] > clock_us:
        ahead_ms = (log["id_horizon_us"] - clock_us) / 1_000
        found.append(
            f"requests are refused as too old (LH001) for another {span(ahead_ms)}, fresh ones too:"
            " the id horizon is ahead of the master's clock (leasehold clock)"
        )
    return found


def _node_troubles(told: dict[str, Any]) -> list[Trouble]:
    found = [
        Trouble(
            WARN,
            f"node {node['node']} ({node['role']}) is {node['coherency']} "
            f"for {span(node['for_ms'])}, {node['lag_records']:,} records behind",
        )
        for node in told["nodes"]
        if node["coherency"] in ("incoherent", "silent")
    ]
    found += [
        Trouble(
            WARN,
            f"node {node['node']} has passed over {node['foreign_records']:,} records of the log "
            "that no master of this database wrote (see its log): who else may write to that"
            " topic?",
        )
        for node in told["nodes"]
        if node.get("foreign_records")
    ]
    found += [
        Trouble(
            BAD,
            f"{disk['free_bytes'] >> 20:,} MiB are free on the disk of node {disk['node']}'s store,"
            f" less than its reserve of {disk['reserve_bytes'] >> 20:,} MiB: as master it refuses"
            " what needs room (53100), and with a quarter of it the node stops",
        )
        for disk in told.get("disks", ())
        if disk["room"] in ("short", "out")
    ]
    return found


def _spark_troubles(told: dict[str, Any]) -> list[str]:
    spark, found = told["spark"], []
    if spark is not None and spark["silent"]:
        found.append(
            f"Spark is silent for {span(spark['heard_ms'])}: changes that fill or look through "
            "rows wait, and so do requests that are to be retried"
        )
    elif spark is not None and spark["trouble"]:
        found.append(f"Spark does not retry requests just now: {spark['trouble']}")
    return found + [
        f"Spark fails at job {job['job']} on {job['table']} and tries again: {job['spark_fails']}"
        for job in told["jobs"]
        if job["spark_fails"]
    ]


def _feed_troubles(told: dict[str, Any]) -> list[str]:
    feed = told["changefeed"]
    if feed is None:
        return []
    found = [
        f"the feed of {each['table']} {_FEED_WORDS[each['status']]} (leasehold feed list):"
        f" {each['words']}"
        for each in feed["feeds"]
        if each["status"] in _FEED_WORDS
    ]
    if feed["silent"]:
        words = (
            f"the changefeed is silent for {span(feed['heard_ms'])}: rows, versions and jobs on "
            f"their topics stop at LSN {feed['lsn']:,}, and changes that fill rows wait"
        )
        return [words, *found]
    return found


def failed_jobs(told: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return failures that want somebody's look, and others of late. A job that has failed has left
    everything as it was: it is news for a time, then history, which `leasehold jobs` keeps."""
    news: list[dict[str, Any]] = []
    known: list[dict[str, Any]] = []
    for job in told["jobs"]:
        age_us = told["now_us"] - (job["ended_us"] or 0)
        if job["status"] != "failed" or age_us > KNOWN_FOR_US:
            continue
        settled = job["dismissed"] or age_us > NEWS_FOR_US or _succeeded_since(job, told["jobs"])
        (known if settled else news).append(job)
    return news, known


def _succeeded_since(failed: dict[str, Any], jobs: list[dict[str, Any]]) -> bool:
    same = ("table_id", "kind", "subject")
    return any(
        job["status"] == "succeeded"
        and job["job"] > failed["job"]
        and all(job[name] == failed[name] for name in same)
        for job in jobs
    )


def failed_words(job: dict[str, Any]) -> str:
    """Return a sentence on a job that has failed."""
    return f"job {job['job']} on {job['table']} failed: {job['error']}"
