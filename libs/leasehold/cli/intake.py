"""The command `leasehold intake`: runs an intake of other systems' events, and tells how far those
that there are have come."""

from __future__ import annotations

import argparse
from typing import Any, Final

from leasehold.admin.durations import span
from leasehold.admin.intakes import Intakes, IntakeView, PartitionPlace
from leasehold.cli.command import Subparsers, add, finish
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output, clock_time
from leasehold.intake.process import run_intake
from leasehold.settings.client import ClientSettings

MORE: Final = """\
An intake reads topics of others, changes in Debezium's envelope or plain rows, and makes change
requests of them, each once. What it reads, and how, LEASEHOLD_INTAKE_ROUTES and its like say. An
event that can't be read is a dead letter (leasehold dead-letter list).

  LEASEHOLD_INTAKE_ROUTES=shop.public.orders=orders leasehold intake run
"""


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "intake", show_status, MORE)
    actions = parser.add_subparsers(metavar="ACTION")
    shown = actions.add_parser(
        "status",
        help="how far each intake is, and what it waits for (also without an action); exit code 1"
        " where one is silent or waits",
    )
    finish(shown, show_status)
    ran = actions.add_parser("run", help="take events until SIGTERM")
    ran.set_defaults(run=lambda args, settings, output: run_intake())


def show_status(_: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    views = Intakes(settings).views()
    good = all(view.is_at_work and not view.held for view in views)
    code = ExitCode.OK if good else ExitCode.NOT_RIGHT
    if output.as_json:
        output.json([_report(view) for view in views])
        return code
    rows = []
    for view in views:
        rows += [_row(view, place) for place in view.places]
        if not view.places:
            rows.append([view.name, "", "", "", "", "", _words(view, None)])
    heads = ["intake", "topic", "table", ">partition", ">next", ">waiting", "state"]
    output.table(heads, rows, "no intake (leasehold intake run)")
    for view in views:
        counts = view.state.get("counts", {})
        if counts:
            output.line(
                f"{view.name}: since its start {counts.get('events', 0):,} events,"
                f" {counts.get('requests', 0):,} change requests, {counts.get('letters', 0):,} dead"
                f" letters, {counts.get('passed_over', 0):,} passed over",
                "dim",
            )
        for hold in view.held:
            if hold.get("partition") is None:
                output.line(f"{view.name}: topic {hold['topic']} {_hold_words(hold)}", "yellow")
    return code


def _row(view: IntakeView, place: PartitionPlace) -> list[str]:
    return [
        view.name,
        place.topic,
        str(view.state.get("routes", {}).get(place.topic, "not read any more")),
        str(place.partition),
        f"{place.next:,}",
        "not known" if place.lag is None else f"{place.lag:,}",
        _words(view, place),
    ]


def _words(view: IntakeView, place: PartitionPlace | None) -> str:
    silent_ms = view.silent_ms
    if silent_ms is None:
        return "has said nothing yet"
    if not view.is_at_work:
        return f"silent for {span(silent_ms)}: is it running?"
    for hold in view.held:
        if place is not None and (hold["topic"], hold["partition"]) == place[:2]:
            return _hold_words(hold)
    return "at work"


def _hold_words(hold: Any) -> str:
    return f"waits since {clock_time(int(hold['since_us']))} for {hold['waits_for']}"


def _report(view: IntakeView) -> dict[str, Any]:
    return {
        "name": view.name,
        "at_work": view.is_at_work,
        "silent_ms": view.silent_ms,
        "state": dict(view.state),
        "places": [
            {
                "topic": place.topic,
                "partition": place.partition,
                "next": place.next,
                "end": place.end,
                "waiting": place.lag,
            }
            for place in view.places
        ],
    }
