"""The cluster that these modules share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from infra.local_cluster import LocalCluster
from tests.integration.cluster.replicants import NODES
from tests.support.cluster.system_cluster import Beside


@pytest.fixture(scope="package")
def cluster(beside: Beside) -> Iterator[LocalCluster]:
    with beside.running("replicants", (*NODES, "changefeed")) as made:
        yield made
