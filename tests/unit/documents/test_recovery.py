"""Goal: the program that a person needs on the worst day reads the rows of a store."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.documents.blocks import blocks
from tests.support.documents.document_run import ROOT
from tests.support.sql_session.sql_client import SqlClient, database_with

PAGE = ROOT / "docs" / "how-to" / "recover-a-lost-log.md"


def test_rows_are_read_out_of_a_copy_that_sqlite_made(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """The copy is made as docs/how-to/back-up.md says, while the node runs."""
    (block,) = (block for block in blocks(PAGE) if block.language == "python")
    copy = tmp_path / "copy.db"
    with database_with(tmp_path_factory, "CREATE TABLE t (id int PRIMARY KEY, n numeric)") as dev:
        client = SqlClient(dev)
        client.ask("INSERT INTO t VALUES (1, 1.50)")
        client.session.close()
        source = dev._folder / "r1" / "store.db"
        with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(copy)) as made:
            live.backup(made)
    done = subprocess.run(
        [sys.executable, "-c", block.text, str(copy)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"table": "t", "values": {"id": 1, "n": "1.50"}}
    assert "LSN" in done.stderr
