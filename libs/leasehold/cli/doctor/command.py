"""The command `leasehold doctor`: what is not as it should be, and what to do about it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from leasehold import __version__
from leasehold.adapters.os.clock import unix_us
from leasehold.cli.command import Subparsers, add, add_timeout
from leasehold.cli.doctor.checks import CHECKS
from leasehold.cli.doctor.facts import Facts, SettingsSeen
from leasehold.cli.doctor.finding import Finding, Unseen, Verdict, count, examine, exit_code_of
from leasehold.cli.doctor.gather import TIMEOUT_S, gather
from leasehold.cli.doctor.read_settings import read_settings
from leasehold.cli.output import Output
from leasehold.model.errors import ConfigurationError
from leasehold.model.process_rights import KIND_NAMED, ProcessKind
from leasehold.settings.client import ClientSettings

OWN_KIND: Final = "doctor"
STYLES: Final[Mapping[Verdict, str]] = {
    Verdict.OK: "green",
    Verdict.UNSEEN: "magenta",
    Verdict.WARN: "yellow",
    Verdict.FAIL: "red",
}
MORE: Final = """\
Each check says what it looked at, its verdict (ok, warn, fail, could not look) and what to do.
Parts that are away keep no others from being looked at. It changes nothing.

Exit code 0: nothing fails, though there may be warnings. 1: something fails (with --strict: or is
warned of). 3: nothing fails, but something could not be looked at: a part is away, or this user
has not the rights."""


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "doctor", run, MORE)
    parser.add_argument(
        "--as",
        dest="kind",
        choices=sorted(KIND_NAMED),
        default=OWN_KIND,
        metavar="KIND",
        help="check that this user has the rights on topics that such a process needs: a kind of"
        f" `leasehold setup-acls` (default: {OWN_KIND})",
    )
    parser.add_argument("--strict", action="store_true", help="warnings give exit code 1, too")
    parser.add_argument(
        "--all", action="store_true", help="show what is well, too (--json always does)"
    )
    add_timeout(parser, TIMEOUT_S, "all parts together")
    parser.set_defaults(read_settings=ClientSettings)


def run(args: argparse.Namespace, _: ClientSettings, output: Output) -> int:
    output.note("looking …")
    facts = look(os.environ, KIND_NAMED[args.kind], args.timeout)
    findings = examine(facts, CHECKS)
    if output.as_json:
        output.json(
            {
                "database": facts.topics.database,
                "release": facts.release,
                "counts": count(findings),
                "findings": [finding.to_json() for finding in findings],
            }
        )
    else:
        show(findings, output, everything=args.all)
    return exit_code_of(findings, strict=args.strict)


def look(environ: Mapping[str, str], kind: ProcessKind, timeout_s: float) -> Facts:
    """Return the facts; where the settings can't be read nothing else is looked at, since nobody
    knows where."""
    seen = read_settings(environ)
    try:
        settings = ClientSettings.read(environ)
        _ = settings.topics
    except ConfigurationError:
        return unread_facts(seen, kind)
    return gather(settings, seen, kind, timeout_s)


def unread_facts(seen: SettingsSeen, kind: ProcessKind) -> Facts:
    """Return facts of which only the settings are known."""
    unseen = Unseen("the settings can't be read", "mend what `values` fails with, then run this")
    return Facts(
        now_us=unix_us(),
        topics=ClientSettings().topics,
        settings=seen,
        kind=kind,
        release=__version__,
        log_budget_bytes=0,
        kafka=unseen,
        redis=unseen,
        cluster=unseen,
        folder=unseen,
    )


def show(findings: Sequence[Finding], output: Output, *, everything: bool) -> None:
    """Show a table for people: what is well only if `everything` is asked for, and what could not
    be looked at for one reason in one row."""
    rows: list[list[Any]] = []
    unseen: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        verdict, style = finding.verdict.value, STYLES[finding.verdict]
        if finding.verdict is Verdict.UNSEEN:
            unseen.setdefault((finding.words, finding.to_do), []).append(finding.check)
        elif finding.verdict is not Verdict.OK:
            rows.append([Text(verdict, style), finding.check, finding.words, finding.to_do or None])
        elif everything:
            rows.append([Text(verdict, style), finding.check, finding.looks_at, None])
    for (words, to_do), names in unseen.items():
        mark = Text(Verdict.UNSEEN.value, STYLES[Verdict.UNSEEN])
        rows.append([mark, ", ".join(names), words, to_do or None])
    output.table(["", "check", "found", "what to do"], rows, "nothing is wrong")
    counts = count(findings)
    told = ", ".join(f"{number} {verdict}" for verdict, number in counts.items() if number)
    output.line(told, "bold")
