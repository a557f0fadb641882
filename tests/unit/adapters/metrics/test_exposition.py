"""Goal: /metrics tells what the parts of a process have counted, and nothing can hold it up.

Method: parts made by hand behind a server on a free port of loopback, read by Prometheus' own
parser.
"""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from leasehold.adapters.metrics.exposition import Exposition
from leasehold.adapters.metrics.server import CONNECTIONS_MAX, MetricsServer, serve_metrics
from leasehold.adapters.os.shared_measures import SharedMeasures
from leasehold.model import metrics
from leasehold.model.errors import ConfigurationError
from leasehold.model.measures import Measures, Sample
from leasehold.model.metrics import METRICS, NO_LABELS
from leasehold.settings.environment import ClusterSettings

TIMEOUT_S = 20.0


@pytest.fixture
def measures() -> Measures:
    made = Measures()
    made.add(metrics.COMMITS, 7)
    made.add(metrics.REFUSALS, 2, ("40001", "replay"))
    for seconds in (0.0003, 0.2, 99.0):
        made.observe(metrics.REQUEST_S, seconds)
    return made


@pytest.fixture
def server(measures: Measures) -> Iterator[MetricsServer]:
    exposition = Exposition()
    exposition.add("node", measures.samples)
    made = MetricsServer(exposition, host="127.0.0.1", port=0, names=("m1.example",))
    yield made
    made.close()


def read(server: MetricsServer, path: str = "/metrics", host: str = "") -> str:
    headers = {"Host": host} if host else {}
    request = urllib.request.Request(f"http://{server.address}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        return str(answer.read().decode())


def series(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_scrape_has_counters_and_buckets_that_prometheus_reads(server: MetricsServer) -> None:
    found = series(read(server))
    assert found["leasehold_commits_total", ()] == 7
    labels = (("disposition", "replay"), ("sqlstate", "40001"))
    assert found["leasehold_refusals_total", labels] == 2
    assert found["leasehold_request_seconds_bucket", (("le", "0.25"),)] == 2
    assert found["leasehold_request_seconds_bucket", (("le", "+Inf"),)] == 3
    assert found["leasehold_request_seconds_count", ()] == 3
    assert found["leasehold_request_seconds_sum", ()] == pytest.approx(99.2003)


def test_a_scrape_has_memory_and_files_by_their_usual_names(server: MetricsServer) -> None:
    found = series(read(server))
    assert found["process_resident_memory_bytes", ()] > 1_000_000
    assert found["process_open_fds", ()] > 3


def test_a_part_that_fails_leaves_the_others_and_is_counted(
    measures: Measures, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> list[Sample]:
        raise ZeroDivisionError("a defect")

    exposition = Exposition()
    exposition.add("store", broken)
    exposition.add("node", measures.samples)
    for _ in range(2):
        values = exposition.collect()
    assert values[metrics.COMMITS][NO_LABELS] == 7
    assert values[metrics.SCRAPE_FAILURES]["store",] == 2
    assert [record.getMessage() for record in caplog.records] == [
        "metrics of store are left out: ZeroDivisionError: a defect"
    ]


def test_parts_that_count_the_same_are_added_up(measures: Measures) -> None:
    exposition = Exposition()
    exposition.add("one", measures.samples)
    exposition.add("other", measures.samples)
    values = exposition.collect()
    assert values[metrics.COMMITS][NO_LABELS] == 14
    assert measures.value(metrics.COMMITS) == 7
    exposition.remove("other")
    assert exposition.collect()[metrics.COMMITS][NO_LABELS] == 7


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [
        ("/", "", 404),
        ("/metrics", "evil.example", 403),
        ("/readyz", "evil.example", 403),
        ("/metrics", "m1.example", 200),
        ("/livez", "10.1.2.3:9461", 200),  # an orchestrator asks by the address
        ("/readyz", "10.1.2.3:9461", 503),  # it is starting
    ],
)
def test_who_is_answered(server: MetricsServer, path: str, host: str, status: int) -> None:
    try:
        read(server, path, host)
        found = 200
    except urllib.error.HTTPError as error:
        found = error.code
    assert found == status


def test_more_connections_than_that_are_closed_and_let_others_in_again(
    server: MetricsServer,
) -> None:
    """Each has a thread: who opens thousands and says nothing is not to get them."""
    host, port = server.address.rsplit(":", 1)
    address = (host, int(port))
    silent = [socket.create_connection(address, TIMEOUT_S) for _ in range(CONNECTIONS_MAX)]
    try:
        with socket.create_connection(address, TIMEOUT_S) as further:
            assert further.recv(1) == b"", "it is closed unheard"
    finally:
        for each in silent:
            each.close()
    for _ in range(1_000):
        try:
            assert "leasehold_commits_total 7.0" in read(server)
            break
        except (OSError, urllib.error.URLError):
            continue  # the threads of those that have left end a moment later
    else:
        pytest.fail("nobody is let in again")


def test_without_a_port_nobody_listens() -> None:
    with serve_metrics(ClusterSettings()) as exposition:
        exposition.add("node", Measures().samples)
        assert exposition.collect() == {}


def test_a_port_that_is_taken_is_a_wrong_setting(server: MetricsServer) -> None:
    port = int(server.address.rsplit(":", 1)[1])
    settings = replace(ClusterSettings(), metrics_port=port)
    with (
        pytest.raises(ConfigurationError, match="LEASEHOLD_METRICS_PORT"),
        serve_metrics(settings),
    ):
        pass


def test_each_process_tells_its_version() -> None:
    with serve_metrics(replace(ClusterSettings(), metrics_port=0)) as exposition:
        values = exposition.collect()
    ((_, how),) = values[metrics.BUILD_INFO]
    assert how in ("compiled", "interpreted")
    assert {metric.name for metric in values} <= METRICS.keys()


def test_what_many_have_counted_stays_when_they_end() -> None:
    shared = SharedMeasures()
    one, other = shared.open(), shared.open()
    one.add(metrics.STATEMENTS, 1, ("select",))
    other.add(metrics.STATEMENTS, 2, ("select",))
    shared.close(one)
    shared.close(one)
    (sample,) = shared.samples()
    assert sample.value == 3
