"""The cluster that these modules share. Who ends a process of it starts it again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from infra.local_cluster import LocalCluster
from tests.integration.faults.masters import BY_SQL, HANDOVER_KEYS, SERVICES
from tests.support.cluster.system_cluster import Beside, settings_of
from tests.support.cluster.system_load import ALONE, made_counters


@pytest.fixture(scope="package")
def cluster(beside: Beside) -> Iterator[LocalCluster]:
    with beside.running("masters", SERVICES) as made:
        made_counters(settings_of(made, "setup"), (*HANDOVER_KEYS, BY_SQL, ALONE))
        yield made
