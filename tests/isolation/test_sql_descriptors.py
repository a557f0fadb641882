"""Scenarios 49, 50, 52, 53, 64 and 73 as SQL sessions meet them: whose descriptor a statement uses,
and what it shows, while schemas change, on each replicant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.catalog.job import Job, Phase
from leasehold.model.errors import Refused
from leasehold.transaction.isolation import ISOLATION, Level
from tests.isolation.said import added, within
from tests.isolation.sql_stage import SQL_NODES, SqlScene

REPLAYED = [level for level in Level if ISOLATION[level].replays]
ONE_SNAPSHOT = [level for level in Level if ISOLATION[level].one_snapshot]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Any]:
    made: list[SqlScene] = []

    def scene(level: Level) -> SqlScene:
        made.append(SqlScene(tmp_path / str(len(made)), level.value))
        return made[-1]

    yield scene
    for each in made:
        each.close()


def begun(scene: SqlScene, node: str, sql: str) -> Job:
    """The job of a change that somebody's pin holds up, some time later."""
    scene.ask(node, f"set leasehold.wait_for_jobs = off; {sql}")
    scene.stage.passing(300)
    *_, job = scene.stage.reference.catalog.jobs.values()
    return job


def ended(scene: SqlScene, job: Job) -> Job:
    def now() -> Job:
        found: Job = scene.stage.job(job.job_id)
        return found

    scene.stage.until(lambda: now().status.ended, job.sql)
    return now()


def code_of(told: Any, text: str) -> str:
    with pytest.raises(Refused) as error:
        told.ask(text)
    return error.value.sqlstate


@pytest.mark.parametrize("level", REPLAYED)
def test_49_descriptor_released_before_replay(level: Level, make: Any) -> None:
    """A transaction holds version 1, so the job waits for it. It meets a conflict at COMMIT: what
    it had is given back before the replay, which is of version 2 and is what is committed."""
    scene = make(level)
    told = scene.session("r1")
    one, node = told.begin(), scene.clients[-1].node
    one.update(added(1), within(1, 2))
    before = scene.stage.reference.catalog.resolve("test")
    scene.ask("r2", "update test set value = 100 where id = 1")
    job = begun(scene, "r2", "alter table test add column b bigint not null default 7")
    assert (job.phase, job.versions) == (Phase.DRAINING, {before.table_id: before.version + 1})
    pinned: list[list[int]] = []
    submit = node.submit

    def submitted(request: Any, *more: Any) -> Any:
        pinned.append([version for _, _, version in node.uses()])
        return submit(request, *more)

    node.submit = submitted
    one.commit()
    assert pinned[-1] == [before.version + 1], pinned
    *_, (_, commit) = scene.stage.reference.commits.values()
    assert commit.versions == {before.table_id: before.version + 1}
    assert node.uses() == []
    assert ended(scene, job).status.value == "succeeded"
    assert scene.ask("r2", "select * from test order by id") == [(1, 101, 7), (2, 20, 7)]


@pytest.mark.parametrize("level", ONE_SNAPSHOT)
@pytest.mark.parametrize("touched", ["nothing", "another table"])
def test_50_begun_before_add_column_it_sees_two_columns(
    level: Level, touched: str, make: Any
) -> None:
    """Both have their moment before the column comes, and hold nothing of the table up. One that
    reads shows the table of then, and commits; of one that also writes it the version of then is
    fenced off: 40001 at once, no hang (52)."""
    scene = make(level)
    scene.ask("r1", "create table other (id bigint primary key)")
    reads, writes = scene.sessions(2)
    for one in (reads, writes):
        one.ask("select 1" if touched == "nothing" else "select * from other")
    scene.ask("r2", "alter table test add column b bigint default 7")
    scene.ask("r2", "update test set value = 11, b = 8 where id = 1")
    for one in (reads, writes):
        assert one.ask("select * from test order by id").rows == [(1, 10), (2, 20)]
    assert reads.ask("commit").tag == "COMMIT"
    writes.put(2, 21)
    before = scene.stage.scheduler.now_ns
    assert code_of(writes, "commit") == "40001"
    assert scene.stage.scheduler.now_ns - before < 5 * 10**9
    assert scene.ask("r1", "select * from test order by id") == [(1, 11, 8), (2, 20, 7)]


def test_53_rename_updates_name_cache(make: Any) -> None:
    """Each session has used the table under its name, and prepared nothing anew. While two versions
    live both names mean it; then the new one alone, everywhere, and the old one is free at once for
    another table, which nobody takes for the first."""
    scene = make(Level.READ_COMMITTED)
    sessions = [scene.session(node) for node in SQL_NODES]
    holder = scene.session("r1").begin()
    for told in (*sessions, holder):
        assert len(told.ask("select id from test").rows) == 2
    job = begun(scene, "r2", "alter table test rename to renamed")
    assert job.phase is Phase.DRAINING
    for told in sessions:
        for name in ("test", "renamed"):
            assert len(told.ask(f"select id from {name}").rows) == 2
    holder.abort()
    assert ended(scene, job).status.value == "succeeded"
    for told in sessions:
        assert code_of(told, "select id from test") == "42P01"
        assert code_of(told, "insert into test values (3, 30)") == "42P01"
        assert len(told.ask("select id from renamed").rows) == 2
    scene.ask("r2", "create table test (id bigint primary key, other text)")
    for told in sessions:
        assert told.ask("select * from test").rows == []
        assert len(told.ask("select id from renamed").rows) == 2


HIDDEN = {
    "add column b bigint not null default 7; drop column b": (
        "select column_name from information_schema.columns where table_name = 'test' union all"
        " select attname from pg_attribute where attrelid = 'test'::regclass and attname = 'b'"
    ),
    "add constraint u unique (value); drop constraint u": (
        "select indexname from pg_indexes where tablename = 'test' union all"
        " select conname from pg_constraint where conrelid = 'test'::regclass"
    ),
    "add constraint positive check (value > 0); drop constraint positive": (
        "select conname from pg_constraint where conrelid = 'test'::regclass"
    ),
}


@pytest.mark.parametrize("actions", HIDDEN)
def test_64_show_create_hides_nonpublic(actions: str, make: Any) -> None:
    """What is not public yet is in no catalog table, nor what no longer is, from the first step of
    its way out on: in both cases others still use the version before."""
    scene = make(Level.READ_COMMITTED)
    shown = HIDDEN[actions]
    before = scene.ask("r1", shown)
    for action, more in zip(actions.split("; "), (1, 0), strict=True):
        holder = scene.session("r1").begin()
        holder.ask("select id from test")
        job = begun(scene, "r2", f"alter table test {action}")
        assert job.phase is Phase.DRAINING
        for node in SQL_NODES:
            assert scene.ask(node, shown) == before
            assert scene.ask(node, "select * from test where id = 1") == [(1, 10)]
            if "column" in action:
                assert code_of(scene.session(node), "select b from test") == "42703"
                assert code_of(scene.session(node), "insert into test values (3, 3, 7)") == "42601"
        holder.abort()
        assert ended(scene, job).status.value == "succeeded"
        for node in SQL_NODES:
            assert len(set(scene.ask(node, shown))) == len(set(before)) + more


def test_73_reads_follow_ddl(make: Any) -> None:
    """Whichever replicant made it: the other one finds a new table, and none that is dropped, at
    the very next statement, and so the third time round."""
    scene = make(Level.READ_COMMITTED)
    for turn in range(3):
        for makes, uses in (SQL_NODES, SQL_NODES[::-1]):
            scene.ask(makes, f"create table passing (id bigint primary key, n{turn} int)")
            assert scene.ask(uses, f"insert into passing values (1, {turn}) returning *") == [
                (1, turn)
            ]
            assert scene.ask(makes, f"select n{turn} from passing") == [(turn,)]
            scene.ask(makes, "drop table passing")
            told = scene.session(uses)
            assert code_of(told, "insert into passing values (2, 2)") == "42P01"
            assert code_of(told, "select * from passing") == "42P01"
