"""The command `leasehold upgrade`: which release each process is of, what they write for each
other, and the end of an upgrade, from which there is no way back."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any, Final

from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.admin.upgrade_report import upgrade_report
from leasehold.cli.command import Subparsers, add, finish
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.looking import looking
from leasehold.cli.output import Output, show_outcome
from leasehold.client.change_producer import ChangeProducer
from leasehold.model.errors import ConfigurationError, UpgradeUnfinished
from leasehold.model.records.requests import ChangeRequest, OnConflict, Outcome
from leasehold.settings.client import ClientSettings

RESULT_TIMEOUT_S: Final = 30.0
FORGOTTEN_S: Final = 15.0
"""A master counts a process that has ended without a word for 10 s."""
ASK_AGAIN_S: Final = 1.0
UNKNOWN_SHOWN_MAX: Final = 10
MEANING: Final = (
    "From then on the log, stores, snapshots and backups may have what an earlier release can\n"
    "not read: a process of one stops at it, and none can be started any more. The way back is a\n"
    "backup from before. Until then each process can go back to the release of before."
)


def register(subparsers: Subparsers) -> None:
    parser = add(
        subparsers,
        "upgrade",
        show,
        "\n\nWhat a new release writes in a form that the one of before can't read is written only"
        " when every node, embedded replica and changefeed reads it, and the upgrade is finalized:"
        " until then each process can go back.\n\nExit code 1 when a process does not read all that"
        " this release writes, or it is not finalized yet.",
    )
    actions = parser.add_subparsers(metavar="ACTION")
    shown = actions.add_parser(
        "status", help="show who reads what, and who holds it up (also without an action)"
    )
    finish(shown, show)
    ended = actions.add_parser(
        "finalize",
        help="end the upgrade: have written what this release writes",
        description="Have written what this release writes, once all processes read it. Done"
        " again it changes nothing.\n\n" + MEANING + "\n\nExit code 1 while a process is of an"
        " earlier release, which is named; nothing is done then.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ended.add_argument("--yes", action="store_true", help="do it without being asked")
    finish(ended, finalize)


def show(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    report = _look(settings, output)
    if output.as_json:
        output.json(report)
    else:
        show_report(report, output)
    return ExitCode.NOT_RIGHT if report["blockers"] or report["enables"] else ExitCode.OK


def _look(settings: ClientSettings, output: Output) -> dict[str, Any]:
    with looking(settings, output) as (_, view):
        return upgrade_report(view, view.as_of_us(unix_us()))


def show_report(report: dict[str, Any], output: Output) -> None:
    """Show who reads what, and what is to be done."""
    output.table(
        ["process", "role", "release", ">reads", "does not read"],
        [
            [
                each["process"],
                each["role"],
                each["release"] or None,
                each["reads"],
                ", ".join(each["lacks"]) or None,
            ]
            for each in report["processes"]
        ],
        "no process is heard",
    )
    output.line()
    output.line(f"feature level: {report['level'] or 'none (a database of release 0.1.0)'}")
    for each in report["enables"]:
        number, feature, written = each["number"], each["feature"], each["written"]
        output.line(f"finalizing enables {number}, {feature}: {written}")
    for title in report["waits"]:
        output.line(f"! not written while a process does not read it: {title}", "yellow")
    if report["unknown"]:
        output.line(unknown_words(report), "yellow")
    output.line(next_words(report), "yellow" if report["blockers"] or report["enables"] else "")


def unknown_words(report: dict[str, Any]) -> str:
    """Return who is there and does not say what it reads, and what to do about it."""
    names, count = report["unknown"], report["unknown_count"]
    more = f" and {count - UNKNOWN_SHOWN_MAX} more" if count > UNKNOWN_SHOWN_MAX else ""
    return (
        f"! {', '.join(names[:UNKNOWN_SHOWN_MAX])}{more}: agents that don't say what they read."
        " Each is of an earlier release, was started a moment ago, lacks Write on the topic of"
        " acknowledgements, or is a program in another language: look after it yourself before you"
        " finalize"
    )


def next_words(report: dict[str, Any]) -> str:
    """Return what to do next."""
    if report["blockers"]:
        names = ", ".join(report["blockers"])
        return f"upgrade {names} next (docs/how-to/upgrade.md); finalizing waits for that"
    if report["enables"]:
        return "every process is upgraded: leasehold upgrade finalize ends the upgrade"
    return "the upgrade is finalized: nothing is to be done"


def finalize(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    report = _look(settings, output)
    if report["blockers"]:
        if not output.as_json:
            show_report(report, output)
        names = ", ".join(report["blockers"])
        output.error(
            f"nothing was done: {names} would stop, of an earlier release",
            "55000",
            "Upgrade it, or end it; one that has ended is forgotten after some seconds.",
        )
        return ExitCode.NOT_RIGHT
    if report["enables"] and not args.yes and not _is_agreed(report, output):
        output.note("nothing was done")
        return ExitCode.NOT_RIGHT
    request = ChangeRequest(
        b"", on_conflict=OnConflict.FAIL, feature_level=int(report["finalizes"])
    )
    outcome = _submit(request, settings, output)
    return show_outcome(outcome, output, lambda: finalized_words(outcome.answer, outcome.lsn))


def _submit(request: ChangeRequest, settings: ClientSettings, output: Output) -> Outcome:
    """Submit the request, again and again while the master counts a process that has ended."""
    give_up_ns = boottime_ns() + int(FORGOTTEN_S * 1e9)
    with ChangeProducer(settings) as changes:
        while True:
            outcome = changes.submit(request).result(RESULT_TIMEOUT_S)
            waits = outcome.code == UpgradeUnfinished.sqlstate and boottime_ns() < give_up_ns
            if not waits:
                return outcome
            output.note("the master may still count a process that has ended: asking again …")
            time.sleep(ASK_AGAIN_S)


def _is_agreed(report: dict[str, Any], output: Output) -> bool:
    """Show what it means and ask. Raises ConfigurationError where nobody can be asked."""
    if output.as_json or not (sys.stdin.isatty() and output.err.is_terminal):
        raise ConfigurationError(f"nobody can be asked here: say --yes.\n{MEANING}")
    show_report(report, output)
    output.line(MEANING)
    output.err.print("finalize? [y/N] ", end="")
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        return False


def finalized_words(answer: dict[str, Any], lsn: int) -> str:
    """Return what was done, of the answer to the request."""
    level, was = answer["level"], answer["was"]
    if not answer["finalized"]:
        return f"the database is finalized at feature level {level} already: nothing was changed"
    before = f"it was {was}" if was else "it had none"
    return f"the database is finalized at feature level {level} from LSN {lsn:,} on; {before}"
