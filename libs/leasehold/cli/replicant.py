"""The command `leasehold replicant`: a replicant in this process, with SQL where a port is
named."""

from __future__ import annotations

from typing import Final

from leasehold.cli.command import Subparsers, add_process
from leasehold.node.process import run_node
from leasehold.replica.http_listener import http_of_environment
from leasehold.replication.node_settings import NodeSettings
from leasehold.sql_session.listener import sql_of_environment

LISTENERS: Final = (sql_of_environment, http_of_environment)
"""Who may listen beside the node."""


def register(subparsers: Subparsers) -> None:
    add_process(
        subparsers,
        "replicant",
        lambda: run_node(
            NodeSettings("", candidate=False, serving=True), sql_of_environment, http_of_environment
        ),
        "LEASEHOLD_NODE is its name, LEASEHOLD_DATA the folder of its store, LEASEHOLD_SQL_PORT"
        " where PostgreSQL clients come (pip install 'leasehold[server]'), LEASEHOLD_HTTP_PORT"
        " where reads and events are asked for over HTTP; exit code 1 when it can't go on.",
    )
