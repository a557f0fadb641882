"""The command `leasehold leases`: who holds which version of which table."""

from __future__ import annotations

import argparse

from leasehold.adapters.os.clock import unix_us
from leasehold.admin.blocker_report import holding_words
from leasehold.admin.durations import span
from leasehold.admin.report import leases_report, ledger_report
from leasehold.cli.command import Subparsers, add
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.looking import looking
from leasehold.cli.output import Output
from leasehold.model.errors import LedgerUnavailable
from leasehold.settings.client import ClientSettings


def register(subparsers: Subparsers) -> None:
    parser = add(
        subparsers,
        "leases",
        run,
        "A version marked old keeps the next one but one from being published.",
    )
    parser.add_argument("table", nargs="?", help="only this table")


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    with looking(settings, output) as (_, view):
        now_us = unix_us()
        ledger = ledger_report(view, now_us)
        if "ledger" in view.unreachable:
            raise LedgerUnavailable(view.unreachable["ledger"])
        leases = leases_report(view, now_us)
    leases = [lease for lease in leases if args.table in (None, lease["table"])]
    if output.as_json:
        output.json({"ledger": ledger, "leases": leases})
        return ExitCode.OK
    output.line(f"ledger {ledger['state']} · {len(ledger['sessions'])} sessions")
    output.table(
        ["table", ">version", "", ">leases", "agents", "sessions"],
        [
            [
                lease["table"],
                f"v{version['version']}",
                "old" if version["old"] else "current",
                version["leases"],
                ", ".join(version["agents"]),
                ", ".join(str(session) for session in version["sessions"]),
            ]
            for lease in leases
            for version in lease["versions"]
        ],
        "nobody holds a lease",
    )
    for lease in leases:
        for version in lease["versions"]:
            for holder in version["holders"]:
                output.line(holding_words(holder), "yellow")
    output.line()
    output.table(
        ["session", "agent", ">renewals", ">last seen", ">leases", ""],
        [
            [
                str(session["session"]),
                session["agent"],
                session["renewals"],
                span(session["renewed_ms"]),
                session["leases"],
                "expiring" if session["expiring"] else "",
            ]
            for session in ledger["sessions"]
        ],
        "no agent has a session",
    )
    return ExitCode.OK
