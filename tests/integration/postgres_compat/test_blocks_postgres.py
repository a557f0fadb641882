"""Goal: changes of tables that were there, between BEGIN and COMMIT, come to the same as in
PostgreSQL.

Method: the same statements in both, one by one; each gives the same rows or SQLSTATE, and when the
block has ended the catalog and the rows are the same. A table of blocks as tools emit them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest

from tests.support.postgres.both_servers import Connection, told
from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration

MADE: Final = (
    "create table pier (id int primary key, deep int not null, name text);"
    "insert into pier values (1, 1, 'a'), (2, 2, 'b');"
    "create table quay (id int primary key, pier int references pier, note text);"
    "insert into quay values (1, 1, 'x'), (9, null, null);"
    "create table applied (version text primary key)"
)
ADD_FILL: Final = (
    "alter table pier add column full_name text",
    "update pier set full_name = name || deep",
)
BLOCKS: Final[dict[str, Sequence[str]]] = {
    "the commonest migration": (
        "create table ship (id serial primary key, name text not null)",
        "alter table quay add column ship int",
        "create index quay_ship on quay (ship)",
        "alter table quay add constraint quay_ship_fk foreign key (ship) references ship",
        "insert into applied values ('0001')",
        "commit",
        "insert into quay values (2, 1, 'y', 77)",
    ),
    "a column is added, filled, and NOT NULL": (
        *ADD_FILL,
        "alter table pier alter column full_name set not null",
        "commit",
        "select full_name from pier order by id",
        "insert into pier values (3, 3, 'c')",
    ),
    "NOT NULL of a column that is not filled": (
        ADD_FILL[0],
        "update pier set full_name = name where id = 1",
        "alter table pier alter column full_name set not null",
        "rollback",
    ),
    "several changes of one table": (
        "alter table pier add column a int default 4",
        "alter table pier alter column a set default 5",
        "alter table pier add constraint deep_check check (deep > 0)",
        "alter table pier rename column deep to depth",
        "alter table pier drop column name",
        "select * from pier order by id",
        "insert into pier (id, depth) values (3, 3)",
        "commit",
        "select * from pier order by id",
    ),
    "a table gets another name": (
        "alter table pier rename to jetty",
        "select id from jetty order by id",
        "select id from pier",
        "rollback",
        "select id from pier order by id",
    ),
    "a default for the rows there are, dropped again": (
        "alter table pier add column state text default 'new' not null",
        "alter table pier alter column state drop default",
        "select state from pier",
        "insert into pier (id, deep) values (3, 3)",
        "rollback",
    ),
    "an index is dropped, and made anew": (
        "create index pier_name on pier (name)",
        "drop index pier_name",
        "create unique index pier_name on pier (name)",
        "commit",
        "insert into pier values (3, 3, 'a')",
    ),
    "a constraint is dropped, and made anew": (
        "alter table quay drop constraint quay_pier_fkey",
        (
            "alter table quay add constraint quay_pier_fkey foreign key (pier) references pier"
            " on delete cascade"
        ),
        "commit",
        "delete from pier where id = 1",
        "select * from quay",
    ),
    "a sequence goes with the defaults that draw from it": (
        "alter table pier alter column deep drop not null",
        "commit",
        "begin",
        "create sequence numbers",
        "alter table pier alter column deep set default nextval('numbers')",
        "create table applied2 (id int primary key, n int default nextval('numbers'))",
        "insert into pier (id) values (3) returning deep",
        "drop sequence numbers",
        "rollback",
        "create sequence numbers",
        "alter table pier alter column deep set default nextval('numbers')",
        "insert into pier (id) values (3) returning deep",
        "begin",
        "create table applied2 (id int primary key, n int default nextval('numbers'))",
        "insert into pier (id) values (4) returning deep",
        "drop sequence numbers cascade",
        "insert into pier (id) values (5) returning deep",
        "insert into applied2 values (1) returning n",
        "commit",
        "insert into pier (id) values (6) returning deep",
        "select * from applied2",
    ),
    "a table goes with the defaults that draw from its sequence": (
        "create table ship (id serial primary key, name text)",
        "alter table pier alter column deep drop not null",
        "commit",
        "insert into ship (name) values ('a'), ('b')",
        "alter table pier alter column deep set default nextval('ship_id_seq')",
        "begin",
        "insert into pier (id) values (3) returning deep",
        "drop table ship cascade",
        "insert into pier (id) values (4) returning deep",
        "alter table pier add column fresh int default 5",
        "insert into pier (id) values (5) returning deep, fresh",
        "savepoint a",
        "select nextval('ship_id_seq')",
        "rollback to a",
        "commit",
        "insert into pier (id) values (6) returning deep, fresh",
    ),
    "savepoints": (
        "savepoint a",
        "alter table pier add column a int",
        "savepoint b",
        "alter table pier add column b int",
        "rollback to b",
        "select * from pier order by id",
        "alter table pier add column c int default 3",
        "rollback to a",
        "alter table pier add column d int default 7",
        "commit",
        "select * from pier order by id",
    ),
    "a statement fails": (
        "alter table pier add column a int",
        "alter table pier add column a int",
        "select 1",
        "commit",
        "select * from pier order by id",
    ),
    "rows break a constraint that the block adds": (
        "alter table pier add constraint shallow check (deep < 10)",
        "commit",
        "insert into pier values (9, 99, 'z')",
    ),
    "a table goes beside": (
        "alter table pier add column a int",
        "drop table quay",
        "create table quay (k text primary key)",
        "insert into quay values ('k')",
        "commit",
        "select * from quay",
    ),
    "what the catalog says within": (
        "alter table pier add column a numeric(5, 2) default 1",
        "create index pier_a on pier (a)",
        (
            "select column_name, data_type from information_schema.columns"
            " where table_name = 'pier' order by ordinal_position"
        ),
        "select indexname from pg_indexes where tablename = 'pier' order by 1",
        "rollback",
        "select column_name from information_schema.columns where table_name = 'pier' order by 1",
    ),
    "a column of another type": (
        "alter table pier alter column deep type bigint",
        "commit",
        "insert into pier values (3, 5000000000, 'big')",
        "select deep from pier order by id",
    ),
    "a table gets its key behind its rows": (
        "create table ship (rank int not null, name text, at timestamp default now(), n numeric)",
        "insert into ship values (2, 'b', now(), 1.50), (1, 'a', now(), null), (3, 'c')",
        "update ship set name = 'bb' where rank = 2",
        "delete from ship where rank = 3",
        "savepoint s",
        "alter table ship add constraint ship_pk primary key (rank)",
        "create index ship_name on ship (name)",
        "select rank, name, n from ship order by rank",
        "rollback to s",
        "insert into ship values (4, 'd')",
        "alter table ship add constraint ship_pk primary key (rank)",
        "select name from ship where rank = 4",
        "update ship set rank = 5, name = 'e' where rank = 4",
        "insert into ship values (6, 'f') returning rank",
        "commit",
        "select rank, name, n, at is null from ship order by rank",
        "insert into ship values (6, 'g')",
        "drop table ship",
    ),
    "rows are in the way of the key": (
        "create table ship (rank int, name text)",
        "insert into ship values (1, 'a'), (1, 'b')",
        "savepoint s",
        "alter table ship add primary key (rank)",
        "rollback to s",
        "update ship set rank = null where name = 'b'",
        "savepoint s",
        "alter table ship add primary key (rank)",
        "rollback to s",
        "update ship set rank = 2 where name = 'b'",
        "alter table ship add primary key (rank, name)",
        "select * from ship order by rank",
        "commit",
        "select * from ship order by rank",
        "drop table ship",
    ),
    "a new table gets a new column for its key": (
        "create table ship (name text)",
        "alter table ship add column id serial primary key",
        "insert into ship values ('a'), ('b')",
        "select * from ship order by id",
        "commit",
        "select * from ship order by id",
        "insert into ship values ('c') returning id > 2",
        "drop table ship",
    ),
    "a sequence is made and drawn from": (
        "create sequence numbers start 5",
        "alter table pier alter column deep set default nextval('numbers')",
        "insert into pier (id) values (3), (4)",
        "commit",
        "select deep from pier order by id",
    ),
}
AT_COMMIT: Final[dict[str, tuple[Sequence[str], str]]] = {
    "a duplicate": (
        ("alter table pier add column u int default 1", "create unique index on pier (u)"),
        "23505",
    ),
    "a CHECK": (
        ("alter table pier add column a int", "alter table pier add check (deep > 1)"),
        "23514",
    ),
    "no parent": (("alter table quay add foreign key (id) references applied2 (id)",), "23503"),
    "a NULL": (
        ("alter table quay add column b int", "alter table quay alter note set not null"),
        "23502",
    ),
}
"""What PostgreSQL tells at the statement, and we at COMMIT."""
STATE: Final = (
    (
        "select table_name, column_name, data_type, is_nullable, column_default"
        " from information_schema.columns where table_schema = 'public'"
        " order by table_name, ordinal_position"
    ),
    "select * from pier order by id",
    "select * from applied",
    (
        "select conname, pg_get_constraintdef(oid) from pg_constraint"
        " where connamespace = 'public'::regnamespace and contype <> 'n' order by 1"
    ),
    "select indexname from pg_indexes where schemaname = 'public' order by 1",
)


@pytest.fixture
def both(servers: tuple[Server, Server]) -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = servers
    with ours.psycopg(autocommit=True) as one, theirs.psycopg(autocommit=True) as other:
        for each in (one, other):
            each.execute(MADE.encode())
        yield one, other
        for each in (one, other):
            each.execute(b"rollback")
            each.execute(b"drop table if exists ship, jetty, quay, pier, applied, applied2 cascade")
            each.execute(b"drop sequence if exists numbers cascade")


def state_of(connection: Connection) -> list[Any]:
    return [told(connection, text) for text in STATE]


@pytest.mark.parametrize("texts", BLOCKS.values(), ids=BLOCKS.keys())
def test_a_block_comes_to_the_same(
    both: tuple[Connection, Connection], texts: Sequence[str]
) -> None:
    ours, theirs = both
    for text in ("begin", *texts):
        assert told(ours, text) == told(theirs, text), text
    assert state_of(ours) == state_of(theirs)


@pytest.mark.parametrize(("texts", "code"), AT_COMMIT.values(), ids=AT_COMMIT.keys())
def test_what_rows_break_is_told_at_commit(
    both: tuple[Connection, Connection], texts: Sequence[str], code: str
) -> None:
    """And nothing is left of the block."""
    ours, theirs = both
    for each in both:
        each.execute(b"create table applied2 (id int primary key)")
        each.execute(b"begin; insert into applied values ('0002')")
    for text in texts:
        told(ours, text)
        told(theirs, text)
    assert told(ours, "commit") == code
    told(theirs, "commit")
    assert state_of(ours) == state_of(theirs)
