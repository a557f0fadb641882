"""Goal: char(n) becomes text or a longer varchar under what keeps its values: a primary key, a
foreign key on either side. It stays where it is, if every value has n characters; a CHECK holds
them to that while readers know both types.

Method: a whole database in this process. The steps under disturbances: tests/matrix (`fill_type`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import CheckViolation
from tests.support.sql_session.sql_client import SqlClient, client_of_tables

TABLES = (
    "create table u (id char(4) primary key, n int)",
    "create table v (id char(4) primary key, u char(4) references u, w char(4) unique)",
    "insert into u values ('abcd', 1), ('efgh', 2)",
    "insert into v values ('aaaa', 'abcd', 'bbbb'), ('cccc', null, null)",
)


@pytest.fixture
def one(database: DevDatabase) -> Iterator[SqlClient]:
    with client_of_tables(database, *TABLES, dropped_by="drop table if exists v, u") as made:
        yield made


def test_keys_and_what_refers_to_them_become_texts(one: SqlClient) -> None:
    one.ask("alter table u alter id type varchar(10)")
    one.ask("alter table v alter u type varchar(10)")
    one.ask("alter table v alter id type text")
    assert one.ask("select * from v join u on u.id = v.u") == [("aaaa", "abcd", "bbbb", "abcd", 1)]
    one.ask("insert into u values ('a ', 3), ('a', 4)")
    assert one.ask("select length(id) from u where n > 2 order by n") == [(2,), (1,)]
    one.ask("insert into v values ('x', 'a ', null)")
    assert one.code("insert into v values ('y', 'zz', null)") == "23503"
    assert one.code("delete from u where id = 'a '") == "23503"
    kept = one.ask("select conname from pg_constraint where contype = 'c'")
    assert kept == [], "the check goes with the change"


@pytest.mark.parametrize("kind", ["varchar(3)", "integer", "char(5)"])
def test_what_a_key_may_not_become_is_refused_as_before(one: SqlClient, kind: str) -> None:
    assert one.code(f"alter table u alter id type {kind}") == "0A000"


def test_a_shorter_value_ends_the_change_and_is_named(one: SqlClient) -> None:
    """It was published with the blanks that fill it up, and nobody would be told another one."""
    one.ask("insert into u values ('ab', 3)")
    with pytest.raises(CheckViolation, match=r"u_id_length.*'ab'"):
        one.ask("alter table u alter id type text")
    assert one.ask("select conname from pg_constraint where conname = 'u_id_length'") == []
    one.ask("delete from u where n = 3")
    one.ask("alter table u alter id type text")


def test_a_default_that_is_shorter_stands_in_its_way(one: SqlClient) -> None:
    one.ask("alter table u alter id set default 'ab'")
    assert one.code("alter table u alter id type text") == "0A000"
    one.ask("alter table u alter id set default 'abxy'")
    one.ask("alter table u alter id type text")
    assert one.ask("insert into u (n) values (5) returning id") == [("abxy",)]
