"""The dashboard as a process: its page, its state, without Kafka too."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from infra.ports import find_free_port
from leasehold import __version__
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.records.acks import ProcessReport
from leasehold.model.records.log import Claim
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings, RedisSettings
from tests.support.changefeed.changefeed_process import published
from tests.support.cluster.secure_suite import access_of
from tests.support.cluster.stage import Stage, ack, deadline_ns, flights
from tests.support.cluster.system_cluster import until

ROOT = Path(__file__).parents[3]
START_S = 60.0
STOP_S = 30.0


class Dashboard:
    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, path: str, host: str | None = None) -> tuple[int, str, bytes]:
        """Status, content type, body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers={"Host": host} if host else {})
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type", ""), answer.read()
        finally:
            connection.close()

    def state(self) -> dict[str, Any]:
        told = json.loads(self.get("/api/state")[2])
        assert isinstance(told, dict)
        return told

    def wait_for(self, wanted: str, give_up_s: float = START_S) -> dict[str, Any]:
        """Until the state has something under the name `wanted`."""
        give_up_ns = deadline_ns(give_up_s)
        told: dict[str, Any] = {}
        while boottime_ns() < give_up_ns:
            told = self.state()
            if told[wanted]:
                return told
        raise AssertionError(f"nothing under {wanted!r} in {give_up_s} s: {told}")


@contextmanager
def running(folder: Path, access: Mapping[str, str]) -> Iterator[Dashboard]:
    port = find_free_port()
    ready = folder / "ready"
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'libs'}",
        **access,
        "LEASEHOLD_DATA": str(folder),
        "LEASEHOLD_DASHBOARD_PORT": str(port),
        "LEASEHOLD_READY_FILE": str(ready),
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "services.dashboard.main"],
            env=environment,
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )
        try:
            give_up_ns = deadline_ns(START_S)
            while not ready.exists():
                assert process.poll() is None, (folder / "log").read_text()
                assert boottime_ns() < give_up_ns, (folder / "log").read_text()
            yield Dashboard(port)
            process.terminate()
            assert process.wait(STOP_S) == 0, (folder / "log").read_text()
        finally:
            process.kill()
            process.wait()
    assert "Traceback" not in (folder / "log").read_text()


def reports(kafka: KafkaSettings, topics: Topics) -> list[ProcessReport]:
    said = [MessagePackCodec().decode(r.value or b"") for r in published(kafka, topics.acks.name)]
    return [each for each in said if isinstance(each, ProcessReport)]


def test_the_page_and_the_state_of_a_database(
    tmp_path: Path,
    servers: LocalCluster,
    kafka: KafkaSettings,
    redis_settings: RedisSettings,
    database: str,
    topics: Topics,
) -> None:
    stage = Stage(kafka, topics)
    stage.put(topics.log.name, Claim(1, b"stage-01", b"", "m1"))
    stage.put(topics.acks.name, ack("r1", offset=1))
    stage.version(flights(1), 1)
    stage.flush()
    with running(tmp_path, access_of(servers, "dashboard", database)) as dashboard:
        status, kind, page = dashboard.get("/")
        assert (status, kind.split(";")[0]) == (200, "text/html")
        assert b"Leasehold" in page
        assert b"//" not in page.replace(b"<!doctype", b""), "nothing is loaded from elsewhere"
        for path, expected in (
            ("/page/main.js", "text/javascript"),
            ("/page/page.css", "text/css"),
        ):
            assert path.encode() in page
            status, kind, _ = dashboard.get(path)
            assert (status, kind.split(";")[0]) == (200, expected)
        assert dashboard.get("/page/index.html")[0] == 404
        assert dashboard.get("/page/..%2Fmain.py")[0] == 404
        assert dashboard.get("/api/state", host="elsewhere.example")[0] == 403
        told = dashboard.wait_for("tables")
        assert told["database"] == database
        assert told["log"]["master"] == "m1"
        assert [node["node"] for node in told["nodes"]] == ["r1"]
        assert told["tables"][0]["table"] == "flights"
        assert told["unreachable"] == {}
        # It says so of itself by a thread of its own, which the page does not wait for.
        until(lambda: bool(reports(kafka, topics)), "the report of the dashboard's process")
        own = reports(kafka, topics)[0]
        assert (own.role, own.release) == ("dashboard", __version__)
    stage.close()


@pytest.mark.slow
def test_without_kafka_and_redis_it_is_up_and_says_so(tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{find_free_port()}"
    nowhere = {"LEASEHOLD_KAFKA": nobody, "LEASEHOLD_REDIS": f"redis://{nobody}/0"}
    with running(tmp_path, nowhere) as dashboard:
        told = dashboard.wait_for("unreachable")
        while len(told["unreachable"]) < 2:
            told = dashboard.wait_for("unreachable")
        assert set(told["unreachable"]) == {"kafka", "ledger"}
        assert nobody in told["unreachable"]["kafka"]
        assert told["ledger"]["state"] == "away"
