"""The command `leasehold clock`: the log's time beside the master's clock, and the way out when it
is ahead."""

from __future__ import annotations

import argparse
from typing import Any, Final

from leasehold.adapters.os.clock import unix_us
from leasehold.admin.durations import span
from leasehold.admin.report import log_report
from leasehold.admin.troubles import clock_troubles
from leasehold.cli.command import Subparsers, add, finish
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.looking import looking
from leasehold.cli.output import Output, clock_time, show_outcome
from leasehold.client.change_producer import ChangeProducer
from leasehold.model.records.requests import ChangeRequest, OnConflict
from leasehold.settings.client import ClientSettings

RESULT_TIMEOUT_S: Final = 30.0
MEANING: Final = (
    "Set the clocks of all hosts that have a candidate right before you do this: the log's time\n"
    "becomes that of the master's clock. What is given up:\n"
    "  - AS OF a time or an LSN before the reset is refused (72000) from then on; and what is\n"
    "    committed after it may have an earlier commit time than what was committed before.\n"
    "  - If the id horizon is ahead, requests made before the reset of which nothing is\n"
    "    remembered are refused (LH001), as they were before it; make them anew.\n"
    "  - A request whose id was made by a clock that was ahead, and lies after the reset, may be\n"
    "    applied twice if it is sent again when its time has come and its outcome was collected\n"
    "    before the reset. Every other id is still applied at most once."
)


def register(subparsers: Subparsers) -> None:
    parser = add(
        subparsers,
        "clock",
        show,
        "\n\nCommits carry the log's time, which rises and never falls. A master whose clock was\n"
        "ahead has taken it along: until the clock has caught up, commits are stamped later than\n"
        "they are, and AS OF a time of now does not show them. Ids of requests that were made\n"
        "before the id horizon are refused (LH001); if it is ahead, too, that is every request.\n"
        "Exit code 1 when either is ahead.",
    )
    actions = parser.add_subparsers(metavar="ACTION")
    shown = actions.add_parser("show", help="show them (also without an action)")
    finish(shown, show)
    reset = actions.add_parser(
        "reset",
        help="set the log's time, and the id horizon, back to the master's clock",
        description=f"Set the log's time back to the master's clock, if it is ahead.\n{MEANING}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reset.add_argument("--yes", action="store_true", help="do it; without it, only tell")
    finish(reset, reset_clock)


def show(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    told, log = _look(settings, output)
    troubles = clock_troubles(log)
    if output.as_json:
        names = ("time_us", "id_horizon_us", "master_clock_us", "ahead_ms", "commit_us", "master")
        output.json({name: log[name] for name in names} | {"now_us": told, "troubles": troubles})
    else:
        _show(told, log, output)
        for trouble in troubles:
            output.line(f"! {trouble}", "yellow")
        if troubles:
            output.line("leasehold clock reset tells how to set it back, and what that costs")
    return ExitCode.NOT_RIGHT if troubles else ExitCode.OK


def _look(settings: ClientSettings, output: Output) -> tuple[int, dict[str, Any]]:
    """Return this host's clock, and the log's report at that time."""
    with looking(settings, output) as (_, view):
        at_us = unix_us()
        return at_us, log_report(view, view.as_of_us(at_us))


def _show(told_us: int, log: dict[str, Any], output: Output) -> None:
    clock_us = log["master_clock_us"]
    output.table(
        ["", "time", "against the master's clock", ""],
        [
            _row("log's time", log["time_us"], clock_us, "every later commit is stamped later"),
            _row("id horizon", log["id_horizon_us"], clock_us, "ids made before are refused"),
            _row("master's clock", clock_us or 0, None, log["master"] or "no master"),
            _row("this host's clock", told_us, clock_us, ""),
        ],
        "",
    )


def _row(name: str, at_us: int, clock_us: int | None, words: str) -> list[str | None]:
    against = None
    if clock_us is not None and at_us:
        off_ms = (at_us - clock_us) / 1_000
        against = f"{span(abs(off_ms))} {'ahead' if off_ms > 0 else 'behind'}"
    return [name, clock_time(at_us), against, words]


def reset_clock(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    if not args.yes:
        told, log = _look(settings, output)
        if not output.as_json:
            _show(told, log, output)
        output.error(f"nothing was done: it wants --yes.\n{MEANING}")
        return ExitCode.USAGE
    request = ChangeRequest(b"", on_conflict=OnConflict.FAIL, reset_clock=True)
    with ChangeProducer(settings) as changes:
        outcome = changes.submit(request).result(RESULT_TIMEOUT_S)
    return show_outcome(outcome, output, lambda: reset_words(outcome.answer, outcome.lsn))


def reset_words(answer: dict[str, Any], lsn: int) -> str:
    log_us, clock_us = answer["log_us"], answer["clock_us"]
    if not answer["reset"]:
        return "nothing of the log is ahead of the master's clock: nothing was set back"
    was = f"it was {clock_time(log_us)}, {span((log_us - clock_us) / 1_000)} ahead"
    if log_us <= clock_us:
        was = "the id horizon alone was ahead"
    return f"the log's time is {clock_time(clock_us)} from LSN {lsn:,} on; {was}"
