"""The command `leasehold dashboard`: the dashboard in this process."""

from __future__ import annotations

import argparse

from leasehold.cli.command import Subparsers, add
from leasehold.cli.output import Output
from leasehold.dashboard.process import run_dashboard
from leasehold.settings.client import ClientSettings


def register(subparsers: Subparsers) -> None:
    add(
        subparsers,
        "dashboard",
        run,
        "LEASEHOLD_DASHBOARD_PORT is where browsers come (pip install 'leasehold[dashboard]'); exit"
        " code 1 when it can't go on.",
        answers=False,
    )


def run(_: argparse.Namespace, __: ClientSettings, ___: Output) -> int:
    return run_dashboard()
