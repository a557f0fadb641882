"""The command `leasehold status`: log, master, nodes, ledger, jobs, queues — whether all is
well."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from leasehold.adapters.os.clock import unix_us
from leasehold.admin.durations import span
from leasehold.admin.report import report
from leasehold.admin.troubles import failed_jobs, failed_words, troubles_of
from leasehold.admin.view import SILENT_AFTER_US
from leasehold.cli.command import Subparsers, add
from leasehold.cli.doctor.beside_status import BesideLook
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.job_watch import ENDED
from leasehold.cli.looking import looking
from leasehold.cli.output import STYLES, Output, clock_time
from leasehold.settings.client import ClientSettings

SETTLE_S = SILENT_AFTER_US / 1e6 + 0.1
"""A master writes several records a second even when idle. When none comes in so long, it is
silent: how old the newest one is can't be told from reading it."""


def register(subparsers: Subparsers) -> None:
    add(
        subparsers,
        "status",
        run,
        "Exit code 1 when something is not right: no master, a node that is silent or not "
        "coherent, records on the log that are nobody's, a ledger that is away or not ready, "
        "Spark or a changefeed that is silent, a store's disk with less than its reserve, a job "
        "that failed in the last hour, unless the "
        "same change has succeeded since, or somebody knows of it (leasehold jobs dismiss JOB).",
    )


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    beside_look = BesideLook(settings)
    try:
        told = _told(settings, output)
    finally:
        # Its threads use clients that must not outlive the interpreter.
        beside = beside_look.result()
    troubles = troubles_of(told)
    told["troubles"] = troubles
    told["warnings"] = list(beside.warnings)
    told["log_kept"] = beside.kept_report()
    if output.as_json:
        output.json(told)
    else:
        _show(told, output, settings.cluster.database)
    return ExitCode.NOT_RIGHT if troubles else ExitCode.OK


def _told(settings: ClientSettings, output: Output) -> dict[str, Any]:
    """Return the report. Raises BusUnavailable."""
    with looking(settings, output, whole=False) as (watch, view):
        # What stands on the topics may be old: only what is written now shows who is alive.
        offset = view.log.end
        if not view.not_read:
            watch.wait_for(lambda seen: seen.log.end > offset, SETTLE_S)
        return report(watch.view, unix_us(), tables_max=None if output.as_json else 0)


def copy_words(copy: dict[str, Any]) -> str:
    """Return a sentence on a node that takes a copy of another one's store, or has taken it."""
    node, source = copy["node"] or "a node of an earlier release", copy["source"]
    kept = f"the log is kept for it from offset {copy['offset']:,}"
    if copy["under_way"]:
        return f"{node} takes a copy of {source}'s store: {kept}"
    return f"{node} has taken a copy of {source}'s store: {kept}, {span(copy['kept_ms'])} more"


def _show(told: dict[str, Any], output: Output, database: str) -> None:
    log = told["log"]
    output.line(f"database {database}", "bold")
    output.line(
        f"log      offset {log['offset']:,} · LSN {log['lsn']:,} · epoch {log['epoch']} · "
        f"master {log['master'] or 'none'} · last commit {clock_time(log['commit_us'])}"
    )
    if kept := told["log_kept"]:
        since = f", since {clock_time(kept['first_us'])}" if kept["first_us"] else ""
        output.line(
            f"kept     from offset {kept['first_offset']:,}{since} · {kept['records']:,} records ·"
            f" about {kept['bytes_about'] / (1 << 20):,.1f} MiB"
        )
    ledger = told["ledger"]
    output.line(
        f"ledger   {ledger['state']} · {len(ledger['sessions'])} sessions",
        STYLES.get(ledger["state"], ""),
    )
    spark = told["spark"]
    if spark is not None:
        words = "silent" if spark["silent"] else "at work"
        output.line(f"spark    {words} · heard {span(spark['heard_ms'])} ago")
    feed = told["changefeed"]
    if feed is not None:
        words = "silent" if feed["silent"] else "at work"
        output.line(
            f"feed     {words} · heard {span(feed['heard_ms'])} ago · LSN {feed['lsn']:,} is out"
        )
        if feed["feeds"]:
            counts = Counter(each["status"] for each in feed["feeds"])
            words = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
            output.line(f"feeds    {words} (leasehold feed list)")
    for queue in told["lanes"]:
        decided, waiting = queue["decided_through"], queue["waiting"]
        words = "idle for a while" if decided is None else f"{waiting:,} waiting"
        output.line(f"{queue['lane']:<8} {words} · next offset {queue['offset']:,}")
    if below := told["dead_letters"]:
        # Not how many: the ends of transactions have offsets, too.
        output.line(f"dead     letters at offsets below {below:,} (leasehold dead-letter list)")
    output.line()
    output.table(
        ["node", "role", "coherency", ">for", ">lag", ">LSN", ">offset", ">heard", "serves"],
        [
            [
                n["node"],
                n["role"],
                n["coherency"],
                span(n["for_ms"]),
                n["lag_records"],
                n["lsn"],
                n["offset"],
                f"{span(n['age_ms'])} ago",
                n["serves"] or None,
            ]
            for n in told["nodes"]
        ],
        "nodes are not known yet"
        if told["gaps"]
        else "no node has been heard of in the last hour: start one (make up)",
    )
    for copy in told["copies"]:
        output.line(copy_words(copy), "dim")
    for node in told["nodes"]:
        if node["open"]:
            output.line(f"{node['node']}: {node['open']}", "dim")
        if node["holds"]:
            output.line(f"{node['node']} holds only {node['holds']}", "dim")
    running = [job for job in told["jobs"] if job["status"] not in ENDED]
    if running:
        output.line()
        output.table(
            ["job", "table", "status", "step", "doing", "waits for"],
            [
                [
                    str(job["job"]),
                    job["table"],
                    job["status"],
                    f"{job['step']}/{job['steps']} → {job['to']}",
                    job["doing"],
                    "; ".join(job["waits_for"]) or None,
                ]
                for job in running
            ],
            "",
        )
    output.line()
    for job in failed_jobs(told)[1]:
        output.line(
            f"{failed_words(job)} ({span((told['now_us'] - job['ended_us']) / 1_000)} ago)", "dim"
        )
    for warning in told["warnings"]:
        output.line(f"warning: {warning} (leasehold doctor says what to do)", "dim")
    for trouble in told["troubles"]:
        output.line(f"! {trouble}", "yellow")
    if not told["troubles"]:
        output.line("all is well", "green")
