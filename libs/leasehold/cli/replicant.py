"""`leasehold replicant`: a replicant in this process, with SQL where a port is named."""

from __future__ import annotations

import argparse

from leasehold.cli.command import Subparsers, add
from leasehold.cli.output import Output
from leasehold.node.process import run_node
from leasehold.replication.node_settings import NodeSettings
from leasehold.settings.client import ClientSettings
from leasehold.sql_session.listener import sql_of_environment


def register(subparsers: Subparsers) -> None:
    add(
        subparsers,
        "replicant",
        run,
        "LEASEHOLD_NODE is its name, LEASEHOLD_DATA the folder of its store, LEASEHOLD_SQL_PORT"
        " where PostgreSQL clients come (pip install 'leasehold[server]'); exit code 1 when it"
        " can't go on.",
        answers=False,
    )


def run(_: argparse.Namespace, __: ClientSettings, ___: Output) -> int:
    return run_node(NodeSettings("", candidate=False, serving=True), sql_of_environment)
