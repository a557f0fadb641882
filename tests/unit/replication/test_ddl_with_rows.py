"""DDL and rows in one request: one commit that holds all of it, or nothing.

Each case on stores in memory and on SQLite, by a master and a follower.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.records.log import ChangeKind, DescriptorWrite, JobWrite, TableTruncated
from leasehold.model.records.requests import Outcome
from leasehold.replication.master.batch_limits import BatchSettings
from leasehold.replication.node import Node
from leasehold.replication.node_settings import NodeSettings
from tests.support.memory_store.store import MemoryStore
from tests.support.replication.world import CODEC, World, insert, update

OLD = "create table t (id bigint primary key, a integer, b text)"
NEW = "create table n (id bigint primary key, a integer, t bigint references t)"
INDEX = "create unique index by_a on n (a)"


class Stored(World):
    """A world whose stores are of a kind."""

    def __init__(self, folder: Path | None, batch: BatchSettings | None = None) -> None:
        self.folder = folder
        self.stores: list[SqliteStore] = []
        super().__init__(batch)

    def make(self, name: str, *, candidate: bool) -> Node:
        if self.folder is None:
            return super().make(name, candidate=candidate)
        store = SqliteStore(self.folder / f"{name}.db", cache_mb=1)
        self.stores.append(store)
        settings = NodeSettings(
            name, candidate=candidate, serving=False, master=self.master_settings
        )
        incarnation = f"{name}-{self.ms}".encode()
        return Node(settings, store, CODEC, incarnation, itertools.count(1), self.now())

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """(key, other values …) on both nodes, which agree, also in what their checks find."""
        found = []
        for node in (self.node, self.follower):
            store = node._store
            assert isinstance(store, SqliteStore | MemoryStore)
            snapshot = store.open_snapshot()
            descriptor = snapshot.newest(table)
            scanned = snapshot.scan(descriptor, None, None, rows_max=99)
            found.append(
                [
                    tuple(row.values.get(c.element_id) for c in descriptor.columns)
                    for _, row in scanned
                ]
            )
            snapshot.close()
        assert found[0] == found[1]
        return found[0]

    def tables(self) -> set[str]:
        names = [set(node.catalog.table_names()) for node in (self.node, self.follower)]
        assert names[0] == names[1]
        return names[0]


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stored]:
    made = Stored(tmp_path if request.param == "sqlite" else None)
    assert made.ask({"sql": OLD}).lsn == 1
    assert made.ask(insert(1, a=1)).lsn == 2
    yield made
    for store in made.stores:
        store.close()


def row(table: str, key: int, op: str = "insert", **values: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"table": table, "op": op, "key": {"id": key}}
    return made if op == "delete" else {**made, "values": values}


def asked(world: Stored, sql: str, *rows: dict[str, Any], **more: Any) -> Outcome:
    return world.ask({"sql": sql, "transaction": list(rows), "on_conflict": "fail", **more})


def test_new_tables_an_index_and_rows_are_one_commit(world: Stored) -> None:
    sql = f"{NEW}; {INDEX}; create table o (id bigint primary key, n bigint references n)"
    outcome = asked(
        world,
        sql,
        row("o", 1, n=7),
        row("n", 7, a=5, t=2),
        row("t", 2, a=2),
        row("n", 8, a=6, t=1),
        row("n", 8, "update", a=9),
    )
    assert outcome.lsn == 3
    assert outcome.rows_affected == 5
    assert outcome.answer == {"statements": ({"table": 2}, {"table": 2}, {"table": 3})}
    commit = world.commits()[-1]
    assert [type(write) for write in commit.catalog] == [DescriptorWrite, DescriptorWrite]
    assert dict(commit.versions) == {1: 1, 2: 1, 3: 1}
    assert world.rows("n") == [(7, 5, 2), (8, 9, 1)]
    assert world.rows("o") == [(1, 7)]
    assert world.rows("t") == [(1, 1, None), (2, 2, None)]
    # The index is there for whoever comes next.
    assert world.ask({**row("n", 9, a=9), "on_conflict": "fail"}).code == "23505"
    assert world.ask({**row("t", 2, "delete"), "on_conflict": "fail"}).code == "23503"


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([row("n", 1, a=5), row("n", 2, a=5)], "23505"),
        ([row("n", 1, a=5, t=9)], "23503"),
        ([row("n", 1, a="x")], "22P02"),
        ([row("n", 1), row("n", 1)], "23505"),
        ([row("n", 1), row("t", 1)], "23505"),
        ([row("n", 1), {**row("t", 1, "update", a=2), "expect": 99}], "40001"),
        ([row("n", 1), row("nothing", 1)], "42P01"),
        ([row("n", 1, nothing=1)], "42703"),
        ([row("n", 1), {**row("t", 9), "schema_version": 2}], "22023"),
    ],
)
def test_refused_whole_nothing_is_left(world: Stored, rows: list[Any], code: str) -> None:
    refused = asked(world, f"{NEW}; {INDEX}; create index j on t (b)", *rows)
    assert (refused.lsn, refused.code) == (0, code)
    assert world.tables() == {"t"}
    assert world.node.catalog.jobs == {}
    assert world.rows("t") == [(1, 1, None)]
    # The names and the table id are free.
    accepted = asked(world, f"{NEW}; {INDEX}", row("n", 1, a=5))
    assert accepted.answer["statements"][0] == {"table": 2}
    assert world.rows("n") == [(1, 5, None)]


def test_a_statement_that_is_refused_refuses_the_rows(world: Stored) -> None:
    assert asked(world, f"{NEW}; create index j on t (nothing)", row("t", 2)).code == "42703"
    assert asked(world, "create tabl x", row("t", 2)).code == "42601"
    assert asked(world, f"explain {NEW}", row("t", 2)).code == "0A000"
    assert asked(world, f"{NEW}; explain {NEW}").code == "08P01", "no rows in a transaction"
    assert world.ask({"sql": f"{NEW}; explain {NEW}"}).code == "0A000"
    assert world.tables() == {"t"}
    assert world.rows("t") == [(1, 1, None)]


def test_rows_are_decided_under_the_version_before_the_jobs_first_step(world: Stored) -> None:
    add = "alter table t add column c int not null default 7"
    assert asked(world, add, row("t", 2, a=2, c=1)).code == "42703"
    assert world.node.catalog.jobs == {}
    outcome = asked(world, add, row("t", 2, a=2), row("t", 1, "delete"))
    assert outcome.answer == {"job": 1}
    commit = world.commits()[-1]
    assert [type(write) for write in commit.catalog] == [JobWrite]
    assert [(c.kind, c.version) for c in commit.changes] == [
        (ChangeKind.INSERT, 1),
        (ChangeKind.DELETE, 1),
    ]
    assert world.rows("t") == [(2, 2, None)]
    assert not world.node.catalog.jobs[1].status.ended


def test_a_table_goes_and_rows_of_others_come(world: Stored) -> None:
    assert world.ask({"sql": "create table n (id bigint primary key)"}).lsn
    assert asked(world, "drop table n", row("n", 1)).code == "42P01"
    outcome = asked(world, "drop table n", row("t", 2, a=2))
    assert outcome.answer == {"job": 1}
    assert world.rows("t") == [(1, 1, None), (2, 2, None)]


def test_a_table_is_loaded_anew(world: Stored) -> None:
    """TRUNCATE and INSERT in one commit: nobody ever sees the table empty."""
    world.ask({"sql": "create table s (id bigint primary key, a integer unique)"})
    world.ask({"transaction": [row("s", 1, a=1), row("s", 2, a=2)]})
    again = row("s", 1, a=2), row("s", 3, a=1)
    outcome = asked(world, "truncate s", *again, row("s", 2, "update", a=9), row("s", 2, "delete"))
    assert outcome.rows_affected == 2, "the rows of before are no longer there"
    assert world.commits()[-1].catalog == (TableTruncated(2),)
    assert world.rows("s") == [(1, 2), (3, 1)]
    refused = asked(world, "truncate s", row("s", 5, a=1), row("s", 6, a=1))
    assert refused.code == "23505"
    assert world.rows("s") == [(1, 2), (3, 1)]


def test_the_same_id_gets_the_same_answer_and_is_applied_once(world: Stored) -> None:
    number = world.fresh_id()
    request = {"sql": NEW, "transaction": [row("n", 1, a=5)], "on_conflict": "fail"}
    first = world.ask(request, number)
    assert world.ask(request, number) == first
    assert world.rows("n") == [(1, 5, None)]
    assert first.answer == {"table": 2}


def test_retried_it_is_one_request_still(world: Stored) -> None:
    """The verify error of a row concerns the statements too: the next attempt has all of it."""
    number = world.fresh_id()
    rows = [row("n", 1), {**row("t", 1, "update", a={"expr": "a + 1"}), "expect": 99}]
    refused = world.ask({"sql": NEW, "transaction": rows, "on_conflict": "retry"}, number)
    assert (refused.lsn, refused.final) == (0, False)
    rows[1]["expect"] = 0
    again = {"sql": NEW, "transaction": rows, "on_conflict": "retry", "attempt": 2}
    assert world.ask(again, number).lsn
    assert world.rows("n") == [(1, None, None)]


def test_what_exists_already_does_not_keep_the_rows_away(world: Stored) -> None:
    for key in (5, 6):
        sql = OLD.replace("table t", "table if not exists t")
        outcome = asked(world, sql, row("t", key))
        assert "nothing was done" in outcome.answer["notice"]
    assert [key for key, *_ in world.rows("t")] == [1, 5, 6]


def test_what_follows_in_the_queue_sees_it(world: Stored) -> None:
    """It closes its record, so that the next request is decided under what it has made."""
    numbers = [
        world.put({"sql": NEW, "transaction": [row("n", 1, a=1)]}),
        world.put(row("n", 2, a=2)),
        world.put({**row("n", 1, "update", a=3)}),
    ]
    for _ in range(4):
        world.tick()
        world.pump()
    assert [world.answers(number)[-1].lsn for number in numbers] == [3, 4, 5]
    assert world.rows("n") == [(1, 3, None), (2, 2, None)]


def test_lost_with_its_record_it_has_never_happened(world: Stored) -> None:
    """L4: an append of unknown fate; the store forgets tables and rows with the epoch."""
    world.lost = True
    world.put({"sql": f"{NEW}; truncate t", "transaction": [row("n", 1), row("t", 9)]})
    world.tick()
    assert world.node.master is not None
    assert world.node.master.in_flight
    world.node.master.close()
    world.node.master = None
    assert world.rows("t") == [(1, 1, None)]
    assert world.tables() == {"t"}


def test_what_does_not_fit_a_record_is_refused_whole(tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        small = Stored(folder, BatchSettings(record_bytes_max=4_000, large_bytes_max=4_000))
        small.ask({"sql": OLD})
        rows = [row("t", key, b="x" * 100) for key in range(40)]
        refused = asked(small, NEW, *rows)
        assert refused.code == "54000"
        assert small.tables() == {"t"}
        assert small.rows("t") == []
        for store in small.stores:
            store.close()


def test_a_row_form_takes_a_statement_too(world: Stored) -> None:
    outcome = world.ask({"sql": NEW, **row("n", 4, a=2)})
    assert (outcome.rows_affected, outcome.answer) == (1, {"table": 2})
    assert world.rows("n") == [(4, 2, None)]
    assert world.ask(update(1, a=2)).lsn
