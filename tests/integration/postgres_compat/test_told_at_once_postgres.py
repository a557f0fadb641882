"""Goal: what breaks a constraint is told when PostgreSQL tells it: CHECK and UNIQUE at the
statement, where a savepoint catches it, foreign keys as well unless they are deferred, which are
looked at at COMMIT or by SET CONSTRAINTS.

Method: the same blocks said to both, and the same rows, tags, SQLSTATEs and constraint names.
"""

from __future__ import annotations

from typing import Final

import psycopg
import pytest

from tests.support.postgres.client_server import Server
from tests.support.postgres.stories import check_story, drop_tables, told

pytestmark = pytest.mark.integration
DEFERRALS: Final = """select conname, condeferrable, condeferred, pg_get_constraintdef(oid)
            from pg_constraint where conrelid = 'call'::regclass and contype = 'f' order by 1"""

STORIES: Final = {
    "a duplicate is the error of its INSERT": """
        create table member (id int primary key, mail text unique, n int default 1)
        insert into member values (1, 'a')
        begin
        insert into member values (2, 'a')
        commit
        begin
        savepoint s
        insert into member values (2, 'a')
        rollback to s
        insert into member values (3, 'c')
        savepoint s
        insert into member values (4, 'c')
        rollback to s
        insert into member values (5, 'e'), (6, 'e')
        rollback to s
        insert into member values (1, 'a')
        rollback to s
        insert into member values (4, null), (5, null)
        commit
        select * from member order by id
    """,
    "and of its UPDATE": """
        create table member (id int primary key, mail text unique, n int)
        insert into member values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)
        begin
        update member set mail = 'x' where id = 1
        savepoint s
        update member set mail = 'x' where id = 2
        rollback to s
        update member set mail = 'a' where id = 2
        savepoint s
        update member set mail = 'b' where id = 3
        update member set mail = 'a' where id = 1
        rollback to s
        update member set mail = mail || '!' where id > 1
        update member set id = 9, mail = 'x' where id = 3
        rollback to s
        insert into member values (4, 'd', 4) on conflict (id) do update set mail = 'x'
        insert into member values (4, 'd', 4) on conflict (id) do update set mail = 'x'
        rollback to s
        commit
        select * from member order by id
    """,
    "what a block has taken away is free, and taken again by ROLLBACK TO": """
        create table member (id int primary key, mail text unique, n int)
        insert into member values (1, 'a', 1), (2, 'b', 2)
        begin
        delete from member where id = 1
        insert into member values (3, 'a', 3)
        savepoint s
        update member set mail = 'z' where id = 3
        insert into member values (4, 'a', 4)
        rollback to s
        insert into member values (4, 'a', 4)
        rollback to s
        delete from member where id = 3
        insert into member values (1, 'a', 5)
        insert into member values (3, 'a', 5)
        rollback to s
        truncate member
        insert into member values (7, 'b', 5), (8, 'a', 5)
        insert into member values (9, 'b', 5)
        rollback to s
        commit
        select * from member order by id
    """,
    "over expressions, some rows, and a table of the block's own": """
        create table member (id int primary key, mail text, gone boolean default false)
        create unique index member_mail on member (lower(mail)) where not gone
        insert into member values (1, 'A'), (2, 'a', true)
        begin
        savepoint s
        insert into member values (3, 'a')
        rollback to s
        insert into member values (3, 'a', true)
        savepoint s
        update member set gone = false where id = 3
        rollback to s
        create table made (id int primary key, a int unique check (a > 0))
        insert into made values (1, 1)
        savepoint s
        insert into made values (2, 1)
        rollback to s
        insert into made values (2, 0)
        rollback to s
        commit
        select * from made
    """,
    "a CHECK is the error of its statement": """
        create table tank (id int primary key, n int check (n > 0), m int default 5,
            constraint low check (n < m), k int generated always as (n * 2) stored check (k < 9))
        begin
        insert into tank values (1, 0)
        rollback
        begin
        insert into tank values (1, 1)
        savepoint s
        update tank set n = n - 1
        rollback to s
        update tank set m = 0
        rollback to s
        update tank set n = 5, m = 20
        rollback to s
        insert into tank (id, n) values (2, 5)
        rollback to s
        insert into tank (id, n) values (2, null)
        update tank set n = 3 where id = 1
        commit
        select * from tank order by id
    """,
    "an entry that can't be computed": """
        create table part (id int primary key, n int)
        create index on part ((10 / n))
        begin
        insert into part values (1, 0)
        rollback
        insert into part values (1, 2)
        begin
        savepoint s
        update part set n = n - 2
        rollback to s
        update part set n = n + 3
        commit
        select * from part
    """,
    "what a foreign key takes along leaves its keys free": """
        create table hull (id int primary key)
        create table plank (id int primary key, hull int references hull on delete cascade
            deferrable initially deferred, code text unique)
        create table nail (id int primary key, plank int references plank on delete cascade
            deferrable initially deferred, code text unique)
        insert into hull values (1), (2)
        insert into plank values (1, 1, 'p')
        insert into nail values (1, 1, 'n')
        begin
        delete from hull where id = 1
        insert into plank values (2, 2, 'p')
        insert into nail values (2, 2, 'n')
        commit
        select * from plank
        select * from nail
    """,
    "a key without an action beside one that acts": """
        create table p (id int primary key, u int unique)
        create table early (id int primary key, a int references p,
            b int references p on delete cascade on update cascade)
        create table late (id int primary key, a int references p on delete cascade
            on update cascade, b int references p)
        create table waits (id int primary key, a int references p deferrable initially deferred,
            b int references p on delete cascade)
        create table keeps (id int primary key, a int, b int references p on delete cascade)
        alter table keeps add constraint kept foreign key (a) references p (u) on delete restrict
            deferrable initially deferred
        create table mid (id int primary key, p int references p on delete cascade)
        create table leaf (id int primary key, a int references mid,
            b int references mid on delete cascade)
        insert into p select n, n from generate_series(1, 9) as n
        insert into early values (1, 1, 1)
        delete from p where id = 1
        update p set id = 11 where id = 1
        insert into early values (2, 7, 8)
        delete from p where id = 8
        select * from early
        insert into late values (1, 2, 2)
        delete from p where id = 2
        select * from late
        insert into late values (1, 3, 3)
        update p set id = 13 where id = 3
        insert into waits values (1, 4, 4)
        delete from p where id = 4
        select * from waits
        insert into keeps values (1, 5, 5)
        delete from p where id = 5
        select * from keeps
        alter table keeps drop constraint keeps_b_fkey
        alter table keeps add constraint keeps_b_fkey foreign key (b) references p
            on delete cascade
        delete from p where id = 5
        insert into mid values (1, 9)
        insert into leaf values (1, 1, 1)
        delete from p where id = 9
        alter table leaf drop constraint leaf_a_fkey
        alter table leaf add foreign key (a) references mid
        delete from p where id = 9
        select * from leaf
        select conname, condeferrable, condeferred, pg_get_constraintdef(oid) from pg_constraint
            where contype = 'f' order by 1
        select constraint_name, is_deferrable, initially_deferred
            from information_schema.table_constraints where constraint_type = 'FOREIGN KEY'
            order by 1
    """,
    "a foreign key is the error of the row that refers to none": """
        create table port (id int primary key, code text unique)
        create table call (id int primary key, port int references port,
            code text references port (code))
        insert into port values (1, 'x'), (2, 'y')
        begin
        savepoint s
        insert into call values (1, 7, null)
        rollback to s
        insert into call values (1, 1, 'z')
        rollback to s
        insert into call values (1, 1, 'x'), (2, 3, null)
        rollback to s
        insert into call values (1, 1, 'x'), (2, null, 'y'), (3, 2, null)
        savepoint s
        update call set port = 8 where id = 1
        rollback to s
        update call set code = 'z' where id < 3
        rollback to s
        update call set port = 2, code = null where id = 1
        insert into port values (3, 'z')
        insert into call values (4, 3, 'z')
        update port set code = 'zz' where id = 2
        insert into call values (5, 2, 'zz')
        savepoint s
        insert into call values (6, 2, 'yy')
        rollback to s
        insert into call select 10 + n, n from generate_series(2, 4) as n
        rollback to s
        insert into call values (1, 9, null) on conflict (id) do update set port = 9
        rollback to s
        insert into call values (1, 9, null) on conflict (id) do update set port = 3
        commit
        select * from call order by id
    """,
    "and of the row that goes while it is referred to": """
        create table port (id int primary key, code text unique)
        create table call (id int primary key, port int references port,
            code text references port (code))
        insert into port values (1, 'x'), (2, 'y'), (3, 'z'), (4, 'w')
        insert into call values (1, 1, null), (2, null, 'y')
        begin
        savepoint s
        delete from port where id = 1
        rollback to s
        delete from port
        rollback to s
        update port set id = 10 where id = 1
        rollback to s
        update port set code = 'q' where id = 2
        rollback to s
        update port set code = 'q' where id = 1
        update port set id = 20 where id = 2
        delete from port where id = 3
        savepoint s
        insert into call values (3, 3, null)
        rollback to s
        insert into call values (3, 4, 'w')
        savepoint s
        delete from port where id = 4
        rollback to s
        delete from call where id = 3
        delete from port where id = 4
        update call set port = null where id = 1
        delete from port where id = 1
        commit
        select * from port order by id
        select * from call order by id
    """,
    "a tree, a table of the block's own, and one that it empties": """
        create table tree (id int primary key, up int references tree)
        insert into tree values (1, null), (2, 1), (3, 2)
        begin
        insert into tree values (5, 4), (4, 3)
        savepoint s
        insert into tree values (7, 6)
        rollback to s
        delete from tree where id = 2
        rollback to s
        delete from tree where id in (4, 5)
        delete from tree
        insert into tree values (1, 1)
        commit
        select * from tree
        begin
        create table made (id int primary key)
        create table refers (id int primary key, made int references made)
        insert into made values (1)
        insert into refers values (1, 1)
        savepoint s
        insert into refers values (2, 2)
        rollback to s
        delete from made
        rollback to s
        truncate made, refers
        savepoint s
        insert into refers values (1, 1)
        rollback to s
        insert into made values (1)
        insert into refers values (1, 1)
        commit
        select * from refers
    """,
    "of several columns, MATCH FULL, and RESTRICT": """
        create table slot (a int, b int, n int, primary key (b, a))
        create table simple (id int primary key, a int, b int,
            foreign key (a, b) references slot (a, b))
        create table whole (id int primary key, a int, b int,
            foreign key (a, b) references slot (a, b) match full)
        create table strict (id int primary key, a int, b int,
            foreign key (b, a) references slot on delete restrict on update restrict)
        insert into slot values (1, 2, 0), (3, 4, 0), (5, 6, 0)
        begin
        insert into simple values (1, 1, 2), (2, 1, null), (3, null, null)
        savepoint s
        insert into simple values (4, 2, 1)
        rollback to s
        insert into whole values (1, 1, null)
        rollback to s
        insert into whole values (1, 3, 4), (2, null, null)
        insert into strict values (1, 5, 6)
        savepoint s
        update slot set a = 9 where a = 5
        rollback to s
        delete from slot where a = 3
        rollback to s
        update slot set n = n + 1
        commit
        select * from slot order by a
    """,
    "what acts acts, and what rests on it waits": """
        create table hull (id int primary key, code text unique)
        create table plank (id int primary key, hull int references hull on delete cascade
            on update cascade, code text references hull (code) on delete set null)
        create table nail (id int primary key, plank int references plank on delete cascade)
        insert into hull values (1, 'a'), (2, 'b')
        insert into plank values (1, 1, 'a'), (2, 2, null)
        insert into nail values (1, 1), (2, 2)
        begin
        update hull set id = 10 where id = 1
        savepoint s
        insert into plank values (3, 1, null)
        rollback to s
        insert into plank values (3, 10, null)
        delete from hull where id = 2
        savepoint s
        insert into plank values (4, 2, null)
        rollback to s
        commit
        select * from plank order by id
        select * from nail order by id
    """,
    "SET CONSTRAINTS": """
        create table port (id int primary key, code text unique)
        create table call (id int primary key, port int constraint call_port references port
            deferrable initially deferred, code text constraint call_code references port (code)
            deferrable initially deferred)
        set constraints all deferred
        set constraints call_port, call_code deferred
        set constraints no_such immediate
        insert into port values (1, 'x'), (2, 'y')
        insert into call values (1, 1, null), (2, 2, 'y')
        begin
        set constraints all deferred
        insert into call values (3, 7, null)
        savepoint s
        set constraints call_code immediate
        set constraints call_code deferred
        set constraints all immediate
        rollback to s
        insert into port values (7, 'z')
        set constraints all immediate
        set constraints all deferred
        savepoint s
        delete from port where id = 1
        set constraints call_port immediate
        rollback to s
        update port set code = 'yy' where id = 2
        set constraints call_code immediate
        rollback to s
        update call set code = null where id = 2
        update port set code = 'yy' where id = 2
        set constraints all immediate
        set constraints all deferred
        savepoint s
        set constraints port_code_key immediate
        rollback to s
        insert into call values (9, 9, null)
        commit
        select * from call order by id
    """,
    "foreign keys that may be deferred": f"""
        create table port (id int primary key, code text unique)
        create table call (id int primary key, port int constraint call_port references port
            deferrable, code text constraint call_code references port (code) not deferrable,
            late int, constraint call_late foreign key (late) references port deferrable initially
            immediate)
        {DEFERRALS}
        select constraint_name, is_deferrable, initially_deferred
            from information_schema.table_constraints
            where table_name = 'call' and constraint_type = 'FOREIGN KEY' order by 1
        insert into port values (1, 'x'), (2, 'y')
        insert into call values (1, 7, null)
        begin
        insert into call values (1, 1, 'x', 2)
        savepoint s
        insert into call values (2, 7, null)
        rollback to s
        set constraints call_code deferred
        rollback to s
        set constraints call_code immediate
        set constraints call_port, call_code deferred
        rollback to s
        set constraints call_port deferred
        insert into call values (2, 7, null)
        savepoint t
        insert into call values (3, 7, null, 8)
        rollback to t
        insert into call values (3, null, 'q')
        rollback to t
        set constraints call_port immediate
        rollback to t
        insert into port values (7, 'z')
        set constraints call_port immediate
        delete from port where id = 7
        rollback to t
        set constraints all deferred
        delete from port where id = 2
        insert into call values (3, null, 'q')
        rollback to t
        insert into port values (7, 'z')
        commit
        begin
        set constraints all deferred
        update port set id = 70 where id = 7
        commit
        select * from call order by id
        alter table call alter constraint call_port deferrable initially deferred
        alter table call alter constraint call_code deferrable
        alter table call alter constraint call_late not deferrable
        alter table call alter constraint call_pkey deferrable
        alter table call alter constraint no_such deferrable
        alter table no_such alter constraint call_port deferrable
        alter table call alter constraint call_port not deferrable initially deferred
        {DEFERRALS}
        begin
        insert into call values (3, 8, null)
        set constraints call_late deferred
        rollback
        begin
        insert into call values (3, 8, null)
        insert into port values (8, 'w')
        set constraints call_code deferred
        update call set code = 'v' where id = 3
        update port set code = 'v' where id = 8
        commit
        begin
        alter table call alter constraint call_late deferrable
        set constraints call_late deferred
        insert into call values (4, null, null, 9)
        insert into port values (9, 'n')
        commit
        select * from call order by id
        alter table call alter constraint call_port
        {DEFERRALS}
        alter table call add constraint again foreign key (late) references port deferrable
        alter table call rename constraint again to anew
        begin
        set constraints anew deferred
        insert into call values (5, null, null, 5)
        commit
        {DEFERRALS}
    """,
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES.keys())
def test_both_tell_it_at_the_same_statement(servers: tuple[Server, Server], story: str) -> None:
    check_story(servers, story)


def test_two_that_want_one_key_are_told_apart_at_commit(servers: tuple[Server, Server]) -> None:
    """What comes meanwhile only the master can know: the first to commit has the key."""
    ours, _ = servers
    with ours.psycopg(autocommit=True) as one, ours.psycopg(autocommit=True) as other:
        one.execute("create table member (id int primary key, mail text unique)")
        try:
            for number, each in enumerate((one, other)):
                each.execute("begin")
                each.execute(f"insert into member values ({number}, 'a')".encode())
            assert told(one, "commit") == "COMMIT"
            assert told(other, "commit") == ("23505", "member_mail_key")
            assert told(other, "select id from member") == [(0,)]
        finally:
            drop_tables(one)


def test_get_or_create_of_a_program(servers: tuple[Server, Server]) -> None:
    """The shape of every ORM: try to insert within a savepoint, else read."""
    for server in servers:
        with server.psycopg() as connection:
            connection.execute("create table tag (id serial primary key, word text unique)")
            connection.execute("insert into tag (word) values ('a')")
            connection.commit()
            found = []
            for word in ("a", "b", "b"):
                try:
                    with connection.transaction():
                        row = connection.execute(
                            "insert into tag (word) values (%s) returning word", (word,)
                        ).fetchone()
                    found.append(("made", row))
                except psycopg.errors.UniqueViolation:
                    row = connection.execute(
                        "select word from tag where word = %s", (word,)
                    ).fetchone()
                    found.append(("there", row))
            connection.commit()
            assert found == [("there", ("a",)), ("made", ("b",)), ("there", ("b",))]
        with server.psycopg(autocommit=True) as connection:
            drop_tables(connection)
