"""Goal: whoever does what the README says, or a page that needs servers, sees what it shows.

Method: each document has a database of its own on real Kafka and Redis; its blocks are run in
their order, as a reader would run them. Spark runs for those that change rows which are there: a
page that is not among them and needs it would wait for its job until the command's time is over.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cluster.system_cluster import Beside
from tests.support.documents.blocks import needs_cluster
from tests.support.documents.document_run import ROOT, run_document

NODES = ("m1", "r1", "changefeed")
BACKFILLED = {"README.md"}
DOCUMENTS = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if needs_cluster(path)
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_a_document_shows_what_happens(beside: Beside, document: Path, tmp_path: Path) -> None:
    names = (*NODES, "spark") if document.name in BACKFILLED else NODES
    with beside.running(document.stem, names) as cluster:
        environ = {**cluster.env("reader"), "LEASEHOLD_SQL_PORT": str(cluster.ports.sql[0])}
        assert run_document(document, tmp_path, environ)
