# ruff: noqa: E501 - a statement stands in one line
"""Goal: FOR UPDATE SKIP LOCKED and NOWAIT give each session the rows that PostgreSQL would.

Method: two sessions on each server, the same statements in the same order, the same answers. What
others write beside claims is not compared: there PostgreSQL waits, and here COMMIT verifies.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg
import pytest

from tests.support.postgres.both_servers import told
from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration

TABLES: Final = (
    "create table job (id int primary key, kind text, at int, done boolean default false)",
    "create table part (id int primary key, job int, n int)",
    "create index on job (at)",
    "insert into job select i, case when i % 2 = 0 then 'even' else 'odd' end, 100 - i from generate_series(1, 12) i",
    "insert into part select i, i % 3 + 1, i from generate_series(1, 6) i",
)

STORIES: Final = {
    "each takes the next ones": """
        a begin
        b begin
        a select id from job order by id limit 3 for update skip locked
        b select id from job order by id limit 3 for update skip locked
        a select id from job order by id limit 2 for update skip locked
        b select id, kind from job where kind = 'even' order by at limit 2 for update skip locked
        b select id from job order by id limit 3 offset 1 for update skip locked
        a commit
        b select id from job order by id limit 3 for update skip locked
        b rollback
        a select id from job order by id limit 2 for update skip locked
        a select count(*) from (select id from job for update skip locked) s
        b begin
        b select id from job where id > 10 for update skip locked
        b select id from job order by id limit 0 for update skip locked
        b select id from job order by id offset 10 for update skip locked
        b commit
    """,
    "a queue": """
        a begin
        a delete from job where id in (select id from job order by id limit 2 for update skip locked)
          returning id
        b update job set done = true where id in (select id from job where not done order by id limit
          2 for update skip locked) returning id, done
        b with next as (select id from job where not done order by id limit 1 for update skip locked)
          update job set done = true from next where job.id = next.id returning job.id
        a commit
        b select id from job where not done order by id limit 2 for update skip locked
        a with next as (select id, kind from job where not done order by id limit 1 for update skip
          locked), gone as (delete from job using next where job.id = next.id returning job.id)
          select next.kind, gone.id from next, gone
        a insert into part select 100 + id, id, 0 from job where done order by id limit 1 for update
          skip locked
        a select id, done from job order by id
        b update job set done = true where id = (select id from job where not done order by id desc
          limit 1 for no key update skip locked) returning id
    """,
    "nowait is an error where another has one": """
        a begin
        a select id from job where id < 3 for update nowait
        b select id from job where id = 2 for update nowait
        b select id from job where id = 5 for update nowait
        b begin
        b select id from job order by id desc limit 2 for update nowait
        b select id from job order by id limit 1 for update nowait
        b rollback
        a select id from job where id < 3 for update nowait
        a rollback
        b select id from job order by id limit 1 for update nowait
    """,
    "ROLLBACK TO gives back": """
        a begin
        a select id from job where id = 1 for update skip locked
        a savepoint s
        a select id from job where id in (2, 3) for update skip locked
        b select id from job order by id limit 1 for update skip locked
        a rollback to s
        b select id from job order by id limit 1 for update skip locked
        a commit
    """,
    "FOR SHARE shares": """
        a begin
        b begin
        a select id from job where id < 3 for share skip locked
        b select id from job where id < 4 for share skip locked
        b select id from job where id < 4 for update skip locked
        a select id from job where id < 4 order by id for update skip locked
        a commit
        b select id from job where id < 4 order by id for update skip locked
        b commit
    """,
    "rows of several tables": """
        a begin
        b begin
        a select job.id, part.id from job join part on part.job = job.id where part.id < 3 order by 2
          for update skip locked
        b select job.id, part.id from job join part on part.job = job.id order by 2 for update skip
          locked
        b select part.id from job join part on part.job = job.id order by 1 for update of part skip
          locked
        a select job.id from job left join part on part.job = job.id where job.id > 10 order by 1 for
          update of job skip locked
        a commit
        b commit
    """,
    "where it can't be": """
        a select distinct kind from job for update skip locked
        a select kind, count(*) from job group by kind for update skip locked
        a select id from job union select id from part for update skip locked
        a select id from job for update of nobody skip locked
        a select id from job limit -1 for update skip locked
        a begin read only
        a select id from job for update skip locked
        a rollback
    """,
}


def answers_of(server: Server, story: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    lines: list[str] = []
    for line in story.strip("\n").splitlines():
        if line.startswith(" " * 10):
            lines[-1] += " " + line.strip()
        elif line.strip():
            lines.append(line.strip())
    with server.psycopg(autocommit=True) as a, server.psycopg(autocommit=True) as b:
        for text in TABLES:
            a.execute(text.encode())
        try:
            for line in lines:
                who, text = line[0], line[2:]
                found.append((line, told(a if who == "a" else b, text)))
        finally:
            for each in (a, b):
                each.execute("rollback")
            a.execute("drop table job, part")
    return found


@pytest.mark.parametrize("name", STORIES)
def test_two_sessions_claim_rows(servers: tuple[Server, Server], name: str) -> None:
    ours, theirs = (answers_of(server, STORIES[name]) for server in servers)
    for mine, other in zip(ours, theirs, strict=True):
        if isinstance(mine[1], list) and "order by" not in mine[0]:
            mine, other = ((each[0], sorted(each[1])) for each in (mine, other))
        if "returning" in mine[0] and isinstance(mine[1], list):
            mine, other = ((each[0], sorted(each[1])) for each in (mine, other))
        assert mine == other


def test_claims_are_shown_and_go_with_their_session(servers: tuple[Server, Server]) -> None:
    """pg_locks names the table; a connection that ends gives its rows back."""
    ours, _ = servers
    locks = "select locktype, relation::regclass::text, mode from pg_locks where locktype = 'tuple'"
    with ours.psycopg(autocommit=True) as other:
        other.execute("create table job (id int primary key)")
        other.execute("insert into job values (1), (2)")
        with ours.psycopg(autocommit=True) as one:
            one.execute("begin")
            one.execute("select * from job where id = 1 for update skip locked")
            assert other.execute(locks).fetchall() == [("tuple", "job", "ExclusiveLock")]
            claimed = "select id from job order by id for update skip locked"
            assert other.execute(claimed).fetchall() == [(2,)]
            one.close()
        freed = []
        for _ in range(1_000):
            freed = other.execute(claimed).fetchall()
            if len(freed) == 2:
                break
        assert freed == [(1,), (2,)]
        other.execute("drop table job")


def test_a_cursor_claims_nothing(servers: tuple[Server, Server]) -> None:
    """Refused with a sentence: its rows are put aside, all of them, when it is declared."""
    ours, _ = servers
    with ours.psycopg(autocommit=True) as one:
        one.execute("create table job (id int primary key)")
        one.execute("begin")
        with pytest.raises(psycopg.Error) as caught:
            one.execute("declare c cursor for select * from job for update skip locked")
        one.execute("rollback")
        one.execute("drop table job")
    assert caught.value.sqlstate == "0A000"
