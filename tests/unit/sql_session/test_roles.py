"""Goal: a session may do what its role may, in every way in which statements are run, and sees of
others what PostgreSQL would show it.

Method: sessions of roles on a database in this process. What each statement needs is compared with
PostgreSQL by `tests/integration/postgres_compat/test_roles_postgres.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import InsufficientPrivilege, LeaseholdError
from leasehold.pgwire.session import SettingChanged
from leasehold.replica.serving_node import SqlNode
from leasehold.sql.planning.plan import Plans
from leasehold.sql_session.session import SqlSession
from tests.support.sql_session.sql_client import SqlClient, database_with, ends

FORBIDDEN: Final = "42501"
Clients = Callable[[str], SqlClient]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    texts = (
        "create table t (id integer primary key, a integer, b text)",
        "insert into t values (1, 1, 'x'), (2, 2, 'y')",
        "create role ann login",
        "create role bob login",
        "create role staff",
        "create role root superuser login",
        "grant staff to ann",
        "grant select (id, a), update (a) on t to staff",
        "grant insert on t to staff",
    )
    with database_with(tmp_path_factory, *texts) as made:
        yield made


@pytest.fixture
def client_of(database: DevDatabase) -> Iterator[Clients]:
    made: list[SqlClient] = []

    def client(user: str) -> SqlClient:
        found = SqlClient(database, user=user)
        made.append(found)
        return found

    yield client
    for each in made:
        each.session.fail()
        each.session.close()


def test_who_has_no_role_is_the_first_one_under_his_own_name(client_of: Clients) -> None:
    me = client_of("me")
    asked = "select current_user, session_user, current_setting('is_superuser')"
    assert me.ask(asked) == [("me", "me", "on")]
    assert me.ask("select rolname from pg_roles where oid = 10") == [("me",)]
    assert me.ask("select pg_get_userbyid(relowner) from pg_class where relname = 't'") == [("me",)]
    assert client_of("ann").ask(asked) == [("ann", "ann", "off")]
    assert me.code("set role ann; set role me") == "00000"


@pytest.mark.parametrize(
    "text",
    [
        "select b from t",
        "select * from t where id = 1",
        "explain select b from t",
        "begin; declare k cursor for select b from t",
        "update t set b = 'z' where id = 1",
        "update t set a = a + 1 where b = 'x'",
        "delete from t",
        "begin; truncate t",
        "select * from pg_authid",
        "select * from leasehold.settings",
    ],
)
def test_what_a_role_may_not_is_refused(client_of: Clients, text: str) -> None:
    ann = client_of("ann")
    with pytest.raises(InsufficientPrivilege, match="permission denied"):
        ann.ask(text)


@pytest.mark.parametrize(
    "text",
    [
        "select a from t where id = 1",
        "select count(*) from t",
        "update t set a = a + 0 where id = 1",
        "begin; insert into t values (3, 3, 'z'); select a from t where id = 3; rollback",
        "select relname from pg_class",
        "select * from pg_stat_activity",
    ],
)
def test_what_it_may_is_done(client_of: Clients, text: str) -> None:
    client_of("ann").ask(text)


def test_a_prepared_statement_is_looked_at_each_time_by_the_role_of_then(
    client_of: Clients,
) -> None:
    root = client_of("root")
    session = root.session
    (statement,) = session.statements("select b from t where id = 1")
    prepared = session.prepare(statement, ())

    def run(hurried: bool) -> list[Any]:
        session.hurried = hurried
        try:
            return root.run(prepared)
        finally:
            session.hurried = False
            ends(session)

    for hurried in (True, False):
        assert run(hurried) == run(hurried) == [("x",)]
        root.ask("set role ann")
        with pytest.raises(InsufficientPrivilege):
            run(hurried)
        session.fail()
        root.ask("reset role; grant select on t to staff; set role ann")
        assert run(hurried) == [("x",)]
        root.ask("reset role; revoke select on t from staff; set role ann")
        with pytest.raises(InsufficientPrivilege):
            run(hurried)
        session.fail()
        root.ask("reset role; grant select (id, a) on t to staff")


def test_copy_is_looked_at_before_any_row_comes(client_of: Clients) -> None:
    session = client_of("bob").session
    (statement,) = session.statements("copy t (id, a) from stdin")
    with pytest.raises(InsufficientPrivilege, match="permission denied for table t"):
        session.bind(session.prepare(statement, ()), ())
    session.fail()


def test_set_role_and_its_words(client_of: Clients) -> None:
    ann = client_of("ann")
    asked = "select current_user, session_user, current_setting('role')"
    ann.ask("set role staff")
    assert ann.ask(asked) == [("staff", "ann", "staff")]
    ann.ask("set role none")
    assert ann.ask(asked) == [("ann", "ann", "none")]
    for text, code, words in (
        ("set role bob", FORBIDDEN, 'permission denied to set role "bob"'),
        ("set role nobody", "22023", 'role "nobody" does not exist'),
        ("set session authorization bob", FORBIDDEN, "permission denied to set session"),
    ):
        with pytest.raises(LeaseholdError, match=words) as caught:
            ann.ask(text)
        assert caught.value.sqlstate == code
    ann.ask("set role staff; reset all")
    assert ann.ask(asked) == [("staff", "ann", "staff")]
    ann.ask("discard all")
    assert ann.ask(asked) == [("ann", "ann", "none")]


def test_a_role_goes_back_with_its_transaction(client_of: Clients) -> None:
    root = client_of("root")
    asked = "select current_user, current_setting('is_superuser')"
    root.ask("begin; set local role ann")
    assert root.ask(asked) == [("ann", "off")]
    root.ask("commit")
    assert root.ask(asked) == [("root", "on")]
    root.ask("begin; set role ann")
    root.ask("rollback")
    assert root.ask(asked) == [("root", "on")]
    root.ask("set session authorization ann")
    assert root.ask("select current_user, session_user") == [("ann", "ann")]
    assert root.code("select b from t") == FORBIDDEN
    assert SettingChanged("is_superuser", "off") in root.reports
    root.ask("reset session authorization")
    assert root.ask(asked) == [("root", "on")]


def test_one_transaction_writes_as_one_role(client_of: Clients) -> None:
    root = client_of("root")
    root.ask("begin; set role ann; insert into t values (7, 7, 'z'); reset role")
    assert root.code("delete from t where id = 7") == "0A000"
    root.ask("rollback")


def test_requests_say_whose_they_are(client_of: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = client_of("ann")
    said: list[tuple[str, str]] = []
    node: SqlNode = ann.node
    submit = node.submit

    def submitted(request: Any, *more: Any) -> Any:
        said.append((request.principal, request.as_role))
        return submit(request, *more)

    monkeypatch.setattr(node, "submit", submitted)
    for text in (
        "update t set a = a + 1 where id = 1",
        "insert into t (id) values (20)",
        "begin; update t set a = 2 where id = 1; update t set a = 1 where id = 1; commit",
    ):
        ann.ask(text)
    ann.ask("set role staff; update t set a = 1 where id = 1")
    assert said == [*[("ann", "")] * 3, ("ann", "staff")]
    root = client_of("me")
    root.ask("delete from t where id = 20")


def test_others_are_seen_and_ended_by_whom_postgresql_lets(
    client_of: Clients, database: DevDatabase
) -> None:
    me, ann = client_of("me"), client_of("ann")
    bob = SqlSession(database.sql_node(), Plans(), user="bob")
    root = SqlSession(database.sql_node(), Plans(), user="root")
    number = {"bob": bob.activity().process, "root": root.activity().process}
    asked = "select usename, state, query from pg_stat_activity where pid = %d"
    own = "select usename, query <> '' from pg_stat_activity where pid = pg_backend_pid()"
    try:
        assert ann.ask(own) == [("ann", 1)]
        hidden = [("bob", None, "<insufficient privilege>")]
        assert ann.ask(asked % number["bob"]) == hidden
        cancel = "select pg_cancel_backend(%d)"
        with pytest.raises(InsufficientPrivilege, match="whose query is being canceled"):
            ann.ask(cancel % number["bob"])
        with pytest.raises(InsufficientPrivilege, match="must be a superuser to terminate"):
            ann.ask(f"select pg_terminate_backend({number['root']})")
        me.ask("grant pg_read_all_stats, pg_signal_backend to staff")
        assert ann.ask(asked % number["bob"]) == [("bob", "idle", "")]
        assert ann.ask(cancel % number["bob"]) == [(1,)]
        with pytest.raises(InsufficientPrivilege, match="must be a superuser to cancel"):
            ann.ask(cancel % number["root"])
        assert ann.ask("select count(*) > 0 from leasehold.settings") == [(1,)]
    finally:
        me.ask("revoke pg_read_all_stats, pg_signal_backend from staff")
        bob.close()
        root.close()


def test_jobs_are_steered_by_owners_and_by_a_role_for_it(client_of: Clients) -> None:
    me, ann = client_of("me"), client_of("ann")
    me.ask("alter table t add column more integer default 7")
    (job,) = me.ask("select max(job) from leasehold.jobs")[0]
    steer = f"select leasehold.pause_job({job})"
    told = f"select sql, status from leasehold.jobs where job = {job}"
    assert ann.ask(told) == [("<insufficient privilege>", "succeeded")]
    with pytest.raises(InsufficientPrivilege, match="leasehold_steer_jobs"):
        ann.ask(steer)
    me.ask("grant leasehold_steer_jobs to ann")
    assert ann.code(steer) == "55000"  # it has ended
    assert ann.ask(told) == me.ask(told) != [("<insufficient privilege>", "succeeded")]
    me.ask("revoke leasehold_steer_jobs from ann; alter table t drop column more")


def test_dead_letters_of_others_are_for_a_role(client_of: Clients, database: DevDatabase) -> None:
    me, ann = client_of("me"), client_of("ann")
    database.ask({"table": "nope", "op": "insert", "key": {"id": 1}, "values": {"x": None}})
    asked = "select count(*) > 0 from leasehold.dead_letter where sqlstate = '42P01'"
    assert database.until(lambda: me.ask(asked) == [(1,)], 30.0)
    assert ann.ask(asked) == [(0,)]
    me.ask("grant leasehold_read_dead_letters to ann")
    assert ann.ask(asked) == [(1,)]
    me.ask("revoke leasehold_read_dead_letters from ann")


def test_information_schema_shows_what_one_has_something_to_do_with(client_of: Clients) -> None:
    ann, bob = client_of("ann"), client_of("bob")
    tables = "select table_name from information_schema.tables where table_schema = 'public'"
    assert ann.ask(tables) == [("t",)]
    assert bob.ask(tables) == []
    columns = "select column_name from information_schema.columns where table_name = 't'"
    assert bob.ask(columns) == []
    roles = "select role_name from information_schema.enabled_roles order by 1"
    assert ann.ask(roles) == [("ann",), ("staff",)]


def test_defaults_of_columns_that_are_not_named_need_no_privilege(client_of: Clients) -> None:
    me, ann = client_of("me"), client_of("ann")
    me.ask(
        "create table d (id serial primary key, a integer, made timestamptz default now(),"
        " k integer default 7, note text)"
    )
    me.ask("grant insert (a) on d to ann")
    assert ann.code("insert into d (a) values (1)") == FORBIDDEN  # the sequence
    me.ask("grant usage on sequence d_id_seq to ann")
    ann.ask("insert into d (a) values (1)")
    for column, value in (("id", "9"), ("made", "now()"), ("k", "7"), ("note", "null")):
        assert ann.code(f"insert into d (a, {column}) values (1, {value})") == FORBIDDEN, column
    assert me.ask("select a, k from d") == [(1, 7)]
    me.ask("drop table d")


def test_numbers_of_a_sequence_are_for_whom_postgresql_lets(client_of: Clients) -> None:
    me, ann = client_of("me"), client_of("ann")
    me.ask("create sequence q")
    allowed = {
        "usage": ("nextval('q')", "currval('q')"),
        "update": ("nextval('q')", "setval('q', 7)"),
        "select": ("currval('q')",),
    }
    every = ("nextval('q')", "currval('q')", "setval('q', 7)")
    for privilege, calls in allowed.items():
        me.ask("grant usage on sequence q to ann")
        ann.ask("select nextval('q')")  # which currval tells of
        me.ask(f"revoke all on sequence q from ann; grant {privilege} on sequence q to ann")
        for call in every:
            assert ann.code(f"select {call}") == ("00000" if call in calls else FORBIDDEN), call
    me.ask("drop sequence q")


def test_who_makes_a_table_in_a_block_owns_it_there(
    client_of: Clients, database: DevDatabase
) -> None:
    me, ann, bob = client_of("me"), client_of("ann"), client_of("bob")
    name = database.sql_node().database
    own = "create table own (id serial primary key, a integer)"
    assert ann.code(own) == FORBIDDEN
    me.ask(f"grant create on database {name} to ann")
    ann.ask(f"begin; {own}; insert into own (a) values (1)")
    assert ann.ask("update own set a = a + 1 returning a") == [(2,)]
    ann.ask("truncate own restart identity; insert into own (a) values (3); commit")
    assert ann.ask(
        "select id, a, pg_get_userbyid(relowner) from own, pg_class where relname = 'own'"
    ) == [(1, 3, "ann")]
    assert bob.code("select * from own") == FORBIDDEN
    ann.ask("drop table own")
    me.ask(f"revoke create on database {name} from ann")


def test_the_past_is_read_by_who_may_read_now(client_of: Clients) -> None:
    me, ann = client_of("me"), client_of("ann")
    me.ask("create table p (id integer primary key); insert into p values (1)")
    me.ask("grant select on p to ann")
    (lsn,) = me.ask("select max(lsn) from leasehold.versions where table_name = 'p'")[0]
    past = f"begin as of lsn {lsn}; select count(*) from p"
    assert ann.code(past) == "00000"
    ann.ask("rollback")
    me.ask("revoke select on p from ann")
    assert ann.code(past) == FORBIDDEN
    ann.ask("rollback")
    me.ask("drop table p")


def test_a_replay_is_held_to_the_role_of_its_statements(client_of: Clients) -> None:
    me, root = client_of("me"), client_of("root")
    root.ask("begin; set role ann; update t set a = a + 1 where id in (select 1); reset role")
    me.ask("update t set a = 1 where id = 1")
    me.ask("revoke update (a) on t from staff")
    code = root.code("commit")
    me.ask("grant update (a) on t to staff")
    assert code in ("40001", FORBIDDEN)
    assert me.ask("select a from t where id = 1") == [(1,)]


def test_a_role_may_be_renamed_while_it_is_at_work(client_of: Clients) -> None:
    me = client_of("me")
    me.ask("create role eve login; grant staff to eve")
    eve = client_of("eve")
    me.ask("alter role eve rename to eva; create role eve login")
    assert eve.ask("select current_user, session_user") == [("eva", "eva")]
    eve.ask("update t set a = 1 where id = 1")  # which the master lets eva
    me.ask("revoke staff from eva; drop role eve, eva")
    assert eve.code("select a from t") == FORBIDDEN
