"""A part of an import moves once, with its rows or not at all."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from leasehold.adapters.postgres.client import SqlConnection
from leasehold.model.errors import Refused
from leasehold.settings.sql_address import SqlAddress
from leasehold.transfer import progress
from leasehold.transfer.progress import Part, move_part, part_of_range, table_of
from leasehold.transfer.target import (
    JOB_LOOK_S_MAX,
    Target,
    is_moved_elsewhere,
    join_statements,
    look_pauses,
)
from tests.support.postgres.dev_server import dev_server
from tests.support.transfer.dev_requests import DevRequests


def test_a_move_that_comes_twice_or_late_is_refused_with_its_rows(tmp_path: Path) -> None:
    """Goal: also after the part has gone on, when nothing is left of the step before."""
    with dev_server(tmp_path, "create table t (n integer)") as served:
        requests = DevRequests(served.dev)

        def connect() -> SqlConnection:
            return SqlConnection(SqlAddress(port=served.port), served.database)

        with Target(requests, connect) as target:
            assert target.parts("a") == {}
            target.apply((), progress.CREATE)
            first = Part("p", 0, "here")
            target.begin_parts("a", [first])
            target.begin_parts("a", [first])
            second, third = first.moved("there", 1), first.moved("there", 1).moved("on", 1)
            row = {"table": "t", "op": "insert", "values": {"n": 1}}
            moves = [[row, *move_part("a", first, second)], [row, *move_part("a", second, third)]]
            for move in moves:
                target.apply(move)
            for move in moves:
                with pytest.raises(Refused) as late:
                    target.apply(move)
                assert is_moved_elsewhere(late.value)
            assert target.part("a", "p") == third
            assert target.rows("select count(*) from t") == [["2"]]
            assert target.parts("b") == {}
        requests.close()


def test_names_of_tables_come_back_out_of_names_of_parts() -> None:
    for table in ("t", "a/b", "rows/1/t", "stream"):
        assert table_of(part_of_range(table, 7)) == (table, 7)
    assert table_of(progress.STREAM) is None


def test_statements_of_a_table_stay_together() -> None:
    groups = [[f"CREATE TABLE t{n} (a text)", f"ALTER TABLE t{n} {'x' * 500}"] for n in range(200)]
    texts = list(join_statements(groups))
    assert len(texts) > 1
    assert [text for each in texts for text in each.split("; ")] == [t for g in groups for t in g]
    assert all(text.startswith("CREATE") and text.count("; ") % 2 for text in texts)


def test_a_job_is_looked_at_soon_and_then_more_seldom() -> None:
    pauses = list(islice(look_pauses(), 8))
    assert pauses[:3] == [0.01, 0.02, 0.04]
    assert pauses == sorted(pauses)
    assert pauses[-1] == JOB_LOOK_S_MAX
