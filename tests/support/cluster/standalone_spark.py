"""Spark's standalone master and workers, from the jars that pyspark brings, on free ports.

They have nothing of this repository: neither its folder nor PYTHONPATH, so that what workers run
has come to them by Spark's own means. Each is a process of the test's cluster, which ends all of
them with the session, however that ends.
"""

from __future__ import annotations

import json
import signal
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyspark

from infra.child_environment import server_environment
from infra.local_cluster import LocalCluster
from infra.ports import LOOPBACK, find_free_port
from tests.support.cluster.system_cluster import until

HOME: Final = Path(pyspark.__file__).parent
SECRET: Final = "a-secret-that-only-this-cluster-has-0123456789"
_QUICK_START: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_DEPLOY: Final = "org.apache.spark.deploy"


class StandaloneSpark:
    """A master, and workers of one core each that come and go."""

    def __init__(self, servers: LocalCluster, folder: Path) -> None:
        self.folder = folder
        self._processes = servers.processes
        self._conf = folder / "spark.conf"
        self._port, self._page_port = find_free_port(), find_free_port()
        self.pages: dict[str, str] = {}
        """Name of a process → address of its page."""
        self.url = f"spark://{LOOPBACK}:{self._port}"
        self.secret_file = folder / "secret"
        self.secret_file.write_text(f"{SECRET}\n")
        self._conf.write_text(
            "spark.authenticate true\n"
            f"spark.authenticate.secret {SECRET}\n"
            "spark.network.crypto.enabled true\n"
        )
        for path in (self.secret_file, self._conf):
            path.chmod(0o600)

    def start_master(self) -> None:
        """Returns when it answers."""
        self._start("spark-master", f"{_DEPLOY}.master.Master", self._port, self._page_port)
        until(lambda: self.state() is not None, "Spark's master")

    def start_worker(self, number: int) -> None:
        """Returns when the master knows it; at once where it runs."""
        name = self.name_of(number)
        if self._processes.find(name) is not None:
            return
        more = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / name), self.url)
        known = len(self.workers())
        self._start(name, f"{_DEPLOY}.worker.Worker", find_free_port(), find_free_port(), *more)
        until(lambda: len(self.workers()) > known, f"Spark's {name}")

    def kill_worker(self, number: int) -> None:
        """SIGKILL to a worker and all that it has started, as when its machine is gone. Returns
        when the master has seen it."""
        known = len(self.workers())
        self._processes.signal(self.name_of(number), signal.SIGKILL)
        until(lambda: len(self.workers()) < known, f"the end of Spark's {self.name_of(number)}")

    def stop(self) -> None:
        for name in ("spark-worker-1", "spark-worker-2", "spark-master"):
            self._processes.stop(name)

    @staticmethod
    def name_of(number: int) -> str:
        return f"spark-worker-{number}"

    def state(self) -> Any:
        """What the master tells of itself; None where it does not answer."""
        try:
            page = f"http://{LOOPBACK}:{self._page_port}/json/"
            with urllib.request.urlopen(page, timeout=5) as answer:
                return json.loads(answer.read())
        except OSError:
            return None

    def workers(self) -> list[Any]:
        """Those that the master has heard of lately."""
        state = self.state()
        return [] if state is None else [w for w in state["workers"] if w["state"] == "ALIVE"]

    def busy_workers(self) -> list[Any]:
        """Those that run an executor."""
        return [worker for worker in self.workers() if worker["coresused"]]

    def logs(self) -> Iterator[Path]:
        """Yield all that master, workers and executors have written."""
        yield from self._processes.logs.glob("spark-*.log")
        yield from self.folder.glob("spark-worker-*/app-*/*/std*")

    def _start(self, name: str, main: str, port: int, page_port: int, *more: str) -> None:
        self.pages[name] = f"http://{LOOPBACK}:{page_port}/"
        environ = {
            **server_environment({"PATH": _path()}),
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _QUICK_START,
            "SPARK_LAUNCHER_OPTS": _QUICK_START,
            "SPARK_LOCAL_DIRS": str(self.folder / name / "local"),
        }
        command = [
            *(str(HOME / "bin" / "spark-class"), main, "--host", LOOPBACK, "--port", str(port)),
            *("--webui-port", str(page_port), "--properties-file", str(self._conf), *more),
        ]
        self._processes.start(name, command, environ, self.folder)


def _path() -> str:
    return ":".join([str(Path(sys.executable).parent), "/usr/bin", "/bin"])


@contextmanager
def running_standalone(servers: LocalCluster, folder: Path) -> Iterator[StandaloneSpark]:
    """A master with one worker."""
    spark = StandaloneSpark(servers, folder)
    try:
        spark.start_master()
        spark.start_worker(1)
        yield spark
    finally:
        spark.stop()
