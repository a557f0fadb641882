"""Goal: columns that number themselves are here what they are in PostgreSQL: for statements, for
what looks at the catalog, and for programs as a new user writes them.

Method: the same statements in both, by hand and at random, and the same numbers, rows and SQLSTATEs
asked of both; psql's words of the same tables; SQLAlchemy's ORM, psycopg, asyncpg and pandas on
both. SEQUENCE_SEED, SEQUENCE_SCRIPTS.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import asyncpg
import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as sa_asyncio

from leasehold.adapters.pgwire_settings import PgwireSettings
from leasehold.client.dev import DevDatabase
from leasehold.client.sql_listener import SqlListener
from tests.integration.postgres_server import postgres_server
from tests.integration.sql_clients.server import Server
from tests.integration.test_psql_and_postgres import USER, environment, psql
from tests.models.summary import Tell

pytestmark = pytest.mark.integration

SEED: Final = int(os.environ.get("SEQUENCE_SEED", "1"))
SCRIPTS: Final = int(os.environ.get("SEQUENCE_SCRIPTS", "40"))
STATEMENTS: Final = 60
Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """Ours and theirs."""
    with postgres_server() as port:
        dev = DevDatabase(Path(tmp_path_factory.mktemp("sequences")))
        dev.wait_ready()
        listener = SqlListener(dev.sql_node(), PgwireSettings(port=0))
        try:
            ours = Server("leasehold", listener.port, USER, "dev")
            yield ours, Server("postgresql", port, USER, USER)
            assert not dev.check().differences
        finally:
            listener.close()
            dev.close()


@pytest.fixture
def both(servers: tuple[Server, Server]) -> Iterator[tuple[Connection, Connection]]:
    ours, theirs = servers
    with ours.psycopg(autocommit=True) as one, theirs.psycopg(autocommit=True) as other:
        yield one, other
        for each in (one, other):
            each.execute("rollback")
            each.execute("drop table if exists u, t")
            for name in ("s", "t_id_seq"):
                each.execute(f"drop sequence if exists {name}".encode())


def told(connection: Connection, text: str) -> Any:
    """Its rows, its tag, or its SQLSTATE."""
    try:
        cursor = connection.execute(text.encode())
    except psycopg.Error as error:
        return error.sqlstate
    return cursor.fetchall() if cursor.description else cursor.statusmessage


STORIES: Final = {
    "serial": """
        create table t (id serial primary key, v text)
        insert into t (v) values ('a'), ('b') returning id
        insert into t values (default, 'c') returning *
        insert into t values (10, 'd') returning *
        insert into t default values returning *
        insert into t values (null, 'x')
        insert into t (v) select 'e' || n from generate_series(1, 5) as g (n) returning id
        select currval('t_id_seq'), lastval(), pg_get_serial_sequence('t', 'id')
        insert into t (v) values ('f') returning id
        insert into t (v) values ('g') returning id
        select setval('t_id_seq', 30)
        insert into t (v) values ('h') returning id
        select setval('t_id_seq', 40, false), currval('t_id_seq')
        insert into t (v) values ('i') returning id
        select setval(pg_get_serial_sequence('t', 'id'), (select max(id) from t))
        insert into t (v) values ('j') on conflict do nothing returning id
        insert into t values (41, 'k') on conflict (id) do update set v = 'K' returning *
        select setval('t_id_seq', 0)
        select setval('t_id_seq', 3000000000)
        select nextval('t')
        select nextval('no')
        select nextval(null), currval(null)
        drop sequence t_id_seq
        insert into t_id_seq values (1)
        update t_id_seq set last_value = 1
        drop table t_id_seq
        truncate t_id_seq
        create table t_id_seq (a int)
        truncate t restart identity
        insert into t (v) values ('l') returning id
        truncate t continue identity
        insert into t (v) values ('m') returning id
        alter sequence t_id_seq restart with 77
        insert into t (v) values ('n') returning id
        alter sequence t_id_seq restart
        insert into t (v) values ('o') returning id
        alter sequence t_id_seq restart 0
        drop table t
        select nextval('t_id_seq')
        create table t (id serial primary key)
        insert into t default values returning id
    """,
    "small ones": """
        create table t (id smallserial, n bigserial, v int)
        select setval('t_id_seq', 32766)
        insert into t (v) values (1) returning id, n
        insert into t (v) values (2) returning id, n
        insert into t (id, v) values (1, 2) returning id, n
        select nextval('t_n_seq')
    """,
    "identity": """
        create table t (a int generated always as identity, b int generated by default as identity
            (start with 10 increment by -3 minvalue 1 maxvalue 50), c int)
        insert into t (c) values (1) returning a, b
        insert into t (a, c) values (1, 1)
        insert into t (b, c) values (1, 1) returning a, b
        insert into t (a, b, c) values (default, default, 1) returning a, b
        insert into t (a, c) overriding system value values (100, 1) returning a, b
        insert into t (a, b, c) overriding user value values (100, 100, 1) returning a, b
        insert into t select 1, 2, 3
        insert into t overriding system value select 1, 2, 3 returning a, b
        insert into t (c) select 3 returning a, b
        insert into t (c) select 3 returning a, b
        update t set a = 5
        update t set b = 5 where c = 3
        update t set a = default where c = 3 and b = 5
        select c, b from t order by c, b
        alter table t alter a drop default
        drop sequence t_a_seq
        insert into t (b) values (null)
    """,
    "a column for a table that is there": """
        create table t (k int primary key, v text)
        insert into t select n, 'x' from generate_series(1, 50) as g (n)
        alter table t add id serial
        select count(*), count(distinct id), min(id), max(id) from t
        insert into t (k) values (51) returning id
        select pg_get_serial_sequence('t', 'id'), currval('t_id_seq')
        alter table t add id serial
        alter table t add if not exists id serial
        alter table t add n smallint generated always as identity (start 10 increment 10)
        select count(distinct n), min(n), max(n) from t
        insert into t (k, n) values (52, 1)
        insert into t (k) values (52) returning id, n
        update t set n = default where k = 1 returning n
        alter table t add o serial default 1
        alter table t add o text generated always as identity
        alter table t add o serial null
        drop sequence t_n_seq
        alter table t drop n
        select nextval('t_n_seq')
        alter table t add n bigserial unique check (n > 0)
        select count(distinct n), min(n), max(n) from t
        create sequence s start 3
        alter table t add m int default nextval('s')
        select count(distinct m), min(m), max(m) from t
        update t set m = null where k = 1
        insert into t (k) values (53) returning m
        select count(m) from t
        drop sequence s
        drop table t
        select nextval('t_id_seq')
        select nextval('s')
    """,
    "owners": """
        create table t (id int not null, v text)
        create sequence s as integer
        alter sequence s owned by t.id
        alter table only t alter column id set default nextval('s'::regclass)
        insert into t (v) values ('a'), ('b') returning id
        select pg_get_serial_sequence('t', 'id')
        drop sequence s
        alter sequence s rename to r
        insert into t (v) values ('c') returning id
        select column_default from information_schema.columns where table_name = 't' and
            column_name = 'id'
        alter sequence r owned by none
        select pg_get_serial_sequence('t', 'id')
        drop sequence r cascade
        insert into t (v) values ('d')
        alter table t alter id add generated by default as identity (start 10)
        insert into t (v) values ('d') returning id
        alter table t alter id add generated always as identity
        alter table t alter id set generated always
        insert into t (id) values (1)
        alter table t alter id restart with 50
        insert into t (v) values ('e') returning id
        alter table t alter id restart with 0
        alter table t alter id drop not null
        alter table t alter id drop default
        alter table t alter id set default 5
        alter sequence t_id_seq owned by none
        drop sequence t_id_seq cascade
        alter table t alter id drop identity
        alter table t alter id drop identity
        alter table t alter id drop identity if exists
        alter table t alter id set generated always
        insert into t (v) values ('f')
        alter table t alter v add generated always as identity
        alter table t alter no add generated always as identity
        create table u (a int)
        create sequence s owned by u.a
        create sequence x owned by u.no
        create sequence x owned by u
        create sequence x owned by no.a
        drop table u
        select nextval('s')
        create sequence s
        alter sequence s rename to t
        alter sequence s owned by s.last_value
        alter sequence no owned by t.id
        alter sequence if exists no rename to x
        drop sequence s
    """,
    "several of one column": """
        create table t (id serial, v text, n int)
        create sequence s start 50
        alter sequence s owned by t.id
        select pg_get_serial_sequence('t', 'id')
        insert into t (v) values ('a') returning id
        alter table t alter id set default nextval('s')
        insert into t (v) values ('b') returning id
        select pg_get_serial_sequence('t', 'id')
        truncate t restart identity
        select nextval('t_id_seq'), nextval('s')
        alter sequence t_id_seq owned by none
        select pg_get_serial_sequence('t', 'id')
        alter sequence t_id_seq owned by t.id
        select pg_get_serial_sequence('t', 'id')
        select c.relname, d.deptype from pg_depend d join pg_class c on c.oid = d.objid
            where d.refobjid = 't'::regclass and c.relkind = 'S' order by 1
        alter table t alter id drop default
        alter table t alter id add generated always as identity (start 7)
        insert into t (v) values ('c') returning id
        select c.relname, d.deptype from pg_depend d join pg_class c on c.oid = d.objid
            where d.refobjid = 't'::regclass and c.relkind = 'S' order by 1
        alter sequence t_id_seq1 owned by t.n
        alter table t alter id drop identity, add c int default nextval('t_id_seq1')
        alter table t alter id drop identity
        select nextval('t_id_seq1')
        alter table t alter n set default nextval('t_id_seq')
        alter table t drop id
        alter table t alter n drop default
        alter table t drop id, alter n set default nextval('t_id_seq')
        alter table t drop id, add c int default nextval('t_id_seq')
        alter table t drop id
        select nextval('t_id_seq')
        select nextval('s')
        begin
        create table u (k int generated always as identity, n serial)
        alter table u alter k drop identity
        drop sequence u_n_seq cascade
        insert into u values (7, 8)
        commit
        select nextval('u_k_seq')
        select nextval('u_n_seq')
        select * from u
    """,
    "a sequence of its own": """
        create sequence s start 3 increment 2 maxvalue 9 cache 5
        create sequence s
        create sequence if not exists s
        create table t (k bigint default nextval('s'), v int)
        create table u (k bigint default nextval('s'::regclass) primary key)
        select nextval('s'), nextval('s')
        insert into t (v) values (1) returning k
        insert into u default values returning k
        select nextval('s')
        select lastval()
        drop sequence s
        drop table t, u
        alter sequence s restart
        select nextval('s'::regclass), nextval('public.s'), currval('s')
        drop sequence s
        drop sequence s
        drop sequence if exists s
        create sequence s increment 0
        create sequence s minvalue 5 maxvalue 5
        create sequence s start 0
        create sequence s as smallint maxvalue 40000
        create sequence s cache 0
        create sequence s start 1 start 2
        create table t (a text generated always as identity)
        create table t (a serial default 1)
        create table t (a int default nextval('nothing'))
        create table t (a int default 1 generated always as identity)
    """,
    "around": """
        create sequence s minvalue -1 maxvalue 2 start 1 cycle
        select nextval('s'), nextval('s'), nextval('s'), nextval('s'), nextval('s')
        select array(select nextval('s') from generate_series(1, 9))
        select setval('s', 2)
        select nextval('s')
        select setval('s', 3)
        create table t (id int generated always as identity (maxvalue 2 cycle), v int)
        insert into t (v) select n from generate_series(1, 5) as g (n) returning id
        drop sequence s
        create sequence s increment -3 maxvalue 8 minvalue 1 cycle
        select array(select nextval('s') from generate_series(1, 9))
        drop sequence s
        begin
        create sequence s maxvalue 2 cycle
        select array(select nextval('s') from generate_series(1, 5))
        commit
        select nextval('s'), nextval('s')
        drop sequence s
        create sequence s cycle no cycle
        create sequence s maxvalue 1 minvalue 1 cycle
    """,
    "in transactions": """
        create table t (id serial primary key, v text)
        begin
        insert into t (v) values ('a') returning id
        rollback
        insert into t (v) values ('b') returning id
        begin
        create table u (id bigint generated by default as identity, v text)
        insert into u (v) values ('a'), ('b') returning id
        savepoint one
        insert into u (v) values ('c') returning id
        rollback to one
        insert into u (v) values ('d') returning id
        select currval('u_id_seq'), lastval()
        select setval('u_id_seq', 20)
        insert into u (v) values ('e') returning id
        commit
        insert into u (v) values ('f') returning id
        begin
        truncate t restart identity
        insert into t (v) values ('c') returning id
        commit
        insert into t (v) values ('d') returning id
        begin
        truncate t restart identity
        insert into t (v) values ('e') returning id
        rollback
        select count(*) from t
        begin isolation level repeatable read
        insert into t (v) values ('f')
        commit
    """,
}


def statements(story: str) -> list[str]:
    found: list[str] = []
    for line in STORIES[story].strip().splitlines():
        if line.startswith(" " * 12):
            found[-1] += f" {line.strip()}"
        else:
            found.append(line.strip())
    return found


@pytest.mark.parametrize("story", STORIES)
def test_statements_come_to_the_same(both: tuple[Connection, Connection], story: str) -> None:
    ours, theirs = both
    for number, text in enumerate(statements(story), 1):
        assert (number, text, told(ours, text)) == (number, text, told(theirs, text))


# ------------------------------------------------------------------ at random


def options(rng: random.Random) -> str:
    parts = []
    step = rng.choice((1, 1, 2, 5, -1, -3))
    if step != 1:
        parts.append(f"increment by {step}")
    if rng.random() < 0.4:
        parts.append(f"minvalue {rng.randint(-20, 3)}")
    if rng.random() < 0.4:
        parts.append(f"maxvalue {rng.randint(2, 60)}")
    if rng.random() < 0.4:
        parts.append(f"start with {rng.randint(-5, 20)}")
    if rng.random() < 0.2:
        # More of them are lost by DISCARD, in PostgreSQL.
        parts.append(f"cache {rng.randint(0, 1)}")
    if rng.random() < 0.4:
        parts.append(rng.choice(("cycle", "cycle", "no cycle")))
    return " ".join(parts)


def altered(rng: random.Random) -> str:
    """What ALTER SEQUENCE, or ALTER COLUMN … SET, says of one that is there."""
    parts = []
    if rng.random() < 0.5:
        parts.append(f"increment by {rng.choice((1, 2, 7, -1, -4, 0))}")
    if rng.random() < 0.3:
        parts.append(rng.choice((f"minvalue {rng.randint(-40, 10)}", "no minvalue")))
    if rng.random() < 0.3:
        parts.append(rng.choice((f"maxvalue {rng.randint(0, 90)}", "no maxvalue")))
    if rng.random() < 0.3:
        parts.append(f"start with {rng.randint(-5, 20)}")
    if rng.random() < 0.2:
        parts.append(f"cache {rng.randint(0, 1)}")
    if rng.random() < 0.3:
        parts.append(rng.choice(("cycle", "no cycle")))
    if rng.random() < 0.1:
        parts.append(rng.choice(parts) if parts else "cycle cycle")
    return " ".join(rng.sample(parts, len(parts))) or "no cycle"


def random_altering(rng: random.Random) -> str:
    said = altered(rng)
    restart = rng.choice(("", "", " restart", f" restart with {rng.randint(-5, 70)}"))
    kind = rng.choice(("", "", " as smallint", " as integer", " as bigint", " as text"))
    if rng.random() < 0.6:
        name = rng.choice(("s", "s", "t_id_seq", "t_other_seq", "if exists s"))
        return f"alter sequence {name} {said}{restart}{kind}"
    # Each of them has a SET of its own.
    words = said.replace("increment by", "increment").replace("start with", "start").split()
    options: list[str] = []
    for word in words:
        if word.lstrip("-").isdigit() or (options and options[-1] == "no"):
            options[-1] += f" {word}"
        else:
            options.append(word)
    if rng.random() < 0.2:
        nothing = "alter sequence if exists no increment 2 restart"
        return rng.choice((nothing, "alter table t alter other set increment 2 restart"))
    when = rng.choice(("", "", " set generated always", " set generated by default"))
    listed = "".join(f" set {option}" for option in options)
    return f"alter table t alter id{listed}{when}{restart}"


STANDING: Final = """
    select sequencename, data_type, start_value, min_value, max_value, increment_by, cycle,
        cache_size from pg_sequences where sequencename in ('s', 't_id_seq', 't_other_seq') order
        by 1;
    select sequence_name, data_type, start_value, minimum_value, maximum_value, increment,
        cycle_option from information_schema.sequences where sequence_name in ('s', 't_id_seq',
        't_other_seq') order by 1;
    select column_name, is_identity, identity_generation, identity_start, identity_increment,
        identity_maximum, identity_minimum, identity_cycle from information_schema.columns where
        table_name = 't' order by ordinal_position
"""


def random_statement(rng: random.Random, *, in_block: bool) -> str:
    number = rng.randint(-5, 70)
    return rng.choice(
        [
            *["insert into t (v) values (1) returning id, other"] * 4,
            "insert into t values (default, default, 1) returning id, other",
            f"insert into t (id, v) values ({number}, 2) returning id, other",
            f"insert into t (id) overriding system value values ({number}) returning id, other",
            "insert into t (id, other) overriding user value values (1, 1) returning id, other",
            "insert into t (v) select n from generate_series(1, 3) as g (n) returning id",
            *["select nextval('s')"] * 3,
            "select nextval('t_id_seq'), currval('t_id_seq')",
            "select currval('s')",
            "select lastval()",
            f"select setval('s', {number})",
            f"select setval('s', {number}, {rng.choice(('true', 'false'))})",
            f"select setval('t_id_seq', {number})",
            "truncate t",
            "truncate t restart identity",
            *([] if in_block else ["alter sequence s restart", "discard sequences"]),
            "commit" if in_block else "begin",
            *(["rollback"] if in_block else []),
        ]
    )


def test_random_scripts_come_to_the_same(servers: tuple[Server, Server], tell: Tell) -> None:
    done = refused = 0
    for script in range(SCRIPTS):
        rng = random.Random(SEED * 10_000 + script)
        kind = rng.choice(("smallint", "integer", "bigint"))
        when = rng.choice(("always", "by default"))
        texts = [
            f"create sequence s {options(rng)}",
            f"create table t (id {kind} generated {when} as identity"
            + (f" ({own})" if (own := options(rng)) else "")
            + ", other bigserial, v int)",
        ]
        in_block, there = False, True
        ours, theirs = servers
        with ours.psycopg(autocommit=True) as one, theirs.psycopg(autocommit=True) as other:
            for each in (one, other):
                each.execute("drop table if exists t")
                each.execute("drop sequence if exists s")
            for _ in range(STATEMENTS):
                # What is wrong with an option is said before what isn't there, and after it there.
                if not texts and not in_block and there and rng.random() < 0.25:
                    texts += [random_altering(rng), *STANDING.split(";")]
                text = texts.pop(0) if texts else random_statement(rng, in_block=in_block)
                found, expected = told(one, text), told(other, text)
                where = (SEED, script, text)
                assert (*where, found) == (*where, expected)
                done += 1
                code = isinstance(expected, str) and len(expected) == 5
                refused += code
                there = there and not (code and text.startswith("create"))
                in_block = one.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
                if one.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
                    texts.insert(0, "rollback")
            for each in (one, other):
                each.execute("rollback")
                each.execute("drop table if exists t")
                each.execute("drop sequence if exists s")
    tell(
        f"numbers as PostgreSQL gives them: {SCRIPTS} scripts, {done} statements, {refused} of them"
        f" refused in both (seed {SEED})"
    )


# ------------------------------------------------------------------ the catalog

SHOWN: Final = """
    create table t (id serial primary key, n bigint generated always as identity, m int generated by
        default as identity (start 5 increment 2 minvalue 3 maxvalue 99), v text default 'x');
    create sequence s as smallint start 7 increment -2 minvalue -100 maxvalue 100 cycle;
    create table u (k bigint default nextval('s'), "Odd" serial)
"""
PSQL: Final = (
    *(r"\d", r"\d t", r"\d u", r"\d t_id_seq", r"\d t_n_seq", r"\d t_m_seq", r"\d s", r"\ds"),
    *(r"\dt", r"\di", r"\d t_pkey", r"\d+ t"),
)
ASKED: Final = """
    select relname, relkind, relnatts, relhasindex, relreplident from pg_class where
        relnamespace = 'public'::regnamespace order by 1;
    select seqrelid::regclass, seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin,
        seqcache, seqcycle from pg_sequence order by seqrelid::regclass::text;
    select schemaname, sequencename, data_type, start_value, min_value, max_value,
        increment_by, cycle, cache_size, last_value from pg_sequences order by 2;
    select sequence_name, data_type, numeric_precision, start_value, minimum_value,
        maximum_value, increment, cycle_option from information_schema.sequences order by 1;
    select table_name, column_name, column_default, is_nullable, is_identity,
        identity_generation, identity_start, identity_increment, identity_maximum,
        identity_minimum, identity_cycle from information_schema.columns where table_schema
        = 'public' order by 1, ordinal_position;
    select attrelid::regclass, attname, attidentity, atthasdef, attnotnull from pg_attribute
        where attrelid in ('t'::regclass, 'u'::regclass) and attnum > 0 order by 1, attnum;
    select d.objid::regclass, d.refobjid::regclass, d.refobjsubid, d.deptype from pg_depend
        d join pg_class c on c.oid = d.objid where c.relkind = 'S' and d.refclassid =
        'pg_class'::regclass order by d.objid::regclass::text;
    select table_name from information_schema.tables where table_schema = 'public' order by
        1;
    select tablename from pg_tables where schemaname = 'public' order by 1;
    select pg_get_serial_sequence('t', 'id'), pg_get_serial_sequence('t', 'n'),
        pg_get_serial_sequence('u', 'k'), pg_get_serial_sequence('public.u', 'Odd');
    select pg_get_serial_sequence('no', 'id');
    select pg_get_serial_sequence('t', 'no');
    select last_value, log_cnt, is_called from s;
    select attname from pg_attribute where attrelid = 's'::regclass and attnum > 0 order by
        attnum;
"""


def test_the_catalog_shows_the_same(
    servers: tuple[Server, Server], both: tuple[Connection, Connection]
) -> None:
    ours, theirs = both
    for each in both:
        for text in SHOWN.split(";"):
            each.execute(text.encode())
    for text in ASKED.strip().strip(";").split(";"):
        assert (text, told(ours, text)) == (text, told(theirs, text))
    one, other = (environment(server.port, server.database) for server in servers)
    for command in PSQL:
        # The session's own schema has one more role: nothing that these print.
        assert psql(one, command) == psql(other, command), command


# ------------------------------------------------------------------ programs


@pytest.fixture(params=["leasehold", "postgresql"])
def server(request: pytest.FixtureRequest, servers: tuple[Server, Server]) -> Server:
    return servers[request.param == "postgresql"]


class Base(orm.DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "author"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str]
    books: orm.Mapped[list[Book]] = orm.relationship(back_populates="author")


class Book(Base):
    __tablename__ = "book"
    id: orm.Mapped[int] = orm.mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    title: orm.Mapped[str]
    author_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("author.id"))
    author: orm.Mapped[Author] = orm.relationship(back_populates="books")


class Shelf(Base):
    __tablename__ = "shelf"
    id: orm.Mapped[int] = orm.mapped_column(
        sa.Integer, sa.Sequence("shelf_numbers", start=100), primary_key=True
    )
    place: orm.Mapped[str]


def told_of(metadata: sa.MetaData) -> dict[str, Any]:
    return {
        f"{table.name}.{column.name}": (
            str(column.type),
            column.nullable,
            column.primary_key,
            column.identity is not None,
            str(getattr(column.server_default, "arg", None)),
        )
        for table in metadata.sorted_tables
        for column in table.columns
    }


def fill(session: orm.Session) -> None:
    ann = Author(name="Ann", books=[Book(title="One"), Book(title="Two")])
    session.add_all([ann, *(Author(name=f"a{n}") for n in range(50)), Shelf(place="left")])
    session.commit()
    assert ann.id in range(1, 60)
    assert sorted(book.author_id for book in ann.books) == [ann.id, ann.id]


def counted(session: orm.Session) -> tuple[Any, ...]:
    ids = session.scalars(sa.select(Author.id)).all()
    shelf = session.scalars(sa.select(Shelf.id)).all()
    books = session.scalars(sa.select(Book.id)).all()
    return len(ids), len(set(ids)), len(books), len(set(books)), list(shelf)


def test_sqlalchemy_orm_as_a_new_user_writes_it(server: Server) -> None:
    engine = sa.create_engine(server.url("psycopg"))
    try:
        Base.metadata.create_all(engine)
        Base.metadata.create_all(engine)
        with orm.Session(engine) as session:
            fill(session)
            assert counted(session) == (51, 51, 2, 2, [100])
        reflected = sa.MetaData()
        reflected.reflect(engine, only=["author", "book", "shelf"])
        assert told_of(reflected) == {
            "author.id": ("INTEGER", False, True, False, "nextval('author_id_seq'::regclass)"),
            "author.name": ("VARCHAR", False, False, False, "None"),
            "book.id": ("BIGINT", False, True, True, "None"),
            "book.title": ("VARCHAR", False, False, False, "None"),
            "book.author_id": ("INTEGER", False, False, False, "None"),
            "shelf.id": ("INTEGER", False, True, False, "None"),
            "shelf.place": ("VARCHAR", False, False, False, "None"),
        }
        names = sa.inspect(engine).get_sequence_names()
        assert {"author_id_seq", "shelf_numbers"} <= set(names)
        with engine.begin() as connection:
            made = connection.execute(
                sa.insert(reflected.tables["author"]).returning(reflected.tables["author"].c.id),
                [{"name": "x"}, {"name": "y"}],
            )
            assert len(made.all()) == 2
    finally:
        Base.metadata.drop_all(engine)
        assert "author_id_seq" not in sa.inspect(engine).get_sequence_names()
        engine.dispose()


def test_sqlalchemy_orm_over_asyncpg(server: Server) -> None:
    async def work() -> None:
        engine = sa_asyncio.create_async_engine(server.url("asyncpg"))
        try:
            async with engine.begin() as connection:
                await connection.run_sync(Base.metadata.create_all)
            async with sa_asyncio.AsyncSession(engine) as session:
                await session.run_sync(fill)
                assert await session.run_sync(counted) == (51, 51, 2, 2, [100])
        finally:
            async with engine.begin() as connection:
                await connection.run_sync(Base.metadata.drop_all)
            await engine.dispose()

    asyncio.run(work())


def test_psycopg(server: Server) -> None:
    with server.psycopg() as client:
        client.execute("CREATE TABLE t (id serial PRIMARY KEY, v text)")
        cursor = client.cursor()
        insert = "INSERT INTO t (v) VALUES (%s) RETURNING id"
        cursor.executemany(insert, [("a",), ("b",)], returning=True)
        assert cursor.fetchone() == (1,)
        with cursor.copy("COPY t (v) FROM STDIN") as copy:
            copy.write_row(("c",))
            copy.write_row(("d",))
        client.commit()
        with client.pipeline():
            for value in "ef":
                cursor.execute("INSERT INTO t (v) VALUES (%s) RETURNING id", (value,), binary=True)
        client.commit()
        found = client.execute("SELECT id, v FROM t ORDER BY id").fetchall()
        assert found == list(enumerate("abcdef", 1))
        client.execute("CREATE TABLE u (id int GENERATED ALWAYS AS IDENTITY, v text)")
        with cursor.copy("COPY u FROM STDIN") as copy:
            copy.write_row((7, "as it is given"))
        with cursor.copy("COPY u (v) FROM STDIN") as copy:
            copy.write_row(("numbered",))
        found = client.execute("SELECT id FROM u ORDER BY id").fetchall()
        assert found == [(1,), (7,)]
        assert client.execute("SELECT nextval(%s)", ("u_id_seq",)).fetchone() == (2,)
        client.execute("DROP TABLE t, u")
        client.commit()


def test_asyncpg(server: Server) -> None:
    async def work() -> None:
        client = await asyncpg.connect(**server.asyncpg())
        try:
            await client.execute("CREATE TABLE t (id bigserial PRIMARY KEY, v text)")
            insert = await client.prepare("INSERT INTO t (v) VALUES ($1) RETURNING id")
            assert [await insert.fetchval(v) for v in "ab"] == [1, 2]
            await client.copy_records_to_table("t", records=[("c",), ("d",)], columns=["v"])
            await client.executemany("INSERT INTO t (v) VALUES ($1)", [("e",), ("f",)])
            assert await client.fetchval("SELECT nextval('t_id_seq')") == 7
            ids = await client.fetch("SELECT id FROM t ORDER BY v")
            assert [row["id"] for row in ids] == [1, 2, 3, 4, 5, 6]
        finally:
            await client.execute("DROP TABLE IF EXISTS t")
            await client.close()

    asyncio.run(work())


def test_pandas(server: Server) -> None:
    engine = sa.create_engine(server.url("psycopg"))
    frame = pd.DataFrame({"v": ["a", "b", "c"]})
    try:
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE t (id serial PRIMARY KEY, v text)"))
        frame.to_sql("t", engine, if_exists="append", index=False)
        frame.to_sql("indexed", engine, if_exists="replace", index=True, index_label="id")
        for name, first in (("t", 1), ("indexed", 0)):
            found = pd.read_sql_table(name, engine, index_col="id")
            assert list(found.index) == [first, first + 1, first + 2]
            assert list(found["v"]) == ["a", "b", "c"]
    finally:
        with engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE IF EXISTS t, indexed"))
        engine.dispose()
