"""Comdb2's documented examples and behaviour in SQL sessions (scenarios 15 to 22), each by its
name, on different replicants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from leasehold.model.errors import Refused
from leasehold.transaction.isolation import ISOLATION, Level
from tests.isolation.hermitage import committed
from tests.isolation.said import added, id_is, is_, within
from tests.isolation.sql_stage import SQL_NODES, SqlScene
from tests.isolation.sql_told import SqlTold
from tests.simulation.simulation import MS

Make = Callable[..., SqlScene]
LEVELS = list(Level)
SEEING_OWN = [level for level in Level if ISOLATION[level].own_writes]
REPLAYED = [level for level in Level if ISOLATION[level].replays]
VERIFIED = [level for level in Level if ISOLATION[level].verifies_reads]
NOT_VERIFIED = [level for level in Level if not ISOLATION[level].verifies_reads]
PAIR = {1: 10, 2: 20}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Make]:
    made: list[SqlScene] = []

    def make(level: Level, *, verify_retry: bool = True) -> SqlScene:
        made.append(SqlScene(tmp_path / str(len(made)), level.value, verify_retry=verify_retry))
        return made[-1]

    yield make
    for each in made:
        each.close()


def code_of(work: Callable[[], object]) -> str:
    with pytest.raises(Refused) as error:
        work()
    return error.value.sqlstate


def replays(scene: SqlScene, work: Callable[[], object]) -> int:
    """How often a COMMIT sent its transaction again."""
    sent = {name: len(given) for name, given in scene.stage.results.items()}
    work()
    return sum(
        sum(1 for o in given[sent.get(name, 0) :] if not o.lsn and not o.final)
        for name, given in scene.stage.results.items()
    )


# ------------------------------------------------------------------ examples of the documentation


@pytest.mark.parametrize("level", SEEING_OWN)
def test_duplicate_keys_inside_a_transaction_are_told_at_their_statement(
    level: Level, scene: Make
) -> None:
    """`insert 1` beside a committed 1: refused at once, as in PostgreSQL, where the node's own rows
    prove it. (Comdb2 shows four rows, and refuses COMMIT: so it is at `default`.)"""
    stands = scene(level)
    stands.ask("r1", "create table q (id bigint primary key, q int unique)")
    stands.ask("r1", "insert into q values (1, 1)")
    one = stands.session("r2").begin()
    one.ask("savepoint s")
    for key in (2, 3, 4):
        assert code_of(partial(one.ask, f"insert into q values ({key}, 1)")) == "23505"
        one.ask("rollback to s")
    one.ask("insert into q values (5, 5)")
    one.commit()
    assert sorted(stands.ask("r1", "select q from q")) == [(1,), (5,)]


@pytest.mark.parametrize("level", [Level.DEFAULT])
def test_16_constraint_heals_before_commit(level: Level, scene: Make) -> None:
    """`insert 1` beside a 1 that becomes 2; COMMIT succeeds."""
    stands = scene(level)
    stands.ask("r1", "create table q (id bigint primary key, q int unique)")
    stands.ask("r1", "insert into q values (1, 1)")
    one = stands.session("r2").begin()
    one.ask("insert into q values (2, 1)")
    assert one.ask("update q set q = 2 where id = 1").tag == "UPDATE 1"
    one.commit()
    assert sorted(stands.ask("r1", "select q from q")) == [(1,), (2,)]


def test_a_standalone_insert_of_a_duplicate_fails_at_once(scene: Make) -> None:
    stands = scene(Level.SNAPSHOT)
    assert code_of(lambda: stands.ask("r1", "insert into test values (1, 1)")) == "23505"


@pytest.mark.parametrize("level", LEVELS)
def test_reads_are_not_repeatable(level: Level, scene: Make) -> None:
    """T1 reads BETWEEN 1 AND 10, T2 inserts 5 and commits, T1 reads again."""
    stands = scene(level)
    one = stands.session("r1").begin()
    text = "select id from test where id between 1 and 10"
    assert len(one.ask(text).rows) == 2
    stands.ask("r2", "insert into test values (5, 50)")
    assert len(one.ask(text).rows) == (2 if ISOLATION[level].one_snapshot else 3)


@pytest.mark.parametrize("level", LEVELS)
def test_transactions_will_not_see_their_own_updates_at_default_alone(
    level: Level, scene: Make
) -> None:
    stands = scene(level)
    one = stands.session("r1").begin()
    one.insert(5, 50)
    assert one.get(5) == (None if level is Level.DEFAULT else 50)
    one.commit()
    assert stands.rows() == {**PAIR, 5: 50}


@pytest.mark.parametrize("level", LEVELS)
def test_transactions_are_not_serializable_below_serializable(level: Level, scene: Make) -> None:
    """Both count, both insert the count; one after the other they would insert different ones."""
    stands = scene(level)
    one, two = stands.sessions(2)
    counts = [s.ask("select count(*) from test").rows[0][0] for s in (one, two)]
    assert counts == [2, 2]
    two.insert(101, counts[1])
    one.insert(102, counts[0])
    assert committed(one)
    assert committed(two) == (level in NOT_VERIFIED)


@pytest.mark.parametrize("level", LEVELS)
def test_a_block_fails_at_its_statement_and_not_later(level: Level, scene: Make) -> None:
    """Deferred statements are not visible to PostgreSQL clients (T4): an error comes at once."""
    one = scene(level).session("r1").begin()
    assert code_of(lambda: one.ask("here, a syntax error for you")) == "42601"
    assert code_of(lambda: one.ask("select 1")) == "25P02"
    assert one.ask("commit").tag == "ROLLBACK"


# ------------------------------------------------------------------ scenarios 15 to 22


@pytest.mark.parametrize("level", LEVELS)
def test_15_own_writes_visible_in_block(level: Level, scene: Make) -> None:
    stands = scene(level)
    one, two = stands.sessions(2)
    one.insert(3, 30)
    one.put(1, 11)
    one.delete(id_is(2))
    assert one.select() == ({1: 11, 3: 30} if ISOLATION[level].own_writes else PAIR)
    assert two.select() == PAIR, "nobody else does"
    one.abort()
    assert stands.rows() == PAIR, "and nobody after ROLLBACK"


@pytest.mark.parametrize("level", REPLAYED)
def test_17_replay_recomputes(level: Level, scene: Make) -> None:
    """Both were told UPDATE 1, which a replay says again. (An update by the key alone would be
    computed at commit: `test_sql_at_commit.py`.)"""
    stands = scene(level)
    one, two = stands.sessions(2)
    for session in (one, two):
        assert session.update(added(100), within(1, 2)) == 1
    assert replays(stands, one.commit) == 0
    assert replays(stands, two.commit) == 1, "counted once"
    assert stands.rows() == {1: 210, 2: 20}


@pytest.mark.parametrize("level", LEVELS)
def test_18_replay_off_tells_client(level: Level, scene: Make) -> None:
    stands = scene(level, verify_retry=False)
    one, two = stands.sessions(2)
    one.update(added(1), id_is(1))
    two.update(added(2), id_is(1))
    two.put(2, 22)
    one.commit()
    assert code_of(two.commit) == "40001"
    assert stands.rows() == {1: 11, 2: 20}, "nothing of it was applied"


def test_19_snapshot_never_replayed(scene: Make) -> None:
    stands = scene(Level.SNAPSHOT)
    one, two = stands.sessions(2)
    one.update(added(1), id_is(1))
    two.update(added(1), id_is(1))
    one.commit()
    assert replays(stands, lambda: code_of(two.commit)) == 0
    assert stands.rows() == {1: 11, 2: 20}


@pytest.mark.parametrize("level", LEVELS)
def test_20_uncommitable_not_looped(level: Level, scene: Make) -> None:
    """Two overlapping deletes: who does not see his own writes deletes a row twice. It is told at
    once, and nothing is sent."""
    stands = scene(level)
    one = stands.session("r1").begin()
    assert one.delete(is_(10)) == 1
    if level is Level.DEFAULT:
        assert replays(stands, lambda: code_of(lambda: one.delete(within(0, 9)))) == 0
        one.abort()
        assert stands.rows() == PAIR
        return
    assert one.delete(within(0, 9)) == 1, "the other one"
    one.commit()
    assert stands.rows() == {}


@pytest.mark.parametrize("level", LEVELS)
def test_21_selectv_row_changed(level: Level, scene: Make) -> None:
    stands = scene(level)
    one, two = stands.sessions(2)
    assert one.get(1, selectv=True) == 10
    two.put(1, 99)
    two.commit()
    one.put(2, 22)
    assert not committed(one)
    assert stands.rows() == {1: 99, 2: 20}


@pytest.mark.parametrize("level", LEVELS)
def test_21_selectv_duplicate(level: Level, scene: Make) -> None:
    """A row that is visited twice, in one result and in two, is verified once, and one's own write
    of it is no change by another."""
    stands = scene(level)
    one = stands.session("r1").begin()
    text = "selectv a.id, b.id from test a join test b on true order by 1, 2"
    assert one.ask(text).rows == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert one.select(selectv=True) == PAIR
    one.put(1, 11)
    one.commit()
    assert stands.rows() == {1: 11, 2: 20}


@pytest.mark.parametrize("level", LEVELS)
def test_21_selectv_range(level: Level, scene: Make) -> None:
    """A phantom is no visited row: it is found from serializable up alone."""
    stands = scene(level)
    one, two = stands.sessions(2)
    assert one.select(within(0, 100), selectv=True) == PAIR
    two.insert(50, 5)
    two.commit()
    one.put(1, 11)
    assert committed(one) == (level in NOT_VERIFIED)


@pytest.mark.parametrize("clause", ["for update", "for share", "for no key update of test nowait"])
@pytest.mark.parametrize("level", LEVELS)
def test_rows_shown_for_update_are_verified(clause: str, level: Level, scene: Make) -> None:
    stands = scene(level)
    for other, ends in ((1, False), (2, True)):
        one, two = stands.sessions(2)
        found = one.ask(f"select value from test where id = 1 limit 1 {clause}").rows
        assert len(found) == 1
        two.put(other, 30 + other)
        two.commit()
        one.ask("insert into test values (7, 7) on conflict (id) do nothing")
        assert committed(one) == ends


def test_22_replica_hop_no_time_travel(scene: Make) -> None:
    """A client that moves from one replicant to another never loses an answered write."""
    stands = scene(Level.LINEARIZABLE)
    for number in range(12):
        writer = stands.session(f"r{1 + number % 2}").begin()
        writer.put(1, number)
        writer.commit()
        reader = stands.session(f"r{2 - number % 2}").begin()
        assert reader.get(1) == number


def test_22_linearizable_misses_nothing_on_a_replica_that_lags_behind(scene: Make) -> None:
    """Cut off, without a lease, and whatever its clock says: the barrier tells."""
    stands = scene(Level.LINEARIZABLE)
    stage = stands.stage
    stage.node("r2").isolate(stage.scheduler.now_ns + 3_000_000_000)
    writer = stands.session("r1").begin()
    writer.put(1, 99)
    writer.commit()
    assert not stage.node("r2").reads()
    assert stands.session("r2").begin().get(1) == 99, "it waits until it has all before it"


# ------------------------------------------------------------------ T2: what was answered


def told_otherwise(stands: SqlScene, ask: str, level: Level) -> bool:
    """Does a transaction commit after an answer that a replay would give otherwise?"""
    one, two = stands.sessions(2)
    one.ask(ask)
    one.put(2, 21)
    two.ask("update test set value = value + 1")
    two.commit()
    return committed(one)


@pytest.mark.parametrize("level", REPLAYED)
@pytest.mark.parametrize(
    ("ask", "compared"),
    [
        ("select value from test where id = 1", VERIFIED),
        ("selectv value from test where id = 1", LEVELS),
        ("update test set value = value + 1 where id = 1 returning value", LEVELS),
        ("delete from test where value = 10", LEVELS),
        ("select count(*) from test", []),
        ("update test set value = 5 where id = 1", []),
    ],
)
def test_a_replay_never_contradicts_an_answer(
    ask: str, compared: list[Level], level: Level, scene: Make
) -> None:
    assert told_otherwise(scene(level), ask, level) == (level not in compared)


DRAWS = [
    "insert into u (n) values (random()) returning id, n",
    "insert into u (id, n) select gen_random_uuid(), random() from test returning n, id",
    "insert into u (n) values (1)",
    "update test set value = random() * 1000000000 returning value",
    "select random(), gen_random_uuid()",
    "selectv value, random() from test where id = 2",
    "select random() from generate_series(1, 9)",
]


@pytest.mark.parametrize("level", REPLAYED)
@pytest.mark.parametrize("draw", DRAWS)
def test_what_was_drawn_at_random_is_drawn_again(draw: str, level: Level, scene: Make) -> None:
    """A client that was told a value reads that one in the end; none is told twice."""
    stands = scene(level)
    stands.ask("r1", "create table u (id uuid primary key default gen_random_uuid(), n float)")
    stands.ask("r1", "create table other (id int primary key, n int)")
    stands.ask("r1", "insert into other values (1, 0)")
    one = stands.session("r1").begin()
    one.ask("savepoint s")
    one.ask("insert into u (n) values (random()) returning id")
    one.ask("rollback to s")
    told = one.ask(draw).rows
    one.ask("update other set n = n + 1 where n < 50")
    stands.ask("r2", "update other set n = 7")
    assert replays(stands, one.commit) == 1
    assert len({repr(row) for row in told}) == len(told)
    if told and "u " in draw:
        shown = "n, id" if draw.endswith("n, id") else "id, n"
        assert sorted(stands.ask("r2", f"select {shown} from u")) == sorted(told)
    if "value" in draw and draw.startswith("update"):
        assert sorted(stands.ask("r2", "select value from test")) == sorted(told)


def test_each_call_draws_anew(scene: Make) -> None:
    stands = scene(Level.READ_COMMITTED)
    text = "select random(), random(), random() < 1 from generate_series(1, 50)"
    one = stands.session("r1").begin()
    drawn = [number for _ in range(2) for row in one.ask(text).rows for number in row[:2]]
    assert len(set(drawn)) == 200
    assert all(0 <= number < 1 for number in drawn)
    assert 60 < 200 * sum(drawn) / len(drawn) < 140


def test_rows_that_were_not_fetched_are_not_compared(scene: Make) -> None:
    """Of a portal only what its client has been given counts."""
    stands = scene(Level.SERIALIZABLE)
    one = stands.session("r1").begin()
    session = stands.clients[-1].session
    prepared = session.prepare(session.statements("select value from test order by id")[0], ())
    portal = session.bind(prepared, ())
    assert list(portal.fetch(1).rows) == [(10,)]
    portal.close()
    one.put(1, 11)
    stands.ask("r2", "update test set value = 0 where id = 2")
    one.commit()
    assert stands.rows() == {1: 11, 2: 0}


# ------------------------------------------------------------------ AS OF


def test_a_snapshot_as_of_a_time_and_as_of_an_lsn(scene: Make) -> None:
    stands = scene(Level.SNAPSHOT)
    stage = stands.stage
    stage.passing(50)
    lsn = stage.reference.position.lsn
    stands.ask("r1", "update test set value = 11 where id = 1; delete from test where id = 2")
    stands.ask("r1", "insert into test values (3, 30)")
    for text in (
        f"begin as of {lsn}",
        f"begin isolation level repeatable read as of lsn {lsn}",
        f"begin; set local leasehold.as_of = {lsn}",
        f"begin; set transaction as of {lsn}",
    ):
        past = SqlTold(stands.session("r2").ask, "snapshot")
        past.ask(text)
        assert past.select() == PAIR
        assert past.ask("show transaction_isolation").rows == [("repeatable read",)]
        past.put(1, 12)
        assert not committed(past), "it was changed since"
    past = stands.session("r2")
    past.ask(f"set leasehold.as_of = {lsn}")
    assert past.select() == PAIR, "a single statement, too"
    past.ask("set leasehold.as_of = ''")
    assert past.select() == {1: 11, 3: 30}
    assert code_of(lambda: past.ask("begin as of timestamp '2001-01-01'")) == "72000"


# ------------------------------------------------------------------ what counts as read


@pytest.mark.parametrize("level", VERIFIED)
@pytest.mark.parametrize(
    ("read", "write", "ends"),
    [
        ("select * from other where id = 1", "update other set a = 9 where id = 2", True),
        ("select * from other where id = 1", "update other set a = 9 where id = 1", False),
        ("select * from other where id = 7", "insert into other values (7, 0)", False),
        ("select * from other where id in (1, 3)", "update other set a = 9 where id = 2", True),
        ("select * from other where id in (1, 3)", "delete from other where id = 3", False),
        ("select * from other where id > 1 and id <= 2", "delete from other where id = 3", True),
        ("select * from other where id > 1 and id <= 2", "delete from other where id = 2", False),
        ("select * from other where a = 2", "update other set a = 9 where id = 3", True),
        ("select * from other where a = 2", "update other set a = 2 where id = 3", False),
        ("select * from other where a = 2", "update other set a = 9 where id = 2", False),
        ("select * from other where a in (2, 5)", "insert into other values (5, 5)", False),
        ("select count(*) from other", "insert into other values (5, 5)", False),
        ("select * from test join other using (id)", "update other set a = 9 where id = 3", False),
        ("select exists (select from other where id = 3)", "delete from other where id = 3", False),
        ("select exists (select from other where id = 3)", "delete from other where id = 2", True),
        ("with w as (select max(a) from other) select 1", "delete from other where id = 3", False),
        (
            "update test set value = (select a from other where id = 3) where id = 2",
            "update other set a = 9 where id = 3",
            False,
        ),
        (
            "delete from test using other where test.id = other.id and other.id = 2",
            "update other set a = 9 where id = 2",
            False,
        ),
        (
            "insert into test select 5, a from other where id = 3",
            "update other set a = 9 where id = 3",
            False,
        ),
        (
            "update test set value = 0 where id = 2 returning (select a from other where id = 3)",
            "update other set a = 9 where id = 3",
            False,
        ),
        (
            "insert into other values (8, 8) on conflict (id) do nothing",
            "insert into other values (8, 1)",
            False,
        ),
        (
            "insert into other values (8, 3) on conflict do nothing",
            "update other set a = 4 where id = 3",
            True,
        ),
    ],
)
def test_what_a_statement_reads_is_verified(
    read: str, write: str, ends: bool, level: Level, scene: Make
) -> None:
    stands = scene(level, verify_retry=False)
    stands.ask("r1", "create table other (id bigint primary key, a int)")
    stands.ask("r1", "create index other_a on other (a)")
    stands.ask("r1", "insert into other values (1, 1), (2, 2), (3, 3)")
    one = stands.session("r1").begin()
    one.ask(read)
    one.put(1, 11)
    stands.ask("r2", write)
    assert committed(one) == ends


# ------------------------------------------------------------------ and schema changes


def test_50_old_txn_reads_old_shape(scene: Make) -> None:
    """As of an LSN before a change of the table rows are shown as they were, and who also writes is
    refused (40001) once the version of then is fenced."""
    stands = scene(Level.SNAPSHOT)
    lsn = stands.stage.reference.position.lsn
    stands.ask("r1", "alter table test add column b bigint default 7")
    stands.ask("r1", "update test set value = 11, b = 8 where id = 1")
    stands.ask("r1", "alter table test drop column b")
    for node in SQL_NODES:
        past = stands.session(node)
        past.ask(f"begin as of lsn {lsn}")
        assert past.ask("select * from test order by id").rows == [(1, 10), (2, 20)]
        assert code_of(lambda: past.ask("select b from test")) == "42703"  # noqa: B023
        past.abort()
        past.ask(f"begin as of lsn {lsn}")
        past.put(2, 21)
        assert code_of(past.commit) == "40001"


@pytest.mark.parametrize("level", REPLAYED)
@pytest.mark.parametrize("late", [False, True], ids=["one behind", "fenced off"])
def test_71_sc_versmismatch(late: bool, level: Level, scene: Make) -> None:
    """An INSERT is made at version v, and the master is at another by its COMMIT: at v + 1 it is
    taken as it is, below that it runs again; either way it succeeds, with the new column's
    default."""
    stands = scene(level)
    stage = stands.stage
    one = stands.session("r1").begin()
    one.insert(3, 30)
    before = stage.reference.catalog.resolve("test").version
    alter = "alter table test add column b bigint not null default 7"
    if late:
        stage.node("r1").isolate(stage.scheduler.now_ns + 8_000 * MS)  # its session runs out
        stands.ask("r2", alter)
        stage.until(lambda: len(stage.coherent()) == 2, "r1", virtual_ms=60_000)
    else:
        stands.ask("r2", f"set leasehold.wait_for_jobs = off; {alter}")
        stage.passing(100)
    newest = stage.reference.catalog.resolve("test")
    low = stage.reference.catalog.min_version(newest.table_id)
    assert newest.version > before
    assert (low > before) == late
    assert replays(stands, one.commit) == late
    stage.until(lambda: all(job.status.ended for job in stage.reference.catalog.jobs.values()), "")
    for node in SQL_NODES:
        assert stands.ask(node, "select * from test where id = 3") == [(3, 30, 7)]


@pytest.mark.parametrize("level", [Level.SNAPSHOT, Level.LINEARIZABLE])
def test_a_chained_transaction_reads_a_moment_of_its_own(level: Level, scene: Make) -> None:
    stands = scene(level)
    one = stands.session("r1").begin()
    assert one.get(1) == 10
    stands.ask("r2", "update test set value = 11 where id = 1")
    assert one.get(1) == 10
    one.ask("commit and chain")
    assert one.get(1) == 11
    stands.ask("r2", "update test set value = 12 where id = 1")
    assert one.get(1) == 11


def test_a_truncated_table_is_refused_to_who_reads_it_as_of_before(scene: Make) -> None:
    stands = scene(Level.SNAPSHOT)
    one = stands.session("r2").begin()
    stands.ask("r1", "truncate test")
    assert code_of(one.select) == "72000"
