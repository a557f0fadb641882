"""A number that is a default is shown as it was written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.features import Feature, FeatureGate
from tests.support.sql_session.sql_client import SqlClient, client_of_tables

SHOWN = (
    "select string_agg(pg_get_expr(adbin, adrelid), ', ' order by adnum) from pg_attrdef"
    " where adrelid = '{}'::regclass"
)
MADE = "create table p (id int primary key, a numeric(10,2) default 0.5, b numeric(10,2) default 1)"


@pytest.fixture
def client(database: DevDatabase) -> Iterator[SqlClient]:
    dropped = "drop table if exists p"
    with client_of_tables(database, MADE, dropped_by=dropped) as made:
        yield made


def shown(client: SqlClient, table: str = "p") -> str:
    ((found,),) = client.ask(SHOWN.format(table))
    return str(found)


def test_it_is_shown_as_it_was_written(client: SqlClient) -> None:
    assert shown(client) == "0.5, 1"
    client.ask("alter table p alter a set default 0.50, alter b set default '2'")
    assert shown(client) == "0.50, '2'::numeric"
    client.ask("alter table p alter a set default 0.500")
    assert shown(client) == "0.500, '2'::numeric"
    assert client.ask("insert into p values (1) returning a::text, b::text") == [("0.50", "2.00")]
    client.ask("alter table p alter b drop default")
    assert shown(client) == "0.500"


def test_another_type_has_the_digits_that_were_written(client: SqlClient) -> None:
    client.ask("alter table p add c numeric(10,2) default 0.555, add d int default 3")
    client.ask("alter table p add e real default 0.1")
    client.ask("alter table p alter e type float")
    assert client.ask("insert into p values (1) returning c::text") == [("0.56",)]
    client.ask("alter table p alter a type numeric(10,4), alter c type numeric(10,4)")
    client.ask("alter table p alter b type double precision, alter d type numeric(10,2)")
    assert shown(client) == "0.5, 1, 0.555, 3, 0.1"
    row = "insert into p values (2) returning a::text, b, c::text, d::text, e"
    assert client.ask(row) == [("0.5000", 1.0, "0.5550", "3.00", 0.1)]


def test_a_block_shows_it_as_well(client: SqlClient) -> None:
    client.ask("begin; alter table p add c numeric(9,3) default 7, alter a set default 1.5")
    assert shown(client) == "1.5, 1, 7"
    client.ask("create table q (like p including defaults)")
    assert shown(client, "q") == "1.5, 1, 7"
    client.ask("commit; drop table q")
    assert shown(client) == "1.5, 1, 7"


def test_an_earlier_release_is_shown_the_value(
    database: DevDatabase, client: SqlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = database.cluster.master()
    assert master is not None
    assert master.node is not None
    changes = master.node.master.changes  # type: ignore[union-attr]
    earlier = FeatureGate(lambda number, now_ns: number < Feature.DEFAULT_TEXTS)
    with monkeypatch.context() as patch:
        patch.setattr(changes, "features", earlier)
        client.ask("drop table p")
        client.ask(MADE)
        client.ask("alter table p add c numeric(10,2) default 7, alter b set default 2")
        assert shown(client) == "0.50, 2.00, 7.00"
        client.ask("alter table p alter a type numeric(10,3)")
        assert shown(client) == "0.500, 2.00, 7.00"
    client.ask("alter table p alter a set default 0.5")
    assert shown(client) == "0.5, 2.00, 7.00"
