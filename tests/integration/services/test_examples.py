"""Goal: two services that know nothing of Leasehold but its documents decode every row right while
the table is altered under them.

Method: the real master and changefeed on real Kafka, a writer that never stops, followers as
processes of their own; each row they print is held against the version that it names.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer
from leasehold.admin.watch import ClusterWatch
from leasehold.settings.client import ClientSettings
from tests.support.cluster.secure_suite import not_in_secure_mode
from tests.support.cluster.system_cluster import Beside, command, settings_of, until
from tests.support.cluster.system_followers import EXAMPLES, Follower, following
from tests.support.cluster.system_jobs import begin, ended

SERVICES = ("m1", "changefeed")

# What is done to the table under the followers, and the columns that a row has afterwards.
CHANGES = (
    ("ADD COLUMN b text", {"id", "a", "n", "b"}),
    ("RENAME COLUMN a TO c", {"id", "c", "n", "b"}),
    ("DROP COLUMN b", {"id", "c", "n"}),
)


@pytest.fixture(scope="module")
def cluster(beside: Beside) -> Iterator[LocalCluster]:
    with beside.running("examples", SERVICES) as made:
        yield made


@pytest.fixture(scope="module")
def settings(cluster: LocalCluster) -> ClientSettings:
    return settings_of(cluster, "tester")


@pytest.fixture(scope="module")
def producer(settings: ClientSettings) -> Iterator[ChangeProducer]:
    with ChangeProducer(settings) as made:
        yield made


@not_in_secure_mode("the examples are short programs for a Kafka that asks nobody who he is")
@pytest.mark.parametrize("example", EXAMPLES)
def test_every_row_is_decoded_under_the_version_that_its_image_names(
    cluster: LocalCluster,
    settings: ClientSettings,
    producer: ChangeProducer,
    tmp_path: Path,
    example: str,
) -> None:
    table = f"t_{example}"
    sql = f"CREATE TABLE {table} (id bigint PRIMARY KEY, a text, n int NOT NULL DEFAULT 0)"
    assert producer.submit({"sql": sql}).result(90).lsn
    insert = {"table": table, "op": "insert", "key": {"id": 1}, "values": {"a": "first"}}
    assert producer.submit(insert).result(90).lsn
    # A table is there for those who follow it once the changefeed has told of it.
    until(lambda: command(cluster, "versions", "history", table).code == 0, "a version of it")
    stop = threading.Event()
    writer = threading.Thread(target=write_until, args=(producer, table, stop))
    with following(cluster, example, table, tmp_path / "out") as follower:
        until(lambda: bool(follower.rows), f"a row from {example}")
        writer.start()
        try:
            with ClusterWatch(settings) as watch:
                watch.first_look(30)
                for action, shape in CHANGES:
                    ended(watch, begin(producer, f"ALTER TABLE {table} {action}"))
                    # A job can be quicker than the next write: a row is seen in each new shape.
                    until(partial(has_told, follower, shape), f"a row of {sorted(shape)}")
        finally:
            stop.set()
            writer.join()
        delete = {"table": table, "op": "delete", "key": {"id": 1}}
        assert producer.submit(delete).result(90).lsn
        until(lambda: "deleted" in follower.told[-1], f"the deletion from {example}")
        told = follower.told
    assert told[-1] == {"table": table, "deleted": {"id": 1}}
    assert_right(told, public_columns(cluster, table))


def has_told(follower: Follower, shape: set[str]) -> bool:
    return any(each["row"].keys() == shape for each in follower.rows)


def write_until(producer: ChangeProducer, table: str, stop: threading.Event) -> None:
    update = {"table": table, "op": "update", "key": {"id": 1}}
    while not stop.is_set():
        producer.submit({**update, "values": {"n": {"expr": "n + 1"}}}).result(90)


def public_columns(cluster: LocalCluster, table: str) -> dict[int, set[str]]:
    """Of each version, from what the command says changed since the first."""
    found: dict[int, set[str]] = {}
    said = command(cluster, "versions", "history", table, "--json")
    assert said.code == 0, said.err
    columns: dict[int, str] = {}
    for line in said.out.splitlines():
        event = json.loads(line)
        for change in event["changes"]:
            if change["kind"] == "column":
                columns.pop(change["id"], None)
                if change["after"] == "public":
                    columns[change["id"]] = change["name"]
        found[event["version"]] = set(columns.values())
    return found


def assert_right(told: list[dict[str, Any]], columns: dict[int, set[str]]) -> None:
    rows = [each for each in told if "row" in each]
    assert {name for names in columns.values() for name in names} == {"id", "a", "n", "b", "c"}
    for each in rows:
        row = each["row"]
        assert row.keys() == columns[each["version"]], each
        assert row["id"] == 1
        assert row.get("a", row.get("c")) == "first", each
        assert row.get("b") is None, each
    counted = [each["row"]["n"] for each in rows]
    assert counted == sorted(counted)
    assert len({each["version"] for each in rows}) >= 4, "a row of each shape was seen"
    heard = [each["version"] for each in told if "changed" in each]
    assert heard == sorted(columns)


def test_the_command_tells_versions_apart(cluster: LocalCluster, producer: ChangeProducer) -> None:
    assert producer.submit({"sql": "CREATE TABLE diff (id int PRIMARY KEY)"}).result(90).lsn
    until(lambda: command(cluster, "versions", "diff").code == 0, "a table that is named diff")
    said = command(cluster, "versions", "diff", "diff", "1", "2")
    assert said.code == 1
    assert "table 'diff' has no version 2; the newest is 1" in said.err
