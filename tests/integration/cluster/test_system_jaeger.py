"""Goal: a collector that is not ours takes our spans, and shows one trace of them.

Method: real processes that send to Jaeger's own receiver of OTLP; what it has stored is asked of
its interface for people.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import psycopg
import pytest

from infra.local_cluster import ROOT
from infra.ports import LOOPBACK, find_free_port
from leasehold.model.traces import TraceContext
from tests.support.cluster.secure_suite import dsn_of
from tests.support.cluster.system_cluster import Beside, until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.long("a collector built with Go; `make observe-tools`"),
]

PROGRAM: Final = ROOT / ".leasehold" / "observe" / "jaeger"
ASK_S: Final = 5.0
END_S: Final = 10.0
CONFIG: Final = """
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {{receivers: [otlp], exporters: [jaeger_storage_exporter]}}
  telemetry:
    metrics: {{level: none}}
extensions:
  jaeger_storage:
    backends:
      here: {{memory: {{max_traces: 1000}}}}
  jaeger_query:
    storage: {{traces: here}}
    http: {{endpoint: "{host}:{pages}"}}
    grpc: {{endpoint: "{host}:{grpc}"}}
receivers:
  otlp:
    protocols:
      http: {{endpoint: "{host}:{spans}"}}
exporters:
  jaeger_storage_exporter: {{trace_storage: here}}
"""


class Collector(NamedTuple):
    """`spans`: where it takes OTLP over HTTP, `pages`: where it answers people."""

    spans: int
    pages: int

    def ask(self, path: str) -> Any:
        """Return what it answers, None: nothing yet."""
        with (
            suppress(URLError, OSError),
            urlopen(f"http://{LOOPBACK}:{self.pages}{path}", timeout=ASK_S) as answer,
        ):
            return json.load(answer)
        return None


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    assert PROGRAM.is_file(), "no Jaeger is here: run `make observe-tools`"
    folder = tmp_path_factory.mktemp("jaeger")
    spans, pages, grpc = (find_free_port() for _ in range(3))
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(host=LOOPBACK, spans=spans, pages=pages, grpc=grpc))
    made = Collector(spans, pages)
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen([PROGRAM, "--config", config], stdout=out, stderr=out)
    try:
        until(lambda: answers(made, process, log), "Jaeger", seen=log.read_text)
        yield made
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(collector: Collector, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    return collector.ask("/api/services") is not None


def test_a_collector_of_others_has_one_trace_of_a_statement(
    beside: Beside, collector: Collector
) -> None:
    endpoint = f"http://{LOOPBACK}:{collector.spans}/v1/traces"
    environ = {**os.environ, "LEASEHOLD_TRACES_ENDPOINT": endpoint}
    place = TraceContext(secrets.token_hex(16), secrets.token_hex(8), sampled=True)
    with beside.running("jaeger", ("m1", "r1"), environ) as cluster:
        with psycopg.connect(dsn_of(cluster, 0), autocommit=True) as client:
            client.execute("create table seats (id integer primary key, n integer not null)")
            client.execute(f"insert into seats values (1, 0) /*traceparent='{place.to_text()}'*/")
        wanted = {"INSERT", "decide request", "queue", "decide", "append", "apply r1", "answer"}
        until(lambda: wanted <= {*named(collector, place)}, "all spans in Jaeger")
        found = named(collector, place)
    services = {name: span["service"] for name, span in found.items()}
    assert services["INSERT"] == "leasehold-replicant"
    assert services["decide"] == services["decide request"] == "leasehold-master"
    whole = found["decide request"]
    assert found["INSERT"]["parent"] == place.span_id
    assert whole["parent"] == found["INSERT"]["span"]
    assert {found[name]["parent"] for name in ("queue", "decide", "append")} == {whole["span"]}


def named(collector: Collector, place: TraceContext) -> dict[str, dict[str, str]]:
    """Return the spans of a trace by name, as Jaeger tells of them: id, parent's id, service."""
    told = collector.ask(f"/api/traces/{place.trace_id}")
    if told is None:
        return {}
    (trace,) = told["data"]
    return {
        span["operationName"]: {
            "span": span["spanID"],
            "parent": next((each["spanID"] for each in span["references"]), ""),
            "service": trace["processes"][span["processID"]]["serviceName"],
        }
        for span in trace["spans"]
    }
