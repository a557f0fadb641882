"""Goal: with Spark on Kubernetes the driver's pod makes executors, which run Python tasks as
nobody, with a closed root, and takes them off when it ends; the chart's Role is enough for that.

Method: the rendered manifests' own driver beside as much of Kubernetes' API as it asks for. It is
ready when tasks have run, so that needs executors.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from infra.chart.rendering import manifests
from infra.secure.certificates import Authority
from tests.support.containers.kubelet import ACCOUNT, Kubelet
from tests.support.containers.kubernetes_api import KubernetesApi, serving
from tests.support.containers.pod_network import PodNetwork, open_to_users, why_not_here
from tests.support.containers.servers import a_broker, a_redis

WHY_NOT: Final = why_not_here()
DRIVER: Final = "leasehold-spark-0"
pytestmark = [
    pytest.mark.long("a driver and an executor start JVMs and Python, which takes a minute"),
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return open_to_users(tmp_path_factory.mktemp("spark"))


@pytest.fixture(scope="module")
def kubelet(folder: Path) -> Iterator[Kubelet]:
    authority = Authority(folder / "authority", ["kubernetes.default.svc"])
    (folder / "authority").mkdir()
    authority.make("kubernetes")
    given = {
        "leasehold-snapshots": {"token": b"not used"},
        "leasehold-object-store": {"AWS_REGION": b"nowhere"},
        ACCOUNT: {
            "token": secrets.token_hex(16).encode(),
            "ca.crt": (folder / "authority" / "ca.pem").read_bytes(),
        },
    }
    with (
        PodNetwork(folder) as network,
        a_broker(network, folder, ("kafka",), 9092, {"offsets.topic.replication.factor": "1"}),
        a_redis(network, folder, "redis"),
        # One broker stands for three.
        Kubelet(
            manifests("spark"), network, folder, given, {"LEASEHOLD_REPLICATION_FACTOR": "1"}
        ) as made,
    ):
        made.run_job(made.find("Job", "leasehold-topics"))
        yield made


def test_the_driver_has_executors_and_takes_them_off(kubelet: Kubelet, folder: Path) -> None:
    role = kubelet.find("Role", "leasehold-spark")
    owner = kubelet.find("StatefulSet", "leasehold-spark")
    ((name, spec),) = kubelet.pods_of(owner)
    assert name == DRIVER
    account = kubelet.secrets[ACCOUNT]
    api = KubernetesApi(kubelet, account["token"].decode(), role["rules"])
    api.put("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": DRIVER}, "spec": spec})
    authority = folder / "authority"
    with serving(api, kubelet, authority / "kubernetes.pem", authority / "kubernetes.key"):
        driver = kubelet.start(DRIVER, spec, owner)
        assert kubelet.await_probe(driver, "readinessProbe") == "it is ready\n"
        executors = [each for each in kubelet.pods if "-exec-" in each]
        assert executors, "its tasks have run there"
        (executor,) = executors
        assert kubelet.pods[executor].container.code is None
        described = kubelet.pods[executor].container.described
        assert (described.uid, described.read_only_root) == (10_001, True)
        assert described.environment["AWS_REGION"] == "nowhere"
        assert kubelet.stop(driver) == 0, driver.container.tail()
        assert api.refused == []
        assert kubelet.pods[executor].container.wait(30) is not None
