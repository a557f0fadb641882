"""Rows that sessions on several nodes of one database claim (FOR UPDATE SKIP LOCKED)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Final

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession
from tests.support.sql_session.sql_client import SqlClient, database_with

ITEMS: Final = 120
WORKERS: Final = 6
TAKE: Final = "select id from job order by id limit 2 for update skip locked"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    texts = (
        "create table job (id int primary key, n int)",
        "create table done (job int, worker int)",
    )
    with database_with(tmp_path_factory, *texts) as made:
        yield made


class Worker(SqlClient):
    """A client with a number of its own."""

    def __init__(self, database: DevDatabase, node: str, process: int) -> None:
        super().__init__(database, node)
        self.session.close()
        self.session = SqlSession(self.node, Plans(), user="me", process=process)
        self.number = process
        self.refused: list[str] = []
        self.took = 0

    def work_in_blocks(self) -> None:
        """Take two items at a time, and write down which, until there are none."""
        while True:
            try:
                self.ask("begin")
                items = self.ask(TAKE)
                for (item,) in items:
                    self.ask(f"insert into done values ({item}, {self.number})")
                    self.ask(f"delete from job where id = {item}")
                self.ask("commit")
            except LeaseholdError as error:
                self.refused.append(error.sqlstate)
                self.ask("rollback")
                continue
            self.took += len(items)
            if not items:
                return

    def work_in_statements(self) -> None:
        """Take one item at a time by a statement that is all of it."""
        text = (
            "with next as (delete from job where id in (select id from job order by id limit 1"
            f" for update skip locked) returning id) insert into done select id, {self.number}"
            " from next returning job"
        )
        while True:
            try:
                items = self.ask(text)
            except LeaseholdError as error:
                self.refused.append(error.sqlstate)
                continue
            self.took += len(items)
            if not items:
                return


@pytest.mark.parametrize("way", ["work_in_blocks", "work_in_statements"])
def test_many_workers_on_several_nodes_do_each_item_once(database: DevDatabase, way: str) -> None:
    """Each item once, whatever happens, and few transactions that have to be run again."""
    workers = [Worker(database, f"r{n % 2 + 1}", 20 + n) for n in range(WORKERS)]
    first = workers[0]
    try:
        first.ask("delete from done")
        first.ask(f"insert into job select i, 0 from generate_series(1, {ITEMS}) i")
        threads = [threading.Thread(target=getattr(each, way)) for each in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        done = first.ask("select job from done order by job")
        refused = [code for each in workers for code in each.refused]
        took = [each.took for each in workers]
        print(f"{way}: {took} items by worker, {len(refused)} refused")
        assert done == [(n,) for n in range(1, ITEMS + 1)]
        assert first.ask("select count(*) from job") == [(0,)]
        assert sum(took) == ITEMS
        assert set(refused) <= {"40001"}
        assert len(refused) <= ITEMS // 10
    finally:
        for each in workers:
            each.session.close()


def test_what_the_one_before_has_changed_is_passed_over(database: DevDatabase) -> None:
    """A claim that is free because its transaction has committed: the row is gone by then, though
    the statement's snapshot may still show it."""
    one, other = Worker(database, "r1", 41), Worker(database, "r2", 42)
    try:
        one.ask("insert into job values (1, 0), (2, 0), (3, 0)")
        other.ask("begin isolation level repeatable read")
        assert other.ask("select count(*) from job") == [(3,)]
        one.ask("begin")
        assert one.ask(TAKE) == [(1,), (2,)]
        one.ask("delete from job where id < 3")
        one.ask("commit")
        assert other.ask(TAKE) == [(3,)]
        other.ask("rollback")
    finally:
        one.ask("delete from job")
        one.session.close()
        other.session.close()


def test_a_transaction_that_runs_again_takes_what_it_has_claimed(database: DevDatabase) -> None:
    """A verify error on another row: the same items are taken again, and no others."""
    one, other = Worker(database, "r1", 51), Worker(database, "r2", 52)
    try:
        one.ask("insert into job values (1, 0), (2, 0), (3, 0), (9, 0)")
        other.ask("begin")
        assert other.ask("select id from job where id = 1 for update skip locked") == [(1,)]
        one.ask("begin")
        assert one.ask(TAKE) == [(2,), (3,)]
        one.ask("update job set n = n + 1 where id = 9")
        other.ask("rollback")  # item 1 is free now
        other.ask("update job set n = n + 10 where id = 9")
        one.ask("delete from job where id in (2, 3)")
        one.ask("commit")
        assert one.ask("select id, n from job order by id") == [(1, 0), (9, 11)]
    finally:
        one.ask("delete from job")
        one.session.close()
        other.session.close()


def test_claims_have_a_limit(database: DevDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leasehold.adapters.sqlite.statement_run.CLAIMED_ROWS_MAX", 5)
    one = Worker(database, "r1", 61)
    try:
        one.ask("insert into job select i, 0 from generate_series(1, 9) i")
        assert one.code("select id from job for update skip locked") == "54000"
        assert len(one.ask("select id from job limit 5 for update skip locked")) == 5
        monkeypatch.setattr("leasehold.adapters.sqlite.statement_run.CANDIDATES_MAX", 4)
        assert one.code("select id from job limit 5 for update skip locked") == "54000"
        assert one.node.advisory_locks.uses() == ()
    finally:
        one.ask("delete from job")
        one.session.close()


def test_a_row_that_only_its_transaction_has_needs_no_claim(database: DevDatabase) -> None:
    one = Worker(database, "r1", 71)
    try:
        one.ask("begin")
        one.ask("insert into job values (5, 0)")
        assert one.ask(TAKE) == [(5,)]
        assert one.node.advisory_locks.uses() == ()
        one.ask("rollback")
    finally:
        one.session.close()
