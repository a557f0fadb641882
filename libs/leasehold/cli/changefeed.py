"""The command `leasehold changefeed`: the changefeed in this process."""

from __future__ import annotations

from leasehold.changefeed.process import run_changefeed
from leasehold.cli.command import Subparsers, add_process


def register(subparsers: Subparsers) -> None:
    add_process(
        subparsers,
        "changefeed",
        run_changefeed,
        "Rows, versions, jobs and dead letters of LEASEHOLD_DATABASE; a second one fences the"
        " first. Exit code 1 when it can't go on.",
    )
