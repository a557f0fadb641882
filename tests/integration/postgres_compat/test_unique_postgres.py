"""Goal: a unique index to which NULLs are equal, and an index that becomes a constraint's, are what
they are in PostgreSQL: the same rows are refused with the same SQLSTATE, catalogs tell the same.

Method: the same statements in both, and the same rows, tags and SQLSTATEs asked of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.postgres.both_servers import Connection, told
from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration

INDEXES: Final = (
    "select indexname, indexdef from pg_indexes where tablename in ('t', 'u') order by 1"
)
CONSTRAINTS: Final = (
    "select conname, contype, pg_get_constraintdef(oid) from pg_constraint"
    " where conrelid in ('t'::regclass, 'u'::regclass) order by 1"
)

STORIES: Final = {
    "NULLs are equal": f"""
        create table u (id int)
        create table t (id int primary key, a int unique nulls not distinct, b text, c int,
            constraint bc unique nulls not distinct (b, c), unique (c, b))
        insert into t values (1, null, 'x', null)
        insert into t values (2, null, 'y', null)
        insert into t values (2, 2, 'x', null)
        insert into t values (2, 2, 'y', null)
        insert into t values (3, 3, null, null), (4, 4, null, null)
        insert into t values (3, 3, null, null)
        update t set a = null where id = 2
        update t set b = null where id = 2
        update t set b = null, c = 1 where id = 2 returning *
        insert into t values (9, null, 'z', 9) on conflict do nothing
        insert into t values (9, null, 'z', 9) on conflict (a) do nothing
        insert into t values (9, null, 'z', 9) on conflict (a) do update set b = excluded.b || '!'
            returning *
        insert into t values (9, 9, null, null) on conflict (b, c) do update set a = 90 returning *
        insert into t values (9, 9, null, null) on conflict on constraint bc do nothing
        insert into t values (10, 10, null, 77), (11, 11, null, 77) on conflict (b, c) do nothing
        insert into t values (12, 12, null, 78), (13, 13, null, 78)
            on conflict (b, c) do update set a = 5
        select * from t order by id
        create unique index i on t (c, a) nulls not distinct where id > 2
        create unique index j on t (lower(b)) include (c) nulls not distinct
        create unique index j on t (upper(b), id) include (c) nulls not distinct
        create unique index k on t (id, c) nulls distinct
        create index l on t (id, c) nulls not distinct
        {INDEXES}
        {CONSTRAINTS}
        select c.relname, i.indisunique, i.indnullsnotdistinct from pg_index i
            join pg_class c on c.oid = i.indexrelid where i.indrelid = 't'::regclass order by 1
        select constraint_name, nulls_distinct from information_schema.table_constraints
            where table_name = 't' and constraint_type <> 'CHECK' order by 1
        select id from t where a is null
        select id from t where b is null order by id
        select id from t where a = null
        delete from t where a is null
        insert into t values (20, null, 'w', 1) returning id
    """,
    "NULLs that are there twice": f"""
        create table u (id int)
        create table t (id int primary key, a int, b int)
        insert into t values (1, null, 1), (2, null, 2), (3, 3, null)
        alter table t add unique nulls not distinct (a)
        create unique index on t (a) nulls not distinct
        alter table t add unique nulls not distinct (a, b)
        alter table t add unique nulls not distinct (b)
        insert into t values (4, 3, null)
        alter table t add column c int unique nulls not distinct
        delete from t where id > 1
        alter table t add column c int unique nulls not distinct
        insert into t values (5, 5, 5)
        insert into t values (5, 5, 5, 5) returning *
        {INDEXES}
        {CONSTRAINTS}
        alter table t drop constraint t_b_key
        begin
        insert into t values (6, 6, 5, 6)
        savepoint s
        insert into t values (7, 7, 7, null)
        rollback to s
        update t set c = null where id = 6
        rollback
        update t set c = 1 where id = 1
        begin
        insert into t values (8, 8, 8, null)
        savepoint s
        insert into t values (9, 9, 9, null)
        rollback to s
        commit
        select * from t order by id
    """,
    "an index becomes a UNIQUE constraint": f"""
        create table u (id int primary key, a int)
        create table t (id int primary key, a int, b text)
        insert into t values (1, 1, 'x'), (2, null, null), (3, null, 'y')
        create unique index i on t (a)
        create unique index ib on t (b) nulls not distinct
        create unique index ui on u (a)
        create index plain on t (a)
        create unique index partial on t (a) where id > 0
        create unique index computed on t (lower(b))
        create unique index descending on t (a desc)
        alter table t add constraint c unique using index nothing
        alter table t add constraint c unique using index ui
        alter table t add constraint c unique using index plain
        alter table t add constraint c unique using index partial
        alter table t add constraint c unique using index computed
        alter table t add constraint c unique using index descending
        alter table t add constraint c unique using index t_pkey
        alter table t add constraint plain unique using index i
        create table v (id int, unique using index i)
        alter table t add constraint c unique using index i
        alter table t add constraint d unique using index c
        alter table t add unique using index ib
        insert into t values (4, 1, 'z')
        insert into t values (4, 4, null)
        {INDEXES}
        {CONSTRAINTS}
        drop index c
        alter table u add constraint f foreign key (a) references t (a)
        insert into u values (1, 7)
        insert into u values (1, 1)
        alter table t drop constraint c
        alter table t drop constraint c cascade
        insert into t values (4, 1, 'z') returning *
        drop index plain, partial, computed, descending
        {INDEXES}
        {CONSTRAINTS}
    """,
    "an index becomes a primary key": f"""
        create table u (id int primary key, a int)
        create table t (id int not null, a int, b text)
        insert into t values (1, 1, 'x'), (2, null, null), (3, 3, 'y')
        create unique index i on t (a)
        create unique index j on t (id)
        alter table t add primary key using index i
        alter table t add constraint k primary key using index j
        insert into t values (1, 1, 'x')
        insert into t values (null, 1, 'x')
        {INDEXES}
        {CONSTRAINTS}
        delete from t where id = 2
        alter table u add constraint f foreign key (a) references t (a)
        alter table t drop constraint k, add primary key using index i
        insert into u values (1, 8)
        insert into u values (1, 3)
        insert into t values (4, null, 'z')
        delete from t where a = 3
        {INDEXES}
        {CONSTRAINTS}
        create unique index again on t (a)
        alter table u drop constraint f
        alter table t drop constraint i, add constraint i primary key using index again
        {INDEXES}
        {CONSTRAINTS}
        select * from t order by id
    """,
    "deferrable": f"""
        create table u (id int primary key, a int)
        create table t (id int primary key, a int unique deferrable initially deferred,
            b int unique deferrable, c int, constraint cc unique (c) deferrable initially immediate,
            constraint ac unique (a, c) include (b) initially deferred)
        insert into t values (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)
        {INDEXES}
        {CONSTRAINTS}
        select conname, condeferrable, condeferred from pg_constraint
            where conrelid = 't'::regclass order by 1
        select c.relname, i.indimmediate from pg_index i join pg_class c on c.oid = i.indexrelid
            where i.indrelid = 't'::regclass order by 1
        select constraint_name, is_deferrable, initially_deferred from
            information_schema.table_constraints where table_name = 't'
            and constraint_type <> 'CHECK' order by 1
        begin
        update t set a = 2 where id = 1
        update t set a = 1 where id = 2
        select id, a from t order by id
        commit
        begin
        update t set a = 3 where id = 1
        insert into t values (4, 4, 4, 4)
        commit
        select id, a from t order by id
        update t set a = 3 where id = 1
        begin
        update t set b = 2 where id = 1
        rollback
        begin
        set constraints t_b_key deferred
        update t set b = 2 where id = 1
        update t set b = 1 where id = 2
        set constraints t_b_key immediate
        update t set b = 1 where id = 1
        rollback
        begin
        set constraints all deferred
        update t set b = 2, c = 2 where id = 1
        savepoint s
        set constraints cc immediate
        rollback to s
        update t set b = 1, c = 1 where id = 2
        set constraints all immediate
        commit
        select id, b, c from t order by id
        begin
        set constraints t_pkey deferred
        rollback
        begin
        update t set a = 3 where id = 1
        set constraints t_a_key immediate
        rollback
        insert into t values (9, 9, 9, 9) on conflict do nothing
        insert into t values (9, 9, 9, 9) on conflict (a) do nothing
        insert into t values (9, 9, 9, 9) on conflict on constraint cc do nothing
        insert into t values (9, 9, 9, 9) on conflict (id) do nothing
        alter table u add foreign key (a) references t (a)
        alter table u add foreign key (id) references t
        alter table u add unique (a) deferrable initially deferred
        alter table u add column n int unique deferrable
        create table v (id int primary key, b int, c int)
        create unique index vb on v (b)
        create unique index vc on v (c)
        alter table v add constraint once unique using index vb deferrable initially deferred
        alter table v add unique using index vc deferrable initially immediate
        alter table v add unique using index vc deferrable
        select conname, condeferrable, condeferred, pg_get_constraintdef(c.oid), indimmediate
            from pg_constraint c join pg_index on indexrelid = conindid
            where conrelid = 'v'::regclass order by 1
        insert into v values (1, 1, 1), (2, 2, 2)
        begin
        update v set b = 2 where id = 1
        update v set b = 1 where id = 2
        update v set c = 2 where id = 1
        rollback
        begin
        update v set b = 2 where id = 1
        commit
        begin
        set constraints vc deferred
        update v set c = 2 where id = 1
        commit
        insert into v values (3, 3, 3) on conflict (b) do nothing
        select * from v order by id
        drop table v
        create table w (like t including indexes)
        select conname, condeferrable, condeferred from pg_constraint
            where conrelid = 'w'::regclass order by 1
        drop table w
    """,
    "columns beside the key": f"""
        create table u (id int primary key, a int, b text)
        create table t (id int primary key, a int, b text, c int, unique (a) include (b),
            constraint bc unique nulls not distinct (b) include (c, a))
        insert into t values (1, 1, 'x', 5), (2, 2, 'y', 6)
        insert into t values (3, 1, 'z', 7)
        insert into t values (3, 3, 'x', 7)
        insert into t values (3, 1, 'q', 7) on conflict (a) do update set c = 99 returning *
        insert into t values (3, 1, 'q', 7) on conflict (a, b) do nothing
        insert into u values (1, 1, 'x'), (2, 1, 'y')
        alter table u add unique (a) include (b)
        alter table u add constraint ub unique (b) include (a)
        alter table u add foreign key (a) references t (a)
        alter table u add foreign key (a, b) references t (a, b)
        create table w (id int primary key, unique (id) include (nobody))
        create table w (like t including all)
        create unique index i on u (id) include (b)
        alter table u add constraint ui unique using index i
        {INDEXES}
        {CONSTRAINTS}
        select conname, conkey from pg_constraint where conrelid = 't'::regclass order by 1
        select c.relname, i.indnatts, i.indnkeyatts, i.indkey::text from pg_index i
            join pg_class c on c.oid = i.indexrelid where i.indrelid = 't'::regclass order by 1
        select indexdef from pg_indexes where tablename = 'w' order by 1
        select constraint_name, column_name from information_schema.key_column_usage
            where table_name = 't' order by 1, 2
        alter table t rename column b to d
        {CONSTRAINTS}
        alter table t drop column c
        {CONSTRAINTS}
        drop index bc
        insert into t values (9, 9, 'x') returning *
        drop table w
    """,
    "a primary key that includes columns": f"""
        create table u (id int)
        create table t (a int, b int, c numeric, d int, primary key (a) include (b, c))
        insert into t values (1, 2, 3, 4), (1, 5, 6, 7)
        insert into t values (1, 2, 3, 4), (2, null, null, 2)
        insert into t values (2, 9, 9, 9) on conflict on constraint t_pkey do update
            set b = excluded.b returning *
        {INDEXES}
        {CONSTRAINTS}
        select conname, conkey from pg_constraint where conrelid = 't'::regclass
        select indnatts, indnkeyatts, indkey::text, indoption::text, indisunique, indisprimary
            from pg_index where indrelid = 't'::regclass
        select pg_get_indexdef('t_pkey'::regclass, n, true) from generate_series(0, 4) n
        select attnum, attname, atttypid::regtype from pg_attribute
            where attrelid = 't_pkey'::regclass order by 1
        select column_name, ordinal_position from information_schema.key_column_usage
            where table_name = 't'
        select column_name from information_schema.constraint_column_usage where table_name = 't'
        select column_name, is_nullable from information_schema.columns
            where table_name = 't' order by 1
        alter table t add foreign key (d) references t
        alter table t alter c type int
        alter table t rename column b to e
        alter table t rename constraint t_pkey to t_key
        {INDEXES}
        {CONSTRAINTS}
        create table w (like t including all)
        select indexdef from pg_indexes where tablename = 'w'
        drop table w
        alter table t drop constraint t_d_fkey
        alter table t drop constraint t_key, add primary key (a) include (nobody)
        alter table t drop constraint t_key, add primary key (a) include (d)
        {CONSTRAINTS}
        alter table t drop column c, drop column e
        alter table t drop constraint t_pkey, add constraint k primary key (d, a)
        {CONSTRAINTS}
        alter table t drop constraint k
        create unique index i on t (d) include (a)
        alter table t add primary key using index i
        {INDEXES}
        {CONSTRAINTS}
        select * from t order by 1
        create table w (a int primary key include (b), b int)
        create table w (a int, b int, primary key (a) include (nobody))
        create table w (a int, g int generated always as (a + 1) stored,
            primary key (a) include (g))
        select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'w'::regclass
        drop table w
    """,
    "in a block, of a table that it makes": f"""
        begin
        create table u (id int)
        create table t (id int not null, a int)
        create unique index i on t (id)
        create unique index j on t (a) nulls not distinct
        alter table t add constraint k primary key using index i
        alter table t add constraint l unique using index j
        insert into t values (1, null)
        commit
        insert into t values (2, null)
        insert into t values (1, 2)
        {INDEXES}
        {CONSTRAINTS}
    """,
}


@pytest.fixture
def both(servers: tuple[Server, Server]) -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = servers
    with ours.psycopg(autocommit=True) as one, theirs.psycopg(autocommit=True) as other:
        yield one, other
        for each in (one, other):
            each.execute("rollback")
            each.execute("drop table if exists t, u, v cascade")


@pytest.mark.parametrize("name", STORIES)
def test_both_say_the_same(both: tuple[Connection, Connection], name: str) -> None:
    lines: list[str] = []
    for line in STORIES[name].strip().splitlines():
        if lines and line.startswith("            "):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.strip())
    answers = [(line, *(told(each, line) for each in both)) for line in lines]
    unlike = [answer for answer in answers if answer[1] != answer[2]]
    assert not unlike, "\n".join(f"{text}\n  ours   {a}\n  theirs {b}" for text, a, b in unlike)
