"""`python -m services.replicant.main`: a replicant; settings from LEASEHOLD_*."""

import sys

from leasehold.adapters.node_process import run_node
from leasehold.client.sql_listener import sql_of_environment
from leasehold.replication.node import NodeSettings

if __name__ == "__main__":
    sys.exit(run_node(NodeSettings("", candidate=False, serving=True), sql_of_environment))
