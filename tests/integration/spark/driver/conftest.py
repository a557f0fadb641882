"""The driver that these modules share. Who kills it starts it again; the last test ends it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from infra.local_cluster import LocalCluster
from tests.integration.spark.driver import ATTEMPTS_MAX
from tests.support.cluster.spark_pipeline import Pipeline, running_pipeline

DATABASE = "spark-driver"


@pytest.fixture(scope="package")
def pipeline(servers: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    # Small micro-batches, so that a kill falls between some of them.
    environ = {
        "LEASEHOLD_BACKFILL_OFFSETS": "10000",
        "LEASEHOLD_BACKFILL_FEW": "1000",
        "LEASEHOLD_RETRY_ATTEMPTS": str(ATTEMPTS_MAX),
        "LEASEHOLD_LOG_LEVEL": "DEBUG",
    }
    data = tmp_path_factory.mktemp(DATABASE)
    with running_pipeline(servers, DATABASE, data, environ) as made:
        yield made
