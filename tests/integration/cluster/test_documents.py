"""Goal: whoever does what the README says, or a page that needs servers, sees what it shows.

Method: a document's blocks are run in their order on real Kafka and Redis, as a reader would run
them. Spark runs for those that change rows which are there: a page that is not among them and
needs it would wait for its job until the command's time is over. A page that shows numbers of an
empty database has one of its own; all others have that of the README, each with none of the tables
of those before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer
from leasehold.admin.watch import ClusterWatch
from tests.support.cluster.secure_suite import not_in_secure_mode
from tests.support.cluster.system_cluster import Beside, settings_of
from tests.support.documents.blocks import needs_cluster
from tests.support.documents.document_run import ROOT, run_document

NODES = ("m1", "r1", "changefeed")
FIRST = ROOT / "README.md"
NUMBERED = ("follow-versions.md",)
BY_ITSELF = ("scale.md",)
"""Starts its processes itself."""
FOUND = [path for path in sorted((ROOT / "docs").rglob("*.md")) if needs_cluster(path)]
SHARING = [FIRST, *(path for path in FOUND if path.name not in (*NUMBERED, *BY_ITSELF))]
ALONE = [path for path in FOUND if path.name in NUMBERED]


@pytest.fixture(scope="module")
def cluster(beside: Beside) -> Iterator[LocalCluster]:
    with beside.running("documents", (*NODES, "spark")) as made:
        yield made


def run(document: Path, cluster: LocalCluster, folder: Path) -> int:
    environ = {**cluster.env("reader"), "LEASEHOLD_SQL_PORT": str(cluster.ports.sql[0])}
    return run_document(document, folder, environ)


def drop_tables(cluster: LocalCluster) -> None:
    with ClusterWatch(settings_of(cluster, "watcher")) as watch:
        watch.first_look(30)
        names = [table.descriptor.name for table in watch.view.tables.values()]
    with ChangeProducer(settings_of(cluster, "setup")) as producer:
        for name in names:
            assert producer.submit({"sql": f"DROP TABLE {name}"}).result(90).lsn


@pytest.mark.parametrize("document", SHARING, ids=lambda path: path.stem)
def test_a_document_shows_what_happens(
    cluster: LocalCluster, document: Path, tmp_path: Path
) -> None:
    try:
        assert run(document, cluster, tmp_path)
    finally:
        drop_tables(cluster)


@not_in_secure_mode("who starts each process of a database has a user for each")
def test_one_that_starts_its_processes_finds_servers_alone(beside: Beside, tmp_path: Path) -> None:
    (document,) = (path for path in FOUND if path.name in BY_ITSELF)
    with beside.running(document.stem, ()) as cluster:
        assert run(document, cluster, tmp_path)


@pytest.mark.parametrize("document", ALONE, ids=lambda path: path.stem)
def test_one_with_numbers_does_on_an_empty_database(
    beside: Beside, document: Path, tmp_path: Path
) -> None:
    with beside.running(document.stem, NODES) as cluster:
        assert run(document, cluster, tmp_path)
