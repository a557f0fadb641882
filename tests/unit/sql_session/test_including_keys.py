"""PRIMARY KEY … INCLUDE: what the key includes is shown, and follows its columns; rows lie as they
would without."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.features import Feature, FeatureGate
from tests.support.sql_session.sql_client import SqlClient, client_of_tables

MADE = "create table k (id int, a int, b text, c int, primary key (id) include (b, a, b, id))"
KEY = "select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'k'::regclass"
INDEX = (
    "select indnatts, indnkeyatts, indkey, pg_get_indexdef(indexrelid) from pg_index"
    " where indrelid = 'k'::regclass"
)


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    rows = "insert into k values (1, 10, 'x', 7), (2, 20, 'y', 8)"
    dropped = "drop table if exists k"
    with client_of_tables(database, MADE, rows, dropped_by=dropped) as made:
        yield made


def definition(client: SqlClient) -> str:
    ((found,),) = client.ask(KEY)
    return str(found)


def table_id(database: DevDatabase) -> int:
    return next(table.table_id for table in database.tables() if table.name == "k")


def test_catalogs_show_it(client: SqlClient) -> None:
    assert definition(client) == "PRIMARY KEY (id) INCLUDE (b, a)"
    ((parts, keys, numbers, text),) = client.ask(INDEX)
    assert (parts, keys, numbers) == (3, 1, "[1,3,2]")
    assert text == "CREATE UNIQUE INDEX k_pkey ON public.k USING btree (id) INCLUDE (b, a)"
    assert client.code("insert into k values (1, 1, 'z', 1)") == "23505"
    assert client.ask("insert into k values (1) on conflict (id) do update set a = 11 returning a")


def test_a_column_of_another_type_and_name_stays_in_it(client: SqlClient) -> None:
    client.ask("alter table k alter b type int using length(b); alter table k rename a to d")
    assert definition(client) == "PRIMARY KEY (id) INCLUDE (b, d)"
    client.ask("alter table k rename to l; alter table l rename to k")
    assert definition(client) == "PRIMARY KEY (id) INCLUDE (b, d)"
    client.ask("alter table k drop constraint k_pkey, add primary key (id) include (d, b)")
    client.ask("alter table k alter b type text")
    assert definition(client) == "PRIMARY KEY (id) INCLUDE (d, b)"


def test_a_column_in_it_is_not_dropped(client: SqlClient, database: DevDatabase) -> None:
    assert client.code("alter table k drop column b") == "42P16"
    before = table_id(database)
    client.ask("alter table k drop constraint k_pkey, add primary key (id) include (a)")
    client.ask("alter table k drop column b")
    assert definition(client) == "PRIMARY KEY (id) INCLUDE (a)"
    client.ask("alter table k drop constraint k_pkey, add constraint kk primary key (id)")
    assert definition(client) == "PRIMARY KEY (id)"
    assert table_id(database) == before, "rows have stayed where they are"


def test_another_key_has_its_own(client: SqlClient) -> None:
    client.ask("alter table k drop constraint k_pkey, add primary key (c) include (b)")
    assert definition(client) == "PRIMARY KEY (c) INCLUDE (b)"
    client.ask("alter table k drop constraint k_pkey")
    assert client.ask(KEY) == []
    client.ask("alter table k drop column b; create unique index i on k (id) include (c)")
    client.ask("alter table k add primary key using index i")
    assert definition(client) == "PRIMARY KEY (id) INCLUDE (c)"
    assert client.ask("select id, a, c from k order by id") == [(1, 10, 7), (2, 20, 8)]


def test_statements_of_one_text_and_copies(client: SqlClient) -> None:
    client.ask("create table l (x int, y int); alter table l add primary key (x) include (y)")
    client.ask("create table m (like k including all)")
    keys = (
        "select pg_get_constraintdef(oid) from pg_constraint where conname in ('l_pkey', 'm_pkey')"
    )
    assert sorted(client.ask(keys)) == [
        ("PRIMARY KEY (id) INCLUDE (b, a)",),
        ("PRIMARY KEY (x) INCLUDE (y)",),
    ]
    client.ask("drop table l, m")
    for said in ("include (nobody)", "include (a, nobody)"):
        assert client.code(f"create table l (x int, a int, primary key (x) {said})") == "42703"
        added = f"alter table k drop constraint k_pkey, add primary key (id) {said}"
        assert client.code(added) == "42703"


def test_an_earlier_release_keeps_them_away(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(lambda number, now_ns: number < Feature.INCLUDING_KEYS)
    made = "create table n (id int, a int, primary key (id){})"
    anew = "alter table n drop constraint n_pkey, add primary key ({}) include ({})"
    with monkeypatch.context() as patch:
        patch.setattr(changes, "features", earlier)
        assert database.ask({"sql": made.format(" include (a)")}).outcome.code == "0A000"
        assert database.ask({"sql": made.format("")}).committed
        for said in (anew.format("id", "a"), anew.format("a", "id")):
            assert database.ask({"sql": said}).outcome.code == "0A000"
    assert database.ask({"sql": anew.format("a", "id")}).committed
    for job in database.jobs():
        database.wait_job(job.job_id)
    assert database.ask({"sql": "drop table n"}).committed
