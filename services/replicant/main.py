"""Start a replicant: `python -m services.replicant.main`, settings from LEASEHOLD_*."""

import sys

from leasehold.node.process import run_node
from leasehold.replica.http_listener import http_of_environment
from leasehold.replication.node_settings import NodeSettings
from leasehold.sql_session.listener import sql_of_environment

if __name__ == "__main__":
    sys.exit(
        run_node(
            NodeSettings("", candidate=False, serving=True), sql_of_environment, http_of_environment
        )
    )
