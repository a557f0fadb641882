"""Start a node that may become master: `python -m services.master.main`, settings from
LEASEHOLD_*."""

import sys

from leasehold.node.process import run_node
from leasehold.replication.node_settings import NodeSettings

if __name__ == "__main__":
    sys.exit(run_node(NodeSettings("", candidate=True, serving=False)))
