"""Goal: a cluster that is observed is read by a Prometheus of this machine, by the alerts' names.

Method: Kafka, Redis, a master and Prometheus on free ports; what is asked of Prometheus is waited
for.
"""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from infra.deployment import MASTER
from infra.local_cluster import LocalCluster
from infra.observe.alerts import ALERTS
from infra.observe.prometheus import PROMETHEUS, find_program
from infra.ports import LOOPBACK, Ports

DEADLINE_S = 90.0
LOOK_S = 0.5

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long("a broker, a master and a Prometheus of its own"),
    pytest.mark.skipif(
        find_program(PROMETHEUS) is None,
        reason="prometheus is not here: make observe-tools",
    ),
]


def asked(port: int, path: str, **query: str) -> Any:
    url = f"http://{LOOPBACK}:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
        return json.loads(answer.read())["data"]


def test_a_cluster_that_is_observed_is_read_by_prometheus(tmp_path: Path) -> None:
    ports = Ports.free()
    with LocalCluster(tmp_path, ports, services=(MASTER,), observe=True) as cluster:
        cluster.start_all()
        cluster.start_prometheus()
        cluster.start_prometheus()  # it runs already
        give_up = time.monotonic() + DEADLINE_S
        found: list[Any] = []
        while not found:
            assert time.monotonic() < give_up, cluster.log_tail("prometheus")
            time.sleep(LOOK_S)
            found = asked(ports.prometheus, "query", query='leasehold_master{node="m1"}')["result"]
        assert found[0]["value"][1] == "1"
        groups = asked(ports.prometheus, "rules")["groups"]
        names = {rule["name"] for group in groups for rule in group["rules"]}
        assert names == {alert.name for alert in ALERTS}
        assert "prometheus" in cluster.stop_all()
