"""The command `leasehold top`: what a running database does now, drawn anew every few seconds."""

from __future__ import annotations

import argparse
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from rich.live import Live

from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.admin.report import report
from leasehold.admin.troubles import troubles_of
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.cli.command import Subparsers, add, positive_seconds
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.job_watch import ENDED
from leasehold.cli.output import Output
from leasehold.cli.top_frame import make_frame
from leasehold.settings.client import ClientSettings

EVERY_S: Final = 2.0
FIRST_LOOK_S: Final = 15.0
HOT_MAX: Final = 10
HELP: Final = """\
Nodes with their lag and coherency, commits a second, requests that wait, jobs with what they do and
how long they take, tables whose old versions are in use, tables whose rows change most, and what is
not right. A part that can't be reached is named, and the rest is shown. Press q to leave.

Into a file or a pipe it is shown once, after one interval. With --json each frame is a line. Of
--once the exit code is 3 when neither Kafka nor the ledger can be reached."""


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "top", run, HELP)
    parser.add_argument("--once", action="store_true", help="show one frame, and end")
    parser.add_argument(
        "--every",
        type=positive_seconds,
        default=EVERY_S,
        metavar="SECONDS",
        help=f"how often it is drawn (default: {EVERY_S:g})",
    )


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    drawn = output.out.is_terminal and not output.as_json
    once = args.once or not (drawn or output.as_json)
    database = settings.cluster.database
    with ClusterWatch(settings) as watch:
        view = watch.first_look(FIRST_LOOK_S)
        rates = HotTables(view)
        with _keys() as keys:
            if drawn and not once:
                _draw(watch, rates, keys, args.every, database, output)
                return ExitCode.OK
            for told in _frames(watch, rates, keys, args.every, database):
                if output.as_json:
                    output.json(told)
                else:
                    output.out.print(make_frame(told, output.out.width), soft_wrap=False)
                if once:
                    away = {"kafka", "ledger"} <= told["unreachable"].keys()
                    return ExitCode.UNREACHABLE if away else ExitCode.OK
    return ExitCode.OK


def _draw(
    watch: ClusterWatch,
    rates: HotTables,
    keys: Keys,
    every_s: float,
    database: str,
    output: Output,
) -> None:
    with Live(console=output.out, screen=True, auto_refresh=False) as live:
        first = frame_of(watch.view, rates, database)
        live.update(make_frame(first, output.out.width), refresh=True)
        for told in _frames(watch, rates, keys, every_s, database):
            live.update(make_frame(told, output.out.width), refresh=True)


def _frames(
    watch: ClusterWatch, rates: HotTables, keys: Keys, every_s: float, database: str
) -> Iterator[dict[str, Any]]:
    """Yield what is to be shown, every so often, until somebody types q."""
    while keys.wait(every_s) != "q":
        yield frame_of(watch.view, rates, database)


def frame_of(view: ClusterView, rates: HotTables, database: str) -> dict[str, Any]:
    """Return what is shown of a view, as `--json` prints it."""
    told = report(view, unix_us(), tables_max=0)
    names = {seen.event.table_id: seen.event.name for seen in view.tables.values()}
    kept = ("now_us", "gaps", "unreachable", "log", "rates", "nodes", "spark", "changefeed")
    ledger = told["ledger"]
    return {
        "database": database,
        **{name: told[name] for name in kept},
        "ledger": {
            "state": ledger["state"],
            "sessions": len(ledger["sessions"]),
            "leases": sum(session["leases"] for session in ledger["sessions"]),
        },
        "waiting": {queue["lane"]: queue["waiting"] for queue in told["lanes"]},
        "jobs": [job for job in told["jobs"] if job["status"] not in ENDED],
        "old_versions": _old_versions(view),
        "hot_tables": [
            {"table": names.get(table, str(table)), "changes_per_second": rate}
            for table, rate in rates.look(view)
        ],
        "troubles": troubles_of(told),
    }


def _old_versions(view: ClusterView) -> list[dict[str, Any]]:
    """Return the tables of which somebody holds a version below the newest."""
    leases = report(view, unix_us())["leases"]
    return [
        {
            "table": table["table"],
            "version": version["version"],
            "current": table["current"],
            "agents": version["agents"],
        }
        for table in leases
        for version in table["versions"]
        if version["old"]
    ]


class HotTables:
    """Counts changes of rows between looks, by the ends of the topics that tell them."""

    def __init__(self, view: ClusterView) -> None:
        self._ends = dict(view.ends)
        self._seen_ns = boottime_ns()

    def look(self, view: ClusterView) -> list[tuple[int, float]]:
        """Return tables with their changes a second since the last look, the most first."""
        now_ns = boottime_ns()
        seconds = max((now_ns - self._seen_ns) / 1e9, 1e-3)
        before, self._ends, self._seen_ns = self._ends, dict(view.ends), now_ns
        found = [
            (int(name.removeprefix("rows/")), round((end - before[name]) / seconds, 1))
            for name, end in view.ends.items()
            if name.startswith("rows/") and end > before.get(name, end)
        ]
        return sorted(found, key=lambda each: -each[1])[:HOT_MAX]


# ---------------------------------------------------------------- keys


class Keys:
    """The keys that a person types, one by one; `descriptor` None: nobody types."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def wait(self, seconds: float) -> str:
        """Return the key that is typed within the time, "" for none."""
        if self._descriptor is None:
            select.select([], [], [], seconds)
            return ""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        return os.read(self._descriptor, 1).decode(errors="replace") if ready else ""


@contextmanager
def _keys() -> Iterator[Keys]:
    if not sys.stdin.isatty():
        yield Keys(None)
        return
    with single_keys(sys.stdin.fileno()) as keys:
        yield keys


@contextmanager
def single_keys(descriptor: int) -> Iterator[Keys]:
    """Yield the keys of a terminal, which hands over each at once meanwhile."""
    import termios
    import tty

    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield Keys(descriptor)
    finally:
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
