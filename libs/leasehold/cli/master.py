"""`leasehold master`: a node that may become master, in this process."""

from __future__ import annotations

import argparse

from leasehold.cli.command import Subparsers, add
from leasehold.cli.output import Output
from leasehold.node.process import run_node
from leasehold.replication.node_settings import NodeSettings
from leasehold.settings.client import ClientSettings


def register(subparsers: Subparsers) -> None:
    add(
        subparsers,
        "master",
        run,
        "LEASEHOLD_NODE is its name, LEASEHOLD_DATA the folder of its store; exit code 1 when it"
        " can't go on.",
        answers=False,
    )


def run(_: argparse.Namespace, __: ClientSettings, ___: Output) -> int:
    return run_node(NodeSettings("", candidate=True, serving=False))
