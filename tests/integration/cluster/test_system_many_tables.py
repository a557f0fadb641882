"""A thousand tables on real parts: every command tells what is so, a table costs the broker a topic
only once it has a row, and what is dropped goes.

Goal: numbers and words, not times; how long things take is what `make bench ONLY=tables` tells.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica, open_replica
from leasehold.admin.watch import ClusterWatch
from leasehold.model.records.requests import Outcome
from leasehold.settings.client import ClientSettings
from tests.support.cluster.system_cluster import (
    SOON_S,
    Beside,
    assert_consistent,
    command,
    named,
    seen,
    settings_of,
    until,
)

pytestmark = pytest.mark.long("makes a thousand tables")

TABLES = 1_000
A_REQUEST = 50
WITH_ROWS = (3, 500, 999)
DROPPED = range(100, 200)
FORGOTTEN_S = 2 * 60.0 + SOON_S
"""The master looks once a minute for what may be forgotten."""
SHORT = {"LEASEHOLD_DROPPED_MS": "1", "LEASEHOLD_HISTORY_MS": "1", "LEASEHOLD_ROW_HISTORY_MS": "0"}


@pytest.fixture(scope="module")
def cluster(beside: Beside) -> Iterator[LocalCluster]:
    services = ("m1", "r1", "changefeed")
    with beside.running("tables", services, {**os.environ, **SHORT}) as made:
        with ChangeProducer(settings_of(made, "setup")) as producer:
            for first in range(0, TABLES, A_REQUEST):
                numbers = range(first, first + A_REQUEST)
                asked(producer, ";".join(map(made_table, numbers)))
            for number in WITH_ROWS:
                row = {"table": f"t{number}", "op": "insert", "key": [1], "values": {"n": 1}}
                assert producer.submit(row).result(SOON_S).lsn
        yield made


def made_table(number: int) -> str:
    return f"CREATE TABLE t{number} (id bigint PRIMARY KEY, a text, n bigint NOT NULL)"


def asked(producer: ChangeProducer, sql: str) -> Outcome:
    outcome = producer.submit({"sql": sql}).result(SOON_S)
    assert outcome.lsn, outcome
    return outcome


def rows_topics(settings: ClientSettings) -> set[int]:
    """The ids of the tables that have a topic."""
    prefix = settings.topics.rows(0).name.removesuffix("0")
    known = AdminClient(settings.kafka.librdkafka()).list_topics(timeout=SOON_S).topics
    return {int(name.removeprefix(prefix)) for name in known if name.startswith(prefix)}


@pytest.fixture(scope="module")
def replica(cluster: LocalCluster, settings: ClientSettings) -> Iterator[Replica]:
    with open_replica(named(settings, "many")) as made:
        yield made


def test_every_command_tells_what_is_so(cluster: LocalCluster, replica: Replica) -> None:
    names = {f"t{number}" for number in range(TABLES)}
    assert {table.name for table in replica.tables()} == names
    status = command(cluster, "status", "--json")
    assert (status.code, status.json["troubles"]) == (0, [])
    assert status.json["tables_there"] == len(status.json["tables"]) == TABLES
    told = [
        line.split()[0]
        for line in command(cluster, "versions").out.splitlines()
        if "version" in line
    ]
    assert set(told) == names
    assert "t999 version 1" in command(cluster, "versions", "t999").out
    assert command(cluster, "jobs").code == 0
    (lease,) = command(cluster, "leases", "t998", "--json").json["leases"]
    assert lease["versions"][0]["leases"] >= 1
    assert command(cluster, "check", "t998").code == 0
    assert_consistent(cluster, ("m1", "r1"))


def test_a_table_has_a_topic_once_it_has_a_row(settings: ClientSettings, replica: Replica) -> None:
    ids = {table.name: table.table_id for table in replica.tables()}
    expected = {ids[f"t{number}"] for number in WITH_ROWS}
    until(lambda: rows_topics(settings) == expected, "the rows topics of three tables")


def test_tables_that_were_dropped_go(
    cluster: LocalCluster, settings: ClientSettings, watch: ClusterWatch, replica: Replica
) -> None:
    ids = {table.name: table.table_id for table in replica.tables()}
    # The newest job is kept, and its table with it, so that no number is given twice.
    names = [f"t{number}" for number in (WITH_ROWS[0], *DROPPED)]
    gone = {ids[name] for name in names}
    with ChangeProducer(settings_of(cluster, "dropper")) as producer:
        for name in names:
            asked(producer, f"DROP TABLE {name}")
        seen(watch, lambda view: not gone & view.tables.keys(), "the tables gone")
        assert command(cluster, "versions", "t150").code == 1
        numbers = iter(range(10_000))

        def forgotten() -> bool:
            # By the log's time, which rises with what is written.
            row = {"table": "t500", "op": "upsert", "key": [2], "values": {"n": next(numbers)}}
            assert producer.submit(row).result(SOON_S).lsn
            return ids[f"t{WITH_ROWS[0]}"] not in rows_topics(settings)

        until(forgotten, "the topic of a dropped table gone", FORGOTTEN_S)
    assert rows_topics(settings) == {ids[f"t{number}"] for number in WITH_ROWS[1:]}
    status = command(cluster, "status", "--json")
    assert status.json["tables_there"] == TABLES - len(gone)
