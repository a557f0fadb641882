"""The command `leasehold dashboard`: the dashboard in this process."""

from __future__ import annotations

from leasehold.cli.command import Subparsers, add_process
from leasehold.dashboard.process import run_dashboard


def register(subparsers: Subparsers) -> None:
    add_process(
        subparsers,
        "dashboard",
        run_dashboard,
        "LEASEHOLD_DASHBOARD_PORT is where browsers come (pip install 'leasehold[dashboard]'); exit"
        " code 1 when it can't go on.",
    )
