"""Goal: names of tables, indexes and constraints, given and derived, are what they are in
PostgreSQL: a program that knows them finds them, and its error names the constraint it knows.

Method: the same statements in both, and the same rows, tags, SQLSTATEs and constraint names asked
of both.
"""

from __future__ import annotations

from typing import Final

import psycopg
import pytest

from tests.support.postgres.client_server import Server
from tests.support.postgres.stories import check_story, drop_tables

pytestmark = pytest.mark.integration

LONG: Final = "a_table_whose_name_has_exactly_the_longest_length_there_is_abcd"
PREFIXED: Final = "name_of_a_table_in_a_project_with_a_long_prefix"
BYTES: Final = "é" * 31
CONSTRAINTS: Final = (
    "select conname, contype::text from pg_constraint where connamespace = 'public'::regnamespace"
    " and contype <> 'n' order by 1"
)
INDEXES: Final = "select indexname from pg_indexes where schemaname = 'public' order by 1"

STORIES: Final = {
    "a foreign key takes no name that an index wants": f"""
        create table harbour (id int primary key)
        insert into harbour values (1), (2)
        create table wake (id int primary key, nid int references harbour)
        {INDEXES}
        create unique index if not exists wake_nid_idx on wake (nid)
        {INDEXES}
        insert into wake values (1, 1)
        insert into wake values (2, 1)
        create table wake_nid_idx (a int)
        drop index wake_nid_idx
        create table wake_nid_idx (a int primary key)
        create index on wake (nid)
        {INDEXES}
        insert into wake values (2, 1)
        begin isolation level serializable
        select id from wake where nid = 1 order by id
        insert into wake values (3, 2)
        commit
    """,
    "derived names lose the end of the longer part": f"""
        create table "{LONG}" (id int primary key, a int unique, check (a > 0), check (a < 9))
        create table {PREFIXED} (a_column_with_a_long_descriptive_name int unique, id int)
        create index on {PREFIXED} (a_column_with_a_long_descriptive_name, id)
        create index on {PREFIXED} (a_column_with_a_long_descriptive_name, id)
        create index on {PREFIXED} (lower(id::text))
        create table "{BYTES}" (id serial primary key, "{BYTES}" int unique)
        create table "{LONG[:60]}" (id serial primary key, b int references "{LONG}")
        alter table {PREFIXED} add foreign key (id) references "{LONG}"
        alter table {PREFIXED} add foreign key (id) references "{LONG}"
        {CONSTRAINTS}
        {INDEXES}
        select relname from pg_class where relkind = 'S' order by 1
        insert into "{LONG}" values (1, 1), (1, 2)
        insert into "{LONG}" values (1, 0)
    """,
    "a key keeps its name when its table is renamed": f"""
        create table octopus (id bigint primary key, a int unique)
        alter table octopus rename to octopi
        {INDEXES}
        create table octopus (id int primary key)
        {CONSTRAINTS}
        alter index octopus_pkey rename to octopi_pkey
        alter index octopi_pkey rename to octopus_pkey1
        alter index no_such rename to a
        alter index if exists no_such rename to a
        insert into octopi values (1, 1)
        insert into octopi values (1, 2)
        insert into octopi values (1, 3) on conflict on constraint octopi_pkey do nothing
        insert into octopi values (1, 3) on conflict on constraint octopus_pkey do nothing
        alter table octopi rename constraint octopi_pkey to key_of_octopi
        alter table octopi rename constraint key_of_octopi to octopus_a_key
        insert into octopi values (1, 2)
        {INDEXES}
        drop index key_of_octopi
        create index key_of_octopi on octopus (id)
        alter table octopi drop constraint octopi_pkey
        alter table octopi drop constraint key_of_octopi
        alter table octopi add primary key (id)
        {INDEXES}
    """,
    "what a statement drops frees its name for what it adds": f"""
        create table crew (id text primary key)
        create table pass (id int primary key, who text, a int,
          constraint pass_who foreign key (who) references crew, constraint low check (a > 0),
          constraint one unique (a))
        insert into crew values ('x')
        insert into pass values (1, 'x', 1), (2, null, 2)
        alter table pass drop constraint pass_who,
          add constraint pass_who foreign key (who) references crew on delete cascade
        alter table pass add constraint low check (a > 1), drop constraint low
        alter table pass add constraint low check (a > -1), drop constraint low
        alter table pass drop constraint one, add constraint one unique (a, who)
        alter table pass drop constraint one, add constraint one unique (who), add constraint one
          check (a > 5)
        alter table pass add constraint low check (a > 7)
        {CONSTRAINTS}
        {INDEXES}
        insert into pass values (3, 'x', 1)
        insert into pass values (3, null, 1), (4, null, -2)
        insert into pass values (3, null, 1)
        delete from crew
        select * from pass order by id
    """,
    "rows that break a constraint name it": """
        create table port (id int primary key)
        create table call (id int primary key, port int, a int, b int)
        insert into call values (1, 99, 1, 1), (2, null, 1, null)
        alter table call add constraint call_port foreign key (port) references port not valid
        alter table call validate constraint call_port
        alter table call add constraint many check (a > 1) not valid
        alter table call validate constraint many
        alter table call add constraint again foreign key (port) references port
        alter table call add constraint one unique (a)
        create unique index one_a on call (a)
        delete from call where id = 1
        alter table call validate constraint call_port
    """,
    "char refers to text, and text to char": """
        create table holder (id char(6) primary key)
        create table card (id int primary key,
          who varchar(40) references holder on update cascade on delete set null)
        create table other (id int primary key, who char(9) references holder)
        create table named (id varchar primary key)
        create table of_named (id int primary key, who char(9) references named)
        insert into holder values ('ab'), ('zz')
        insert into card values (1, 'ab')
        insert into card values (2, 'ac')
        insert into other values (1, 'zz')
        insert into named values ('x'), ('y  ')
        insert into of_named values (1, 'x  ')
        insert into of_named values (2, 'y  ')
        update holder set id = 'cd' where id = 'ab'
        select id, '[' || who || ']' from card order by id
        select c.id from holder h join card c on c.who = h.id
        delete from holder where id = 'zz'
        delete from holder where id = 'cd'
        select * from card
        alter table of_named add foreign key (id) references named
    """,
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_names_are_postgresqls(servers: tuple[Server, Server], story: str) -> None:
    check_story(servers, story)


def test_a_duplicate_is_told_in_postgresqls_words(servers: tuple[Server, Server]) -> None:
    """Programs search for them, and read the key from the detail."""
    said = []
    for server in servers:
        with server.psycopg(autocommit=True) as connection:
            connection.execute("create table badge (id int primary key, a text, unique (a, id))")
            connection.execute("create unique index on badge (lower(a))")
            connection.execute("insert into badge values (1, 'x')")
            for values in ("(1, 'y')", "(2, 'X')"):
                with pytest.raises(psycopg.errors.UniqueViolation) as raised:
                    connection.execute(f"insert into badge values {values}".encode())
                said.append((raised.value.diag.message_primary, raised.value.diag.message_detail))
            drop_tables(connection)
    assert said[:2] == said[2:]
