"""The command `leasehold audit`: who came, was refused, or changed what others may do."""

from __future__ import annotations

import argparse
from typing import Final

from leasehold.adapters.os.clock import unix_us
from leasehold.admin.audit_trail import AuditFilter, AuditTrail, Event, time_us
from leasehold.cli.command import Subparsers, add, seconds
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output, clock_time
from leasehold.model.audit import Audited
from leasehold.settings.client import ClientSettings

LISTED_MAX: Final = 50
HELP: Final = """\
Reads the topic `audit`, which every node writes to unless LEASEHOLD_AUDIT_TOPIC is off. With --json
each event is a line of JSON, as it stands there."""
COLUMNS: Final = ("when", "node", "kind", "outcome", "user", "role", "address", "subject", "words")


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "audit", run, HELP)
    parser.add_argument("-n", "--last", type=int, default=LISTED_MAX, help="newest so many")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what comes")
    parser.add_argument(
        "--kind",
        action="append",
        default=[],
        choices=[kind.value for kind in Audited],
        help="only these; may be given several times",
    )
    parser.add_argument("--who", default="", metavar="NAME", help="only of this user or role")
    parser.add_argument("--node", default="", help="only of this node")
    parser.add_argument("--object", default="", metavar="TEXT", help="only about what has this")
    parser.add_argument("--refused", action="store_true", help="only what was refused")
    parser.add_argument(
        "--since", type=seconds, metavar="TIME", help="only of the last so long, as 30s or 20m"
    )


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    since_us = 0 if args.since is None else unix_us() - int(args.since * 1_000_000)
    kinds = frozenset(args.kind)
    wanted = AuditFilter(kinds, args.who, args.node, args.object, since_us, args.refused)
    trail = AuditTrail(settings)
    events = trail.read(wanted)[-max(args.last, 0) :] if args.last > 0 else []
    if args.follow:
        for event in events:
            _tell(event, output)
        for event in trail.follow(wanted):
            _tell(event, output)
    elif output.as_json:
        for event in events:
            output.json(event)
    else:
        output.table(list(COLUMNS), [_row(event) for event in events], "no event")
    return ExitCode.OK


def _row(event: Event) -> list[str]:
    times = event.get("times", 1)
    words = str(event.get("words", ""))
    told = [str(event.get(name, "")) for name in COLUMNS[1:-1]]
    at_us = time_us(event)
    when = clock_time(at_us) if at_us else ""
    return [when, *told, f"{words} ({times} times)" if times != 1 else words]


def _tell(event: Event, output: Output) -> None:
    if output.as_json:
        output.json(event)
    else:
        output.line("  ".join(word for word in _row(event) if word))
