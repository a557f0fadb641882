"""The cluster that these modules share. None but the last ends a process of it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from infra.local_cluster import LocalCluster
from tests.integration.cluster.changes import NODES, REQUEST_KEY, RETRY_ATTEMPTS
from tests.support.cluster.system_cluster import SPARK, Beside


@pytest.fixture(scope="package")
def cluster(beside: Beside) -> Iterator[LocalCluster]:
    environ = {
        **os.environ,
        "LEASEHOLD_REQUEST_KEY": REQUEST_KEY,
        "LEASEHOLD_RETRY_ATTEMPTS": str(RETRY_ATTEMPTS),
    }
    with beside.running("changes", (*NODES, "changefeed", SPARK), environ) as made:
        yield made
