"""The command `leasehold master`: a node that may become master, in this process."""

from __future__ import annotations

from leasehold.cli.command import Subparsers, add_process
from leasehold.node.process import run_node
from leasehold.replication.node_settings import NodeSettings


def register(subparsers: Subparsers) -> None:
    add_process(
        subparsers,
        "master",
        lambda: run_node(NodeSettings("", candidate=True, serving=False)),
        "LEASEHOLD_NODE is its name, LEASEHOLD_DATA the folder of its store; exit code 1 when it"
        " can't go on.",
    )
