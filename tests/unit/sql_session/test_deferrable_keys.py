"""Foreign keys that SET CONSTRAINTS defers, and ALTER CONSTRAINT, which says when they are looked
at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.features import Feature, FeatureGate
from tests.support.sql_session.sql_client import SqlClient, client_of_tables

MADE = (
    "create table p (id int primary key);"
    " create table c (id int primary key, p int references p deferrable, q int references p)"
)
BROKEN = "23503"


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(
        database, MADE, "insert into p values (1)", dropped_by="drop table c, p"
    ) as made:
        yield made


def test_it_is_looked_at_with_the_statement_until_it_is_deferred(client: SqlClient) -> None:
    assert client.code("begin; insert into c values (1, 2)") == BROKEN
    client.ask("rollback; begin; set constraints c_p_fkey deferred; insert into c values (1, 2)")
    client.ask("insert into p values (2); commit")
    assert client.ask("select p from c") == [(2,)]
    assert client.code("begin; delete from p where id = 2") == BROKEN
    client.ask("rollback; begin; set constraints all deferred; delete from p where id = 2")
    assert client.code("commit") == BROKEN


def test_one_that_is_not_deferrable_is_not_deferred(client: SqlClient) -> None:
    assert client.code("begin; set constraints c_q_fkey deferred") == "42809"
    client.ask("rollback; begin; set constraints all deferred")
    assert client.code("insert into c values (1, null, 2)") == BROKEN
    client.ask("rollback")


def test_alter_constraint_says_it_anew(client: SqlClient) -> None:
    client.ask("alter table c alter constraint c_q_fkey deferrable initially deferred")
    client.ask("begin; insert into c values (1, null, 2); insert into p values (2); commit")
    client.ask("alter table c alter constraint c_q_fkey")
    assert client.code("begin; insert into c values (2, null, 3)") == BROKEN
    client.ask("rollback")
    assert client.code("alter table c alter constraint c_pkey deferrable") == "42809"
    assert client.code("alter table c alter constraint no_such deferrable") == "42704"


def test_a_text_makes_a_key_and_says_it_anew(client: SqlClient) -> None:
    client.ask(
        "alter table c add constraint r foreign key (id) references p;"
        " alter table c alter constraint r deferrable initially deferred"
    )
    deferred = "select condeferrable, condeferred from pg_constraint where conname = 'r'"
    assert client.ask(deferred) == [(True, True)]


def test_an_earlier_release_keeps_them_away(
    database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(lambda number, now_ns: number < Feature.DEFERRABLE_KEYS)
    made = "create table n (id int primary key, a int references n{})"
    with monkeypatch.context() as patch:
        patch.setattr(changes, "features", earlier)
        assert database.ask({"sql": made.format(" deferrable")}).outcome.code == "0A000"
        assert database.ask({"sql": made.format("")}).committed
        for words in ("deferrable", "deferrable initially deferred", "not deferrable"):
            altered = f"alter table n alter constraint n_a_fkey {words}"
            assert database.ask({"sql": altered}).outcome.code == "0A000"
    altered = "alter table n alter constraint n_a_fkey deferrable"
    assert database.ask({"sql": altered}).committed
    for job in database.jobs():
        database.wait_job(job.job_id)
    assert database.ask({"sql": "drop table n"}).committed
