"""Enum types, as the sessions of several nodes have them: what PostgreSQL does not have to do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import Descriptor
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from leasehold.model.features import Feature, FeatureGate
from leasehold.values.storage import from_storage
from tests.support.sql_session.sql_client import SqlClient, client_of_tables

DROPPED = (
    "drop view if exists v; drop table if exists t, u, w cascade;"
    " drop type if exists mood, feeling, other, third"
)


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    tables = (
        "create type mood as enum ('sad', 'ok', 'happy')",
        "create table t (id int primary key, m mood default 'ok', ms mood[])",
        "insert into t values (1, 'happy'), (2, 'sad')",
        "create table u (m mood primary key)",
        "insert into u values ('ok'), ('happy')",
    )
    with client_of_tables(database, *tables, dropped_by=DROPPED) as made:
        yield made


def error(client: SqlClient, text: str) -> LeaseholdError:
    with pytest.raises(LeaseholdError) as caught:
        client.ask(text)
    return caught.value


def newest(database: DevDatabase, name: str) -> Descriptor:
    with database._stores["r1"].open_snapshot() as snapshot:
        return snapshot.newest(name)


def labels(client: SqlClient, text: str) -> list[str]:
    return [shown for (shown,) in client.ask(text)]


def test_a_label_comes_to_all_tables_of_the_type(client: SqlClient, database: DevDatabase) -> None:
    before = {name: newest(database, name).version for name in ("t", "u")}
    client.ask("alter type mood add value 'meh' before 'ok'")
    other = SqlClient(database, "r2")
    other.ask("insert into t values (3, 'meh', '{meh,sad}'); insert into u values ('meh')")
    other.session.close()
    assert labels(client, "select m::text as said from t order by m") == ["sad", "meh", "happy"]
    assert labels(client, "select m::text as said from u order by m") == ["meh", "ok", "happy"]
    for name in ("t", "u"):
        after = newest(database, name)
        assert after.version == before[name] + 2
        assert all(column.narrow is None for column in after.columns)


def test_a_label_is_not_written_before_all_who_read_know_it(
    client: SqlClient, database: DevDatabase
) -> None:
    """Goal: while a version is in use that lacks the label, no writer of the next one gives it,
    however it gets it."""
    other = SqlClient(database, "r2")
    other.ask("begin; select * from t")  # it holds the version of now
    client.ask("set leasehold.wait_for_jobs = off")
    client.ask("alter type mood add value 'meh'")
    client.ask("create table w (m mood)")
    client.ask("insert into w values ('meh')")
    assert client.code("insert into t (id, m) values (9, 'meh')") == "22P02"
    assert client.code("insert into t (id, m) select 9, m from w") == "22P02"
    assert client.code("update t set m = 'meh'::mood") == "22P02"
    assert client.ask("select count(*) from t where m < 'meh'::mood") == [(2,)]
    other.ask("commit")
    other.session.close()
    client.ask("set leasehold.wait_for_jobs = on")
    client.ask("alter type mood add value if not exists 'meh'")
    for number in list(client.node.jobs()):
        job = database.wait_job(number)
        assert job is not None
        assert job.error == ""
    client.ask("insert into t (id, m) select 9, m from w")


def test_a_table_that_is_busy_keeps_the_type_as_it_is(
    client: SqlClient, database: DevDatabase
) -> None:
    other = SqlClient(database, "r2")
    other.ask("begin; select * from t")
    client.ask("set leasehold.wait_for_jobs = off; alter table t alter m set not null")
    assert client.code("alter type mood add value 'meh'") == "55006"
    assert client.code("select 'meh'::mood") == "22P02"
    other.ask("commit")
    other.session.close()
    for number in list(client.node.jobs()):
        database.wait_job(number)


def test_a_renamed_label_is_the_same_value(client: SqlClient, database: DevDatabase) -> None:
    client.ask("create index by_m on t (m) where m > 'sad'::mood")
    client.ask("alter type mood rename value 'happy' to 'glad'")
    assert client.ask("select id from t where m = 'glad'") == [(1,)]
    assert client.code("select id from t where m = 'happy'") == "22P02"
    refused = error(client, "alter type mood rename value 'sad' to 'blue'")
    assert (refused.sqlstate, "by_m" in refused.message) == ("0A000", True)
    client.ask("drop index by_m; alter table t add constraint k check (m::text <> 'x')")
    assert error(client, "alter type mood rename value 'sad' to 'x'").sqlstate == "0A000"


def test_kept_texts_follow_the_type_to_another_name(client: SqlClient) -> None:
    client.ask("alter table t add constraint k check (m <> 'sad'::mood or id = 2)")
    client.ask("create index by_m on t (m) where m > 'sad'::mood")
    client.ask("alter type mood rename to feeling")
    client.ask("create type mood as enum ('sad')")
    assert client.code("insert into t values (3, 'sad')") == "23514"
    told = "select pg_get_constraintdef(oid) from pg_constraint where conname = 'k'"
    assert "::feeling" in client.ask(told)[0][0]
    (plan,) = client.ask("explain select m from t where m > 'sad'::feeling")
    assert "by_m" in plan[0]
    assert error(client, "insert into t values (4, 'glad')").message.endswith(
        'invalid input value for enum feeling: "glad"'
    )
    client.ask("create view v as select id from t where m = 'ok'::feeling")
    assert client.code("alter type feeling rename to other") == "0A000"
    assert client.code("alter type feeling rename value 'ok' to 'fine'") == "0A000"
    assert "view v" in str(error(client, "drop type feeling cascade").detail)


def test_a_plan_is_of_the_type_of_now(client: SqlClient) -> None:
    """Goal: what was prepared is prepared anew when a name means another type."""
    client.ask("create type other as enum ('a', 'b')")
    (prepared,) = [
        client.session.prepare(statement, ())
        for statement in client.session.statements("select 'a'::other::text")
    ]
    assert client.run(prepared) == [("a",)]
    client.ask("alter type other rename value 'a' to 'c'")
    with pytest.raises(LeaseholdError, match="invalid input value for enum other"):
        client.run(prepared)
    client.session.fail()
    client.ask("drop type other; create type other as enum ('a')")
    assert client.ask("select enum_last(null::other)::text") == [("a",)]


def test_types_come_and_go_with_the_rows_of_a_block(
    client: SqlClient, database: DevDatabase
) -> None:
    """Goal: what a block says of types holds for it, and for others when it has committed."""
    other = SqlClient(database, "r2")
    client.ask("begin; create type other as enum ('a', 'b')")
    client.ask("alter table t add column o other default 'b'")
    client.ask("alter type other rename to third; insert into t values (3, 'ok', null, 'a')")
    assert client.ask("select o::text from t order by o, id") == [("a",), ("b",), ("b",)]
    assert other.code("select 'a'::third") == "42704"
    client.ask("rollback")
    assert client.code("select 'a'::third") == "42704"
    assert other.ask("select typname from pg_type where typname in ('other', 'third')") == []
    client.ask("begin; create type other as enum ('a', 'b')")
    client.ask("alter table t add column o other default 'b'")
    client.ask("insert into t (id, o) values (4, 'a')")
    other.ask("create type third as enum ('x')")  # which takes the next number
    client.ask("commit")
    assert other.ask("select o::text from t order by o, id") == [("a",), ("b",), ("b",)]
    assert other.ask("select pg_typeof(o)::text from t limit 1") == [("other",)]
    assert other.code("drop type other") == "2BP01"
    other.session.close()


def test_types_outlast_a_start(client: SqlClient, database: DevDatabase) -> None:
    client.ask("comment on type mood is 'how it is'; alter type mood add value 'last'")
    for node in ("r1", "r2"):
        with database._stores[node].open_snapshot() as snapshot:
            stored = snapshot.stored_catalog()
        loaded = Access.load(stored.access, stored.next_role_id)
        assert loaded.enums == client.node.access.enums
        assert loaded.comments == client.node.access.comments
    client.ask("drop table t, u; drop type mood")
    assert not client.node.access.enums
    assert not client.node.access.comments


def test_an_earlier_release_keeps_types_away(
    database: DevDatabase, client: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(lambda number, now_ns: number < Feature.ENUMS)
    monkeypatch.setattr(changes, "features", earlier)
    refused = error(client, "create type other as enum ('a')")
    assert (refused.sqlstate, "earlier release" in refused.message) == ("0A000", True)
    monkeypatch.undo()
    client.ask("create type other as enum ('a')")


def test_who_may_change_a_type(client: SqlClient, database: DevDatabase) -> None:
    client.ask("create role maker login; grant create on database leasehold to maker")
    try:
        maker = SqlClient(database, "r1", user="maker")
        maker.ask("create type other as enum ('a')")
        for text in (
            "alter type mood add value 'x'",
            "alter type mood rename to third",
            "drop type mood",
            "alter type mood owner to maker",
        ):
            assert maker.code(text) == "42501", text
        assert client.code("drop role maker") == "2BP01"
        # Whoever owns a type changes the tables of others that have columns of it.
        client.ask("create table w (o other); insert into w values ('a')")
        maker.ask("alter type other add value 'b'")
        client.ask("insert into w values ('b')")
        client.ask("create role heir; reassign owned by maker to heir")
        assert maker.code("alter type other add value 'c'") == "42501"
        maker.session.close()
    finally:
        client.ask("drop table if exists w; drop type if exists other; drop owned by maker")
        client.ask("drop role maker; drop role if exists heir")


def test_rows_and_versions_tell_labels(client: SqlClient, database: DevDatabase) -> None:
    """Goal: whoever follows a table needs nothing but its version to read a value."""
    column = newest(database, "t").by_name["m"]
    assert column.type.enum is not None
    assert [label.text for label in column.type.enum.labels] == ["sad", "ok", "happy"]
    ((stored,),) = client.ask("select m from t where id = 1")
    assert from_storage(column.type, stored) == "happy"
