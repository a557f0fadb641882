"""The cluster that these modules share, with Kafka and Redis of its own. Who ends something of it
starts it again."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from infra.local_cluster import LocalCluster
from tests.integration.cluster.fast import (
    LOG_KEYS,
    NODES,
    OF_CLIENTS,
    ORDERED,
    REQUEST_KEYS,
    WIRE,
)
from tests.support.cluster.system_cluster import running, settings_of
from tests.support.cluster.system_load import ALONE, made_counters


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    environ = {**os.environ, "LEASEHOLD_LOG_LEVEL": "DEBUG"}
    keys = (*LOG_KEYS, *REQUEST_KEYS, ORDERED, *OF_CLIENTS, ALONE, WIRE)
    with running(tmp_path_factory.mktemp("fast"), (*NODES, "changefeed"), environ) as made:
        made_counters(settings_of(made, "setup"), keys)
        yield made
