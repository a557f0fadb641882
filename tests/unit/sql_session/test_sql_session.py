"""SQL sessions on a replicant of a whole database in this process: the real master, log, stores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.dev.node import DevNode
from leasehold.model.errors import LeaseholdError, Refused
from leasehold.pgwire.session import (
    Column,
    Deallocated,
    Notice,
    PortalsClosed,
    SettingChanged,
    Status,
)
from leasehold.pgwire.wire_errors import CachedResultChanged, Canceled, InFailedTransaction
from leasehold.sql.system_catalog.oids import table_oid
from leasehold.values.types import Type
from tests.support.sql_session.sql_client import SqlClient


@pytest.fixture
def client(database: DevDatabase, request: pytest.FixtureRequest) -> Iterator[SqlClient]:
    made = SqlClient(database)
    yield made
    made.session.close()


@pytest.fixture
def table(database: DevDatabase, client: SqlClient) -> Iterator[str]:
    client.ask("create table t (id int primary key, a int not null, note text)")
    for key in range(1, 6):
        put(database, key, key * 10)
    yield "t"
    client.session.fail()
    client.ask("rollback; drop table if exists t")


def put(database: DevDatabase, key: int, a: int) -> None:
    row = {"table": "t", "op": "upsert", "key": {"id": key}, "values": {"a": a}}
    assert database.ask(row).committed


# ------------------------------------------------------------ reading


def test_rows_come_in_portions_and_the_tag_at_their_end(client: SqlClient, table: str) -> None:
    assert client.ask("select id, a from t where a > 20 order by id") == [(3, 30), (4, 40), (5, 50)]
    assert client.tags == ["SELECT"]


def test_a_prepared_statement_tells_its_types_and_columns(client: SqlClient, table: str) -> None:
    session = client.session
    (statement,) = session.statements("select a + $1 as more, note from t where id = $2")
    prepared = session.prepare(statement, (Type("bigint"),))
    assert list(prepared.parameters) == [Type("bigint"), Type("integer")]
    assert prepared.columns is not None
    more, note = prepared.columns
    assert more == Column("more", Type("bigint"))
    assert note == Column("note", Type("text"), table_oid(_table_id(client)), 3)
    assert client.run(prepared, (5, 2)) == [(25, None)]


def _table_id(client: SqlClient) -> int:
    with client.session._state.node.single_read().snapshot() as snapshot:
        return int(snapshot.newest("t").table_id)


def test_statements_of_one_text_run_until_the_first_that_fails(client: SqlClient) -> None:
    with pytest.raises(Refused) as caught:
        client.ask("select 1; select 1/0; select 2")
    assert caught.value.sqlstate == "22012"
    assert client.tags == ["SELECT"]


def test_errors_are_placed_in_the_whole_text(client: SqlClient, table: str) -> None:
    with pytest.raises(Refused) as caught:
        client.ask("select 1; select nope from t")
    assert (caught.value.sqlstate, caught.value.detail["position"]) == ("42703", 18)


def test_a_session_is_told_of_itself(client: SqlClient) -> None:
    asked = "select current_user, current_database(), current_schema(), pg_backend_pid()"
    assert client.ask(asked) == [("me", "dev", "public", 7)]
    ((version,),) = client.ask("select pg_catalog.version()")
    assert version.startswith("PostgreSQL 15")
    client.ask("set application_name = 'x y'")
    assert client.ask("select current_setting('application_name')") == [("x y",)]
    assert client.code("select current_setting('nonsense')") == "42704"


def test_a_changed_table_changes_no_prepared_result(client: SqlClient, table: str) -> None:
    session = client.session
    (statement,) = session.statements("select * from t")
    prepared = session.prepare(statement, ())
    session.end_batch()
    client.ask("alter table t add column b int")
    with pytest.raises(CachedResultChanged):
        session.recheck(prepared)
    with pytest.raises(CachedResultChanged):
        client.run(prepared)
    session.fail()
    assert client.run(session.prepare(statement, ()))[0] == (1, 10, None, None)


def test_explain_names_the_index(client: SqlClient, table: str) -> None:
    client.ask("create index t_a on t (a)")
    lines = [line for (line,) in client.ask("explain select * from t where a = 3")]
    assert any("Index Search using t_a on t" in line for line in lines)
    assert client.tags == ["EXPLAIN"]


# ------------------------------------------------------------ blocks


def test_an_error_fails_the_block_until_it_is_left(client: SqlClient, table: str) -> None:
    client.ask("begin")
    assert client.status() == Status.BLOCK
    assert client.code("select 1/0") == "22012"
    assert client.status() == Status.FAILED
    with pytest.raises(InFailedTransaction):
        client.ask("select 1")
    client.ask("commit")
    assert client.tags == ["ROLLBACK"]
    assert client.status() == Status.IDLE


def test_a_savepoint_is_the_way_back_from_an_error(client: SqlClient) -> None:
    client.ask("begin; savepoint a")
    assert client.code("select 1/0") == "22012"
    client.ask("rollback to a")
    assert client.ask("select 2") == [(2,)]
    client.ask("commit")
    assert client.tags == ["COMMIT"]


def test_read_committed_sees_what_was_committed_in_between(
    database: DevDatabase, client: SqlClient, table: str
) -> None:
    client.ask("begin")
    assert client.ask("select a from t where id = 1") == [(10,)]
    put(database, 1, 11)
    assert client.ask("select a from t where id = 1") == [(11,)]
    client.ask("commit")


def test_repeatable_read_sees_one_moment(
    database: DevDatabase, client: SqlClient, table: str
) -> None:
    client.ask("begin isolation level repeatable read")
    assert client.ask("select a from t where id = 1") == [(10,)]
    put(database, 1, 12)
    assert client.ask("select a from t where id = 1") == [(10,)]
    client.ask("commit")
    assert client.ask("select a from t where id = 1") == [(12,)]


def test_time_stands_still_in_a_block(client: SqlClient) -> None:
    client.ask("begin")
    assert client.ask("select now()") == client.ask("select now()")
    client.ask("commit")


def test_a_block_keeps_the_versions_that_it_has_used(client: SqlClient, table: str) -> None:
    """D8: while it lasts, the change waits for it, and says for whom."""
    other = SqlClient(client.session._state.node._all)  # type: ignore[attr-defined]
    client.ask("begin")
    client.ask("select * from t")
    other.ask("set leasehold.wait_for_jobs = off; alter table t add column b int")
    node = client.session._state.node
    table_id = _table_id(client)
    held = node._running.agent.leases.all[table_id]  # type: ignore[attr-defined]
    (use,) = [use for lease in held.values() for use in lease.named]
    assert (use.label, use.sql) == ("SQL session 7 of me", "select * from t")
    client.ask("commit")
    assert not [use for lease in held.values() for use in lease.named]
    assert node.wait(lambda: all(j.status.ended for j in node.jobs().values()), 30.0)
    other.session.close()


def test_what_came_before_begin_is_leased_and_runs_again_with_the_block(
    database: DevDatabase, client: SqlClient, table: str
) -> None:
    client.ask("update t set a = a + 1 where id = 1; begin; select * from t where id = 2")
    leases = client.session._state.node._running.agent.leases.all[_table_id(client)]  # type: ignore[attr-defined]
    assert [use.label for lease in leases.values() for use in lease.named] == [
        "SQL session 7 of me"
    ]
    put(database, 1, 70)
    client.ask("update t set a = a + 1 where id = 2; commit")
    assert client.ask("select a from t where id < 3 order by id") == [(71,), (21,)]
    assert not [use for lease in leases.values() for use in lease.named]


@pytest.mark.parametrize("level", ["snapshot", "serializable", "linearizable"])
def test_a_block_sees_the_moment_of_what_came_before_begin(
    database: DevDatabase, client: SqlClient, table: str, level: str
) -> None:
    client.ask(f"set leasehold.isolation = '{level}'")
    client.ask("select * from t where id = 1; begin")
    put(database, 1, 70)
    assert client.ask("select a from t where id = 1") == [(10,)]
    client.ask("commit")
    assert client.ask("select a from t where id = 1") == [(70,)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("select current_database(); begin isolation level repeatable read", "25001"),
        ("select current_database(); begin as of lsn 1", "25001"),
        ("savepoint a", "25P01"),
        ("begin isolation level serializable as of 3", "0A000"),
        ("set session characteristics as transaction as of 3", "0A000"),
        ("begin as of 999999", "57P03"),
        ("begin as of timestamp '2001-01-01'", "72000"),
        ("begin as of 'never'", "22007"),
        ("begin as of", "42601"),
        ("set leasehold.as_of = 'never'", "22007"),
        ("begin; select 1; set transaction as of 3", "25001"),
        ("begin; select 1; set local leasehold.as_of = 3", "25001"),
        ("begin; select 1; set transaction isolation level repeatable read", "25001"),
        ("begin; discard all", "25001"),
        ("begin; rollback to nope", "3B001"),
        ("begin read only; create table u (a int primary key)", "25006"),
    ],
)
def test_what_is_refused(client: SqlClient, text: str, code: str) -> None:
    assert client.code(text) == code
    client.ask("rollback")


@pytest.mark.parametrize(
    ("said", "spoken"),
    [
        ("read uncommitted", "read committed"),
        ("read committed", "read committed"),
        ("repeatable read", "repeatable read"),
        ("snapshot", "repeatable read"),
        ("serializable", "serializable"),
        ("linearizable", "serializable"),
        ("default", "read committed"),
    ],
)
def test_levels_are_said_in_their_own_words_and_told_in_postgresqls(
    client: SqlClient, said: str, spoken: str
) -> None:
    for text in (f"begin isolation level {said}", f"begin; set transaction isolation level {said}"):
        client.ask(text)
        assert client.ask("show transaction_isolation") == [(spoken,)]
        client.ask("commit")
        assert client.ask("show transaction isolation level") == [("read committed",)]
    client.ask(f"set session characteristics as transaction isolation level {said}; begin")
    assert client.ask("show transaction_isolation") == [(spoken,)]
    client.ask("commit")
    assert client.ask("show default_transaction_isolation") == [(spoken,)]
    client.ask("reset leasehold.isolation")
    assert client.ask("show default_transaction_isolation") == [("read committed",)]


def test_the_two_names_of_the_default_level_follow_each_other(database: DevDatabase) -> None:
    for name, value, other, follows in (
        ("leasehold.isolation", "linearizable", "default_transaction_isolation", "serializable"),
        ("default_transaction_isolation", "repeatable read", "leasehold.isolation", "snapshot"),
    ):
        client = SqlClient(database, **{name: value})
        assert client.ask(f"show {other}") == [(follows,)]
        client.ask(f"set {other} = 'read committed'")
        assert client.ask(f"show {name}") == [("read committed",)]
        client.ask("reset all")
        assert client.ask(f"show {other}") == [(follows,)]
        client.session.close()


def test_warnings_of_transaction_control(client: SqlClient) -> None:
    client.ask("commit")
    client.ask("begin; begin; commit")
    codes = [r.sqlstate for r in client.reports if isinstance(r, Notice)]
    assert codes == ["25P01", "25001"]


# ------------------------------------------------------------ settings


def test_a_rolled_back_block_takes_its_settings_back_and_says_so(client: SqlClient) -> None:
    client.ask("begin; set application_name = 'inside'")
    client.ask("rollback")
    told = [r.value for r in client.reports if isinstance(r, SettingChanged)]
    assert told == ["inside", ""]
    assert client.ask("show application_name") == [("",)]


def test_what_drivers_say_to_clean_up(client: SqlClient) -> None:
    client.ask("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;")
    assert client.tags == ["SELECT", "CLOSE CURSOR ALL", "UNLISTEN", "RESET"]
    client.ask("DISCARD ALL")
    assert client.reports == [PortalsClosed(None), Deallocated(None), PortalsClosed(None)]


def test_time_limits_are_the_settings(client: SqlClient) -> None:
    client.ask("set statement_timeout = '1500ms'; set idle_in_transaction_session_timeout = 2000")
    limits = client.session.time_limits
    assert (limits.statement_s, limits.idle_in_transaction_s) == (1.5, 2.0)


# ------------------------------------------------------------ schema changes


def test_a_change_is_there_when_it_is_answered(client: SqlClient, table: str) -> None:
    client.ask("alter table t add column b int not null default 7")
    assert client.tags == ["ALTER TABLE"]
    assert client.ask("select b from t where id = 1") == [(7,)]


def test_a_change_that_rows_break_says_so_with_its_code(client: SqlClient, table: str) -> None:
    assert client.code("alter table t add constraint small check (a < 30)") == "23514"
    assert client.code("alter table t alter note set not null") == "23502"
    assert client.code("create table t (id int primary key)") == "42P07"


def test_what_is_there_already_is_a_notice(client: SqlClient, table: str) -> None:
    client.ask("create table if not exists t (id int primary key)")
    (notice,) = [r for r in client.reports if isinstance(r, Notice)]
    assert "t" in notice.message


def test_explain_of_a_change_shows_its_steps(client: SqlClient, table: str) -> None:
    lines = [line for (line,) in client.ask("explain alter table t add column b int")]
    assert lines[0].startswith("step 1, version 2: column b")


# ------------------------------------------------------------ ends


def test_cancel_ends_what_runs_and_nothing_else(client: SqlClient) -> None:
    session = client.session
    session.cancel(Canceled("too early"))
    assert client.ask("select 1") == [(1,)]
    reason = Canceled("canceling statement due to user request")
    caught: list[Any] = []

    def count() -> None:
        try:
            client.ask("select count(*) from generate_series(1, 1000000000)")
        except LeaseholdError as error:
            caught.append(error)

    thread = threading.Thread(target=count)
    thread.start()
    while not caught:
        session.cancel(reason)
        thread.join(0.01)
    thread.join()
    assert caught == [reason]
    assert client.ask("select 1") == [(1,)]


def test_a_statement_has_its_limit_of_time(client: SqlClient) -> None:
    client.ask("set statement_timeout = 50")
    assert client.code("select count(*) from generate_series(1, 1000000000)") == "57014"


def test_closing_gives_back_what_a_block_holds(client: SqlClient, table: str) -> None:
    client.ask("begin; select * from t")
    leases = client.session._state.node._running.agent.leases.all[_table_id(client)]  # type: ignore[attr-defined]
    assert [use for lease in leases.values() for use in lease.named]
    client.session.close()
    assert not [use for lease in leases.values() for use in lease.named]
    assert client.status() == Status.IDLE


def test_no_read_without_coherence(database: DevDatabase, client: SqlClient) -> None:
    """C2, and the wait that is asked for."""
    client.ask("set leasehold.coherent_timeout = 0")
    node = database.cluster.nodes["r1"].node
    assert node is not None
    with database.held():
        until, node.lease.until_ns = node.lease.until_ns, 0
        with pytest.raises(LeaseholdError) as caught:
            client.session._runner.run(
                client.session.statements("select 1")[0],
                lambda: client.session._runner.transaction().plan("select 1", ()),
            )
        node.lease.until_ns = until
    assert caught.value.sqlstate == "57P03"


def test_what_an_event_tells_of_is_read_after_waiting_for_its_lsn(
    database: DevDatabase, client: SqlClient, table: str
) -> None:
    """An event may be there before a coherent replica has its row: whoever has heard of it waits
    for the LSN that it names."""
    node = database.sql_node("r1")
    lsn = client.session._state.node._running.position.lsn + 1  # type: ignore[attr-defined]
    client.ask("set leasehold.coherent_timeout = 0")
    assert client.code(f"set leasehold.wait_for_lsn = {lsn}") == "57P03"
    assert client.ask("show leasehold.wait_for_lsn") == [("0",)]
    client.ask("set leasehold.coherent_timeout = '30s'")
    with ThreadPoolExecutor(1) as pool:
        other = SqlClient(database)
        waiting = pool.submit(client.ask, f"set leasehold.wait_for_lsn = {lsn}")
        other.ask("insert into t values (77, 7)")
        waiting.result()
    assert client.ask("select a from t where id = 77") == [(7,)]
    assert node.sees_below(lsn + 1)
    assert client.code("select set_config('leasehold.wait_for_lsn', '1', false)") == "0A000"
    assert client.code("set leasehold.wait_for_lsn = 'x'") == "22023"
    client.ask("begin isolation level repeatable read")
    other.ask("insert into t values (78, 7)")
    client.ask(f"set leasehold.wait_for_lsn = {lsn}")
    assert client.code(f"set leasehold.wait_for_lsn = {lsn + 1}") == "25001"
    client.ask("rollback")


def test_a_schema_change_waits_for_no_coherence_here(
    database: DevDatabase, client: SqlClient, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The master executes it: behind a large COPY this replica comes along a moment later."""
    client.ask("alter table t add column s serial; set leasehold.wait_for_jobs = off")
    node = database.sql_node("r1")
    with monkeypatch.context() as patched:
        patched.setattr(type(node), "coherent", property(lambda self: False))
        client.ask("alter table t alter note set default 'x'")
        assert client.tags == ["ALTER TABLE"]
        client.ask("alter sequence t_s_seq increment 2")
        assert client.tags == ["ALTER SEQUENCE"]
    client.ask("set leasehold.wait_for_jobs = on")


def test_coherence_that_ends_after_the_wait_is_waited_for_again(
    client: SqlClient, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C2: between the wait and each statement's snapshot the lease ends once."""
    looks = iter(range(100))

    def every_other(node: DevNode) -> bool:
        return next(looks) % 2 == 1

    monkeypatch.setattr(DevNode, "_holds", every_other)
    for text in ("select * from t", "begin", "select * from t", "truncate t", "rollback"):
        client.ask(text)
    assert next(looks) > 6
