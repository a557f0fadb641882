"""The command `leasehold changefeed`: the changefeed in this process."""

from __future__ import annotations

import argparse

from leasehold.changefeed.process import run_changefeed
from leasehold.cli.command import Subparsers, add
from leasehold.cli.output import Output
from leasehold.settings.client import ClientSettings


def register(subparsers: Subparsers) -> None:
    add(
        subparsers,
        "changefeed",
        run,
        "Rows, versions, jobs and dead letters of LEASEHOLD_DATABASE; a second one fences the"
        " first. Exit code 1 when it can't go on.",
        answers=False,
    )


def run(_: argparse.Namespace, __: ClientSettings, ___: Output) -> int:
    return run_changefeed()
