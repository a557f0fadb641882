"""Goal: a database that writers never left alone comes back under a new name as it was at an LSN,
goes on from there, and answers a repeated request as it was answered before.

Method: real processes; the command as a person types it. What the two databases have is compared by
`leasehold check` at the LSN in question, and what the changefeed tells by its topic of rows.
Backups are in a folder, and in an object store with a server of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from infra.local_cluster import LocalCluster
from infra.ports import Ports
from leasehold import ChangeProducer
from leasehold.adapters.codec.published import restore_image
from leasehold.adapters.codec.records import restore_row_key, row_key
from leasehold.adapters.kafka.whole_topic import read_compacted
from leasehold.adapters.os.clock import new_request_id
from leasehold.model.records.events import RowImage
from leasehold.model.records.requests import Outcome
from leasehold.model.topics import Topics
from tests.support.cluster.secure_suite import not_in_secure_mode
from tests.support.cluster.storage_servers import running_s3
from tests.support.cluster.system_cluster import (
    Beside,
    assert_consistent,
    command,
    settings_of,
    until,
)
from tests.support.cluster.system_load import Load, made_counters, settled
from tests.support.documents.document_run import ROOT, run_document

pytestmark = [
    pytest.mark.long("backs a whole cluster up under writers, and starts another from it"),
    not_in_secure_mode("who restores makes topics of another database, whose users there are not"),
]

NODES = ("m1", "r1", "changefeed")
KEYS = range(8)


class World(NamedTuple):
    """`place`: where the backups are, as the command is told it."""

    cluster: LocalCluster
    place: str
    key: Path
    repeated: dict[str, Any]
    outcome: Outcome
    lsn: int
    sums: dict[str, str]


def backup(cluster: LocalCluster, *words: str) -> Any:
    said = command(cluster, "backup", *words, "--json")
    assert said.code == 0, (said.out, said.err)
    return said.json


def sums_of(cluster: LocalCluster) -> tuple[int, dict[str, str]]:
    """The LSN of a check of all nodes, and the checksum of each table there."""
    assert_consistent(cluster, ("m1", "r1"))
    told = command(cluster, "check", "--json").json
    (lsn,) = {report["lsn"] for report in told["reports"] if report["node"] == "r1"}
    return lsn, {
        str(report["table_id"]): report["checksum"]
        for report in told["reports"]
        if report["node"] == "r1"
    }


@contextmanager
def _a_place(kind: str, beside: Beside, folder: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Where backups are, and what a process has in its environment that reaches it."""
    if kind == "folder":
        yield str(folder), {}
        return
    with running_s3(beside.servers, folder, abortable=False) as storage:
        yield "s3://bucket/backups", storage.environ


@pytest.fixture(scope="module", params=["folder", "s3"])
def world(
    request: pytest.FixtureRequest, beside: Beside, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A full backup under writers, an increment behind a quiet moment, and one under writers."""
    key = tmp_path_factory.mktemp("key") / "key"
    key.write_text("0123456789abcdef" * 4)
    folder = tmp_path_factory.mktemp("place")
    with (
        _a_place(request.param, beside, folder) as (place, more),
        beside.running("backed-up", NODES, {**os.environ, **more}) as cluster,
    ):
        settings = settings_of(cluster, "setup")
        made_counters(settings, KEYS)
        words = (place, "--key-file", str(key))
        repeated = {
            "id": new_request_id().hex(),
            "table": "t",
            "op": "insert",
            "key": {"id": 1_000},
            "values": {"n": 5},
        }
        with Load(settings, "t", KEYS) as load:
            load.more(100)
            full = backup(cluster, "create", *words)["made"]
            load.more(100)
        with ChangeProducer(settings) as producer:
            outcome = settled(producer.submit(repeated))
        assert outcome.lsn > full["end"]["lsn"]
        lsn, sums = sums_of(cluster)
        with Load(settings, "t", KEYS) as load:
            load.more(100)
            made = backup(cluster, "create", *words)["made"]
            load.more(20)
        assert (full["kind"], made["kind"], made["parent"]) == ("full", "log", full["id"])
        assert full["source"] == "r1"
        assert made["end"]["lsn"] > lsn
        yield World(cluster, place, key, repeated, outcome, lsn, sums)


@pytest.fixture(scope="module")
def restored(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """The database at the quiet moment, under another name, with nodes of its own."""
    old = world.cluster
    name = f"{old.cluster_settings.database}new"
    folder = tmp_path_factory.mktemp("restored")
    store = folder / "m1" / "store.db"
    done = backup(
        old,
        *("restore", world.place, "--key-file", str(world.key), "--database", name),
        *("--to-lsn", str(world.lsn), "--store", str(store)),
    )
    assert done["lsn"] == world.lsn
    ports = replace(
        Ports.free(),
        kafka=old.ports.kafka,
        kafka_controller=old.ports.kafka_controller,
        kafka_trusted=old.ports.kafka_trusted,
        redis=old.ports.redis,
    )
    environ = {**old.env("restored"), "LEASEHOLD_DATABASE": name}
    with LocalCluster(folder, ports, environ) as cluster:
        for node in NODES:
            cluster.start(node)
        yield cluster


def test_each_backup_can_be_restored(world: World) -> None:
    told = backup(world.cluster, "verify", world.place, "--key-file", str(world.key))
    assert [each["trouble"] for each in told] == ["", ""]
    listed = backup(world.cluster, "list", world.place)
    assert [each["usable"] for each in listed["backups"]] == [True, True]


def test_the_restored_database_has_what_there_was_at_that_lsn(
    world: World, restored: LocalCluster
) -> None:
    assert sums_of(restored)[1] == world.sums


def test_a_repeated_request_is_answered_from_its_outcome(
    world: World, restored: LocalCluster
) -> None:
    with ChangeProducer(settings_of(restored, "again")) as producer:
        again = settled(producer.submit(world.repeated))
        assert (again.lsn, again.code) == (world.outcome.lsn, world.outcome.code)


def test_it_goes_on_and_tells_every_row(world: World, restored: LocalCluster) -> None:
    """The changefeed's topic has rows from before the backup, and what is written now."""
    settings = settings_of(restored, "writer")
    insert = {"table": "t", "op": "insert", "key": {"id": 2_000}, "values": {"n": 6}}
    with ChangeProducer(settings) as producer:
        outcome = settled(producer.submit(insert))
    assert outcome.lsn > world.lsn
    table_id = command(restored, "versions", "t", "--json").json["table_id"]
    rows = Topics(restored.cluster_settings.database).rows(table_id).name

    def told() -> dict[bytes, bytes]:
        return read_compacted(settings.kafka, "rows", rows)

    until(lambda: row_key((2_000,)) in told(), "the new row on its topic")
    images = {key: restore_image(restore_row_key(key), value) for key, value in told().items()}
    wanted = {row_key((key,)) for key in (*KEYS, 1_000, 2_000)}
    assert wanted <= images.keys()
    assert all(isinstance(image, RowImage) for image in images.values())
    assert images[row_key((1_000,))].lsn == world.outcome.lsn
    assert_consistent(restored, ("m1", "r1"))


def test_its_page_shows_what_happens(world: World, tmp_path: Path) -> None:
    """docs/how-to/back-up.md, on a database that has tables already."""
    cluster = world.cluster
    environ = {**cluster.env("reader"), "LEASEHOLD_SQL_PORT": str(cluster.ports.sql[0])}
    assert run_document(ROOT / "docs" / "how-to" / "back-up.md", tmp_path, environ)


def test_a_database_that_is_there_is_not_touched(world: World, restored: LocalCluster) -> None:
    name = restored.cluster_settings.database
    words = ("backup", "restore", world.place, "--key-file", str(world.key))
    elsewhere = str(restored.data / "other" / "store.db")
    said = command(world.cluster, *words, "--database", name, "--store", elsewhere)
    assert said.code == 2
    assert f"the database {name} exists" in said.err
    there = str(restored.data / "m1" / "store.db")
    said = command(world.cluster, *words, "--database", f"{name}2", "--store", there)
    assert said.code == 2
    said = command(world.cluster, "backup", "restore", world.place, "--database", f"{name}2")
    assert said.code == 2
    assert "is encrypted" in said.err
