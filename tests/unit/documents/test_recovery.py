"""Goal: the command that a person needs on the worst day is as its page says, and brings a store's
rows back.
"""

from __future__ import annotations

import shlex
from decimal import Decimal
from pathlib import Path

import pytest

from leasehold.backup.rebuild import rebuild_from_file
from leasehold.backup.store_file import open_file
from leasehold.cli.main import parser
from leasehold.replica.row_values import named
from tests.support.documents.blocks import blocks
from tests.support.documents.document_run import ROOT
from tests.support.sql_session.sql_client import SqlClient, database_with

PAGE = ROOT / "docs" / "how-to" / "recover-a-lost-log.md"


def test_rows_of_a_store_come_back_beside_its_node(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """What the topics of the new database are made of; tests/integration makes those, too."""
    words = [
        shlex.split(line)
        for line in PAGE.read_text("utf-8").splitlines()
        if line.strip().startswith("leasehold backup")
    ]
    (command,) = words
    args = parser("backup").parse_args(command[1:])
    assert (args.database, Path(args.place).name) == ("demo2", "store.db")
    assert [path.name for path in args.store] == ["store.db"]
    copy = tmp_path / "copy.db"
    with database_with(tmp_path_factory, "CREATE TABLE t (id int PRIMARY KEY, n numeric)") as dev:
        client = SqlClient(dev)
        client.ask("INSERT INTO t VALUES (1, 1.50)")
        client.session.close()
        done = rebuild_from_file(dev._folder / "r1" / "store.db", copy)
    with open_file(copy) as snapshot:
        assert snapshot.lsn == done.position.lsn
        table = snapshot.newest("t")
        rows = snapshot.scan(table, None, None, rows_max=10)
        assert [named(table, row) for _, row in rows] == [{"id": 1, "n": Decimal("1.50")}]
    assert {each.name for each in done.tables} == {"t", "roles and privileges"}


def test_no_block_of_the_page_is_a_program() -> None:
    assert [block.language for block in blocks(PAGE) if block.language in ("python", "sql")] == []
