"""A replica of one table beside full ones, on Kafka and Redis; and reads of a replicant over HTTP.

Goal: it begins with a copy of what it holds, keeps it between runs, is as current as the others,
and says what it lacks.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPResponse, HTTPSConnection
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from infra.ports import find_free_port
from leasehold import ChangeProducer, open_replica
from leasehold.admin.parts import part_words
from leasehold.admin.watch import ClusterWatch
from leasehold.model.errors import ConfigurationError, NotHeldHere
from leasehold.settings.replica import ReplicaSettings
from tests.support.cluster.system_cluster import (
    Beside,
    assert_consistent,
    command,
    settings_of,
    until,
)
from tests.support.cluster.system_load import ALONE, Load, add_one, made_counters
from tests.support.pgwire.certificates import Certificate, make_certificate

NODES = ("m1", "r1")
KEYS = range(6)
TOKEN = "0123456789abcdef0123456789abcdef"
HTTP_PORT = find_free_port()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("http"), "r1")


@pytest.fixture(scope="module")
def cluster(beside: Beside, certificate: Certificate) -> Iterator[LocalCluster]:
    environ = {
        **os.environ,
        "LEASEHOLD_HTTP_TLS_CERT": str(certificate.cert),
        "LEASEHOLD_HTTP_TLS_KEY": str(certificate.key),
        "LEASEHOLD_HTTP_PORT": str(HTTP_PORT),
        "LEASEHOLD_HTTP_TOKEN": TOKEN,
    }
    with beside.running("partial", (*NODES, "changefeed"), environ) as made:
        settings = settings_of(made, "setup")
        made_counters(settings, (*KEYS, ALONE))
        with ChangeProducer(settings) as producer:
            sql = "CREATE TABLE bags (id bigint PRIMARY KEY, words text)"
            assert producer.submit({"sql": sql}).result().lsn
            for n in range(50):
                row = {"table": "bags", "op": "insert", "key": {"id": n}}
                values = {"values": {"words": "x" * 5_000}}
                assert producer.submit({**row, **values}).result().lsn
        yield made


def connected(certificate: Certificate) -> HTTPSConnection:
    trusting = ssl.create_default_context(cafile=certificate.cert)
    return HTTPSConnection("localhost", HTTP_PORT, timeout=20, context=trusting)


def get(certificate: Certificate, path: str, **headers: str) -> tuple[int, Any]:
    connection = connected(certificate)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def next_data(answer: HTTPResponse, kind: str) -> Any:
    """Return the data of the next event of a kind."""
    while line := answer.readline():
        if line == f"event: {kind}\n".encode():
            return json.loads(answer.readline().removeprefix(b"data: "))
    raise AssertionError(f"the stream has ended before {kind}")


def test_a_replica_of_one_table_under_load(
    cluster: LocalCluster, watch: ClusterWatch, producer: ChangeProducer, load: Load
) -> None:
    settings = settings_of(cluster, "part")
    load.more(20)
    with open_replica(settings, tables=["t"]) as replica:
        assert replica.part.words() == "t"
        assert replica.store.path.stat().st_size < 50 * 5_000, "nothing of bags was copied"
        for _ in range(5):
            add_one(producer)
            with open_replica(settings_of(cluster, "full")) as full:
                assert replica.get("t", ALONE) == full.get("t", ALONE)
        with pytest.raises(NotHeldHere, match="'bags': it holds only t"):
            replica.get("bags", 1)
        replica.transact(lambda tx: tx.update("t", ALONE, {"n": 1_000}))
        assert replica.query("SELECT n FROM t WHERE id = $1", [ALONE]) == [{"n": 1_000}]
        until(lambda: part_words(watch.view, "part") == "t", "what it holds to be told")
        assert any(n["holds"] == "t" for n in command(cluster, "status", "--json").json["nodes"])
        load.more(50)
    assert_consistent(cluster, NODES)


def test_it_keeps_its_store_and_begins_anew_with_other_tables(
    cluster: LocalCluster, producer: ChangeProducer
) -> None:
    settings = settings_of(cluster, "part")
    with open_replica(settings, tables=["t"]) as replica:
        first = replica.store.path.stat().st_ino
        add_one(producer)
    with open_replica(settings, tables=["t"]) as replica:
        assert replica.store.path.stat().st_ino == first
    wanted = ReplicaSettings(tables=("t",), where=(("bags", "id >= 10 AND id < 20"),))
    with open_replica(replace(settings, replica=wanted)) as replica:
        assert replica.store.path.stat().st_ino != first
        assert len(list(replica.scan("bags", 10, 20))) == 10
        with pytest.raises(NotHeldHere):
            replica.get("bags", 20)
    with pytest.raises(ConfigurationError, match="'nothing', which does not exist"):
        open_replica(settings, tables=["nothing"])
    with open_replica(settings) as replica:
        assert replica.part.is_whole
        assert len(replica.query("SELECT id FROM bags")) == 50


def test_a_replicant_is_read_over_http(
    cluster: LocalCluster, producer: ChangeProducer, certificate: Certificate
) -> None:
    """With a certificate of its own."""
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert get(certificate, "/v1/status")[0] == 401
    lsn = add_one(producer)
    status, told = get(certificate, f"/v1/tables/t/row?id={ALONE}&after_lsn={lsn}", **bearer)
    assert (status, told["row"]["id"]) == (200, ALONE)
    connection = connected(certificate)
    connection.request("GET", "/v1/tables/t/changes", headers=bearer)
    answer = connection.getresponse()
    assert answer.status == 200
    begun = next_data(answer, "begin")
    lsn = add_one(producer)
    told = next_data(answer, "row")
    while told["key"] != {"id": ALONE}:
        told = next_data(answer, "row")
    assert told["lsn"] == lsn > begun["lsn"]
    at = next_data(answer, "at")
    assert at["coherent"]
    assert at["lsn"] >= lsn
    answer.close()
    connection.close()
